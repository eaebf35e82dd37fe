//! The gate: is the named workstation there, ready and free? Hard, synchronous, never retried (mission C4).

use crate::code::Code;
use crate::facts::Place;
use crate::id::{TaskId, WorkstationName};
use crate::refusal::Finding;
use crate::workstation::WorkstationState;

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
                .hint(format!("onus workstation add {asked} --kind logical")),
        ];
    };
    let mut found = Vec::new();
    let name = &workstation.name;
    match workstation.state {
        WorkstationState::Ready => {}
        WorkstationState::Registered => found.push(
            Finding::new(Code::WorkstationNotReady, format!("{name} is registered but not ready"))
                .hint("use another one: onus workstation list"),
        ),
        WorkstationState::Quarantined => found.push(
            Finding::new(Code::WorkstationQuarantined, format!("{name} is quarantined"))
                .hint("use another one: onus workstation list"),
        ),
        WorkstationState::Retired => found.push(
            Finding::new(Code::WorkstationNotReady, format!("{name} is retired"))
                .hint("onus workstation list"),
        ),
    }
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
