//! `claim --next`: the most important ready task, picked in the same transaction.

use super::{Call, SubmitAnswer, Target, findings, unexpected};
use onus_core::code::Code;
use onus_core::command::{Command, Envelope};
use onus_core::decide::Screen;
use onus_core::id::{Handle, TaskId, WorkstationName};
use onus_core::limits;
use onus_core::refusal::{Finding, Refusal};
use onus_store::apply;
use onus_store::error::Result as StoreResult;
use onus_store::load::{self, Stored};
use onus_store::port::{Outcome, Tx};
use onus_store::read::queue::{self, After, Filter, Waiting};

/// So many ready tasks, from the head of the queue, are read as a whole.
const HEAD: usize = 16;

/// Behind the head so many are looked at in all, a page at a time, by what can be told against them at a glance.
const LOOKED_AT_MAX: usize = 10_000;
const PAGE: i64 = 500;

/// So many in all are decided one by one: each takes several questions of the store.
const DECIDED_MAX: usize = 256;

/// So many of the tasks that were passed over are named in the answer.
const NAMED_MAX: usize = 5;

impl Call<'_> {
    /// Offers the ready tasks one by one, the most important first. What stands against one of them may not stand
    /// against the next; what concerns the caller or the workstation stands against all. Nothing is written about the
    /// tasks that are passed over: whoever polls an empty queue leaves no trace.
    pub(super) fn decide_next(
        &mut self,
        tx: &mut dyn Tx,
        filter: &Filter,
    ) -> Result<Outcome<SubmitAnswer>, Refusal> {
        let mut passed = Passed::default();
        let mut last = After::START;
        for place in 0..HEAD {
            let Some(stored) = self.common.ready.at(tx, filter, place)? else {
                return self.nothing_ready(tx, passed);
            };
            last = After::task(&stored.task);
            if let Some(outcome) = self.offer(tx, stored, &mut passed)? {
                return Ok(outcome);
            }
        }
        self.decide_behind(tx, filter, last, passed)
    }

    /// Goes on behind the head of the queue.
    fn decide_behind(
        &mut self,
        tx: &mut dyn Tx,
        filter: &Filter,
        mut last: After,
        mut passed: Passed,
    ) -> Result<Outcome<SubmitAnswer>, Refusal> {
        let grantee = match &self.envelope.command {
            Command::Claim { assignee: Some(assignee), .. } => load::caller(tx, Some(assignee))?,
            _ => load::caller(tx, self.envelope.actor.as_ref())?,
        };
        let (scopes, occupied) = self.common.at_work.everybody(tx)?;
        let screen = Screen::new(self.policy, &grantee, &scopes, occupied);
        loop {
            let page = queue::ready_after(tx, filter, last, PAGE)?;
            let is_last = page.len() < usize::try_from(PAGE).unwrap_or_default();
            for Waiting { id, at, spec } in page {
                last = at;
                if passed.is_enough() {
                    return self.nothing_ready(tx, passed);
                }
                let against = screen.against(&spec);
                if !against.is_empty() {
                    passed.by(&id, against);
                    continue;
                }
                let stored = load::task(tx, &id)?.ok_or_else(|| unexpected("a ready task vanished"))?;
                if let Some(outcome) = self.offer(tx, stored, &mut passed)? {
                    return Ok(outcome);
                }
            }
            if is_last {
                return self.nothing_ready(tx, passed);
            }
        }
    }

    /// The answer, if this task is the one, or if what stands against it stands against every other one.
    fn offer(
        &mut self,
        tx: &mut dyn Tx,
        stored: Stored,
        passed: &mut Passed,
    ) -> Result<Option<Outcome<SubmitAnswer>>, Refusal> {
        passed.decided += 1;
        let id = stored.task.id.clone();
        let envelope = Envelope { task: Some(id.clone()), ..self.envelope.clone() };
        let (policy, now, at_work) = (self.policy, self.now.wall, &mut self.common.at_work);
        let loaded = load::facts_of(tx, &envelope, Some(stored), policy, now, at_work)?;
        let asked = loaded.ground.place.asked.clone();
        match self.decide_one(tx, &envelope, loaded)? {
            Outcome::Rollback(Err(refusal)) if self.is_about_task(&refusal, asked.as_ref()) => {
                passed.by(&id, findings(refusal));
                Ok(None)
            }
            outcome => Ok(Some(outcome)),
        }
    }

    /// Whether a refused claim of whatever comes next may go on to another task.
    pub(super) fn is_about_task(&self, refusal: &Refusal, asked: Option<&WorkstationName>) -> bool {
        let (Target::Next(_), Command::Claim { workstation, here, .. }) =
            (self.target, &self.envelope.command)
        else {
            return false;
        };
        match refusal.code {
            Code::RoutingDenied
            | Code::LaneFull
            | Code::ScopeOverlap
            | Code::ScopeViolation
            | Code::SelfReview
            | Code::DependencyIncomplete => true,
            Code::BudgetExceeded => limits::is_about_task(&refusal.findings),
            // The identity map chose the place for this task, and may choose another one for the next.
            Code::WorkstationBusy
            | Code::WorkstationNotReady
            | Code::WorkstationQuarantined
            | Code::WorkstationUnknown => asked.is_some() && asked != workstation.as_ref().or(here.as_ref()),
            _ => false,
        }
    }

    fn nothing_ready(&self, tx: &mut dyn Tx, passed: Passed) -> Result<Outcome<SubmitAnswer>, Refusal> {
        // Identity errors come before "nothing ready": a stranger is not told about the queue.
        onus_core::registry::known(&load::caller(tx, self.envelope.actor.as_ref())?)?;
        Ok(Outcome::Rollback(Err(passed.nothing_ready(self.envelope.actor.as_ref()))))
    }
}

