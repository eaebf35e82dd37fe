//! One entry of another tool, on its way to a line of `import`.

use super::carried::Carried;
use onus_core::intake::channel::plain_title;
use onus_core::task::{Priority, Risk, StateName};
use onus_core::text::{
    BODY_MAX, CRITERION_MAX, EXTRA_MAX, LABEL_MAX, LIST_MAX, REASON_MAX, TITLE_MAX, is_unprintable, shortened,
};
use onus_core::time::Timestamp;
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeSet, HashMap, HashSet};

/// How far an entry is in its own system.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Stand {
    #[default]
    Open,
    /// Nobody is to begin with it, and why.
    Parked(String),
    Ended {
        state: StateName,
        at: Option<Timestamp>,
        resolution: Option<String>,
    },
}

impl Stand {
    pub(crate) fn ended(state: StateName, at: Option<&str>, resolution: Option<String>) -> Stand {
        Stand::Ended { state, at: at.and_then(Timestamp::from_elsewhere), resolution }
    }
}

/// What somebody said about it there.
#[derive(Debug, Clone)]
pub(super) struct Remark {
    pub(super) by: String,
    pub(super) at: Option<String>,
    pub(super) key: Option<String>,
    pub(super) text: String,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Item {
    pub(super) line: usize,
    /// The file, where there are several.
    pub(super) place: String,
    /// What it is called in its own system.
    pub(super) key: String,
    pub(super) title: String,
    pub(super) body: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) task_type: Option<String>,
    pub(super) priority: Option<Priority>,
    pub(super) risk: Option<Risk>,
    pub(super) role: Option<String>,
    pub(super) lane: Option<i64>,
    pub(super) sprint: Option<String>,
    pub(super) merge_order: Option<i64>,
    pub(super) tags: Vec<String>,
    pub(super) scope: Vec<String>,
    pub(super) parent: Option<String>,
    pub(super) depends_on: Vec<String>,
    /// Prose and commands alike: [`super::command::is_command`] tells them apart.
    pub(super) criteria: Vec<String>,
    pub(super) commands: Vec<String>,
    pub(super) created_at: Option<Timestamp>,
    pub(super) stand: Stand,
    pub(super) remarks: Vec<Remark>,
    pub(super) extra: Map<String, Json>,
    /// Fields that should mean something and do not, e.g. a date that is none.
    pub(super) unread: BTreeSet<String>,
    /// Our own export put it among the tool's own.
    pub(super) carried: Option<Carried>,
}

impl Item {
    /// The line of `import` that it is, or everything that is wrong with it. `names` says what others of the file are called by it.
    pub(super) fn into_line(mut self, channel: &str, names: &NamesInFile) -> Result<Json, Vec<String>> {
        let wrong = self.faults();
        if !wrong.is_empty() {
            return Err(wrong);
        }
        if let Some(carried) = self.carried.take() {
            return Ok(self.carried_line(carried, |key| names.of_carried(channel, key)));
        }
        let reference = |key: &str| names.of_own(channel, key);
        let title = self.fitting("title", self.title.clone(), plain_title, TITLE_MAX);
        let body = self.body.take().map(|body| self.fitting("description", body, clean, BODY_MAX));
        let (state, closed_at, resolution) = self.end();
        let blocked = match &self.stand {
            Stand::Parked(why) => Some(format!("external:{}", shortened(&one_line(why), REASON_MAX))),
            _ => None,
        };
        let tags = self.labels();
        let sprint = self.label("sprint", self.sprint.clone());
        let kind = self.label("kind", self.kind.clone());
        let (role, lane) = self.place_of_work();
        let (checks, criteria) = self.proofs();
        let notes = self.notes();
        if encoded(&self.key) != self.key {
            self.keep("id", self.key.clone());
        }
        let is_respelled = |key: &&String| encoded(key) != **key;
        if self.depends_on.iter().any(|key| is_respelled(&key)) {
            self.keep("depends_on", json!(self.depends_on));
        }
        if let Some(parent) = self.parent.as_ref().filter(is_respelled).cloned() {
            self.keep("parent", parent);
        }
        let mut depends_on: Vec<String> = Vec::new();
        for key in &self.depends_on {
            let on = reference(key);
            if !depends_on.contains(&on) {
                depends_on.push(on);
            }
        }
        let mut line = json!({
            "outside": true,
            "origin_ask_ref": origin(channel, &self.key),
            "title": title,
            "kind": kind.unwrap_or_else(|| "task".to_owned()),
            "state": state,
            "priority": self.priority.unwrap_or_default().to_string(),
            "tags": tags,
            "depends_on": depends_on,
            "checks": checks,
            "criteria": criteria,
            "notes": notes,
        });
        (self.role, self.lane, self.sprint) = (role, lane, sprint);
        let optional = [
            ("body", body.filter(|body| !body.trim().is_empty()).map(Json::from)),
            ("parent", self.parent.as_deref().map(|key| json!(reference(key)))),
            ("created_at", self.created_at.map(|at| json!(at))),
            ("closed_at", closed_at.map(|at| json!(at))),
            ("resolution", resolution.map(Json::from)),
            ("blocked_on", blocked.map(Json::from)),
        ];
        if let Json::Object(fields) = &mut line {
            for (name, value) in optional {
                fields.extend(value.map(|value| (name.to_owned(), value)));
            }
            fields.extend(self.optional());
        }
        Ok(line)
    }

