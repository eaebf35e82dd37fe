//! Who may register workers, workstations and projects (mission B7, C3): people. An agent that could register a
//! workstation could step around the gate.

pub mod probe_report;
pub mod token;
pub mod worker;
pub mod workstation;

use crate::code::Code;
use crate::facts::Caller;
use crate::id::Handle;
use crate::refusal::Refusal;
use crate::worker::Worker;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether a name was new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Registration {
    Created,
    /// The very same is there already.
    Existing,
}

/// Who asks, if it is anybody registered.
pub fn known(caller: &Caller) -> Result<&Worker, Refusal> {
    crate::decide::identified(caller)
}

/// Who asks, if it is a person.
pub fn person(caller: &Caller) -> Result<&Handle, Refusal> {
    let worker = known(caller)?;
    if worker.is_human() {
        Ok(&worker.handle)
    } else {
        Err(Refusal::new(
            Code::HumanRequired,
            format!("{} is an agent; only a person may do this", worker.handle),
        )
        .hint("ask a person"))
    }
}

fn other_properties(name: &impl std::fmt::Display) -> Refusal {
    Refusal::invalid(format!("{name} is already registered, with other properties"))
        .hint("choose another name, or leave it as it is")
}
