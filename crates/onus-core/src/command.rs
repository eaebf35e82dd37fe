//! What a caller asks for. CLI, HTTP and MCP only build these.

use crate::constraint::Constraint;
use crate::evidence::{Classification, Ground, Proof, ReviewVerdict, RootCause};
use crate::id::CheckId;
use crate::id::{
    CommitId, Epoch, Handle, ProjectKey, RequestId, Role, Seq, TaskId, TaskType, WorkstationName,
};
use crate::lease::Token;
use crate::line_comment::LineComment;
use crate::process::Process;
use crate::session::Usage;
use crate::task::Check;
use crate::task::{Blocker, Priority, Risk, Spec, StateName};
use crate::text::Text;
use crate::time::{Millis, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A person's word that overrides the rules, for ever on record (mission B4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Warrant {
    /// The ordinary rules apply.
    Ordinary,
    Forced {
        reason: Option<String>,
    },
}

/// Whether a blocked task stays with its holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WhileBlocked {
    KeepLease,
    ReleaseLease,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    Add {
        spec: Box<Spec>,
        depends_on: BTreeSet<TaskId>,
        archived: Option<Archive>,
        /// What came with an ask from another system.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arrival: Option<Box<Arrival>>,
    },
    Claim {
        workstation: Option<WorkstationName>,
        /// Where the caller stands; used when it names no workstation, and neither does the identity map.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        here: Option<WorkstationName>,
        /// Who gets it, if not the caller: only people assign.
        #[serde(skip_serializing_if = "Option::is_none")]
        assignee: Option<Handle>,
        ttl: Option<Millis>,
        warrant: Warrant,
        /// What the holder is held to, beyond what the map says.
        #[serde(default)]
        constraints: Vec<Constraint>,
    },
    Takeover {
        workstation: Option<WorkstationName>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        here: Option<WorkstationName>,
        ttl: Option<Millis>,
        reason: Option<String>,
        warrant: Warrant,
    },
    Renew {
        ttl: Option<Millis>,
        /// What works under the lease; seen, not said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        process: Option<Process>,
    },
    Release {
        note: Option<Text>,
        /// The note as part of a whole handoff. It tells the time and what git knows, so a repeated request has another.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        handoff: Option<Text>,
        warrant: Warrant,
    },
    Block {
        on: Blocker,
        lease: WhileBlocked,
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<Text>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        handoff: Option<Text>,
    },
    Unblock,
    Note {
        text: Text,
    },
    /// Something for somebody: by default for the holder, and by the holder for whoever asked. From the person whom a
    /// blocked task waits for it is the answer.
    Say {
        to: Option<Handle>,
        text: Text,
    },
    /// The caller has been told what was said to it about the task, up to this entry.
    Read {
        through: Seq,
    },
    /// Words about lines of a commit, without a verdict.
    Comment {
        commit: Option<CommitId>,
        comments: Vec<LineComment>,
    },
    /// The holder writes down what the next one should know, and goes on.
    Handoff {
        note: Option<Text>,
        #[serde(default, skip_serializing_if = "Text::is_empty")]
        document: Text,
    },
    Complete {
        resolution: Option<Text>,
        #[serde(skip_serializing_if = "Option::is_none")]
        root_cause: Option<RootCause>,
        warrant: Warrant,
        /// What the work was when this was said; seen, not said.
        #[serde(default, skip_serializing_if = "Proof::is_empty")]
        proof: Proof,
    },
    AddCheck {
        check: Check,
    },
    ApproveCheck {
        check: CheckId,
    },
    RemoveCheck {
        check: CheckId,
        reason: Option<String>,
    },
    /// A check was run; this is what it showed.
    RecordCheck {
        run: Box<Run>,
    },
    Review {
        opinion: Box<Opinion>,
    },
    /// A reviewer finds acceptance criteria met, or no longer: by number, by id, or `all`.
    Tick {
        criteria: Vec<String>,
        withdrawn: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workstation: Option<WorkstationName>,
    },
    Reopen {
        reason: Option<String>,
    },
    Drop {
        reason: Option<String>,
    },
    /// What was asked for is put differently.
    Edit {
        changes: Box<Changes>,
    },
    AddDependency {
        on: TaskId,
    },
    RemoveDependency {
        on: TaskId,
    },
    RequestException {
        on: TaskId,
        reason: Option<String>,
        rollback: Option<String>,
        adr: Option<String>,
    },
    ApproveException {
        on: TaskId,
    },
    /// The holder's commits are about to enter the main branch.
    Merge {
        commit: CommitId,
        onto: CommitId,
        checks: Vec<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        root_cause: Option<RootCause>,
        #[serde(default)]
        stage: Stage,
        /// What the work is; seen, not said.
        #[serde(default)]
        proof: Proof,
    },
    /// Another worker should look at the work.
    RequestReview {
        commit: Option<CommitId>,
    },
    /// The holder goes on with the commits of an earlier epoch of the same task.
    Adopt {
        of: Epoch,
        commits: Vec<CommitId>,
    },
    /// What the holder of an earlier epoch left behind is kept under a reference.
    Salvage {
        of: Epoch,
        reference: String,
        commit: CommitId,
    },
    /// The holder goes on working.
    StartSession,
    /// The holder rests and keeps its lease.
    StopSession,
    CorrectSession {
        session: Seq,
        started_at: Timestamp,
        ended_at: Timestamp,
        reason: Option<String>,
    },
    RecordUsage {
        session: Seq,
        usage: Usage,
    },
    /// Nothing more comes of a session's output: what is kept of it goes on record.
    CloseOutput {
        session: Seq,
    },
}

