//! Redmine's issues: as its REST interface gives them, or a CSV export.

use super::item::{Item, Remark, Stand, name_of, take_name, take_text, urgency};
use super::{Reading, SourceFile, kind_of, objects, spreadsheet};
use onus_core::task::StateName;
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;

pub(super) fn read(files: &[SourceFile], reading: &mut Reading) {
    let mut waits: Vec<(String, String)> = Vec::new();
    for file in files {
        let is_json = file.text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[']);
        let entries = if is_json {
            objects(file, &["issues"], reading)
        } else {
            spreadsheet::rows(file, reading).into_iter().map(|(line, row)| (line, of_row(row))).collect()
        };
        for (line, fields) in entries {
            // A single issue stands below its name.
            let fields = match fields.get("issue") {
                Some(Json::Object(issue)) => issue.clone(),
                _ => fields,
            };
            match issue(fields, &mut waits, reading) {
                Ok(item) => {
                    let place = if files.len() > 1 { file.name.clone() } else { String::new() };
                    reading.items.push(Item { line, place, ..item });
                }
                Err(detail) => reading.wrong(line, &file.name, detail),
            }
        }
    }
    let places: BTreeMap<String, usize> =
        reading.items.iter().enumerate().map(|(place, item)| (item.key.clone(), place)).collect();
    for (task, on) in waits {
        if let Some(item) = places.get(&task).and_then(|place| reading.items.get_mut(*place))
            && !item.depends_on.contains(&on)
        {
            item.depends_on.push(on);
        }
    }
}

/// The columns of a CSV export under the names of the REST interface; the others keep theirs.
fn of_row(row: Map<String, Json>) -> Map<String, Json> {
    let named = |name: String| match name.as_str() {
        "#" => "id".to_owned(),
        "Subject" => "subject".to_owned(),
        "Description" => "description".to_owned(),
        "Project" => "project".to_owned(),
        "Tracker" => "tracker".to_owned(),
        "Status" => "status".to_owned(),
        "Priority" => "priority".to_owned(),
        "Target version" => "fixed_version".to_owned(),
        "Parent task" => "parent".to_owned(),
        "Created" => "created_on".to_owned(),
        "Updated" => "updated_on".to_owned(),
        "Closed" => "closed_on".to_owned(),
        "Assignee" => "assigned_to".to_owned(),
        "Author" => "author".to_owned(),
        "Category" => "category".to_owned(),
        "Start date" => "start_date".to_owned(),
        "Due date" => "due_date".to_owned(),
        "% Done" => "done_ratio".to_owned(),
        "Estimated time" => "estimated_hours".to_owned(),
        "Spent time" => "spent_hours".to_owned(),
        _ => name,
    };
    let filled = row.into_iter().filter(|(_, value)| value.as_str() != Some(""));
    filled.map(|(name, value)| (named(name), value)).collect()
}

/// `{"id": 1, "name": "Bug"}`, or the name alone.
fn word(fields: &Map<String, Json>, name: &str) -> Option<String> {
    let value = fields.get(name)?;
    name_of(value.get("name").unwrap_or(value))
}

fn issue(
    mut fields: Map<String, Json>,
    waits: &mut Vec<(String, String)>,
    reading: &mut Reading,
) -> Result<Item, String> {
    let key = take_name(&mut fields, "id").ok_or("the issue has no id")?;
    let mut item =
        Item { key, title: take_text(&mut fields, "subject").unwrap_or_default(), ..Item::default() };
    item.body = take_text(&mut fields, "description");
    item.kind = word(&fields, "tracker").map(|word| kind_of(&word.to_lowercase()));
    item.sprint = word(&fields, "fixed_version");
    item.parent = fields.get("parent").and_then(|one| name_of(one.get("id").unwrap_or(one)));
    item.parent = item.parent.map(|parent| parent.trim_start_matches('#').to_owned());
    item.priority = word(&fields, "priority").and_then(|word| urgency(&word));
    if let Some(at) = take_text(&mut fields, "created_on") {
        item.created_at = item.moment("created_on", &at);
    }
    relations(&item.key, &fields, waits);
    item.remarks = remarks(&fields);
    item.stand = stand(&mut item, &mut fields)?;
    let mapped = [
        "tracker",
        "fixed_version",
        "parent",
        "priority",
        "status",
        "relations",
        "journals",
        "Related issues",
    ];
    for name in mapped {
        if let Some(value) = fields.remove(name) {
            item.keep(name, if name == "journals" { without_notes(value) } else { value });
        }
    }
    item.keep_rest(fields, &mut reading.unmapped);
    Ok(item)
}

/// Who waits for whom, by either one's relations.
fn relations(own: &str, fields: &Map<String, Json>, waits: &mut Vec<(String, String)>) {
    for relation in fields.get("relations").and_then(Json::as_array).into_iter().flatten() {
        let id = |name: &str| relation.get(name).and_then(name_of);
        let (Some(from), Some(to)) = (id("issue_id"), id("issue_to_id")) else { continue };
        match relation.get("relation_type").and_then(Json::as_str) {
            Some("blocks" | "precedes") => waits.push((to, from)),
            Some("blocked" | "follows") => waits.push((from, to)),
            _ => {}
        }
    }
    let told = fields.get("Related issues").and_then(Json::as_str).unwrap_or_default();
    for relation in told.split([',', '\n']) {
        let Some((words, number)) = relation.trim().rsplit_once('#') else { continue };
        match words.trim().to_lowercase().as_str() {
            "blocks" | "precedes" => waits.push((number.to_owned(), own.to_owned())),
            "blocked by" | "follows" => waits.push((own.to_owned(), number.to_owned())),
            _ => {}
        }
    }
}

fn remarks(fields: &Map<String, Json>) -> Vec<Remark> {
    let journals = fields.get("journals").and_then(Json::as_array).into_iter().flatten();
    let mut found: Vec<Remark> = journals
        .filter_map(|journal| {
            let text = journal.get("notes")?.as_str().filter(|text| !text.trim().is_empty())?;
            Some(Remark {
                by: journal.get("user").and_then(|user| name_of(user.get("name")?)).unwrap_or_default(),
                at: journal.get("created_on").and_then(name_of),
                key: journal.get("id").and_then(name_of),
                text: text.to_owned(),
            })
        })
        .collect();
    if let Some(text) = fields.get("Last notes").and_then(Json::as_str) {
        let by = fields.get("Last updated by").and_then(Json::as_str).unwrap_or_default().to_owned();
        let at = fields.get("updated_on").and_then(Json::as_str).map(str::to_owned);
        found.push(Remark { by, at, key: Some("last-notes".to_owned()), text: text.to_owned() });
    }
    found
}

/// The words of a journal are a note; what it changed stays.
fn without_notes(journals: Json) -> Json {
    let Json::Array(journals) = journals else {
        return journals;
    };
    let stripped = journals.into_iter().map(|mut journal| {
        if let Some(fields) = journal.as_object_mut() {
            fields.remove("notes");
        }
        journal
    });
    Json::Array(stripped.collect())
}

fn stand(item: &mut Item, fields: &mut Map<String, Json>) -> Result<Stand, String> {
    let status = word(fields, "status").unwrap_or_else(|| "New".to_owned());
    let says_closed = fields.get("status").and_then(|status| status.get("is_closed")?.as_bool());
    let closed_on = take_text(fields, "closed_on");
    let at = closed_on.as_deref().and_then(|text| item.moment("closed_on", text));
    let lower = status.to_lowercase();
    let is_dropped = matches!(lower.as_str(), "rejected" | "cancelled" | "canceled" | "duplicate");
    let is_closed = says_closed.unwrap_or(closed_on.is_some()) || is_dropped || lower == "closed";
    let known = ["new", "assigned", "in progress", "resolved", "feedback", "on hold", "open"];
    match (is_closed, says_closed) {
        (true, _) => {
            let state = if is_dropped { StateName::Dropped } else { StateName::Complete };
            Ok(Stand::Ended { state, at, resolution: None })
        }
        (false, _) if lower == "on hold" => Ok(Stand::Parked(format!("{status} in Redmine"))),
        (false, None) if !known.contains(&lower.as_str()) => {
            let shown = onus_core::id::shown(&status);
            Err(format!(
                "whether {shown} is closed cannot be told: neither is_closed nor a closing date says so"
            ))
        }
        (false, _) => Ok(Stand::Open),
    }
}
