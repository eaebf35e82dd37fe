//! `add`, which agents call `ask`

use super::{Order, VerbInput, text};
use crate::Onus;
use onus_core::command::Command;
use onus_core::id::{OriginRef, ProjectKey, Role, TaskId, TaskType};
use onus_core::refusal::Refusal;
use onus_core::task::{Check, CheckKind, CheckState, Criterion, Priority, Risk, Spec};
use schemars::JsonSchema;
use serde::Deserialize;

/// A new task.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddInput {
    /// What is to be done, in one line
    #[schemars(length(min = 1, max = 500))]
    pub title: String,
    pub body: Option<String>,
    #[serde(rename = "type")]
    pub task_type: Option<TaskType>,
    /// feature, defect, chore, docs, …
    pub kind: Option<String>,
    pub priority: Option<Priority>,
    pub risk: Option<Risk>,
    pub role: Option<Role>,
    pub lane: Option<i64>,
    pub sprint: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    /// Globs of the paths that the work may touch
    #[serde(default)]
    pub scope: Vec<String>,
    #[serde(default)]
    pub depends_on: Vec<TaskId>,
    pub parent: Option<TaskId>,
    pub merge_order: Option<i64>,
    /// Where the ask lives: channel:key. The same one twice is one task.
    #[serde(alias = "origin")]
    pub origin_ask_ref: Option<OriginRef>,
    /// Commands that prove the work; those of agents wait for a person's approval
    #[serde(default)]
    pub checks: Vec<String>,
    /// What no command can prove: another worker ticks it off
    #[serde(default)]
    pub criteria: Vec<String>,
    /// Fields of the system that it comes from
    pub extra: Option<Box<serde_json::Map<String, serde_json::Value>>>,
    pub project: Option<ProjectKey>,
}

impl VerbInput for AddInput {
    fn order(self, _: &mut Onus, _: Option<&TaskId>) -> Result<Order, Refusal> {
        Ok(self.asks())
    }
}

impl AddInput {
    /// It asks the store for nothing.
    pub fn asks(self) -> Order {
        let check = |command: &String| Check {
            command: command.trim().to_owned(),
            // The rules lower it to a proposal unless a person asks.
            state: CheckState::Approved,
            kind: CheckKind::default(),
        };
        let spec = Spec {
            title: self.title.trim().to_owned(),
            body: self.body.as_deref().map(text),
            task_type: self.task_type,
            kind: self.kind.unwrap_or_else(|| "feature".to_owned()),
            priority: self.priority.unwrap_or_default(),
            risk: self.risk.unwrap_or_default(),
            role: self.role,
            lane: self.lane,
            sprint: self.sprint,
            tags: self.tags,
            scope: self.scope,
            parent: self.parent,
            merge_order: self.merge_order,
            origin: self.origin_ask_ref,
            checks: self.checks.iter().map(check).collect(),
            criteria: self.criteria.iter().map(|text| Criterion::open(text.trim())).collect(),
            extra: self.extra.map(|extra| text(&serde_json::Value::Object(*extra).to_string())),
        };
        let depends_on = self.depends_on.into_iter().collect();
        let command = Command::Add { spec: Box::new(spec), depends_on, archived: None, arrival: None };
        Order { project: self.project, ..Order::new(command) }
    }
}
