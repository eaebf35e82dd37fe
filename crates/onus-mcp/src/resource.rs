//! `onus://task/{id}` and `onus://task/{id}/handoff`: what a client may attach to a conversation by itself.

use crate::backend::{Backend, Who};
use crate::summary;
use onus_app::prime::PrimeView;
use onus_core::code::Code;
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use rmcp::model::{Resource, ResourceTemplate};
use serde_json::Value;

const MIME: &str = "application/json";
const TASK: &str = "onus://task/";

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let template = |uri: &str, name: &str, about: &str| {
        ResourceTemplate::new(uri, name).with_description(about).with_mime_type(MIME)
    };
    vec![
        template("onus://task/{id}", "task", "One task, as the tool `show` tells it"),
        template("onus://task/{id}/handoff", "handoff", "What the last holder left to the next"),
    ]
}

/// The tasks that the caller holds. Their names are ids: a title is somebody else's words.
pub(crate) fn held(view: &PrimeView) -> Vec<Resource> {
    let one = |task: &TaskId| Resource::new(format!("{TASK}{task}"), task.to_string()).with_mime_type(MIME);
    view.holds.iter().map(|held| one(&held.task)).collect()
}

pub(crate) fn read<D: Backend>(desk: &D, who: &Who, uri: &str) -> Result<Value, Refusal> {
    let unknown = || Refusal::new(Code::UnknownName, "there is no such resource").hint("onus://task/API-12");
    let rest = uri.strip_prefix(TASK).ok_or_else(unknown)?;
    match rest.split_once('/') {
        None => {
            let id: TaskId = rest.parse().map_err(|_| unknown())?;
            desk.ask(who, move |onus| onus.show(&id)).map(|view| summary::story(&view))
        }
        Some((id, "handoff")) => {
            let id: TaskId = id.parse().map_err(|_| unknown())?;
            let view = desk.ask(who, move |onus| onus.handoff_of(&id))?;
            serde_json::to_value(view).map_err(|error| Refusal::new(Code::Internal, error.to_string()))
        }
        Some(_) => Err(unknown()),
    }
}
