//! Milestones: what is missing from the tasks of a story, all of it at once, and who may close.

use crate::tests::support::script::Script;
use crate::tests::support::{handle, task_id};
use onus_core::code::Code;
use onus_core::event::{Event, MilestoneAdded, Stamped};
use onus_core::facts::Caller;
use onus_core::hash::Digest;
use onus_core::id::TaskId;
use onus_core::milestone::{
    Member, Milestone, MilestoneEdit, Selection, Story, TargetDate, Verification, close, due_in_words, edit,
    evolve, findings, fingerprint, register,
};
use onus_core::refusal::Finding;
use onus_core::registry::Registration;
use onus_core::task::StateName;
use onus_core::time::Timestamp;
use std::collections::BTreeMap;

fn wanted(selection: Selection) -> MilestoneAdded {
    MilestoneAdded { name: "sprint-12".parse().unwrap(), title: None, selection, target: None }
}

fn stamped(seq: i64, event: impl Into<Event>) -> Stamped {
    let (actor, at) = (handle("p"), Timestamp(1));
    Stamped { seq, task: None, at, actor, workstation: None, epoch: 0, event: event.into() }
}

fn milestone() -> Milestone {
    let sprint = Selection { sprint: Some("12".into()), ..Selection::default() };
    evolve(None, &stamped(5, wanted(sprint))).unwrap()
}

fn told(steps: &str) -> Script {
    let mut script = Script::new();
    for step in steps.split(';').map(str::trim).filter(|step| !step.is_empty()) {
        script.step(step);
        assert!(script.refusal.is_none(), "{step}: {:?}", script.refusal);
    }
    script
}

fn members(script: &Script) -> Vec<Member> {
    let tasks = script.world.tasks.values();
    tasks
        .map(|task| {
            let mut story = Story::default();
            for entry in &script.world.chains[&task.id] {
                story.tell(&entry.open().unwrap(), entry.hash);
            }
            let is_open = |id: &&TaskId| script.world.tasks[*id].state.name() != StateName::Complete;
            let waits_for = task.depends_on.iter().filter(is_open).cloned().collect();
            Member { task: task.clone(), story, told: BTreeMap::new(), waits_for }
        })
        .collect()
}

/// All tasks of a story as one milestone: everything that is missing.
fn found(steps: &str) -> Vec<Finding> {
    let script = told(steps);
    let members = members(&script);
    let used = |name: &_| members.iter().any(|member| member.story.places.contains(name));
    let places: Vec<_> =
        script.world.workstations.values().filter(|place| used(&place.name)).cloned().collect();
    let places: Vec<_> = places.into_iter().map(|place| (place, script.world.probes.clone())).collect();
    findings(&Verification { name: &milestone().name, members: &members, places: &places, mirrors: &[] })
}

fn check(steps: &str, expected: &str) {
    let found = found(steps);
    let said = |finding: &Finding| match &finding.task {
        Some(task) => format!("{} {task}", finding.code),
        None => finding.code.to_string(),
    };
    let given: Vec<String> = found.iter().map(said).collect();
    assert_eq!(given.join("; "), expected, "\n  {steps}\n{found:#?}");
    assert!(found.iter().all(|finding| finding.hint.is_some()), "a next step each: {found:#?}");
}

const DONE: &str = "add check; claim a; run a at=1; complete a at=1";

#[test]
fn nothing_is_missing_once_every_check_has_passed_behind_the_last_completion() {
    check(DONE, "checks_missing T-1");
    check(&format!("{DONE}; run p at=1"), "");
    check(&format!("{DONE}; run p at=1 exit=1"), "checks_failed T-1");
    check(&format!("{DONE}; run p at=1 slow"), "checks_failed T-1");
    check(&format!("{DONE}; run p at=1 dirty"), "checks_missing T-1");
    check(&format!("{DONE}; run p at=1 exit=1; run p at=2"), "");
    // What was proven before the last task was complete was proven of something else.
    check(&format!("{DONE}; run p at=1; add; claim b; complete b"), "checks_missing T-1");
    check(&format!("{DONE}; add; claim b; complete b; run p #1 at=1"), "");
}

