//! The life of a workstation: registered, ready, quarantined, retired (mission C3, C5, C6). Only these events change it.

use super::person;
use crate::code::Code;
use crate::event::{
    Event, WorkstationAdded, WorkstationNotReady, WorkstationQuarantined, WorkstationReady,
    WorkstationRestored, WorkstationRetired,
};
use crate::facts::Caller;
use crate::id::{Handle, TaskId, WorkstationName};
use crate::probe::{PROBES_MAX, Probe, ProbeKind, ProbeResult};
use crate::refusal::{Finding, Refusal};
use crate::task::{Inconsistent, StateName};
use crate::text::{REASON_MAX, line};
use crate::workstation::{Lifecycle, Workstation, WorkstationKind, WorkstationState};
use serde::{Deserialize, Serialize};

/// What an event makes of a workstation. Folding the workspace's own chain with it gives the row.
pub fn evolve(before: Option<Workstation>, event: &Event) -> Result<Workstation, Inconsistent> {
    if let Event::WorkstationAdded(added) = event {
        return match before {
            None => Ok(added_as(added, 1)),
            Some(old) if old.state == WorkstationState::Retired => Ok(added_as(added, old.version + 1)),
            Some(old) => Err(Inconsistent(format!("{} was added twice", old.name))),
        };
    }
    let wrong = |what: &str| Inconsistent(format!("`{}` of {what}", event.verb()));
    let Some(old) = before else {
        return Err(wrong("a workstation that was never added"));
    };
    let reason = match (event, old.state) {
        (Event::WorkstationReady(_), WorkstationState::Registered)
        | (Event::WorkstationNotReady(_), WorkstationState::Ready)
        | (Event::WorkstationRestored(_), WorkstationState::Quarantined) => None,
        (
            Event::WorkstationQuarantined(quarantined),
            WorkstationState::Registered | WorkstationState::Ready,
        ) => Some(quarantined.reason.clone()),
        (Event::WorkstationRetired(retired), state)
            if state != WorkstationState::Retired || retired.removed =>
        {
            retired.reason.clone()
        }
        (_, state) => return Err(wrong(&format!("{}, which is {}", old.name, state.name()))),
    };
    let state = state_after(event, &old.probes).unwrap_or(old.state);
    let removed = matches!(event, Event::WorkstationRetired(retired) if retired.removed);
    let path = if removed { None } else { old.path };
    Ok(Workstation { state, reason, path, ..old })
}

/// How a workstation with these probes is after an event of its own.
pub fn state_after(event: &Event, probes: &[Probe]) -> Option<WorkstationState> {
    match event {
        Event::WorkstationAdded(added) => Some(unproven(&added.probes)),
        Event::WorkstationReady(_) => Some(WorkstationState::Ready),
        Event::WorkstationNotReady(_) => Some(WorkstationState::Registered),
        Event::WorkstationQuarantined(_) => Some(WorkstationState::Quarantined),
        Event::WorkstationRestored(_) => Some(unproven(probes)),
        Event::WorkstationRetired(_) => Some(WorkstationState::Retired),
        _ => None,
    }
}

/// Whose row an event changes.
pub fn changed(event: &Event) -> Option<&WorkstationName> {
    match event {
        Event::WorkstationAdded(WorkstationAdded { name, .. })
        | Event::WorkstationReady(WorkstationReady { name })
        | Event::WorkstationNotReady(WorkstationNotReady { name, .. })
        | Event::WorkstationQuarantined(WorkstationQuarantined { name, .. })
        | Event::WorkstationRestored(WorkstationRestored { name, .. })
        | Event::WorkstationRetired(WorkstationRetired { name, .. }) => Some(name),
        _ => None,
    }
}

impl WorkstationAdded {
    /// A workstation that is a name only.
    pub fn logical(name: WorkstationName) -> WorkstationAdded {
        WorkstationAdded {
            name,
            kind: WorkstationKind::Logical,
            path: None,
            lifecycle: Lifecycle::Reusable,
            branch: None,
            probes: Vec::new(),
            role: None,
            lane: None,
        }
    }
}

fn added_as(added: &WorkstationAdded, version: i64) -> Workstation {
    Workstation {
        name: added.name.clone(),
        kind: added.kind,
        path: added.path.clone(),
        state: unproven(&added.probes),
        lifecycle: added.lifecycle,
        version,
        branch: added.branch.clone(),
        probes: added.probes.clone(),
        reason: None,
        role: added.role.clone(),
        lane: added.lane,
    }
}

/// Nothing to prove, or nothing proven yet.
fn unproven<T>(probes: &[T]) -> WorkstationState {
    if probes.is_empty() { WorkstationState::Ready } else { WorkstationState::Registered }
}

/// What `workstation add` says; `None` where the very same is there already.
pub fn register(
    found: Option<&Workstation>,
    others: &[Workstation],
    wanted: &WorkstationAdded,
) -> Result<Option<Event>, Refusal> {
    if wanted.kind != WorkstationKind::Logical && wanted.path.is_none() {
        return Err(
            Refusal::invalid(format!("a {} needs its directory", wanted.kind.name())).hint("--path DIR")
        );
    }
    let is_of_tree = |probe: &&Probe| matches!(probe.kind, ProbeKind::Git(_));
    if let (None, Some(probe)) = (&wanted.path, wanted.probes.iter().find(is_of_tree)) {
        let detail = format!("{} has no directory: the probe `{probe}` could never pass", wanted.name);
        return Err(Refusal::invalid(detail).hint("--kind checkout --path DIR, or leave the probe out"));
    }
    if wanted.probes.len() > PROBES_MAX {
        return Err(Refusal::invalid(format!("{} probes; the limit is {PROBES_MAX}", wanted.probes.len())));
    }
    match found {
        Some(found) if found.state != WorkstationState::Retired => {
            let as_wanted = added_as(wanted, found.version);
            let same =
                Workstation { state: found.state, reason: found.reason.clone(), ..as_wanted } == *found;
            return if same { Ok(None) } else { Err(super::other_properties(&found.name)) };
        }
        _ => {}
    }
    let mut lives =
        others.iter().filter(|other| other.name != wanted.name && other.state != WorkstationState::Retired);
    if let Some(other) = lives.clone().find(|other| other.path.is_some() && other.path == wanted.path) {
        return Err(Refusal::invalid(format!("{} already is at that directory", other.name))
            .hint("one directory, one workstation"));
    }
    if let Some(other) = lives.find(|other| other.branch.is_some() && other.branch == wanted.branch) {
        return Err(Refusal::invalid(format!("{} already works on that branch", other.name))
            .hint("one branch, one workstation: --branch NAME"));
    }
    Ok(Some(wanted.clone().into()))
}

