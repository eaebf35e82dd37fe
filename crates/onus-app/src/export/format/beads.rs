//! One issue per line, as beads reads them.

use super::{OutsideNames, TaskFields, extra, own_key, says_something, text};
use crate::import::format::{
    CARRIED, Stand, beads_criteria, beads_issue_type, beads_link, beads_no_work, beads_stand, kind_of,
    of_export,
};
use onus_core::intake::channel::plain_title;
use onus_core::task::StateName;
use onus_core::time::Timestamp;
use serde_json::{Value as Json, json};

/// TaskFields that beads has none for; its importer finds them again.
const BEYOND: [&str; 8] = ["type", "risk", "role", "lane", "sprint", "scope", "merge_order", "checks"];

pub(super) fn write(tasks: &[TaskFields], names: &OutsideNames) -> String {
    let mut out = String::new();
    for task in tasks {
        out.push_str(&Json::Object(issue(task, names)).to_string());
        out.push('\n');
    }
    out
}

/// What agents remembered goes back as that.
fn memory(task: &TaskFields, own: &TaskFields) -> TaskFields {
    let mut memory = own.clone();
    memory.insert("key".into(), json!(text(task, "title")));
    memory.insert("value".into(), json!(text(task, "body")));
    memory
}

fn issue(task: &TaskFields, names: &OutsideNames) -> TaskFields {
    let own = extra(task).filter(|_| own_key(task, "beads").is_some());
    if let Some(own) = own.filter(|own| text(own, "_type") == Some("memory")) {
        return memory(task, own);
    }
    let mut issue = own.cloned().unwrap_or_default();
    let key = names.name(text(task, "id").unwrap_or_default());
    issue.insert("id".into(), json!(key));
    let as_it_was = |name: &str| own.and_then(|own| own.get(name)?.as_str());
    let title = text(task, "title").unwrap_or_default();
    let title = as_it_was("title").filter(|was| plain_title(was) == title).unwrap_or(title);
    issue.insert("title".into(), json!(title));
    if as_it_was("description").is_none()
        && let Some(body) = text(task, "body")
    {
        issue.insert("description".into(), json!(body));
    }
    let kind = text(task, "kind").unwrap_or("task");
    let issue_type = as_it_was("issue_type").filter(|was| kind_of(was) == kind);
    let issue_type = issue_type.unwrap_or(beads_issue_type(kind));
    issue.insert("issue_type".into(), json!(issue_type));
    let rank = text(task, "priority").and_then(|word| word.get(1..)?.parse::<i64>().ok());
    issue.insert("priority".into(), json!(rank.unwrap_or(2)));
    issue.insert("status".into(), json!(status(task, as_it_was("status"), &issue)));
    if own.is_none_or(|own| !own.contains_key("labels"))
        && let Some(tags) = task.get("tags").filter(|tags| says_something(tags))
    {
        issue.insert("labels".into(), tags.clone());
    }
    let ended_at = if text(task, "state") == Some("dropped") { "deleted_at" } else { "closed_at" };
    for (name, field) in [("created_at", "created_at"), ("updated_at", "updated_at"), (ended_at, "closed_at")]
    {
        let ours = text(task, field);
        let was = as_it_was(name).filter(|was| {
            field == "updated_at"
                || Timestamp::from_elsewhere(was) == ours.and_then(Timestamp::from_elsewhere)
        });
        match was.or(ours) {
            Some(at) => drop(issue.insert(name.into(), json!(at))),
            None => drop(issue.remove(name)),
        }
    }
    if let Some(words) = text(task, "resolution") {
        let name = if text(task, "state") == Some("dropped") { "delete_reason" } else { "close_reason" };
        issue.insert(name.into(), json!(as_it_was("resolution").unwrap_or(words)));
    }
    issue.remove("resolution");
    let criteria = task.get("criteria").and_then(Json::as_array).into_iter().flatten();
    let criteria: Vec<&str> = criteria.filter_map(|one| one.get("text")?.as_str()).collect();
    if as_it_was("acceptance_criteria").is_none() && !criteria.is_empty() {
        issue.insert("acceptance_criteria".into(), json!(beads_criteria(&criteria)));
    }
    let beside = links(task, &key, names, &mut issue);
    comments(task, &key, &mut issue);
    let mut beyond: TaskFields = BEYOND
        .iter()
        .filter_map(|name| {
            Some((String::from(*name), task.get(*name).filter(|value| says_something(value))?.clone()))
        })
        .filter(|(name, value)| !(name == "risk" && value == "normal"))
        .collect();
    beyond.extend(beside);
    if own_key(task, "beads").is_none() {
        beyond.remove("links");
        beyond.extend(of_export(task));
    }
    if !beyond.is_empty() {
        issue.insert(CARRIED.into(), Json::Object(beyond));
    }
    issue
}

