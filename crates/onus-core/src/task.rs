//! The Task: the one mutable row that owns a unit of work (mission A1, A3).

mod differences;
mod evolve;
mod moves;

pub use evolve::{Inconsistent, evolve};
pub use moves::{By, Move, moves};

use crate::constraint::Constraint;
use crate::hash::Fields;
use crate::id::CheckId;
use crate::id::{
    CommitId, Epoch, Handle, OriginRef, ProjectKey, Role, Seq, TaskId, TaskType, WorkstationName,
};
use crate::lease::Lease;
use crate::text::Text;
use crate::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// What was asked for. Only an edit changes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Text>,
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub task_type: Option<TaskType>,
    pub kind: String,
    pub priority: Priority,
    #[serde(default, skip_serializing_if = "Risk::is_normal")]
    pub risk: Risk,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sprint: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge_order: Option<i64>,
    #[serde(rename = "origin_ask_ref", default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<OriginRef>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// What no command can prove: another worker ticks it off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<Criterion>,
    /// What the system that it came from says of it and Onus has no field for: a JSON object, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Text>,
}

impl Spec {
    /// How much its checks, criteria, scope and tags have together.
    pub fn lists_bytes(&self) -> usize {
        let checks = self.checks.iter().map(|check| check.command.len());
        let criteria = self.criteria.iter().map(|criterion| criterion.text.len());
        let words = self.scope.iter().chain(&self.tags).map(String::len);
        checks.chain(criteria).chain(words).sum()
    }

    /// How much all of its texts have.
    pub fn bytes(&self) -> usize {
        let texts =
            [&self.body, &self.extra].map(|text| text.as_ref().and_then(Text::content).map_or(0, str::len));
        self.title.len() + texts.iter().sum::<usize>() + self.lists_bytes()
    }

    /// An ask of a title and nothing else.
    pub fn titled(title: impl Into<String>) -> Spec {
        Spec {
            title: title.into(),
            body: None,
            task_type: None,
            kind: String::new(),
            priority: Priority::default(),
            risk: Risk::default(),
            role: None,
            lane: None,
            sprint: None,
            tags: Vec::new(),
            scope: Vec::new(),
            parent: None,
            merge_order: None,
            origin: None,
            checks: Vec::new(),
            criteria: Vec::new(),
            extra: None,
        }
    }
}

/// An acceptance criterion: prose that a reviewer ticks off (mission D7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Criterion {
    pub text: String,
    /// Who found it met, and when; nothing while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticked: Option<Tick>,
}

/// A reviewer's word that a criterion is met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tick {
    pub by: Handle,
    pub at: Timestamp,
}

impl Criterion {
    pub fn open(text: impl Into<String>) -> Criterion {
        Criterion { text: text.into(), ticked: None }
    }

    /// Another text is another criterion, and needs its own tick.
    pub fn id(&self) -> CheckId {
        CheckId::of(&Fields::new("onus-criterion-1").text(&self.text).digest())
    }
}

/// A command that proves a part of the work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    pub command: String,
    pub state: CheckState,
    #[serde(default, skip_serializing_if = "CheckKind::is_acceptance")]
    pub kind: CheckKind,
}

impl Check {
    /// Another text or another kind is another check: it needs its own approval and its own run.
    pub fn id(&self) -> CheckId {
        CheckId::of(&Fields::new("onus-check-1").text(self.kind.name()).text(&self.command).digest())
    }
}

/// What a check proves (mission D7, D8, D9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckKind {
    /// The work does what was asked for.
    #[default]
    Acceptance,
    /// The code that does it is there.
    CodeAnchor,
    /// The path that does it is run.
    Runtime,
    /// The cause of a defect is gone, not only its symptom.
    RootCause,
}

impl CheckKind {
    pub const ALL: [CheckKind; 4] =
        [CheckKind::Acceptance, CheckKind::CodeAnchor, CheckKind::Runtime, CheckKind::RootCause];

