//! A workstation is a named, registered execution context: where an assignment happens (mission C3).

use crate::id::{BranchName, Role, WorkstationName};
use crate::probe::Probe;
use crate::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words!(
    /// What a workstation is made of.
    WorkstationKind {
        /// A name only; its directory, if any, is the worker's own business.
        Logical = "logical",
        /// A directory that already exists: a repository's main checkout.
        Checkout = "checkout",
        /// A git worktree.
        Worktree = "worktree",
    }
);
words!(
    /// Whether it may be given work.
    WorkstationState {
        Registered = "registered",
        Ready = "ready",
        Quarantined = "quarantined",
        Retired = "retired",
    }
);
words!(
    /// How long it lives.
    Lifecycle {
        Reusable = "reusable",
        SingleTask = "single-task",
    }
);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Workstation {
    pub name: WorkstationName,
    pub kind: WorkstationKind,
    pub path: Option<String>,
    pub state: WorkstationState,
    pub lifecycle: Lifecycle,
    /// Rises with every change of the registration.
    pub version: i64,
    /// The branch that is worked on there, where it is a working tree of the repository.
    pub branch: Option<BranchName>,
    /// What must hold before work goes there (mission C5).
    pub probes: Vec<Probe>,
    /// Why it is quarantined or retired.
    pub reason: Option<String>,
    /// Whose work goes there, and in which of its slots (mission D2, D3). None: anybody's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<i64>,
}
