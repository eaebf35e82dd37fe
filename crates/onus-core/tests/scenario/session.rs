//! Sessions beside the lifecycle: rest and go on, corrections, usage.

use crate::tests::support::script::check;
use crate::tests::support::{Done, World, handle, spec, task_id, workstation_of};
use onus_core::code::Code;
use onus_core::command::{Command, Warrant};
use onus_core::id::Seq;
use onus_core::refusal::Refusal;
use onus_core::session::{Counts, Usage};
use onus_core::time::{Millis, Timestamp};

#[test]
fn a_holder_rests_and_goes_on_without_losing_the_task() {
    check(
        "add; claim a; tick 5m; stop a; tick 1h; start a; tick 60s; complete a; sessions",
        "ok; ok e1; ok; ok; ok; ok; ok; ok; a 0s..300s stopped, a 3900s..3960s completed",
    );
    check(
        "add; claim a; tick 5m; stop a; tick 5m; complete a; sessions",
        "ok; ok e1; ok; ok; ok; ok; a 0s..300s stopped",
    );
    check(
        "add; claim a; tick 5m; stop a; tick 5m; block a; tick 60s; unblock a; tick 60s; release a; sessions",
        "ok; ok e1; ok; ok; ok; ok; ok; ok; ok; ok; a 0s..300s stopped, a 660s..720s released",
    );
    check("add; claim a; stop b; start b; sessions", "ok; ok e1; lease_required; lease_required; a 0s..");
    check("add; claim a; block a; stop a", "ok; ok e1; ok; wrong_state");
}

#[test]
fn a_clock_set_back_between_two_tasks_makes_no_session_overlap() {
    check(
        "add; add; claim a #1; tick 5m; complete a #1; wall -1h; claim a #2; tick 5m; complete a #2; sessions",
        "ok; ok; ok e1; ok; ok; ok; ok e1; ok; ok; a 0s..300s completed, a 300s..300s completed",
    );
}

#[test]
fn a_clock_that_jumps_ahead_and_back_counts_no_second_twice() {
    // The jump is in the session in which it happened; until the clock has caught up the next ones have no length.
    check(
        "add; add; claim a #1; tick 5m; wall +1d; renew a #1; tick 5m; complete a #1; wall -1d; \
         claim a #2; tick 10m; complete a #2; sessions",
        "ok; ok; ok e1; ok; ok; ok; ok; ok; ok; ok e1; ok; ok; a 0s..87000s completed, a 87000s..87000s completed",
    );
    check(
        "add; add; claim a #1; wall +1h; tick 5m; complete a #1; wall -1h; tick 2h; claim a #2; tick 5m; complete a #2; sessions",
        "ok; ok; ok e1; ok; ok; ok; ok; ok; ok e1; ok; ok; a 0s..3900s completed, a 7500s..7800s completed",
    );
    // Within one task the record's time stands still instead.
    check(
        "add; claim a; wall +1d; tick 5m; stop a; wall -1d; tick 5m; start a; tick 5m; complete a; sessions",
        "ok; ok e1; ok; ok; ok; ok; ok; ok; ok; ok; a 0s..86700s stopped, a 86700s..86700s completed",
    );
    // Who died during the jump was last seen before it.
    check(
        "add; claim a; tick 5m; renew a; wall +1d; tick 20m; takeover b; wall -1d; tick 5m; complete b; sessions",
        "ok; ok e1; ok; ok; ok; ok; ok e2; ok; ok; ok; a 0s..300s taken_over, b 87900s..87900s completed",
    );
}

#[test]
fn a_person_sets_right_what_a_jump_has_left() {
    let (mut world, [first, second]) = worked_with(Millis::hours(24));
    let seconds = |world: &World| -> Vec<i64> {
        world.sessions.iter().map(|one| one.ended().unwrap().since(one.began()).0 / 1_000).collect()
    };
    assert_eq!(seconds(&world), [87_000, 0]);
    // In the order in which they were: the second one cannot move into what the first one claims.
    assert_eq!(code(correct(&mut world, "p", second, 70, 80, "the clock")), Some(Code::InvalidInput));
    assert!(correct(&mut world, "p", first, 0, 10, "the clock").is_ok());
    assert!(correct(&mut world, "p", second, 70, 80, "the clock").is_ok());
    assert!(correct(&mut world, "q", second, 70, 80, "the clock").is_ok());
    assert_eq!(seconds(&world), [600, 600]);
}

