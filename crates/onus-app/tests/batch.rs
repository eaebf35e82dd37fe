//! Many commands in one commit: each is answered as if it had come alone, and one that fails undoes only itself.

use super::desk::{Desk, id, request};
use onus_app::last_commit::Memory;
use onus_app::submit::{Order, Receipt, Target};
use onus_app::token::{Shown, parse};
use onus_core::code::Code;
use onus_core::command::{Command, Envelope, Warrant};
use onus_core::event::WorkstationAdded;
use onus_core::lease::Token;
use onus_core::process::{Birth, Process};
use onus_core::refusal::Refusal;
use onus_core::registry::token::TokenOrder as Tokens;
use onus_core::task::Spec;
use onus_core::text::Text;
use onus_host::process_liveness;
use onus_store::read::queue::Filter;
use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;

fn call(actor: &str, task: Option<&str>, command: Command) -> (Envelope, Target) {
    let actor = Some(actor.parse().unwrap());
    let envelope = Envelope {
        request: request(),
        actor,
        token: None,
        task: task.map(id),
        project: None,
        base: None,
        command,
    };
    (envelope, Target::Named)
}

fn add(title: &str) -> (Envelope, Target) {
    let spec = Box::new(Spec { kind: "feature".into(), ..Spec::titled(title) });
    call("@ada", None, Command::Add { spec, depends_on: BTreeSet::new(), archived: None, arrival: None })
}

fn claim() -> Command {
    let workstation = Some("ws-1".parse().unwrap());
    Command::Claim {
        workstation,
        here: None,
        assignee: None,
        ttl: None,
        warrant: Warrant::Ordinary,
        constraints: Vec::new(),
    }
}

fn note(task: &str) -> (Envelope, Target) {
    call("@ada", Some(task), Command::Note { text: Text::new("word".into()) })
}

/// One word for each answer: the task, or the code.
fn told(answers: &[Result<Receipt, Refusal>]) -> Vec<String> {
    let word = |answer: &Result<Receipt, Refusal>| match answer {
        Ok(receipt) => format!("{} v{}", receipt.task.id, receipt.task.version),
        Err(refusal) => refusal.code.to_string(),
    };
    answers.iter().map(word).collect()
}

#[test]
fn each_is_answered_as_if_it_had_come_alone() {
    let mut desk = Desk::new();
    let calls = [
        add("one"),
        add("two"),
        call("@nobody", Some("T-1"), claim()),
        call("@bot", Some("T-1"), claim()),
        call("@bot", Some("T-2"), claim()),
        note("T-9"),
        note("T-2"),
        add(""),
    ];
    let answers = desk.onus.submit_many(&calls);
    let expected = [
        "T-1 v1",
        "T-2 v1",
        "unknown_worker",
        "T-1 v2",
        "workstation_busy",
        "unknown_task",
        "T-2 v3",
        "invalid_input",
    ];
    assert_eq!(told(&answers), expected);
    for ((envelope, _), answer) in calls.iter().zip(&answers) {
        if let Err(refusal) = answer {
            assert_eq!(refusal.request_id, Some(envelope.request.to_string()));
        }
    }
    desk.assert_sound();
    // Each is on record under its own name: a repeat of all of them, in another order, changes nothing.
    let mut again = calls.to_vec();
    again.reverse();
    let mut repeated = told(&desk.onus.submit_many(&again));
    repeated.reverse();
    assert_eq!(repeated, expected);
    assert_eq!(desk.tasks().len(), 2);
    desk.assert_sound();
}

#[test]
fn the_next_task_is_another_one_for_each() {
    let mut desk = Desk::new();
    desk.onus.submit_many(&[add("one"), add("two")]);
    let next = |actor: &str| (call(actor, None, claim()).0, Target::Next(Filter::default()));
    let answers = desk.onus.submit_many(&[next("@bot"), next("@bot")]);
    assert_eq!(told(&answers), ["T-1 v2", "workstation_busy"], "the second sees what the first did");
    desk.assert_sound();
}

/// A desk with a holder of `src/**` and so many ready tasks inside that scope, each with a scope of its own.
fn taken(tasks: usize) -> Desk {
    let mut desk = Desk::new();
    for name in ["ws-2", "ws-3"] {
        let wanted = WorkstationAdded::logical(name.parse().unwrap());
        desk.onus.add_workstation(Some(&"@ada".parse().unwrap()), &wanted).unwrap();
    }
    let scoped = |scope: String| {
        let spec = Spec { kind: "feature".into(), scope: vec![scope], ..Spec::titled("a part") };
        call(
            "@ada",
            None,
            Command::Add { spec: spec.into(), depends_on: BTreeSet::new(), archived: None, arrival: None },
        )
    };
    desk.onus.submit_many(&[scoped("src/**".into()), call("@bot", Some("T-1"), claim())]);
    let calls: Vec<_> = (0..tasks).map(|n| scoped(format!("src/{n}/**"))).collect();
    desk.onus.submit_many(&calls);
    desk
}

