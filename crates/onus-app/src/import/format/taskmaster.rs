//! Task Master: one document, with tasks, or with tasks per tag.

use super::front_matter::listed;
use super::item::{Item, Stand, name_of, take_links, take_name, take_status, take_text};
use super::{Reading, SourceFile};
use onus_core::task::StateName;
use serde_json::{Map, Value as Json};
use std::collections::BTreeSet;

/// The tag of tasks in a document that knows no tags.
const MAIN: &str = "master";

pub(super) fn read(files: &[SourceFile], reading: &mut Reading) {
    for file in reading.chosen(files, |file| file.name.ends_with("tasks.json")) {
        let text = file.text.strip_prefix('\u{feff}').unwrap_or(&file.text);
        let Some(document) = super::document(text, 0, file, reading) else { continue };
        let Json::Object(document) = document else {
            reading.wrong(1, &file.name, "not an object with tasks");
            continue;
        };
        if document.get("tasks").is_some_and(Json::is_array) {
            tagged(MAIN, document, reading);
            continue;
        }
        for (tag, value) in document {
            match value {
                Json::Object(list) if list.get("tasks").is_some_and(Json::is_array) => {
                    tagged(&tag, list, reading);
                }
                Json::Object(list) if list.contains_key("tasks") => {
                    reading.wrong(1, &tag, "its tasks are no list");
                }
                _ => reading.skipped.push((tag, "it has no tasks".to_owned())),
            }
        }
    }
}

fn tagged(tag: &str, mut list: Map<String, Json>, reading: &mut Reading) {
    let Some(Json::Array(tasks)) = list.remove("tasks") else {
        return;
    };
    if tasks.is_empty() {
        reading.skipped.push((tag.to_owned(), "it has no tasks".to_owned()));
    }
    for (place, value) in tasks.into_iter().enumerate() {
        let Json::Object(fields) = value else {
            reading.wrong(place + 1, tag, "not a task");
            continue;
        };
        task(tag, None, place + 1, fields, &BTreeSet::new(), &list, reading);
    }
}

/// A task, and its subtasks behind it.
fn task(
    tag: &str,
    parent: Option<&str>,
    line: usize,
    mut fields: Map<String, Json>,
    siblings: &BTreeSet<String>,
    of_list: &Map<String, Json>,
    reading: &mut Reading,
) {
    let Some(own) = take_name(&mut fields, "id") else {
        reading.wrong(line, tag, "the task has no id");
        return;
    };
    let id = match parent {
        Some(parent) if !own.contains('.') => format!("{parent}.{own}"),
        _ => own,
    };
    let key = |id: &str| format!("{tag}/{id}");
    let subtasks = match fields.remove("subtasks") {
        Some(Json::Array(subtasks)) => subtasks,
        other => {
            fields.extend(other.map(|other| ("subtasks".to_owned(), other)));
            Vec::new()
        }
    };
    let mut item = Item { line, key: key(&id), ..Item::default() };
    item.title = take_text(&mut fields, "title").unwrap_or_default();
    item.parent = parent.map(key);
    item.body = body(&mut fields);
    let waits = take_links(&mut fields, "dependencies").unwrap_or_else(|detail| {
        reading.wrong(line, &key(&id), detail);
        Vec::new()
    });
    item.depends_on = waits.iter().map(|on| key(&meant(on, parent, siblings))).collect();
    for name in ["acceptanceCriteria", "testStrategy"] {
        match fields.get(name) {
            Some(Json::String(text)) => item.criteria.extend(listed(text)),
            Some(Json::Array(list)) => item.criteria.extend(list.iter().filter_map(name_of)),
            _ => {}
        }
        if let Some(words) = fields.remove(name) {
            item.keep(name, words);
        }
    }
    if let Some(word) = take_text(&mut fields, "priority") {
        item.priority = super::item::urgency(&word);
        item.keep("priority", word);
    }
    if let Some(at) = take_text(&mut fields, "createdAt") {
        item.created_at = item.moment("createdAt", &at);
    }
    if parent.is_none() {
        for (name, value) in of_list {
            item.keep(&format!("list_{name}"), value.clone());
        }
        item.keep("tag", tag);
    }
    let status = match take_status(&mut fields, "status") {
        Ok(status) => status.unwrap_or_else(|| "pending".to_owned()),
        Err(detail) => return reading.wrong(line, &key(&id), detail),
    };
    let updated =
        ["completedAt", "updatedAt"].iter().find_map(|name| fields.get(*name)?.as_str().map(str::to_owned));
    match stand(&status, updated.as_deref()) {
        Some(stand) => item.stand = stand,
        None => match reading.told(&status, "Task Master", updated.as_deref()) {
            Ok(stand) => item.stand = stand,
            Err(detail) => reading.wrong(line, &key(&id), detail),
        },
    }
    item.keep("status", status);
    item.keep_rest(fields, &mut reading.unmapped);
    reading.items.push(item);
    let names: BTreeSet<String> = subtasks.iter().filter_map(|one| one.get("id").and_then(name_of)).collect();
    for value in subtasks {
        match value {
            Json::Object(fields) => task(tag, Some(&id), line, fields, &names, of_list, reading),
            _ => reading.wrong(line, &key(&id), "not a subtask"),
        }
    }
}

/// A number among subtasks is a sibling, if there is one of it.
fn meant(on: &str, parent: Option<&str>, siblings: &BTreeSet<String>) -> String {
    match parent {
        Some(parent) if !on.contains('.') && siblings.contains(on) => format!("{parent}.{on}"),
        _ => on.to_owned(),
    }
}

fn body(fields: &mut Map<String, Json>) -> Option<String> {
    let (description, details) = (take_text(fields, "description"), take_text(fields, "details"));
    match (description, details) {
        (Some(description), Some(details)) => Some(format!("{description}\n\n## Details\n\n{details}")),
        (description, details) => description.or(details),
    }
}

fn stand(status: &str, updated: Option<&str>) -> Option<Stand> {
    Some(match status.to_lowercase().as_str() {
        "pending" | "in-progress" | "in_progress" | "review" | "todo" => Stand::Open,
        "deferred" | "blocked" => Stand::Parked(format!("{status} in Task Master")),
        "done" | "completed" => Stand::ended(StateName::Complete, updated, None),
        "cancelled" | "canceled" => Stand::ended(StateName::Dropped, updated, None),
        _ => return None,
    })
}
