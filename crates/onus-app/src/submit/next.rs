//! `claim --next`: the most important ready task, picked in the same transaction.

use super::{Answer, Call, Target};
use onus_core::code::Code;
use onus_core::command::{Command, Envelope};
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use onus_store::apply;
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
    /// For calls of which some want whatever comes next. On another machine it is read at once, before anything is
    /// changed, together with what else was announced.
    pub(super) fn for_calls<'t>(
        tx: &mut dyn Tx,
        targets: impl Iterator<Item = &'t Target>,
    ) -> StoreResult<Ready> {
        let mut filters = targets.filter_map(|target| match target {
            Target::Next(filter) => Some(filter),
            Target::Named | Target::At(_) => None,
        });
        let first = filters.next();
        let filter = first.cloned().unwrap_or_default();
        let mut ready = Ready { filter, tasks: Vec::new(), is_all: false, ahead: 1 + filters.count() };
        if let Some(filter) = first.filter(|_| tx.prefetches()) {
            queue::expect_ready(tx, filter, limit(ready.ahead))?;
            ready.at(tx, filter, 0)?;
        }
        Ok(ready)
    }

    /// The ready task at a place of the queue.
    fn at(&mut self, tx: &mut dyn Tx, filter: &Filter, place: usize) -> StoreResult<Option<Stored>> {
        if self.filter != *filter {
            self.forget();
            self.filter = filter.clone();
        }
        if place >= self.tasks.len() && !self.is_all {
            // Whoever was refused the first one tries several.
            let wanted = if place == 0 { self.ahead } else { place + self.ahead.max(CANDIDATES) };
            self.tasks = queue::ready_rows(tx, filter, limit(wanted))?;
            self.is_all = self.tasks.len() < wanted;
            load::expect_dependencies(tx, &self.tasks)?;
        }
        Ok(self.tasks.get(place).cloned())
    }

    /// A command was carried out: a claim takes its task from the queue, and so does a completion that nobody waited for.
    /// Anything else may have moved all of it.
    pub(super) fn changed(
        &mut self,
        tx: &mut dyn Tx,
        command: &Command,
        task: Option<&TaskId>,
    ) -> StoreResult<()> {
        let taken = match (command, task) {
            _ if self.tasks.is_empty() && !self.is_all => return Ok(()),
            (Command::Claim { .. }, Some(task)) => Some(task),
            (Command::Complete { .. }, Some(task)) if !apply::is_waited_for(tx, task)? => Some(task),
            _ => None,
        };
        match taken {
            Some(task) => self.tasks.retain(|stored| stored.task.id != *task),
            None => self.forget(),
        }
        Ok(())
    }

    fn forget(&mut self) {
        self.tasks.clear();
        self.is_all = false;
    }
}

fn limit(tasks: usize) -> i64 {
    i64::try_from(tasks).unwrap_or(i64::MAX)
}
