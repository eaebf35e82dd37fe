//! Contract requests (mission D4): a change of what others rely on is asked of its owner first, as a task of the kind
//! `contract` whose scope names the contract. The owner's answer is the task's state; what implements it depends on it.

use crate::code::Code;
use crate::id::{Role, TaskType};
use crate::identity_map::{FILE, IdentityMap, Policy};
use crate::refusal::Finding;
use crate::scope::Glob;
use crate::task::{Spec, StateName};
use std::collections::BTreeSet;

/// The kind of such tasks. One without a type of its own is routed as if this were it.
pub const KIND: &str = "contract";

/// What the owner says, in the words of a request.
pub fn decision(kind: &str, state: StateName) -> Option<&'static str> {
    let word = match state {
        StateName::Open | StateName::InProgress => "undecided",
        StateName::Blocked => "deferred",
        StateName::Complete => "accepted",
        StateName::Dropped => "rejected",
    };
    (kind == KIND).then_some(word)
}

/// The owners of the contracts that a request is about.
fn owners<'a>(map: &'a IdentityMap, spec: &Spec) -> BTreeSet<&'a Role> {
    let asked: Vec<Glob> = spec.scope.iter().filter_map(|text| Glob::parse(text).ok()).collect();
    let touches = |text: &String| {
        Glob::parse(text).is_ok_and(|own| asked.iter().any(|glob| own.intersects(glob).is_some()))
    };
    let entries = map.contracts.iter().filter(|contract| contract.paths.iter().any(touches));
    entries.map(|contract| &contract.owner).collect()
}

impl IdentityMap {
    /// Whose work a task is: a contract request is its owner's, whether or not it says so.
    pub fn role_of<'a>(&'a self, spec: &'a Spec) -> Option<&'a Role> {
        match &spec.role {
            None if spec.kind == KIND => owners(self, spec).into_iter().next(),
            role => role.as_ref(),
        }
    }

    /// The type by which a task is routed.
    pub(crate) fn type_of(&self, spec: &Spec) -> Option<TaskType> {
        let usual = || (spec.kind == KIND).then(|| KIND.parse().ok()).flatten();
        spec.task_type.clone().or_else(usual)
    }
}

/// What is wrong with a request, where the map has contracts.
pub fn findings(policy: &Policy, spec: &Spec) -> Vec<Finding> {
    let Some(map) = policy.in_force().map(|in_force| &in_force.map).filter(|_| spec.kind == KIND) else {
        return Vec::new();
    };
    if map.contracts.is_empty() {
        return Vec::new();
    }
    let owners: Vec<&Role> = owners(map, spec).into_iter().collect();
    let denied = |detail: String, hint: &str| Finding::new(Code::RoutingDenied, detail).hint(hint);
    match (owners.as_slice(), &spec.role) {
        ([], _) => vec![denied(
            format!("the request is about no contract of {FILE}: its scope names none"),
            "onus edit TASK --scope PATH of the contract",
        )],
        ([owner], Some(role)) if role != *owner => vec![denied(
            format!("{owner} owns the contract, and the request is for {role}"),
            "onus edit TASK --role OWNER, or leave the role out",
        )],
        ([_], _) => Vec::new(),
        (several, _) => {
            let names: Vec<&str> = several.iter().map(|role| role.as_str()).collect();
            vec![denied(
                format!("the request is about contracts of several owners: {}", names.join(", ")),
                "one request for each: onus add TITLE --kind contract --scope PATH",
            )]
        }
    }
}
