//! Why a task goes where it goes: every candidate, and what speaks for or against it (mission C13).

use super::route::{line, name, no_rule, not_in_role, occupied, paused};
use super::{IdentityMap, Policy, Rule, Signals, When};
use crate::id::{Handle, WorkstationName};
use crate::refusal::Finding;
use crate::task::Spec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The decision and its reasons. Without a map everything is empty: anybody may take anything.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// The rule for the task's type.
    pub rule: Option<String>,
    pub map_commit: Option<String>,
    pub map_hash: Option<String>,
    /// The main checkout's file differs from the map in force.
    pub edited: bool,
    /// In order of preference.
    pub candidates: Vec<CandidateView>,
    /// Who would be given the task now.
    pub winner: Option<Winner>,
    /// Why nobody can be: the map is not valid, or has no rule for the type.
    pub findings: Vec<Finding>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CandidateView {
    pub agent_name: Handle,
    pub workstation: WorkstationName,
    pub verdict: Verdict,
    pub reasons: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "RouteVerdict")]
pub enum Verdict {
    /// The first that the map allows and that could begin now.
    Won,
    /// The map allows it; the reasons say why it did not win.
    Eligible,
    /// The map does not allow it.
    Lost,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Winner {
    pub agent_name: Handle,
    pub workstation: WorkstationName,
    /// As it would be recorded with the grant.
    pub rule: String,
}

/// Every candidate and why it won or lost.
pub fn explain(policy: &Policy, spec: &Spec, signals: &Signals) -> Explanation {
    let in_force = match policy {
        Policy::Absent => return Explanation::default(),
        Policy::Invalid(broken) => {
            return Explanation { findings: broken.findings.clone(), ..Explanation::default() };
        }
        Policy::InForce(in_force) => in_force,
    };
    let mut explanation = Explanation {
        map_commit: in_force.commit.clone(),
        map_hash: Some(in_force.hash.clone()),
        edited: in_force.edited,
        ..Explanation::default()
    };
    match in_force.map.rule_of(spec) {
        Some((at, rule)) => {
            explanation.rule = Some(name(at, rule));
            judge(&mut explanation, &in_force.map, (at, rule), spec, signals);
        }
        None => explanation.findings.push(no_rule(spec)),
    }
    explanation
}

fn judge(
    explanation: &mut Explanation,
    map: &IdentityMap,
    (at, rule): (usize, &Rule),
    spec: &Spec,
    signals: &Signals,
) {
    for (agent_name, workstation, when) in rule.in_order() {
        let against = against(map, spec, (agent_name, workstation, when), signals);
        let (verdict, reasons) = match (against, &explanation.winner) {
            (Against::Map(reasons), _) => (Verdict::Lost, reasons),
            (Against::Now(reasons), _) if !reasons.is_empty() => (Verdict::Eligible, reasons),
            (Against::Now(_), Some(winner)) => {
                let before = format!("{} in {} comes first", winner.agent_name, winner.workstation);
                (Verdict::Eligible, vec![before])
            }
            (Against::Now(_), None) => {
                explanation.winner = Some(Winner {
                    agent_name: agent_name.clone(),
                    workstation: workstation.clone(),
                    rule: line(at, rule, agent_name, workstation),
                });
                (Verdict::Won, vec!["the first in order that could begin now".to_owned()])
            }
        };
        explanation.candidates.push(CandidateView {
            agent_name: agent_name.clone(),
            workstation: workstation.clone(),
            verdict,
            reasons,
        });
    }
}

/// What speaks against a candidate.
enum Against {
    /// It would be refused by the map.
    Map(Vec<String>),
    /// It could not begin now; nothing, when it could.
    Now(Vec<String>),
}

fn against(
    map: &IdentityMap,
    spec: &Spec,
    (agent, workstation, when): (&Handle, &WorkstationName, &When),
    signals: &Signals,
) -> Against {
    let Some(signal) = signals.workers.get(agent) else {
        return Against::Map(vec![format!(
            "{agent} is not registered: onus worker add {agent} --kind agent"
        )]);
    };
    let worker = &signal.worker;
    let mut reasons = when.unmet(spec, worker, workstation, signals);
    reasons.extend(not_in_role(map, spec, agent).map(|finding| finding.detail));
    // A person may take any task; a rule that names one still says when it means to.
    if !reasons.is_empty() && !worker.is_human() {
        return Against::Map(reasons);
    }
    reasons.extend(paused(worker));
    reasons.extend(occupied(workstation, signals));
    Against::Now(reasons)
}
