use crate::tests::support::{BEGIN, handle, workstation_of};
use onus_core::code::Code;
use onus_core::event::{Event, Stamped, TokenIssued, TokenRevoked};
use onus_core::facts::Caller;
use onus_core::refusal::Refusal;
use onus_core::registry::token::{Named, TokenOrder, calls, changed, evolve, issue, redeem, revoke};
use onus_core::time::{Millis, Timestamp};
use onus_core::token::{AccessToken, Random, TokenKind, TokenState, TokenText};
use onus_core::worker::{Kind, Worker, WorkerState};
use onus_core::workstation::{Lifecycle, Workstation, WorkstationKind, WorkstationState};

const RANDOM: Random = Random { id: [3; 5], secret: [5; 20] };

fn worker(name: &str, kind: Kind) -> Worker {
    let (handle, tz) = (handle(name), "UTC".to_owned());
    Worker { handle, kind, tier: None, role: None, state: WorkerState::Active, tz }
}

fn place(state: WorkstationState) -> Workstation {
    Workstation {
        name: workstation_of("a"),
        kind: WorkstationKind::Logical,
        path: None,
        state,
        lifecycle: Lifecycle::Reusable,
        version: 1,
        branch: None,
        probes: Vec::new(),
        reason: None,
        role: None,
        lane: None,
    }
}

fn order(kind: Option<TokenKind>, whom: Option<&str>) -> TokenOrder {
    TokenOrder { kind, worker: whom.map(handle), ..TokenOrder::default() }
}

/// Somebody asks for a token; `p` and `q` are people, the others agents.
fn ask(who: &str, order: &TokenOrder) -> Result<(TokenIssued, TokenText), Refusal> {
    let kind = |name: &str| if ["@p", "@q"].contains(&name) { Kind::Human } else { Kind::Agent };
    let caller = Caller::Registered(worker(who, kind(&format!("@{who}"))));
    let whom = order.worker.as_ref().map(|name| worker(&name.as_str()[1..], kind(name.as_str())));
    let whom = whom.filter(|worker| worker.handle != handle("x"));
    let there = place(WorkstationState::Ready);
    let workstation = order.workstation.as_ref().filter(|name| **name == there.name).map(|_| &there);
    let named = Named { worker: whom.as_ref(), workstation };
    issue(&caller, order, named, BEGIN, &RANDOM).map(|(by, issued, text)| {
        assert_eq!(by, handle(who));
        (issued, text)
    })
}

#[test]
fn people_issue_and_agents_cannot() {
    use TokenKind::{Agent, Person, Service};
    let cases = [
        ("p", None, Some("a"), Ok(Agent)),
        ("p", None, Some("p"), Ok(Person)),
        ("p", Some(Agent), Some("a"), Ok(Agent)),
        ("p", Some(Service), Some("a"), Ok(Service)),
        ("p", Some(Service), None, Ok(Service)),
        // Whoever could issue another person's token could become that person.
        ("p", None, Some("q"), Err(Code::NotPermitted)),
        ("p", Some(Person), Some("a"), Err(Code::InvalidInput)),
        ("p", Some(Agent), Some("p"), Err(Code::InvalidInput)),
        ("p", Some(Service), Some("p"), Err(Code::InvalidInput)),
        ("p", None, None, Err(Code::InvalidInput)),
        ("p", Some(Agent), None, Err(Code::InvalidInput)),
        ("p", None, Some("x"), Err(Code::UnknownName)),
        ("a", None, Some("a"), Err(Code::HumanRequired)),
        ("a", None, Some("p"), Err(Code::HumanRequired)),
        ("a", Some(Service), None, Err(Code::HumanRequired)),
    ];
    for (who, kind, whom, expected) in cases {
        let got = ask(who, &order(kind, whom)).map(|(issued, _)| issued.kind).map_err(|refusal| refusal.code);
        assert_eq!(got, expected, "{who} {kind:?} {whom:?}");
    }
    for nobody in [Caller::Anonymous, Caller::Unregistered(handle("x"))] {
        assert!(issue(&nobody, &order(Some(Service), None), Named::default(), BEGIN, &RANDOM).is_err());
    }
}

#[test]
fn everything_wrong_is_told_at_once() {
    let wrong = TokenOrder {
        kind: Some(TokenKind::Service),
        worker: Some(handle("x")),
        workstation: Some(workstation_of("z")),
        label: Some("a\nb".into()),
        expires_in: Some(Millis(0)),
    };
    let findings = ask("p", &wrong).unwrap_err().findings;
    assert_eq!(findings.len(), 5, "{findings:#?}");
}

#[test]
fn a_retired_workstation_gets_no_token() {
    let caller = Caller::Registered(worker("p", Kind::Human));
    let agent = worker("a", Kind::Agent);
    let order = TokenOrder { workstation: Some(workstation_of("a")), ..order(None, Some("a")) };
    for (state, fine) in [(WorkstationState::Ready, true), (WorkstationState::Retired, false)] {
        let place = place(state);
        let named = Named { worker: Some(&agent), workstation: Some(&place) };
        assert_eq!(issue(&caller, &order, named, BEGIN, &RANDOM).is_ok(), fine);
    }
}

fn entry(at: Timestamp, event: Event) -> Stamped {
    Stamped { seq: 1, task: None, at, actor: handle("p"), workstation: None, epoch: 0, event }
}