/// What a run of all its probes makes of a workstation; `None` where it stays as it is.
pub fn readiness(workstation: &Workstation, results: &[ProbeResult]) -> Option<Event> {
    let name = workstation.name.clone();
    let failed: Vec<ProbeResult> = results.iter().filter(|result| !result.passed()).cloned().collect();
    match (workstation.state, failed.is_empty()) {
        (WorkstationState::Registered, true) => Some(WorkstationReady { name }.into()),
        (WorkstationState::Ready, false) => Some(WorkstationNotReady { name, failed }.into()),
        _ => None,
    }
}

pub fn quarantine(
    caller: &Caller,
    workstation: &Workstation,
    reason: Option<&str>,
) -> Result<(Handle, Event), Refusal> {
    let by = person(caller)?.clone();
    let reason = crate::decide::required_reason(reason)?;
    match workstation.state {
        WorkstationState::Registered | WorkstationState::Ready => {
            Ok((by, WorkstationQuarantined { name: workstation.name.clone(), reason }.into()))
        }
        _ => Err(wrong_state(workstation, "quarantined")),
    }
}

pub fn restore(
    caller: &Caller,
    workstation: &Workstation,
    reason: Option<&str>,
) -> Result<(Handle, Event), Refusal> {
    let by = person(caller)?.clone();
    match workstation.state {
        WorkstationState::Quarantined => {
            let reason = said(reason)?;
            Ok((by, WorkstationRestored { name: workstation.name.clone(), reason }.into()))
        }
        _ => Err(wrong_state(workstation, "restored")),
    }
}

/// Retiring keeps the name's history; a retired name may be registered anew.
pub fn retire(
    caller: &Caller,
    workstation: &Workstation,
    holds: Option<&(TaskId, Handle)>,
    reason: Option<&str>,
    removed: bool,
) -> Result<(Handle, Event), Refusal> {
    let by = person(caller)?.clone();
    let name = &workstation.name;
    if let Some((task, holder)) = holds {
        return Err(Refusal::new(Code::WorkstationBusy, format!("{name} holds {task} for {holder}"))
            .hint(format!("finish, release or take over {task} first")));
    }
    if workstation.state == WorkstationState::Retired && !(removed && workstation.path.is_some()) {
        return Err(wrong_state(workstation, "retired"));
    }
    Ok((by, WorkstationRetired { name: name.clone(), reason: said(reason)?, removed }.into()))
}

/// A task of a role that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    pub task: TaskId,
    pub state: StateName,
    pub lane: Option<i64>,
}

/// Why a role's worktree may not be torn down: its work goes on, or would have nowhere to go (mission D3). `others` are
/// the workstations beside it.
pub fn still_needed(workstation: &Workstation, others: &[Workstation], pending: &[Pending]) -> Vec<Finding> {
    let (Some(role), name) = (&workstation.role, &workstation.name) else {
        return Vec::new();
    };
    let fits = |lane: Option<i64>| match (workstation.lane, lane) {
        (Some(own), Some(asked)) => own == asked,
        _ => true,
    };
    let serves = |other: &Workstation, lane: Option<i64>| {
        let is_same = other.name != *name && other.role.as_ref() == Some(role);
        let lane = lane.or(workstation.lane);
        is_same
            && other.state != WorkstationState::Retired
            && (other.lane.is_none() || lane.is_none() || other.lane == lane)
    };
    let in_the_way = pending.iter().filter(|pending| {
        let goes_elsewhere = others.iter().any(|other| serves(other, pending.lane));
        fits(pending.lane) && (pending.state != StateName::Open || !goes_elsewhere)
    });
    let finding = |Pending { task, state, .. }: &Pending| {
        Finding::new(Code::WorkstationBusy, format!("{task} of {role} is {state}"))
            .hint(format!("finish or drop {task} first: onus show {task}"))
    };
    in_the_way.take(NAMED_MAX).map(finding).collect()
}

/// How many tasks are named one by one.
const NAMED_MAX: usize = 10;

/// A workstation of a single task ends with its assignment.
pub fn spent(workstation: &Workstation, task: &TaskId) -> Event {
    let reason = Some(format!("it was for one task: {task}"));
    WorkstationRetired { name: workstation.name.clone(), reason, removed: false }.into()
}

fn said(reason: Option<&str>) -> Result<Option<String>, Refusal> {
    reason.map(|text| line("the reason", text, REASON_MAX)).transpose().map_err(Refusal::invalid)
}

fn wrong_state(workstation: &Workstation, verb: &str) -> Refusal {
    let (name, state) = (&workstation.name, workstation.state.name());
    Refusal::new(Code::WrongState, format!("{name} is {state}: it cannot be {verb}"))
        .hint(format!("onus workstation show {name}"))
}
