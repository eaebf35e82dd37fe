//! Backlog.md: one Markdown file per task, in folders that tell how far it is.

use super::front_matter::{checklist, pages, sections, unclosed, unmarked};
use super::item::{Item, Remark, Stand, take_links, take_name, take_names, take_status, take_text};
use super::{Reading, SourceFile, kind_of};
use onus_core::task::StateName;
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn read(files: &[SourceFile], reading: &mut Reading) {
    let config =
        files.iter().find(|file| file.name.ends_with("config.yml") || file.name.ends_with("config.yaml"));
    let statuses = config.and_then(|file| onus_host::yaml::foreign(&file.text).ok()).map(statuses);
    pages(files, reading, |key, fields, text, file, reading| match beside_tasks(&key, &file.name) {
        Some(kind) => Ok(Some(record(key, kind, fields, text, reading))),
        None => task(key, fields, text, &file.name, statuses.as_deref(), reading).map(Some),
    });
    set_apart(reading);
    follow_renamed(reading);
}

/// The tool gives the number of a draft or of an archived task away again: where several are there, those by their folders as well.
fn set_apart(reading: &mut Reading) {
    let folder = |item: &Item| {
        let lies_in =
            |folder: &str| item.place.starts_with(folder) || item.place.contains(&format!("/{folder}"));
        ["archive/drafts/", "archive/", "drafts/"]
            .into_iter()
            .find(|folder| lies_in(folder))
            .unwrap_or_default()
    };
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for of in ["", "drafts/", "archive/", "archive/drafts/"] {
        let mut here = BTreeSet::new();
        for item in reading.items.iter_mut().filter(|item| folder(item) == of) {
            here.insert(item.key.clone());
            if taken.contains(&item.key) {
                if !item.extra.contains_key("id") {
                    item.keep("id", item.key.clone());
                }
                item.key = format!("{of}{}", item.key);
            }
        }
        taken.extend(here);
    }
}

/// What else a backlog keeps as files.
fn beside_tasks(key: &str, name: &str) -> Option<&'static str> {
    let key = key.to_lowercase();
    let lies_in =
        |folder: &str| name.starts_with(&format!("{folder}/")) || name.contains(&format!("/{folder}/"));
    let is_of = |prefix: &str, folder: &str| key.starts_with(prefix) && (lies_in(folder) || prefix.len() > 2);
    [("decision-", "decisions", "decision"), ("doc-", "docs", "document"), ("m-", "milestones", "milestone")]
        .into_iter()
        .find(|(prefix, folder, _)| is_of(prefix, folder))
        .map(|(_, _, kind)| kind)
}

/// A decision, a document or a milestone: kept, and nobody's work.
fn record(key: String, kind: &str, mut fields: Map<String, Json>, text: &str, reading: &mut Reading) -> Item {
    let mut item = Item { key: key.to_lowercase(), kind: Some(kind.to_owned()), ..Item::default() };
    item.title = take_text(&mut fields, "title").unwrap_or_else(|| key.clone());
    item.body = Some(text.trim().to_owned());
    item.tags = take_names(&mut fields, "tags").unwrap_or_default();
    let created =
        ["created_date", "date"].iter().find_map(|name| Some((*name, take_text(&mut fields, name)?)));
    if let Some((name, at)) = created {
        item.created_at = item.moment(name, &at);
    }
    let updated = fields.get("updated_date").and_then(Json::as_str).map(str::to_owned);
    item.stand = Stand::ended(StateName::Complete, updated.as_deref(), None);
    if item.key != key {
        item.keep("id", key);
    }
    item.keep_rest(fields, &mut reading.unmapped);
    item
}

