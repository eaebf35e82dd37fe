//! Sessions as they count: found by period however long they are, corrected, with what they used.

use super::harness::{Harness, add, ask, claimed, commit, furnished, id, spec, write};
use onus_core::code::Code;
use onus_core::command::{Command, Envelope};
use onus_core::event::{
    Blocked, Edited, LimitsLifted, Released, SessionCorrected, SessionUsed, TimesheetApproved,
};
use onus_core::hash::Digest;
use onus_core::id::{Seq, TaskId};
use onus_core::identity_map::Policy;
use onus_core::limits::Used;
use onus_core::refusal::Finding;
use onus_core::session::{Counts, Recorded, Usage};
use onus_core::task::{Blocker, Spec};
use onus_core::time::Timestamp;
use onus_store::load::AtWork;
use onus_store::load::limits::{self, Day};
use onus_store::port::{Store, Tx};
use onus_store::read::effort::{self, Period, Which};
use onus_store::{apply, load, sql};

const HOUR: i64 = 3_600_000;

sql! {
    PUT(id, worker, started_at, ended_at) = "INSERT INTO session (workspace, id, task, epoch, worker, workstation, started_at, ended_at, end_reason) \
        VALUES (:workspace, :id, 'T-1', 1, :worker, 'ws-1', :started_at, :ended_at, 'released')";
    SEEN(at) = "UPDATE assignment SET renewed_at = :at WHERE workspace = :workspace";
}

/// Hours from some beginning.
fn hour(n: i64) -> Timestamp {
    Timestamp((n + 1_000) * HOUR)
}

/// One task whose assignment all sessions belong to, and sessions from hour to hour.
fn with_sessions<H: Harness>(harness: &H, sessions: &[(Seq, &str, i64, Option<i64>)]) -> H::Store {
    let mut store = furnished(harness);
    commit(&mut store, |tx| {
        let task = add(tx, spec("one"), &[])?;
        let task_id = task.id.clone();
        let task = write(tx, Some(task), &task_id, "@bot", Some("ws-1"), claimed(1))?;
        let released = Released { note: None, reason: None, forced: false, late_by_ms: None };
        write(tx, Some(task), &task_id, "@bot", Some("ws-1"), released)?;
        for (number, worker, from, to) in sessions {
            tx.run_one(&PUT { id: *number, worker, started_at: hour(*from), ended_at: to.map(hour) })?;
        }
        Ok(())
    })
    .unwrap();
    store
}

fn found<S: Store>(store: &mut S, from: i64, to: i64, worker: Option<&str>, as_of: Seq) -> Vec<String> {
    let worker = worker.map(id);
    let period = Period { from: hour(from), to: hour(to), as_of, worker: worker.as_ref() };
    let mut lines = Vec::new();
    ask(store, |tx| {
        let corrections = effort::corrections(tx, as_of)?;
        effort::sessions(tx, &period, &corrections, &mut |session| {
            let at = |moment: Timestamp| moment.0 / HOUR - 1_000;
            let mark = if session.is_running { "+" } else { "" };
            lines.push(format!("{} {}..{}{mark}", session.id, at(session.from), at(session.to)));
            Ok(())
        })
    });
    lines.sort();
    lines
}

pub(crate) fn a_period_has_every_session_that_touches_it<H: Harness>(harness: &H) {
    let mut store = with_sessions(
        harness,
        &[
            (101, "@bot", 0, Some(1)),
            (102, "@bot", 99, Some(101)), // over the beginning
            (103, "@ada", 110, Some(112)),
            (104, "@bot", 119, Some(121)), // over the end
            (105, "@bot", 130, Some(131)),
            (106, "@bot", 2, Some(300)),  // longer than a day, and over everything
            (107, "@bot", 3, Some(40)),   // longer than a day, and before
            (108, "@ada", 5, None),       // running
            (109, "@ada", 200, None),     // running, and after
            (110, "@bot", 76, Some(100)), // exactly a day, and up to the beginning
        ],
    );
    commit(&mut store, |tx| tx.run(&SEEN { at: hour(104) })).unwrap();
    let all = ["102 99..101", "103 110..112", "104 119..121", "106 2..300", "108 5..104+", "110 76..100"];
    assert_eq!(found(&mut store, 100, 120, None, Seq::MAX), all);
    assert_eq!(found(&mut store, 100, 120, Some("@ada"), Seq::MAX), ["103 110..112", "108 5..104+"]);
    assert_eq!(found(&mut store, 100, 120, None, 103), ["102 99..101", "103 110..112"]);
    assert_eq!(found(&mut store, 0, 2, Some("@bot"), Seq::MAX), ["101 0..1"]);
}

