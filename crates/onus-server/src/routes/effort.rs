//! Sessions and timesheets.

use super::body::limit;
use crate::route::{Asked, Rendered, Route, administration, get, post};
use crate::store::Store;
use onus_app::fleet::FleetView;
use onus_app::input;
use onus_app::output::OutputView;
use onus_app::remote::CallName;
use onus_app::session::SessionsView;
use onus_app::timesheet::{ApprovedView, Ask, TimesheetView};
use onus_app::view::{ChangeView, TaskView};
use onus_core::agents::workers;
use onus_core::id::{Handle, Seq, TaskId};
use onus_core::refusal::Refusal;
use onus_core::time::Date;
use onus_core::timesheet::{Dimension, month, month_of, week};
use schemars::JsonSchema;
use serde::Deserialize;

/// The route that can be followed.
pub(crate) const OUTPUT: &str = "output";

pub(super) fn routes() -> Vec<Route> {
    vec![
        get("/v1/sessions", "sessions", "Stretches of work, the latest first", sessions),
        post::<input::SessionInput, _>(
            "/v1/sessions",
            "session",
            "Go on working on a task that you hold, or rest and keep it",
            |receipt| ChangeView { task: TaskView::from(&receipt.task) },
        ),
        get(
            "/v1/sessions/{name}/output",
            OUTPUT,
            "What a session prints, from a byte on; with `Accept: text/event-stream` also what it prints next",
            output,
        ),
        get(
            "/v1/fleet",
            "fleet_status",
            "The agents: what each works on, and when it last said something",
            fleet,
        ),
        get(
            "/v1/timesheets",
            "timesheet",
            "Who worked how long on what, by each worker's own days",
            timesheet,
        ),
        administration(
            "/v1/timesheets/approve",
            CallName::ApproveTimesheet,
            "Put on record that a worker's days are as they are: people only",
            approve,
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SessionsQuery {
    task: Option<TaskId>,
    worker: Option<Handle>,
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<i64>,
}

fn sessions(store: &mut Store, _: &Asked, query: SessionsQuery) -> Result<SessionsView, Refusal> {
    let limit = limit(store, query.limit)?;
    store.sessions(query.task.as_ref(), query.worker.as_ref(), limit)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OutputQuery {
    /// The first byte
    #[schemars(range(min = 0))]
    from: Option<i64>,
    /// `text`, which is the default, or `steps`: what a coding client did, step by step
    format: Option<OutputFormat>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FleetQuery {}

fn fleet(store: &mut Store, _: &Asked, _: FleetQuery) -> Result<FleetView, Refusal> {
    let named = workers(&store.settings.agents)?;
    store.fleet_status(&named)
}

/// How a session's output is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OutputFormat {
    /// As it was printed.
    #[default]
    Text,
    /// What a coding client did, step by step.
    Steps,
}

impl OutputFormat {
    pub(crate) fn of(self, store: &mut Store, session: Seq, from: i64) -> Result<OutputView, Refusal> {
        match self {
            OutputFormat::Text => store.output(session, from),
            OutputFormat::Steps => store.steps(session, from),
        }
    }
}

fn output(store: &mut Store, asked: &Asked, query: OutputQuery) -> Result<OutputView, Refusal> {
    let from = query.from.unwrap_or(0);
    if from < 0 {
        return Err(Refusal::invalid("from: there is no byte before the first one"));
    }
    query.format.unwrap_or_default().of(store, asked.session()?, from)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TimesheetQuery {
    /// The first day; default: that of this month
    from: Option<Date>,
    /// The last day; default: today
    to: Option<Date>,
    /// `2026-11`, instead of days
    month: Option<String>,
    /// `2026-W46`, instead of days
    week: Option<String>,
    worker: Option<Handle>,
    /// What to add up by, with commas: worker, task, project, sprint, type, day, week
    by: Option<String>,
}

fn timesheet(store: &mut Store, asked: &Asked, query: TimesheetQuery) -> Result<TimesheetView, Refusal> {
    let mut by = Vec::new();
    for name in query.by.as_deref().unwrap_or("worker,task,day").split(',') {
        let dimension = Dimension::parse(name).ok_or_else(|| {
            Refusal::invalid(format!("by: {} is nothing to add up by", onus_core::id::shown(name)))
                .hint("worker, task, project, sprint, type, day, week")
        })?;
        if !by.contains(&dimension) {
            by.push(dimension);
        }
    }
    let whose = query.worker.as_ref().or(asked.actor());
    let (from, to) = match (query.from, query.to, &query.month, &query.week) {
        (None, None, None, None) => month_of(store.today(whose)?),
        (None, None, Some(text), None) => month(text).map_err(Refusal::invalid)?,
        (None, None, None, Some(text)) => week(text).map_err(Refusal::invalid)?,
        (Some(from), Some(to), None, None) => (from, to),
        (Some(from), None, None, None) => (from, store.today(whose)?.max(from)),
        _ => return Err(Refusal::invalid("name either days, a month or a week")),
    };
    store.timesheet(&Ask { from, to, worker: query.worker, by })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ApproveBody {
    worker: Handle,
    /// The first day
    from: Date,
    /// The last day
    to: Date,
}

fn approve(store: &mut Store, asked: &Asked, body: ApproveBody) -> Result<ApprovedView, Refusal> {
    store.approve_timesheet(asked.asker(), &body.worker, (body.from, body.to))
}

impl Rendered for ApprovedView {}
impl Rendered for FleetView {}
impl Rendered for OutputView {}
impl Rendered for SessionsView {}
impl Rendered for TimesheetView {}
