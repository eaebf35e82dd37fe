//! What a file is, by what stands in it.

use super::{Format, SourceFile};
use serde_json::Value as Json;

pub(super) fn detect(files: &[SourceFile]) -> Option<Format> {
    if let [file] = files {
        return of_text(&file.text);
    }
    let of_those = |end: &str| {
        let named = files.iter().filter(|file| file.name.ends_with(end));
        named.filter_map(|file| of_text(&file.text)).next()
    };
    // The decisions of kano are like pages of Backlog.md.
    let pages = files.iter().filter(|file| file.name.ends_with(".md"));
    let pages: Vec<Format> = pages.filter_map(|file| of_page(&file.text)).collect();
    let kano = pages.iter().find(|format| **format == Format::Kano);
    kano.or(pages.first())
        .copied()
        .or_else(|| of_those("tasks.json"))
        .or_else(|| of_those(".jsonl"))
        .or_else(|| of_those(""))
}

pub(super) fn of_text(text: &str) -> Option<Format> {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    match text.chars().next()? {
        '{' | '[' => of_json(text),
        _ if text.starts_with("---\n") || text.starts_with("---\r\n") => {
            of_page(text).or_else(|| of_yaml(text))
        }
        _ => of_table(text).or_else(|| of_yaml(text)),
    }
}

/// Only as much is read as it takes: the first line, or the document.
fn of_json(text: &str) -> Option<Format> {
    let first = text.lines().next().unwrap_or_default();
    let (value, is_line) = match serde_json::from_str::<Json>(first) {
        Ok(value) => (value, true),
        Err(_) => (serde_json::from_str(text).ok()?, false),
    };
    match &value {
        Json::Array(list) => list.first().and_then(of_object),
        Json::Object(document) => {
            let holds_tasks = |value: &Json| value.get("tasks").is_some_and(Json::is_array);
            let is_redmine = document.get("issues").is_some_and(Json::is_array)
                || document.get("issue").is_some_and(Json::is_object);
            if is_redmine {
                Some(Format::Redmine)
            } else if holds_tasks(&value)
                || (!is_line || document.len() < 50) && document.values().any(holds_tasks)
            {
                Some(Format::Taskmaster)
            } else if document.get("items").is_some_and(Json::is_array) {
                Some(Format::Github)
            } else {
                of_object(&value)
            }
        }
        _ => None,
    }
}

fn of_object(value: &Json) -> Option<Format> {
    let has = |name: &str| value.get(name).is_some();
    if has("format") && has("workspace") {
        Some(Format::Onus)
    } else if has("_type")
        || has("issue_type")
        || (has("id") && has("title") && has("status") && !has("state"))
    {
        Some(Format::Beads)
    } else if has("number") && has("title") {
        Some(Format::Github)
    } else if has("subject") && has("id") {
        Some(Format::Redmine)
    } else {
        has("title").then_some(Format::Jsonl)
    }
}

fn of_page(text: &str) -> Option<Format> {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let (head, _) = text.strip_prefix("---\n")?.split_once("\n---")?;
    let has = |name: &str| head.lines().any(|line| line.starts_with(name));
    if !has("id:") {
        return None;
    }
    if has("state:") || has("uid:") { Some(Format::Kano) } else { Some(Format::Backlog) }
}

fn of_table(text: &str) -> Option<Format> {
    let head = text.lines().next()?;
    let names: Vec<&str> = head.split([',', ';', '\t']).map(|name| name.trim().trim_matches('"')).collect();
    let has = |name: &str| names.contains(&name);
    if has("title") && has("origin_ask_ref") {
        Some(Format::Csv)
    } else {
        // Its first column is the number in every language.
        (names.first() == Some(&"#") || has("#") && has("Subject")).then_some(Format::Redmine)
    }
}

fn of_yaml(text: &str) -> Option<Format> {
    let mut lines =
        text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#') && *line != "---");
    let has_list = lines.clone().any(|line| ["tasks:", "queue:", "items:"].contains(&line.trim_end()));
    let is_list = lines.next().is_some_and(|line| line.starts_with("- id:"));
    (has_list || is_list).then_some(Format::Queue)
}

/// What keeps a file from being known, as far as that can be said.
pub(super) fn doubt(files: &[SourceFile]) -> String {
    let [file] = files else {
        return match files.is_empty() {
            true => "it has no file that could hold tasks".to_owned(),
            false => "none of its files is of a format that is known".to_owned(),
        };
    };
    let text = file.text.trim_start_matches('\u{feff}').trim_start();
    if text.is_empty() {
        return "it is empty".to_owned();
    }
    match serde_json::from_str::<Json>(text) {
        Err(error) if text.starts_with(['{', '[']) && error.is_eof() => {
            format!("it ends in the middle of line {}: it was cut off", error.line())
        }
        Err(error) if text.starts_with(['{', '[']) => {
            format!("line {} is no JSON: {}", error.line(), crate::import::line::readable(&error))
        }
        _ => "nothing in it is known".to_owned(),
    }
}
