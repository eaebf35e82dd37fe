//! A table: one row per task, lists and objects as JSON. A spreadsheet takes no cell of it for a formula.

use super::{TaskFields, says_something};
use crate::import::format::guarded;
use crate::submit::unexpected;
use onus_core::refusal::Refusal;
use serde_json::Value as Json;

const COLUMNS: [&str; 24] = [
    "id",
    "uid",
    "title",
    "state",
    "priority",
    "kind",
    "type",
    "risk",
    "role",
    "lane",
    "sprint",
    "tags",
    "scope",
    "parent",
    "depends_on",
    "merge_order",
    "origin_ask_ref",
    "created_at",
    "closed_at",
    "resolution",
    "checks",
    "criteria",
    "notes",
    "body",
];

pub(super) fn write(tasks: &[TaskFields]) -> Result<String, Refusal> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let head: Vec<&str> = COLUMNS.into_iter().chain(["extra"]).collect();
    writer.write_record(&head).map_err(unexpected)?;
    for task in tasks {
        let cells = head.iter().map(|name| cell(task.get(*name)));
        writer.write_record(cells).map_err(unexpected)?;
    }
    let bytes = writer.into_inner().map_err(unexpected)?;
    String::from_utf8(bytes).map_err(unexpected)
}

fn cell(value: Option<&Json>) -> String {
    match value.filter(|value| says_something(value)) {
        None => String::new(),
        Some(Json::String(text)) => guarded(text),
        Some(other) => other.to_string(),
    }
}