    pub const fn name(self) -> &'static str {
        match self {
            CheckKind::Acceptance => "acceptance",
            CheckKind::CodeAnchor => "code-anchor",
            CheckKind::Runtime => "runtime",
            CheckKind::RootCause => "root-cause",
        }
    }

    pub fn parse(text: &str) -> Option<CheckKind> {
        CheckKind::ALL.into_iter().find(|kind| kind.name() == text)
    }

    fn is_acceptance(&self) -> bool {
        *self == CheckKind::Acceptance
    }
}

/// Only a person's word lets a command run: others' checks wait as proposed (threat 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    Approved,
    Proposed,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, Default,
)]
pub enum Priority {
    P0,
    P1,
    #[default]
    P2,
    P3,
    P4,
}

impl Priority {
    pub const ALL: [Priority; 5] = [Priority::P0, Priority::P1, Priority::P2, Priority::P3, Priority::P4];

    /// How the store sorts: 0 comes first.
    pub fn rank(self) -> i64 {
        self as i64
    }

    pub fn from_rank(rank: i64) -> Option<Priority> {
        usize::try_from(rank).ok().and_then(|i| Priority::ALL.get(i).copied())
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "P{}", self.rank())
    }
}

impl FromStr for Priority {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digit = text.strip_prefix(['P', 'p']).unwrap_or(text);
        digit
            .parse()
            .ok()
            .filter(|_| digit.len() == 1)
            .and_then(Priority::from_rank)
            .ok_or_else(|| format!("{} is not a priority (P0 to P4)", crate::id::shown(text)))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    Low,
    #[default]
    Normal,
    High,
}

impl Risk {
    pub const fn name(self) -> &'static str {
        match self {
            Risk::Low => "low",
            Risk::Normal => "normal",
            Risk::High => "high",
        }
    }

    pub fn parse(text: &str) -> Option<Risk> {
        match text {
            "low" => Some(Risk::Low),
            "normal" | "medium" => Some(Risk::Normal),
            "high" => Some(Risk::High),
            _ => None,
        }
    }

    fn is_normal(&self) -> bool {
        *self == Risk::Normal
    }
}

/// What keeps a task from going on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocker {
    Task(TaskId),
    Person(Handle),
    External(String),
    Exception(String),
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Blocker::Task(id) => write!(f, "task:{id}"),
            Blocker::Person(handle) => write!(f, "person:{handle}"),
            Blocker::External(text) => write!(f, "external:{text}"),
            Blocker::Exception(id) => write!(f, "exception:{id}"),
        }
    }
}

impl FromStr for Blocker {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            format!(
                "{} is not a blocker (task:ID, person:@x, external:TEXT or exception:ID)",
                crate::id::shown(text)
            )
        };
        let (kind, value) = text.split_once(':').ok_or_else(bad)?;
        let line = |what| crate::text::line(what, value, crate::text::REASON_MAX);
        match kind {
            "task" => Ok(Blocker::Task(value.parse()?)),
            "person" => Ok(Blocker::Person(value.parse()?)),
            "external" => Ok(Blocker::External(line("the blocker")?)),
            "exception" => Ok(Blocker::Exception(line("the exception's id")?)),
            _ => Err(bad()),
        }
    }
}

crate::serde_by_display!(Blocker);

impl JsonSchema for Blocker {
    fn schema_name() -> Cow<'static, str> {
        "Blocker".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "pattern": "^(task|person|external|exception):.+$"})
    }
}

/// Which rule of which version of the identity map sent the work here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Route {
    pub rule: String,
    pub map_commit: Option<String>,
    pub map_hash: String,
}

impl Route {
    /// In the place of a rule: a person stepped over the map.
    pub const FORCED: &str = "forced";
    /// A person stepped over a map that could not be followed.
    pub const FORCED_OVER_INVALID: &str = "forced over an invalid map";

    pub fn is_forced(&self) -> bool {
        self.rule == Route::FORCED || self.rule == Route::FORCED_OVER_INVALID
    }
}

