//! `release`

use super::{Lease, Order, VerbInput, named, warrant, words};
use crate::Onus;
use onus_core::command::Command;
use onus_core::handoff::Standing;
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use schemars::JsonSchema;
use serde::Deserialize;

/// What the next holder should know.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseInput {
    /// What the next holder should know
    #[serde(alias = "note")]
    pub summary: Option<String>,
    #[serde(default)]
    pub risks: Vec<String>,
    /// The next slice of the work
    pub next: Option<String>,
    /// Take it from its holder: people only, with a reason, on record for ever
    #[serde(default)]
    pub force: bool,
    /// Of force: why
    pub reason: Option<String>,
    pub lease: Option<Lease>,
}

impl VerbInput for ReleaseInput {
    fn order(self, store: &mut Onus, task: Option<&TaskId>) -> Result<Order, Refusal> {
        let words = words(self.summary, self.risks, self.next)?;
        let command = Command::Release {
            note: words.said(),
            handoff: store.compose_handoff(named(task)?, Standing::Released, None, &words)?,
            warrant: warrant(self.force, self.reason),
        };
        Ok(Order::held(command, self.lease))
    }
}
