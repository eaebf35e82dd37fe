//! Backlog.md: one Markdown file per task, in folders that tell how far it is.

use super::front_matter::{entries, sections, split, unmarked};
use super::item::{Item, Remark, Stand, take_name, take_names, take_text};
use super::{Reading, SourceFile, kind_of};
use onus_core::task::StateName;
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn read(files: &[SourceFile], reading: &mut Reading) {
    let config =
        files.iter().find(|file| file.name.ends_with("config.yml") || file.name.ends_with("config.yaml"));
    let statuses = config.and_then(|file| onus_host::yaml::foreign(&file.text).ok()).map(statuses);
    for file in files {
        if !file.name.ends_with(".md") && files.len() > 1 {
            continue;
        }
        let Some((mut fields, text)) = split(file, reading) else {
            reading.skipped.push((file.name.clone(), "it has no head of fields".to_owned()));
            continue;
        };
        let Some(key) = take_name(&mut fields, "id") else {
            reading.skipped.push((file.name.clone(), "it has no id".to_owned()));
            continue;
        };
        match task(key, fields, &text, &file.name, statuses.as_deref(), reading) {
            Ok(item) => reading.items.push(Item { line: 1, place: file.name.clone(), ..item }),
            Err(detail) => reading.wrong(1, &file.name, detail),
        }
    }
    follow_renamed(reading);
}

/// A project that has renamed its prefix has links with the old one: the number tells what is meant.
fn follow_renamed(reading: &mut Reading) {
    let number = |key: &str| key.split_once('-').map(|(_, number)| number.to_owned());
    let keys: BTreeSet<String> = reading.items.iter().map(|item| item.key.clone()).collect();
    let by_number: BTreeMap<String, String> =
        keys.iter().filter_map(|key| Some((number(key)?, key.clone()))).collect();
    for item in &mut reading.items {
        for link in item.depends_on.iter_mut().chain(&mut item.parent) {
            if let (false, Some(meant)) = (keys.contains(link), number(link).and_then(|n| by_number.get(&n)))
            {
                *link = meant.clone();
            }
        }
    }
}

/// The words for how far a task is, as the configuration lists them: the last one is the end.
fn statuses(config: Json) -> Vec<String> {
    let listed = config.get("statuses").and_then(Json::as_array).into_iter().flatten();
    listed.filter_map(|word| word.as_str().map(str::to_lowercase)).collect()
}

fn task(
    key: String,
    mut fields: Map<String, Json>,
    text: &str,
    name: &str,
    statuses: Option<&[String]>,
    reading: &mut Reading,
) -> Result<Item, String> {
    // File names and links have them in either case.
    let upper = key.to_uppercase();
    let mut item = Item { title: take_text(&mut fields, "title").unwrap_or_default(), ..Item::default() };
    if upper != key {
        item.keep("id", key);
    }
    item.key = upper;
    item.tags = take_names(&mut fields, "labels").unwrap_or_default();
    item.sprint = take_name(&mut fields, "milestone");
    item.parent = take_name(&mut fields, "parent_task_id").map(|parent| parent.to_uppercase());
    let waits = take_names(&mut fields, "dependencies").unwrap_or_default();
    item.depends_on = waits.iter().map(|on| on.to_uppercase()).collect();
    if waits != item.depends_on {
        item.keep("dependencies", json!(waits));
    }
    if let Some(word) = take_text(&mut fields, "type") {
        item.kind = Some(kind_of(&word));
        item.keep("type", word);
    }
    if let Some(word) = take_text(&mut fields, "priority") {
        item.priority = super::item::urgency(&word);
        item.keep("priority", word);
    }
    if let Some(at) = take_text(&mut fields, "created_date") {
        item.created_at = item.moment("created_date", &at);
    }
    let updated = fields.get("updated_date").and_then(Json::as_str).map(str::to_owned);
    let summary = parts(&mut item, text);
    let status = take_text(&mut fields, "status").unwrap_or_default();
    item.stand = stand(&status, name, updated.as_deref(), summary.clone(), statuses)
        .ok_or_else(|| format!("{} is not a status of this backlog", onus_core::id::shown(&status)))?;
    if let (Some(summary), false) = (summary, matches!(item.stand, Stand::Ended { .. })) {
        item.keep("final_summary", summary);
    }
    item.keep("status", status);
    item.keep_rest(fields, &mut reading.unmapped);
    Ok(item)
}

