//! GitHub's issues: as the REST interface gives them, or `gh issue list --json`.

use super::item::{Item, Remark, Stand, name_of, take_name, take_text, urgency};
use super::{Reading, SourceFile, kind_of, objects};
use onus_core::task::StateName;
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;

pub(super) fn read(files: &[SourceFile], reading: &mut Reading) {
    let mut told = Vec::new();
    for file in files {
        for (line, fields) in objects(file, &["items"], reading) {
            if fields.get("pull_request").is_some_and(|value| !value.is_null()) {
                let number = fields.get("number").and_then(name_of).unwrap_or_default();
                reading.skipped.push((format!("#{number}"), "it is a pull request".to_owned()));
                continue;
            }
            told.extend(of_others(&fields));
            let read = issue(fields, reading);
            reading.take(files, file, line, read);
        }
    }
    let places: BTreeMap<String, usize> =
        reading.items.iter().enumerate().map(|(place, item)| (item.key.clone(), place)).collect();
    for (key, link) in told {
        let Some(item) = places.get(&key).and_then(|place| reading.items.get_mut(*place)) else { continue };
        match link {
            Link::Parent(parent) if item.parent.is_none() => item.parent = Some(parent),
            Link::Blocker(on) if !item.depends_on.contains(&on) => item.depends_on.push(on),
            _ => {}
        }
    }
}

enum Link {
    Parent(String),
    Blocker(String),
}

fn key(fields: &Map<String, Json>) -> Option<String> {
    let number = fields.get("number").and_then(name_of)?;
    Some(match repository(fields) {
        Some(repository) => format!("{repository}#{number}"),
        None => format!("#{number}"),
    })
}

fn nodes<'a>(fields: &'a Map<String, Json>, names: &[&str]) -> impl Iterator<Item = &'a Json> {
    let listed = names.iter().find_map(|name| {
        let value = fields.get(*name)?;
        value.as_array().or_else(|| value.get("nodes")?.as_array())
    });
    listed.into_iter().flatten()
}

/// What an issue says about others: which are its parts, and which wait for it.
fn of_others(fields: &Map<String, Json>) -> Vec<(String, Link)> {
    let Some(own) = key(fields) else {
        return Vec::new();
    };
    let parts = nodes(fields, &["subIssues", "sub_issues"]).filter_map(reference);
    let waiting = nodes(fields, &["blocking"]).filter_map(reference);
    let parts = parts.map(|part| (part, Link::Parent(own.clone())));
    parts.chain(waiting.map(|one| (one, Link::Blocker(own.clone())))).collect()
}

fn issue(mut fields: Map<String, Json>, reading: &mut Reading) -> Result<Item, String> {
    let key = key(&fields).ok_or("the issue has no number")?;
    let mut item =
        Item { key, title: take_text(&mut fields, "title").unwrap_or_default(), ..Item::default() };
    item.body = take_text(&mut fields, "body");
    item.tags = labels(&fields);
    for tag in &item.tags {
        let word = tag.to_lowercase();
        let word = word.rsplit([':', '/']).next().unwrap_or_default().trim().to_owned();
        if item.kind.is_none() && matches!(word.as_str(), "bug" | "defect") {
            item.kind = Some("defect".to_owned());
        }
        if item.priority.is_none() && (tag.to_lowercase().contains("priority") || word.len() == 2) {
            item.priority = urgency(&word);
        }
    }
    let issue_type = fields.get("type").or_else(|| fields.get("issueType"));
    if let Some(word) = issue_type.and_then(|one| one.get("name").unwrap_or(one).as_str()) {
        item.kind = Some(kind_of(&word.to_lowercase()));
    }
    item.sprint = fields.get("milestone").and_then(|one| one.get("title")).and_then(name_of);
    item.parent = parent(&fields);
    item.depends_on = blockers(&fields);
    for name in ["created_at", "createdAt"] {
        if let Some(at) = take_text(&mut fields, name) {
            item.created_at = item.moment(name, &at);
        }
    }
    item.remarks = remarks(&mut fields);
    item.stand = stand(&mut item, &mut fields)?;
    // What is mapped and says more than its field.
    for name in ["number", "labels", "milestone", "state", "type", "issueType", "parent"] {
        if let Some(value) = fields.remove(name) {
            item.keep(name, value);
        }
    }
    item.keep_rest(fields, &mut reading.unmapped);
    Ok(item)
}