/// What is to be different about a task; what is left out stays as it is. A list takes the place of the one before; words
/// that begin with `+` or `-` add to it and take away from it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Changes {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub body: Patch<Text>,
    #[serde(rename = "type", skip_serializing_if = "Patch::is_keep")]
    pub task_type: Patch<TaskType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk: Option<Risk>,
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub role: Patch<Role>,
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub lane: Patch<i64>,
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub sprint: Patch<String>,
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub parent: Patch<TaskId>,
    #[serde(skip_serializing_if = "Patch::is_keep")]
    pub merge_order: Patch<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraints: Option<Vec<String>>,
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        *self == Changes::default()
    }

    /// The tasks that it names as dependencies, where they are names of tasks.
    pub fn named_dependencies(&self) -> impl Iterator<Item = TaskId> {
        let words = self.depends_on.iter().flatten();
        words.filter_map(|word| word.trim_start_matches(['+', '-']).parse().ok()).take(crate::text::LIST_MAX)
    }
}

/// One field that may be left out, be emptied, or get a value. In a document it is absent, null, or the value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Patch<T> {
    #[default]
    Keep,
    Clear,
    To(T),
}

impl<T> Patch<T> {
    pub const fn is_keep(&self) -> bool {
        matches!(self, Patch::Keep)
    }

    pub const fn given(&self) -> Option<&T> {
        match self {
            Patch::To(value) => Some(value),
            Patch::Keep | Patch::Clear => None,
        }
    }

    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Patch<U> {
        match self {
            Patch::Keep => Patch::Keep,
            Patch::Clear => Patch::Clear,
            Patch::To(value) => Patch::To(change(value)),
        }
    }
}

impl<T: Clone> Patch<T> {
    /// What the field holds afterwards.
    pub fn over(&self, present: Option<&T>) -> Option<T> {
        match self {
            Patch::Keep => present.cloned(),
            Patch::Clear => None,
            Patch::To(value) => Some(value.clone()),
        }
    }
}

impl<T: Serialize> Serialize for Patch<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.given().serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Patch<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Patch::Clear, Patch::To))
    }
}

impl<T: JsonSchema> JsonSchema for Patch<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Option::<T>::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Option::<T>::json_schema(generator)
    }

    fn inline_schema() -> bool {
        true
    }
}

/// How far a merge is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Stage {
    /// Its checks have still to run: everything else is asked first.
    Ask,
    #[default]
    Land,
    /// A shared repository asks: who pushes has no words to say why a defect happened.
    Receive,
}

/// What one run of a check showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub check: CheckId,
    pub exit: Option<i32>,
    pub signal: Option<i32>,
    pub timed_out: bool,
    pub took_ms: i64,
    pub ground: Ground,
    pub output: Text,
    pub output_length: i64,
    pub output_sha256: String,
    pub environment: String,
    pub sandbox: String,
}

/// What a reviewer says about the work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opinion {
    pub verdict: ReviewVerdict,
    pub classification: Classification,
    pub commit: Option<CommitId>,
    pub workstation: Option<WorkstationName>,
    pub note: Option<Text>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comments: Vec<LineComment>,
}

/// History from elsewhere: it arrives finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Archive {
    pub state: StateName,
    pub resolution: Option<Text>,
    /// When it ended there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// How an ask stood in the system that it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrival {
    #[serde(default)]
    pub created_at: Option<Timestamp>,
    /// What it waited for; only for an ask that has not ended.
    #[serde(default)]
    pub blocked: Option<Blocker>,
}

