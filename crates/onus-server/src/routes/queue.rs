//! Where the work stands: `ready`, `stale`, `routes/explain`, `ledger`.

use super::body::{Nothing, filter, limit};
use crate::route::{Asked, Rendered, Route, get};
use crate::store::Store;
use onus_app::ledger::RangeView;
use onus_app::route::{ExplainView, Subject};
use onus_app::view::{LedgerView, ReadyView, StaleView};
use onus_core::id::{ProjectKey, Role, TaskId, TaskType};
use onus_core::refusal::Refusal;
use onus_core::task::Priority;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn routes() -> Vec<Route> {
    vec![
        get("/v1/ready", "ready", "Tasks that can be claimed now, and why the rest cannot", ready),
        get("/v1/stale", "stale", "Held tasks whose lease has run out", stale),
        get("/v1/routes/explain", "explain", "Who would be given a task, and why", explain),
        get("/v1/ledger", "ledger", "The record, in the order in which it was written", ledger),
        get(
            "/v1/ledger/verify",
            "verify_ledger",
            "A stretch of the record: whether its hashes, links and numbers hold",
            verify,
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadyQuery {
    project: Option<ProjectKey>,
    #[serde(rename = "type")]
    task_type: Option<TaskType>,
    role: Option<Role>,
    lane: Option<i64>,
    sprint: Option<String>,
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<i64>,
}

fn ready(store: &mut Store, asked: &Asked, query: ReadyQuery) -> Result<ReadyView, Refusal> {
    let filter = filter(query.project, query.task_type, query.role, query.lane, query.sprint);
    let limit = limit(store, query.limit)?;
    store.ready_for(asked.actor(), &filter, limit)
}

fn stale(store: &mut Store, _: &Asked, _: Nothing) -> Result<StaleView, Refusal> {
    store.stale()
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExplainQuery {
    task: Option<TaskId>,
    /// Without a task: one of this type
    #[serde(rename = "type")]
    task_type: Option<TaskType>,
    /// Without a task: one of this priority
    priority: Option<Priority>,
}

fn explain(store: &mut Store, asked: &Asked, query: ExplainQuery) -> Result<ExplainView, Refusal> {
    let subject = match (query.task, query.task_type) {
        (Some(task), None) => Subject::Task(task),
        (None, Some(kind)) => {
            Subject::Kind { task_type: Some(kind), priority: query.priority.unwrap_or_default() }
        }
        _ => return Err(Refusal::invalid("name either a task or a type")),
    };
    store.explain(&subject, asked.actor(), None)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LedgerQuery {
    /// Only this task
    task: Option<TaskId>,
    /// Only entries behind this one
    #[schemars(range(min = 0))]
    after: Option<i64>,
    /// At most so many; without `after` or `task` the latest ones
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<i64>,
}

fn ledger(store: &mut Store, _: &Asked, query: LedgerQuery) -> Result<LedgerView, Refusal> {
    if query.after.is_some_and(|after| after < 0) {
        return Err(Refusal::invalid("after: the entries begin at 1"));
    }
    let limit = limit(store, query.limit)?;
    store.log(query.task.as_ref(), query.after, limit)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct VerifyQuery {
    /// Only entries behind this one; default: from the beginning
    #[schemars(range(min = 0))]
    after: Option<i64>,
    /// At most so many
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<i64>,
}

fn verify(store: &mut Store, _: &Asked, query: VerifyQuery) -> Result<RangeView, Refusal> {
    let after = query.after.unwrap_or(0);
    if after < 0 {
        return Err(Refusal::invalid("after: the entries begin at 1"));
    }
    let limit = limit(store, query.limit)?;
    store.verify_range(after, limit)
}

impl Rendered for RangeView {}
impl Rendered for ReadyView {}
impl Rendered for StaleView {}
impl Rendered for ExplainView {}
impl Rendered for LedgerView {}