    /// What a line has only where the entry says it.
    pub(super) fn optional(&self) -> Map<String, Json> {
        let optional = [
            ("source_line", Some(json!(self.line))),
            ("source_file", (!self.place.is_empty()).then(|| json!(self.place))),
            ("risk", self.risk.map(|risk| json!(risk.name()))),
            ("type", self.task_type.clone().map(Json::from)),
            ("role", self.role.clone().map(Json::from)),
            ("lane", self.lane.map(Json::from)),
            ("sprint", self.sprint.clone().map(Json::from)),
            ("merge_order", self.merge_order.map(Json::from)),
            ("scope", (!self.scope.is_empty()).then(|| json!(self.scope))),
            ("extra", (!self.extra.is_empty()).then(|| Json::Object(self.extra.clone()))),
        ];
        optional.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }

    /// Role and lane, where they are ones here.
    fn place_of_work(&mut self) -> (Option<String>, Option<i64>) {
        let role = self.role.clone().filter(|role| role.parse::<onus_core::id::Role>().is_ok());
        if role != self.role {
            self.keep("role", json!(self.role));
        }
        let lane = self.lane.filter(|lane| (1..=1_000).contains(lane));
        if lane != self.lane {
            self.keep("lane", json!(self.lane));
        }
        (role, lane)
    }

    /// What keeps it out.
    fn faults(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.title.trim().is_empty() {
            wrong.push(format!("{} has no title", named(&self.key)));
        }
        let long = [("description", self.body.as_deref())];
        let remarks = self.remarks.iter().map(|remark| ("comment", Some(remark.text.as_str())));
        for (what, text) in long.into_iter().chain(remarks) {
            let length = text.map_or(0, str::len);
            if length > EXTRA_MAX {
                wrong.push(format!("the {what} has {length} bytes; the limit is {EXTRA_MAX}"));
            }
        }
        wrong
    }

    /// A text that fits its field; where that is not the text itself, `extra` keeps it.
    fn fitting(&mut self, name: &str, text: String, tidy: impl Fn(&str) -> String, max: usize) -> String {
        let fits = shortened(&tidy(&text), max);
        if fits != text.trim_end() {
            self.keep(name, text);
        }
        fits
    }

    fn end(&mut self) -> (&'static str, Option<Timestamp>, Option<String>) {
        match self.stand.clone() {
            Stand::Open | Stand::Parked(_) => ("open", None, None),
            Stand::Ended { state, at, resolution } => {
                let words = resolution.filter(|words| !words.trim().is_empty());
                let words = words.map(|words| self.fitting("resolution", words, clean, BODY_MAX));
                (state.name(), at, words.filter(|words| !words.trim().is_empty()))
            }
        }
    }

    /// Labels that are tags here; all of them stay in `extra` where one is not.
    fn labels(&mut self) -> Vec<String> {
        let mut tags: Vec<String> = Vec::new();
        let mut all_fit = true;
        for label in &self.tags {
            let fits = label.trim() == label && is_label(label) && tags.len() < LIST_MAX;
            all_fit &= fits;
            if fits && !tags.contains(label) {
                tags.push(label.clone());
            }
        }
        if !all_fit {
            self.keep("labels", json!(self.tags));
        }
        tags
    }

    fn label(&mut self, name: &str, label: Option<String>) -> Option<String> {
        let label = label.filter(|label| !label.trim().is_empty())?;
        if is_label(&label) && label.trim() == label {
            return Some(label);
        }
        self.keep(name, label);
        None
    }

