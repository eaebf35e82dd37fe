//! Who may take a task, and where. Everybody the map does not name is refused, with the rule and the way to change it.

use super::condition::When;
use super::{FILE, IdentityMap, Policy, Rule, Signals};
use crate::code::Code;
use crate::id::{Handle, WorkstationName};
use crate::refusal::Finding;
use crate::task::{Route, Spec};
use crate::worker::{Worker, WorkerState};
use crate::workstation::WorkstationState;

/// The rule that lets a person take any task.
const PERSON: &str = "person";

/// The type whose tasks always go to somebody who did not build what they look at.
const VERIFICATION: &str = "verification";

/// Every reason against this caller in this workstation; `None` without a map.
pub fn route(
    policy: &Policy,
    spec: &Spec,
    caller: &Worker,
    workstation: Option<&WorkstationName>,
    signals: &Signals,
) -> Result<Option<Route>, Vec<Finding>> {
    let in_force = match policy {
        Policy::Absent => return Ok(None),
        Policy::Invalid(broken) => return Err(broken.findings.clone()),
        Policy::InForce(in_force) => in_force,
    };
    let rule = if caller.is_human() {
        PERSON.to_owned()
    } else {
        let routed = agent(&in_force.map, spec, caller, workstation, signals);
        let not_in_role = not_in_role(&in_force.map, spec, &caller.handle);
        match (routed, not_in_role) {
            (Ok(rule), None) => rule,
            (Ok(_), Some(finding)) => return Err(vec![finding]),
            (Err(findings), finding) => return Err(findings.into_iter().chain(finding).collect()),
        }
    };
    Ok(Some(Route { rule, map_commit: in_force.commit.clone(), map_hash: in_force.hash.clone() }))
}

/// What the map says against an agent whatever the workstation and the moment: no rule for the type names it, or the role
/// does not list it. [`route`] refuses these too.
pub fn unlisted(policy: &Policy, spec: &Spec, caller: &Worker) -> Vec<Finding> {
    let Some(map) = policy.in_force().map(|in_force| &in_force.map).filter(|_| !caller.is_human()) else {
        return Vec::new();
    };
    let by_rule = match map.rule_of(spec) {
        None => Some(no_rule(spec)),
        Some((at, rule)) => {
            let is_named = rule.in_order().any(|(agent, ..)| *agent == caller.handle);
            (!is_named).then(|| wrong_agent(at, rule, &caller.handle))
        }
    };
    by_rule.into_iter().chain(not_in_role(map, spec, &caller.handle)).collect()
}

fn agent(
    map: &IdentityMap,
    spec: &Spec,
    caller: &Worker,
    workstation: Option<&WorkstationName>,
    signals: &Signals,
) -> Result<String, Vec<Finding>> {
    let Some((at, rule)) = map.rule_of(spec) else {
        return Err(vec![no_rule(spec)]);
    };
    let mut findings = Vec::new();
    let mut named = false;
    for (agent, place, when) in rule.in_order().filter(|(agent, ..)| **agent == caller.handle) {
        named = true;
        if Some(place) != workstation {
            continue;
        }
        let unmet = when.unmet(spec, caller, place, signals);
        if unmet.is_empty() {
            return Ok(line(at, rule, agent, place));
        }
        findings.extend(unmet.iter().map(|why| condition_unmet(at, rule, (agent, place), why)));
    }
    if !named {
        findings.push(wrong_agent(at, rule, &caller.handle));
    }
    findings.extend(wrong_workstation(at, rule, caller, named, workstation));
    Err(findings)
}

/// How a rule is written down with a grant.
pub(super) fn line(at: usize, rule: &Rule, agent: &Handle, workstation: &WorkstationName) -> String {
    format!("{} -> {agent} in {workstation}", name(at, rule))
}

/// How a rule is found again in the file.
pub(super) fn name(at: usize, rule: &Rule) -> String {
    format!("routing[{at}] {}", rule.task_type)
}

