//! Whether a map can be followed: every mistake in it at once.

use super::{FILE, IdentityMap, RoleRule, Rule, TypePattern};
use crate::code::Code;
use crate::id::{Role, WorkstationName, shown};
use crate::naming::Convention;
use crate::probe::PROBES_MAX;
use crate::refusal::Finding;
use crate::scope::{Glob, Scope};
use crate::text::LIST_MAX;
use std::collections::BTreeMap;

/// Slots are counted one by one when a lane is sought.
const LANES_MAX: u32 = 1_000;

/// Letters in the `owns` of all roles: each glob is compared with every other role's, on every claim.
const OWNS_MAX: usize = 32 * 1024;

/// What a worktree's path or branch may be made of.
const PLACEHOLDERS: [&str; 3] = ["repo", "role", "lane"];

impl IdentityMap {
    /// Everything that keeps the map from being followed; empty means valid.
    pub fn findings(&self) -> Vec<Finding> {
        let mut found = Found::default();
        self.check_types(&mut found);
        for (at, rule) in self.routing.iter().enumerate() {
            check_rule(&mut found, &format!("routing[{at}]"), rule);
        }
        for (role, rule) in &self.roles {
            check_role(&mut found, role, rule);
        }
        self.check_shared_paths(&mut found);
        self.check_owners(&mut found);
        found.check_globs("high_risk", &self.high_risk.paths);
        if let Some(naming) = &self.naming {
            self.check_names(&mut found, naming);
        }
        self.check_places(&mut found);
        self.check_demanded(&mut found);
        found.0
    }

    fn check_types(&self, found: &mut Found) {
        let mut first: BTreeMap<&TypePattern, usize> = BTreeMap::new();
        for (at, rule) in self.routing.iter().enumerate() {
            if let Some(before) = first.get(&rule.task_type) {
                let detail = format!("{} has a rule already, routing[{before}]", rule.task_type);
                found.push(&format!("routing[{at}]"), &detail);
            } else {
                first.insert(&rule.task_type, at);
            }
        }
    }

    fn check_shared_paths(&self, found: &mut Found) {
        for (at, entry) in self.co_edited.iter().enumerate() {
            let place = format!("co_edited[{at}]");
            found.check_paths(&place, &entry.paths);
            found.check_roles(&place, self, std::iter::once(&entry.primary).chain(&entry.with));
        }
        for (at, entry) in self.contracts.iter().enumerate() {
            let place = format!("contracts[{at}]");
            found.check_paths(&place, &entry.paths);
            found.check_roles(&place, self, std::iter::once(&entry.owner));
        }
    }

