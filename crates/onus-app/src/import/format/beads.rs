//! beads (bd and beads_rust): one issue per line.

mod directory;

use super::carried;
use super::front_matter::listed;
use super::item::{Item, Remark, Stand, name_of, take_name, take_names, take_status, take_text};
use super::{Reading, SourceFile, kind_of, objects};
use onus_core::task::{Priority, StateName};
use serde_json::{Map, Value as Json, json};

pub(super) fn read(files: &[SourceFile], reading: &mut Reading) {
    for (file, mut tables) in directory::chosen(files, reading) {
        for (line, mut fields) in objects(file, &["issues"], reading) {
            let of_tables = fields.get("id").and_then(name_of).and_then(|key| tables.remove(&key));
            for (name, value) in of_tables.into_iter().flatten() {
                fields.entry(name).or_insert(value);
            }
            let item = match fields.get("_type").and_then(Json::as_str) {
                Some("memory") => Ok(memory(fields, reading)),
                _ => issue(fields, reading),
            };
            reading.take(files, file, line, item);
        }
        if !tables.is_empty() {
            let why = format!("{} issues of its tables are not in it", tables.len());
            reading.skipped.push((file.name.clone(), why));
        }
    }
}

/// What agents remembered: kept, and nobody's work.
fn memory(mut fields: Map<String, Json>, reading: &mut Reading) -> Item {
    let key = take_name(&mut fields, "key").unwrap_or_default();
    let mut item = Item {
        key: format!("memory/{key}"),
        title: key,
        body: take_text(&mut fields, "value"),
        kind: Some("memory".to_owned()),
        stand: Stand::ended(StateName::Complete, None, None),
        ..Item::default()
    };
    item.keep_rest(fields, &mut reading.unmapped);
    item
}

fn issue(mut fields: Map<String, Json>, reading: &mut Reading) -> Result<Item, String> {
    let key = take_name(&mut fields, "id").ok_or("the issue has no id")?;
    let mut item =
        Item { key, title: take_text(&mut fields, "title").unwrap_or_default(), ..Item::default() };
    item.carried = carried::take(&mut fields);
    item.body = take_text(&mut fields, "description");
    item.tags = take_names(&mut fields, "labels").unwrap_or_default();
    let no_work = no_work(&fields);
    if let Some(word) = take_text(&mut fields, "issue_type") {
        let kind = kind_of(&word);
        if kind != word {
            item.keep("issue_type", word);
        }
        item.kind = Some(kind);
    }
    if let Some(text) = fields.get("acceptance_criteria").and_then(Json::as_str) {
        item.criteria = listed(text);
    }
    item.priority = priority(&mut fields)?;
    if let Some(text) = take_text(&mut fields, "created_at") {
        item.created_at = item.moment("created_at", &text);
    }
    links(&mut item, &mut fields)?;
    item.remarks = remarks(&item.key, &mut fields);
    item.stand = match (stand(&mut item, &mut fields, reading)?, no_work) {
        (Stand::Open, Some(what)) => Stand::Parked(format!("{what} in beads")),
        (stand, _) => stand,
    };
    beyond(&mut item, &mut fields);
    if fields.get("_type").and_then(Json::as_str) == Some("issue") {
        fields.remove("_type");
    }
    for known in ["parent", "dependencies", "acceptance_criteria"] {
        if let Some(value) = fields.remove(known) {
            item.keep(known, value);
        }
    }
    if item.carried.is_some() {
        fields.remove("updated_at");
    }
    item.keep_rest(fields, &mut reading.unmapped);
    carried_on(&mut item);
    Ok(item)
}