pub(super) fn no_rule(spec: &Spec) -> Finding {
    let (detail, add) = match &spec.task_type {
        Some(task_type) => {
            (format!("no rule routes the type {task_type}"), format!("`task_type: {task_type}`"))
        }
        None => ("the task has no type, and no rule routes `*`".to_owned(), "`task_type: \"*\"`".to_owned()),
    };
    Finding::new(Code::RoutingDenied, detail)
        .hint(format!("add a rule with {add} to routing in {FILE} and commit it, or ask a person"))
}

fn wrong_agent(at: usize, rule: &Rule, handle: &Handle) -> Finding {
    let allowed: Vec<String> =
        rule.in_order().map(|(agent, place, _)| format!("{agent} in {place}")).collect();
    let name = name(at, rule);
    Finding::new(Code::RoutingDenied, format!("{name} allows {}; {handle} is not listed", allowed.join(", ")))
        .hint(format!(
            "take work of your own type: onus ready, or add {handle} to {name} in {FILE} and commit it"
        ))
}

/// The workstation is none of those that the rule names: for this agent where it names the agent, else at all.
fn wrong_workstation(
    at: usize,
    rule: &Rule,
    caller: &Worker,
    named: bool,
    workstation: Option<&WorkstationName>,
) -> Option<Finding> {
    let places: Vec<&WorkstationName> = rule
        .in_order()
        .filter(|(agent, ..)| !named || **agent == caller.handle)
        .map(|(_, place, _)| place)
        .collect();
    let first = places.first()?;
    if workstation.is_some_and(|workstation| places.contains(&workstation)) {
        return None;
    }
    let name = name(at, rule);
    let allowed: Vec<&str> = places.iter().map(|place| place.as_str()).collect();
    let whom = if named { format!(" to {}", caller.handle) } else { String::new() };
    let instead =
        workstation.map_or("no workstation was named".to_owned(), |it| format!("{it} is not listed"));
    let detail = format!("{name} gives {}{whom}; {instead}", allowed.join(", "));
    let hint = match workstation {
        _ if named => format!("onus claim TASK --workstation {first}"),
        Some(asked) => format!("add {asked} to {name} in {FILE} and commit it"),
        None => "onus route explain TASK".to_owned(),
    };
    Some(Finding::new(Code::RoutingDenied, detail).hint(hint))
}

fn condition_unmet(at: usize, rule: &Rule, to: (&Handle, &WorkstationName), why: &str) -> Finding {
    let detail = format!("{} asks: {why}", line(at, rule, to.0, to.1));
    Finding::new(Code::RoutingDenied, detail).hint(format!(
        "wait until it holds, see who else may: onus route explain TASK, or change `when` in {} of {FILE}",
        name(at, rule)
    ))
}

/// The role of the task lists its workers, and this is none of them.
pub(super) fn not_in_role(map: &IdentityMap, spec: &Spec, handle: &Handle) -> Option<Finding> {
    let role = map.role_of(spec)?;
    let workers = &map.roles.get(role)?.workers;
    if workers.is_empty() || workers.contains(handle) {
        return None;
    }
    let allowed: Vec<&str> = workers.iter().map(Handle::as_str).collect();
    let detail = format!("roles.{role}.workers allows {}; {handle} is not listed", allowed.join(", "));
    Some(
        Finding::new(Code::RoutingDenied, detail)
            .hint(format!("add {handle} to roles.{role}.workers in {FILE} and commit it")),
    )
}

/// What keeps the workstation from being given work now, whatever the map says.
pub(super) fn occupied(workstation: &WorkstationName, signals: &Signals) -> Option<String> {
    let Some(signal) = signals.workstations.get(workstation) else {
        return Some(format!("{workstation} is not registered"));
    };
    if signal.state != WorkstationState::Ready {
        return Some(format!("{workstation} is {}", signal.state.name()));
    }
    signal.holds.as_ref().map(|(task, holder)| format!("{workstation} holds {task} for {holder}"))
}

/// What keeps the worker from being given work now, whatever the map says. That it holds something does not.
pub(super) fn paused(worker: &Worker) -> Option<String> {
    let state = worker.state;
    (state != WorkerState::Active).then(|| format!("{} is {}", worker.handle, state.name()))
}

