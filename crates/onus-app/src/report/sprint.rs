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
use onus_store::read::report::{self, Planned};
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
        let (tally, planned, lost) = self.ask(|tx| {
            let (mut tally, mut planned, mut lost) = (Tally::default(), Vec::new(), Vec::new());
            report::planned(tx, sprint, &mut |task| {
                tally.task(task.state);
                planned.push(task);
                Ok(())
            })?;
            report::taken(tx, sprint, &mut |row| {
                if row.end_reason.as_deref() == Some("taken_over") {
                    lost.extend(row.ended_at);
                }
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
            Ok((tally, planned, lost))
        })?;
        let flow = flow(&zone, now, &planned, &lost)?;
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

/// By the rows: a task counts where it stands now, so that the sums are those of the states.
fn flow(
    zone: &str,
    now: Timestamp,
    planned: &[Planned],
    lost: &[Timestamp],
) -> Result<Vec<DayFlow>, Refusal> {
    let Some(first) = planned.iter().map(|task| task.created_at).min() else { return Ok(Vec::new()) };
    let date = |at: Timestamp| zone::date(zone, at).map_err(Refusal::invalid);
    let last: Date = date(now)?;
    let first = date(first)?.min(last).max(days_before(last, DAYS_MAX - 1));
    let mut flow = Flow::new(zone::days(zone, first, last).map_err(Refusal::invalid)?);
    for task in planned {
        flow.count("added", task.created_at);
        let ended = task.closed_at.filter(|_| task.state.is_terminal());
        let verb = if task.state == StateName::Complete { "completed" } else { "dropped" };
        ended.into_iter().for_each(|at| flow.count(verb, at));
    }
    lost.iter().for_each(|at| flow.count("taken_over", *at));
    let of = |state: StateName| planned.iter().filter(|task| task.state == state).count() as i64;
    Ok(flow.days(planned.len() as i64 - of(StateName::Dropped), of(StateName::Complete)))
}
