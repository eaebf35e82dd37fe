//! A change of the workspace under a request id has one effect, and its repeat gets the first answer: in every database.

use super::desk::{self, worker};
use onus_app::idempotent_admin::Asker;
use onus_app::registry::Founding;
use onus_app::submit::Target;
use onus_app::token::{Shown, parse};
use onus_app::{Onus, Sight};
use onus_core::code::Code;
use onus_core::command::{Command, Envelope};
use onus_core::event::{MilestoneAdded, WorkstationAdded};
use onus_core::id::{Handle, RequestId, WorkstationName};
use onus_core::milestone::Selection;
use onus_core::refusal::Refusal;
use onus_core::registry::token::TokenOrder;
use onus_core::settings::Settings;
use onus_core::task::Spec;
use onus_core::worker::Kind;
use onus_store::port::Driver;
use onus_store::postgres::{Address, Postgres};
use onus_store::sqlite::{Options, Sqlite};
use onus_testkit::Cluster;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

fn handle(name: &str) -> Handle {
    name.parse().unwrap()
}

fn founded(store: impl Driver + 'static, directory: &Path) -> Onus {
    let place = onus_host::repository::find(directory).unwrap();
    let path = directory.join("onus.db");
    let mut onus = Onus {
        store: Box::new(store),
        settings: Settings::default(),
        path,
        place,
        sight: Sight::Store,
        bearer: None,
    };
    let project = "T".parse().unwrap();
    let person = worker("@ada", Kind::Human);
    let founding = Founding { project: None, default_project: project, person, checkout: None };
    onus.init(&founding, |_| Ok("00".repeat(32))).unwrap();
    onus
}

/// In each database that is here.
fn everywhere(story: impl Fn(&mut dyn Stage)) {
    let directory = tempfile::tempdir().unwrap();
    let file = Sqlite::create(&directory.path().join("onus.db"), &Options::one_shot(desk::clock)).unwrap();
    story(&mut founded(file, directory.path()));
    if let Some(cluster) = Cluster::shared() {
        let database = Postgres::create(&Address::parse(&cluster.database()).unwrap()).unwrap();
        story(&mut founded(database, directory.path()));
    }
}

