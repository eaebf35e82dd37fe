//! Files of other tools as lines that `import` takes (mission D14, E5). Pure: text in, lines out; nothing here asks the
//! store. A format is one file below and one line in [`Format::convert`].
//!
//! Nothing is lost: what Onus has no field for stays in `extra` under its own name, and so does whatever arrives under
//! another word than it had.

mod backlog;
mod beads;
mod carried;
mod command;
mod detect;
mod front_matter;
mod github;
mod item;
mod kano;
mod queue;
mod redmine;
mod spreadsheet;
mod taskmaster;

pub(crate) use beads::{
    criteria as beads_criteria, issue_type as beads_issue_type, link as beads_link, no_work as beads_no_work,
    stand_of as beads_stand,
};
pub(crate) use carried::{FIELD as CARRIED, of_export};
pub(crate) use item::{Stand, kind_of};
pub(crate) use spreadsheet::guarded;

use super::file::Complaints;
use item::{Item, NamesInFile};
use onus_core::code::Code;
use onus_core::refusal::{Finding, Refusal};
use onus_core::task::StateName;
use onus_core::unique_json::UniqueJson;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};

/// What a file is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// An archive of a whole store.
    Onus,
    /// One task per line, as `onus export` writes them.
    Jsonl,
    /// One task per row, as `onus export --format csv` writes them.
    Csv,
    Beads,
    Backlog,
    Kano,
    Taskmaster,
    Queue,
    Github,
    Redmine,
}

impl Format {
    pub const ALL: [(&str, Format); 10] = [
        ("onus", Format::Onus),
        ("jsonl", Format::Jsonl),
        ("csv", Format::Csv),
        ("beads", Format::Beads),
        ("backlog", Format::Backlog),
        ("kano", Format::Kano),
        ("taskmaster", Format::Taskmaster),
        ("queue", Format::Queue),
        ("github", Format::Github),
        ("redmine", Format::Redmine),
    ];

    pub fn parse(text: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|(name, _)| *name == text).map(|(_, format)| format)
    }

    pub fn name(self) -> &'static str {
        Format::ALL.into_iter().find(|(_, format)| *format == self).map_or("", |(name, _)| name)
    }

    /// What the files are, by what stands in them.
    pub fn detect(files: &[SourceFile]) -> Option<Format> {
        detect::detect(files)
    }

    /// Why that cannot be told.
    pub fn doubt(files: &[SourceFile]) -> String {
        detect::doubt(files)
    }
}

/// A file, or one of a directory.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// Relative to the directory that was named.
    pub name: String,
    pub text: String,
}

/// What files of another tool become.
#[derive(Debug, Default)]
pub struct Converted {
    /// JSON lines for `import`.
    pub lines: String,
    pub read: usize,
    /// Fields that have no place but `extra`.
    pub unmapped: BTreeSet<String>,
    /// Files or entries that are no tasks, with the reason.
    pub skipped: Vec<(String, String)>,
    complaints: Complaints,
}

impl Converted {
    /// The same for a dry run, line by line.
    pub fn refused(&mut self) -> Vec<super::RefusedView> {
        std::mem::take(&mut self.complaints).into_refused()
    }

    pub fn is_sound(&self) -> bool {
        self.complaints.is_empty()
    }

    /// What else is wrong, as a dry run of the lines that could be made tells.
    pub fn complain(&mut self, refused: Vec<super::RefusedView>) {
        for one in refused {
            self.complaints.add_told(one.line, Finding::new(one.code, one.detail));
        }
    }

    /// Everything that is wrong with the files.
    pub fn refusal(&mut self) -> Option<Refusal> {
        std::mem::take(&mut self.complaints).refusal()
    }
}

/// What a format's reader hands over.
#[derive(Debug, Default)]
struct Reading {
    /// What words for how far something is mean, as whoever imports says.
    statuses: Statuses,
    items: Vec<Item>,
    skipped: Vec<(String, String)>,
    complaints: Complaints,
    unmapped: BTreeSet<String>,
}

impl Reading {
    /// How far something is whose status its tool does not have by itself: what the caller says of it, if anything.
    fn told(&self, status: &str, tool: &str, at: Option<&str>) -> Result<Stand, String> {
        match self.statuses.get(&status.to_lowercase()) {
            Some(StateName::Open | StateName::InProgress) => Ok(Stand::Open),
            Some(StateName::Blocked) => Ok(Stand::Parked(format!("{status} in {tool}"))),
            Some(ended) => Ok(Stand::ended(*ended, at, None)),
            None => {
                let shown = onus_core::id::shown(status);
                let word = onus_core::text::shortened(&item::one_line(status), 60);
                let flag = match word.contains(char::is_whitespace) {
                    true => format!("--status '{word}=open'"),
                    false => format!("--status {word}=open"),
                };
                Err(format!(
                    "{shown} is not a status of {tool}: say what it means with {flag} (or blocked, complete, dropped)"
                ))
            }
        }
    }

