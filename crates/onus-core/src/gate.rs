//! The gate: is the named workstation there, ready and free? Hard, synchronous, never retried (mission C4).

use crate::code::Code;
use crate::facts::Place;
use crate::id::{TaskId, WorkstationName};
use crate::probe::ProbeResult;
use crate::refusal::Finding;
use crate::workstation::{Workstation, WorkstationState};

/// Every reason against a grant in this place; empty means open.
///
/// `vacated` is a workstation that the grant itself would set free.
pub fn findings(place: &Place, task: &TaskId, vacated: Option<&WorkstationName>) -> Vec<Finding> {
    let Some(asked) = &place.asked else {
        return vec![unnamed(place)];
    };
    let Some(workstation) = &place.found else {
        return vec![
            Finding::new(Code::WorkstationUnknown, format!("the workstation {asked} is not registered"))
                .hint(format!("a person runs: onus workstation add {asked} --kind worktree")),
        ];
    };
    let mut found = readiness(workstation, &place.probes);
    let name = &workstation.name;
    if let Some((held, by)) = &place.holds
        && held != task
        && vacated != Some(name)
    {
        found.push(
            Finding::new(Code::WorkstationBusy, format!("{name} already holds {held} for {by}"))
                .hint(format!("finish or release {held} first, or use another workstation")),
        );
    }
    found
}

/// Whether the place itself is in order, whoever it is for.
pub fn readiness(workstation: &Workstation, probes: &[ProbeResult]) -> Vec<Finding> {
    let name = &workstation.name;
    match workstation.state {
        WorkstationState::Ready => Vec::new(),
        WorkstationState::Registered => unready(name, probes),
        WorkstationState::Quarantined => vec![
            Finding::new(
                Code::WorkstationQuarantined,
                format!("{name} is quarantined{}", because(workstation)),
            )
            .hint(format!("use another one, or a person runs: onus workstation restore {name}")),
        ],
        WorkstationState::Retired => vec![
            Finding::new(Code::WorkstationNotReady, format!("{name} is retired{}", because(workstation)))
                .hint("use another one: onus workstation list"),
        ],
    }
}

/// One finding for each probe that does not pass.
fn unready(name: &WorkstationName, probes: &[ProbeResult]) -> Vec<Finding> {
    let again = format!("once that is repaired: onus workstation probe {name}");
    let failed = probes.iter().filter(|result| !result.passed());
    let found: Vec<Finding> = failed
        .map(|ProbeResult { probe, at, verdict, detail, .. }| {
            let verdict = verdict.name().replace('_', " ");
            Finding::new(
                Code::WorkstationNotReady,
                format!("{name} is not ready: `{probe}` {verdict} at {at}: {detail}"),
            )
            .hint(again.clone())
        })
        .collect();
    if !found.is_empty() {
        return found;
    }
    let detail = format!("{name} is registered, but its probes have not passed yet");
    vec![
        Finding::new(Code::WorkstationNotReady, detail)
            .hint(format!("find out why: onus workstation probe {name}")),
    ]
}

fn because(workstation: &Workstation) -> String {
    workstation.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default()
}

fn unnamed(place: &Place) -> Finding {
    let names: Vec<&str> = place.would_do.iter().map(WorkstationName::as_str).collect();
    let detail = "no workstation was named and none contains this directory";
    let hint = if names.is_empty() {
        "register one: onus workstation add NAME --kind logical".to_owned()
    } else {
        format!("--workstation {}", names.join(" | "))
    };
    Finding::new(Code::WorkstationUnknown, detail).hint(hint)
}
