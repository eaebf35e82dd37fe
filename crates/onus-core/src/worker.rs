//! A worker is a person or an agent, registered and named (mission A6, B7).

use crate::id::{Handle, Role};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What decides the powers of a caller: nothing else about an identity can lend it a person's rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Human,
    Agent,
}

impl Kind {
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Human => "human",
            Kind::Agent => "agent",
        }
    }

    pub fn parse(text: &str) -> Option<Kind> {
        match text {
            "human" => Some(Kind::Human),
            "agent" => Some(Kind::Agent),
            _ => None,
        }
    }
}

/// Whether a worker may be given work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkerState {
    Active,
    Paused,
}

impl WorkerState {
    pub const fn name(self) -> &'static str {
        match self {
            WorkerState::Active => "active",
            WorkerState::Paused => "paused",
        }
    }

    pub fn parse(text: &str) -> Option<WorkerState> {
        match text {
            "active" => Some(WorkerState::Active),
            "paused" => Some(WorkerState::Paused),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Worker {
    pub handle: Handle,
    pub kind: Kind,
    pub tier: Option<String>,
    pub role: Option<Role>,
    pub state: WorkerState,
    /// An IANA zone; a timesheet's days are this worker's days.
    pub tz: String,
}

/// The role whose agents may reopen a completed task.
pub const VERIFIER_ROLE: &str = "verifier";

impl Worker {
    pub fn is_human(&self) -> bool {
        self.kind == Kind::Human
    }

    pub fn is_verifier(&self) -> bool {
        self.role.as_ref().is_some_and(|role| role.as_str() == VERIFIER_ROLE)
    }
}
