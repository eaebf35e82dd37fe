//! One line of a file: the task shape that `onus export` writes, every field but the title optional.

use onus_core::code::Code;
use onus_core::command::{Archive, Arrival};
use onus_core::event::Said;
use onus_core::id::{OriginRef, TaskId};
use onus_core::intake::archived_as;
use onus_core::refusal::Finding;
use onus_core::task::CheckKind;
use onus_core::task::{Check, CheckState, Criterion, Risk, Spec, StateName};
use onus_core::text::{BODY_MAX, Text, line, lines};
use onus_core::time::Timestamp;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// The kind of a task whose line names none, as for `onus add`.
const KIND: &str = "feature";

/// The longest name of an author or a comment elsewhere.
const NAME_MAX: usize = 128;

/// A task that a line mentions: in its file or in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reference {
    Id(TaskId),
    Origin(OriginRef),
}

impl FromStr for Reference {
    type Err = String;

    fn from_str(text: &str) -> Result<Reference, String> {
        // An id never contains a colon, an origin always does.
        if text.contains(':') { text.parse().map(Reference::Origin) } else { text.parse().map(Reference::Id) }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reference::Id(id) => id.fmt(f),
            Reference::Origin(origin) => origin.fmt(f),
        }
    }
}

/// A line as it was read; its references are not resolved yet, and its parent stands beside the specification.
#[derive(Debug)]
pub(super) struct ImportLine {
    /// Where it stands in its own file.
    pub(super) number: usize,
    pub(super) place: String,
    /// Another system owns its words: what changes there changes here.
    pub(super) outside: bool,
    pub(super) id: Option<TaskId>,
    pub(super) uid: Option<Uuid>,
    pub(super) spec: Spec,
    pub(super) parent: Option<Reference>,
    pub(super) depends_on: Vec<Reference>,
    pub(super) archive: Option<Archive>,
    pub(super) arrival: Option<Box<Arrival>>,
    /// What was said about it there.
    pub(super) notes: Vec<(Text, Said)>,
}

/// What is wrong with a line that could not be read, and what could still be made out of it.
#[derive(Debug)]
pub(super) struct Unread {
    pub(super) findings: Vec<Finding>,
    /// The names that other lines may call it by; `None` when not even they can be told.
    pub(super) names: Option<(Option<TaskId>, Option<OriginRef>)>,
    /// Where it stands in its own file, if it says so.
    pub(super) place: Option<(usize, String)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    title: Option<String>,
    id: Option<String>,
    uid: Option<String>,
    body: Option<String>,
    #[serde(rename = "type")]
    task_type: Option<String>,
    kind: Option<String>,
    state: Option<String>,
    priority: Option<String>,
    risk: Option<String>,
    role: Option<String>,
    lane: Option<i64>,
    sprint: Option<String>,
    tags: Option<Vec<String>>,
    scope: Option<Vec<String>>,
    depends_on: Option<Vec<String>>,
    parent: Option<String>,
    merge_order: Option<i64>,
    origin_ask_ref: Option<String>,
    checks: Option<Vec<Command>>,
    criteria: Option<Vec<Prose>>,
    extra: Option<serde_json::Map<String, serde_json::Value>>,
    resolution: Option<String>,
    outside: Option<bool>,
    source_line: Option<usize>,
    source_file: Option<String>,
    notes: Option<Vec<Remark>>,
    blocked_on: Option<String>,
    created_at: Option<serde_json::Value>,
    closed_at: Option<serde_json::Value>,
    // What an export tells beyond the ask. Here other people hold, close and count.
    #[serde(rename = "exceptions")]
    _exceptions: Option<IgnoredAny>,
    #[serde(rename = "assignment")]
    _assignment: Option<IgnoredAny>,
    #[serde(rename = "version")]
    _version: Option<IgnoredAny>,
    #[serde(rename = "created_by")]
    _created_by: Option<IgnoredAny>,
    #[serde(rename = "updated_at")]
    _updated_at: Option<IgnoredAny>,
    #[serde(rename = "closed_by")]
    _closed_by: Option<IgnoredAny>,
    #[serde(rename = "forced")]
    _forced: Option<IgnoredAny>,
    #[serde(rename = "archived")]
    _archived: Option<IgnoredAny>,
    #[serde(rename = "untrusted")]
    _untrusted: Option<IgnoredAny>,
}

