//! Work that is done and waits for others: for somebody to look at it, or for what merges before it. Its holder keeps the task, and
//! `complete` goes on where it stopped.

use super::{Finish, envelope};
use crate::Onus;
use crate::queue::LIMIT_MAX;
use crate::submit::Target;
use onus_core::code::Code;
use onus_core::command::Command;
use onus_core::refusal::Refusal;
use onus_core::task::{Blocker, State, StateName, Task};
use onus_store::read::queue::{Filter, Which};

/// What a task that waits for its review is blocked on.
pub const REVIEW: &str = "its review";
/// The same of one whose turn to merge has not come: a slice of the same parent comes first, say.
pub const ORDER: &str = "what merges first";

/// Whether a task waits for this, under a lease that its holder keeps.
fn waits_for(task: &Task, wanted: &str) -> bool {
    matches!(&task.state, State::Blocked { on: Blocker::External(on), held: Some(_) } if on == wanted)
}

impl Onus {
    /// Whether what finished work waits for has come.
    pub fn may_go_on(&mut self, task: &Task) -> Result<bool, Refusal> {
        match (waits_for(task, REVIEW), waits_for(task, ORDER)) {
            (true, _) => self.was_reviewed(task),
            (_, true) => self.is_its_turn(task),
            _ => Ok(false),
        }
    }

    /// Whether somebody looked at the work since it waits for that.
    fn was_reviewed(&mut self, task: &Task) -> Result<bool, Refusal> {
        let (mut after, mut is_reviewed) = (0, false);
        loop {
            // A long story comes in parts, and the last word on it counts.
            let part = self.log(Some(&task.id), Some(after), LIMIT_MAX)?.entries;
            let Some(last) = part.last() else { return Ok(is_reviewed) };
            after = last.seq;
            for entry in &part {
                match entry.verb.as_str() {
                    "reviewed" => is_reviewed = true,
                    "blocked" => is_reviewed = false,
                    _ => {}
                }
            }
        }
    }

    /// Whether nothing is left that merges before a task. What it finds is a reason to ask again, never a permission.
    fn is_its_turn(&mut self, task: &Task) -> Result<bool, Refusal> {
        for on in &task.depends_on {
            if self.task(on)?.state.name() != StateName::Complete {
                return Ok(false);
            }
        }
        let slices_of = |parent| Filter { parent: Some(parent), ..Filter::default() };
        let own = self.list(Which::Active, &slices_of(task.id.clone()), None, 1)?.tasks;
        let Some((parent, order)) = task.spec.parent.clone().zip(task.spec.merge_order) else {
            return Ok(own.is_empty());
        };
        let beside = self.list(Which::Active, &slices_of(parent), None, LIMIT_MAX)?.tasks;
        Ok(own.is_empty() && !beside.iter().any(|slice| slice.merge_order.is_some_and(|one| one < order)))
    }

    /// A task that waits goes on once that has come: once somebody has looked at it, whatever they say.
    pub(super) fn look_after_wait(&mut self, call: &Finish<'_>, task: &Task) -> Result<(), Refusal> {
        let (code, detail, hint) = if waits_for(task, REVIEW) {
            let hint = format!("onus review {} --approve, by somebody else", task.id);
            (Code::ReviewMissing, "waits for somebody to look at it", hint)
        } else if waits_for(task, ORDER) {
            (Code::DependencyIncomplete, "waits for what merges first", format!("onus show {}", task.id))
        } else {
            return Ok(());
        };
        if !self.may_go_on(task)? {
            return Err(Refusal::new(code, format!("{} {detail}", task.id)).task(&task.id).hint(hint));
        }
        let unblock = envelope(call, &format!("reviewed {}", task.version), Command::Unblock)?;
        self.submit(&unblock, &Target::Named).map(drop)
    }
}
