//! `takeover`

use super::{Order, VerbInput, ttl, warrant};
use crate::Onus;
use onus_core::command::Command;
use onus_core::id::{TaskId, WorkstationName};
use onus_core::refusal::Refusal;
use onus_core::time::Millis;
use schemars::JsonSchema;
use serde::Deserialize;

/// Why, where and for how long.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TakeoverInput {
    /// Why; goes into the ledger and to the old holder
    // A rule asks for it, with a code of its own.
    #[schemars(required)]
    pub reason: Option<String>,
    /// Where you will work; default: the one that the identity map names
    pub workstation: Option<WorkstationName>,
    pub ttl: Option<Millis>,
    /// The same in milliseconds
    pub ttl_ms: Option<i64>,
    /// Before the lease has expired: people only
    #[serde(default)]
    pub force: bool,
}

impl VerbInput for TakeoverInput {
    fn order(self, _: &mut Onus, _: Option<&TaskId>) -> Result<Order, Refusal> {
        Ok(Order::new(Command::Takeover {
            workstation: self.workstation,
            here: None,
            ttl: ttl(self.ttl, self.ttl_ms)?,
            reason: self.reason.clone(),
            warrant: warrant(self.force, self.reason),
        }))
    }
}