/// The status it had, where it means the same as its state here. What is no work there is blocked here while it is open.
fn status(task: &TaskFields, was: Option<&str>, issue: &TaskFields) -> String {
    let state = text(task, "state").unwrap_or("open");
    let means_the_same = |was: &&str| match beads_stand(was) {
        Some(Stand::Ended { state: ended, .. }) => ended.name() == state,
        Some(Stand::Parked(_)) => state == StateName::Blocked.name(),
        Some(Stand::Open) if beads_no_work(issue).is_some() => state == StateName::Blocked.name(),
        Some(Stand::Open) => state == StateName::Open.name(),
        None => false,
    };
    let ours = match state {
        "complete" => "closed",
        "dropped" => "tombstone",
        other => other,
    };
    was.filter(means_the_same).unwrap_or(ours).to_owned()
}

/// The links as they were, and those that came since. Two tasks have one link there: what it cannot say as well is given.
fn links(task: &TaskFields, key: &str, names: &OutsideNames, issue: &mut TaskFields) -> TaskFields {
    let (mut new, mut waits) = (Vec::new(), Vec::new());
    let mut beside = TaskFields::new();
    let mut links = match issue.remove("dependencies") {
        Some(Json::Array(links)) => links,
        _ => Vec::new(),
    };
    let parent = text(task, "parent").map(|parent| (names.name(parent), "parent-child"));
    let listed = names.listed(task, "depends_on").into_iter().map(|on| (on, "blocks"));
    for (on, kind) in listed.chain(parent) {
        // Older files have a name instead of an object.
        let names_it = |link: &&Json| link.get("depends_on_id").unwrap_or(link).as_str() == Some(&on);
        match links.iter().find(names_it).map(beads_link) {
            Some(there) if there == kind => {}
            Some(_) if kind == "blocks" => waits.push(on),
            Some(_) => drop(beside.insert("parent".into(), json!(on))),
            None => {
                let at = text(task, "created_at");
                let link = json!({ "issue_id": key, "depends_on_id": on, "type": kind, "created_at": at });
                links.push(link);
                new.push(on);
            }
        }
    }
    if !links.is_empty() {
        issue.insert("dependencies".into(), Json::Array(links));
    }
    for (name, list) in [("links", new), ("depends_on", waits)] {
        if !list.is_empty() {
            beside.insert(name.into(), json!(list));
        }
    }
    beside
}

fn comments(task: &TaskFields, key: &str, issue: &mut TaskFields) {
    let notes = task.get("notes").and_then(Json::as_array).into_iter().flatten();
    let written = issue.remove("comments_as_written");
    let beyond = issue.remove("comment_fields");
    let times = issue.remove("comment_times").unwrap_or_default();
    let comments: Vec<Json> = notes
        .map(|note| {
            let name = note.get("key").cloned().unwrap_or_default();
            let number = name.as_str().and_then(|name| name.parse::<i64>().ok());
            let of_this = |list: &Option<Json>, field: &str| {
                let listed = list.as_ref().and_then(Json::as_array).into_iter().flatten();
                listed.clone().find(|one| one.get(field) == Some(&name)).cloned()
            };
            let was = of_this(&written, "key").unwrap_or_else(|| note.clone());
            let mut comment = TaskFields::new();
            if !name.is_null() {
                comment.insert("id".into(), number.map_or(name.clone(), Json::from));
            }
            comment.insert("issue_id".into(), json!(key));
            comment.insert("author".into(), was.get("by").cloned().unwrap_or_default());
            comment.insert("text".into(), was.get("text").cloned().unwrap_or_default());
            let at = name.as_str().and_then(|name| times.get(name)).or_else(|| was.get("at"));
            comment.insert("created_at".into(), at.cloned().unwrap_or_default());
            if let Some(Json::Object(more)) =
                of_this(&beyond, "id").and_then(|one| one.get("fields").cloned())
            {
                comment.extend(more);
            }
            Json::Object(comment)
        })
        .collect();
    if !comments.is_empty() {
        issue.insert("comments".into(), Json::Array(comments));
    }
}
