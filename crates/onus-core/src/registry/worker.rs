//! Workers come, pause and come back.

use super::{Registration, other_properties, person};
use crate::code::Code;
use crate::event::{Event, WorkerAdded, WorkerPaused, WorkerResumed};
use crate::facts::Caller;
use crate::id::Handle;
use crate::refusal::Refusal;
use crate::task::Inconsistent;
use crate::text::{LABEL_MAX, line};
use crate::worker::{Worker, WorkerState};

/// What an event makes of a worker. Folding the workspace's own chain with it gives the row.
pub fn evolve(before: Option<Worker>, event: &Event) -> Result<Worker, Inconsistent> {
    match (event, before) {
        (Event::WorkerAdded(added), None) => Ok(added_as(added)),
        (Event::WorkerPaused(_), Some(old)) if old.state == WorkerState::Active => {
            Ok(Worker { state: WorkerState::Paused, ..old })
        }
        (Event::WorkerResumed(_), Some(old)) if old.state == WorkerState::Paused => {
            Ok(Worker { state: WorkerState::Active, ..old })
        }
        (event, _) => Err(Inconsistent(format!("`{}` cannot follow what came before it", event.verb()))),
    }
}

/// Whose row an event changes.
pub fn changed(event: &Event) -> Option<&Handle> {
    match event {
        Event::WorkerAdded(WorkerAdded { handle, .. })
        | Event::WorkerPaused(WorkerPaused { handle, .. })
        | Event::WorkerResumed(WorkerResumed { handle }) => Some(handle),
        _ => None,
    }
}

fn added_as(added: &WorkerAdded) -> Worker {
    Worker {
        handle: added.handle.clone(),
        kind: added.kind,
        tier: added.tier.clone(),
        role: added.role.clone(),
        state: WorkerState::Active,
        tz: added.tz.clone(),
    }
}

pub fn register(found: Option<&Worker>, wanted: &WorkerAdded) -> Result<Registration, Refusal> {
    if let Some(tier) = &wanted.tier {
        line("the tier", tier, LABEL_MAX).map_err(Refusal::invalid)?;
    }
    match found {
        None => Ok(Registration::Created),
        Some(found) if (Worker { state: found.state, ..added_as(wanted) }) == *found => {
            Ok(Registration::Existing)
        }
        Some(found) => Err(other_properties(&found.handle)),
    }
}

/// A paused worker gets no new work; what it holds stays its own.
pub fn pause(caller: &Caller, worker: &Worker, reason: Option<&str>) -> Result<(Handle, Event), Refusal> {
    let by = person(caller)?.clone();
    let reason = crate::decide::required_reason(reason)?;
    match worker.state {
        WorkerState::Active => Ok((by, WorkerPaused { handle: worker.handle.clone(), reason }.into())),
        WorkerState::Paused => Err(wrong_state(worker, "paused")),
    }
}

pub fn resume(caller: &Caller, worker: &Worker) -> Result<(Handle, Event), Refusal> {
    let by = person(caller)?.clone();
    match worker.state {
        WorkerState::Paused => Ok((by, WorkerResumed { handle: worker.handle.clone() }.into())),
        WorkerState::Active => Err(wrong_state(worker, "resumed")),
    }
}

fn wrong_state(worker: &Worker, verb: &str) -> Refusal {
    let (handle, state) = (&worker.handle, worker.state.name());
    Refusal::new(Code::WrongState, format!("{handle} is {state}: it cannot be {verb}"))
        .hint(format!("onus worker show {handle}"))
}