/// A task of our own export is again what it was, as far as nobody has changed the fields that beads has for it.
fn carried_on(item: &mut Item) {
    let Some(carried) = &item.carried else { return };
    let is_as_written = |kind: &&String| item.kind.as_deref() == Some(&kind_of(issue_type(kind)));
    if let Some(kind) = carried.kind.as_ref().filter(is_as_written) {
        item.kind = Some(kind.clone());
    }
    if item.criteria == listed(&criteria(&carried.criteria)) {
        item.criteria = carried.criteria.clone();
    }
    item.commands = carried.checks.clone();
    // Links of other kinds are nobody's but theirs.
    let links = item.extra.get("dependencies").and_then(Json::as_array).into_iter().flatten();
    let is_ours = |link: &Json| matches!(link["type"].as_str(), Some("blocks" | "parent-child"));
    let written: &[&str] = match links.clone().all(is_ours) {
        true => &["status", "issue_type", "acceptance_criteria", "dependencies"],
        false => &["status", "issue_type", "acceptance_criteria"],
    };
    item.carry_on(written);
}

/// What a kind is called there.
pub(crate) fn issue_type(kind: &str) -> &str {
    if kind == "defect" { "bug" } else { kind }
}

/// Criteria as the text that they are there.
pub(crate) fn criteria<T: AsRef<str>>(texts: &[T]) -> String {
    texts.iter().map(|text| format!("- {}", text.as_ref())).collect::<Vec<_>>().join("\n")
}

/// What an export of ours has put beside the fields of beads.
fn beyond(item: &mut Item, fields: &mut Map<String, Json>) {
    let Some(Json::Object(mut own)) = fields.remove("onus") else {
        return;
    };
    let risk = own.get("risk").and_then(Json::as_str).and_then(onus_core::task::Risk::parse);
    if risk.is_some() {
        item.risk = risk;
        own.remove("risk");
    }
    item.role = take_name(&mut own, "role");
    item.sprint = take_name(&mut own, "sprint");
    item.task_type = take_name(&mut own, "type");
    item.lane = take_integer(&mut own, "lane");
    item.merge_order = take_integer(&mut own, "merge_order");
    item.scope = take_names(&mut own, "scope").unwrap_or_default();
    let checks = own.get("checks").and_then(Json::as_array).into_iter().flatten();
    let commands: Option<Vec<String>> =
        checks.map(|check| name_of(check.get("command").unwrap_or(check))).collect();
    if let Some(commands) = commands.filter(|commands| !commands.is_empty()) {
        item.commands = commands;
        own.remove("checks");
    }
    item.parent = item.parent.take().or_else(|| take_name(&mut own, "parent"));
    item.depends_on.extend(take_names(&mut own, "depends_on").unwrap_or_default());
    // They are dependencies here, and came from here.
    if let (Some(new), Some(Json::Array(links))) =
        (take_names(&mut own, "links"), fields.get_mut("dependencies"))
    {
        links
            .retain(|link| !link["depends_on_id"].as_str().is_some_and(|on| new.iter().any(|one| one == on)));
        if links.is_empty() {
            fields.remove("dependencies");
        }
    }
    if !own.is_empty() {
        fields.insert("onus".into(), Json::Object(own));
    }
}

fn take_integer(fields: &mut Map<String, Json>, name: &str) -> Option<i64> {
    let number = fields.get(name).and_then(Json::as_i64)?;
    fields.remove(name);
    Some(number)
}

fn priority(fields: &mut Map<String, Json>) -> Result<Option<Priority>, String> {
    let Some(value) = fields.remove("priority").filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let word = name_of(&value).unwrap_or_default();
    word.parse().map(Some)
}

/// What blocks is waited for; a parent is a parent; every other relation stays as it is.
fn links(item: &mut Item, fields: &mut Map<String, Json>) -> Result<(), String> {
    let listed = fields.get("dependencies").and_then(Json::as_array).into_iter().flatten();
    for link in listed {
        // Older files have a name instead of an object.
        let on = match link {
            Json::Object(link) => link.get("depends_on_id").or_else(|| link.get("id")).and_then(name_of),
            other => name_of(other),
        };
        let on = on.ok_or("one of its dependencies names no issue")?;
        match self::link(link) {
            "blocks" => item.depends_on.push(on),
            "parent-child" if item.parent.is_none() => item.parent = Some(on),
            _ => {}
        }
    }
    if item.parent.is_none() {
        item.parent = fields.get("parent").and_then(name_of);
    }
    Ok(())
}

