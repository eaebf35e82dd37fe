//! What of a task a far end is to show: Onus's own, and nothing else.

use super::Picture;
use super::setting::Mirror;
use std::collections::BTreeMap;

pub const STATUS: &str = "status";
pub const AGENT: &str = "agent";
pub const WORKSTATION: &str = "workstation";
pub const TASK: &str = "task";
pub const TYPE: &str = "type";

/// Each field that the mirror has, with what it is to say. Empty where nobody holds the task.
pub fn wanted(mirror: &Mirror, task: &Picture) -> BTreeMap<String, String> {
    let mut fields = BTreeMap::new();
    let mut put = |name: &str, is_kept: bool, value: Option<String>| {
        if is_kept {
            fields.insert(name.to_owned(), value.unwrap_or_default());
        }
    };
    let of = &mirror.fields;
    put(AGENT, of.agent.is_some(), task.agent.as_ref().map(ToString::to_string));
    put(WORKSTATION, of.workstation.is_some(), task.workstation.as_ref().map(ToString::to_string));
    put(TASK, of.task.is_some(), Some(task.id.to_string()));
    put(TYPE, of.task_type.is_some(), task.task_type.clone());
    let status = mirror.statuses.get(&task.state).cloned();
    put(STATUS, status.is_some(), status);
    fields
}
