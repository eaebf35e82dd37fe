//! What agents have used of what they may (mission E10): asked for a decision, and shown to people. Nothing of it is stored:
//! sums are made of sessions and of what their records told.

use crate::Onus;
use crate::remote::calls;
use crate::timesheet::units;
use onus_core::facts::Caller;
use onus_core::id::{Handle, TaskId};
use onus_core::limits::{Budget, Figure, Limit, LimitScope, Measure, Used, figures};
use onus_core::refusal::Refusal;
use onus_core::settings::Settings;
use onus_core::task::Task;
use onus_core::time::Timestamp;
use onus_core::worker::{Kind, Worker};
use onus_host::zone;
use onus_store::load::limits::{self, Day};
use onus_store::port::{Store as _, Tx};
use onus_store::{load, registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The zone of everybody's day.
const UTC: &str = "UTC";

/// Limits, and what was used of them.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LimitsView {
    pub limits: Vec<LimitView>,
    /// Of a task: who is asked when one of them stops it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<Handle>,
}

/// One figure that has a limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitView {
    pub scope: LimitScope,
    /// The task, the agent or the sprint.
    pub of: String,
    pub measure: Measure,
    /// Cost in the currency, time in seconds.
    pub used: f64,
    pub limit: f64,
    /// Tokens were used whose cost nobody told: the cost is at least this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    pub reached: bool,
    /// In words: `4.80 of 5.00 USD`.
    pub text: String,
}

impl LimitView {
    fn new(figure: &Figure, currency: &str) -> LimitView {
        #[expect(clippy::cast_precision_loss, reason = "no limit has more digits than that")]
        let shown = |number: i64| match figure.measure {
            Measure::Cost => units(number),
            Measure::Time => number as f64 / 1_000.0,
            Measure::Tokens | Measure::Turns | Measure::Attempts => number as f64,
        };
        LimitView {
            scope: figure.scope,
            of: figure.of.clone(),
            measure: figure.measure,
            used: shown(figure.used),
            limit: shown(figure.limit),
            partial: figure.is_partial,
            reached: figure.is_reached(),
            text: figure.told(currency),
        }
    }

    /// Whether work that goes on is stopped by it: the attempt that is under way has not failed yet.
    pub fn stops(&self) -> bool {
        self.reached && self.measure != Measure::Attempts
    }
}

pub(crate) fn views(budgets: &[Budget], settings: &Settings) -> Vec<LimitView> {
    let currency = &settings.effort.currency;
    figures(budgets).iter().map(|figure| LimitView::new(figure, currency)).collect()
}

impl Onus {
    /// The limits that a task is under; without one those of every agent's day, of the sprints that somebody works for, and of
    /// everybody's day.
    pub fn limits(&mut self, task: Option<&TaskId>) -> Result<LimitsView, Refusal> {
        if let Some(answer) = self.remote(|| calls::Limits { task: task.cloned() })? {
            return Ok(answer);
        }
        let settings = self.settings.clone();
        if !are_set(&settings) {
            return Ok(LimitsView { limits: Vec::new(), ask: None });
        }
        self.store.read(|tx| {
            Ok(match task {
                Some(task) => limits_of_task(tx, &settings, task),
                None => limits_of_all(tx, &settings),
            })
        })?
    }
}

fn limits_of_task(tx: &mut dyn Tx, settings: &Settings, id: &TaskId) -> Result<LimitsView, Refusal> {
    let now = tx.now()?.wall;
    let task = load::task(tx, id)?.ok_or_else(|| crate::show::unknown_task(id))?.task;
    let holder = task.assignment().map(|held| load::worker(tx, &held.assignee)).transpose()?.flatten();
    let agent = holder.filter(|holder| holder.kind == Kind::Agent);
    let budgets = of_task(tx, settings, now, &task, agent.as_ref(), &mut UsedSoFar::default())?;
    let asker = load::caller(tx, Some(&task.created_by))?;
    let person = match asker {
        Caller::Registered(worker) if worker.is_human() => Some(worker.handle),
        _ => None,
    };
    Ok(LimitsView { limits: views(&budgets, settings), ask: settings.limits.ask.clone().or(person) })
}

fn limits_of_all(tx: &mut dyn Tx, settings: &Settings) -> Result<LimitsView, Refusal> {
    let now = tx.now()?.wall;
    let mut so_far = UsedSoFar::default();
    let mut budgets = Vec::new();
    budgets.extend(so_far.of_workspace_day(tx, settings, now)?);
    for row in registry::workers(tx, None)? {
        if row.worker.kind == Kind::Agent {
            budgets.extend(so_far.of_worker_day(tx, settings, now, &row.worker)?);
        }
    }
    if !settings.limits.sprint.is_none() {
        for sprint in limits::sprints(tx)? {
            budgets.extend(so_far.of_sprint(tx, settings, now, &sprint)?);
        }
    }
    Ok(LimitsView { limits: views(&budgets, settings), ask: None })
}