fn next_in(workstation: &str) -> (Envelope, Target) {
    let claim = Command::Claim {
        workstation: Some(workstation.parse().unwrap()),
        here: None,
        assignee: None,
        ttl: None,
        warrant: Warrant::Ordinary,
        constraints: Vec::new(),
    };
    (call("@bot", None, claim).0, Target::Next(Filter::default()))
}

fn entries(desk: &Desk) -> i64 {
    let db = rusqlite::Connection::open(desk.path()).unwrap();
    db.query_row("SELECT count(*) FROM ledger", [], |row| row.get(0)).unwrap()
}

#[test]
fn the_next_task_is_found_behind_any_number_that_are_taken() {
    let mut desk = taken(1_200);
    desk.onus.submit_many(&[add("free")]);
    let before = entries(&desk);
    let claimed = desk.onus.submit_many(&[next_in("ws-2")]);
    assert_eq!(told(&claimed), ["T-1202 v2"]);
    assert_eq!(entries(&desk), before + 1, "nothing is written about the tasks that were passed over");
    desk.assert_sound();
}

#[test]
fn a_poll_that_finds_nothing_writes_nothing() {
    let mut desk = taken(40);
    let before = entries(&desk);
    for _ in 0..3 {
        let answers = desk.onus.submit_many(&[next_in("ws-2")]);
        assert_eq!(told(&answers), ["nothing_ready"]);
        let refusal = answers[0].as_ref().unwrap_err();
        assert_eq!(refusal.detail, "of 40 ready tasks none can be claimed here now");
        assert_eq!(refusal.findings.len(), 5, "the first few are told");
        assert_eq!(refusal.findings[0].code, Code::ScopeOverlap);
        assert_eq!(refusal.findings[0].task.as_deref(), Some("T-2"));
    }
    let together = desk.onus.submit_many(&[next_in("ws-2"), add("free"), next_in("ws-2"), next_in("ws-3")]);
    assert_eq!(told(&together), ["nothing_ready", "T-42 v1", "T-42 v2", "nothing_ready"]);
    assert_eq!(entries(&desk), before + 2);
    desk.assert_sound();
}

#[test]
fn a_version_is_compared_within_the_transaction() {
    let mut desk = Desk::new();
    desk.onus.submit_many(&[add("one"), add("two")]);
    let at = |version: i64| (note("T-1").0, Target::At(version));
    let answers = desk.onus.submit_many(&[at(1), at(1), at(2)]);
    assert_eq!(told(&answers), ["T-1 v2", "precondition_failed", "T-1 v3"]);
    assert_eq!(answers[1].as_ref().unwrap_err().code, Code::PreconditionFailed);
    let alone = desk.onus.submit(&note("T-1").0, &Target::At(1));
    assert_eq!(alone.unwrap_err().code, Code::PreconditionFailed);
    desk.assert_sound();
}

/// Commands of callers who show tokens: which of them are good is asked where the commands are carried out.
#[test]
fn a_token_is_judged_in_the_transaction_of_its_commands() {
    let mut desk = Desk::new();
    desk.onus.submit_many(&[add("one"), add("two")]);
    let issue = |desk: &mut Desk, whom: &str| {
        let wanted = Tokens { worker: Some(whom.parse().unwrap()), ..Tokens::default() };
        let issued = desk.onus.issue_token(Some(&"@ada".parse().unwrap()), &wanted).unwrap();
        let text = parse(&issued.secret).unwrap();
        let principal = desk.onus.recognise(&text).unwrap();
        Shown { text, principal, sender: None }
    };
    let (bot, ada) = (issue(&mut desk, "@bot"), issue(&mut desk, "@ada"));
    let (claim, notes) = ([call("@bot", Some("T-1"), claim())], [note("T-2"), note("T-2")]);
    let together = [Order { calls: &claim, shown: Some(&bot) }, Order { calls: &notes, shown: Some(&ada) }];
    let db = rusqlite::Connection::open(desk.path()).unwrap();
    let change = |sql: &str| assert_eq!(db.execute(sql, []).unwrap(), 1, "{sql}");
    for (spoil, mend) in [
        ("revoked_at = 1", "revoked_at = NULL"),
        ("expires_at = 1", "expires_at = NULL"),
        ("label = 'another'", "label = NULL"),
    ] {
        change(&format!("UPDATE token SET {spoil} WHERE worker = '@ada'"));
        let one = [note("T-1")];
        let alone = desk
            .onus
            .submit_orders(|| vec![Order { calls: &one, shown: Some(&ada) }], &mut Memory::default());
        assert_eq!(told(&alone), ["unauthenticated"], "{spoil}");
        let notes = [note("T-2"), note("T-2")];
        let answers = desk
            .onus
            .submit_orders(|| vec![Order { calls: &notes, shown: Some(&ada) }], &mut Memory::default());
        assert_eq!(told(&answers), ["unauthenticated", "unauthenticated"], "{spoil}");
        assert_eq!(answers[1].as_ref().unwrap_err().request_id, Some(notes[1].0.request.to_string()));
        change(&format!("UPDATE token SET {mend} WHERE worker = '@ada'"));
    }
    change("UPDATE token SET revoked_at = 1 WHERE worker = '@ada'");
    assert_eq!(
        told(&desk.onus.submit_orders(|| together.to_vec(), &mut Memory::default())),
        ["T-1 v2", "unauthenticated", "unauthenticated"]
    );
    change("UPDATE token SET revoked_at = NULL WHERE worker = '@ada'");
    assert_eq!(
        told(&desk.onus.submit_orders(|| together.to_vec(), &mut Memory::default())),
        ["T-1 v2", "T-2 v2", "T-2 v3"]
    );
    // The use is noted with the commands, and what was refused was none.
    let noted = "SELECT count(*) FROM token WHERE used_at IS NOT NULL";
    assert_eq!(db.query_row(noted, [], |row| row.get::<_, i64>(0)).unwrap(), 2);
    desk.assert_sound();
}

