//! What is offered is what is decided: every move that `moves` gives is carried out, and whatever else would change a
//! task's state is refused, or is force where a rule leads.

use crate::tests::support::script::Script;
use crate::tests::support::{handle, task_id};
use onus_core::task::{By, StateName, moves};

const SETUPS: [&str; 9] = [
    "add",
    "add; claim a",
    "add; claim p",
    "add; claim a; block a",
    "add; claim p; block p",
    "add; claim a; block a free",
    "add; claim a; complete a",
    "add; drop p",
    "add archived=complete",
];

const VERBS: [&str; 7] = ["claim", "release", "block", "unblock", "complete", "reopen", "drop"];

/// Where the command leads, if it is carried out.
fn led(setup: &str, verb: &str, mark: &str, who: &str) -> Option<StateName> {
    let mut script = played(setup);
    let before = script.world.tasks[&task_id(1)].state.name();
    script.step(&format!("{verb}{mark} {who}"));
    let after = script.world.tasks[&task_id(1)].state.name();
    (script.refusal.is_none() && before != after).then_some(after)
}

fn played(setup: &str) -> Script {
    let mut script = Script::new();
    for step in setup.split(';') {
        script.step(step.trim());
        assert!(script.refusal.is_none(), "{setup}: {step}");
    }
    script
}

#[test]
fn what_is_offered_is_what_is_decided() {
    for setup in SETUPS {
        for who in ["a", "b", "p", "q", "v"] {
            let mut expected: Vec<(&str, StateName, By)> = Vec::new();
            for verb in VERBS {
                let forcible = ["claim", "release", "complete"].contains(&verb);
                if let Some(to) = led(setup, verb, "", who) {
                    expected.push((verb, to, By::Rule));
                } else if let Some(to) = led(setup, verb, "!", who).filter(|_| forcible) {
                    expected.push((verb, to, By::Force));
                }
            }
            // Nobody is offered force where a rule leads.
            let ruled: Vec<StateName> =
                expected.iter().filter(|(_, _, by)| *by == By::Rule).map(|(_, to, _)| *to).collect();
            expected.retain(|(_, to, by)| *by == By::Rule || !ruled.contains(to));
            let script = played(setup);
            let task = &script.world.tasks[&task_id(1)];
            let mut given: Vec<_> = moves(task, &script.world.workers[&handle(who)])
                .iter()
                .map(|m| (m.verb, m.to, m.by))
                .collect();
            let order = |verb: &str| VERBS.iter().position(|known| *known == verb);
            given.sort_by_key(|(verb, ..)| order(verb));
            assert_eq!(given, expected, "{setup}: {who}");
        }
    }
}

/// The end of the task that it waits for lets an agent open it again; whether it has ended is the decision's to say.
#[test]
fn an_agent_is_offered_to_unblock_what_waits_for_a_task() {
    let script = played("add; add; claim a; block a on=task:T-1 free");
    let offered = moves(&script.world.tasks[&task_id(2)], &script.world.workers[&handle("b")]);
    assert_eq!(offered.iter().map(|found| found.verb).collect::<Vec<_>>(), ["unblock"]);
}
