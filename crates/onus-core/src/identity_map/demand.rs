//! What the map demands beside who gets what: of workstations by the scope in their names (mission C3, C5), of work by its role
//! and by the paths that it changes (mission D4).

use super::{FILE, IdentityMap, PlaceRule, Policy};
use crate::code::Code;
use crate::event::WorkstationAdded;
use crate::id::WorkstationName;
use crate::naming::Convention;
use crate::refusal::Finding;
use crate::scope::Glob;
use crate::task::{Check, CheckKind, CheckState, Spec};
use crate::workstation::Workstation;

impl IdentityMap {
    /// What workstations of this one's scope need. A name that tells no scope needs nothing.
    pub fn place_rule(&self, name: &WorkstationName) -> Option<(String, &PlaceRule)> {
        let usual = Convention::default();
        let scope = self.naming.as_ref().unwrap_or(&usual).parse(name).ok()?.scope;
        self.workstations.get(&scope).map(|rule| (scope, rule))
    }
}

fn rule<'a>(policy: &'a Policy, name: &WorkstationName) -> Option<(String, &'a PlaceRule)> {
    policy.in_force()?.map.place_rule(name)
}

/// A registration as the map wants it: how long a place lives is the policy's to say, and what it is probed for.
pub fn as_demanded(policy: &Policy, wanted: &WorkstationAdded) -> WorkstationAdded {
    let mut wanted = wanted.clone();
    if let Some((_, rule)) = rule(policy, &wanted.name) {
        wanted.lifecycle = rule.lifecycle.unwrap_or(wanted.lifecycle);
        for probe in &rule.probes {
            if !wanted.probes.contains(probe) {
                wanted.probes.push(probe.clone());
            }
        }
    }
    wanted
}

/// What a workstation that was registered before lacks of what the map demands.
pub fn place_findings(policy: &Policy, workstation: &Workstation) -> Vec<Finding> {
    let Some((scope, rule)) = rule(policy, &workstation.name) else { return Vec::new() };
    let name = &workstation.name;
    let lacks = |what: String| {
        Finding::new(
            Code::WorkstationNotReady,
            format!("{FILE}: workstations.{scope} demands {what} of {name}"),
        )
        .hint(format!("a person runs: onus workstation retire {name}, then onus workstation add {name}"))
    };
    let missing = rule.probes.iter().filter(|probe| !workstation.probes.contains(probe));
    let mut found: Vec<Finding> = missing.map(|probe| lacks(format!("the probe `{probe}`"))).collect();
    if let Some(lifecycle) = rule.lifecycle.filter(|lifecycle| *lifecycle != workstation.lifecycle) {
        found.push(lacks(format!("the lifecycle {}", lifecycle.name())));
    }
    found
}

/// The checks that work of this task needs if it changes these paths; with `None`, those that it might need. A person has
/// committed the map: they are approved.
pub fn required_checks(policy: &Policy, spec: &Spec, paths: Option<&[String]>) -> Vec<Check> {
    let Some(map) = policy.in_force().map(|in_force| &in_force.map) else { return Vec::new() };
    let role = map.role_of(spec);
    let concerns = |globs: &[String]| {
        let Some(paths) = paths.filter(|_| !globs.is_empty()) else { return true };
        let globs: Vec<Glob> = globs.iter().filter_map(|text| Glob::parse(text).ok()).collect();
        paths.iter().any(|path| globs.iter().any(|glob| glob.matches(path)))
    };
    let entries = map.checks.iter().filter(|entry| entry.role.is_none() || entry.role.as_ref() == role);
    let mut commands: Vec<&String> =
        entries.filter(|entry| concerns(&entry.paths)).flat_map(|entry| &entry.run).collect();
    commands.sort();
    commands.dedup();
    let check = |command: &String| Check {
        command: command.clone(),
        state: CheckState::Approved,
        kind: CheckKind::Acceptance,
    };
    commands.into_iter().map(check).collect()
}