/// What a link of beads means here: `blocks` is waited for, `parent-child` leads to the parent, others stay as they are.
pub(crate) fn link(link: &Json) -> &str {
    let kind = link.get("type").or_else(|| link.get("dependency_type")).and_then(Json::as_str);
    match kind.unwrap_or("blocks") {
        "conditional-blocks" | "waits-for" => "blocks",
        kind => kind,
    }
}

/// Comments; what of them is more than a note stays.
fn remarks(key: &str, fields: &mut Map<String, Json>) -> Vec<Remark> {
    let Some(Json::Array(comments)) = fields.get("comments") else {
        return Vec::new();
    };
    let mut beyond = Vec::new();
    let remarks = comments
        .iter()
        .filter_map(|whole| {
            let mut comment = whole.as_object().cloned().unwrap_or_default();
            let text = take_text(&mut comment, "text").or_else(|| take_text(&mut comment, "body"));
            let Some(text) = text else {
                beyond.push(whole.clone());
                return None;
            };
            let remark = Remark {
                by: take_name(&mut comment, "author").unwrap_or_default(),
                at: take_text(&mut comment, "created_at"),
                key: take_name(&mut comment, "id"),
                text,
            };
            if comment.get("issue_id").and_then(Json::as_str) == Some(key) {
                comment.remove("issue_id");
            }
            comment.retain(|_, value| !value.is_null());
            if !comment.is_empty() {
                beyond.push(json!({ "id": remark.key, "fields": comment }));
            }
            Some(remark)
        })
        .collect();
    fields.remove("comments");
    if !beyond.is_empty() {
        fields.insert("comment_fields".into(), Json::Array(beyond));
    }
    remarks
}

fn stand(item: &mut Item, fields: &mut Map<String, Json>, reading: &Reading) -> Result<Stand, String> {
    let status = match fields.get("status").cloned() {
        Some(word) => {
            let status = take_status(fields, "status")?;
            item.keep("status", word);
            status.unwrap_or_default()
        }
        None => "open".to_owned(),
    };
    let closed_at = fields.get("closed_at").and_then(Json::as_str).map(str::to_owned);
    Ok(match stand_of(&status) {
        Some(Stand::Ended { state, .. }) => {
            let (at, why) = match state {
                StateName::Dropped => ("deleted_at", "delete_reason"),
                _ => ("closed_at", "close_reason"),
            };
            let at = take_text(fields, at).and_then(|text| item.moment(at, &text));
            Stand::Ended { state, at, resolution: take_text(fields, why) }
        }
        Some(stand) => stand,
        // A team may have statuses of its own; what they mean stands in no export.
        None => reading.told(&status, "beads", closed_at.as_deref())?,
    })
}

/// What beads keeps among its issues that nobody is to work on.
pub(crate) fn no_work(fields: &Map<String, Json>) -> Option<&'static str> {
    // A table has numbers for it.
    let is = |name: &str| fields.get(name).is_some_and(|value| *value == json!(true) || *value == json!(1));
    match fields.get("issue_type").and_then(Json::as_str) {
        _ if is("is_template") => Some("a template"),
        _ if is("pinned") => Some("pinned"),
        Some("gate") => Some("a gate"),
        Some("event") => Some("an event"),
        Some("message") => Some("a message"),
        _ => None,
    }
}

/// What a status of beads means here; none for one that it does not have.
pub(crate) fn stand_of(status: &str) -> Option<Stand> {
    Some(match status.to_lowercase().as_str() {
        "" | "open" | "in_progress" | "inprogress" | "hooked" | "review" => Stand::Open,
        "blocked" | "deferred" | "draft" | "pinned" => Stand::Parked(format!("{status} in beads")),
        "closed" => Stand::ended(StateName::Complete, None, None),
        "tombstone" => Stand::ended(StateName::Dropped, None, None),
        _ => return None,
    })
}
