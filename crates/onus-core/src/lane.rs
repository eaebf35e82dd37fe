//! Lanes: how many live assignments a role has at once, and in which of its slots (mission D2).

use crate::code::Code;
use crate::id::{Handle, Role, TaskId};
use crate::identity_map::{FILE, Policy, RoleRule};
use crate::refusal::Finding;
use crate::task::Spec;
use crate::workstation::Workstation;

/// A live assignment of the role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occupied {
    pub task: TaskId,
    pub holder: Handle,
    pub lane: i64,
}

/// The lane that a grant of this task would take. `None`: the role has no lanes, because there is no map or it does not
/// list the role.
///
/// `place` is where the work would be done: a worktree that was made for a lane is that lane's.
pub fn lane(
    policy: &Policy,
    spec: &Spec,
    occupied: &[Occupied],
    place: Option<&Workstation>,
) -> Result<Option<i64>, Vec<Finding>> {
    if let Some(finding) = place.and_then(|place| another_lanes(spec, place)) {
        return Err(vec![finding]);
    }
    let found = spec.role.as_ref().and_then(|role| Some((role, policy.in_force()?.map.roles.get(role)?)));
    let Some((role, rule)) = found else { return Ok(None) };
    let lanes = i64::from(rule.lanes);
    let free = |lane: &i64| {
        let taken = occupied.iter().filter(|taken| taken.lane == *lane).count();
        taken < usize::try_from(rule.max_in_progress).unwrap_or(usize::MAX)
    };
    let of_place = place.filter(|place| place.role == spec.role).and_then(|place| place.lane);
    match spec.lane.or(of_place) {
        Some(asked) if !(1..=lanes).contains(&asked) => Err(vec![no_such_lane(role, lanes, asked)]),
        Some(asked) if free(&asked) => Ok(Some(asked)),
        Some(asked) => Err(vec![full(role, rule, Some(asked), occupied)]),
        None => match (1..=lanes).find(free) {
            Some(lane) => Ok(Some(lane)),
            None => Err(vec![full(role, rule, None, occupied)]),
        },
    }
}

/// A worktree of a role and lane takes the work of that role and lane. What has no role may go anywhere.
fn another_lanes(spec: &Spec, place: &Workstation) -> Option<Finding> {
    let (asked, own) = (spec.role.as_ref()?, place.role.as_ref()?);
    let slot = |role: &Role, lane: Option<i64>| match lane {
        Some(lane) => format!("{role}:{lane}"),
        None => role.to_string(),
    };
    let is_another = asked != own || matches!((spec.lane, place.lane), (Some(a), Some(b)) if a != b);
    is_another.then(|| {
        let (wanted, has) = (slot(asked, spec.lane), slot(own, place.lane));
        let detail = format!("{} is the worktree of {has}; the task is {wanted}'s", place.name);
        Finding::new(Code::RoutingDenied, detail)
            .hint(format!("claim it in a workstation of {wanted}: onus workstation list"))
    })
}

/// What is wrong with a task's role and lane, whoever would work on it.
pub fn unknown(policy: &Policy, role: Option<&Role>, lane: Option<i64>) -> Option<Finding> {
    let roles = &policy.in_force()?.map.roles;
    let role = role.filter(|_| !roles.is_empty())?;
    let Some(rule) = roles.get(role) else {
        return Some(
            Finding::new(Code::QueueInvalid, format!("its role {role} is not among the roles of {FILE}"))
                .hint(format!("give it another role, or add roles.{role} to {FILE} and commit it")),
        );
    };
    let lanes = i64::from(rule.lanes);
    let lane = lane.filter(|lane| !(1..=lanes).contains(lane))?;
    let found = no_such_lane(role, lanes, lane);
    Some(Finding { code: Code::QueueInvalid, ..found })
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