fn correct(tx: &mut dyn Tx, session: Seq, from: i64, to: i64) -> onus_store::error::Result<Seq> {
    let task = load::task(tx, &id("T-1"))?.unwrap().task;
    let said = SessionCorrected {
        session,
        started_at: hour(from),
        ended_at: hour(to),
        reason: "why".into(),
        proposed: false,
        approves: None,
    };
    write(tx, Some(task.clone()), &task.id, "@ada", None, said)?;
    Ok(load::workspace(tx)?.last_seq)
}

pub(crate) fn the_last_correction_counts_and_the_past_stays<H: Harness>(harness: &H) {
    // Numbers below those of the entries to come, as in life.
    let sessions = [(-3, "@bot", 0, Some(1)), (-2, "@bot", 10, Some(11)), (-1, "@bot", 20, Some(21))];
    let mut store = with_sessions(harness, &sessions);
    let first = commit(&mut store, |tx| correct(tx, -2, 12, 13)).unwrap();
    commit(&mut store, |tx| correct(tx, -2, 14, 16)).unwrap();
    assert_eq!(found(&mut store, 0, 100, None, Seq::MAX).join(" "), "-1 20..21 -2 14..16 -3 0..1");
    assert_eq!(found(&mut store, 13, 100, None, first).join(" "), "-1 20..21 -2 12..13");
    assert_eq!(found(&mut store, 9, 12, None, Seq::MAX), [""; 0], "where it was is free");

    let listed = ask(&mut store, |tx| effort::list(tx, Which::One(-2), 1)).remove(0);
    assert_eq!((listed.started_at, listed.ended_at), (hour(10), Some(hour(11))));
    assert_eq!((listed.began(), listed.counts_until()), (hour(14), hour(16)));

    // A further correction stands between the neighbours.
    let recorded = recorded(
        &mut store,
        Command::CorrectSession { session: -2, started_at: hour(0), ended_at: hour(0), reason: None },
    );
    assert_eq!((recorded.before, recorded.after), (Some(hour(1)), Some(hour(20))));
    assert_eq!((recorded.started_at, recorded.ended_at), (hour(14), Some(hour(16))));
}

fn recorded<S: Store>(store: &mut S, command: Command) -> Recorded {
    let envelope = Envelope {
        request: id("r"),
        actor: Some(id("@ada")),
        token: None,
        task: Some(id("T-1")),
        project: None,
        base: None,
        command,
    };
    let loaded =
        ask(store, |tx| load::facts(tx, &envelope, &Policy::Absent, Timestamp(0), &mut AtWork::default()));
    loaded.session.unwrap()
}

pub(crate) fn the_last_usage_of_each_record_counts<H: Harness>(harness: &H) {
    let mut store = with_sessions(harness, &[(-2, "@bot", 0, Some(1)), (-1, "@bot", 10, Some(11))]);
    let usage = |key: &str, tokens: i64| Usage {
        key: key.into(),
        source: "otel".into(),
        model: Some("m".into()),
        counts: Counts { input_tokens: tokens, cost_micros: Some(tokens * 2), ..Counts::default() },
    };
    let mut say = |session: Seq, said: Usage| {
        commit(&mut store, |tx| {
            let task = load::task(tx, &id("T-1"))?.unwrap().task;
            write(tx, Some(task.clone()), &task.id, "@bot", None, SessionUsed { session, usage: said })?;
            Ok(load::workspace(tx)?.last_seq)
        })
        .unwrap()
    };
    let first = say(-2, usage("a", 5));
    say(-2, usage("b", 100));
    say(-2, usage("a", 7));
    say(-1, usage("a", 1));
    let mut sums = |from: Seq, to: Seq, as_of: Seq| {
        let mut sums = Vec::new();
        ask(&mut store, |tx| {
            let none = effort::corrections(tx, as_of)?;
            effort::used(tx, (from, to), as_of, &none, &mut |used| {
                let counts = used.counts();
                sums.push((used.session, counts.tokens(), counts.cost_micros, used.began));
                Ok(())
            })
        });
        sums
    };
    let (early, late) = ((-2, 107, Some(214), hour(0)), (-1, 1, Some(2), hour(10)));
    assert_eq!(sums(-2, -1, Seq::MAX), [early, late]);
    assert_eq!(sums(-1, -1, Seq::MAX), [late]);
    assert_eq!(sums(-2, -1, first), [(-2, 5, Some(10), hour(0))]);
    let known = recorded(&mut store, Command::RecordUsage { session: -2, usage: usage("a", 1) }).usage;
    assert_eq!(known, Some(usage("a", 7)));
}

