//! Reports over a day whose figures are reckoned by hand.

use super::shop::{self, Shop};
use onus_app::report::{AuditKind, SearchAsk, When, csv};
use onus_core::code::Code;
use onus_core::command::{Command, Warrant, WhileBlocked};
use onus_core::id::Handle;
use onus_core::lease::Token;
use onus_core::report::{Compliance, Group};
use onus_core::task::{Check, CheckKind, CheckState};
use onus_core::text::Text;

const MAP: &str = r#"
routing:
  - task_type: backend
    agent_name: "@bot"
    workstation: ws-2
  - task_type: frontend
    agent_name: "@eve"
    workstation: ws-3
"#;

/// A time of 2 November 2026.
fn set(time: &str) {
    shop::set(&format!("2026-11-02T{time}"));
}

fn forced(reason: &str) -> Warrant {
    Warrant::Forced { reason: Some(reason.into()) }
}

impl Shop {
    /// @ada, @bot and @eve, three workstations, the map above, and five tasks that were asked for at eight.
    fn with_five_tasks() -> Shop {
        let mut shop = Shop::open("2026-11-02T08:00", "UTC", &["ws-1", "ws-2", "ws-3"], Some(MAP));
        shop.hire("@bot", "UTC");
        shop.hire("@eve", "UTC");
        shop.add("T-1", Some("backend"), Some("s1"));
        shop.add("T-2", Some("backend"), Some("s1"));
        shop.add("T-3", Some("frontend"), Some("s2"));
        shop.add("T-4", Some("backend"), Some("s1"));
        shop.add("T-5", Some("poetry"), None);
        shop
    }

    fn take_over(&mut self, task: &str, reason: &str) -> Token {
        let takeover = Command::Takeover {
            workstation: Some("ws-1".parse().unwrap()),
            here: None,
            ttl: None,
            reason: Some(reason.into()),
            warrant: Warrant::Ordinary,
        };
        self.submit("@ada", Some(task), None, takeover).unwrap().token.unwrap()
    }

    fn complete(&mut self, who: &str, task: &str, token: Option<Token>, warrant: Warrant) {
        let resolution = Some(Text::new(format!("{task} works")));
        let complete = Command::Complete { resolution, root_cause: None, warrant, proof: Default::default() };
        self.submit(who, Some(task), token, complete).unwrap();
    }

    /// The whole day, up to three in the afternoon.
    fn day(&mut self) {
        set("09:00");
        let token = self.claim("@bot", "T-1", "ws-2").unwrap();
        set("10:00");
        self.complete("@bot", "T-1", Some(token), Warrant::Ordinary);
        for _ in 0..5 {
            assert_eq!(self.claim("@eve", "T-2", "ws-3").unwrap_err().code, Code::RoutingDenied);
        }
        set("11:00");
        self.claim("@bot", "T-2", "ws-2").unwrap();
        set("12:00");
        let token = self.take_over("T-2", "bot is silent");
        set("12:30");
        self.release("@ada", "T-2", token);
        set("13:00");
        let to_eve = Command::Claim {
            workstation: Some("ws-3".parse().unwrap()),
            here: None,
            assignee: Some("@eve".parse().unwrap()),
            ttl: None,
            warrant: forced("only eve is here"),
            constraints: Vec::new(),
        };
        self.submit("@ada", Some("T-2"), None, to_eve).unwrap();
        set("13:10");
        self.complete("@ada", "T-2", None, forced("hotfix"));
        set("14:00");
        let token = self.claim("@eve", "T-3", "ws-3").unwrap();
        let block = Command::Block {
            on: "person:@ada".parse().unwrap(),
            lease: WhileBlocked::ReleaseLease,
            note: None,
            handoff: None,
        };
        self.submit("@eve", Some("T-3"), Some(token), block).unwrap();
        set("15:00");
    }
}

fn group<'a>(groups: &'a [Group], name: &str) -> &'a Group {
    groups.iter().find(|group| group.name.as_deref() == Some(name)).unwrap()
}

/// tasks, completed, live, grants, lost, forced, outside
fn figures(group: &Group) -> [i64; 7] {
    let Group { tasks, completed, live, grants, leases_lost, forced, outside_policy, .. } = group;
    [*tasks, *completed, *live, *grants, *leases_lost, *forced, *outside_policy]
}

