//! Since when, and by which commit, a type of task goes to whom (mission C1).

use super::{Candidate, IdentityMap};
use crate::id::TaskType;
use crate::refusal::Finding;
use crate::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The map as one commit of the main branch left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    pub commit: String,
    pub at: Timestamp,
    pub author: String,
    pub subject: String,
    /// `None` where the commit removed the map.
    pub map: Result<Option<IdentityMap>, Vec<Finding>>,
}

/// A commit that changed where a type goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RouteChange {
    pub commit: String,
    pub at: Timestamp,
    pub author: String,
    pub subject: String,
    pub sends: Sends,
}

/// Where a type goes under one version of the map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sends {
    /// In order of preference.
    To(Vec<Candidate>),
    /// No rule for it: to no agent.
    NoRule,
    /// No map: to anybody.
    NoMap,
    /// The map could not be followed.
    Invalid(Vec<Finding>),
}

/// The commits that changed where the type goes, newest first; `versions` are newest first, too.
pub fn since(versions: &[Version], task_type: Option<&TaskType>) -> Vec<RouteChange> {
    let mut changes: Vec<RouteChange> = Vec::new();
    let mut before = Sends::NoMap;
    for version in versions.iter().rev() {
        let sends = sends(version, task_type);
        if sends == before {
            continue;
        }
        changes.push(RouteChange {
            commit: version.commit.clone(),
            at: version.at,
            author: version.author.clone(),
            subject: version.subject.clone(),
            sends: sends.clone(),
        });
        before = sends;
    }
    changes.reverse();
    changes
}

fn sends(version: &Version, task_type: Option<&TaskType>) -> Sends {
    let map = match &version.map {
        Err(findings) => return Sends::Invalid(findings.clone()),
        Ok(None) => return Sends::NoMap,
        Ok(Some(map)) => map,
    };
    let Some((_, rule)) = map.rule_for(task_type) else { return Sends::NoRule };
    let candidate = |(agent_name, workstation, when): (&_, &_, &super::When)| Candidate {
        agent_name: Clone::clone(agent_name),
        workstation: Clone::clone(workstation),
        when: when.clone(),
    };
    Sends::To(rule.in_order().map(candidate).collect())
}
