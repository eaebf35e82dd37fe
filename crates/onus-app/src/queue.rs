//! `list`, `ready`, `stale` and `status`: where the work stands.

use crate::limits;
use crate::remote::calls;
use crate::submit::{Judge, claim};
use crate::view::{CountsView, HeldView, ListView, NotReadyView, ReadyView, StaleView, StatusView, TaskView};
use crate::{Onus, Sight};
use onus_core::code::Code;
use onus_core::id::{Handle, TaskId, shown};
use onus_core::refusal::{Finding, Refusal};
use onus_core::settings::Settings;
use onus_core::task::{StateName, Task};
use onus_core::time::Now;
use onus_host::process_liveness;
use onus_store::error::StoreError;
use onus_store::port::Tx;
use onus_store::read::queue::{self, After, Filter, Passing, Which};
use onus_store::read::{ledger, show, survey};
use onus_store::{load, registry};

/// The most that one call lists.
pub const LIMIT_MAX: i64 = 10_000;

/// So many bytes of tasks' texts are listed at once, and so many tasks are read at a time: what is more comes with the next call.
pub(crate) const BYTES: usize = 2 * 1024 * 1024;
const AT_ONCE: i64 = 64;

/// So many ready tasks are looked at with the eyes of the worker who asks.
const JUDGED: usize = 20;

/// `ready` looks at this many times its limit to say why tasks are not ready.
const WINDOW: i64 = 5;

impl Onus {
    pub fn list(
        &mut self,
        which: Which,
        filter: &Filter,
        cursor: Option<&str>,
        limit: i64,
    ) -> Result<ListView, Refusal> {
        if let Some(answer) = self.remote(|| calls::List {
            which,
            filter: filter.clone(),
            cursor: cursor.map(str::to_owned),
            limit,
        })? {
            return Ok(answer);
        }
        let after = cursor.map_or(Ok(After::START), |text| parse_cursor(text, which))?;
        let limit = limit.clamp(1, LIMIT_MAX);
        let (tasks, more) = self
            .ask(|tx| bounded(limit, after, |after, limit| queue::list(tx, which, filter, after, limit)))?;
        let next = tasks.last().filter(|_| more).map(|last| {
            let after = After::task(last);
            format_cursor(after, which)
        });
        Ok(ListView { tasks: tasks.iter().map(TaskView::from).collect(), next })
    }

    pub fn ready(&mut self, filter: &Filter, limit: i64) -> Result<ReadyView, Refusal> {
        if let Some(answer) = self.remote(|| calls::Ready { filter: filter.clone(), limit })? {
            return Ok(answer);
        }
        self.ask(|tx| {
            let limit = limit.clamp(1, LIMIT_MAX);
            let (tasks, _) =
                bounded(limit, After::START, |after, limit| queue::ready(tx, filter, after, limit))?;
            let wanted = (limit * WINDOW).clamp(20, 1_000);
            let mut counts = CountsView::default();
            let mut rest = Vec::new();
            queue::window(tx, filter, wanted + 1, &mut |passing| {
                if counts.examined == wanted {
                    counts.more = true;
                    return Ok(());
                }
                count(&mut counts, &passing);
                let is_ready = passing.state == StateName::Open && !passing.waiting;
                if !is_ready && (rest.len() as i64) < limit {
                    rest.push((passing.waiting, why_not(&passing)?));
                }
                Ok(())
            })?;
            let mut not_ready = Vec::with_capacity(rest.len());
            for (waiting, mut view) in rest {
                if waiting {
                    view.waits_for.extend(incomplete(tx, &view.task)?);
                }
                not_ready.push(view);
            }
            Ok(ReadyView {
                tasks: tasks.iter().map(TaskView::from).collect(),
                not_ready,
                not_for_caller: Vec::new(),
                counts,
            })
        })
    }

    /// What is ready, and what of it the map, a lane or a scope keeps from this worker. Without a map nothing does.
    pub fn ready_for(
        &mut self,
        actor: Option<&Handle>,
        filter: &Filter,
        limit: i64,
    ) -> Result<ReadyView, Refusal> {
        if let Some(answer) = self.remote(|| calls::ReadyFor { filter: filter.clone(), limit })? {
            return Ok(answer);
        }
        let mut view = self.ready(filter, limit)?;
        let Some(actor) = actor else { return Ok(view) };
        // A map that cannot be read is the claim's trouble; the queue is what it is.
        let Ok(policy) = self.policy() else { return Ok(view) };
        if policy.in_force().is_some() || limits::are_set(&self.settings) {
            let tasks = view.tasks.iter().take(JUDGED);
            view.not_for_caller = self.judge(&policy, |judge| {
                tasks.map(|task| not_for(judge, actor, task)).filter_map(Result::transpose).collect()
            })?;
        }
        Ok(view)
    }

