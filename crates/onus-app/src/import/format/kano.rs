//! kano: one Markdown file per item, with a worklog at its end.

use super::front_matter::{checklist, pages, sections};
use super::item::{Item, Remark, Stand, name_of, take_name, take_names, take_status, take_text};
use super::{Reading, SourceFile, kind_of};
use onus_core::task::StateName;
use onus_core::time::Timestamp;
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;

pub(super) fn read(files: &[SourceFile], reading: &mut Reading) {
    let mut blocks: Vec<(String, String)> = Vec::new();
    pages(files, reading, |key, fields, text, _, reading| {
        blocks.extend(linked(&fields, "blocks").into_iter().map(|other| (other, key.clone())));
        item(key, fields, text, reading)
    });
    reading.wait(blocks);
    tell_apart(reading);
}

/// Its products number their items each for itself, and a number has been given twice: what is unique there is the `uid`. The one
/// that was first keeps the plain name.
fn tell_apart(reading: &mut Reading) {
    let uid = |item: &Item| item.extra.get("uid").and_then(name_of).unwrap_or_default();
    let mut firsts: BTreeMap<String, String> = BTreeMap::new();
    for item in &reading.items {
        let first = firsts.entry(item.key.clone()).or_insert_with(|| uid(item));
        *first = std::mem::take(first).min(uid(item));
    }
    for item in &mut reading.items {
        let own = uid(item);
        if firsts.get(&item.key).is_some_and(|first| *first != own) {
            let id = std::mem::take(&mut item.key);
            item.key = format!("{id}@{own}");
            item.keep("id", id);
        }
    }
}

fn linked(fields: &Map<String, Json>, kind: &str) -> Vec<String> {
    let links = fields.get("links").and_then(|links| links.get(kind)).or_else(|| fields.get(kind));
    links.and_then(Json::as_array).into_iter().flatten().filter_map(name_of).collect()
}

fn item(
    key: String,
    mut fields: Map<String, Json>,
    text: &str,
    reading: &mut Reading,
) -> Result<Option<Item>, String> {
    let is_decision =
        fields.get("type").and_then(Json::as_str) == Some("Decision") || key.starts_with("ADR-");
    if !is_decision && !fields.contains_key("state") {
        return Ok(None);
    }
    let mut item =
        Item { key, title: take_text(&mut fields, "title").unwrap_or_default(), ..Item::default() };
    item.depends_on = linked(&fields, "blocked_by");
    item.parent = take_name(&mut fields, "parent").filter(|parent| parent != "None");
    item.tags = take_names(&mut fields, "tags").unwrap_or_default();
    item.sprint = take_name(&mut fields, "iteration").filter(|word| word != "None");
    if is_decision {
        item.kind = Some("decision".to_owned());
    }
    if let Some(word) = take_text(&mut fields, "type") {
        item.kind = Some(kind_of(&word.to_lowercase()));
        item.keep("type", word);
    }
    if let Some(word) = take_text(&mut fields, "priority") {
        item.priority = super::item::urgency(&word);
        if item.priority.is_none_or(|priority| priority.to_string() != word) {
            item.keep("priority", word);
        }
    }
    if let Some(at) = take_text(&mut fields, "created") {
        item.created_at = item.moment("created", &at);
    }
    let updated = fields.get("updated").and_then(Json::as_str).map(str::to_owned);
    let mut body = String::new();
    for section in sections(text, "#") {
        match section.heading.as_str() {
            "Worklog" => worklog(&mut item, &section.text),
            heading => {
                if heading == "Acceptance Criteria" {
                    checklist(&mut item, &section.text);
                }
                if !heading.is_empty() {
                    body.push_str(&format!("# {heading}\n"));
                }
                body.push_str(&section.text);
            }
        }
    }
    item.body = Some(body.trim().to_owned());
    let state = take_status(&mut fields, "state")?.unwrap_or_default();
    let last = item.remarks.last().and_then(|remark| remark.at.clone());
    item.stand = match stand(&state, last.as_deref().or(updated.as_deref())) {
        // A decision is nobody's work.
        _ if is_decision => Stand::ended(StateName::Complete, updated.as_deref(), None),
        Some(stand) => stand,
        None => reading.told(&state, "kano", last.as_deref().or(updated.as_deref()))?,
    };
    item.keep("state", state);
    if let Some(links) = fields.remove("links") {
        item.keep("links", links);
    }
    item.keep_rest(fields, &mut reading.unmapped);
    Ok(Some(item))
}

fn stand(state: &str, updated: Option<&str>) -> Option<Stand> {
    Some(match state.to_lowercase().as_str() {
        "new" | "proposed" | "planned" | "ready" | "inprogress" | "in progress" | "review" | "open" => {
            Stand::Open
        }
        "draft" | "blocked" | "deferred" => Stand::Parked(format!("{state} in kano")),
        "done" | "closed" | "complete" => Stand::ended(StateName::Complete, updated, None),
        "dropped" | "duplicate" | "cancelled" => Stand::ended(StateName::Dropped, updated, None),
        _ => return None,
    })
}

/// `2026-01-07 10:00 [agent=codex] [model=m] words`; a line that begins otherwise goes on with the one before.
fn worklog(item: &mut Item, text: &str) {
    let mut before = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match entry(line.trim().trim_start_matches("- ")) {
            Some(remark) => {
                let key = Some(format!("worklog/{}", item.remarks.len() + 1));
                item.remarks.push(Remark { key, ..remark });
            }
            None => match item.remarks.last_mut() {
                Some(last) => {
                    last.text.push('\n');
                    last.text.push_str(line.trim_end());
                }
                None => before.push(line),
            },
        }
    }
    if !before.is_empty() {
        item.keep("worklog", before.join("\n"));
    }
}

fn entry(line: &str) -> Option<Remark> {
    let at = line.get(..16)?;
    Timestamp::from_elsewhere(at)?;
    let mut rest = line.get(16..)?.trim_start();
    let mut by = String::new();
    let mut tags = String::new();
    while let Some((tag, behind)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        match tag.strip_prefix("agent=") {
            Some(agent) if by.is_empty() => by = agent.to_owned(),
            _ => tags.push_str(&format!("[{tag}] ")),
        }
        rest = behind.trim_start();
    }
    Some(Remark { by, at: Some(at.to_owned()), key: None, text: format!("{tags}{rest}") })
}