#[test]
fn every_task_is_complete_or_was_dropped() {
    let rest = "run p #1 at=1";
    check(&format!("{DONE}; add; {rest}"), "wrong_state T-2");
    check(&format!("{DONE}; add; claim b; {rest}"), "wrong_state T-2");
    check(&format!("{DONE}; add; claim b; block b; {rest}"), "wrong_state T-2");
    check(&format!("{DONE}; add; drop p; {rest}"), "");
    check("add; drop p", "evidence_missing");
    check("", "evidence_missing");
    check("add; claim a; complete a", "checks_missing");
    check("add; claim a; addcheck a", "wrong_state T-1; check_unapproved T-1");
    assert!(found("add; claim b")[0].detail.contains("@b holds it"));
}

#[test]
fn metadata_is_complete() {
    let rest = "run p #1 at=1";
    check(&format!("{DONE}; add archived=complete; {rest}"), "evidence_missing T-2");
    check(&format!("{DONE}; add; complete! p; {rest}"), "gate_bypassed T-2; evidence_missing T-2");
}

#[test]
fn no_gate_was_bypassed() {
    let rest = "run p at=1 token=none";
    let forced = "add check; claim! p; run p at=1; complete p at=1";
    check(&format!("{forced}; {rest}"), "gate_bypassed T-1");
    check(&format!("add check; claim a; complete! p; {rest}"), "gate_bypassed T-1");
    check(
        &format!("add check; claim a; takeover! p; run p at=1; complete p at=1; {rest}"),
        "gate_bypassed T-1",
    );
    // A release by force builds nothing.
    check(&format!("add check; claim a; release! p; claim b; run b at=1; complete b at=1; {rest}"), "");
    // Done again by the rules, the task is what it should have been.
    check(&format!("{forced}; reopen p; claim a; run a at=1; complete a at=1; {rest}"), "");
    assert!(found(&format!("{forced}; {rest}"))[0].detail.contains("because"), "the reason is told");
}

#[test]
fn the_workstations_are_in_order() {
    let done = format!("{DONE}; run p at=1");
    check(&format!("{done}; workstation a quarantined"), "workstation_quarantined");
    check(&format!("{done}; workstation a registered"), "workstation_not_ready");
    check(&format!("{done}; workstation a retired"), "");
    check(&format!("{done}; workstation b quarantined"), "");
}

#[test]
fn people_and_verifiers_close_once() {
    let script = told(&format!("{DONE}; run p at=1"));
    let members = members(&script);
    let print = fingerprint(&milestone(), members.iter().map(|member| (&member.task.id, &member.story)));
    let caller = |who: &str| script.world.caller(Some(&handle(who)));
    let closing = |who, missing| close(&caller(who), &milestone(), missing, print);
    assert_eq!(closing("a", vec![]).unwrap_err().code, Code::HumanRequired);
    assert_eq!(
        close(&Caller::Anonymous, &milestone(), vec![], print).unwrap_err().code,
        Code::IdentityRequired
    );
    let verifiers: Vec<_> = script
        .world
        .workers
        .values()
        .filter(|worker| worker.is_verifier())
        .map(|w| w.handle.clone())
        .collect();
    assert!(!verifiers.is_empty());
    for judge in verifiers.iter().chain([&handle("p")]) {
        let (by, event) = close(&script.world.caller(Some(judge)), &milestone(), vec![], print).unwrap();
        let entry = Stamped { seq: 99, ..stamped(99, event.unwrap()) };
        let closed = evolve(Some(milestone()), &entry).unwrap();
        assert_eq!((by, closed.closed.unwrap().seq), (judge.clone(), 99));
        assert!(evolve(Some(closed.clone()), &entry).is_err(), "closed twice");
        assert_eq!(close(&caller("p"), &closed, vec![], print).unwrap().1, None);
    }
    let refused = closing("p", found(&format!("{DONE}; add"))).unwrap_err();
    assert_eq!((refused.code, refused.findings.len()), (Code::MilestoneIncomplete, 2));
    assert_eq!(refused.detail, "sprint-12: 2 things are missing");
}

