//! `note`

use super::{Lease, Order, VerbInput, text};
use crate::Onus;
use onus_core::command::Command;
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use schemars::JsonSchema;
use serde::Deserialize;

/// Progress of the holder, or anybody's comment.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoteInput {
    #[schemars(length(min = 1))]
    pub text: String,
    /// From claim. With it the note is progress and renews the lease; without it a comment
    pub lease: Option<Lease>,
}

impl VerbInput for NoteInput {
    fn order(self, _: &mut Onus, _: Option<&TaskId>) -> Result<Order, Refusal> {
        Ok(Order::held(Command::Note { text: text(&self.text) }, self.lease))
    }
}
