//! What is in progress against the map in force: it may have changed since the work was given out.

use super::{Anomaly, AnomalyKind, Held, is_named};
use crate::id::Role;
use crate::identity_map::Policy;
use crate::worker::Kind;
use std::collections::BTreeMap;

/// Work in progress that the map in force would not give out again.
pub fn drift(policy: &Policy, held: &[Held]) -> Vec<Anomaly> {
    let mut found = Vec::new();
    for one in held.iter().filter(|one| one.kind == Kind::Agent) {
        let named = is_named(policy, one.task_type.as_ref(), &one.holder, &one.workstation);
        if named == Some(false) {
            let task_type = one.task_type.as_ref().map_or("tasks without a type", |name| name.as_str());
            let detail = format!(
                "the map in force does not send {task_type} to {} in {}",
                one.holder, one.workstation
            );
            found.push(Anomaly::of_task(AnomalyKind::RoutingDrift, &one.task, detail).by(&one.holder));
        }
    }
    found.extend(over_limit(policy, held));
    found
}

fn over_limit(policy: &Policy, held: &[Held]) -> Vec<Anomaly> {
    let mut lanes: BTreeMap<&(Role, i64), Vec<&Held>> = BTreeMap::new();
    for one in held {
        if let Some(lane) = &one.lane {
            lanes.entry(lane).or_default().push(one);
        }
    }
    let roles = policy.in_force().map(|in_force| &in_force.map.roles);
    let mut found = Vec::new();
    for ((role, lane), there) in lanes {
        let Some(rule) = roles.and_then(|roles| roles.get(role)) else { continue };
        let allowed = usize::try_from(rule.max_in_progress).unwrap_or(usize::MAX);
        let Some(last) = there.last().filter(|_| there.len() > allowed) else { continue };
        let tasks: Vec<String> = there.iter().map(|one| one.task.to_string()).collect();
        let detail =
            format!("{role}:{lane} has {} in progress of {allowed}: {}", there.len(), tasks.join(", "));
        let anomaly = Anomaly::of_task(AnomalyKind::OverLimit, &last.task, detail);
        found.push(Anomaly { count: there.len() as i64, ..anomaly });
    }
    found
}
