//! `renew`

use super::{Lease, Order, VerbInput, ttl};
use crate::Onus;
use onus_core::command::Command;
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use onus_core::time::Millis;
use schemars::JsonSchema;
use serde::Deserialize;

/// For how long.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RenewInput {
    pub ttl: Option<Millis>,
    /// The same in milliseconds
    pub ttl_ms: Option<i64>,
    pub lease: Option<Lease>,
}

impl VerbInput for RenewInput {
    fn order(self, _: &mut Onus, _: Option<&TaskId>) -> Result<Order, Refusal> {
        let command = Command::Renew { ttl: ttl(self.ttl, self.ttl_ms)?, process: None };
        Ok(Order::held(command, self.lease))
    }
}