impl Command {
    /// The word people type.
    pub const fn name(&self) -> &'static str {
        match self {
            Command::Add { .. } => "add",
            Command::Claim { .. } => "claim",
            Command::Takeover { .. } => "takeover",
            Command::Renew { .. } => "renew",
            Command::Release { .. } => "release",
            Command::Block { .. } => "block",
            Command::Unblock => "unblock",
            Command::Note { .. } => "note",
            Command::Say { .. } => "say",
            Command::Read { .. } => "inbox read",
            Command::Comment { .. } => "review --comment",
            Command::Handoff { .. } => "handoff",
            Command::Complete { .. } => "complete",
            Command::AddCheck { .. } => "check add",
            Command::ApproveCheck { .. } => "check approve",
            Command::RemoveCheck { .. } => "check remove",
            Command::RecordCheck { .. } => "check",
            Command::Review { .. } => "review",
            Command::Tick { .. } => "review --tick",
            Command::Reopen { .. } => "reopen",
            Command::Drop { .. } => "drop",
            Command::Edit { .. } => "edit",
            Command::AddDependency { .. } => "dep add",
            Command::RemoveDependency { .. } => "dep remove",
            Command::RequestException { .. } => "exception request",
            Command::ApproveException { .. } => "exception approve",
            Command::Merge { .. } => "merge",
            Command::RequestReview { .. } => "review request",
            Command::Adopt { .. } => "adopt",
            Command::Salvage { .. } => "salvage",
            Command::StartSession => "session start",
            Command::StopSession => "session stop",
            Command::CorrectSession { .. } => "session correct",
            Command::RecordUsage { .. } => "session usage",
            Command::CloseOutput { .. } => "session output",
        }
    }

    /// The command without what its caller did not say but saw: the place, the time, what git knows. A repeated request
    /// says the same and may see something else.
    pub fn said(&self) -> Command {
        let mut said = self.clone();
        match &mut said {
            Command::Claim { here, .. } | Command::Takeover { here, .. } => *here = None,
            Command::Renew { process, .. } => *process = None,
            Command::Release { handoff, .. } | Command::Block { handoff, .. } => *handoff = None,
            Command::Handoff { document, .. } => *document = Text::default(),
            Command::Complete { proof, .. } | Command::Merge { proof, .. } => *proof = Proof::default(),
            _ => {}
        }
        said
    }

    /// Whether its texts are an ask's, which belong to the system that it came from.
    pub fn says_what_is_asked_for(&self) -> bool {
        matches!(self, Command::Add { .. } | Command::Edit { .. })
    }

    /// The texts of a command, in a fixed order: written down by their digests, they travel beside it.
    pub fn texts_mut(&mut self) -> Vec<&mut Text> {
        match self {
            Command::Add { spec, archived, .. } => {
                let resolution = archived.as_mut().and_then(|archive| archive.resolution.as_mut());
                spec.body.iter_mut().chain(resolution).chain(spec.extra.iter_mut()).collect()
            }
            Command::Release { note, handoff, .. } | Command::Block { note, handoff, .. } => {
                note.iter_mut().chain(handoff).collect()
            }
            Command::Note { text } | Command::Say { text, .. } => vec![text],
            Command::Comment { comments, .. } => {
                comments.iter_mut().map(|comment| &mut comment.text).collect()
            }
            Command::Handoff { note, document } => note.iter_mut().chain([document]).collect(),
            Command::Complete { resolution, proof, .. } => {
                resolution.iter_mut().chain(&mut proof.handoff).collect()
            }
            Command::RecordCheck { run } => vec![&mut run.output],
            Command::Edit { changes } => match &mut changes.body {
                Patch::To(body) => vec![body],
                Patch::Keep | Patch::Clear => Vec::new(),
            },
            Command::Review { opinion } => {
                let comments = opinion.comments.iter_mut().map(|comment| &mut comment.text);
                opinion.note.iter_mut().chain(comments).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The same texts, to look at.
    pub fn texts(&self) -> Vec<&Text> {
        match self {
            Command::Add { spec, archived, .. } => {
                let resolution = archived.as_ref().and_then(|archive| archive.resolution.as_ref());
                spec.body.iter().chain(resolution).chain(&spec.extra).collect()
            }
            Command::Release { note, handoff, .. } | Command::Block { note, handoff, .. } => {
                note.iter().chain(handoff).collect()
            }
            Command::Note { text } | Command::Say { text, .. } => vec![text],
            Command::Comment { comments, .. } => comments.iter().map(|comment| &comment.text).collect(),
            Command::Handoff { note, document } => note.iter().chain([document]).collect(),
            Command::Complete { resolution, .. } => resolution.iter().collect(),
            Command::RecordCheck { run } => vec![&run.output],
            Command::Edit { changes } => changes.body.given().into_iter().collect(),
            Command::Review { opinion } => {
                opinion.note.iter().chain(opinion.comments.iter().map(|comment| &comment.text)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether the identity map has a say.
    pub fn needs_policy(&self) -> bool {
        match self {
            Command::Complete { .. }
            | Command::Merge { .. }
            | Command::Review { .. }
            | Command::RecordCheck { .. } => true,
            Command::Edit { changes } => changes.constraints.is_some(),
            _ => self.is_grant(),
        }
    }

    /// Whether it would make somebody the holder.
    pub const fn is_grant(&self) -> bool {
        matches!(self, Command::Claim { .. } | Command::Takeover { .. })
    }
}

/// A command with who asks, about what, and under which name it may be repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    pub request: RequestId,
    pub actor: Option<Handle>,
    pub token: Option<Token>,
    pub task: Option<TaskId>,
    /// Where a new task goes.
    pub project: Option<ProjectKey>,
    /// For a grant through a server: the commit that the working tree stands at, which only the caller sees.
    pub base: Option<CommitId>,
    pub command: Command,
}
