//! What is written is what is read; the database itself refuses what must never be.

use super::harness::{Harness, add, ask, claimed, commit, furnished, id, now, spec, worker, write};
use onus_core::event::{Blocked, Completed, Dropped, Edited, Event, Released, Renewal, Unblocked};
use onus_core::hash::Digest;
use onus_core::id::TaskId;
use onus_core::task::{Blocker, Check, CheckState, Criterion, Priority, Risk, Spec, StateName, Task, Tick};
use onus_core::text::Text;
use onus_core::worker::Kind;
use onus_store::error::StoreError;
use onus_store::port::{Store, Tx};
use onus_store::read::{ledger, show};
use onus_store::statement::Statement;
use onus_store::{apply, load, registry, sql};

fn read_back<S: Store>(store: &mut S, id: &TaskId) -> Task {
    ask(store, |tx| load::task(tx, id)).unwrap().task
}

fn full_spec() -> Spec {
    Spec {
        title: "Ünïcödé ✓ 日本 'quoted' \"twice\" %_\\".into(),
        body: Some(Text::new("line\n\ttab \u{1F600}".into())),
        task_type: Some(id("backend_feature")),
        kind: "defect".into(),
        priority: Priority::P0,
        risk: Risk::High,
        role: Some(id("A-backend")),
        lane: Some(3),
        sprint: Some("2026-46".into()),
        tags: vec!["a".into(), "b,c".into()],
        scope: vec!["src/**".into()],
        parent: None,
        merge_order: Some(i64::MAX),
        origin: Some(id("mail:<a@b>")),
        checks: vec![Check {
            command: "make test".into(),
            state: CheckState::Proposed,
            kind: Default::default(),
        }],
        criteria: vec![
            Criterion::open("the limit is told"),
            Criterion { text: "two\nlines".into(), ticked: Some(Tick { by: id("@ada"), at: now().wall }) },
        ],
        extra: Some(Text::new(r#"{"design":"ü","n":1.5}"#.into())),
    }
}

pub(crate) fn every_value_reads_back<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    let parent = commit(&mut store, |tx| add(tx, spec("parent"), &[])).unwrap();
    let spec = Spec { parent: Some(parent.id), ..full_spec() };
    let written = commit(&mut store, |tx| add(tx, spec, &["T-1"])).unwrap();
    assert_eq!(read_back(&mut harness.connect(), &written.id), written);
    let body = read_back(&mut store, &written.id).spec.body;
    assert_eq!(body.as_ref().and_then(|body| body.content()), Some("line\n\ttab \u{1F600}"));
    let someone = worker("@grace", Kind::Human);
    commit(&mut store, |tx| registry::insert_worker(tx, &someone)).unwrap();
    assert_eq!(ask(&mut store, |tx| load::worker(tx, &someone.handle)), Some(someone));
}

pub(crate) fn an_edit_reaches_every_column<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    let parent = commit(&mut store, |tx| add(tx, spec("parent"), &[])).unwrap();
    let before = Spec { body: Some(Text::new("earlier words".into())), ..spec("plain") };
    let plain = commit(&mut store, |tx| add(tx, before.clone(), &[])).unwrap();
    let after = Spec { parent: Some(parent.id), checks: Vec::new(), ..full_spec() };
    let edited =
        Edited { before: Box::new(before), after: Box::new(after.clone()), renewal: None, outside: None };
    let (id, seen) = (plain.id.clone(), plain.clone());
    let written = commit(&mut store, |tx| write(tx, Some(plain), &id, "@bot", None, edited.clone())).unwrap();
    // What a reviewer ticks is not edited.
    assert_eq!(written.spec, Spec { criteria: Vec::new(), ..after });
    let stored = read_back(&mut harness.connect(), &id);
    assert_eq!(stored, written);
    assert_eq!(stored.spec.body.as_ref().and_then(|body| body.content()), Some("line\n\ttab \u{1F600}"));
    let kept = ask(&mut store, |tx| load::earlier_body(tx, &id, &Digest::of(b"earlier words")));
    assert_eq!(kept.as_deref(), Some("earlier words"));
    // Whoever edits what is no longer there changes nothing.
    let late = commit(&mut store, |tx| write(tx, Some(seen), &id, "@bot", None, edited));
    assert!(late.is_err());
    assert_eq!(read_back(&mut store, &id), written);
}