fn issued(order: &TokenOrder) -> (AccessToken, TokenText) {
    let (event, text) = ask("p", order).unwrap();
    (evolve(None, &entry(BEGIN, event.into())).unwrap(), text)
}

#[test]
fn a_token_is_good_until_it_expires_or_is_revoked() {
    let (token, text) = issued(&TokenOrder { expires_in: Some(Millis::hours(1)), ..order(None, Some("a")) });
    let agent = worker("a", Kind::Agent);
    let admit = |token: &AccessToken, at: Timestamp| token.admit(&text, &text.hash(), Some(&agent), at);
    let last = BEGIN.plus(Millis(3_599_999));
    let principal = admit(&token, last).unwrap();
    assert_eq!((principal.kind, principal.worker), (TokenKind::Agent, Some(handle("a"))));
    let late = admit(&token, BEGIN.plus(Millis::hours(1))).unwrap_err();
    assert_eq!(late.code, Code::Unauthenticated);
    assert!(late.detail.contains("expired"));

    let caller = Caller::Registered(worker("q", Kind::Human));
    let (by, event) = revoke(&caller, &token, Some("it leaked")).unwrap();
    assert_eq!(by, handle("q"));
    let revoked = evolve(Some(token), &entry(last, event.into())).unwrap();
    assert_eq!(revoked.state(BEGIN), TokenState::Revoked);
    assert!(admit(&revoked, BEGIN).unwrap_err().detail.contains("revoked"));
    assert_eq!(revoke(&caller, &revoked, None).unwrap_err().code, Code::WrongState);
    let agent = Caller::Registered(agent);
    assert_eq!(revoke(&agent, &revoked, None).unwrap_err().code, Code::HumanRequired);

    let (endless, _) = issued(&order(None, Some("a")));
    assert_eq!(endless.state(Timestamp(i64::MAX)), TokenState::Active);
}

/// A row that was changed behind the rules' back lends a token nothing.
#[test]
fn a_token_that_does_not_fit_is_refused() {
    let (token, text) = issued(&order(None, Some("a")));
    let hash = text.hash();
    let refused = |worker: Option<&Worker>| {
        token.admit(&text, &hash, worker, BEGIN).unwrap_err().code == Code::Unauthenticated
    };
    assert!(refused(Some(&worker("a", Kind::Human))));
    assert!(refused(Some(&worker("b", Kind::Agent))));
    assert!(refused(None));
    let other = TokenText::new(TokenKind::Agent, &Random { id: [3; 5], secret: [6; 20] });
    let agent = worker("a", Kind::Agent);
    assert!(token.admit(&other, &hash, Some(&agent), BEGIN).is_err());
    let upgraded = AccessToken { kind: TokenKind::Person, ..token.clone() };
    assert!(upgraded.admit(&text, &hash, Some(&worker("a", Kind::Human)), BEGIN).is_err());
    let nobodys = AccessToken { worker: None, ..token };
    assert!(nobodys.admit(&text, &hash, None, BEGIN).is_err());
}

#[test]
fn the_record_tells_the_row_and_no_secret() {
    let (event, text) = ask("p", &order(None, Some("a"))).unwrap();
    let data = Event::from(event.clone()).data().unwrap();
    assert!(!data.contains(&text.reveal()[15..]));
    assert!(!data.contains(&text.hash().to_string()), "the record must not tell what the store keeps");
    assert_eq!(Event::parse("token_issued", &data).unwrap(), event.clone().into());
    let first = evolve(None, &entry(BEGIN, event.clone().into())).unwrap();
    assert!(evolve(Some(first), &entry(BEGIN, event.clone().into())).is_err());
    assert!(evolve(None, &entry(BEGIN, TokenRevoked { id: event.id, reason: None }.into())).is_err());
}

#[test]
fn a_link_makes_no_calls_and_is_exchanged_once() {
    let person = worker("p", Kind::Human);
    let admitted = |token: &AccessToken, text: &TokenText| {
        token.admit(text, &text.hash(), Some(&person), BEGIN).unwrap()
    };
    let (link, text) = issued(&TokenOrder::link(handle("p")));
    assert_eq!(link.state(BEGIN.plus(Millis(599_999))), TokenState::Active);
    assert_eq!(link.state(BEGIN.plus(Millis::minutes(10))), TokenState::Expired);
    let holder = admitted(&link, &text);
    assert_eq!(calls(&holder).unwrap_err().code, Code::Unauthenticated);

    let random = Random { id: [4; 5], secret: [7; 20] };
    let (by, revoked, given, text) = redeem(&holder, BEGIN, &random).unwrap();
    assert_eq!((by, &revoked.id), (handle("p"), &link.id));
    let (revoked, given) = (Event::from(revoked), Event::from(given));
    assert_eq!((changed(&revoked), changed(&given)), (Some(&link.id), Some(text.id())));
    let spent = evolve(Some(link), &entry(BEGIN, revoked.clone())).unwrap();
    assert_eq!(spent.state(BEGIN), TokenState::Revoked);
    assert!(evolve(Some(spent), &entry(BEGIN, revoked)).is_err(), "nothing is revoked twice");

    let browsers = evolve(None, &entry(BEGIN, given)).unwrap();
    assert_eq!(browsers.state(BEGIN.plus(Millis::hours(12))), TokenState::Expired);
    let browser = admitted(&browsers, &text);
    assert!(calls(&browser).is_ok());
    assert_eq!(redeem(&browser, BEGIN, &random).unwrap_err().code, Code::Unauthenticated);
}