    /// What proves it: commands, which wait for a person's approval, and prose, which a reviewer ticks.
    fn proofs(&mut self) -> (Vec<String>, Vec<String>) {
        let commands: BTreeSet<String> = self.commands.iter().map(|one| one.trim().to_owned()).collect();
        let mut criteria: Vec<String> = Vec::new();
        let mut all_fit = true;
        for text in &self.criteria {
            let words = shortened(clean(text).trim(), CRITERION_MAX);
            let fits = words == text.trim();
            if words.is_empty() || criteria.contains(&words) {
                continue;
            }
            all_fit &= fits && criteria.len() < LIST_MAX;
            if criteria.len() < LIST_MAX {
                criteria.push(words);
            }
        }
        if !all_fit {
            self.keep("criteria", json!(self.criteria));
        }
        if commands.len() > LIST_MAX {
            self.keep("commands", json!(self.commands));
        }
        (commands.into_iter().take(LIST_MAX).collect(), criteria)
    }

    /// Comments; those that do not fit stay in `extra` whole.
    pub(super) fn notes(&mut self) -> Vec<Json> {
        let (mut kept, mut notes) = (Vec::new(), Vec::new());
        let mut times = Map::new();
        for remark in std::mem::take(&mut self.remarks) {
            let text = shortened(&clean(&remark.text), BODY_MAX);
            if text.trim().is_empty() {
                continue;
            }
            let by = shortened(&one_line(&remark.by), LABEL_MAX * 2);
            let at = remark.at.as_deref().and_then(Timestamp::from_elsewhere);
            if text != remark.text.trim_end() || by != remark.by || (at.is_none() && remark.at.is_some()) {
                kept.push(
                    json!({ "by": remark.by, "at": remark.at, "key": remark.key, "text": remark.text }),
                );
            }
            // In the spelling that it had.
            if let (Some(text), Some(key), Some(at)) = (&remark.at, &remark.key, at)
                && at.to_string() != *text
            {
                times.insert(key.clone(), json!(text));
            }
            let key = remark.key.map(|key| shortened(&one_line(&key), LABEL_MAX * 2));
            notes.push(json!({ "by": by, "at": at, "key": key, "text": text }));
        }
        if !times.is_empty() {
            self.keep("comment_times", Json::Object(times));
        }
        if !kept.is_empty() {
            self.keep("comments_as_written", Json::Array(kept));
        }
        notes
    }

    /// The moment that a field names. What it says in other words than ours stays.
    pub(super) fn moment(&mut self, name: &str, text: &str) -> Option<Timestamp> {
        let at = Timestamp::from_elsewhere(text);
        if at.map(|at| at.to_string()).as_deref() != Some(text) {
            self.keep(name, text);
        }
        if at.is_none() {
            self.unread.insert(name.to_owned());
        }
        at
    }

    /// A word that means something here, and stays under its own name where it was another one. Two of one name both stay.
    pub(super) fn keep(&mut self, name: &str, value: impl Into<Json>) {
        let value = value.into();
        let is_taken = |name: &str| self.extra.get(name).is_some_and(|there| *there != value);
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let free = std::iter::once(name.to_owned()).chain(numbered).find(|name| !is_taken(name));
        self.extra.extend(free.map(|name| (name, value)));
    }

    /// Everything that nobody has taken stays, and is told unless it is empty.
    pub(super) fn keep_rest(&mut self, rest: Map<String, Json>, unmapped: &mut BTreeSet<String>) {
        for (name, value) in rest {
            let says_nothing = match &value {
                Json::Null => true,
                Json::String(text) => text.is_empty(),
                Json::Array(list) => list.is_empty(),
                Json::Object(fields) => fields.is_empty(),
                _ => false,
            };
            if !says_nothing {
                unmapped.insert(name.clone());
            }
            self.keep(&name, value);
        }
    }
}

/// Takes a text out of an object; what is no text, or an empty one, stays.
pub(super) fn take_text(fields: &mut Map<String, Json>, name: &str) -> Option<String> {
    match fields.get(name) {
        Some(Json::String(text)) if !text.trim().is_empty() => {
            fields.remove(name).and_then(|value| value.as_str().map(str::to_owned))
        }
        _ => None,
    }
}

/// A word that says how far something is: what stands there and is none keeps the entry out, for it might have ended.
pub(super) fn take_status(fields: &mut Map<String, Json>, name: &str) -> Result<Option<String>, String> {
    let word = match fields.get(name) {
        None | Some(Json::Null) => return Ok(None),
        Some(Json::String(text)) => text.trim().to_owned(),
        Some(Json::Number(number)) => number.to_string(),
        Some(_) => return Err(format!("its {name} is no word")),
    };
    fields.remove(name);
    Ok(Some(word).filter(|word| !word.is_empty()))
}