pub(crate) fn every_state_reads_back<H: Harness>(harness: &H) {
    let renewal = || {
        let process = Some("h.b.s.7@100.8@101".parse().unwrap());
        Some(Renewal { tick: now().tick, ttl_ms: Some(5), late_by_ms: Some(7), process, alone: false })
    };
    let resolution = || Text::new("done".into());
    let blocked = |kept| Blocked {
        on: Blocker::External("a \"part\"".into()),
        kept,
        late_by_ms: None,
        handoff: None,
        limits: Vec::new(),
    };
    let completed = |forced| Completed {
        resolution: resolution(),
        reason: None,
        forced,
        late_by_ms: Some(1),
        commit: None,
        root_cause: None,
        landed: None,
    };
    let stories: Vec<Vec<Event>> = vec![
        vec![],
        vec![claimed(1).into()],
        vec![claimed(2).into(), blocked(renewal()).into()],
        vec![claimed(3).into(), blocked(None).into()],
        vec![claimed(4).into(), blocked(renewal()).into(), Unblocked { renewal: renewal() }.into()],
        vec![claimed(5).into(), completed(false).into()],
        vec![completed(true).into()],
        vec![claimed(6).into(), Dropped { reason: "no".into() }.into()],
        vec![
            claimed(7).into(),
            Released { note: Some(resolution()), reason: None, forced: false, late_by_ms: None }.into(),
        ],
    ];
    let mut store = furnished(harness);
    for (n, events) in stories.into_iter().enumerate() {
        let place = format!("ws-story-{n}");
        let written = commit(&mut store, |tx| {
            registry::put_workstation(tx, registry::Put::New, &super::harness::workstation(&place))?;
            let mut task = add(tx, spec("story"), &[])?;
            for event in events {
                let id = task.id.clone();
                task = write(tx, Some(task), &id, "@bot", Some(&place), event)?;
            }
            Ok(task)
        })
        .unwrap();
        assert_eq!(read_back(&mut store, &written.id), written, "story {n}");
        let entries = ask(&mut store, |tx| ledger::log(tx, &ledger::LedgerPart::Task(&written.id, 0), 100));
        assert_eq!(entries.len() as i64, written.version);
        assert_eq!(
            ask(&mut store, |tx| load::task(tx, &written.id)).unwrap().head,
            entries.last().unwrap().hash
        );
        let sessions = ask(&mut store, |tx| show::sessions(tx, &written.id));
        let running = sessions.iter().filter(|session| session.ended_at.is_none()).count();
        assert_eq!(running, usize::from(written.state.name() == StateName::InProgress), "story {n}");
    }
}

pub(crate) fn the_guard_of_a_row_holds<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    let old = commit(&mut store, |tx| add(tx, spec("one"), &[])).unwrap();
    let id = old.id.clone();
    commit(&mut store, |tx| write(tx, Some(old.clone()), &id, "@bot", Some("ws-1"), claimed(1))).unwrap();
    // A decision made on the row as it was before must not be written.
    let stale = commit(&mut store, |tx| write(tx, Some(old), &id, "@ada", Some("ws-2"), claimed(2)));
    assert!(matches!(stale, Err(StoreError::Guard(_))), "{stale:?}");
    assert_eq!(read_back(&mut store, &id).assignment().unwrap().assignee.as_str(), "@bot");
}

pub(crate) fn a_chain_cannot_fork<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    let task = commit(&mut store, |tx| add(tx, spec("one"), &[])).unwrap();
    let forked = commit(&mut store, |tx| {
        let mut entry = ledger::entry(tx, task.born)?.unwrap();
        entry.seq += 1;
        apply::entry(tx, &entry)
    });
    assert!(matches!(forked, Err(StoreError::Constraint(_))), "{forked:?}");
}