#[test]
fn a_sprint_is_counted_by_worker_workstation_type_and_sprint() {
    let mut shop = Shop::with_five_tasks();
    shop.day();
    let all = shop.onus.report_sprint(None, None).unwrap();
    assert_eq!((all.tasks, all.states["complete"], all.states["blocked"], all.states["open"]), (5, 2, 1, 2));
    // The force ended what @eve had: she completed nothing.
    assert_eq!(figures(&all.total), [3, 1, 0, 5, 1, 1, 1]);
    assert_eq!(figures(group(&all.workers, "@bot")), [2, 1, 0, 2, 1, 0, 0]);
    assert_eq!(figures(group(&all.workers, "@ada")), [1, 0, 0, 1, 0, 0, 0]);
    assert_eq!(figures(group(&all.workers, "@eve")), [2, 0, 0, 2, 0, 1, 1]);
    assert_eq!(figures(group(&all.workstations, "ws-3")), [2, 0, 0, 2, 0, 1, 1]);
    assert_eq!(figures(group(&all.types, "backend")), [2, 1, 0, 4, 1, 1, 1]);
    assert_eq!(figures(group(&all.sprints, "s2")), [1, 0, 0, 1, 0, 0, 0]);

    let one = shop.onus.report_sprint(None, Some("s1")).unwrap();
    assert_eq!((one.tasks, one.states["complete"], one.total.tasks), (3, 2, 2));
    let today = one.flow.last().unwrap();
    assert_eq!((today.added, today.completed, today.leases_lost), (3, 2, 1));
    assert_eq!((today.scope, today.done, one.completed_last_week), (3, 2, 2));
    assert_eq!(shop.onus.report_sprint(None, Some("none")).unwrap().tasks, 0);
}

#[test]
fn an_incident_tells_who_where_by_which_rule_and_whether_that_was_within_policy() {
    let mut shop = Shop::with_five_tasks();
    shop.day();
    let within = shop.onus.report_incident(&"T-1".parse().unwrap(), None).unwrap();
    assert_eq!((within.compliance, within.forced, within.grants.len()), (Compliance::Within, false, 1));
    let grant = &within.grants[0];
    assert_eq!((grant.assignee.as_str(), grant.workstation.as_str()), ("@bot", "ws-2"));
    assert_eq!(grant.rule.as_deref(), Some("routing[0] backend -> @bot in ws-2"));
    assert_eq!(grant.map_hash.as_deref().map(str::len), Some(64));
    assert_eq!((grant.named_today, within.late_acts.len()), (Some(true), 1), "complete came after an hour");

    let view = shop.onus.report_incident(&"T-2".parse().unwrap(), None).unwrap();
    assert_eq!((view.compliance, view.forced), (Compliance::Outside, true));
    let told: Vec<String> = view
        .grants
        .iter()
        .map(|grant| {
            let by = grant.by.as_ref().map(ToString::to_string).unwrap_or_default();
            let end = grant.end_reason.as_deref().unwrap_or("-");
            format!("{} {} {by} {} {end}", grant.assignee, grant.workstation, grant.compliance.name())
        })
        .collect();
    assert_eq!(
        told,
        ["@bot ws-2  within taken_over", "@ada ws-1  within released", "@eve ws-3 @ada outside forced"]
    );
    assert_eq!(view.grants[2].named_today, Some(false));
    assert_eq!((view.refusals.len(), view.forced_acts.len()), (5, 2));
    let verbs: Vec<&str> = view.timeline.iter().map(|moment| moment.verb.as_str()).collect();
    assert_eq!(
        verbs.join(" "),
        "added refused refused refused refused refused claimed taken_over released claimed completed"
    );
    assert_eq!(view.timeline[10].said, "by force, hotfix");
    let unknown = shop.onus.report_incident(&"T-99".parse().unwrap(), None).unwrap_err();
    assert_eq!(unknown.code, Code::UnknownTask);
}

