//! The executor identity map: which worker, in which workstation, gets which type of task (mission C1, C2, C13).
//!
//! The map is a file under version control, and only its committed form is in force. Nothing here reads it: the map,
//! and what is known about its candidates, are arguments.

mod condition;
mod demand;
mod document;
mod explain;
mod findings;
mod history;
mod route;

pub use condition::{PriorityRange, When};
pub use demand::{as_demanded, place_findings, required_checks};
pub use document::{
    Candidate, CoEdited, Contract, HighRisk, IdentityMap, PlaceRule, RequiredCheck, RoleRule, Rule,
    TypePattern,
};
pub use explain::{CandidateView, Explanation, Verdict, Winner, explain};
pub use history::{RouteChange, Sends, Version, since};
pub use route::{candidates, may_review, needs_independence, places_of, route, unlisted, workstation_for};

use crate::id::{Handle, TaskId, WorkstationName};
use crate::refusal::Finding;
use crate::worker::Worker;
use crate::workstation::WorkstationState;
use std::collections::BTreeMap;

/// The name of the file, at the root of the repository.
pub const FILE: &str = "executor-identity-map.yaml";

/// The map in force when a decision is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InForce {
    pub map: IdentityMap,
    /// The commit it was read from; none when it was never committed.
    pub commit: Option<String>,
    /// SHA-256 of the file, in hexadecimal.
    pub hash: String,
    /// The main checkout's file differs from what is in force.
    pub edited: bool,
}

/// What the repository says about who does what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Policy {
    /// There is no map: anybody may take anything.
    #[default]
    Absent,
    InForce(Box<InForce>),
    /// There is one that cannot be followed: nobody is given work by it.
    Invalid(Box<InvalidMap>),
}

/// A map that is there and cannot be followed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InvalidMap {
    pub findings: Vec<Finding>,
    /// The commit it was read from; none when it was never committed.
    pub commit: Option<String>,
    /// SHA-256 of the file, in hexadecimal; none of what is no file.
    pub hash: Option<String>,
}

impl Policy {
    pub fn in_force(&self) -> Option<&InForce> {
        match self {
            Policy::InForce(in_force) => Some(in_force),
            Policy::Absent | Policy::Invalid(_) => None,
        }
    }
}

/// What the store knows about the candidates now. Only what is registered appears.
#[derive(Debug, Clone, Default)]
pub struct Signals {
    pub workers: BTreeMap<Handle, WorkerSignal>,
    pub workstations: BTreeMap<WorkstationName, WorkstationSignal>,
    /// The longest chain of tasks that the task depends on.
    pub dependency_depth: u32,
}

#[derive(Debug, Clone)]
pub struct WorkerSignal {
    pub worker: Worker,
    /// The tasks it holds, the task in question left out.
    pub holds: Vec<TaskId>,
}

#[derive(Debug, Clone)]
pub struct WorkstationSignal {
    pub state: WorkstationState,
    /// The live assignment there, unless it is of the task in question.
    pub holds: Option<(TaskId, Handle)>,
    /// Share of the last day with a session there, in percent.
    pub utilisation: u8,
}
