//! `handoff`

use super::{Lease, Order, VerbInput, named, words};
use crate::Onus;
use onus_core::command::Command;
use onus_core::handoff::Standing;
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use onus_core::text::Text;
use schemars::JsonSchema;
use serde::Deserialize;

/// What only the holder can say; the rest is filled in.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HandoffInput {
    /// What the next holder should know
    #[serde(alias = "note")]
    pub summary: Option<String>,
    #[serde(default)]
    pub risks: Vec<String>,
    /// The next slice of the work
    pub next: Option<String>,
    pub lease: Option<Lease>,
}

impl VerbInput for HandoffInput {
    fn order(self, store: &mut Onus, task: Option<&TaskId>) -> Result<Order, Refusal> {
        let words = words(self.summary, self.risks, self.next)?;
        let document = store.compose_handoff(named(task)?, Standing::InProgress, None, &words)?;
        // Where nobody holds the task there is nothing to compose, and the rules say why it is refused.
        let document = document.unwrap_or_else(|| Text::new(String::new()));
        Ok(Order::held(Command::Handoff { note: words.said(), document }, self.lease))
    }
}
