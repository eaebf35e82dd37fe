//! `edit`

use super::{Lease, Order, VerbInput, text};
use crate::Onus;
use onus_core::command::{Changes, Command, Patch};
use onus_core::id::{Role, TaskId, TaskType};
use onus_core::refusal::Refusal;
use onus_core::task::{Priority, Risk};
use schemars::JsonSchema;
use serde::Deserialize;

/// What is to be different; what is left out stays, and null empties. A list takes the place of the one before; words
/// with + or - before them add to it and take away from it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EditInput {
    #[schemars(length(min = 1, max = 500))]
    pub title: Option<String>,
    pub body: Patch<String>,
    #[serde(rename = "type")]
    pub task_type: Patch<TaskType>,
    pub kind: Option<String>,
    pub priority: Option<Priority>,
    /// null: normal
    pub risk: Patch<Risk>,
    pub role: Patch<Role>,
    pub lane: Patch<i64>,
    pub sprint: Patch<String>,
    pub parent: Patch<TaskId>,
    pub merge_order: Patch<i64>,
    /// x, or +x and -x
    pub tags: Option<Vec<String>>,
    pub scope: Option<Vec<String>>,
    pub depends_on: Option<Vec<String>>,
    /// Commands; those of agents wait for a person's approval
    pub checks: Option<Vec<String>>,
    /// What the holder may do, by a person: path:GLOB, verb:NAME, command:WORDS, network:none, workstation:NAME
    pub constraints: Option<Vec<String>>,
    pub lease: Option<Lease>,
}

impl VerbInput for EditInput {
    fn order(self, _: &mut Onus, _: Option<&TaskId>) -> Result<Order, Refusal> {
        Ok(self.asks())
    }
}

impl EditInput {
    /// It asks the store for nothing.
    pub fn asks(self) -> Order {
        let changes = Changes {
            title: self.title,
            body: match self.body.map(|body| text(&body)) {
                Patch::To(body) if body.content().is_some_and(str::is_empty) => Patch::Clear,
                body => body,
            },
            task_type: self.task_type,
            kind: self.kind,
            priority: self.priority,
            risk: match self.risk {
                Patch::Keep => None,
                Patch::Clear => Some(Risk::Normal),
                Patch::To(risk) => Some(risk),
            },
            role: self.role,
            lane: self.lane,
            sprint: self.sprint,
            parent: self.parent,
            merge_order: self.merge_order,
            tags: self.tags,
            scope: self.scope,
            depends_on: self.depends_on,
            checks: self.checks,
            constraints: self.constraints,
        };
        Order::held(Command::Edit { changes: Box::new(changes) }, self.lease)
    }
}