    /// Tasks that waited for this one, or of which it is a slice, and that can be claimed now.
    pub fn made_ready(&mut self, by: &TaskId) -> Result<Vec<TaskId>, Refusal> {
        if let Some(answer) = self.remote(|| calls::MadeReady { by: by.clone() })? {
            return Ok(answer);
        }
        self.ask(|tx| {
            let mut ready = Vec::new();
            let parent = load::task(tx, by)?.and_then(|found| found.task.spec.parent);
            for id in show::dependents(tx, by)?.into_iter().take(JUDGED).chain(parent) {
                let Some(found) = load::task(tx, &id)? else { continue };
                let task = found.task;
                let waits = load::dependencies_of(tx, &task)?;
                let is_free = waits.iter().all(|on| on.excepted || on.state == Some(StateName::Complete))
                    && load::parts(tx, &id)?.iter().all(|(_, state)| state.is_terminal());
                if is_free && task.state.name() == StateName::Open {
                    ready.push(id);
                }
            }
            Ok(ready)
        })
    }

    /// Held tasks whose lease has run out or whose holder is dead, the longest silent first.
    pub fn stale(&mut self) -> Result<StaleView, Refusal> {
        let mut stale: Vec<HeldView> = self.held()?.into_iter().filter(|held| held.is_stale()).collect();
        if self.sight == Sight::Workstations {
            for held in &mut stale {
                held.left = Some(self.left_behind(held)?);
            }
        }
        Ok(StaleView { stale })
    }

    pub fn held(&mut self) -> Result<Vec<HeldView>, Refusal> {
        if let Some(answer) = self.remote(|| calls::Held {})? {
            return Ok(answer);
        }
        let settings = self.settings.clone();
        self.ask(|tx| held(tx, &settings))
    }

    pub fn status(&mut self) -> Result<StatusView, Refusal> {
        let mut view = self.stored_status()?;
        view.warnings.extend(self.unguarded());
        Ok(view)
    }

    fn stored_status(&mut self) -> Result<StatusView, Refusal> {
        if let Some(answer) = self.remote(|| calls::Status {})? {
            return Ok(answer);
        }
        let settings = self.settings.clone();
        let store = self.store.shown();
        self.ask(|tx| {
            let workspace = load::workspace(tx)?;
            let mut counts: std::collections::BTreeMap<String, i64> =
                StateName::ALL.iter().map(|state| (state.name().to_owned(), 0)).collect();
            for (state, count) in survey::states(tx)? {
                counts.insert(state.name().to_owned(), count);
            }
            Ok(StatusView {
                store,
                workspace: workspace.uid,
                generation: workspace.generation,
                projects: registry::projects(tx)?.iter().map(ToString::to_string).collect(),
                counts,
                held: held(tx, &settings)?,
                ledger_entries: ledger::count(tx)?,
                last_checkpoint: ledger::checkpoints(tx)?.last().map(|checkpoint| checkpoint.seq),
                warnings: Vec::new(),
            })
        })
    }
}

/// Tasks a part at a time, until there are enough of them, or of their words; and whether there are more.
fn bounded(
    limit: i64,
    mut after: After,
    mut read: impl FnMut(After, i64) -> onus_store::error::Result<Vec<Task>>,
) -> onus_store::error::Result<(Vec<Task>, bool)> {
    let (mut all, mut bytes): (Vec<Task>, usize) = (Vec::new(), 0);
    loop {
        // One more than is wanted tells whether there are more.
        let wanted = (limit + 1 - all.len() as i64).min(AT_ONCE);
        let part = read(after, wanted)?;
        let is_last = (part.len() as i64) < wanted;
        for task in part {
            if all.len() as i64 == limit || (bytes > BYTES && !all.is_empty()) {
                return Ok((all, true));
            }
            bytes += task.bytes();
            after = After::task(&task);
            all.push(task);
        }
        if is_last {
            return Ok((all, false));
        }
    }
}

fn held(tx: &mut dyn Tx, settings: &Settings) -> onus_store::error::Result<Vec<HeldView>> {
    let now = tx.now()?;
    let live = show::live(tx)?;
    Ok(live.into_iter().map(|held| held_view(held, settings, &now)).collect())
}

