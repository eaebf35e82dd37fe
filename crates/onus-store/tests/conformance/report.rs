//! What reports ask: entries by verb and time, and the rows that want somebody.

use super::harness::{Harness, add, ask, claimed, commit, furnished, id, spec, write};
use onus_core::event::{Blocked, Event, Released, TakenOver};
use onus_core::id::TaskId;
use onus_core::task::{Check, CheckKind, CheckState, Spec};
use onus_core::time::Timestamp;
use onus_store::read::report::{self, Search, Span};

const EVER: Span = Span { from: Timestamp(i64::MIN), to: Timestamp(i64::MAX) };

fn search(task: Option<&TaskId>) -> Search<'_> {
    Search { before: i64::MAX, down_to: 0, task, actor: None, verb: None, span: EVER }
}

pub(crate) fn entries_are_found_by_verb_and_time<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    commit(&mut store, |tx| {
        add(tx, spec("one"), &[])?;
        let task = add(tx, spec("two"), &[])?;
        let id = task.id.clone();
        let task = write(tx, Some(task), &id, "@bot", Some("ws-1"), claimed(1))?;
        let released = Released { note: None, reason: None, forced: false, late_by_ms: None };
        write(tx, Some(task), &id, "@bot", Some("ws-1"), released).map(drop)
    })
    .unwrap();
    let added = ask(&mut store, |tx| report::happened(tx, "added", EVER, 10));
    let tasks: Vec<_> = added.iter().map(|entry| entry.task.as_deref().unwrap()).collect();
    assert_eq!(tasks, ["T-2", "T-1"], "the newest first");
    let at = added[0].at;
    let mut counted = 0;
    ask(&mut store, |tx| report::times(tx, "added", EVER, &mut |_| counted += 1));
    assert_eq!(counted, 2);
    // A span has its first moment and not its last one.
    let from = Span { from: at, to: Timestamp(at.0 + 1) };
    assert!(!ask(&mut store, |tx| report::happened(tx, "added", from, 10)).is_empty());
    let before = Span { from: Timestamp(0), to: Timestamp(added[1].at.0) };
    assert!(ask(&mut store, |tx| report::happened(tx, "added", before, 10)).is_empty());

    let two = id("T-2");
    let verbs = |found: Vec<onus_core::ledger::Entry>| {
        found.into_iter().map(|entry| entry.verb).collect::<Vec<_>>().join(" ")
    };
    let found = ask(&mut store, |tx| report::search(tx, &search(Some(&two)), 10));
    assert_eq!(verbs(found.clone()), "released claimed added");
    let older = Search { before: found[1].seq, ..search(Some(&two)) };
    assert_eq!(verbs(ask(&mut store, |tx| report::search(tx, &older, 10))), "added");
    let bot = id("@bot");
    let by_bot = Search { actor: Some(&bot), ..search(None) };
    assert_eq!(verbs(ask(&mut store, |tx| report::search(tx, &by_bot, 1))), "released");
    let claims = Search { verb: Some("claimed"), ..search(None) };
    assert_eq!(verbs(ask(&mut store, |tx| report::search(tx, &claims, 10))), "claimed");
    let mut every = Vec::new();
    ask(&mut store, |tx| {
        report::between(tx, 0, EVER, &mut |entry| {
            every.push(entry.seq);
            Ok(())
        })
    });
    assert!(every.is_sorted() && every.len() >= 4, "{every:?}");
}

pub(crate) fn assignments_are_told_with_what_their_tasks_are_about<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    commit(&mut store, |tx| {
        let about = Spec { sprint: Some("s1".into()), task_type: Some(id("infra")), ..spec("one") };
        let task = add(tx, about, &[])?;
        add(tx, spec("two"), &[])?;
        let name = task.id.clone();
        let task = write(tx, Some(task), &name, "@bot", Some("ws-1"), claimed(1))?;
        let Event::Claimed(again) = claimed(2).into() else { unreachable!() };
        let taken = TakenOver { grant: again.grant, reason: "gone".into(), from: id("@bot"), dead: None };
        write(tx, Some(task), &name, "@ada", Some("ws-1"), taken).map(drop)
    })
    .unwrap();
    let mut told = Vec::new();
    ask(&mut store, |tx| {
        report::taken(tx, Some("s1"), &mut |row| {
            let end = row.end_reason.unwrap_or_default();
            told.push(format!("{} {} {} {end}", row.task, row.assignee, row.task_type.unwrap_or_default()));
            Ok(())
        })
    });
    told.sort();
    assert_eq!(told, ["T-1 @ada infra ", "T-1 @bot infra taken_over"]);
    let mut count = |sprint: Option<&str>| {
        let mut tasks = 0;
        ask(&mut store, |tx| {
            report::planned(tx, sprint, &mut |_| {
                tasks += 1;
                Ok(())
            })
        });
        tasks
    };
    assert_eq!((count(None), count(Some("s1")), count(Some("s9"))), (2, 1, 0));
}

pub(crate) fn what_waits_for_somebody_is_found<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    commit(&mut store, |tx| {
        add(tx, spec("waits for nobody"), &[])?;
        let proposed =
            Check { command: "make".into(), state: CheckState::Proposed, kind: CheckKind::Acceptance };
        add(tx, Spec { checks: vec![proposed], ..spec("a check") }, &[])?;
        let task = add(tx, spec("blocked"), &[])?;
        let name = task.id.clone();
        let task = write(tx, Some(task), &name, "@bot", Some("ws-1"), claimed(1))?;
        let on = "person:@ada".parse().unwrap();
        let blocked = Blocked { on, kept: None, late_by_ms: None, handoff: None, limits: Vec::new() };
        write(tx, Some(task), &name, "@bot", Some("ws-1"), blocked).map(drop)
    })
    .unwrap();
    let found = ask(&mut store, |tx| report::wanting(tx, 10));
    let told: Vec<String> = found.iter().map(|one| format!("{} {:?}", one.task, one.blocker)).collect();
    assert_eq!(told, ["T-2 None", "T-3 Some(\"person:@ada\")"]);
    let brief = ask(&mut store, |tx| report::brief(tx, &id("T-2"))).unwrap();
    assert_eq!((brief.title.as_str(), brief.checks.len()), ("a check", 1));
}
