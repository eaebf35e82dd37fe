//! Everything a decision needs, loaded under lock in one transaction.

use crate::evidence::{Evidence, Review};
use crate::id::{CommitId, Generation, Handle, TaskId, WorkstationName};
use crate::identity_map::{Policy, Signals};
use crate::lane::Occupied;
use crate::lease::Token;
use crate::limits::Budget;
use crate::probe::ProbeResult;
use crate::process::Vital;
use crate::refusal::Finding;
use crate::session::Recorded;
use crate::settings::Settings;
use crate::task::{StateName, Task};
use crate::worker::{Kind, Worker};
use crate::workstation::Workstation;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uuid::Uuid;

/// Who asks, as far as the store knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Caller {
    Anonymous,
    Unregistered(Handle),
    Registered(Worker),
}

/// A task somebody depends on, as seen now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependency {
    pub id: TaskId,
    /// `None` when there is no such task.
    pub state: Option<StateName>,
    /// A contract request: its owner's answer is waited for.
    pub is_request: bool,
    /// A person approved that it is not waited for.
    pub excepted: bool,
}

/// The workstation that a grant would go to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// Named by the caller or derived from where it stands.
    pub asked: Option<WorkstationName>,
    pub found: Option<Workstation>,
    /// The live assignment it already holds.
    pub holds: Option<(TaskId, Handle)>,
    /// Where the caller could go instead; filled only when nothing was asked for.
    pub would_do: Vec<WorkstationName>,
    /// What its probes said last.
    pub probes: Vec<ProbeResult>,
}

/// An assignment on a task that this one depends on: who built it, and where (mission C12).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Builder {
    pub task: TaskId,
    pub worker: Handle,
    pub workstation: WorkstationName,
}

/// Another slice of the same parent (mission D5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    pub id: TaskId,
    pub state: StateName,
    pub merge_order: i64,
}

#[derive(Debug, Clone)]
pub struct Facts<'a> {
    pub settings: &'a Settings,
    pub generation: Generation,
    /// The store is older than the anchor outside it: it grants nothing.
    pub behind_anchor: bool,
    pub caller: Caller,
    pub token: Option<Token>,
    pub task: Option<Task>,
    /// What kind of worker holds the task now.
    pub holder: Option<Kind>,
    /// The holder's workstation is quarantined: its lease is suspended.
    pub suspended: bool,
    /// Whether the process that works under the lease is still there.
    pub vital: Vital,
    pub place: Place,
    /// Tasks that the command mentions or the task depends on.
    pub dependencies: Vec<Dependency>,
    /// For a grant of a task with a scope: the live assignments of other tasks that have one, too.
    pub live_scopes: Vec<(TaskId, Handle, Vec<String>)>,
    /// The worker that the command mentions: the person a task waits for, or who is assigned to it.
    pub mentioned: Option<Caller>,
    /// For new dependencies: what each task reachable from them depends on.
    pub reachable: BTreeMap<TaskId, Vec<TaskId>>,
    /// For a task that gets a parent: that one, its own parent, and so on.
    pub ancestors: Vec<TaskId>,
    /// For an ask with an origin: the task that it already is.
    pub existing: Option<TaskId>,
    /// The identity map in force.
    pub policy: &'a Policy,
    /// For a grant: the candidates that the map names, as they are now.
    pub signals: Signals,
    /// For a grant of a task with a role: who else is at work in it.
    pub occupied: Vec<Occupied>,
    /// For a grant of a verification: who built what it verifies. For a review: who built the task itself.
    pub builders: Vec<Builder>,
    /// For a merge or a completion: the parent's slices that have a place in its order, and the task's own slices that
    /// have not ended.
    pub slices: Vec<Slice>,
    pub parts: Vec<(TaskId, StateName)>,
    /// For a completion: the runs of its checks, and what reviewers said.
    pub evidence: Vec<Evidence>,
    pub reviews: Vec<Review>,
    /// For a grant: the commit that the workstation stands at.
    pub base: Option<CommitId>,
    /// For a correction or a usage: the session that it is about, as it stands on record.
    pub session: Option<Recorded>,
    /// For a grant to an agent, and while it holds the task: the limits that it is under, and what was used of them.
    pub budgets: Vec<Budget>,
    /// For an answer: the limits by which the work was stopped.
    pub stopped_by: Vec<Finding>,
}

/// What a decision may use up: drawn by the caller, because core has no randomness.
#[derive(Debug, Clone)]
pub struct Fresh {
    pub uid: Uuid,
    pub lease: [u8; 16],
}
