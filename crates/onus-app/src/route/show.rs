//! The map in force, and since when it says what it says.

use super::required;
use crate::Onus;
use crate::remote::calls;
use crate::view::HeldByView;
use onus_core::code::Code;
use onus_core::id::{Handle, Role, TaskType};
use onus_core::identity_map::{
    Candidate, CoEdited, Contract, HighRisk, IdentityMap, RouteChange, Rule, TypePattern, Version, since,
};
use onus_core::naming::Convention;
use onus_core::refusal::Refusal;
use onus_host::identity_map;
use onus_store::load;
use onus_store::port::Tx;
use onus_store::read::show;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The answer to `route show`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RouteView {
    /// The commit that the map was read from; none when it was never committed.
    pub map_commit: Option<String>,
    pub map_hash: String,
    /// The main checkout's file differs from the map in force.
    pub edited: bool,
    pub rules: Vec<RuleView>,
    pub roles: Vec<RoleView>,
    pub co_edited: Vec<CoEdited>,
    pub contracts: Vec<Contract>,
    pub high_risk: HighRisk,
    pub naming: Option<Convention>,
}

/// Where the tasks of one type go.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RuleView {
    /// Its place in the file: `routing[0]`.
    pub rule: String,
    pub task_type: TypePattern,
    /// In order of preference.
    pub candidates: Vec<Candidate>,
    pub independent: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RoleView {
    pub role: Role,
    pub max_in_progress: u32,
    pub lanes: Vec<LaneView>,
    pub owns: Vec<String>,
    pub workers: Vec<Handle>,
}

/// A lane and who is in it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LaneView {
    pub lane: i64,
    pub holds: Vec<HeldByView>,
}

/// The answer to `route history`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HistoryView {
    pub types: Vec<TypeHistoryView>,
}

/// The commits that changed where a type goes, newest first.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TypeHistoryView {
    /// `*` stands for tasks without a type.
    pub task_type: TypePattern,
    pub changes: Vec<RouteChange>,
}

/// A live assignment of a role.
struct AtWork {
    role: Role,
    lane: i64,
    held: HeldByView,
}

impl Onus {
    /// The map in force; with a type, only the rule that it follows.
    pub fn route(&mut self, only: Option<&TaskType>) -> Result<RouteView, Refusal> {
        if let Some(answer) = self.remote(|| calls::Route { only: only.cloned() })? {
            return Ok(answer);
        }
        let policy = self.policy()?;
        let in_force = required(&policy)?;
        let map = &in_force.map;
        let rules = match only {
            None => map.routing.iter().enumerate().map(rule_view).collect(),
            Some(task_type) => {
                let rule = map.rule_for(Some(task_type)).ok_or_else(|| no_rule(task_type))?;
                vec![rule_view(rule)]
            }
        };
        let at_work = self.ask(at_work)?;
        Ok(RouteView {
            map_commit: in_force.commit.clone(),
            map_hash: in_force.hash.clone(),
            edited: in_force.edited,
            rules,
            roles: role_views(map, &at_work),
            co_edited: map.co_edited.clone(),
            contracts: map.contracts.clone(),
            high_risk: map.high_risk.clone(),
            naming: map.naming.clone(),
        })
    }

    /// Since when, and by which commit, types go to whom.
    pub fn route_history(&self, only: Option<&TaskType>) -> Result<HistoryView, Refusal> {
        let versions = identity_map::history(&self.place, &self.settings)?;
        let types: BTreeSet<TypePattern> = match only {
            Some(task_type) => BTreeSet::from([TypePattern::One(task_type.clone())]),
            None => versions.iter().flat_map(types_of).collect(),
        };
        let view = |task_type: TypePattern| {
            let changes = match &task_type {
                TypePattern::Any => since(&versions, None),
                TypePattern::One(one) => since(&versions, Some(one)),
            };
            TypeHistoryView { task_type, changes }
        };
        Ok(HistoryView { types: types.into_iter().map(view).collect() })
    }
}

fn types_of(version: &Version) -> Vec<TypePattern> {
    let map = version.map.as_ref().ok().and_then(Option::as_ref);
    map.into_iter().flat_map(|map| &map.routing).map(|rule| rule.task_type.clone()).collect()
}

fn rule_view((at, rule): (usize, &Rule)) -> RuleView {
    let candidate = |(agent, workstation, when): (&_, &_, &_)| Candidate {
        agent_name: Handle::clone(agent),
        workstation: Clone::clone(workstation),
        when: Clone::clone(when),
    };
    RuleView {
        rule: format!("routing[{at}]"),
        task_type: rule.task_type.clone(),
        candidates: rule.in_order().map(candidate).collect(),
        independent: rule.independent,
    }
}

fn role_views(map: &IdentityMap, at_work: &[AtWork]) -> Vec<RoleView> {
    let lane = |role: &Role, lane: i64| {
        let there = at_work.iter().filter(|one| one.role == *role && one.lane == lane);
        LaneView { lane, holds: there.map(|one| one.held.clone()).collect() }
    };
    map.roles
        .iter()
        .map(|(role, rule)| RoleView {
            role: role.clone(),
            max_in_progress: rule.max_in_progress,
            lanes: (1..=i64::from(rule.lanes)).map(|number| lane(role, number)).collect(),
            owns: rule.owns.clone(),
            workers: rule.workers.clone(),
        })
        .collect()
}

/// There are never more live assignments than workstations.
fn at_work(tx: &mut dyn Tx) -> onus_store::error::Result<Vec<AtWork>> {
    let mut found = Vec::new();
    for held in show::live(tx)? {
        let spec = load::task(tx, &held.task)?.map(|stored| stored.task.spec);
        let Some((role, asked)) = spec.and_then(|spec| Some((spec.role?, spec.lane))) else { continue };
        let lane = held.assignment.lane.or(asked).unwrap_or(1);
        let held = HeldByView { task: held.task, worker: held.assignment.assignee };
        found.push(AtWork { role, lane, held });
    }
    Ok(found)
}

fn no_rule(task_type: &TaskType) -> Refusal {
    Refusal::new(Code::UnknownName, format!("no rule routes the type {task_type}"))
        .hint("onus route show lists every rule")
}