fn held_view(held: show::HeldNow, settings: &Settings, now: &Now) -> HeldView {
    let lease = &held.assignment.lease;
    let vital = process_liveness::of(lease);
    let grace = settings.lease.grace(held.task_type.as_deref());
    HeldView {
        renewed_at: lease.renewed_at,
        expires_at: lease.expires_at(),
        expired_for_ms: lease.late_by(now).map(|late| late.0),
        may_be_taken_over: lease.may_be_taken_over(now, grace, vital),
        dead: lease.death(now, vital),
        task: held.task,
        title: held.title,
        state: held.state,
        assignee: held.assignment.assignee,
        workstation: held.assignment.workstation,
        epoch: held.assignment.epoch,
        left: None,
    }
}

/// Why a task cannot be claimed, as far as its own row tells.
fn why_not(passing: &Passing<'_>) -> onus_store::error::Result<NotReadyView> {
    let mut reasons = Vec::new();
    match passing.state {
        StateName::InProgress => reasons.push(Code::LeaseHeld),
        StateName::Blocked => reasons.push(Code::NotClaimable),
        StateName::Open | StateName::Complete | StateName::Dropped => {}
    }
    if passing.waiting {
        reasons.push(Code::DependencyIncomplete);
    }
    let blocker = passing.blocker.filter(|_| passing.state == StateName::Blocked);
    Ok(NotReadyView {
        task: passing.id.parse().map_err(StoreError::Corrupt)?,
        title: passing.title.to_owned(),
        reasons: reasons.iter().map(ToString::to_string).collect(),
        waits_for: blocker.map(str::to_owned).into_iter().collect(),
    })
}

/// The dependencies and slices that a task waits for.
fn incomplete(tx: &mut dyn Tx, task: &TaskId) -> onus_store::error::Result<Vec<String>> {
    let dependencies = load::dependencies(tx, task)?;
    let incomplete = dependencies.iter().filter(|one| one.state != Some(StateName::Complete));
    let parts = load::parts(tx, task)?;
    let going_on = parts.iter().filter(|(_, state)| !state.is_terminal()).map(|(id, _)| id);
    Ok(incomplete.map(|one| &one.id).chain(going_on).map(ToString::to_string).collect())
}

/// What concerns the task and the worker. Where it would work is asked when it claims.
fn not_for(judge: &mut Judge<'_>, actor: &Handle, task: &TaskView) -> Result<Option<NotReadyView>, Refusal> {
    let Err(findings) = judge.claim(&claim(Some(actor), &task.id, None, None)?)? else { return Ok(None) };
    let concerns = |finding: &Finding| {
        matches!(
            finding.code,
            Code::RoutingDenied
                | Code::LaneFull
                | Code::ScopeOverlap
                | Code::ScopeViolation
                | Code::SelfReview
                | Code::BudgetExceeded
        )
    };
    let mut reasons: Vec<String> = Vec::new();
    let mut waits_for = Vec::new();
    for finding in findings.into_iter().filter(concerns) {
        let code = finding.code.to_string();
        if !reasons.contains(&code) {
            reasons.push(code);
        }
        waits_for.push(finding.detail);
    }
    let view = NotReadyView { task: task.id.clone(), title: task.title.clone(), reasons, waits_for };
    Ok(Some(view).filter(|view| !view.reasons.is_empty()))
}

fn count(counts: &mut CountsView, passing: &Passing<'_>) {
    counts.examined += 1;
    match (passing.state, passing.waiting) {
        (StateName::InProgress, _) => counts.in_progress += 1,
        (StateName::Blocked, _) => counts.blocked += 1,
        (_, true) => counts.waiting += 1,
        (_, false) => counts.ready += 1,
    }
}

/// A cursor belongs to one order: by priority for what is active, by age for the rest.
fn order(which: Which) -> char {
    match which {
        Which::Only(state) if state.is_terminal() => 'b',
        Which::All => 'b',
        Which::Active | Which::Only(_) => 'p',
    }
}

fn format_cursor(after: After, which: Which) -> String {
    format!("{}{}.{}", order(which), after.priority, after.born)
}

fn parse_cursor(text: &str, which: Which) -> Result<After, Refusal> {
    let parsed =
        text.strip_prefix(order(which)).and_then(|rest| rest.split_once('.')).and_then(|(priority, born)| {
            Some(After { priority: priority.parse().ok()?, born: born.parse().ok()? })
        });
    parsed.ok_or_else(|| {
        Refusal::invalid(format!("{} is not a cursor of this list", shown(text)))
            .hint("pass the `next` of the previous page, with the same --state")
    })
}
