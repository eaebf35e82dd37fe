//! A verification milestone: a named set of tasks that closes only when it is proven (mission C10).
//!
//! It names its tasks and copies nothing of them: what is missing is told from the record whenever somebody asks
//! ([`findings`]), and closing keeps a fingerprint of what was verified.

mod findings;
mod story;

pub use findings::{Member, Verification, findings};
pub use story::{Completion, Ran, Story, fingerprint};

use crate::code::Code;
use crate::event::{Event, MilestoneAdded, MilestoneClosed, MilestoneEdited, Stamped};
use crate::facts::Caller;
use crate::hash::Digest;
use crate::id::{Handle, MilestoneName, Seq, TaskId};
use crate::refusal::{Finding, Refusal};
use crate::registry::{Registration, known, person};
use crate::task::{Inconsistent, Spec, Task};
use crate::text::{LABEL_MAX, LIST_MAX, TITLE_MAX, counted, line};
use crate::time::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// So many tasks can be verified together.
pub const MEMBERS_MAX: usize = 5_000;

/// Which tasks a milestone is about: named one by one, or by what they share. Whoever looks asks anew.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tasks: BTreeSet<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sprint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// This task and its slices
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
}

impl Selection {
    /// Whether a task is one of them.
    pub fn has(&self, task: &Task) -> bool {
        let Selection { tasks, sprint, tag, parent } = self;
        let Spec { sprint: own_sprint, tags, parent: own_parent, .. } = &task.spec;
        tasks.contains(&task.id)
            || (sprint.is_some() && sprint == own_sprint)
            || (parent.is_some() && (parent == own_parent || parent.as_ref() == Some(&task.id)))
            || tag.as_ref().is_some_and(|tag| tags.contains(tag))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Milestone {
    pub name: MilestoneName,
    pub title: Option<String>,
    pub selection: Selection,
    /// The day by which it is meant to be reached.
    pub target: Option<Date>,
    /// The entry that added it.
    pub born: Seq,
    pub closed: Option<Closed>,
}

/// What was verified, and by which entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closed {
    pub seq: Seq,
    pub fingerprint: Digest,
}

/// What an entry makes of a milestone. Folding the workspace's own chain with it gives the row.
pub fn evolve(before: Option<Milestone>, entry: &Stamped) -> Result<Milestone, Inconsistent> {
    match (&entry.event, before) {
        (Event::MilestoneAdded(MilestoneAdded { name, title, selection, target }), None) => Ok(Milestone {
            name: name.clone(),
            title: title.clone(),
            selection: selection.clone(),
            target: *target,
            born: entry.seq,
            closed: None,
        }),
        (Event::MilestoneEdited(MilestoneEdited { title, target, .. }), Some(old))
            if old.closed.is_none() =>
        {
            Ok(Milestone { title: title.clone(), target: *target, ..old })
        }
        (Event::MilestoneClosed(MilestoneClosed { fingerprint, .. }), Some(old)) if old.closed.is_none() => {
            Ok(Milestone { closed: Some(Closed { seq: entry.seq, fingerprint: *fingerprint }), ..old })
        }
        (event, _) => Err(Inconsistent(format!("`{}` cannot follow what came before it", event.verb()))),
    }
}

/// Which milestone an event changes.
pub fn changed(event: &Event) -> Option<&MilestoneName> {
    match event {
        Event::MilestoneAdded(MilestoneAdded { name, .. })
        | Event::MilestoneEdited(MilestoneEdited { name, .. })
        | Event::MilestoneClosed(MilestoneClosed { name, .. }) => Some(name),
        _ => None,
    }
}

/// Whether a milestone may be added as it is wanted. `found` has its name; `unknown` are tasks that it names and that
/// are not there.
pub fn register(
    found: Option<&Milestone>,
    wanted: &MilestoneAdded,
    unknown: &[TaskId],
) -> Result<Registration, Refusal> {
    if let Some(refusal) = Refusal::from_findings(faults(wanted, unknown)) {
        return Err(refusal);
    }
    match found {
        None => Ok(Registration::Created),
        Some(found)
            if (&found.title, &found.selection, found.target)
                == (&wanted.title, &wanted.selection, wanted.target) =>
        {
            Ok(Registration::Existing)
        }
        Some(found) if found.selection == wanted.selection => {
            Err(Refusal::invalid(format!("the milestone {} is there already", wanted.name))
                .hint(format!("onus milestone edit {} --title TEXT --target DATE", wanted.name)))
        }
        Some(_) => {
            Err(Refusal::invalid(format!("the milestone {} is there already, with other tasks", wanted.name))
                .hint("choose another name, or leave it as it is"))
        }
    }
}

fn faults(wanted: &MilestoneAdded, unknown: &[TaskId]) -> Vec<Finding> {
    let invalid = |detail| Finding::new(Code::InvalidInput, detail);
    let Selection { tasks, sprint, tag, parent } = &wanted.selection;
    let mut found = Vec::new();
    if tasks.is_empty() && sprint.is_none() && tag.is_none() && parent.is_none() {
        found.push(invalid("a milestone names its tasks".into()).hint("--task, --sprint, --tag or --parent"));
    }
    if tasks.len() > LIST_MAX {
        found.push(
            invalid(format!("{} tasks are named one by one; the limit is {LIST_MAX}", tasks.len()))
                .hint("name them by what they share: --sprint, --tag or --parent"),
        );
    }
    let texts = [
        ("the title", &wanted.title, TITLE_MAX),
        ("the sprint", sprint, LABEL_MAX),
        ("the tag", tag, LABEL_MAX),
    ];
    for (what, text, max) in texts {
        found.extend(text.as_deref().and_then(|text| line(what, text, max).err()).map(invalid));
    }
    found.extend(unknown.iter().map(|task| {
        Finding::new(Code::UnknownTask, format!("there is no task {task}")).hint("onus list --state all")
    }));
    found
}

/// Calls a milestone otherwise, or moves the day by which it is meant to be reached: who does, and the event; none where
/// nothing is other than it was. People only, and not once it is closed.
pub fn edit(
    caller: &Caller,
    milestone: &Milestone,
    wanted: &MilestoneEdit,
) -> Result<(Handle, Option<Event>), Refusal> {
    let by = person(caller)?.clone();
    let Milestone { name, .. } = milestone;
    if milestone.closed.is_some() {
        let refusal = Refusal::new(Code::WrongState, format!("{name} is closed: what was verified stays"));
        return Err(refusal.hint(format!("onus milestone show {name}")));
    }
    let title = match &wanted.title {
        None => milestone.title.clone(),
        Some(title) => Some(line("the title", title, TITLE_MAX).map_err(Refusal::invalid)?),
    };
    let target = match wanted.target {
        None => milestone.target,
        Some(TargetDate::None) => None,
        Some(TargetDate::On(day)) => Some(day),
    };
    if (&title, target) == (&milestone.title, milestone.target) {
        return Ok((by, None));
    }
    Ok((by, Some(MilestoneEdited { name: name.clone(), title, target }.into())))
}

/// What somebody wants to be other; what is absent stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MilestoneEdit {
    /// What it is for
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The day by which it is meant to be reached, such as 2026-11-30; `none` takes it away
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<TargetDate>,
}

