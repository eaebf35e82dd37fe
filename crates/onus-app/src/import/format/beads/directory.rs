//! What of a directory of beads holds its issues. Beside them lie copies of older days, settings, and, in a backup, the tables that
//! issues are made of.

use super::super::detect;
use super::super::item::name_of;
use super::super::{Format, Reading, SourceFile, objects};
use serde_json::{Map, Value as Json};
use std::collections::{BTreeMap, HashMap};

/// What the tool has called the file of its issues, the newest first.
const NAMES: [&str; 3] = ["issues.jsonl", "beads.jsonl", "bd.jsonl"];
/// Tables of a backup, and the field of an issue that is made of each.
const TABLES: [(&str, &str); 3] =
    [("labels.jsonl", "labels"), ("dependencies.jsonl", "dependencies"), ("comments.jsonl", "comments")];

/// By the names of issues, the fields that tables have for them.
pub(super) type Tables = HashMap<String, Map<String, Json>>;

/// The files that are read, each with what lies beside it. All others are named.
pub(super) fn chosen<'a>(files: &'a [SourceFile], reading: &mut Reading) -> Vec<(&'a SourceFile, Tables)> {
    if let [file] = files {
        return vec![(file, Tables::new())];
    }
    let depth = |file: &SourceFile| file.name.matches('/').count();
    let holding: Vec<&SourceFile> = files.iter().filter(|file| holds_issues(file)).collect();
    let least = holding.iter().map(|file| depth(file)).min();
    let mut read: Vec<&SourceFile> =
        holding.iter().copied().filter(|file| Some(depth(file)) == least).collect();
    let known = NAMES.iter().find_map(|name| read.iter().find(|file| last(&file.name) == *name).copied());
    read = known.map_or(read, |known| vec![known]);
    let is_in = |list: &[&SourceFile], file: &SourceFile| list.iter().any(|one| one.name == file.name);
    let tables: Vec<(&SourceFile, &str)> = known.map_or_else(Vec::new, |issues| beside(issues, files));
    let named: Vec<&SourceFile> = tables.iter().map(|(file, _)| *file).collect();
    for file in files.iter().filter(|file| !is_in(&read, file) && !is_in(&named, file)) {
        let why = match known.filter(|_| is_in(&holding, file)) {
            Some(known) => format!("{} is what is read", known.name),
            None => "it holds no tasks".to_owned(),
        };
        reading.skipped.push((file.name.clone(), why));
    }
    let mut fields = gathered(&tables, reading);
    read.into_iter().map(|file| (file, std::mem::take(&mut fields))).collect()
}

fn last(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// One that should have issues and is broken is read, so that it is told.
fn holds_issues(file: &SourceFile) -> bool {
    let is_named_so = NAMES.contains(&last(&file.name));
    !file.text.trim().is_empty() && (is_named_so || detect::of_text(&file.text) == Some(Format::Beads))
}

fn beside<'a>(issues: &SourceFile, files: &'a [SourceFile]) -> Vec<(&'a SourceFile, &'static str)> {
    let folder = issues.name.strip_suffix(last(&issues.name)).unwrap_or_default();
    let file_of = |name: &str| files.iter().find(|file| file.name.strip_prefix(folder) == Some(name));
    TABLES.iter().filter_map(|(name, field)| Some((file_of(name)?, *field))).collect()
}

/// The rows of tables by their issues: a label is a word, everything else stays as it is.
fn gathered(tables: &[(&SourceFile, &str)], reading: &mut Reading) -> Tables {
    let mut of_issues: HashMap<String, BTreeMap<&str, Vec<Json>>> = HashMap::new();
    for (file, field) in tables {
        for (line, mut row) in objects(file, &[], reading) {
            let issue = row.get("issue_id").and_then(name_of);
            let value = match *field {
                "labels" => row.remove("label"),
                _ => Some(Json::Object(row)),
            };
            match (issue, value) {
                (Some(issue), Some(value)) => {
                    of_issues.entry(issue).or_default().entry(field).or_default().push(value);
                }
                _ => reading.wrong(line, &file.name, format!("one of its {field} names no issue")),
            }
        }
    }
    let lists = |fields: BTreeMap<&str, Vec<Json>>| {
        fields.into_iter().map(|(field, list)| (field.to_owned(), Json::Array(list))).collect()
    };
    of_issues.into_iter().map(|(issue, fields)| (issue, lists(fields))).collect()
}
