//! Boundaries: which paths a role may change, together with the scope of its task (mission D4).
//!
//! A role's own paths are closed to the other roles; what several roles change is listed as co-edited; a contract is
//! changed by its owner only, whoever else owns or co-edits the place where it lies.

use crate::code::Code;
use crate::constraint::{self, Constraint};
use crate::id::{Role, shown};
use crate::identity_map::{FILE, IdentityMap, Policy};
use crate::refusal::Finding;
use crate::scope::Glob;
use crate::task::Spec;

/// How many paths are named one by one.
const NAMED_MAX: usize = 20;

/// A set of paths.
struct Area(Vec<Glob>);

impl Area {
    /// What cannot be read holds nothing; where the map is checked, it is refused for it.
    fn of<'a>(texts: impl IntoIterator<Item = &'a String>) -> Area {
        Area(texts.into_iter().filter_map(|text| Glob::parse(text).ok()).collect())
    }

    fn has(&self, path: &str) -> bool {
        self.0.iter().any(|glob| glob.matches(path))
    }

    fn meets(&self, glob: &Glob) -> bool {
        self.0.iter().any(|own| own.intersects(glob).is_some())
    }
}

/// What the map says about the paths of one role.
struct Boundary {
    role: Role,
    /// What it may change: its own, what it co-edits, its contracts. `None` when it owns nothing: then all that is not
    /// somebody else's.
    own: Option<Area>,
    co_edited: Area,
    others: Vec<(Role, Area)>,
    contracts: Vec<(Role, Area)>,
}

impl Boundary {
    fn of(map: &IdentityMap, role: &Role) -> Boundary {
        let co_edited =
            || map.co_edited.iter().filter(|entry| entry.names(role)).flat_map(|entry| &entry.paths);
        let owned = map.contracts.iter().filter(|contract| contract.owner == *role);
        let owns = map.roles.get(role).map(|rule| &rule.owns).filter(|owns| !owns.is_empty());
        let others = map.roles.iter().filter(|(other, _)| *other != role);
        let foreign = map.contracts.iter().filter(|contract| contract.owner != *role);
        Boundary {
            role: role.clone(),
            own: owns
                .map(|owns| Area::of(owns.iter().chain(co_edited()).chain(owned.flat_map(|c| &c.paths)))),
            co_edited: Area::of(co_edited()),
            others: others.map(|(other, rule)| (other.clone(), Area::of(&rule.owns))).collect(),
            contracts: foreign.map(|c| (c.owner.clone(), Area::of(&c.paths))).collect(),
        }
    }

    /// Why the role may not change the path.
    fn against(&self, path: &str) -> Option<String> {
        let holds = |(_, area): &&(Role, Area)| area.has(path);
        if let Some((owner, _)) = self.contracts.iter().find(holds) {
            return Some(format!("a contract that only {owner} changes"));
        }
        if self.co_edited.has(path) {
            return None;
        }
        if let Some((owner, _)) = self.others.iter().find(holds) {
            return Some(format!("owned by {owner}"));
        }
        let own = self.own.as_ref()?;
        (!own.has(path)).then(|| format!("outside what {} owns", self.role))
    }
}

fn boundary(policy: &Policy, spec: &Spec) -> Option<Boundary> {
    let map = &policy.in_force()?.map;
    Some(Boundary::of(map, map.role_of(spec)?))
}

/// At claim time: each glob of the scope that the role's boundary leaves nothing of.
pub fn scope_findings(policy: &Policy, spec: &Spec) -> Vec<Finding> {
    let Some(Boundary { role, own: Some(own), .. }) = boundary(policy, spec) else { return Vec::new() };
    let outside = spec.scope.iter().filter(|text| Glob::parse(text).is_ok_and(|glob| !own.meets(&glob)));
    let finding = |text: &String| {
        Finding::new(Code::ScopeViolation, format!("the scope {} lies outside what {role} owns", shown(text)))
            .hint(format!("give the task another role or scope, or change roles.{role}.owns in {FILE}"))
    };
    outside.map(finding).collect()
}

/// Each changed path that the task may not touch, by its scope, its role's boundary or its assignment.
pub fn path_findings(
    policy: &Policy,
    spec: &Spec,
    constraints: &[Constraint],
    paths: &[String],
) -> Vec<Finding> {
    let scope = (!spec.scope.is_empty()).then(|| Area::of(&spec.scope));
    let boundary = boundary(policy, spec);
    let mut seen = std::collections::BTreeSet::new();
    let mut findings = Vec::new();
    let mut more = 0_usize;
    for path in paths.iter().filter(|path| seen.insert(path.as_str())) {
        let out_of_scope = scope.as_ref().is_some_and(|scope| !scope.has(path));
        let by_scope = out_of_scope.then(|| "outside the task's scope".to_owned());
        let by_role = boundary.as_ref().and_then(|boundary| boundary.against(path));
        let by_assignment = constraint::against_path(constraints, path);
        let reasons: Vec<String> = by_scope.into_iter().chain(by_role).chain(by_assignment).collect();
        if reasons.is_empty() {
            continue;
        }
        if findings.len() == NAMED_MAX {
            more += 1;
            continue;
        }
        let detail = format!("{} is {}", shown(path), reasons.join(", and "));
        findings.push(
            Finding::new(Code::ScopeViolation, detail).hint(
                "leave the path to the task it belongs to, or ask for one: onus add TITLE --scope PATH",
            ),
        );
    }
    if more > 0 {
        findings.push(Finding::new(Code::ScopeViolation, format!("and {more} more")));
    }
    findings
}
