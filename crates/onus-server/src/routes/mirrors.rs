//! Mirrors: how they stand, and what people do about what is stuck.

use super::body::Nothing;
use crate::route::{Asked, Rendered, Route, administration, get};
use crate::store::Store;
use onus_app::mirror::MirrorsView;
use onus_app::remote::CallName;
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn routes() -> Vec<Route> {
    vec![
        get("/v1/mirrors", "mirrors", "How each mirror stands: what waits, what is stuck and why", mirrors),
        administration(
            "/v1/mirrors/{name}/retry",
            CallName::RetryMirror,
            "Try what is stuck at once: people only",
            retry,
        ),
        administration(
            "/v1/mirrors/{name}/skip",
            CallName::SkipMirror,
            "Leave out what a mirror was not told of a task: people only, on record",
            skip,
        ),
    ]
}

fn mirrors(store: &mut Store, _: &Asked, _: Nothing) -> Result<MirrorsView, Refusal> {
    store.mirrors()
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RetryBody {
    /// Only this task; without it everything that waits
    task: Option<TaskId>,
}

fn retry(store: &mut Store, asked: &Asked, body: RetryBody) -> Result<MirrorsView, Refusal> {
    store.retry_mirror(asked.asker(), &asked.name()?, body.task.as_ref())
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SkipBody {
    task: TaskId,
    /// Why; becomes a note of the task
    reason: Option<String>,
}

fn skip(store: &mut Store, asked: &Asked, body: SkipBody) -> Result<MirrorsView, Refusal> {
    store.skip_mirror(asked.asker(), &asked.name()?, &body.task, body.reason.as_deref())
}

impl Rendered for MirrorsView {}
