//! When a candidate may be given work (mission C13).

use super::Signals;
use super::route::paused;
use crate::id::WorkstationName;
use crate::task::{Priority, Spec};
use crate::worker::Worker;
use crate::workstation::WorkstationState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// The conditions of a candidate. Those that are not set are not asked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct When {
    /// The agent's tier is one of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tier: Vec<String>,
    /// The task's priority lies in this range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<PriorityRange>,
    /// The agent is active and holds nothing else.
    #[serde(skip_serializing_if = "is_false")]
    pub available: bool,
    /// The workstation is ready.
    #[serde(skip_serializing_if = "is_false")]
    pub workstation_ready: bool,
    /// The workstation was in use for at most this share of the last day, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_utilisation: Option<u8>,
    /// The longest chain of dependencies before the task is at most this long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_dependency_depth: Option<u32>,
}

/// The shape that serde asks for.
pub(super) fn is_false(value: &bool) -> bool {
    !value
}

/// What a candidate without conditions asks.
pub(super) static NONE: When = When {
    tier: Vec::new(),
    priority: None,
    available: false,
    workstation_ready: false,
    max_utilisation: None,
    max_dependency_depth: None,
};

impl When {
    pub fn is_empty(&self) -> bool {
        *self == NONE
    }

    /// Each condition that does not hold, in words.
    pub(super) fn unmet(
        &self,
        spec: &Spec,
        agent: &Worker,
        workstation: &WorkstationName,
        signals: &Signals,
    ) -> Vec<String> {
        let place = signals.workstations.get(workstation);
        let mut unmet = Vec::new();
        if !self.tier.is_empty() && !agent.tier.as_ref().is_some_and(|tier| self.tier.contains(tier)) {
            let tier = agent.tier.as_deref().unwrap_or("none");
            unmet.push(format!("tier is {}, {} has {tier}", self.tier.join(" or "), agent.handle));
        }
        if let Some(range) = self.priority.filter(|range| !range.has(spec.priority)) {
            unmet.push(format!("priority is {range}, the task has {}", spec.priority));
        }
        if self.available {
            unmet.extend(unavailable(agent, signals).map(|why| format!("available: {why}")));
        }
        if self.workstation_ready && place.is_none_or(|place| place.state != WorkstationState::Ready) {
            let state = place.map_or("not registered", |place| place.state.name());
            unmet.push(format!("workstation_ready: {workstation} is {state}"));
        }
        if let Some(max) = self.max_utilisation {
            // What is not registered is refused by the gate; it was certainly not in use.
            let used = place.map_or(0, |place| place.utilisation);
            if used > max {
                unmet.push(format!(
                    "max_utilisation is {max}, {workstation} was in use for {used}% of the last day"
                ));
            }
        }
        if let Some(max) = self.max_dependency_depth.filter(|max| signals.dependency_depth > *max) {
            unmet.push(format!("max_dependency_depth is {max}, the task's is {}", signals.dependency_depth));
        }
        unmet
    }
}

/// Why the agent could not begin at once, if it could not.
fn unavailable(agent: &Worker, signals: &Signals) -> Option<String> {
    let handle = &agent.handle;
    let Some(signal) = signals.workers.get(handle) else {
        return Some(format!("{handle} is not registered"));
    };
    paused(&signal.worker).or_else(|| signal.holds.first().map(|task| format!("{handle} holds {task}")))
}

/// `P0..P1`, both ends included, or one priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriorityRange {
    pub first: Priority,
    pub last: Priority,
}

impl PriorityRange {
    pub fn has(&self, priority: Priority) -> bool {
        (self.first..=self.last).contains(&priority)
    }
}

impl FromStr for PriorityRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        let range = PriorityRange { first: first.trim().parse()?, last: last.trim().parse()? };
        if range.first > range.last {
            return Err(format!(
                "{} runs backwards; write {}..{}",
                crate::id::shown(text),
                range.last,
                range.first
            ));
        }
        Ok(range)
    }
}

impl fmt::Display for PriorityRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last { self.first.fmt(f) } else { write!(f, "{}..{}", self.first, self.last) }
    }
}

crate::serde_by_display!(PriorityRange);

impl JsonSchema for PriorityRange {
    fn schema_name() -> Cow<'static, str> {
        "PriorityRange".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "pattern": "^P[0-4](\\.\\.P[0-4])?$"})
    }
}
