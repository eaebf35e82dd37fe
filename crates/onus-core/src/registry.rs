//! Who may register workers, workstations and projects (mission B7, C3): people. An agent that could register a
//! workstation could step around the gate.

use crate::code::Code;
use crate::facts::Caller;
use crate::id::Handle;
use crate::refusal::Refusal;
use crate::text::{LABEL_MAX, line};
use crate::worker::Worker;
use crate::workstation::{Workstation, WorkstationKind};

/// Whether a name was new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

pub fn register_worker(found: Option<&Worker>, wanted: &Worker) -> Result<Registration, Refusal> {
    if let Some(tier) = &wanted.tier {
        line("the tier", tier, LABEL_MAX).map_err(Refusal::invalid)?;
    }
    same_or_new(found, wanted, &wanted.handle)
}

pub fn register_workstation(
    found: Option<&Workstation>,
    wanted: &Workstation,
) -> Result<Registration, Refusal> {
    if wanted.kind != WorkstationKind::Logical && wanted.path.is_none() {
        return Err(
            Refusal::invalid(format!("a {} needs its directory", wanted.kind.name())).hint("--path DIR")
        );
    }
    same_or_new(found, wanted, &wanted.name)
}

fn same_or_new<T: PartialEq>(
    found: Option<&T>,
    wanted: &T,
    name: impl std::fmt::Display,
) -> Result<Registration, Refusal> {
    match found {
        None => Ok(Registration::Created),
        Some(found) if found == wanted => Ok(Registration::Existing),
        Some(_) => Err(Refusal::invalid(format!("{name} is already registered, with other properties"))
            .hint("choose another name, or leave it as it is")),
    }
}