/// A check: its command, or an object with it.
struct Command(String);

impl<'de> Deserialize<'de> for Command {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CommandVisitor)
    }
}

struct CommandVisitor;

impl<'de> Visitor<'de> for CommandVisitor {
    type Value = Command;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a command, or an object with one")
    }

    fn visit_str<E>(self, text: &str) -> Result<Command, E> {
        Ok(Command(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Command, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Object {
            command: String,
            // Whoever approved it there has no say here.
            #[serde(rename = "state")]
            _state: Option<IgnoredAny>,
        }
        Object::deserialize(MapAccessDeserializer::new(map)).map(|object| Command(object.command))
    }
}

/// What somebody said about it elsewhere.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Remark {
    #[serde(default)]
    by: String,
    at: Option<Timestamp>,
    key: Option<String>,
    text: String,
}

/// A criterion: its text, or an object with it. Whoever ticked it there has no say here.
#[derive(Deserialize)]
#[serde(untagged)]
enum Prose {
    Text(String),
    Object {
        text: String,
        #[serde(rename = "ticked")]
        _ticked: Option<IgnoredAny>,
    },
}

impl Prose {
    fn open(self) -> Criterion {
        let (Prose::Text(text) | Prose::Object { text, .. }) = self;
        Criterion::open(trimmed(text))
    }
}

/// Reads one line; everything that is wrong with it at once.
pub(super) fn read(number: usize, text: &str) -> Result<ImportLine, Unread> {
    let document: Document = serde_json::from_str(text).map_err(|error| Unread {
        findings: vec![invalid(readable(&error))],
        names: names_in(text),
        place: None,
    })?;
    let mut reader = LineReader { findings: Vec::new() };
    let line = reader.document(number, document);
    if reader.findings.is_empty() {
        return Ok(line);
    }
    let place = Some((line.number, line.place));
    Err(Unread { findings: reader.findings, names: Some((line.id, line.spec.origin)), place })
}

struct LineReader {
    findings: Vec<Finding>,
}

impl LineReader {
    fn kept<T>(&mut self, read: Result<T, String>) -> Option<T> {
        read.map_err(|detail| self.findings.push(invalid(detail))).ok()
    }

    fn parsed<T: FromStr<Err = String>>(&mut self, text: Option<&str>) -> Option<T> {
        text.and_then(|text| self.kept(text.parse()))
    }

    fn word<T>(&mut self, text: Option<&str>, what: &str, parse: fn(&str) -> Option<T>) -> Option<T> {
        text.and_then(|text| {
            self.kept(parse(text).ok_or_else(|| format!("{} is not {what}", onus_core::id::shown(text))))
        })
    }

