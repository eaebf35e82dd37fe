//! An export in the shape of another tool: exported lines in, its file out. What came from there goes back as it was, with
//! what has changed here; importing it again gives the same tasks.

mod beads;
mod queue;
mod table;

use crate::import::format::Format;
use onus_core::refusal::Refusal;
use serde_json::{Map, Value as Json};
use std::collections::{HashMap, HashSet};

type TaskFields = Map<String, Json>;

/// Exported lines as a file of another tool.
pub fn convert(format: Format, lines: &str) -> Result<String, Refusal> {
    let read = |line: &str| serde_json::from_str::<TaskFields>(line);
    let tasks: Result<Vec<TaskFields>, _> = lines.lines().map(read).collect();
    let tasks = tasks.map_err(crate::submit::unexpected)?;
    match format {
        Format::Beads => Ok(beads::write(&tasks, &OutsideNames::of(&tasks, "beads"))),
        Format::Queue => Ok(queue::write(&tasks, &OutsideNames::of(&tasks, "queue"))),
        Format::Csv => table::write(&tasks),
        other => Err(Refusal::invalid(format!("there is no export as {}", other.name()))
            .hint("--format jsonl, csv, queue, beads or onus")),
    }
}

/// What tasks are called in the other tool: as they were there, else by their ids here.
struct OutsideNames(HashMap<String, String>);

impl OutsideNames {
    fn of(tasks: &[TaskFields], channel: &str) -> OutsideNames {
        let own: HashSet<&str> = tasks.iter().filter_map(|task| own_key(task, channel)).collect();
        let named = tasks.iter().map(|task| {
            let id = text(task, "id").unwrap_or_default().to_owned();
            let key = match own_key(task, channel) {
                Some(key) => key.to_owned(),
                // The tool has something else of this name.
                None if own.contains(id.as_str()) => format!("onus-{id}"),
                None => id.clone(),
            };
            (id, key)
        });
        OutsideNames(named.collect())
    }

    fn name(&self, id: &str) -> String {
        self.0.get(id).cloned().unwrap_or_else(|| id.to_owned())
    }

    fn listed(&self, task: &TaskFields, field: &str) -> Vec<String> {
        let ids = task.get(field).and_then(Json::as_array).into_iter().flatten();
        ids.filter_map(|id| id.as_str().map(|id| self.name(id))).collect()
    }
}

fn own_key<'a>(task: &'a TaskFields, channel: &str) -> Option<&'a str> {
    let origin = text(task, "origin_ask_ref")?;
    let key = origin.strip_prefix(channel)?.strip_prefix(':')?;
    // A key that an origin cannot have was kept as it is.
    Some(extra(task).and_then(|extra| extra.get("id")?.as_str()).unwrap_or(key))
}

fn text<'a>(task: &'a TaskFields, name: &str) -> Option<&'a str> {
    task.get(name).and_then(Json::as_str)
}

fn extra(task: &TaskFields) -> Option<&TaskFields> {
    task.get("extra").and_then(Json::as_object)
}

/// Whether a field says something.
fn says_something(value: &Json) -> bool {
    match value {
        Json::Null => false,
        Json::String(text) => !text.is_empty(),
        Json::Array(list) => !list.is_empty(),
        Json::Object(fields) => !fields.is_empty(),
        _ => true,
    }
}