#[test]
fn an_audit_has_every_grant_force_and_refusal_of_its_time_and_nothing_else() {
    let mut shop = Shop::with_five_tasks();
    shop.day();
    let when = |since: &str, until: Option<&str>| When {
        since: Some(since.into()),
        until: until.map(str::to_owned),
    };
    let all = shop.onus.report_audit(None, &when("2026-11-02", None), &[]).unwrap();
    let counts: Vec<(&str, i64)> =
        all.counts.iter().filter(|(_, n)| **n > 0).map(|(kind, n)| (kind.as_str(), *n)).collect();
    assert_eq!(counts, [("forced", 1), ("grant", 4), ("outside_policy", 1), ("refusal", 5)]);
    assert_eq!(all.lines.len(), 11);
    let outside = all.lines.iter().find(|line| line.kind == AuditKind::OutsidePolicy).unwrap();
    assert_eq!(outside.assignee.as_ref().map(Handle::as_str), Some("@eve"));
    assert_eq!(outside.detail, "for @eve, by force, only eve is here");
    let entry = shop.onus.log(None, Some(outside.seq - 1), 1).unwrap().entries.remove(0);
    assert_eq!(entry.hash, outside.hash);

    let hour = when("2026-11-02T12:00", Some("2026-11-02T13:00"));
    let hour = shop.onus.report_audit(None, &hour, &[]).unwrap();
    assert_eq!(hour.lines.len(), 1, "the takeover at twelve, and not the force at one");
    let refusals = shop.onus.report_audit(None, &when("7h", None), &[AuditKind::Refusal]).unwrap();
    assert_eq!((refusals.lines.len(), refusals.counts["grant"]), (5, 4));
    assert_eq!(refusals.lines[0].code.as_deref(), Some("routing_denied"));

    let text = String::from_utf8(csv(&all).unwrap()).unwrap();
    assert_eq!(text.lines().count(), 12);
    assert!(text.starts_with("kind,seq,at,actor,verb,task,workstation,assignee,forced,rule,"), "{text}");
    let backwards = shop.onus.report_audit(None, &when("2026-11-03", Some("2026-11-02")), &[]);
    assert_eq!(backwards.unwrap_err().code, Code::InvalidInput);
    let nonsense = shop.onus.report_audit(None, &when("noon", None), &[]);
    assert_eq!(nonsense.unwrap_err().code, Code::InvalidInput);
}

#[test]
fn now_tells_what_was_done_what_is_stuck_and_what_needs_a_person() {
    let mut shop = Shop::with_five_tasks();
    shop.day();
    let proposed =
        Check { command: "make test".into(), state: CheckState::Proposed, kind: CheckKind::Acceptance };
    let token = shop.claim("@bot", "T-4", "ws-2").unwrap();
    shop.submit("@bot", Some("T-4"), Some(token.clone()), Command::AddCheck { check: proposed }).unwrap();
    shop.release("@bot", "T-4", token);
    let view = shop.onus.report_now(None, &When::default()).unwrap();
    let done: Vec<String> = view
        .completed
        .iter()
        .map(|one| format!("{} {} {} {}", one.task, one.by, one.forced, one.resolution.as_deref().unwrap()))
        .collect();
    assert_eq!(done, ["T-2 @ada true T-2 works", "T-1 @bot false T-1 works"]);
    let stuck: Vec<String> =
        view.stuck.iter().map(|one| format!("{} {}: {}", one.task, one.kind.name(), one.detail)).collect();
    assert_eq!(
        stuck,
        ["T-3 blocked: waits for @ada", "T-5 unroutable: no rule of the map routes tasks of the type poetry"]
    );
    let wants: Vec<String> =
        view.wants.iter().map(|one| format!("{} {} {}", one.kind.name(), one.about, one.detail)).collect();
    assert_eq!(wants, ["answer T-3 T-3", "approve_check T-4 make test"]);
    assert_eq!((view.leases_lost, view.flow.len(), view.counts["open"]), (1, 14, 2));
    let today = view.flow.last().unwrap();
    assert_eq!((today.added, today.completed, today.scope, today.done), (5, 2, 5, 2));
    assert_eq!(view.flow[12].scope, 0);

    // A holder that goes silent is stuck; one that is only busy is not.
    shop.claim("@bot", "T-4", "ws-2").unwrap();
    set("15:30");
    let view = shop.onus.report_now(None, &When { since: Some("1h".into()), until: None }).unwrap();
    assert_eq!(view.completed.len(), 0);
    assert_eq!(view.stuck[0].kind.name(), "lease_expired");
    assert_eq!(view.stuck[0].detail, "the lease of @bot in ws-2 expired 15 min ago");
}