/// Who works on a task, where, and until when (mission B1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    pub assignee: Handle,
    pub tier: Option<String>,
    pub workstation: WorkstationName,
    pub epoch: Epoch,
    pub assigned_at: Timestamp,
    pub lease: Lease,
    pub handoff_reason: Option<String>,
    pub forced: bool,
    pub route: Option<Route>,
    /// The slot of the task's role, where the identity map counts them.
    pub lane: Option<i64>,
    /// The commit that the workstation stood at when the work began.
    pub base: Option<CommitId>,
    /// The holder has stopped its session and keeps the task.
    pub resting: bool,
    /// What the holder is held to, beyond the task's scope.
    #[serde(default)]
    pub constraints: Vec<Constraint>,
}

/// A dependency that somebody asked not to wait for (mission D1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    pub requested_by: Handle,
    pub reason: String,
    /// How to go back if it turns out wrong.
    pub rollback: String,
    /// The decision record, relative to the repository's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adr: Option<String>,
    /// Until a person approves it, the dependency holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<Handle>,
}

impl Exception {
    /// How much its words have.
    pub fn bytes(&self) -> usize {
        self.reason.len() + self.rollback.len() + self.adr.as_ref().map_or(0, String::len)
    }
}

/// Who ended a task, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closing {
    pub by: Handle,
    pub at: Timestamp,
    pub forced: bool,
}

/// The lifecycle. The variant carries the data, so that "in progress without a holder" cannot be written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    Open,
    InProgress(Assignment),
    Blocked { on: Blocker, held: Option<Assignment> },
    Complete(Closing),
    Dropped(Closing),
}

/// The name of a state, without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StateName {
    Open,
    InProgress,
    Blocked,
    Complete,
    Dropped,
}

impl StateName {
    pub const ALL: [StateName; 5] =
        [StateName::Open, StateName::InProgress, StateName::Blocked, StateName::Complete, StateName::Dropped];

    pub const fn name(self) -> &'static str {
        match self {
            StateName::Open => "open",
            StateName::InProgress => "in_progress",
            StateName::Blocked => "blocked",
            StateName::Complete => "complete",
            StateName::Dropped => "dropped",
        }
    }

    /// Also takes the words people bring from other tools.
    pub fn parse(text: &str) -> Option<StateName> {
        match text {
            "open" | "todo" => Some(StateName::Open),
            "in_progress" | "in-progress" | "doing" => Some(StateName::InProgress),
            "blocked" => Some(StateName::Blocked),
            "complete" | "done" | "closed" => Some(StateName::Complete),
            "dropped" | "cancelled" => Some(StateName::Dropped),
            _ => None,
        }
    }

    /// Nobody works on it and nobody will, unless it is reopened.
    pub const fn is_terminal(self) -> bool {
        matches!(self, StateName::Complete | StateName::Dropped)
    }
}

impl fmt::Display for StateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub id: TaskId,
    pub uid: Uuid,
    pub spec: Spec,
    pub depends_on: BTreeSet<TaskId>,
    /// By the dependency that is to be stepped over.
    pub exceptions: BTreeMap<TaskId, Exception>,
    pub state: State,
    /// Rises with every grant, reopening and drop, and never falls.
    pub epoch: Epoch,
    /// The number of its ledger entries: it rises with every one of them.
    pub version: i64,
    /// Completed history from elsewhere: it can never be claimed or reopened.
    pub archived: bool,
    /// Where its story begins in the ledger; the order in which tasks were asked for.
    pub born: Seq,
    pub created_by: Handle,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Task {
    pub fn project(&self) -> &ProjectKey {
        &self.id.project
    }

    /// How much all that is told of it has.
    pub fn bytes(&self) -> usize {
        self.spec.bytes() + self.exceptions.values().map(Exception::bytes).sum::<usize>()
    }

    /// The assignment in force, if somebody holds the task.
    pub fn assignment(&self) -> Option<&Assignment> {
        match &self.state {
            State::InProgress(held) | State::Blocked { held: Some(held), .. } => Some(held),
            _ => None,
        }
    }
}

impl State {
    pub const fn name(&self) -> StateName {
        match self {
            State::Open => StateName::Open,
            State::InProgress(_) => StateName::InProgress,
            State::Blocked { .. } => StateName::Blocked,
            State::Complete(_) => StateName::Complete,
            State::Dropped(_) => StateName::Dropped,
        }
    }
}
