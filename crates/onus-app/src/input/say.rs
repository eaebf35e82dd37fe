//! `say`

use super::{Lease, Order, VerbInput, text};
use crate::Onus;
use onus_core::command::Command;
use onus_core::id::{Handle, TaskId};
use onus_core::refusal::Refusal;
use schemars::JsonSchema;
use serde::Deserialize;

/// Something for whoever holds the task, or for somebody else; the answer of whom it waits for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SayInput {
    #[schemars(length(min = 1))]
    pub text: String,
    /// To whom; default: the holder, and by the holder who asked for the work
    pub to: Option<Handle>,
    pub lease: Option<Lease>,
}

impl VerbInput for SayInput {
    fn order(self, _: &mut Onus, _: Option<&TaskId>) -> Result<Order, Refusal> {
        Ok(Order::held(Command::Say { to: self.to, text: text(&self.text) }, self.lease))
    }
}
