//! Exceptions: dependencies that are not waited for, by a person's word.

use super::body::Nothing;
use crate::route::{Asked, Rendered, Route, get, post};
use crate::store::Store;
use onus_app::exception::ExceptionsView;
use onus_app::input;
use onus_app::view::{ChangeView, TaskView};
use onus_core::refusal::Refusal;

pub(super) fn routes() -> Vec<Route> {
    vec![
        get(
            "/v1/tasks/{id}/exceptions",
            "exceptions",
            "What a task need not wait for, or asks not to",
            exceptions,
        ),
        post::<input::ExceptionInput, _>(
            "/v1/tasks/{id}/exceptions",
            "exception",
            "Ask that a task may start before a dependency is complete, or approve it: people only",
            |receipt| ChangeView { task: TaskView::from(&receipt.task) },
        ),
    ]
}

fn exceptions(store: &mut Store, asked: &Asked, _: Nothing) -> Result<ExceptionsView, Refusal> {
    store.exceptions(Some(asked.task()?), None)
}

impl Rendered for ExceptionsView {}