#[test]
fn what_looks_wrong_is_found_and_nothing_else() {
    let mut shop = Shop::with_five_tasks();
    let quiet = shop.onus.report_anomalies(None, &When::default()).unwrap();
    assert_eq!(quiet.anomalies, [], "nothing has happened yet");
    shop.day();
    for hour in 15..18 {
        set(&format!("{hour}:10"));
        shop.claim("@bot", "T-4", "ws-2").unwrap();
        set(&format!("{hour}:30"));
        let token = shop.take_over("T-4", "silent again");
        set(&format!("{hour}:40"));
        shop.release("@ada", "T-4", token);
    }
    // Somebody sets the clock back by an hour.
    shop::moved(-3_600_000);
    set("17:00");
    shop.claim("@bot", "T-4", "ws-2").unwrap();
    set("20:00");
    let view = shop.onus.report_anomalies(None, &When::default()).unwrap();
    let found: Vec<String> = view
        .anomalies
        .iter()
        .map(|one| {
            let task = one.task.as_ref().map(ToString::to_string).unwrap_or_default();
            let worker = one.worker.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("{} {task} {worker} {}", one.kind.name(), one.count)
        })
        .collect();
    assert_eq!(
        found,
        [
            "silent_session T-2 @bot 1",
            "forced_completion T-2 @ada 1",
            "clock_jump T-4  1",
            "leases_lost  @bot 4",
            "late_acts  @bot 1",
            "repeated_refusals  @eve 5",
            "bouncing T-4  7",
            "silent_stall T-4 @bot 1",
            "unproven T-1 @bot 1",
        ]
    );
}

#[test]
fn work_that_the_changed_map_would_not_give_out_is_drift() {
    let mut shop = Shop::with_five_tasks();
    set("09:00");
    shop.claim("@bot", "T-1", "ws-2").unwrap();
    let map = MAP.replace("\"@bot\"", "\"@ghost\"");
    shop.put_up(&map);
    let view = shop.onus.report_anomalies(None, &When::default()).unwrap();
    assert_eq!(view.anomalies.len(), 1);
    assert_eq!(view.anomalies[0].detail, "the map in force does not send backend to @bot in ws-2");
}

#[test]
fn the_record_is_searched_page_by_page() {
    let mut shop = Shop::with_five_tasks();
    shop.day();
    let page = |shop: &mut Shop, ask: &SearchAsk| {
        let view = shop.onus.search_ledger(None, ask).unwrap();
        let verbs: Vec<String> = view.entries.iter().map(|said| said.verb.clone()).collect();
        (verbs.join(" "), view.next)
    };
    let ask = SearchAsk { limit: 3, ..SearchAsk::default() };
    let (first, next) = page(&mut shop, &ask);
    assert_eq!(first, "blocked claimed completed");
    let (second, _) = page(&mut shop, &SearchAsk { before: next, ..ask });
    assert_eq!(second, "claimed released taken_over");
    let of_eve = SearchAsk { actor: Some("@eve".parse().unwrap()), limit: 10, ..SearchAsk::default() };
    assert_eq!(page(&mut shop, &of_eve).0, "blocked claimed refused refused refused refused refused");
    let of_task = SearchAsk { task: Some("T-1".parse().unwrap()), limit: 10, ..SearchAsk::default() };
    assert_eq!(page(&mut shop, &of_task), ("completed claimed added".to_owned(), None));
    let when = When { since: Some("2026-11-02T12:15".into()), until: Some("2026-11-02T13:05".into()) };
    assert_eq!(page(&mut shop, &SearchAsk { when, ..of_eve }).0, "");
    let verb = |verb: &str| SearchAsk { verb: Some(verb.into()), limit: 9, ..SearchAsk::default() };
    assert_eq!(page(&mut shop, &verb("taken_over")).0, "taken_over");
    assert_eq!(shop.onus.search_ledger(None, &verb("stolen")).unwrap_err().code, Code::InvalidInput);
}

#[test]
fn a_stretch_of_the_record_is_verified_by_itself() {
    let mut shop = Shop::with_five_tasks();
    shop.day();
    let whole = shop.onus.verify_range(0, 1_000).unwrap();
    assert!(whole.ok && whole.to == whole.newest && whole.entries == whole.newest, "{whole:?}");
    // Pages join: what a page follows stands on the one before.
    let mut after = 0;
    while after < whole.newest {
        let page = shop.onus.verify_range(after, 7).unwrap();
        assert!(page.ok && page.entries <= 7, "{page:?}");
        after = page.to;
    }
    let tamper = |sql: &str| {
        let file = rusqlite::Connection::open(&shop.onus.path).unwrap();
        file.pragma_update(None, "foreign_keys", false).unwrap();
        file.execute(sql, []).unwrap();
    };
    tamper("UPDATE ledger SET actor = '@eve' WHERE verb = 'completed' AND task = 'T-1'");
    tamper("DELETE FROM ledger WHERE verb = 'released'");
    let kinds: Vec<String> = shop
        .onus
        .verify_range(0, 1_000)
        .unwrap()
        .findings
        .iter()
        .map(|found| format!("{} {:?}", found.task.as_deref().unwrap_or("-"), found.kind))
        .collect();
    assert_eq!(kinds, ["T-1 Edited", "T-2 Deleted", "T-2 Unlinked"]);
}