/// A task that @a worked on for ten minutes, and again for ten minutes an hour later.
fn worked() -> (World, [Seq; 2]) {
    worked_with(Millis(0))
}

/// The same; the wall clock jumps ahead in the middle of the first session, and back after it.
fn worked_with(jump: Millis) -> (World, [Seq; 2]) {
    let mut world = World::new();
    let (a, p) = (handle("a"), handle("p"));
    let add = Command::Add {
        spec: Box::new(spec("x")),
        depends_on: Default::default(),
        archived: None,
        arrival: None,
    };
    world.call(Some(&p), None, None, &add).unwrap();
    let task = task_id(1);
    for jump in [jump.0, 0] {
        let workstation = Some(workstation_of("a"));
        let claim = Command::Claim {
            workstation,
            here: None,
            assignee: None,
            ttl: None,
            warrant: Warrant::Ordinary,
            constraints: Vec::new(),
        };
        world.call(Some(&a), None, Some(&task), &claim).unwrap();
        world.clock.wall.0 += jump;
        world.tick(Millis::minutes(10));
        let token = world.live_token(&task);
        let release = Command::Release { note: None, handoff: None, warrant: Warrant::Ordinary };
        world.call(Some(&a), token, Some(&task), &release).unwrap();
        world.clock.wall.0 -= jump;
        world.tick(Millis::minutes(60));
    }
    let ids = [world.sessions[0].from.0, world.sessions[1].from.0];
    (world, ids)
}

fn correct(
    world: &mut World,
    who: &str,
    session: Seq,
    from: i64,
    to: i64,
    reason: &str,
) -> Result<Done, Refusal> {
    let zero = world.sessions[0].from.1;
    let minute = |n: i64| zero.plus(Millis::minutes(n));
    let command = Command::CorrectSession {
        session,
        started_at: minute(from),
        ended_at: minute(to),
        reason: (!reason.is_empty()).then(|| reason.to_owned()),
    };
    world.call(Some(&handle(who)), None, Some(&task_id(1)), &command)
}

fn code(answer: Result<Done, Refusal>) -> Option<Code> {
    answer.err().map(|refusal| refusal.code)
}

#[test]
fn people_correct_with_a_reason_and_never_into_another_session() {
    let (mut world, [first, second]) = worked();
    assert_eq!(code(correct(&mut world, "a", first, 0, 5, "lunch")), Some(Code::HumanRequired));
    assert_eq!(code(correct(&mut world, "p", first, 0, 5, "")), Some(Code::ReasonRequired));
    assert_eq!(code(correct(&mut world, "p", 99, 0, 5, "lunch")), Some(Code::UnknownName));
    // The second one began after 70 minutes and ended after 80; now it is minute 140.
    for (session, from, to) in [(first, 5, 4), (first, 0, 71), (second, 9, 80), (second, 70, 141)] {
        let refused = code(correct(&mut world, "p", session, from, to, "lunch"));
        assert_eq!(refused, Some(Code::InvalidInput), "{from}..{to}");
    }
    let both = correct(&mut world, "p", second, 150, 141, "lunch").unwrap_err();
    assert_eq!(both.findings.len(), 2, "{both:?}");
    let before = world.sessions[0].clone();
    assert!(correct(&mut world, "p", first, 0, 70, "it went on").is_ok());
    assert_eq!(world.sessions[0], before, "one person's word gives no hours beside the assignment");
    assert!(correct(&mut world, "q", first, 0, 70, "so it was").is_ok());
    let after = &world.sessions[0];
    assert_eq!((after.from, after.to), (before.from, before.to), "the session itself never changes");
    assert_eq!(after.ended().unwrap().since(after.began()), Millis::minutes(70));
    // The neighbour's correction is in force, too.
    assert_eq!(code(correct(&mut world, "p", second, 69, 80, "early")), Some(Code::InvalidInput));
    assert!(matches!(correct(&mut world, "p", first, 0, 70, "again"), Ok(Done::Existing(_))));
    assert!(correct(&mut world, "p", second, 75, 75, "nothing was done").is_ok());
    assert!(correct(&mut world, "p", second, 70, 140, "from the end of the first until now").is_ok());
    assert_eq!(world.sessions[1].ended().unwrap().since(world.sessions[1].began()), Millis(0), "it waits");
}