/// A day, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetDate {
    None,
    On(Date),
}

impl std::fmt::Display for TargetDate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TargetDate::None => f.write_str("none"),
            TargetDate::On(day) => day.fmt(f),
        }
    }
}

impl std::str::FromStr for TargetDate {
    type Err = String;

    fn from_str(text: &str) -> Result<TargetDate, String> {
        if text == "none" { Ok(TargetDate::None) } else { text.parse().map(TargetDate::On) }
    }
}

/// How a day that is aimed at stands to today, in words: `12 days left`, `due today`, `3 days late`.
pub fn due_in_words(target: Date, today: Date) -> String {
    match days_left(target, today) {
        0 => "due today".to_owned(),
        left if left > 0 => format!("{} left", counted(left, "day")),
        late => format!("{} late", counted(-late, "day")),
    }
}

/// How many days are left; fewer than none once it is late.
pub fn days_left(target: Date, today: Date) -> i64 {
    i64::from((target.0 - today.0).get_days())
}

crate::serde_by_display!(TargetDate);

impl JsonSchema for TargetDate {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TargetDate".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "pattern": "^(none|\\d{4}-\\d{2}-\\d{2})$"})
    }
}

/// Closes a milestone of which nothing is missing: who does, and the event; none where it is closed already. People
/// close, and so do verifiers: whoever built the work is no judge of it.
pub fn close(
    caller: &Caller,
    milestone: &Milestone,
    missing: Vec<Finding>,
    fingerprint: Digest,
) -> Result<(Handle, Option<Event>), Refusal> {
    let worker = known(caller)?;
    let Milestone { name, .. } = milestone;
    if !worker.is_human() && !worker.is_verifier() {
        let detail = format!("{} is an agent; only a person or a verifier closes a milestone", worker.handle);
        return Err(Refusal::new(Code::HumanRequired, detail).hint("ask a person"));
    }
    let by = worker.handle.clone();
    if milestone.closed.is_some() {
        return Ok((by, None));
    }
    if !missing.is_empty() {
        return Err(incomplete(name, missing));
    }
    Ok((by, Some(MilestoneClosed { name: name.clone(), fingerprint }.into())))
}

/// The refusal that lists exactly what is missing.
pub fn incomplete(name: &MilestoneName, missing: Vec<Finding>) -> Refusal {
    let detail = match missing.as_slice() {
        [only] => format!("{name}: {}", only.detail),
        several => format!("{name}: {} things are missing", several.len()),
    };
    let hint = match missing.as_slice() {
        [only] => only.hint.clone(),
        _ => None,
    };
    let refusal = Refusal::new(Code::MilestoneIncomplete, detail).findings(missing);
    refusal.hint(hint.unwrap_or_else(|| format!("onus milestone show {name}")))
}