/// `acme/api`, from whichever address there is.
fn repository(fields: &Map<String, Json>) -> Option<String> {
    let address = |name: &str| fields.get(name).and_then(Json::as_str);
    let full = fields.get("repository").and_then(|one| {
        one.get("full_name").or_else(|| one.get("nameWithOwner")).and_then(Json::as_str).map(str::to_owned)
    });
    full.or_else(|| ["html_url", "url", "repository_url"].iter().find_map(|name| of_address(address(name)?)))
}

fn of_address(address: &str) -> Option<String> {
    let path = address.split_once("://")?.1.split_once('/')?.1;
    let path = path.strip_prefix("repos/").or_else(|| path.strip_prefix("api/v3/repos/")).unwrap_or(path);
    let mut parts = path.split('/');
    let (owner, name) = (parts.next()?, parts.next()?);
    (!owner.is_empty() && !name.is_empty()).then(|| format!("{owner}/{name}"))
}

/// `acme/api#12`, from an issue's address.
fn issue_at(address: &str) -> Option<String> {
    let number = address.trim_end_matches('/').rsplit('/').next()?;
    number.parse::<u64>().ok()?;
    Some(format!("{}#{number}", of_address(address)?))
}

fn reference(value: &Json) -> Option<String> {
    match value {
        Json::String(address) => issue_at(address),
        Json::Object(issue) => {
            ["html_url", "url"].iter().find_map(|name| issue_at(issue.get(*name)?.as_str()?))
        }
        _ => None,
    }
}

fn parent(fields: &Map<String, Json>) -> Option<String> {
    ["parent", "parent_issue_url"].iter().find_map(|name| reference(fields.get(*name)?))
}

fn blockers(fields: &Map<String, Json>) -> Vec<String> {
    nodes(fields, &["blockedBy", "blocked_by"]).filter_map(reference).collect()
}

fn labels(fields: &Map<String, Json>) -> Vec<String> {
    let listed = fields.get("labels").and_then(Json::as_array).into_iter().flatten();
    listed.filter_map(|label| name_of(label.get("name").unwrap_or(label))).collect()
}

/// `gh` lists them; the REST interface only counts them, unless somebody has put them in.
fn remarks(fields: &mut Map<String, Json>) -> Vec<Remark> {
    let Some(Json::Array(comments)) = fields.get("comments") else {
        return Vec::new();
    };
    let mut remarks = Vec::new();
    let mut beyond = Vec::new();
    for comment in comments.clone() {
        let Json::Object(mut comment) = comment else {
            beyond.push(comment);
            continue;
        };
        let author = comment.remove("author").or_else(|| comment.remove("user")).unwrap_or_default();
        let by = author.get("login").and_then(name_of).unwrap_or_else(|| "ghost".to_owned());
        let at = take_text(&mut comment, "createdAt").or_else(|| take_text(&mut comment, "created_at"));
        let key = take_name(&mut comment, "id");
        if let Some(text) = take_text(&mut comment, "body") {
            remarks.push(Remark { by, at, key: key.clone(), text });
        }
        comment.insert("author".into(), author);
        comment.extend(key.map(|key| ("id".to_owned(), Json::from(key))));
        beyond.push(Json::Object(comment));
    }
    fields.remove("comments");
    if !beyond.is_empty() {
        fields.insert("comment_fields".into(), Json::Array(beyond));
    }
    remarks
}

fn stand(item: &mut Item, fields: &mut Map<String, Json>) -> Result<Stand, String> {
    let is_closed = fields.get("closed").and_then(Json::as_bool).unwrap_or(false);
    let otherwise = if is_closed { "closed" } else { "open" };
    let state = match fields.get("state") {
        None | Some(Json::Null) => otherwise.to_owned(),
        Some(state) => state.as_str().ok_or("its state is no word")?.to_owned(),
    };
    let reason = fields.get("state_reason").or_else(|| fields.get("stateReason")).and_then(Json::as_str);
    let is_dropped =
        reason.is_some_and(|reason| matches!(reason.to_lowercase().as_str(), "not_planned" | "duplicate"));
    match state.to_lowercase().as_str() {
        "open" => Ok(Stand::Open),
        "closed" => {
            let name = if fields.contains_key("closedAt") { "closedAt" } else { "closed_at" };
            let at = take_text(fields, name).and_then(|text| item.moment(name, &text));
            let state = if is_dropped { StateName::Dropped } else { StateName::Complete };
            Ok(Stand::Ended { state, at, resolution: None })
        }
        _ => Err(format!("{} is not a state of GitHub", onus_core::id::shown(&state))),
    }
}
