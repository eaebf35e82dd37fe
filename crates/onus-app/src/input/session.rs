//! `session start` and `session stop`

use super::{Lease, Order, VerbInput};
use crate::Onus;
use onus_core::command::Command;
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use schemars::JsonSchema;
use serde::Deserialize;

/// Go on working on a task that you hold, or rest and keep it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionInput {
    pub task: TaskId,
    pub action: SessionAction,
    pub lease: Option<Lease>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionAction {
    Start,
    Stop,
}

impl VerbInput for SessionInput {
    fn order(self, _: &mut Onus, _: Option<&TaskId>) -> Result<Order, Refusal> {
        let command = match self.action {
            SessionAction::Start => Command::StartSession,
            SessionAction::Stop => Command::StopSession,
        };
        Ok(Order { task: Some(self.task), ..Order::held(command, self.lease) })
    }
}
