//! Lanes: how many live assignments a role has at once, and in which of its slots (mission D2).

use crate::code::Code;
use crate::id::{Handle, Role, TaskId};
use crate::identity_map::{FILE, Policy, RoleRule};
use crate::refusal::Finding;
use crate::task::Spec;

/// A live assignment of the role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occupied {
    pub task: TaskId,
    pub holder: Handle,
    pub lane: i64,
}

/// The lane that a grant of this task would take. `None`: the role has no lanes, because there is no map or it does not
/// list the role.
pub fn lane(policy: &Policy, spec: &Spec, occupied: &[Occupied]) -> Result<Option<i64>, Vec<Finding>> {
    let found = spec.role.as_ref().and_then(|role| Some((role, policy.in_force()?.map.roles.get(role)?)));
    let Some((role, rule)) = found else { return Ok(None) };
    let lanes = i64::from(rule.lanes);
    let free = |lane: &i64| {
        let taken = occupied.iter().filter(|taken| taken.lane == *lane).count();
        taken < usize::try_from(rule.max_in_progress).unwrap_or(usize::MAX)
    };
    match spec.lane {
        Some(asked) if !(1..=lanes).contains(&asked) => Err(vec![no_such_lane(role, lanes, asked)]),
        Some(asked) if free(&asked) => Ok(Some(asked)),
        Some(asked) => Err(vec![full(role, rule, Some(asked), occupied)]),
        None => match (1..=lanes).find(free) {
            Some(lane) => Ok(Some(lane)),
            None => Err(vec![full(role, rule, None, occupied)]),
        },
    }
}

fn no_such_lane(role: &Role, lanes: i64, asked: i64) -> Finding {
    let detail = format!("{role}:{asked} does not exist: {role} has {lanes} lanes, numbered from 1");
    Finding::new(Code::LaneFull, detail).hint(format!("raise roles.{role}.lanes in {FILE} and commit it"))
}

fn full(role: &Role, rule: &RoleRule, asked: Option<i64>, occupied: &[Occupied]) -> Finding {
    let there = occupied.iter().filter(|taken| asked.is_none_or(|lane| taken.lane == lane));
    let taken: Vec<String> =
        there.map(|taken| format!("{} by {} in lane {}", taken.task, taken.holder, taken.lane)).collect();
    let what = asked.map_or(format!("every lane of {role}"), |lane| format!("{role}:{lane}"));
    let taken = if taken.is_empty() { "nothing is allowed there".to_owned() } else { taken.join(", ") };
    let detail = format!("{what} is full ({} in progress each): {taken}", rule.max_in_progress);
    Finding::new(Code::LaneFull, detail).hint(format!(
        "finish or release one of these, take other work: onus ready, or raise roles.{role}.lanes in {FILE}"
    ))
}
