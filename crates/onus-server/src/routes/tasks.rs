//! `tasks`: ask, list, read.

use super::body::{filter, limit, text};
use crate::route::{Answer, Asked, Order, Rendered, Route, get, post};
use crate::store::Store;
use onus_app::show::StoryPart;
use onus_app::view::{AddView, ListView, StoryView};
use onus_core::command::Command;
use onus_core::id::{Handle, OriginRef, ProjectKey, Role, TaskId, TaskType};
use onus_core::refusal::Refusal;
use onus_core::task::{Check, CheckKind, CheckState, Priority, Risk, Spec, StateName};
use onus_store::read::queue::{Filter, Which};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn routes() -> Vec<Route> {
    vec![
        get("/v1/tasks", "list", "Tasks, the most important first", list),
        post("/v1/tasks", "add", "Ask for something: one ask, one task", add, |receipt| {
            AddView::from(receipt)
        }),
        get("/v1/tasks/{id}", "show", "The story of a task: its end, or what came before an entry", show),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// open, in_progress, blocked, complete, dropped or all; default: what somebody still has to do
    state: Option<String>,
    project: Option<ProjectKey>,
    #[serde(rename = "type")]
    task_type: Option<TaskType>,
    role: Option<Role>,
    lane: Option<i64>,
    sprint: Option<String>,
    /// Held by this worker now
    assignee: Option<Handle>,
    /// Only slices of this task
    parent: Option<TaskId>,
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<i64>,
    /// The `next` of an earlier page
    cursor: Option<String>,
}

fn list(store: &mut Store, _: &Asked, query: ListQuery) -> Result<ListView, Refusal> {
    let which = match query.state.as_deref() {
        None => Which::Active,
        Some("all") => Which::All,
        Some(name) => StateName::parse(name).map(Which::Only).ok_or_else(|| {
            let name = onus_core::id::shown(name);
            Refusal::invalid(format!(
                "state: {name} is not one of open, in_progress, blocked, complete, dropped, all"
            ))
        })?,
    };
    let filter = Filter {
        assignee: query.assignee,
        parent: query.parent,
        ..filter(query.project, query.task_type, query.role, query.lane, query.sprint)
    };
    let limit = limit(store, query.limit)?;
    store.list(which, &filter, query.cursor.as_deref(), limit)
}

/// A new task.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AddBody {
    /// What is to be done, in one line
    #[schemars(length(min = 1, max = 500))]
    title: String,
    body: Option<String>,
    #[serde(rename = "type")]
    task_type: Option<TaskType>,
    /// feature, defect, chore, docs, …
    kind: Option<String>,
    priority: Option<Priority>,
    risk: Option<Risk>,
    role: Option<Role>,
    lane: Option<i64>,
    sprint: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    /// Paths that the work may touch, as globs
    #[serde(default)]
    scope: Vec<String>,
    #[serde(default)]
    depends_on: Vec<TaskId>,
    parent: Option<TaskId>,
    merge_order: Option<i64>,
    /// Where the ask lives: `channel:key`. The same one twice is the same task.
    #[serde(alias = "origin")]
    origin_ask_ref: Option<OriginRef>,
    /// Commands that prove the work; those of agents wait for a person's approval
    #[serde(default)]
    checks: Vec<String>,
    project: Option<ProjectKey>,
}

fn add(_: &mut Store, _: &Asked, body: AddBody) -> Result<Order, Refusal> {
    let check = |command: &String| Check {
        command: command.trim().to_owned(),
        state: CheckState::Approved,
        kind: CheckKind::default(),
    };
    let spec = Spec {
        title: body.title.trim().to_owned(),
        body: body.body.as_deref().map(text),
        task_type: body.task_type,
        kind: body.kind.unwrap_or_else(|| "feature".to_owned()),
        priority: body.priority.unwrap_or_default(),
        risk: body.risk.unwrap_or_default(),
        role: body.role,
        lane: body.lane,
        sprint: body.sprint,
        tags: body.tags,
        scope: body.scope,
        parent: body.parent,
        merge_order: body.merge_order,
        origin: body.origin_ask_ref,
        checks: body.checks.iter().map(check).collect(),
    };
    let depends_on = body.depends_on.into_iter().collect();
    let command = Command::Add { spec: Box::new(spec), depends_on, archived: None };
    Ok(Order { project: body.project, ..Order::new(command) })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ShowQuery {
    /// What came before this entry: `earlier` of the last answer
    before: Option<i64>,
    /// At most so many entries: 1 to 1000, default 200
    limit: Option<i64>,
}

fn show(store: &mut Store, asked: &Asked, query: ShowQuery) -> Result<StoryView, Refusal> {
    store.show_part(asked.task()?, StoryPart { before: query.before, limit: query.limit })
}

impl Rendered for ListView {}

impl Rendered for StoryView {
    fn told(&self) -> Result<Answer, Refusal> {
        Ok(Answer::of(self)?.at(self.task.version))
    }
}

impl Rendered for AddView {
    fn told(&self) -> Result<Answer, Refusal> {
        let location = (self.outcome == "created").then(|| format!("/v1/tasks/{}", self.task.id));
        Ok(Answer { location, ..Answer::of(self)?.at(self.task.version) })
    }
}