    fn document(&mut self, number: usize, document: Document) -> ImportLine {
        let title = self.kept(document.title.ok_or_else(|| "a line needs at least a title".to_owned()));
        let state =
            self.word(document.state.as_deref(), "a state", StateName::parse).unwrap_or(StateName::Open);
        let archive =
            self.archive(state, document.resolution.as_deref(), moment(document.closed_at.as_ref()));
        let proposed = |Command(command)| Check {
            command: trimmed(command),
            state: CheckState::Proposed,
            kind: CheckKind::default(),
        };
        let spec = Spec {
            title: title.map(trimmed).unwrap_or_default(),
            body: document.body.as_deref().and_then(text),
            task_type: self.parsed(document.task_type.as_deref()),
            kind: document.kind.unwrap_or_else(|| KIND.to_owned()),
            priority: self.parsed(document.priority.as_deref()).unwrap_or_default(),
            risk: self.word(document.risk.as_deref(), "a risk", Risk::parse).unwrap_or_default(),
            role: self.parsed(document.role.as_deref()),
            lane: document.lane,
            sprint: document.sprint,
            tags: document.tags.unwrap_or_default(),
            scope: document.scope.unwrap_or_default(),
            parent: None,
            merge_order: document.merge_order,
            origin: self.parsed(document.origin_ask_ref.as_deref()),
            checks: document.checks.unwrap_or_default().into_iter().map(proposed).collect(),
            criteria: document.criteria.unwrap_or_default().into_iter().map(Prose::open).collect(),
            extra: document.extra.map(|extra| Text::new(sorted(extra))),
        };
        let outside = document.outside.unwrap_or(false);
        // Of what Onus itself exported only the ask comes back: who waits for whom is decided here.
        let blocked = document.blocked_on.filter(|_| outside && archive.is_none());
        let arrival = Arrival {
            created_at: moment(document.created_at.as_ref()),
            blocked: self.parsed(blocked.as_deref()),
        };
        let arrival = (arrival != Arrival::default()).then(|| Box::new(arrival));
        let notes =
            document.notes.unwrap_or_default().into_iter().filter_map(|remark| self.note(remark)).collect();
        ImportLine {
            number: document.source_line.unwrap_or(number),
            place: document.source_file.unwrap_or_default(),
            outside,
            id: self.parsed(document.id.as_deref()),
            uid: self.word(document.uid.as_deref(), "a uid", |text| text.parse().ok()),
            spec,
            parent: self.parsed(document.parent.as_deref()),
            depends_on: document
                .depends_on
                .iter()
                .flatten()
                .filter_map(|reference| self.parsed(Some(reference)))
                .collect(),
            archive,
            arrival,
            notes,
        }
    }

    fn note(&mut self, remark: Remark) -> Option<(Text, Said)> {
        let Remark { by, at, key, text: words } = remark;
        let by = if by.trim().is_empty() { Ok(String::from("?")) } else { line("the author", &by, NAME_MAX) };
        let key = key.map(|key| line("the comment's key", &key, NAME_MAX)).transpose();
        let words = lines("the comment", &words, BODY_MAX);
        let (by, key, words) = (self.kept(by)?, self.kept(key)?, self.kept(words)?);
        Some((Text::new(words), Said { by, at, key }))
    }

    fn archive(
        &mut self,
        state: StateName,
        resolution: Option<&str>,
        at: Option<Timestamp>,
    ) -> Option<Archive> {
        let resolution = resolution.and_then(text);
        let archived = archived_as(state);
        if archived.is_none() && resolution.is_some() {
            self.findings.push(invalid(format!("a task that is {state} has no resolution")));
        }
        archived.map(|state| Archive { state, resolution, at })
    }
}

/// The same fields are the same text, in whichever order a file has them.
fn sorted(extra: serde_json::Map<String, serde_json::Value>) -> String {
    let mut extra = serde_json::Value::Object(extra);
    extra.sort_all_objects();
    extra.to_string()
}

/// A time, if it is one: what has none happened when it came in.
fn moment(value: Option<&serde_json::Value>) -> Option<Timestamp> {
    value.and_then(|value| Timestamp::from_elsewhere(value.as_str()?))
}

fn trimmed(text: String) -> String {
    if text.trim().len() == text.len() { text } else { text.trim().to_owned() }
}

/// An empty text is none.
fn text(content: &str) -> Option<Text> {
    let content = content.trim_end();
    (!content.is_empty()).then(|| Text::new(content.to_owned()))
}

fn invalid(detail: impl Into<String>) -> Finding {
    Finding::new(Code::InvalidInput, detail)
}

/// The parser's complaint without its list of every known key, its line number (always 1), and whatever a file might
/// smuggle into a terminal.
pub(super) fn readable(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    let text = text.split(", expected one of").next().unwrap_or_default();
    let plain: String = text.chars().take(200).map(|c| if c.is_control() { '?' } else { c }).collect();
    format!("{plain} (column {})", error.column())
}

/// The names of a line that is an object, whatever else is wrong with it.
fn names_in(text: &str) -> Option<(Option<TaskId>, Option<OriginRef>)> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    let object = value.as_object()?;
    let name = |key: &str| object.get(key).and_then(|value| value.as_str());
    Some((
        name("id").and_then(|text| text.parse().ok()),
        name("origin_ask_ref").and_then(|text| text.parse().ok()),
    ))
}