/// Which workstation the map names for this caller and task: the first eligible candidate, one that is free before one
/// that is not; else the first candidate that names the caller.
pub fn workstation_for<'a>(
    policy: &'a Policy,
    spec: &Spec,
    caller: &Worker,
    signals: &Signals,
) -> Option<&'a WorkstationName> {
    let own: Vec<(&'a WorkstationName, &'a When)> = listed(policy, spec)
        .filter(|(agent, ..)| **agent == caller.handle)
        .map(|(_, place, when)| (place, when))
        .collect();
    let eligible = || own.iter().filter(|(place, when)| when.unmet(spec, caller, place, signals).is_empty());
    eligible()
        .find(|(place, _)| occupied(place, signals).is_none())
        .or_else(|| eligible().next())
        .or_else(|| own.first())
        .map(|(place, _)| *place)
}

fn listed<'a>(
    policy: &'a Policy,
    spec: &Spec,
) -> impl Iterator<Item = (&'a Handle, &'a WorkstationName, &'a When)> + use<'a> {
    let rule = policy.in_force().and_then(|in_force| in_force.map.rule_of(spec));
    rule.into_iter().flat_map(|(_, rule)| rule.in_order())
}

/// Names of all workers and workstations that [`Signals`] must hold for this task.
pub fn candidates<'a>(policy: &'a Policy, spec: &Spec) -> Vec<(&'a Handle, &'a WorkstationName)> {
    listed(policy, spec).map(|(agent, place, _)| (agent, place)).collect()
}

/// Whether worker and workstation must be others than those that built what the task depends on (mission C12).
pub fn needs_independence(policy: &Policy, spec: &Spec) -> bool {
    let task_type = spec.task_type.as_ref();
    let rule = policy.in_force().and_then(|in_force| in_force.map.rule_for(task_type));
    task_type.is_some_and(|task_type| task_type.as_str() == VERIFICATION)
        || rule.is_some_and(|(_, rule)| rule.independent)
}

/// Who may say what somebody else's work is worth: people, and the agents that the map lists as reviewers. Where it lists
/// none, those to whom it gives verification or work of this type, or who are of the task's role. Without a map, everybody.
pub fn may_review(policy: &Policy, spec: &Spec, caller: &Worker) -> Result<(), Vec<Finding>> {
    let in_force = match policy {
        _ if caller.is_human() => return Ok(()),
        Policy::Absent => return Ok(()),
        Policy::Invalid(broken) => return Err(broken.findings.clone()),
        Policy::InForce(in_force) => in_force,
    };
    let (map, handle) = (&in_force.map, &caller.handle);
    let is_allowed = if map.reviewers.is_empty() {
        let verifies = |rule: &&Rule| rule.task_type.to_string() == VERIFICATION;
        let rules = map.routing.iter().filter(verifies);
        let rules = rules.chain(map.rule_of(spec).map(|(_, rule)| rule));
        let of_role = map.role_of(spec).and_then(|role| map.roles.get(role));
        rules.flat_map(Rule::in_order).any(|(agent, ..)| agent == handle)
            || of_role.is_some_and(|role| role.workers.contains(handle))
    } else {
        map.reviewers.contains(handle)
    };
    if is_allowed {
        return Ok(());
    }
    let detail = format!("{FILE} does not let {handle} review this task");
    let hint = format!("leave a note: onus note; or add {handle} to reviewers in {FILE} and commit it");
    Err(vec![Finding::new(Code::RoutingDenied, detail).hint(hint)])
}

/// The workstations that the map names for a worker: for one task, or for any.
pub fn places_of<'a>(
    policy: &'a Policy,
    spec: Option<&Spec>,
    worker: &'a Handle,
) -> impl Iterator<Item = &'a WorkstationName> {
    let map = policy.in_force().map(|in_force| &in_force.map);
    let rules: Vec<&Rule> = match (map, spec) {
        (None, _) => Vec::new(),
        (Some(map), None) => map.routing.iter().collect(),
        (Some(map), Some(spec)) => map.rule_of(spec).into_iter().map(|(_, rule)| rule).collect(),
    };
    let named = rules.into_iter().flat_map(Rule::in_order);
    named.filter(move |(agent, ..)| *agent == worker).map(|(_, workstation, _)| workstation)
}