/// What it waits for: a list of names, or one of them. What is none keeps the entry out, for it might have to wait.
pub(super) fn take_links(fields: &mut Map<String, Json>, name: &str) -> Result<Vec<String>, String> {
    match fields.get(name) {
        None | Some(Json::Null) => Ok(Vec::new()),
        Some(Json::String(text)) if text.trim().is_empty() => Ok(Vec::new()),
        Some(_) => take_names(fields, name).ok_or_else(|| format!("its {name} are no list of names")),
    }
}

/// A name that some tools write as a number.
pub(super) fn take_name(fields: &mut Map<String, Json>, name: &str) -> Option<String> {
    let found = name_of(fields.get(name)?)?;
    fields.remove(name);
    Some(found)
}

pub(super) fn name_of(value: &Json) -> Option<String> {
    match value {
        Json::String(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A list of texts or numbers; a list of anything else stays.
pub(super) fn take_names(fields: &mut Map<String, Json>, name: &str) -> Option<Vec<String>> {
    let names = match fields.get(name)? {
        Json::Array(list) => list.iter().map(name_of).collect::<Option<Vec<String>>>()?,
        one => vec![name_of(one)?],
    };
    fields.remove(name);
    Some(names)
}

/// The words for kinds that rules know by another name.
pub(crate) fn kind_of(word: &str) -> String {
    match word.to_ascii_lowercase().as_str() {
        "bug" | "defect" => "defect".to_owned(),
        _ => word.to_owned(),
    }
}

/// A text without what steers a terminal or hides from readers.
pub(super) fn clean(text: &str) -> String {
    let unwanted = |c: char| is_unprintable(c) && !matches!(c, '\n' | '\t' | '\r');
    let text = text.trim_end();
    if !text.contains(unwanted) {
        return text.to_owned();
    }
    text.chars().filter(|c| !unwanted(*c)).collect()
}

pub(super) fn one_line(text: &str) -> String {
    let line: String = text.chars().map(|c| if is_unprintable(c) { ' ' } else { c }).collect();
    line.trim().to_owned()
}

fn is_label(text: &str) -> bool {
    !text.trim().is_empty() && text.len() <= LABEL_MAX && !text.chars().any(is_unprintable)
}

/// What the entries of a file are called by others of it.
#[derive(Debug, Default)]
pub(super) struct NamesInFile {
    own: HashSet<String>,
    /// Those that have an id here.
    carried: HashMap<String, String>,
}

impl NamesInFile {
    pub(super) fn of(items: &[Item]) -> NamesInFile {
        let mut names = NamesInFile::default();
        for item in items {
            match &item.carried {
                Some(carried) => drop(names.carried.insert(item.key.clone(), carried.id.clone())),
                None => drop(names.own.insert(item.key.clone())),
            }
        }
        names
    }

    /// What an entry of the tool means by a name.
    fn of_own(&self, channel: &str, key: &str) -> String {
        self.carried.get(key).cloned().unwrap_or_else(|| origin(channel, key))
    }

    /// What one of our own export means: what is not in the file has its id here.
    fn of_carried(&self, channel: &str, key: &str) -> String {
        match self.own.contains(key) {
            true => origin(channel, key),
            false => self.carried.get(key).map_or(key, String::as_str).to_owned(),
        }
    }
}

fn origin(channel: &str, key: &str) -> String {
    format!("{channel}:{}", encoded(key))
}

/// A key as an origin has it: no blanks, nothing that nobody sees.
fn encoded(key: &str) -> String {
    let key: String =
        key.chars().map(|c| if c.is_whitespace() || is_unprintable(c) { '_' } else { c }).collect();
    shortened(&key, 400)
}

fn named(key: &str) -> String {
    if key.is_empty() { "an entry".to_owned() } else { onus_core::id::shown(key) }
}

/// Words for how urgent something is, as most tools have them.
pub(super) fn urgency(word: &str) -> Option<Priority> {
    match word.trim().to_lowercase().as_str() {
        "critical" | "urgent" | "immediate" | "highest" | "blocker" => Some(Priority::P0),
        "high" => Some(Priority::P1),
        "medium" | "normal" | "moderate" => Some(Priority::P2),
        "low" => Some(Priority::P3),
        "lowest" | "trivial" | "none" => Some(Priority::P4),
        other => other.parse().ok(),
    }
}