/// Three sessions of an agent, one of a person; the last word of each record counts, a day has its own part.
pub(crate) fn limits_add_up_what_agents_used<H: Harness>(harness: &H) {
    let sessions = [
        (-4, "@bot", -2, Some(1)),
        (-3, "@bot", 2, Some(3)),
        (-2, "@ada", 2, Some(4)),
        (-1, "@bot", 40, Some(41)),
    ];
    let mut store = with_sessions(harness, &sessions);
    let mut say = |session: Seq, key: &str, tokens: i64, cost_micros: Option<i64>| {
        let counts = Counts { input_tokens: tokens, cost_micros, turns: tokens / 10, ..Counts::default() };
        let usage = Usage { key: key.into(), source: "otel".into(), model: None, counts };
        commit(&mut store, |tx| {
            let task = load::task(tx, &id("T-1"))?.unwrap().task;
            write(tx, Some(task.clone()), &task.id, "@bot", None, SessionUsed { session, usage })
        })
        .unwrap();
    };
    say(-4, "a", 10, Some(100));
    say(-3, "a", 20, Some(200));
    say(-3, "a", 30, Some(300));
    say(-3, "b", 40, None);
    say(-2, "a", 5_000, Some(5_000));
    say(-1, "a", 50, Some(500));
    commit(&mut store, |tx| {
        let task = load::task(tx, &id("T-1"))?.unwrap().task;
        let before = Spec { checks: Vec::new(), ..task.spec.clone() };
        let after = Spec { sprint: Some("s".into()), ..before.clone() };
        let (before, after) = (Box::new(before), Box::new(after));
        write(
            tx,
            Some(task.clone()),
            &task.id,
            "@ada",
            None,
            Edited { before, after, renewal: None, outside: None },
        )
    })
    .unwrap();
    let told = |used: Used| (used.tokens, used.cost_micros, used.turns, used.is_cost_partial, used.attempts);
    let now = hour(100);
    let day = Day { from: hour(0), to: hour(24) };
    let (task, sprint, worker, all) = ask(&mut store, |tx| {
        Ok((
            limits::used_by_task(tx, &id("T-1"), -3, now)?,
            limits::used_by_sprint(tx, "s", now)?,
            limits::used_by_worker(tx, &id("@bot"), day, now)?,
            limits::used_in_day(tx, day, now)?,
        ))
    });
    assert_eq!(told(task), (120, 800, 12, true, 1), "those since an entry");
    assert_eq!(told(sprint), (130, 900, 13, true, 1));
    // What began before the day gives it its time alone.
    assert_eq!((told(worker), worker.time_ms), ((70, 300, 7, true, 1), 2 * HOUR));
    assert_eq!(worker, all);
    let none = ask(&mut store, |tx| limits::used_by_sprint(tx, "other", now));
    assert_eq!(none, Used::default());
    assert_eq!(ask(&mut store, |tx| limits::sprints(tx)), ["s"]);
    assert_eq!(ask(&mut store, |tx| limits::lifted(tx, &id("T-1"))), None);
}

