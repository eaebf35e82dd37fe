//! The documents that people, agents and scripts read (interface.md, "JSON shapes"). Fields may be added, never renamed.

mod landing;
mod registry;

pub use crate::show::{DependencyView, StoryView};
pub use landing::*;
pub use registry::*;

use crate::exception::ExceptionView;
use crate::submit::{Receipt, ReceiptKind};
use onus_core::code::Code;
use onus_core::contract_request::decision;
use onus_core::event::Said;
use onus_core::evidence::CheckVerdict;
use onus_core::id::CheckId;
use onus_core::id::{CommitId, Handle, OriginRef, Role, TaskId, TaskType, WorkstationName};
use onus_core::lease::Token;
use onus_core::ledger::Entry;
use onus_core::process::Death;
use onus_core::refusal::Refusal;
use onus_core::report::said;
use onus_core::task::{Assignment, Check, Criterion, Priority, Risk, Route, State, StateName, Task};
use onus_core::task::{CheckKind, CheckState};
use onus_core::text::is_unprintable;
use onus_core::time::Timestamp;
use onus_store::evidence::KeptRun;
use onus_store::read::show::{Note, PastAssignment};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A view as the one versioned document that every front end shows: it says which contract it follows.
pub fn document<T: Serialize>(view: &T) -> Result<String, Refusal> {
    let json = serde_json::to_string(view).map_err(|e| Refusal::new(Code::Internal, e.to_string()))?;
    Ok(match json.strip_prefix('{') {
        Some("}") => "{\"format\":\"onus/1\"}".to_owned(),
        Some(rest) => format!("{{\"format\":\"onus/1\",{rest}"),
        None => json,
    })
}

/// A refusal as every front end tells it.
pub fn error(refusal: &Refusal) -> serde_json::Value {
    serde_json::json!({ "error": {
        "code": refusal.code,
        "title": refusal.code.title(),
        "detail": refusal.detail,
        "hint": refusal.hint,
        "task": refusal.task,
        "findings": refusal.findings,
        "request_id": refusal.request_id,
    }})
}

/// A task as everybody sees it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TaskView {
    pub id: TaskId,
    pub uid: String,
    pub title: String,
    pub body: Option<String>,
    #[serde(rename = "type")]
    pub task_type: Option<TaskType>,
    pub kind: String,
    pub state: StateName,
    /// What its owner said to a contract request: undecided, accepted, deferred, rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    pub priority: Priority,
    pub risk: Risk,
    pub role: Option<Role>,
    pub lane: Option<i64>,
    pub sprint: Option<String>,
    pub tags: Vec<String>,
    pub scope: Vec<String>,
    pub depends_on: Vec<TaskId>,
    /// Dependencies that are not waited for, or that somebody asked not to wait for.
    pub exceptions: Vec<ExceptionView>,
    pub parent: Option<TaskId>,
    pub merge_order: Option<i64>,
    pub origin_ask_ref: Option<OriginRef>,
    pub checks: Vec<Check>,
    /// What another worker ticks off, in the order of their numbers.
    #[serde(default)]
    pub criteria: Vec<Criterion>,
    /// What the system that it came from says of it and Onus has no field for.
    #[serde(default)]
    pub extra: Option<serde_json::Map<String, serde_json::Value>>,
    pub assignment: Option<AssignmentView>,
    /// What a blocked task waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_on: Option<String>,
    /// Ended by a person's force, against the rules.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
    /// History from elsewhere; it can never be claimed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed_by: Option<Handle>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Timestamp>,
    pub version: i64,
    pub created_by: Handle,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// The words of the task come from whoever asked: data, never instructions.
    pub untrusted: bool,
}

impl TaskView {
    /// The name that people know it by in the tool that it came from.
    pub fn known_as(&self) -> Option<&str> {
        self.origin_ask_ref.as_ref().and_then(onus_core::intake::known_as)
    }

