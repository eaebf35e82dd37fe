//! Exactly what a milestone lacks: every finding at once, each with its task and the next step.

use super::Story;
use crate::code::Code;
use crate::evidence::CheckVerdict;
use crate::gate;
use crate::id::{MilestoneName, MirrorName, Seq, TaskId};
use crate::mirror::setting::Mirror;
use crate::mirror::{Picture, ToldSoFar, unequal};
use crate::probe::ProbeResult;
use crate::refusal::Finding;
use crate::task::{Blocker, Check, CheckState, State, StateName, Task};
use crate::workstation::{Workstation, WorkstationState};
use std::collections::BTreeMap;

/// One of its tasks, with what the record says.
#[derive(Debug, Clone)]
pub struct Member {
    pub task: Task,
    pub story: Story,
    /// How far each mirror was told of it that the milestone needs.
    pub told: BTreeMap<MirrorName, ToldSoFar>,
    /// The tasks that must be complete before it can begin.
    pub waits_for: Vec<TaskId>,
}

/// What a milestone is judged by.
#[derive(Debug, Clone, Copy)]
pub struct Verification<'a> {
    pub name: &'a MilestoneName,
    pub members: &'a [Member],
    /// Every workstation in which one of them was worked on, with what its probes said last.
    pub places: &'a [(Workstation, Vec<ProbeResult>)],
    /// The mirrors that must show its tasks as they are.
    pub mirrors: &'a [(MirrorName, Mirror)],
}

/// Everything that is missing; empty means that it may close. A dropped task is one that a person decided not to do:
/// it is waited for no more.
pub fn findings(seen: &Verification<'_>) -> Vec<Finding> {
    let counted = || seen.members.iter().filter(|member| member.task.state.name() != StateName::Dropped);
    let mut found = Vec::new();
    if counted().next().is_none() {
        let detail = "it has no task, but for what was dropped";
        found.push(
            Finding::new(Code::EvidenceMissing, detail)
                .hint("onus add TITLE, with its sprint, tag or parent"),
        );
        return found;
    }
    // What was proven before the last of them was complete was proven of something else.
    let since = counted().filter_map(|member| member.story.ended.as_ref()).map(|ended| ended.seq).max();
    for member in counted() {
        let mut about = member.findings(seen.name, since.unwrap_or(0));
        about.extend(member.unequal(seen.mirrors));
        found.extend(about.into_iter().map(|one| Finding { task: Some(member.task.id.to_string()), ..one }));
    }
    if counted().all(|member| member.task.spec.checks.is_empty()) {
        let detail = "none of its tasks has a check: nothing proves it";
        found.push(
            Finding::new(Code::ChecksMissing, detail)
                .hint("onus add TITLE --check COMMAND, and have it done"),
        );
    }
    found.extend(seen.places.iter().flat_map(unready));
    found
}

/// The gate's own words about a place; a retired one has served its time.
fn unready((workstation, probes): &(Workstation, Vec<ProbeResult>)) -> Vec<Finding> {
    if workstation.state == WorkstationState::Retired {
        return Vec::new();
    }
    gate::readiness(workstation, probes)
}

impl Member {
    fn findings(&self, milestone: &MilestoneName, since: Seq) -> Vec<Finding> {
        let Member { task, story, .. } = self;
        let id = &task.id;
        let mut found: Vec<Finding> = Vec::new();
        found.extend(incomplete(task, &self.waits_for));
        let again = || format!("onus reopen {id} --reason TEXT, and have it done by the rules");
        found.extend(story.bypassed.iter().map(|(verb, by, reason)| {
            let detail = format!("{id} was {} by force, by {by}: {reason}", verb.replace('_', " "));
            Finding::new(Code::GateBypassed, detail).hint(again())
        }));
        let is_complete = task.state.name() == StateName::Complete;
        if is_complete && story.archived {
            let detail = format!("{id} was complete when it was imported: nobody here has proven it");
            let hint = "make a milestone of the tasks that were done here: onus milestone add";
            found.push(Finding::new(Code::EvidenceMissing, detail).hint(hint));
            return found;
        }
        if is_complete && story.worker.is_none() {
            let detail = format!("{id} names no worker and no workstation: it was never assigned");
            found.push(Finding::new(Code::EvidenceMissing, detail).hint(again()));
        }
        let unproven = |check: &Check| unproven(id, story, check, is_complete.then_some(since), milestone);
        found.extend(task.spec.checks.iter().filter_map(unproven));
        found
    }

    /// What mirrors show otherwise, of a task that was done here.
    fn unequal(&self, mirrors: &[(MirrorName, Mirror)]) -> Vec<Finding> {
        let Member { task, story, told, .. } = self;
        if task.state.name() != StateName::Complete || story.archived || story.worker.is_none() {
            return Vec::new();
        }
        let picture = Picture::of(task, story.worker.clone());
        mirrors
            .iter()
            .flat_map(|(name, mirror)| unequal(name, mirror, &picture, story.newest, told.get(name)))
            .collect()
    }
}

fn incomplete(task: &Task, waits_for: &[TaskId]) -> Option<Finding> {
    let id = &task.id;
    let (detail, hint) = match &task.state {
        State::Complete(_) | State::Dropped(_) => return None,
        State::Open => match waits_for {
            [] => (format!("{id} is open"), format!("onus claim {id}")),
            [first, ..] => {
                let all: Vec<String> = waits_for.iter().map(ToString::to_string).collect();
                (format!("{id} waits for {}", all.join(", ")), format!("onus show {first}"))
            }
        },
        State::InProgress(held) => {
            (format!("{id} is in progress: {} holds it", held.assignee), format!("onus show {id}"))
        }
        State::Blocked { on, .. } => {
            let hint = match on {
                Blocker::Task(other) => format!("onus show {other}"),
                _ => format!("onus unblock {id}, once it is"),
            };
            (format!("{id} is blocked on {on}"), hint)
        }
    };
    Some(Finding::new(Code::WrongState, detail).hint(hint))
}

/// `since` is where the last task was complete; a task that is not complete itself has only its approvals looked at.
fn unproven(
    id: &TaskId,
    story: &Story,
    check: &Check,
    since: Option<Seq>,
    milestone: &MilestoneName,
) -> Option<Finding> {
    let Check { command, state, .. } = check;
    if *state == CheckState::Proposed {
        let detail = format!("the check `{command}` of {id} awaits a person's approval");
        return Some(
            Finding::new(Code::CheckUnapproved, detail)
                .hint(format!("a person runs: onus check {id} --approve {}", check.id())),
        );
    }
    let since = since?;
    let verify = format!("in its repository, on the main branch: onus milestone verify {milestone}");
    let (code, detail) = match story.runs.get(&check.id()).filter(|ran| ran.seq > since) {
        None => {
            (Code::ChecksMissing, format!("`{command}` of {id} was not run since the last task was complete"))
        }
        Some(ran) if ran.verdict != CheckVerdict::Passed => {
            let verdict = ran.verdict.name().replace('_', " ");
            (Code::ChecksFailed, format!("`{command}` of {id} {verdict}"))
        }
        Some(ran) if ran.ground.dirty => {
            (Code::ChecksMissing, format!("`{command}` of {id} was run on changes that no commit has"))
        }
        Some(_) => return None,
    };
    Some(Finding::new(code, detail).hint(verify))
}
