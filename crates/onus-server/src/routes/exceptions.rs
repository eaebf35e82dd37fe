//! Exceptions: dependencies that are not waited for, by a person's word.

use super::body::Nothing;
use crate::route::{Asked, Order, Rendered, Route, get, post};
use crate::store::Store;
use onus_app::exception::ExceptionsView;
use onus_app::view::{ChangeView, TaskView};
use onus_core::command::Command;
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn routes() -> Vec<Route> {
    vec![
        get(
            "/v1/tasks/{id}/exceptions",
            "exceptions",
            "What a task need not wait for, or asks not to",
            exceptions,
        ),
        post(
            "/v1/tasks/{id}/exceptions",
            "exception",
            "Ask that a task may start before a dependency is complete, or approve it: people only",
            exception,
            |receipt| ChangeView { task: TaskView::from(&receipt.task) },
        ),
    ]
}

fn exceptions(store: &mut Store, asked: &Asked, _: Nothing) -> Result<ExceptionsView, Refusal> {
    store.exceptions(Some(asked.task()?))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExceptionBody {
    action: ExceptionAction,
    /// The dependency that is not waited for
    on: TaskId,
    /// With a request: why it cannot wait
    reason: Option<String>,
    /// With a request: how to go back if it turns out wrong
    rollback: Option<String>,
    /// With a request: the decision record, below the repository's root. A server writes none.
    adr: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ExceptionAction {
    Request,
    Approve,
}

fn exception(_: &mut Store, _: &Asked, body: ExceptionBody) -> Result<Order, Refusal> {
    let ExceptionBody { action, on, reason, rollback, adr } = body;
    Ok(Order::new(match action {
        ExceptionAction::Request => Command::RequestException { on, reason, rollback, adr },
        ExceptionAction::Approve => Command::ApproveException { on },
    }))
}

impl Rendered for ExceptionsView {}