    /// What another system says of it, for people: each field's name and words, which steer no terminal.
    pub fn extra_words(&self) -> Vec<(String, String)> {
        let plain = |text: &str| -> String {
            let shown = |c: char| !is_unprintable(c) || matches!(c, '\n' | '\t');
            text.chars().map(|c| if shown(c) { c } else { '\u{fffd}' }).collect()
        };
        let fields = self.extra.iter().flatten();
        let words = |value: &serde_json::Value| match value {
            serde_json::Value::String(text) => plain(text),
            other => plain(&other.to_string()),
        };
        fields.map(|(name, value)| (plain(name), words(value))).collect()
    }
}

impl From<&Task> for TaskView {
    fn from(task: &Task) -> TaskView {
        let spec = &task.spec;
        let closing = match &task.state {
            State::Complete(closing) | State::Dropped(closing) => Some(closing),
            _ => None,
        };
        TaskView {
            id: task.id.clone(),
            uid: task.uid.to_string(),
            title: spec.title.clone(),
            body: spec.body.as_ref().and_then(|body| body.content()).map(str::to_owned),
            task_type: spec.task_type.clone(),
            kind: spec.kind.clone(),
            state: task.state.name(),
            decision: decision(&spec.kind, task.state.name()).map(str::to_owned),
            priority: spec.priority,
            risk: spec.risk,
            role: spec.role.clone(),
            lane: spec.lane,
            sprint: spec.sprint.clone(),
            tags: spec.tags.clone(),
            scope: spec.scope.clone(),
            depends_on: task.depends_on.iter().cloned().collect(),
            exceptions: ExceptionView::of(task),
            parent: spec.parent.clone(),
            merge_order: spec.merge_order,
            origin_ask_ref: spec.origin.clone(),
            checks: spec.checks.clone(),
            criteria: spec.criteria.clone(),
            // What is no object was never let in: `ledger verify` tells of a row that was changed by hand.
            extra: spec.extra.as_ref().and_then(|extra| serde_json::from_str(extra.content()?).ok()),
            assignment: task.assignment().map(|held| AssignmentView::new(task, held, None, None)),
            blocked_on: match &task.state {
                State::Blocked { on, .. } => Some(on.to_string()),
                _ => None,
            },
            forced: closing.is_some_and(|closing| closing.forced),
            archived: task.archived,
            closed_by: closing.map(|closing| closing.by.clone()),
            closed_at: closing.map(|closing| closing.at),
            version: task.version,
            created_by: task.created_by.clone(),
            created_at: task.created_at,
            updated_at: task.updated_at,
            untrusted: true,
        }
    }
}

/// Who worked on a task, where, and under which lease (mission B1).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AssignmentView {
    pub task: TaskId,
    pub assignee: Handle,
    pub tier: Option<String>,
    pub workstation: WorkstationName,
    pub scope: Vec<String>,
    pub constraints: Vec<String>,
    pub epoch: i64,
    pub assigned_at: Timestamp,
    pub lease_ttl_ms: i64,
    pub lease_expires_at: Timestamp,
    pub renewed_at: Timestamp,
    pub renewals: i64,
    pub handoff_reason: Option<String>,
    pub forced: bool,
    pub route: Option<Route>,
    pub lane: Option<i64>,
    /// The commit that the workstation stood at when the work began.
    pub base: Option<CommitId>,
    pub ended_at: Option<Timestamp>,
    pub end_reason: Option<String>,
}

impl AssignmentView {
    fn new(task: &Task, held: &Assignment, ended_at: Option<Timestamp>, end_reason: Option<String>) -> Self {
        AssignmentView {
            task: task.id.clone(),
            assignee: held.assignee.clone(),
            tier: held.tier.clone(),
            workstation: held.workstation.clone(),
            scope: task.spec.scope.clone(),
            constraints: held.constraints.iter().map(ToString::to_string).collect(),
            epoch: held.epoch,
            assigned_at: held.assigned_at,
            lease_ttl_ms: held.lease.ttl.0,
            lease_expires_at: held.lease.expires_at(),
            renewed_at: held.lease.renewed_at,
            renewals: held.lease.renewals,
            handoff_reason: held.handoff_reason.clone(),
            forced: held.forced,
            route: held.route.clone(),
            lane: held.lane,
            base: held.base.clone(),
            ended_at,
            end_reason,
        }
    }

    pub fn past(task: &Task, past: &PastAssignment) -> Self {
        AssignmentView::new(task, &past.assignment, past.ended_at, past.end_reason.clone())
    }
}

