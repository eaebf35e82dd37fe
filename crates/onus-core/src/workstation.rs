//! A workstation is a named, registered execution context: where an assignment happens (mission C3).

use crate::id::{BranchName, WorkstationName};
use crate::probe::Probe;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $word)] $variant),+ }

        impl $name {
            pub const ALL: &[$name] = &[$($name::$variant),+];
            pub const fn name(self) -> &'static str { match self { $($name::$variant => $word),+ } }
            pub fn parse(text: &str) -> Option<$name> { match text { $($word => Some($name::$variant),)+ _ => None } }
        }
    };
}

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
}