    /// Of several files those that hold tasks; the others are named. A file that was named alone is meant, whatever it is called.
    fn chosen<'a>(
        &mut self,
        files: &'a [SourceFile],
        holds_tasks: impl Fn(&SourceFile) -> bool,
    ) -> Vec<&'a SourceFile> {
        let is_alone = files.len() == 1;
        let (chosen, others): (Vec<_>, Vec<_>) = files.iter().partition(|file| is_alone || holds_tasks(file));
        let unread = |file: &SourceFile| (file.name.clone(), "it holds no tasks".to_owned());
        self.skipped.extend(others.into_iter().map(unread));
        chosen
    }

    /// What an entry became: an item with its place, or what is wrong with it.
    fn take(&mut self, files: &[SourceFile], file: &SourceFile, line: usize, read: Result<Item, String>) {
        let place = if files.len() > 1 { file.name.clone() } else { String::new() };
        match read {
            Ok(item) => self.items.push(Item { line, place, ..item }),
            Err(detail) => self.wrong(line, &file.name, detail),
        }
    }

    /// Has one entry wait for another, where it does not yet: whichever of the two said so.
    fn wait(&mut self, waits: impl IntoIterator<Item = (String, String)>) {
        let places: BTreeMap<String, usize> =
            self.items.iter().enumerate().map(|(place, item)| (item.key.clone(), place)).collect();
        for (task, on) in waits {
            if let Some(item) = places.get(&task).and_then(|place| self.items.get_mut(*place))
                && !item.depends_on.contains(&on)
            {
                item.depends_on.push(on);
            }
        }
    }

    fn wrong(&mut self, line: usize, place: &str, detail: impl Into<String>) {
        self.complaints.add_at(line, place, Finding::new(Code::InvalidInput, detail));
    }
}

/// What further words for how far a task is mean, in lower case.
pub type Statuses = BTreeMap<String, StateName>;

/// Reads files of one format.
pub fn convert(format: Format, files: &[SourceFile], statuses: &Statuses) -> Converted {
    let mut reading = Reading { statuses: statuses.clone(), ..Reading::default() };
    match format {
        // They are lines, or an archive, as they are.
        Format::Onus | Format::Jsonl => {}
        Format::Csv => return spreadsheet::lines(files),
        Format::Beads => beads::read(files, &mut reading),
        Format::Backlog => backlog::read(files, &mut reading),
        Format::Kano => kano::read(files, &mut reading),
        Format::Taskmaster => taskmaster::read(files, &mut reading),
        Format::Queue => queue::read(files, &mut reading),
        Format::Github => github::read(files, &mut reading),
        Format::Redmine => redmine::read(files, &mut reading),
    }
    finish(format.name(), reading)
}

fn finish(channel: &str, reading: Reading) -> Converted {
    let Reading { items, skipped, complaints, unmapped, .. } = reading;
    let mut converted = Converted { read: items.len(), skipped, complaints, unmapped, lines: String::new() };
    let names = NamesInFile::of(&items);
    for item in items {
        let (line, place) = (item.line, item.place.clone());
        converted.unmapped.extend(item.unread.iter().cloned());
        match item.into_line(channel, &names) {
            Ok(document) => {
                converted.lines.push_str(&document.to_string());
                converted.lines.push('\n');
            }
            Err(details) => {
                for detail in details {
                    converted.complaints.add_at(line, &place, Finding::new(Code::InvalidInput, detail));
                }
            }
        }
    }
    converted
}

/// The objects of a JSON text: one document (an object, or a list of them under one of `keys`), or one per line; each with its
/// line, where lines tell.
fn objects(
    file: &SourceFile,
    keys: &[&str],
    reading: &mut Reading,
) -> Vec<(usize, serde_json::Map<String, Json>)> {
    let text = file.text.strip_prefix('\u{feff}').unwrap_or(&file.text);
    let values: Vec<(usize, Json)> = if has_lines(text) {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines.filter_map(|(index, line)| Some((index + 1, document(line, index, file, reading)?))).collect()
    } else {
        let Some(whole) = document(text, 0, file, reading) else { return Vec::new() };
        let values = match whole {
            Json::Array(values) => values,
            Json::Object(mut whole) => {
                let is_list = |key: &&&str| whole.get(**key).is_some_and(Json::is_array);
                match keys.iter().find(is_list).and_then(|key| whole.remove(*key)) {
                    Some(Json::Array(values)) => {
                        about_the_list(whole, values.len(), reading);
                        values
                    }
                    _ => vec![Json::Object(whole)],
                }
            }
            other => vec![other],
        };
        values.into_iter().enumerate().map(|(place, value)| (place + 1, value)).collect()
    };
    let mut found = Vec::with_capacity(values.len());
    for (line, value) in values {
        match value {
            Json::Object(object) => found.push((line, object)),
            _ => reading.wrong(line, &file.name, "not an object"),
        }
    }
    found
}

/// Whether each line is a document by itself. The first one may be broken.
fn has_lines(text: &str) -> bool {
    let is_object = |line: &str| {
        line.starts_with('{')
            && line.trim_end().ends_with('}')
            && serde_json::from_str::<IgnoredAny>(line).is_ok()
    };
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let (first, second) = (lines.next().unwrap_or_default(), lines.next());
    second.is_some() && (is_object(first) || first.starts_with('{') && text.lines().any(is_object))
}

fn document(text: &str, lines_before: usize, file: &SourceFile, reading: &mut Reading) -> Option<Json> {
    let read = serde_json::from_str(text).map(|UniqueJson(document)| document);
    let wrong = |error: &serde_json::Error| match error.is_eof() {
        true => format!("it ends in the middle: was it cut off? ({})", super::line::readable(error)),
        false => super::line::readable(error),
    };
    read.map_err(|error| reading.wrong(lines_before + error.line().max(1), &file.name, wrong(&error))).ok()
}

/// What a list says about itself is nobody's work. Whether it is only a part of one matters.
fn about_the_list(fields: serde_json::Map<String, Json>, count: usize, reading: &mut Reading) {
    for (name, value) in fields {
        let why = match value.as_u64().filter(|total| name == "total_count" && *total > count as u64) {
            Some(total) => format!("the file has {count} of {total} entries"),
            None => "it is about the whole list".to_owned(),
        };
        reading.skipped.push((name, why));
    }
}