pub(crate) fn a_workstation_holds_one_assignment<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    let claim = |tx: &mut dyn Tx, secret| {
        let task = add(tx, spec("x"), &[])?;
        let id = task.id.clone();
        write(tx, Some(task), &id, "@bot", Some("ws-1"), claimed(secret))
    };
    commit(&mut store, |tx| claim(tx, 1)).unwrap();
    let second = commit(&mut store, |tx| claim(tx, 2));
    assert!(matches!(second, Err(StoreError::Constraint(_))), "{second:?}");
}

pub(crate) fn an_origin_is_one_task<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    let first = commit(&mut store, |tx| add(tx, full_spec(), &[])).unwrap();
    let found = ask(&mut store, |tx| load::task_by_origin(tx, &id("mail:<a@b>")));
    assert_eq!(found, Some(first.id));
    let second = commit(&mut store, |tx| add(tx, full_spec(), &[]));
    assert!(matches!(second, Err(StoreError::Constraint(_))), "{second:?}");
}

pub(crate) fn a_request_is_carried_out_once<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    let (request, print) = (id("abc"), Digest::of(b"command"));
    commit(&mut store, |tx| apply::request(tx, &request, &print, 42)).unwrap();
    let found = ask(&mut store, |tx| load::replay(tx, &request)).unwrap();
    assert_eq!((found.seq, found.fingerprint.as_slice()), (42, apply::fingerprint_key(&print)));
    let again = commit(&mut store, |tx| apply::request(tx, &request, &print, 43));
    assert!(matches!(again, Err(StoreError::Constraint(_))), "{again:?}");
    assert_eq!(ask(&mut store, |tx| load::replay(tx, &id("abd"))), None);
    commit(&mut store, |tx| apply::answered(tx, &id("abd"), &print, 44, "{\"ok\":1}")).unwrap();
    let kept = |store: &mut H::Store, request| ask(store, |tx| load::answer(tx, &id(request)));
    assert_eq!(ask(&mut store, |tx| load::replay(tx, &id("abd"))).map(|found| found.seq), Some(44));
    assert_eq!(kept(&mut store, "abd").as_deref(), Some("{\"ok\":1}"));
    assert_eq!((kept(&mut store, "abc"), kept(&mut store, "abe")), (None, None));
}

pub(crate) fn what_refers_to_nothing_is_refused<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    let dangling = commit(&mut store, |tx| add(tx, spec("one"), &["T-99"]));
    assert!(matches!(dangling, Err(StoreError::Constraint(_))), "{dangling:?}");
    let nobody = commit(&mut store, |tx| {
        let task = add(tx, spec("two"), &[])?;
        let id = task.id.clone();
        write(tx, Some(task), &id, "@nobody", Some("ws-1"), claimed(1))
    });
    assert!(matches!(nobody, Err(StoreError::Constraint(_))), "{nobody:?}");
}

sql! {
    BREAK_STATE = "UPDATE task SET state = 'finished' WHERE workspace = :workspace";
    BREAK_LEASE(lease_id) = "UPDATE task SET lease_id = :lease_id WHERE workspace = :workspace";
    BREAK_PRIORITY = "UPDATE task SET priority = 9 WHERE workspace = :workspace";
    BREAK_CLOSING = "UPDATE task SET state = 'complete' WHERE workspace = :workspace";
}

pub(crate) fn nonsense_is_corruption_not_a_default<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    let task = commit(&mut store, |tx| add(tx, spec("one"), &[])).unwrap();
    let broken: [&dyn Statement; 4] = [
        &BREAK_STATE {},
        &BREAK_LEASE { lease_id: [7_u8; 16].as_slice() },
        &BREAK_PRIORITY {},
        &BREAK_CLOSING {},
    ];
    for statement in broken {
        let found: Result<(), StoreError> = store.write(|tx| {
            tx.run(statement)?;
            load::task(tx, &task.id).map(|_| onus_store::port::Outcome::Rollback(()))
        });
        assert!(matches!(found, Err(StoreError::Corrupt(_))), "{}: {found:?}", statement.sql().name);
    }
}
