//! `reopen` and `drop`

use super::{Order, VerbInput};
use crate::Onus;
use onus_core::command::Command;
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use schemars::JsonSchema;
use serde::Deserialize;

/// Why it is not complete after all.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReopenInput {
    /// Why; goes into the ledger
    pub reason: Option<String>,
}

impl VerbInput for ReopenInput {
    fn order(self, _: &mut Onus, _: Option<&TaskId>) -> Result<Order, Refusal> {
        Ok(Order::new(Command::Reopen { reason: self.reason }))
    }
}

/// Why it is given up for good.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DropInput {
    /// Why; goes into the ledger
    pub reason: Option<String>,
}

impl VerbInput for DropInput {
    fn order(self, _: &mut Onus, _: Option<&TaskId>) -> Result<Order, Refusal> {
        Ok(Order::new(Command::Drop { reason: self.reason }))
    }
}
