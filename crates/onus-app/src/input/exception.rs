//! `exception request` and `exception approve`

use super::{Order, VerbInput};
use crate::Onus;
use onus_core::command::Command;
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use schemars::JsonSchema;
use serde::Deserialize;

/// A dependency that is not waited for, by a person's word.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExceptionInput {
    pub action: ExceptionAction,
    /// The dependency that is not waited for
    pub on: TaskId,
    /// With a request: why it cannot wait
    pub reason: Option<String>,
    /// With a request: how to go back if it turns out wrong
    pub rollback: Option<String>,
    /// With a request: the decision record, below the repository's root. A server writes none.
    pub adr: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExceptionAction {
    Request,
    Approve,
}

impl VerbInput for ExceptionInput {
    fn order(self, _: &mut Onus, _: Option<&TaskId>) -> Result<Order, Refusal> {
        let ExceptionInput { action, on, reason, rollback, adr } = self;
        Ok(Order::new(match action {
            ExceptionAction::Request => Command::RequestException { on, reason, rollback, adr },
            ExceptionAction::Approve => Command::ApproveException { on },
        }))
    }
}
