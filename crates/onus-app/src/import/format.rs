//! Files of other tools as lines that `import` takes (mission D14, E5). Pure: text in, lines out; nothing here asks the
//! store. A format is one file below and one line in [`Format::convert`].
//!
//! Nothing is lost: what Onus has no field for stays in `extra` under its own name, and so does whatever arrives under
//! another word than it had.

mod backlog;
mod beads;
mod detect;
mod front_matter;
mod github;
mod item;
mod kano;
mod queue;
mod redmine;
mod spreadsheet;
mod taskmaster;

pub(crate) use beads::stand_of as beads_stand;
pub(crate) use item::{Stand, kind_of};
pub(crate) use spreadsheet::guarded;

use super::file::Complaints;
use item::Item;
use onus_core::code::Code;
use onus_core::refusal::{Finding, Refusal};
use onus_core::task::StateName;
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

    /// Everything that is wrong with the files, as far as they show it by themselves.
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
                let flag = match status.contains(char::is_whitespace) {
                    true => format!("--status '{}=open'", onus_core::text::shortened(status, 60)),
                    false => format!("--status {}=open", onus_core::text::shortened(status, 60)),
                };
                Err(format!(
                    "{shown} is not a status of {tool}: say what it means with {flag} (or blocked, complete, dropped)"
                ))
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
    for item in items {
        let (line, place) = (item.line, item.place.clone());
        match item.into_line(channel) {
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
    let mut found = Vec::new();
    let mut keep = |line: usize, value: Json, reading: &mut Reading| match value {
        Json::Object(object) => found.push((line, object)),
        _ => reading.wrong(line, &file.name, "not an object"),
    };
    let whole = if text.trim_start().starts_with('[') || keys.iter().any(|key| text.contains(key)) {
        serde_json::from_str::<Json>(text).ok()
    } else {
        None
    };
    match whole {
        Some(Json::Array(values)) => {
            for (place, value) in values.into_iter().enumerate() {
                keep(place + 1, value, reading);
            }
            return found;
        }
        Some(Json::Object(mut object)) => {
            if let Some(Json::Array(values)) = keys.iter().find_map(|key| object.remove(*key)) {
                for (place, value) in values.into_iter().enumerate() {
                    keep(place + 1, value, reading);
                }
                return found;
            }
            return vec![(1, object)];
        }
        _ => {}
    }
    if text.trim_start().starts_with('[') {
        let why = serde_json::from_str::<Json>(text).err().map(|error| error.to_string());
        reading.wrong(1, &file.name, why.unwrap_or_default());
        return found;
    }
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match serde_json::from_str::<Json>(line) {
            Ok(value) => keep(index + 1, value, reading),
            Err(error) => reading.wrong(index + 1, &file.name, super::line::readable(&error)),
        }
    }
    found
}
