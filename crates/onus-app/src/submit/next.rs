//! `claim --next`: the most important ready task, picked in the same transaction.

use super::{Answer, Call};
use onus_core::code::Code;
use onus_core::command::{Command, Envelope};
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use onus_store::error::Result as StoreResult;
use onus_store::load::{self, Stored};
use onus_store::port::{Outcome, Tx};
use onus_store::read::queue::{self, Filter};

/// How many ready tasks `claim --next` tries before it gives up.
const CANDIDATES: usize = 16;

impl Call<'_> {
    /// Offers the ready tasks one by one, the most important first. What stands against one of them may not stand
    /// against the next; what concerns the caller or the workstation stands against all.
    pub(super) fn decide_next(
        &mut self,
        tx: &mut dyn Tx,
        filter: &Filter,
    ) -> Result<Outcome<Answer>, Refusal> {
        let mut refusals_written = false;
        for place in 0..CANDIDATES {
            let Some(stored) = self.common.ready.at(tx, filter, place)? else { break };
            let envelope = Envelope { task: Some(stored.task.id.clone()), ..self.envelope.clone() };
            let (policy, now, at_work) = (self.policy, self.now.wall, &mut self.common.at_work);
            let loaded = load::facts_of(tx, &envelope, Some(stored), policy, now, at_work)?;
            let outcome = self.decide_one(tx, &envelope, loaded)?;
            let concerns_task = |code: Code| {
                matches!(
                    code,
                    Code::RoutingDenied
                        | Code::LaneFull
                        | Code::ScopeOverlap
                        | Code::ScopeViolation
                        | Code::SelfReview
                        | Code::DependencyIncomplete
                )
            };
            match &outcome {
                Outcome::Commit(Err(refusal)) if concerns_task(refusal.code) => refusals_written = true,
                _ => return Ok(outcome),
            }
        }
        // Identity errors come before "nothing ready": a stranger is not told about the queue.
        onus_core::registry::known(&load::caller(tx, self.envelope.actor.as_ref())?)?;
        let nothing = Err(Refusal::new(Code::NothingReady, "no task is ready for this claim")
            .hint("onus ready tells what the others wait for"));
        Ok(if refusals_written { Outcome::Commit(nothing) } else { Outcome::Rollback(nothing) })
    }
}

/// The head of the queue as the commands of one transaction find it: read once for all that want the next task.
#[derive(Debug)]
pub(super) struct Ready {
    filter: Filter,
    tasks: Vec<Stored>,
    /// Nothing is ready beyond these.
    is_all: bool,
    /// So many are read at a time.
    ahead: usize,
}

impl Ready {
    /// For so many commands that each want a task.
    pub(super) fn for_calls(count: usize) -> Ready {
        Ready { filter: Filter::default(), tasks: Vec::new(), is_all: false, ahead: count.max(1) }
    }

    /// The ready task at a place of the queue.
    fn at(&mut self, tx: &mut dyn Tx, filter: &Filter, place: usize) -> StoreResult<Option<Stored>> {
        if self.filter != *filter {
            self.forget();
            self.filter = filter.clone();
        }
        if place >= self.tasks.len() && !self.is_all {
            // Whoever was refused the first one tries several.
            let limit = if place == 0 { self.ahead } else { place + self.ahead.max(CANDIDATES) };
            self.tasks = queue::ready_rows(tx, filter, i64::try_from(limit).unwrap_or(i64::MAX))?;
            self.is_all = self.tasks.len() < limit;
            load::expect_dependencies(tx, &self.tasks)?;
        }
        Ok(self.tasks.get(place).cloned())
    }

    /// A command was carried out: a claim takes its task from the queue, anything else may have moved all of it.
    pub(super) fn changed(&mut self, command: &Command, granted: Option<&TaskId>) {
        match (command, granted) {
            (Command::Claim { .. }, Some(task)) => self.tasks.retain(|stored| stored.task.id != *task),
            _ => self.forget(),
        }
    }

    fn forget(&mut self) {
        self.tasks.clear();
        self.is_all = false;
    }
}
