//! Everything a decision needs, loaded under lock in one transaction.

use crate::id::{Generation, Handle, TaskId, WorkstationName};
use crate::lease::Token;
use crate::settings::Settings;
use crate::task::{StateName, Task};
use crate::worker::{Kind, Worker};
use crate::workstation::Workstation;
use std::collections::BTreeMap;
use uuid::Uuid;

/// Who asks, as far as the store knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    Anonymous,
    Unregistered(Handle),
    Registered(Worker),
}

/// A task somebody depends on, as seen now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    pub id: TaskId,
    /// `None` when there is no such task.
    pub state: Option<StateName>,
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
    pub place: Place,
    /// Tasks that the command mentions or the task depends on.
    pub dependencies: Vec<Dependency>,
    /// For a grant of a task with a scope: the live assignments of other tasks that have one, too.
    pub live_scopes: Vec<(TaskId, Handle, Vec<String>)>,
    /// The worker that the command mentions.
    pub mentioned: Option<Caller>,
    /// For a new dependency: what each task reachable from it depends on.
    pub reachable: BTreeMap<TaskId, Vec<TaskId>>,
    /// For an ask with an origin: the task that it already is.
    pub existing: Option<TaskId>,
}

/// What a decision may use up: drawn by the caller, because core has no randomness.
#[derive(Debug, Clone)]
pub struct Fresh {
    pub uid: Uuid,
    pub lease: [u8; 16],
}
