//! `list`, `ready`, `stale` and `status`: where the work stands.

use crate::submit::{Judge, claim};
use crate::view::{CountsView, HeldView, ListView, NotReadyView, ReadyView, StaleView, StatusView, TaskView};
use crate::{Onus, Sight};
use onus_core::code::Code;
use onus_core::id::{Handle, shown};
use onus_core::refusal::{Finding, Refusal};
use onus_core::settings::Settings;
use onus_core::task::StateName;
use onus_core::time::Now;
use onus_host::vital;
use onus_store::port::{Store, Tx};
use onus_store::read::queue::{self, After, Filter, Queued, Which};
use onus_store::read::{ledger, story, survey};
use onus_store::{load, registry};

/// The most that one call lists.
pub const LIMIT_MAX: i64 = 10_000;

/// So many ready tasks are looked at with the eyes of the worker who asks.
const JUDGED: usize = 20;

/// `ready` looks at this many times its limit to say why tasks are not ready.
const WINDOW: i64 = 5;

impl<S: Store> Onus<S> {
    pub fn list(
        &mut self,
        which: Which,
        filter: &Filter,
        cursor: Option<&str>,
        limit: i64,
    ) -> Result<ListView, Refusal> {
        if let Some(answer) = self.far("list", &(which, filter, cursor, limit))? {
            return Ok(answer);
        }
        let after = cursor.map_or(Ok(After::START), |text| parse_cursor(text, which))?;
        let mut tasks = self.ask(|tx| queue::list(tx, which, filter, after, limit + 1))?;
        let more = tasks.len() as i64 > limit;
        tasks.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let next = tasks.last().filter(|_| more).map(|last| {
            let after = After { priority: last.spec.priority.rank(), born: last.born };
            format_cursor(after, which)
        });
        Ok(ListView { tasks: tasks.iter().map(TaskView::from).collect(), next })
    }

    pub fn ready(&mut self, filter: &Filter, limit: i64) -> Result<ReadyView, Refusal> {
        if let Some(answer) = self.far("ready", &(filter, limit))? {
            return Ok(answer);
        }
        self.ask(|tx| {
            let tasks = queue::ready(tx, filter, limit)?;
            let wanted = (limit * WINDOW).clamp(20, 1_000);
            let mut window = queue::window(tx, filter, wanted + 1)?;
            let more = window.len() as i64 > wanted;
            window.truncate(usize::try_from(wanted).unwrap_or(usize::MAX));
            let mut not_ready = Vec::new();
            let rest =
                window.iter().filter(|queued| queued.waiting || queued.state != StateName::Open.name());
            for queued in rest.take(usize::try_from(limit).unwrap_or(usize::MAX)) {
                not_ready.push(why_not(tx, queued)?);
            }
            Ok(ReadyView {
                tasks: tasks.iter().map(TaskView::from).collect(),
                not_ready,
                not_for_caller: Vec::new(),
                counts: counts(&window, more),
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
        if let Some(answer) = self.far("ready_for", &(filter, limit))? {
            return Ok(answer);
        }
        let mut view = self.ready(filter, limit)?;
        // A map that cannot be read is the claim's trouble; the queue is what it is.
        let (Some(actor), Ok(policy)) = (actor, self.policy()) else { return Ok(view) };
        if policy.in_force().is_some() {
            let tasks = view.tasks.iter().take(JUDGED);
            view.not_for_caller = self.judge(&policy, |judge| {
                tasks.map(|task| not_for(judge, actor, task)).filter_map(Result::transpose).collect()
            })?;
        }
        Ok(view)
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
        if let Some(answer) = self.far("held", &())? {
            return Ok(answer);
        }
        let settings = self.settings.clone();
        self.ask(|tx| held(tx, &settings))
    }

    pub fn status(&mut self) -> Result<StatusView, Refusal> {
        if let Some(answer) = self.far("status", &())? {
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
            })
        })
    }
}

fn held(tx: &mut dyn Tx, settings: &Settings) -> onus_store::error::Result<Vec<HeldView>> {
    let now = tx.now()?;
    let live = story::live(tx)?;
    Ok(live.into_iter().map(|held| held_view(held, settings, &now)).collect())
}

fn held_view(held: story::Held, settings: &Settings, now: &Now) -> HeldView {
    let lease = &held.assignment.lease;
    let vital = vital::of(lease);
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

fn why_not(tx: &mut dyn Tx, queued: &Queued) -> onus_store::error::Result<NotReadyView> {
    let mut reasons = Vec::new();
    let mut waits_for = Vec::new();
    match queued.state.as_str() {
        "in_progress" => reasons.push(Code::LeaseHeld),
        "blocked" => {
            reasons.push(Code::NotClaimable);
            waits_for.extend(queued.blocker.clone());
        }
        _ => {}
    }
    if queued.waiting {
        reasons.push(Code::DependencyIncomplete);
        let dependencies = load::dependencies(tx, &queued.id)?;
        let incomplete =
            dependencies.iter().filter(|dependency| dependency.state != Some(StateName::Complete));
        waits_for.extend(incomplete.map(|dependency| dependency.id.to_string()));
    }
    Ok(NotReadyView {
        task: queued.id.clone(),
        title: queued.title.clone(),
        reasons: reasons.iter().map(ToString::to_string).collect(),
        waits_for,
    })
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

fn counts(window: &[Queued], more: bool) -> CountsView {
    let mut counts = CountsView { examined: window.len() as i64, more, ..CountsView::default() };
    for queued in window {
        match (queued.state.as_str(), queued.waiting) {
            ("in_progress", _) => counts.in_progress += 1,
            ("blocked", _) => counts.blocked += 1,
            (_, true) => counts.waiting += 1,
            (_, false) => counts.ready += 1,
        }
    }
    counts
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
