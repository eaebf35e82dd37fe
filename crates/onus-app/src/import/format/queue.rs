//! A work queue in YAML: `tasks` with ids, roles, dependencies and acceptance checks.

use super::carried;
use super::command::is_command;
use super::item::{Item, Remark, Stand, name_of, take_links, take_name, take_names, take_status, take_text};
use super::{Reading, SourceFile, kind_of};
use onus_core::task::{Risk, StateName};
use serde_json::{Map, Value as Json};

pub(super) fn read(files: &[SourceFile], reading: &mut Reading) {
    for file in files {
        let document = match onus_host::yaml::foreign(&file.text) {
            Ok(document) => document,
            Err((line, detail)) => {
                reading.wrong(line, &file.name, detail);
                continue;
            }
        };
        let tasks = match document {
            Json::Array(tasks) => tasks,
            Json::Object(mut document) => {
                let tasks = ["tasks", "queue", "items"].iter().find_map(|name| document.remove(*name));
                for (name, _) in document {
                    reading.skipped.push((name, "it is about the whole queue".to_owned()));
                }
                match tasks {
                    Some(Json::Array(tasks)) => tasks,
                    _ => {
                        reading.wrong(1, &file.name, "there is no list of tasks");
                        continue;
                    }
                }
            }
            _ => {
                reading.wrong(1, &file.name, "there is no list of tasks");
                continue;
            }
        };
        let lines = lines_of(&file.text);
        for (place, value) in tasks.into_iter().enumerate() {
            let line = lines.get(place).copied().unwrap_or(1);
            let read = match value {
                Json::Object(fields) => task(fields, reading),
                _ => Err("not a task".to_owned()),
            };
            reading.take(files, file, line, read);
        }
    }
}

/// Where the tasks of a list begin, by their ids.
fn lines_of(text: &str) -> Vec<usize> {
    let is_start = |line: &str| {
        let line = line.trim_start();
        line.starts_with("- id:") || line.starts_with("-  id:") || line.starts_with("- \"id\":")
    };
    text.lines().enumerate().filter(|(_, line)| is_start(line)).map(|(index, _)| index + 1).collect()
}

fn task(mut fields: Map<String, Json>, reading: &mut Reading) -> Result<Item, String> {
    let key = take_name(&mut fields, "id").or_else(|| take_name(&mut fields, "task_id"));
    let mut item = Item { key: key.ok_or("the task has no id")?, ..Item::default() };
    item.carried = carried::take(&mut fields);
    item.title =
        take_text(&mut fields, "title").or_else(|| take_text(&mut fields, "summary")).unwrap_or_default();
    item.body = ["body", "description"].iter().find_map(|name| take_text(&mut fields, name));
    if let Some(word) = take_text(&mut fields, "kind") {
        let kind = if item.carried.is_some() { word.clone() } else { kind_of(&word) };
        if kind != word {
            item.keep("kind", word);
        }
        item.kind = Some(kind);
    }
    item.task_type = take_name(&mut fields, "type");
    item.role = take_name(&mut fields, "role");
    item.lane = fields.get("lane").and_then(Json::as_i64);
    if item.lane.is_some() {
        fields.remove("lane");
    }
    item.merge_order = fields.get("merge_order").and_then(Json::as_i64);
    if item.merge_order.is_some() {
        fields.remove("merge_order");
    }
    item.sprint = take_name(&mut fields, "sprint");
    item.tags = ["tags", "labels"].iter().find_map(|name| take_names(&mut fields, name)).unwrap_or_default();
    item.scope = take_names(&mut fields, "scope").unwrap_or_default();
    item.parent = ["parent", "parent_id"].iter().find_map(|name| take_name(&mut fields, name));
    item.depends_on = take_links(&mut fields, "depends_on")?;
    for name in ["risk_level", "risk"] {
        if let Some(word) = take_text(&mut fields, name) {
            item.risk = Risk::parse(&word.to_lowercase());
            item.keep(name, word);
        }
    }
    if let Some(word) = take_name(&mut fields, "priority") {
        item.priority = super::item::urgency(&word);
        if item.priority.is_none_or(|priority| priority.to_string() != word) {
            item.keep("priority", word);
        }
    }
    for name in ["acceptance_checks", "acceptance_criteria", "criteria", "checks"] {
        let Some(listed) = take_names(&mut fields, name) else { continue };
        let ours = item.carried.as_ref().map(|ours| (ours.checks.clone(), ours.criteria.clone()));
        if let Some((checks, criteria)) =
            ours.filter(|(checks, criteria)| listed == [&checks[..], criteria].concat())
        {
            (item.commands, item.criteria) = (checks, criteria);
            continue;
        }
        let (commands, prose): (Vec<String>, Vec<String>) =
            listed.into_iter().partition(|one| is_command(one));
        item.commands.extend(commands);
        item.criteria.extend(prose);
    }
    if let Some(at) = take_text(&mut fields, "created_at") {
        item.created_at = item.moment("created_at", &at);
    }
    item.stand = stand(&mut item, &mut fields, reading)?;
    item.remarks = remarks(&mut fields);
    // What earlier exports of ours brought from yet another system.
    if let (None, Some(Json::Object(words))) = (&item.carried, fields.get("extra")) {
        item.extra.extend(words.clone());
        fields.remove("extra");
    }
    item.keep_rest(fields, &mut reading.unmapped);
    item.carry_on(&["status", "risk"]);
    Ok(item)
}

/// Notes with their authors; a list of anything else stays.
fn remarks(fields: &mut Map<String, Json>) -> Vec<Remark> {
    let Some(Json::Array(notes)) = fields.get("notes") else {
        return Vec::new();
    };
    let remark = |note: &Json| {
        let word = |name: &str| note.get(name).and_then(name_of);
        let text = note.get("text")?.as_str()?.to_owned();
        Some(Remark { by: word("by")?, at: word("at"), key: word("key"), text })
    };
    let found: Option<Vec<Remark>> = notes.iter().map(remark).collect();
    if found.is_some() {
        fields.remove("notes");
    }
    found.unwrap_or_default()
}

fn stand(item: &mut Item, fields: &mut Map<String, Json>, reading: &Reading) -> Result<Stand, String> {
    let status = match take_status(fields, "status")? {
        None => take_status(fields, "state")?,
        status => status,
    };
    let status = status.unwrap_or_else(|| "todo".to_owned());
    let stand = match status.to_lowercase().as_str() {
        "todo" | "open" | "ready" | "in_progress" | "in-progress" | "review" => Stand::Open,
        "blocked" | "deferred" => Stand::Parked(format!("{status} in the queue")),
        "done" | "complete" | "completed" | "closed" => ended(item, fields, StateName::Complete),
        "dropped" | "cancelled" | "canceled" => ended(item, fields, StateName::Dropped),
        _ => reading.told(&status, "a queue", None)?,
    };
    if !matches!(status.as_str(), "todo" | "open") {
        item.keep("status", status);
    }
    Ok(stand)
}

fn ended(item: &mut Item, fields: &mut Map<String, Json>, state: StateName) -> Stand {
    let names = ["completed_at", "closed_at", "done_at"];
    let at = names.iter().find_map(|name| take_text(fields, name).map(|text| (*name, text)));
    let at = at.and_then(|(name, text)| item.moment(name, &text));
    Stand::Ended { state, at, resolution: take_text(fields, "resolution") }
}
