//! A work queue in YAML. Every scalar is a JSON text, which YAML reads as it is.

use super::{OutsideNames, TaskFields, extra, own_key, says_something, text};
use crate::import::format::{CARRIED, of_export};
use serde_json::{Value as Json, json};

pub(super) fn write(tasks: &[TaskFields], names: &OutsideNames) -> String {
    let mut out = String::from("tasks:\n");
    if tasks.is_empty() {
        out = String::from("tasks: []\n");
    }
    for task in tasks {
        let mut mark = "  - ";
        for (name, value) in entry(task, names) {
            out.push_str(mark);
            mark = "    ";
            match value {
                Json::Array(list) if !list.is_empty() => {
                    out.push_str(&format!("{}:\n", named(&name)));
                    for one in list {
                        out.push_str(&format!("      - {one}\n"));
                    }
                }
                other => out.push_str(&format!("{}: {other}\n", named(&name))),
            }
        }
        out.push('\n');
    }
    out
}

fn named(name: &str) -> String {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_plain && !name.is_empty() { name.to_owned() } else { Json::from(name).to_string() }
}

fn entry(task: &TaskFields, names: &OutsideNames) -> TaskFields {
    let own = extra(task);
    let came_from_here = own_key(task, "queue").is_some();
    let mut entry = TaskFields::new();
    entry.insert("id".into(), json!(names.name(text(task, "id").unwrap_or_default())));
    let mut put = |name: &str, value: Option<Json>| {
        entry.extend(value.filter(says_something).map(|value| (name.to_owned(), value)));
    };
    put("title", text(task, "title").map(Json::from));
    for name in ["body", "kind", "type", "role", "lane", "sprint", "merge_order", "tags", "scope"] {
        put(name, task.get(name).cloned());
    }
    put("depends_on", Some(json!(names.listed(task, "depends_on"))));
    put("parent", text(task, "parent").map(|parent| json!(names.name(parent))));
    put("priority", task.get("priority").cloned());
    let words = own.filter(|_| came_from_here);
    let has = |name: &str| words.is_some_and(|words| words.contains_key(name));
    let risk = text(task, "risk").filter(|risk| *risk != "normal" && !has("risk_level") && !has("risk"));
    put("risk", risk.map(Json::from));
    let commands = list(task, "checks", "command");
    put(
        "acceptance_checks",
        Some(Json::Array(commands.into_iter().chain(list(task, "criteria", "text")).collect())),
    );
    let state = text(task, "state").unwrap_or("open");
    let ours = match state {
        "open" => "todo",
        "complete" => "done",
        other => other,
    };
    let was = words.and_then(|words| words.get("status")?.as_str());
    let same = |was: &&str| match *was {
        "done" | "complete" | "completed" | "closed" => state == "complete",
        "dropped" | "cancelled" | "canceled" => state == "dropped",
        "blocked" | "deferred" => state == "blocked",
        _ => state == "open",
    };
    put("status", Some(json!(was.filter(same).unwrap_or(ours))));
    put("created_at", task.get("created_at").filter(|_| !has("created_at")).cloned());
    let is_dated = ["completed_at", "closed_at", "done_at"].iter().any(|name| has(name));
    put("completed_at", task.get("closed_at").filter(|_| !is_dated).cloned());
    put("resolution", task.get("resolution").cloned());
    put("notes", task.get("notes").cloned());
    // What the queue had under names of its own; a task of others goes along with its names here.
    if !came_from_here {
        entry.insert(CARRIED.into(), Json::Object(of_export(task)));
        return entry;
    }
    for (name, value) in own.into_iter().flatten().filter(|(name, _)| *name != "status" && *name != "id") {
        entry.insert(name.clone(), value.clone());
    }
    entry
}

fn list(task: &TaskFields, field: &str, name: &str) -> Vec<Json> {
    let listed = task.get(field).and_then(Json::as_array).into_iter().flatten();
    listed.filter_map(|one| one.get(name).cloned()).collect()
}