/// Every run, every end and every task changes it; what others say about a task does not.
#[test]
fn the_fingerprint_is_of_what_was_verified() {
    let print = |steps: &str| -> Digest {
        let script = told(steps);
        fingerprint(&milestone(), members(&script).iter().map(|member| (&member.task.id, &member.story)))
    };
    let same = print(DONE);
    assert_eq!(print(&format!("{DONE}; note p")), same);
    for other in ["run p at=1", "reopen p", "drop p", "add"] {
        assert_ne!(print(&format!("{DONE}; {other}")), same, "{other}");
    }
}

#[test]
fn a_milestone_names_tasks_that_are_there() {
    let one = |selection: Selection| register(None, &wanted(selection), &[]);
    assert_eq!(one(Selection::default()).unwrap_err().code, Code::InvalidInput);
    assert_eq!(one(milestone().selection).unwrap(), Registration::Created);
    let named = Selection { tasks: [task_id(1), task_id(2)].into(), ..Selection::default() };
    let refused = register(None, &wanted(named.clone()), &[task_id(1), task_id(2)]).unwrap_err();
    assert_eq!((refused.code, refused.findings.len()), (Code::UnknownTask, 2));
    let many = Selection { tasks: (1..=257).map(task_id).collect(), ..Selection::default() };
    assert_eq!(one(many).unwrap_err().code, Code::InvalidInput);
    assert_eq!(
        one(Selection { tag: Some("a\nb".into()), ..named.clone() }).unwrap_err().code,
        Code::InvalidInput
    );
    let again = |selection| register(Some(&milestone()), &wanted(selection), &[]);
    assert_eq!(again(milestone().selection).unwrap(), Registration::Existing);
    assert_eq!(again(named).unwrap_err().code, Code::InvalidInput);
}

#[test]
fn a_person_moves_the_target_until_it_is_closed() {
    let script = told(DONE);
    let day = |text: &str| text.parse().unwrap();
    let before = milestone();
    let wanted = |target| MilestoneEdit { title: None, target };
    let caller = |who: &str| script.world.caller(Some(&handle(who)));
    let refused = edit(&caller("a"), &before, &wanted(Some(TargetDate::None))).unwrap_err();
    assert_eq!(refused.code, Code::HumanRequired);
    let (_, event) = edit(&caller("p"), &before, &wanted(Some(TargetDate::On(day("2026-11-30"))))).unwrap();
    let after = evolve(Some(before.clone()), &stamped(6, event.unwrap())).unwrap();
    assert_eq!((after.target, &after.title), (Some(day("2026-11-30")), &before.title));
    // The same again changes nothing; taken away it is as before.
    assert_eq!(edit(&caller("p"), &after, &wanted(after.target.map(TargetDate::On))).unwrap().1, None);
    let (_, event) = edit(&caller("p"), &after, &wanted(Some(TargetDate::None))).unwrap();
    assert_eq!(evolve(Some(after.clone()), &stamped(7, event.unwrap())).unwrap(), before);
    let closed = Milestone {
        closed: Some(onus_core::milestone::Closed { seq: 8, fingerprint: Digest::ZERO }),
        ..after
    };
    let refused = edit(&caller("p"), &closed, &wanted(Some(TargetDate::None))).unwrap_err();
    assert_eq!(refused.code, Code::WrongState);
}

#[test]
fn a_target_stands_to_today_in_words() {
    let told = |target: &str| due_in_words(target.parse().unwrap(), "2026-11-18".parse().unwrap());
    let days = ["2026-11-30", "2026-11-19", "2026-11-18", "2026-11-17", "2026-10-18", "2027-11-18"];
    let words = ["12 days left", "1 day left", "due today", "1 day late", "31 days late", "365 days left"];
    assert_eq!(days.map(told), words);
}