/// What the stories do, whatever the store.
trait Stage {
    fn make(&mut self, change: &Change, asker: Asker<'_>) -> Result<Value, Refusal>;
    fn entries(&mut self) -> usize;
    fn ask(&mut self, request: &RequestId) -> Result<(), Refusal>;
    fn token(&mut self, whom: &str) -> Shown;
}

/// Every change there is.
#[derive(Debug, Clone)]
enum Change {
    AddWorker(&'static str),
    Pause(&'static str),
    Resume(&'static str),
    AddWorkstation(&'static str),
    Quarantine(&'static str),
    Restore(&'static str),
    Retire(&'static str),
    AddMilestone(&'static str),
    Issue,
    Revoke(String),
}

fn told(view: impl Serialize) -> Value {
    serde_json::to_value(view).unwrap()
}

impl Stage for Onus {
    fn make(&mut self, change: &Change, asker: Asker<'_>) -> Result<Value, Refusal> {
        let place = |name: &str| -> WorkstationName { name.parse().unwrap() };
        let why = Some("because");
        match change {
            Change::AddWorker(name) => self.add_worker(asker, &worker(name, Kind::Agent)).map(told),
            Change::Pause(name) => self.pause_worker(asker, &handle(name), why).map(told),
            Change::Resume(name) => self.resume_worker(asker, &handle(name)).map(told),
            Change::AddWorkstation(name) => {
                self.add_workstation(asker, &WorkstationAdded::logical(place(name))).map(told)
            }
            Change::Quarantine(name) => self.quarantine(asker, &place(name), why).map(told),
            Change::Restore(name) => self.restore(asker, &place(name), why).map(told),
            Change::Retire(name) => self.retire(asker, &place(name), why, false).map(told),
            Change::AddMilestone(name) => {
                let selection = Selection { sprint: Some("12".into()), ..Selection::default() };
                let wanted =
                    MilestoneAdded { name: name.parse().unwrap(), title: None, selection, target: None };
                self.add_milestone(asker, &wanted).map(told)
            }
            Change::Issue => {
                let order = TokenOrder { worker: Some(handle("@bot")), ..TokenOrder::default() };
                self.issue_token(asker, &order).map(told)
            }
            Change::Revoke(id) => self.revoke_token(asker, &id.parse().unwrap(), why).map(told),
        }
    }

    fn entries(&mut self) -> usize {
        self.log(None, None, 1_000).unwrap().entries.len()
    }

    fn ask(&mut self, request: &RequestId) -> Result<(), Refusal> {
        let spec = Box::new(Spec { kind: "chore".into(), ..Spec::titled("asked for") });
        let envelope = Envelope {
            request: request.clone(),
            actor: Some(handle("@ada")),
            token: None,
            task: None,
            project: None,
            base: None,
            command: Command::Add { spec, depends_on: Default::default(), archived: None, arrival: None },
        };
        self.submit(&envelope, &Target::Named).map(drop)
    }

    fn token(&mut self, whom: &str) -> Shown {
        let order = TokenOrder { worker: Some(handle(whom)), ..TokenOrder::default() };
        let issued = self.issue_token(Some(&handle("@ada")), &order).unwrap();
        let text = parse(&issued.secret).unwrap();
        let principal = self.recognise(&text).unwrap();
        Shown { text, principal, sender: None }
    }
}

fn code(answer: Result<Value, Refusal>) -> Code {
    answer.unwrap_err().code
}

#[test]
fn a_repeat_gets_the_first_answer_and_changes_nothing() {
    everywhere(|onus| {
        let ada = handle("@ada");
        let story = [
            Change::AddWorker("@bot"),
            Change::AddWorkstation("ws-1"),
            Change::AddMilestone("sprint-12"),
            Change::Pause("@bot"),
            Change::Resume("@bot"),
            Change::Quarantine("ws-1"),
            Change::Restore("ws-1"),
            Change::Retire("ws-1"),
        ];
        let mut first = Vec::new();
        for (n, change) in story.iter().enumerate() {
            let request: RequestId = format!("r-{n}").parse().unwrap();
            let asker = Asker { actor: Some(&ada), request: Some(&request), shown: None };
            first.push((change, request.clone(), onus.make(change, asker).unwrap()));
            let entries = onus.entries();
            assert_eq!(onus.make(change, asker).unwrap(), first[n].2, "at once: {change:?}");
            assert_eq!(onus.entries(), entries, "{change:?}");
        }
        // Whatever has become of it since.
        let entries = onus.entries();
        for (change, request, answer) in &first {
            let asker = Asker { actor: Some(&ada), request: Some(request), shown: None };
            assert_eq!(onus.make(change, asker).unwrap(), *answer, "later: {change:?}");
        }
        assert_eq!(onus.entries(), entries);
        // Without the id, or with another one, it is another call.
        assert_eq!(code(onus.make(&Change::Resume("@bot"), Some(&ada).into())), Code::WrongState);
    });
}

#[test]
fn a_request_id_stands_for_one_call_of_one_caller() {
    everywhere(|onus| {
        let (ada, bob) = (handle("@ada"), handle("@bob"));
        let request: RequestId = "once".parse().unwrap();
        let asks = |actor| Asker { actor: Some(actor), request: Some(&request), shown: None };
        onus.make(&Change::AddWorker("@bot"), asks(&ada)).unwrap();
        let entries = onus.entries();
        for (other, actor) in [
            (Change::AddWorker("@bob"), &ada),
            (Change::Pause("@bot"), &ada),
            (Change::AddWorker("@bot"), &bob),
        ] {
            let refused = onus.make(&other, asks(actor)).unwrap_err();
            assert_eq!((refused.code, refused.request_id.as_deref()), (Code::RequestConflict, Some("once")));
        }
        // Commands have the same ids.
        assert_eq!(onus.ask(&request).unwrap_err().code, Code::RequestConflict);
        let command: RequestId = "a-command".parse().unwrap();
        onus.ask(&command).unwrap();
        let asker = Asker { actor: Some(&ada), request: Some(&command), shown: None };
        assert_eq!(code(onus.make(&Change::Pause("@bot"), asker)), Code::RequestConflict);
        assert_eq!(onus.entries(), entries + 1);
        // What was refused has had no effect, and may be tried again.
        let again: RequestId = "again".parse().unwrap();
        let asker = Asker { actor: Some(&ada), request: Some(&again), shown: None };
        assert_eq!(code(onus.make(&Change::Resume("@bot"), asker)), Code::WrongState);
        onus.make(&Change::Pause("@bot"), Some(&ada).into()).unwrap();
        onus.make(&Change::Resume("@bot"), asker).unwrap();
    });
}

/// A secret is kept nowhere, so its repeat is refused, and says which token to revoke.
#[test]
fn a_secret_is_told_once() {
    everywhere(|onus| {
        let ada = handle("@ada");
        onus.make(&Change::AddWorker("@bot"), Some(&ada).into()).unwrap();
        let request: RequestId = "issue".parse().unwrap();
        let asker = Asker { actor: Some(&ada), request: Some(&request), shown: None };
        let issued = onus.make(&Change::Issue, asker).unwrap();
        let (id, entries) = (issued["token"]["id"].as_str().unwrap().to_owned(), onus.entries());
        let refused = onus.make(&Change::Issue, asker).unwrap_err();
        assert_eq!(refused.code, Code::WrongState);
        assert!(refused.hint.unwrap().starts_with(&format!("onus worker token revoke {id}")));
        assert_eq!(onus.entries(), entries, "no second token");
        let request: RequestId = "revoke".parse().unwrap();
        let asker = Asker { actor: Some(&ada), request: Some(&request), shown: None };
        let revoked = onus.make(&Change::Revoke(id.clone()), asker).unwrap();
        assert_eq!(onus.make(&Change::Revoke(id), asker).unwrap(), revoked);
    });
}

#[test]
fn no_secret_is_kept_for_a_repeat() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("onus.db");
    let file = Sqlite::create(&path, &Options::one_shot(desk::clock)).unwrap();
    let mut onus = founded(file, directory.path());
    onus.add_worker(Some(&handle("@ada")), &worker("@bot", Kind::Agent)).unwrap();
    let (ada, request): (_, RequestId) = (handle("@ada"), "issue".parse().unwrap());
    let asker = Asker { actor: Some(&ada), request: Some(&request), shown: None };
    let secret = onus.make(&Change::Issue, asker).unwrap()["secret"].as_str().unwrap().to_owned();
    let kept: String = rusqlite::Connection::open(&path)
        .unwrap()
        .query_row("SELECT answer FROM request WHERE answer IS NOT NULL", [], |row| row.get(0))
        .unwrap();
    assert!(kept.contains("@bot") && !kept.contains(&secret), "{kept}");
    let (public, hidden) = secret.rsplit_once('_').unwrap();
    assert!(!kept.contains(hidden), "not even a part of it: {public}");
}

/// What was revoked after its bearer was admitted changes nothing, not even to tell an answer again.
#[test]
fn a_token_is_judged_in_the_transaction_of_the_change() {
    everywhere(|onus| {
        let ada = handle("@ada");
        let shown = onus.token("@ada");
        let request: RequestId = "shown".parse().unwrap();
        let asker = Asker { actor: Some(&ada), request: Some(&request), shown: Some(&shown) };
        onus.make(&Change::AddWorker("@bot"), asker).unwrap();
        let id = shown.principal.token_id.to_string();
        onus.make(&Change::Revoke(id), Some(&ada).into()).unwrap();
        let entries = onus.entries();
        assert_eq!(code(onus.make(&Change::AddWorker("@bot"), asker)), Code::Unauthenticated);
        let other = Asker { request: None, ..asker };
        assert_eq!(code(onus.make(&Change::AddWorker("@second"), other)), Code::Unauthenticated);
        assert_eq!(onus.entries(), entries);
    });
}
