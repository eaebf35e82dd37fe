//! `tasks`: ask, list, read.

use super::body::{filter, limit};
use crate::route::{Access, Answer, Asked, Rendered, Route, get, patch, post};
use crate::store::Store;
use onus_app::diff::{DiffPart, DiffView};
use onus_app::input;
use onus_app::show::StoryPart;
use onus_app::view::{AddView, ChangeView, ListView, StoryView, TaskView};
use onus_core::id::{Handle, ProjectKey, Role, TaskId, TaskType};
use onus_core::refusal::Refusal;
use onus_core::task::{Priority, StateName};
use onus_store::read::queue::{Filter, Which};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn routes() -> Vec<Route> {
    vec![
        get("/v1/tasks", "list", "Tasks, the most important first", list),
        Route {
            access: Access::Ask,
            ..post::<input::AddInput, _>(
                "/v1/tasks",
                "add",
                "Ask for something: one ask, one task",
                |receipt| AddView::from(receipt),
            )
        },
        patch::<input::EditInput, _>(
            "/v1/tasks/{id}",
            "edit",
            "Put what is asked for differently",
            |receipt| ChangeView { task: TaskView::from(&receipt.task) },
        ),
        get(
            "/v1/tasks/{id}/diff",
            "diff",
            "What a task's work changes, where the server has the repository",
            diff,
        ),
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
    /// Only tasks of this priority
    priority: Option<Priority>,
    /// Only tasks with this label
    tag: Option<String>,
    /// The `next` of an earlier page
    cursor: Option<String>,
    /// Only tasks with all of these words in title, labels, body, origin or notes; in any state unless one is given
    search: Option<String>,
}

fn list(store: &mut Store, _: &Asked, query: ListQuery) -> Result<ListView, Refusal> {
    let which = match query.state.as_deref() {
        None if query.search.is_some() => Which::All,
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
        priority: query.priority,
        tag: query.tag,
        ..filter(query.project, query.task_type, query.role, query.lane, query.sprint)
    };
    let limit = limit(store, query.limit)?;
    match &query.search {
        Some(text) => store.find(text, which, &filter, limit),
        None => store.list(which, &filter, query.cursor.as_deref(), limit),
    }
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

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DiffQuery {
    /// Only names and numbers
    #[serde(default)]
    stat: bool,
    /// Only this file, however much has changed in it
    path: Option<String>,
}

fn diff(store: &mut Store, asked: &Asked, query: DiffQuery) -> Result<DiffView, Refusal> {
    let part = match (query.path, query.stat) {
        (Some(_), true) => return Err(Refusal::invalid("stat and path: give one of them")),
        (Some(path), false) => DiffPart::File(path),
        (None, true) => DiffPart::Stat,
        (None, false) => DiffPart::Lines,
    };
    store.diff(asked.task()?, &part)
}

impl Rendered for DiffView {}

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
