//! `route`: the identity map in force, whether it can be followed, and why a task goes where it goes (mission C1, C13).

mod check;
mod explain;
mod show;

pub use check::{CheckView, Checked, read as check};
pub(crate) use explain::no_task;
pub use explain::{CallerView, ExplainView, Subject};
pub use show::{HistoryView, LaneView, RoleView, RouteView, RuleView, TypeHistoryView};

use onus_core::code::Code;
use onus_core::identity_map::{FILE, InForce, Policy};
use onus_core::refusal::{Finding, Refusal};

/// The map that somebody needs; without one there is nothing to follow.
pub(crate) fn required(policy: &Policy) -> Result<&InForce, Refusal> {
    match policy {
        Policy::InForce(in_force) => Ok(in_force),
        Policy::Invalid(broken) => Err(invalid(broken.findings.clone())),
        Policy::Absent => Err(Refusal::new(Code::MapInvalid, format!("there is no {FILE}"))
            .hint("write one at the repository's root and commit it")),
    }
}

/// A map that cannot be followed, with all its findings.
pub(crate) fn invalid(findings: Vec<Finding>) -> Refusal {
    let detail = match findings.as_slice() {
        [] => format!("{FILE} cannot be followed"),
        [one] => one.detail.clone(),
        [first, rest @ ..] => format!("{} (and {} more)", first.detail, rest.len()),
    };
    let hint = findings.first().and_then(|first| first.hint.clone());
    Refusal { hint, ..Refusal::new(Code::MapInvalid, detail) }.findings(findings)
}