/// The last word of a person over the limits, and of what stopped the work.
pub(crate) fn a_stop_and_its_end_are_found<H: Harness>(harness: &H) {
    let mut store = with_sessions(harness, &[]);
    let over = vec![Finding::new(Code::BudgetExceeded, "T-1 has used 2 of 1 tokens")];
    assert!(ask(&mut store, |tx| limits::stopped_by(tx, &id("T-1"))).is_empty());
    let entry = commit(&mut store, |tx| {
        let task = load::task(tx, &id("T-1"))?.unwrap().task;
        let task = write(tx, Some(task.clone()), &task.id, "@bot", Some("ws-1"), claimed(2))?;
        let on = Blocker::Person(id("@ada"));
        let blocked = Blocked { on, kept: None, late_by_ms: None, handoff: None, limits: over.clone() };
        let task = write(tx, Some(task.clone()), &task.id, "@bot", Some("ws-1"), blocked)?;
        write(tx, Some(task.clone()), &task.id, "@ada", None, LimitsLifted { limits: over.clone() })?;
        Ok(load::workspace(tx)?.last_seq)
    })
    .unwrap();
    assert_eq!(ask(&mut store, |tx| limits::stopped_by(tx, &id("T-1"))), over);
    let lifted = ask(&mut store, |tx| limits::lifted(tx, &id("T-1"))).unwrap();
    assert_eq!(lifted.0, entry);
}

pub(crate) fn approvals_are_found_by_the_days_they_touch<H: Harness>(harness: &H) {
    let mut store = furnished(harness);
    let approved = |from: &str, to: &str| TimesheetApproved {
        worker: id("@bot"),
        from: id(from),
        to: id(to),
        fingerprint: Digest::of(from.as_bytes()),
    };
    commit(&mut store, |tx| {
        let mut number = 0;
        for (from, to) in [("2026-10-01", "2026-10-31"), ("2026-11-01", "2026-11-30")] {
            // Who and when is the entry's to say.
            let task = add(tx, spec("x"), &[])?;
            number = task.born;
            apply::approval(tx, number, &approved(from, to))?;
        }
        Ok(number)
    })
    .unwrap();
    let mut days = |from: &str, to: &str| {
        let found = ask(&mut store, |tx| effort::approvals(tx, &id("@bot"), (id(from), id(to))));
        found.into_iter().map(|one| (one.from.to_string(), one.by.to_string())).collect::<Vec<_>>()
    };
    let (october, november) =
        (("2026-10-01".to_owned(), "@ada".to_owned()), ("2026-11-01".to_owned(), "@ada".to_owned()));
    assert_eq!(days("2026-10-15", "2026-11-01"), [october, november.clone()]);
    assert_eq!(days("2026-11-30", "2026-12-31"), [november]);
    assert_eq!(days("2026-12-01", "2026-12-31"), []);
    let every = ask(&mut store, |tx| effort::every_approval(tx));
    let rows: Vec<TimesheetApproved> = every.into_iter().map(|(_, row)| row).collect();
    assert_eq!(rows, [approved("2026-10-01", "2026-10-31"), approved("2026-11-01", "2026-11-30")]);
    let nobody = commit(&mut store, |tx| {
        let nobody = TimesheetApproved { worker: id("@nobody"), ..approved("2026-10-01", "2026-10-31") };
        apply::approval(tx, 99, &nobody)
    });
    assert!(nobody.is_err());
}

pub(crate) fn a_grant_is_told_when_the_worker_last_worked_there<H: Harness>(harness: &H) {
    let mut store = with_sessions(harness, &[(101, "@bot", 0, Some(5)), (102, "@ada", 6, Some(9))]);
    let mut rested = |actor: &str, place: &str| {
        let task: TaskId = id("T-1");
        let command = Command::Claim {
            workstation: Some(id(place)),
            here: None,
            assignee: None,
            ttl: None,
            warrant: onus_core::command::Warrant::Ordinary,
            constraints: Vec::new(),
        };
        let envelope = Envelope {
            request: id("r"),
            actor: Some(id(actor)),
            token: None,
            task: Some(task),
            project: None,
            base: None,
            command,
        };
        ask(&mut store, |tx| {
            load::facts(tx, &envelope, &Policy::Absent, Timestamp(0), &mut AtWork::default())
        })
        .rested
    };
    assert_eq!(rested("@bot", "ws-1"), Some(hour(5)));
    assert_eq!(rested("@ada", "ws-1"), Some(hour(9)));
    assert_eq!(rested("@bot", "ws-2"), None);
}