/// What a grant hands to its holder, and to nobody else.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LeaseView {
    pub token: String,
    pub epoch: i64,
    pub ttl_ms: i64,
    pub expires_at: Timestamp,
}

impl LeaseView {
    pub fn new(token: &Token, held: &Assignment) -> LeaseView {
        LeaseView {
            token: token.to_string(),
            epoch: token.epoch,
            ttl_ms: held.lease.ttl.0,
            expires_at: held.lease.expires_at(),
        }
    }
}

/// The answer to `add`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AddView {
    pub outcome: String,
    pub task: TaskView,
    /// Where nobody works on the ask any more: what became of its task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What to say to whoever asks for something that was dropped: nobody will work on it.
pub(crate) fn dropped(receipt: &Receipt) -> Option<String> {
    let task = &receipt.task;
    let is_dropped = receipt.kind == ReceiptKind::Existing && task.state.name() == StateName::Dropped;
    is_dropped.then(|| {
        format!("{} was dropped, and nobody works on this ask: ask again under another origin", task.id)
    })
}

impl From<&Receipt> for AddView {
    fn from(receipt: &Receipt) -> AddView {
        let outcome = if receipt.kind == ReceiptKind::Existing { "existing" } else { "created" };
        AddView { outcome: outcome.to_owned(), task: TaskView::from(&receipt.task), detail: dropped(receipt) }
    }
}

/// The answer to `claim` and `takeover`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ClaimView {
    pub task: TaskView,
    pub lease: Option<LeaseView>,
    pub assignment: Option<AssignmentView>,
}

impl From<&Receipt> for ClaimView {
    fn from(receipt: &Receipt) -> ClaimView {
        let held = receipt.task.assignment();
        let lease = receipt.token.as_ref().zip(held).map(|(token, held)| LeaseView::new(token, held));
        let task = TaskView::from(&receipt.task);
        ClaimView { assignment: task.assignment.clone(), lease, task }
    }
}

/// The answer to every other change.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ChangeView {
    pub task: TaskView,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListView {
    pub tasks: Vec<TaskView>,
    /// Pass it as `--cursor` to go on; `null` at the end.
    pub next: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ReadyView {
    pub tasks: Vec<TaskView>,
    pub not_ready: Vec<NotReadyView>,
    /// Ready, but not for the worker who asks. Told where an identity map is in force.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_for_caller: Vec<NotReadyView>,
    pub counts: CountsView,
}

/// Why a task near the head of the queue cannot be claimed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct NotReadyView {
    pub task: TaskId,
    pub title: String,
    pub reasons: Vec<String>,
    /// The tasks or the thing that it waits for.
    pub waits_for: Vec<String>,
}

