//! `claim`, of a task or of the next one

use super::{Order, VerbInput, ttl, warrant};
use crate::Onus;
use crate::submit::Target;
use onus_core::command::{Command, Warrant};
use onus_core::constraint::Constraint;
use onus_core::id::{Handle, ProjectKey, Role, TaskId, TaskType, WorkstationName};
use onus_core::refusal::Refusal;
use onus_core::time::Millis;
use onus_store::read::queue::Filter;
use schemars::JsonSchema;
use serde::Deserialize;

/// So many at once: as many as go into one commit.
pub const CLAIMS_MAX: usize = 64;

/// Where and for how long.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimInput {
    /// Where you will work; default: the one that the identity map names
    pub workstation: Option<WorkstationName>,
    /// How long the lease lasts unless renewed, e.g. 15m
    pub ttl: Option<Millis>,
    /// The same in milliseconds
    pub ttl_ms: Option<i64>,
    /// Give it to this worker instead of taking it: people only
    pub assignee: Option<Handle>,
    /// Against the rules: people only, with a reason, on record for ever
    #[serde(default)]
    pub force: bool,
    /// Of force: why
    pub reason: Option<String>,
    /// What the holder is held to: `path:GLOB`, `verb:NAME`, `command:WORDS`, `network:none`
    #[serde(default)]
    pub constraints: Vec<Constraint>,
}

impl VerbInput for ClaimInput {
    fn order(self, _: &mut Onus, _: Option<&TaskId>) -> Result<Order, Refusal> {
        Ok(Order::new(Command::Claim {
            workstation: self.workstation,
            here: None,
            assignee: self.assignee,
            ttl: ttl(self.ttl, self.ttl_ms)?,
            warrant: warrant(self.force, self.reason),
            constraints: self.constraints,
        }))
    }
}

/// The most important ready task of these, or several of them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimNextInput {
    pub project: Option<ProjectKey>,
    #[serde(rename = "type")]
    pub task_type: Option<TaskType>,
    pub role: Option<Role>,
    pub lane: Option<i64>,
    pub sprint: Option<String>,
    /// Where you will work; default: the one that the identity map names
    pub workstation: Option<WorkstationName>,
    /// With `count`: one for each task, since a workstation holds one task
    #[serde(default)]
    pub workstations: Vec<WorkstationName>,
    /// How long each lease lasts unless renewed, e.g. 15m
    pub ttl: Option<Millis>,
    /// The same in milliseconds
    pub ttl_ms: Option<i64>,
    /// Give it to this worker instead of taking it: people only
    pub assignee: Option<Handle>,
    /// How many, at most 64. The answer then is a list, each with a lease of its own.
    #[schemars(range(min = 1, max = 64))]
    pub count: Option<usize>,
}

impl ClaimNextInput {
    /// One order for each task that is wanted.
    pub fn orders(self) -> Result<Vec<Order>, Refusal> {
        let ttl = ttl(self.ttl, self.ttl_ms)?;
        let filter = Filter {
            project: self.project,
            task_type: self.task_type,
            role: self.role,
            lane: self.lane,
            sprint: self.sprint,
            ..Filter::default()
        };
        let order = |workstation: Option<&WorkstationName>| Order {
            target: Target::Next(filter.clone()),
            ..Order::new(Command::Claim {
                workstation: workstation.cloned(),
                here: None,
                assignee: self.assignee.clone(),
                ttl,
                warrant: Warrant::Ordinary,
                constraints: Vec::new(),
            })
        };
        let place = |n| self.workstations.get(n).or(self.workstation.as_ref());
        match self.count {
            None if self.workstations.is_empty() => Ok(vec![order(self.workstation.as_ref())]),
            None => Err(Refusal::invalid("workstations: only with count")),
            Some(count) if !(1..=CLAIMS_MAX).contains(&count) => {
                Err(Refusal::invalid(format!("count: {count} is not between 1 and {CLAIMS_MAX}")))
            }
            Some(count) => Ok((0..count).map(|n| order(place(n))).collect()),
        }
    }
}