/// A project that has renamed its prefix has links with the old one, and some links have none: the number tells which task is meant.
fn follow_renamed(reading: &mut Reading) {
    let number = |key: &str| key.split_once('-').map_or(key, |(_, number)| number).to_owned();
    let is_task =
        |key: &&String| key.starts_with(|c: char| c.is_ascii_uppercase()) && !key.starts_with("DRAFT-");
    let keys: BTreeSet<String> = reading.items.iter().map(|item| item.key.clone()).collect();
    let by_number: BTreeMap<String, String> =
        keys.iter().filter(is_task).map(|key| (number(key), key.clone())).collect();
    for item in &mut reading.items {
        for link in item.depends_on.iter_mut().chain(&mut item.parent) {
            if let (false, Some(meant)) = (keys.contains(link), by_number.get(&number(link))) {
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
    if let Some(name) = unclosed(text) {
        return Err(format!(
            "its {} begins and does not end: was the file cut off?",
            onus_core::id::shown(name)
        ));
    }
    // File names and links have them in either case.
    let upper = key.to_uppercase();
    let mut item = Item { title: take_text(&mut fields, "title").unwrap_or_default(), ..Item::default() };
    if upper != key {
        item.keep("id", key);
    }
    item.key = upper;
    item.tags = take_names(&mut fields, "labels").unwrap_or_default();
    item.sprint = take_name(&mut fields, "milestone");
    if let Some(parent) = take_name(&mut fields, "parent_task_id") {
        item.parent = Some(parent.to_uppercase());
        if item.parent.as_ref() != Some(&parent) {
            item.keep("parent_task_id", parent);
        }
    }
    let waits = take_links(&mut fields, "dependencies")?;
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
    let status = take_status(&mut fields, "status")?.unwrap_or_default();
    item.stand = match stand(&status, name, updated.as_deref(), summary.clone(), statuses) {
        Some(stand) => stand,
        None => reading.told(&status, "this backlog", updated.as_deref())?,
    };
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
    for section in sections(text, "##") {
        let words = unmarked(&section.text);
        let heading = section.heading.to_lowercase();
        if words.is_empty() {
            // A template has them; any other heading says something by itself.
            if !heading.is_empty() && !TEMPLATE.contains(&heading.as_str()) {
                item.keep(&named(&section.heading), words);
            }
            continue;
        }
        match heading.as_str() {
            "description" if item.body.is_none() => item.body = Some(words),
            "acceptance criteria" | "acceptance criteria (optional)" | "definition of done" => {
                checklist(item, &words);
                // In their own words: a list may be more than its entries.
                item.keep(&named(&section.heading), words);
            }
            "comments" => {
                let said = remarks(&section.text);
                if !is_told(&words, &said) {
                    item.keep("comments", words);
                }
                let before = item.remarks.len();
                let numbered = said
                    .into_iter()
                    .enumerate()
                    .map(|(place, remark)| Remark { key: Some((before + place + 1).to_string()), ..remark });
                item.remarks.extend(numbered);
            }
            "final summary" if summary.is_none() => summary = Some(words),
            "" => item.keep("text", words),
            _ => item.keep(&named(&section.heading), words),
        }
    }
    summary
}

const TEMPLATE: &[&str] = &[
    "description",
    "acceptance criteria",
    "acceptance criteria (optional)",
    "definition of done",
    "implementation plan",
    "implementation notes",
    "comments",
    "final summary",
];

/// Whether every line of the comments stands in one of them.
fn is_told(words: &str, said: &[Remark]) -> bool {
    let stands = |line: &str| {
        let is_of = |remark: &Remark| {
            let says =
                |name: &str, value: &str| line.strip_prefix(name).is_some_and(|rest| rest.trim() == value);
            remark.text.contains(line)
                || says("author:", &remark.by)
                || says("created:", remark.at.as_deref().unwrap_or_default())
        };
        line.is_empty() || line == "---" || said.iter().any(is_of)
    };
    words.lines().map(str::trim).all(stands)
}

fn named(heading: &str) -> String {
    heading.to_lowercase().replace(' ', "_")
}

/// Comments as they are written now, with rules between them, or as they were at first, with marks around each.
fn remarks(text: &str) -> Vec<Remark> {
    const MARK: &str = "<!-- COMMENT:BEGIN -->";
    if text.contains(MARK) {
        let blocks = text.split(MARK).skip(1);
        let blocks =
            blocks.map(|block| block.split("<!-- COMMENT:END -->").next().unwrap_or_default().trim());
        let parts = blocks.map(|block| block.split_once("\n\n").unwrap_or(("", block)));
        return parts.filter_map(|(head, words)| remark(head, words)).collect();
    }
    let text = unmarked(text);
    let mut parts: Vec<String> = vec![String::new()];
    for line in text.lines() {
        match (line.trim(), parts.last_mut()) {
            ("---", _) => parts.push(String::new()),
            (_, Some(last)) => {
                last.push_str(line);
                last.push('\n');
            }
            _ => {}
        }
    }
    parts.chunks_exact(2).filter_map(|pair| remark(&pair[0], &pair[1])).collect()
}

/// `author:` and `created:`, either of which may be missing, and the words.
fn remark(head: &str, words: &str) -> Option<Remark> {
    let field = |name: &str| {
        let value = head.lines().find_map(|line| line.trim().strip_prefix(name)).map(str::trim);
        value.filter(|value| !value.is_empty()).map(str::to_owned)
    };
    let words = words.trim();
    (!words.is_empty()).then(|| Remark {
        by: field("author:").unwrap_or_default(),
        at: field("created:"),
        key: None,
        text: words.to_owned(),
    })
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
        "" | "to do" | "todo" | "backlog" | "open" | "in progress" | "doing" | "in review" | "review" => {
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