/// The sections of a task; gives its final summary.
fn parts(item: &mut Item, text: &str) -> Option<String> {
    let mut summary = None;
    let mut checked = Vec::new();
    for section in sections(text, "##") {
        let words = unmarked(&section.text);
        if words.is_empty() {
            continue;
        }
        match section.heading.as_str() {
            "Description" if item.body.is_none() => item.body = Some(words),
            "Acceptance Criteria" | "Definition of Done" => {
                for entry in entries(&words) {
                    if entry.is_checked {
                        checked.push(json!(entry.text.clone()));
                    }
                    item.criteria.push(entry.text);
                }
                // In their own words: a list may be more than its entries.
                item.keep(&named(&section.heading), words);
            }
            "Comments" => {
                item.remarks = remarks(&words);
                if item.remarks.is_empty() {
                    item.keep("comments", words);
                }
            }
            "Final Summary" => summary = Some(words),
            "" => item.keep("text", words),
            heading => item.keep(&named(heading), words),
        }
    }
    if !checked.is_empty() {
        item.keep("checked_criteria", Json::Array(checked));
    }
    summary
}

fn named(heading: &str) -> String {
    heading.to_lowercase().replace(' ', "_")
}

/// `author:` and `created:`, a rule, the words, a rule.
fn remarks(text: &str) -> Vec<Remark> {
    let mut found: Vec<Remark> = Vec::new();
    let mut parts = text.split("\n---");
    let mut head = parts.next().unwrap_or_default().to_owned();
    loop {
        let field = |name: &str| {
            head.lines().find_map(|line| line.trim().strip_prefix(name)).map(|value| value.trim().to_owned())
        };
        let (Some(author), Some(words)) = (field("author:"), parts.next()) else {
            break;
        };
        let key = format!("{}", found.len() + 1);
        let words = words.trim().to_owned();
        found.push(Remark { by: author, at: field("created:"), key: Some(key), text: words });
        head = parts.next().unwrap_or_default().to_owned();
    }
    found
}

fn stand(
    status: &str,
    name: &str,
    updated: Option<&str>,
    summary: Option<String>,
    statuses: Option<&[String]>,
) -> Option<Stand> {
    let word = status.to_lowercase();
    let lies_in = |folder: &str| name.contains(&format!("{folder}/"));
    let ended = |state| Some(Stand::ended(state, updated, summary.clone()));
    if lies_in("archive") {
        return ended(StateName::Dropped);
    }
    if lies_in("completed") {
        return ended(StateName::Complete);
    }
    if word == "draft" || lies_in("drafts") {
        return Some(Stand::Parked("a draft in Backlog.md".to_owned()));
    }
    match word.as_str() {
        "done" | "completed" | "complete" | "closed" => return ended(StateName::Complete),
        "cancelled" | "canceled" | "won't do" => return ended(StateName::Dropped),
        "blocked" | "on hold" => return Some(Stand::Parked(format!("{status} in Backlog.md"))),
        "to do" | "todo" | "backlog" | "open" | "in progress" | "doing" | "in review" | "review" => {
            return Some(Stand::Open);
        }
        _ => {}
    }
    let listed = statuses.unwrap_or_default();
    match listed.iter().position(|known| *known == word) {
        Some(place) if place + 1 == listed.len() => ended(StateName::Complete),
        Some(_) => Some(Stand::Open),
        None => None,
    }
}