/// Whether there is anything to ask about.
pub(crate) fn are_set(settings: &Settings) -> bool {
    !settings.limits.is_none() || settings.agents.iter().any(|kind| !kind.limits.is_none())
}

/// What an agent would be held by if it had the task. A person's word over a limit counts from then on for the task, and for
/// a day's limit on that day.
pub(crate) fn of_task(
    tx: &mut dyn Tx,
    settings: &Settings,
    now: Timestamp,
    task: &Task,
    worker: Option<&Worker>,
    so_far: &mut UsedSoFar,
) -> Result<Vec<Budget>, Refusal> {
    if !are_set(settings) {
        return Ok(Vec::new());
    }
    let lifted = limits::lifted(tx, &task.id)?;
    let own = limits::used_by_task(tx, &task.id, lifted.map_or(0, |(seq, _)| seq), now)?;
    let mut budgets = Vec::new();
    let mut wider = Vec::new();
    wider.extend(so_far.of_workspace_day(tx, settings, now)?);
    if let Some(worker) = worker {
        wider.extend(so_far.of_worker_day(tx, settings, now, worker)?);
    }
    if let Some(sprint) = &task.spec.sprint {
        wider.extend(so_far.of_sprint(tx, settings, now, sprint)?);
    }
    for budget in wider {
        let begin = match budget.scope {
            LimitScope::WorkspaceDay => day_of(UTC, now)?.from,
            LimitScope::WorkerDay => day_of(worker.map_or(UTC, |worker| worker.tz.as_str()), now)?.from,
            LimitScope::Sprint | LimitScope::Task => Timestamp(0),
        };
        let is_lifted = lifted.is_some_and(|(_, at)| at >= begin);
        budgets.push(if is_lifted { Budget { used: own, ..budget } } else { budget });
    }
    let limit = settings.limits.task;
    if !limit.is_none() {
        budgets.push(Budget { scope: LimitScope::Task, of: task.id.to_string(), limit, used: own });
    }
    Ok(budgets)
}

/// What one call has added up already: whoever looks for the next task asks about many.
#[derive(Debug, Default)]
pub(crate) struct UsedSoFar(BTreeMap<String, Used>);

impl UsedSoFar {
    fn of_workspace_day(
        &mut self,
        tx: &mut dyn Tx,
        settings: &Settings,
        now: Timestamp,
    ) -> Result<Option<Budget>, Refusal> {
        let (scope, limit) = (LimitScope::WorkspaceDay, settings.limits.workspace_day);
        self.budget(tx, scope, "all", limit, |tx| Ok(limits::used_in_day(tx, day_of(UTC, now)?, now)?))
    }

    fn of_worker_day(
        &mut self,
        tx: &mut dyn Tx,
        settings: &Settings,
        now: Timestamp,
        worker: &Worker,
    ) -> Result<Option<Budget>, Refusal> {
        let limit = settings.limits.of_worker(&settings.agents, &worker.handle);
        self.budget(tx, LimitScope::WorkerDay, worker.handle.as_str(), limit, |tx| {
            Ok(limits::used_by_worker(tx, &worker.handle, day_of(&worker.tz, now)?, now)?)
        })
    }

    fn of_sprint(
        &mut self,
        tx: &mut dyn Tx,
        settings: &Settings,
        now: Timestamp,
        sprint: &str,
    ) -> Result<Option<Budget>, Refusal> {
        let limit = settings.limits.sprint;
        self.budget(tx, LimitScope::Sprint, sprint, limit, |tx| Ok(limits::used_by_sprint(tx, sprint, now)?))
    }

    /// Nothing is asked where there is no limit.
    fn budget(
        &mut self,
        tx: &mut dyn Tx,
        scope: LimitScope,
        of: &str,
        limit: Limit,
        ask: impl FnOnce(&mut dyn Tx) -> Result<Used, Refusal>,
    ) -> Result<Option<Budget>, Refusal> {
        if limit.is_none() {
            return Ok(None);
        }
        let key = format!("{} {of}", scope.name());
        let used = match self.0.get(&key) {
            Some(used) => *used,
            None => {
                let used = ask(tx)?;
                self.0.insert(key, used);
                used
            }
        };
        Ok(Some(Budget { scope, of: of.to_owned(), limit, used }))
    }
}

fn day_of(tz: &str, now: Timestamp) -> Result<Day, Refusal> {
    let today = zone::date(tz, now).map_err(Refusal::invalid)?;
    let days = zone::days(tz, today, today).map_err(Refusal::invalid)?;
    Ok(Day { from: days.begin(), to: days.end() })
}