/// The ready tasks that were not for this caller.
#[derive(Debug, Default)]
struct Passed {
    tasks: usize,
    decided: usize,
    first: Vec<Finding>,
}

impl Passed {
    fn by(&mut self, task: &TaskId, against: Vec<Finding>) {
        self.tasks += 1;
        if self.tasks <= NAMED_MAX {
            let about = |finding| Finding { task: Some(task.to_string()), ..finding };
            self.first.extend(against.into_iter().take(1).map(about));
        }
    }

    fn is_enough(&self) -> bool {
        self.tasks >= LOOKED_AT_MAX || self.decided >= DECIDED_MAX
    }

    fn nothing_ready(self, who: Option<&Handle>) -> Refusal {
        let (detail, hint) = match self.tasks {
            0 => (
                "no task is ready for this claim".to_owned(),
                "onus ready tells what the others wait for".into(),
            ),
            n if self.is_enough() => (
                format!(
                    "the first {n} ready tasks cannot be claimed here now; those behind them were not looked at"
                ),
                "ask for fewer: onus claim --next --type TYPE, or --role ROLE, or onus claim TASK".into(),
            ),
            n => (
                format!("of {n} ready tasks none can be claimed here now"),
                format!("onus ready --as {} tells why", who.map_or("@you", Handle::as_str)),
            ),
        };
        Refusal::new(Code::NothingReady, detail).hint(hint).findings(self.first)
    }
}

/// The head of the queue as the commands of one transaction find it: read once for all that want the next task.
#[derive(Debug)]
pub(super) struct ReadyHead {
    filter: Filter,
    tasks: Vec<Stored>,
    /// Nothing is ready beyond these.
    is_all: bool,
    /// So many are read at a time.
    ahead: usize,
}

impl ReadyHead {
    /// For calls of which some want whatever comes next. On another machine it is read at once, before anything is
    /// changed, together with what else was announced.
    pub(super) fn for_calls<'t>(
        tx: &mut dyn Tx,
        targets: impl Iterator<Item = &'t Target>,
    ) -> StoreResult<ReadyHead> {
        let mut filters = targets.filter_map(|target| match target {
            Target::Next(filter) => Some(filter),
            Target::Named | Target::At(_) => None,
        });
        let first = filters.next();
        let filter = first.cloned().unwrap_or_default();
        let mut ready = ReadyHead { filter, tasks: Vec::new(), is_all: false, ahead: 1 + filters.count() };
        if let Some(filter) = first.filter(|_| tx.prefetches()) {
            queue::prefetch_ready(tx, filter, limit(ready.ahead))?;
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
            let wanted = if place == 0 { self.ahead } else { place + self.ahead.max(HEAD) };
            self.tasks = queue::ready_rows(tx, filter, limit(wanted))?;
            self.is_all = self.tasks.len() < wanted;
            load::prefetch_dependencies(tx, &self.tasks)?;
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