/// What a process sent before it was killed may be carried out afterwards: it is still proven dead. Whoever else shows the
/// lease goes on without it.
#[test]
fn the_last_words_of_a_dead_process_are_no_sign_of_life() {
    let mut desk = Desk::new();
    desk.onus.submit_many(&[add("one")]);
    let wanted = Tokens { worker: Some("@bot".parse().unwrap()), ..Tokens::default() };
    let issued = desk.onus.issue_token(Some(&"@ada".parse().unwrap()), &wanted).unwrap();
    let text = parse(&issued.secret).unwrap();
    let principal = desk.onus.recognise(&text).unwrap();
    let token = told_token(&desk.onus.submit_many(&[call("@bot", Some("T-1"), claim())]));
    let mut child = std::process::Command::new("true").process_group(0).spawn().unwrap();
    let here = process_liveness::sender().unwrap();
    let birth = Birth { pid: child.id() as i32, tick: 1 };
    child.wait().unwrap();
    let dead = Process { wrapper: birth, group: birth, ..here.clone() };
    let mut sent = |sender: Option<Process>, command: Command| {
        let (envelope, target) = call("@bot", Some("T-1"), command);
        let calls = [(Envelope { token: Some(token.clone()), ..envelope }, target)];
        let shown = Shown { text: text.clone(), principal: principal.clone(), sender };
        let order = || vec![Order { calls: &calls, shown: Some(&shown) }];
        desk.onus.submit_orders(order, &mut Memory::default()).remove(0).unwrap();
        desk.task("T-1").assignment().unwrap().lease.process.clone()
    };
    let renew = || Command::Renew { ttl: None, process: Some(dead.clone()) };
    let note = || Command::Note { text: Text::new("word".into()) };
    assert_eq!(sent(None, renew()), Some(dead.clone()));
    assert_eq!(sent(None, renew()), Some(dead.clone()), "its own renewal");
    let member = |tick: u64| Process {
        wrapper: Birth { pid: 7, tick: 9 },
        group: Birth { tick, ..birth },
        ..here.clone()
    };
    for tick in [1, 0] {
        assert_eq!(sent(Some(member(tick)), note()), Some(dead.clone()), "the leader's birth: {tick}");
    }
    let elsewhere = Process { host: "other".into(), ..member(1) };
    for sender in [Some(here.clone()), Some(elsewhere), Some(member(2)), None] {
        assert_eq!(sent(None, renew()), Some(dead.clone()));
        assert_eq!(sent(sender.clone(), note()), None, "{sender:?}");
    }
    desk.assert_sound();
}

fn told_token(answers: &[Result<Receipt, Refusal>]) -> Token {
    answers[0].as_ref().unwrap().token.clone().unwrap()
}

/// What was decided may still fail, where the disk or the tables do not take it.
#[test]
fn one_that_fails_half_way_undoes_only_itself() {
    let mut desk = Desk::new();
    desk.onus.submit_many(&[add("one"), add("two")]);
    let trap = "CREATE TRIGGER trap BEFORE INSERT ON note WHEN NEW.task = 'T-2' \
        BEGIN SELECT RAISE(ABORT, 'on purpose'); END";
    rusqlite::Connection::open(desk.path()).unwrap().execute_batch(trap).unwrap();
    let answers = desk.onus.submit_many(&[note("T-1"), note("T-2"), note("T-1"), add("three")]);
    assert_eq!(told(&answers), ["T-1 v2", "store_unavailable", "T-1 v3", "T-3 v1"]);
    rusqlite::Connection::open(desk.path()).unwrap().execute_batch("DROP TRIGGER trap").unwrap();
    desk.assert_sound();
}