#[test]
fn hours_beside_the_assignment_need_two_people() {
    let (mut world, [_, second]) = worked();
    let length = |world: &World| world.sessions[1].ended().unwrap().since(world.sessions[1].began());
    // Inside the assignment one person's word is enough.
    assert!(correct(&mut world, "p", second, 71, 79, "lunch").is_ok());
    assert_eq!(length(&world), Millis::minutes(8));
    for (from, to) in [(69, 80), (70, 81), (20, 130)] {
        assert!(matches!(correct(&mut world, "p", second, from, to, "more"), Ok(Done::Changed { .. })));
        assert_eq!(length(&world), Millis::minutes(8), "{from}..{to} waits for another person");
        assert_eq!(code(correct(&mut world, "p", second, from, to, "more")), Some(Code::NotPermitted));
        assert_eq!(code(correct(&mut world, "b", second, from, to, "more")), Some(Code::HumanRequired));
    }
    // Another one who says something else agrees with nothing.
    assert!(correct(&mut world, "q", second, 21, 130, "more").is_ok());
    assert_eq!(length(&world), Millis::minutes(8));
    assert!(correct(&mut world, "p", second, 21, 130, "yes, from 21").is_ok());
    assert_eq!(length(&world), Millis::minutes(109));
}

#[test]
fn a_running_session_is_not_corrected() {
    let (mut world, _) = worked();
    let workstation = Some(workstation_of("a"));
    let claim = Command::Claim {
        workstation,
        here: None,
        assignee: None,
        ttl: None,
        warrant: Warrant::Ordinary,
        constraints: Vec::new(),
    };
    world.call(Some(&handle("a")), None, Some(&task_id(1)), &claim).unwrap();
    let running = world.sessions[2].from.0;
    assert_eq!(code(correct(&mut world, "p", running, 0, 1, "why")), Some(Code::WrongState));
}

#[test]
fn an_agent_records_its_own_usage_and_a_record_only_grows() {
    let (mut world, [first, _]) = worked();
    let mut record = |who: &str, key: &str, tokens: i64| {
        let counts = Counts { input_tokens: tokens, cost_micros: Some(tokens), ..Counts::default() };
        let usage = Usage { key: key.into(), source: "reported".into(), model: None, counts };
        let command = Command::RecordUsage { session: first, usage };
        world.call(Some(&handle(who)), None, Some(&task_id(1)), &command)
    };
    assert_eq!(code(record("b", "k", 5)), Some(Code::NotPermitted));
    assert!(matches!(record("a", "k", 5), Ok(Done::Changed { .. })));
    assert!(matches!(record("a", "k", 5), Ok(Done::Existing(_))));
    assert!(matches!(record("a", "k", 9), Ok(Done::Changed { .. })));
    assert_eq!(code(record("a", "k", 8)), Some(Code::InvalidInput));
    assert!(matches!(record("p", "other", 1), Ok(Done::Changed { .. })));
    for wrong in [0, -1, i64::MAX] {
        assert_eq!(code(record("a", "wrong", wrong)), Some(Code::InvalidInput), "{wrong}");
    }
    let total: Timestamp = Timestamp(world.usages.iter().map(|(_, usage)| usage.counts.input_tokens).sum());
    assert_eq!(total, Timestamp(5 + 9 + 1));
}

#[test]
fn only_its_own_worker_ends_an_output_and_once() {
    let (mut world, [first, _]) = worked();
    let mut close = |who: &str| {
        world.call(Some(&handle(who)), None, Some(&task_id(1)), &Command::CloseOutput { session: first })
    };
    assert_eq!(code(close("b")), Some(Code::NotPermitted));
    assert_eq!(code(close("p")), Some(Code::NotPermitted), "not even a person");
    assert!(matches!(close("a"), Ok(Done::Changed { .. })));
    assert!(matches!(close("a"), Ok(Done::Existing(_))));
}
