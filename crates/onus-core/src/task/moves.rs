//! Where a task can go from where it is: the transition table of rules.md as a picture of it, for those who offer a
//! choice before anything is decided. Whether a move is carried out, [`decide`](crate::decide::decide) says.

use super::{Blocker, State, StateName, Task};
use crate::worker::Worker;

/// A command that would bring a task into another state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// The command's name.
    pub verb: &'static str,
    pub to: StateName,
    pub by: By,
}

/// By what right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Rule,
    /// Only by a person's force, with a reason.
    Force,
}

/// The moves that the rules leave to this worker, and those of force where no rule leads. What they depend on beside
/// state, kind and holder (a lease token, a gate, a dependency, evidence) is not looked at.
pub fn moves(task: &Task, worker: &Worker) -> Vec<Move> {
    use StateName::{Blocked, Complete, Dropped, InProgress, Open};
    let rule = |verb, to| Some(Move { verb, to, by: By::Rule });
    let person = |found: Option<Move>| found.filter(|_| worker.is_human());
    let forced = |verb, to| person(Some(Move { verb, to, by: By::Force }));
    let holds = |held: &super::Assignment| held.assignee == worker.handle;
    let drop = person(rule("drop", Dropped));
    let found = match &task.state {
        _ if task.archived => vec![],
        State::Open => vec![rule("claim", InProgress), forced("complete", Complete), drop],
        State::InProgress(held) if holds(held) => {
            vec![rule("release", Open), rule("block", Blocked), rule("complete", Complete), drop]
        }
        State::InProgress(_) => vec![forced("release", Open), forced("complete", Complete), drop],
        State::Blocked { held: Some(held), .. } if holds(held) => {
            vec![rule("unblock", InProgress), rule("release", Open), forced("complete", Complete), drop]
        }
        State::Blocked { held: Some(_), on } => vec![
            rule("unblock", InProgress).filter(|_| *on == Blocker::Person(worker.handle.clone())),
            forced("claim", InProgress),
            forced("release", Open),
            forced("complete", Complete),
            drop,
        ],
        State::Blocked { held: None, on } => vec![
            // The blocking task's own end may open it; anything else takes a person's word.
            rule("unblock", Open).filter(|_| {
                worker.is_human()
                    || matches!(on, Blocker::Task(_))
                    || *on == Blocker::Person(worker.handle.clone())
            }),
            forced("claim", InProgress),
            forced("complete", Complete),
            drop,
        ],
        State::Complete(_) if worker.is_human() || worker.is_verifier() => vec![rule("reopen", Open), drop],
        State::Complete(_) | State::Dropped(_) => vec![],
    };
    found.into_iter().flatten().collect()
}