    /// Two roles never own the same path, unless it is listed as co-edited by both.
    fn check_owners(&self, found: &mut Found) {
        let letters: usize = self.roles.values().flat_map(|rule| &rule.owns).map(String::len).sum();
        if letters > OWNS_MAX {
            let detail = format!("owns of all roles has {letters} letters; the limit is {OWNS_MAX}");
            return found.push("roles", &format!("{detail}: name directories"));
        }
        let owners: Vec<(&Role, Vec<Owned<'_>>)> = self
            .roles
            .iter()
            .map(|(role, rule)| (role, rule.owns.iter().filter_map(|text| Owned::of(text)).collect()))
            .collect();
        for (at, (role, owns)) in owners.iter().enumerate() {
            for (other, theirs) in &owners[at + 1..] {
                let shared = self.shared_by(role, other);
                let mut meetings = owns.iter().flat_map(|own| theirs.iter().filter_map(|its| own.meets(its)));
                if let Some(path) = meetings.find(|path| !shared.iter().any(|glob| glob.matches(path))) {
                    let detail =
                        format!("{role} and {other} both own {}, and it is not co-edited", shown(&path));
                    found.push(&format!("roles.{other}.owns"), &detail);
                }
            }
        }
    }

    fn shared_by(&self, role: &Role, other: &Role) -> Vec<Glob> {
        let both = self.co_edited.iter().filter(|entry| entry.names(role) && entry.names(other));
        both.flat_map(|entry| &entry.paths).filter_map(|text| Glob::parse(text).ok()).collect()
    }

    fn check_places(&self, found: &mut Found) {
        let scopes = self.naming.as_ref().map(|naming| &naming.scopes).filter(|scopes| !scopes.is_empty());
        for (scope, rule) in &self.workstations {
            let place = format!("workstations.{scope}");
            if scopes.is_some_and(|scopes| !scopes.contains(scope)) {
                found.push(&place, &format!("{} is none of naming.scopes", shown(scope)));
            }
            if rule.probes.is_empty() && rule.lifecycle.is_none() {
                found.push(&place, "it demands nothing: give probes or a lifecycle");
            }
            if rule.probes.len() > PROBES_MAX {
                found.push(&place, &format!("{} probes; the limit is {PROBES_MAX}", rule.probes.len()));
            }
        }
    }

    fn check_demanded(&self, found: &mut Found) {
        found.check_length("checks", self.checks.len());
        for (at, entry) in self.checks.iter().enumerate() {
            let place = format!("checks[{at}]");
            found.check_globs(&place, &entry.paths);
            found.check_roles(&place, self, entry.role.iter());
            found.check_length(&place, entry.run.len());
            if entry.run.is_empty() {
                found.push(&place, "it runs nothing");
            }
            for fault in entry.run.iter().filter_map(|command| crate::decide::check_fault(command)) {
                found.push(&place, &fault);
            }
        }
    }

    fn check_names(&self, found: &mut Found, naming: &Convention) {
        if !naming.scopes.is_empty() {
            for scope in naming.types.keys().filter(|scope| !naming.scopes.contains(scope)) {
                found.push("naming.types", &format!("{} is none of naming.scopes", shown(scope)));
            }
        }
        for (at, rule) in self.routing.iter().enumerate() {
            for (_, workstation, _) in rule.in_order() {
                check_name(found, &format!("routing[{at}]"), naming, rule, workstation);
            }
        }
    }
}

fn check_rule(found: &mut Found, place: &str, rule: &Rule) {
    let short = (rule.agent_name.is_some(), rule.workstation.is_some());
    let wrong = match (short, rule.candidates.is_empty()) {
        ((false, false), false) | ((true, true), true) => None,
        ((false, false), true) => Some("it names nobody: give agent_name and workstation, or candidates"),
        ((true, false), true) => Some("it names no workstation beside agent_name"),
        ((false, true), true) => Some("it names no agent_name beside the workstation"),
        (_, false) => Some("it has candidates and agent_name or workstation: use one of the two forms"),
    };
    if let Some(wrong) = wrong {
        found.push(place, wrong);
    }
    found.check_length(place, rule.candidates.len());
    for (at, candidate) in rule.candidates.iter().enumerate() {
        if let Some(max) = candidate.when.max_utilisation.filter(|max| *max > 100) {
            found.push(
                &format!("{place}.candidates[{at}].when"),
                &format!("max_utilisation is {max} percent"),
            );
        }
    }
}

fn check_role(found: &mut Found, role: &Role, rule: &RoleRule) {
    let place = format!("roles.{role}");
    for (key, value) in [("lanes", rule.lanes), ("max_in_progress", rule.max_in_progress)] {
        if !(1..=LANES_MAX).contains(&value) {
            found.push(&place, &format!("{key} is {value}; it lies between 1 and {LANES_MAX}"));
        }
    }
    found.check_globs(&format!("{place}.owns"), &rule.owns);
    for (key, template) in [("worktree", &rule.worktree), ("branch", &rule.branch)] {
        if let Some(odd) = template.as_deref().and_then(odd_placeholder) {
            let detail = format!("{} is none of {{repo}}, {{role}}, {{lane}}", shown(odd));
            found.push(&format!("{place}.{key}"), &detail);
        }
    }
}

/// The first pair of braces that stands for nothing.
fn odd_placeholder(template: &str) -> Option<&str> {
    let mut rest = template;
    while let Some(open) = rest.find(['{', '}']) {
        let inner = rest[open..].strip_prefix('{').and_then(|after| after.split_once('}'));
        match inner {
            Some((name, after)) if PLACEHOLDERS.contains(&name) => rest = after,
            _ => return Some(&rest[open..]),
        }
    }
    None
}

fn check_name(
    found: &mut Found,
    place: &str,
    naming: &Convention,
    rule: &Rule,
    workstation: &WorkstationName,
) {
    let parsed = match naming.parse(workstation) {
        Ok(parsed) => parsed,
        Err(reason) => return found.push(place, &reason),
    };
    let task_type = match &rule.task_type {
        TypePattern::Any => None,
        TypePattern::One(task_type) => Some(task_type),
    };
    if !naming.serves(&parsed.scope, task_type) {
        let scope = &parsed.scope;
        let detail =
            format!("{workstation} is of the scope {scope}, which does not serve {}", rule.task_type);
        found.push(place, &format!("{detail} (naming.types.{scope})"));
    }
}

/// A glob, with what every path in it begins with: most pairs are told apart by that.
struct Owned<'a> {
    begins: &'a str,
    glob: Glob,
}

impl Owned<'_> {
    fn of(text: &str) -> Option<Owned<'_>> {
        let glob = Glob::parse(text).ok()?;
        // A directory written `src/` is also the path `src`.
        let text = text.trim().trim_end_matches('/');
        let plain = text.find(['*', '?', '[', '{']).unwrap_or(text.len());
        Some(Owned { begins: &text[..plain], glob })
    }

    fn meets(&self, other: &Owned<'_>) -> Option<String> {
        let may = self.begins.starts_with(other.begins) || other.begins.starts_with(self.begins);
        if may { self.glob.intersects(&other.glob) } else { None }
    }
}

#[derive(Default)]
struct Found(Vec<Finding>);

impl Found {
    fn push(&mut self, place: &str, detail: &str) {
        let finding = Finding::new(Code::MapInvalid, format!("{FILE}: {place}: {detail}"));
        self.0.push(
            finding.hint(format!("edit {place} in {FILE} and commit it; `onus route check` checks it")),
        );
    }

    fn check_length(&mut self, place: &str, length: usize) {
        if length > LIST_MAX {
            self.push(place, &format!("it lists {length}; the limit is {LIST_MAX}"));
        }
    }

    fn check_globs(&mut self, place: &str, globs: &[String]) {
        self.check_length(place, globs.len());
        let odd = |text: &String| Some(format!("{} {}", shown(text), Glob::parse(text).err()?));
        let mut reasons: Vec<String> = globs.iter().filter_map(odd).collect();
        if reasons.is_empty() {
            // Each one is a glob; together they may still be too large to compare.
            reasons = Scope::parse(globs).err().unwrap_or_default();
        }
        for reason in reasons {
            self.push(place, &reason);
        }
    }

    fn check_paths(&mut self, place: &str, paths: &[String]) {
        if paths.is_empty() {
            self.push(place, "it has no paths");
        }
        self.check_globs(place, paths);
    }

    fn check_roles<'a>(&mut self, place: &str, map: &IdentityMap, roles: impl Iterator<Item = &'a Role>) {
        for role in roles.filter(|role| !map.roles.contains_key(role)) {
            self.push(place, &format!("the role {role} is not in roles"));
        }
    }
}
