//! `report sprint`: who and what had how much, what came of it, and how it flowed.

use crate::Onus;
use crate::remote::calls;
use onus_core::id::Handle;
use onus_core::refusal::Refusal;
use onus_core::report::{DayFlow, Flow, Group, Taken, Tally};
use onus_core::task::StateName;
use onus_core::time::{Date, Timestamp};
use onus_core::timesheet::days_before;
use onus_host::zone;
use onus_store::read::report::{self, Planned, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most days of flow that one report has: those before are in the sums of the first.
const DAYS_MAX: u16 = 62;

/// The tasks of one sprint, or of all.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SprintView {
    /// Absent for all sprints together.
    pub sprint: Option<String>,
    pub tasks: i64,
    pub states: BTreeMap<String, i64>,
    /// The assignments of these tasks, all together.
    pub total: Group,
    /// Each the busiest first.
    pub workers: Vec<Group>,
    pub workstations: Vec<Group>,
    pub types: Vec<Group>,
    pub sprints: Vec<Group>,
    /// From the day on which the first task was asked for.
    pub flow: Vec<DayFlow>,
    /// Completed tasks in the last seven days.
    pub completed_last_week: i64,
}

impl Onus {
    pub fn report_sprint(
        &mut self,
        actor: Option<&Handle>,
        sprint: Option<&str>,
    ) -> Result<SprintView, Refusal> {
        if let Some(answer) = self.remote(|| calls::ReportSprint { sprint: sprint.map(str::to_owned) })? {
            return Ok(answer);
        }
        let (zone, now) = (self.zone_of(actor)?, self.now()?);
        let (tally, planned, flow) = self.ask(|tx| {
            let (mut tally, mut planned) = (Tally::default(), Vec::new());
            report::planned(tx, sprint, &mut |task| {
                tally.task(task.state);
                planned.push(task);
                Ok(())
            })?;
            report::taken(tx, sprint, &mut |row| {
                tally.assignment(&Taken {
                    task: &row.task,
                    assignee: &row.assignee,
                    workstation: &row.workstation,
                    task_type: row.task_type.as_deref(),
                    sprint: row.sprint.as_deref(),
                    end_reason: row.end_reason.as_deref(),
                    forced: row.forced,
                    route: row.route.as_ref(),
                });
                Ok(())
            })?;
            let mut flow = match days(&zone, now, &planned) {
                Ok(flow) => flow,
                Err(refusal) => return Ok((tally, planned, Err(refusal))),
            };
            if let Some(flow) = &mut flow {
                let span = Span { from: flow.begin(), to: flow.end() };
                for verb in Flow::VERBS {
                    report::times_of_sprint(tx, verb, span, sprint, &mut |at| flow.count(verb, at))?;
                }
            }
            Ok((tally, planned, Ok(flow)))
        })?;
        let of = |state: StateName| planned.iter().filter(|task| task.state == state).count() as i64;
        let scope = planned.len() as i64 - of(StateName::Dropped);
        let flow = flow?.map_or_else(Vec::new, |flow| flow.days(scope, of(StateName::Complete)));
        let last_week = flow.iter().rev().take(7).map(|day| day.completed).sum();
        Ok(SprintView {
            sprint: sprint.map(str::to_owned),
            tasks: planned.len() as i64,
            states: tally.states(),
            total: tally.total(),
            workers: tally.workers(),
            workstations: tally.workstations(),
            types: tally.types(),
            sprints: tally.sprints(),
            flow,
            completed_last_week: last_week,
        })
    }
}

/// From the day on which the first task was asked for; none without a task. What happened on each is the ledger's to say: a
/// task that was reopened and completed again was completed twice.
fn days(zone: &str, now: Timestamp, planned: &[Planned]) -> Result<Option<Flow>, Refusal> {
    let Some(first) = planned.iter().map(|task| task.created_at).min() else { return Ok(None) };
    let date = |at: Timestamp| zone::date(zone, at).map_err(Refusal::invalid);
    let last: Date = date(now)?;
    let first = date(first)?.min(last).max(days_before(last, DAYS_MAX - 1));
    Ok(Some(Flow::new(zone::days(zone, first, last).map_err(Refusal::invalid)?)))
}