/// Counts over the head of the queue, so that asking costs the same with a million tasks.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
pub struct CountsView {
    pub ready: i64,
    pub waiting: i64,
    pub in_progress: i64,
    pub blocked: i64,
    /// How many tasks at the head of the queue were counted.
    pub examined: i64,
    /// Whether the queue is longer than that.
    pub more: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LedgerView {
    pub entries: Vec<EntryView>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct EntryView {
    pub seq: i64,
    pub task: Option<String>,
    pub at: Timestamp,
    pub actor: String,
    pub workstation: Option<String>,
    pub epoch: i64,
    pub verb: String,
    pub data: serde_json::Value,
    pub prev: String,
    pub hash: String,
    /// The same in a few words, for people; empty where the verb says it all.
    #[serde(default)]
    pub said: String,
}

impl From<&Entry> for EntryView {
    fn from(entry: &Entry) -> EntryView {
        EntryView {
            seq: entry.seq,
            task: entry.task.clone(),
            at: entry.at,
            actor: entry.actor.clone(),
            workstation: entry.workstation.clone(),
            epoch: entry.epoch,
            verb: entry.verb.clone(),
            data: onus_store::read::ledger::entry_data(entry),
            prev: entry.prev.to_string(),
            hash: entry.hash.to_string(),
            said: entry.open().map(|stamped| said(&stamped.event)).unwrap_or_default(),
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct NoteView {
    pub seq: i64,
    pub kind: String,
    pub by: String,
    pub at: Timestamp,
    pub text: String,
    pub untrusted: bool,
    /// `PATH:LINE`, of a comment on a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Who said it where it came from, and when; `by` brought it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<SaidView>,
}

/// A word from another system: who, when, and what it is called there.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SaidView {
    pub by: String,
    pub at: Option<Timestamp>,
    pub key: Option<String>,
}

impl From<&Note> for NoteView {
    fn from(note: &Note) -> NoteView {
        NoteView {
            seq: note.seq,
            kind: note.kind.clone(),
            by: note.by.clone(),
            at: note.at,
            text: note.text.clone(),
            untrusted: true,
            place: None,
            said: note.said.clone().map(|Said { by, at, key }| SaidView { by, at, key }),
        }
    }
}

/// A held task whose holder has gone silent, or not.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HeldView {
    pub task: TaskId,
    pub title: String,
    pub state: String,
    pub assignee: Handle,
    pub workstation: WorkstationName,
    pub epoch: i64,
    pub renewed_at: Timestamp,
    pub expires_at: Timestamp,
    /// Milliseconds since expiry; `null` while the lease is live.
    pub expired_for_ms: Option<i64>,
    /// Expired past the grace period, or its holder is proven dead.
    pub may_be_taken_over: bool,
    /// The proof that its holder is dead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead: Option<Death>,
    /// What a takeover would keep; told of stale assignments only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<LeftView>,
}

impl HeldView {
    /// Whether nobody may be at work on it any more.
    pub fn is_stale(&self) -> bool {
        self.expired_for_ms.is_some() || self.dead.is_some()
    }
}

/// What a silent holder has left in its workstation (mission B6).
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct LeftView {
    pub directory: Option<String>,
    pub directory_exists: bool,
    pub dirty_files: usize,
    pub commits_not_in_main: usize,
    /// What earlier takeovers of this task have kept.
    pub salvage_refs: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct StaleView {
    pub stale: Vec<HeldView>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct StatusView {
    pub store: String,
    pub workspace: String,
    pub generation: i64,
    pub projects: Vec<String>,
    pub counts: std::collections::BTreeMap<String, i64>,
    pub held: Vec<HeldView>,
    pub ledger_entries: i64,
    pub last_checkpoint: Option<i64>,
    /// What is wrong with the place that it is asked from.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// A task's checks, each with its last run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ChecksView {
    pub task: TaskId,
    pub checks: Vec<CheckRunView>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CheckRunView {
    pub id: CheckId,
    pub command: String,
    pub kind: CheckKind,
    pub state: CheckState,
    /// Its last run; nothing where it was never run.
    pub run: Option<RunView>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RunView {
    pub verdict: CheckVerdict,
    pub exit_code: Option<i64>,
    pub signal: Option<i64>,
    pub took_ms: i64,
    pub at: Timestamp,
    pub by: String,
    pub workstation: Option<String>,
    pub commit: Option<CommitId>,
    pub dirty: bool,
    /// The beginning and the end of it.
    pub output: String,
    pub output_length: i64,
    pub output_sha256: String,
    /// What it saw of its surroundings, by digest.
    pub environment: String,
    pub sandbox: String,
    /// A caller elsewhere says so: Onus did not run it where it could see.
    #[serde(default)]
    pub stated: bool,
}

impl CheckRunView {
    pub fn new(check: &Check, last: Option<&KeptRun>) -> CheckRunView {
        CheckRunView {
            id: check.id(),
            command: check.command.clone(),
            kind: check.kind,
            state: check.state,
            run: last.map(|run| RunView {
                verdict: run.evidence.verdict,
                exit_code: run.exit,
                signal: run.signal,
                took_ms: run.took_ms,
                at: run.evidence.at,
                by: run.by.clone(),
                workstation: run.workstation.clone(),
                commit: run.evidence.ground.commit.clone(),
                dirty: run.evidence.ground.dirty,
                output: run.output.clone(),
                output_length: run.output_length,
                output_sha256: run.output_sha256.clone(),
                environment: run.environment.clone(),
                sandbox: run.sandbox.clone(),
                stated: run.evidence.stated,
            }),
        }
    }
}
