//! `block` and `unblock`

use super::{Lease, Order, VerbInput, named, words};
use crate::Onus;
use onus_core::command::{Command, WhileBlocked};
use onus_core::handoff::Standing;
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use onus_core::task::Blocker;
use schemars::JsonSchema;
use serde::Deserialize;

/// What the work waits for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlockInput {
    /// task:ID, person:@x, external:TEXT or exception:ID
    pub on: Blocker,
    /// Give the lease back meanwhile; default: keep it, for longer
    #[serde(default)]
    pub release_lease: bool,
    /// What the next holder should know
    #[serde(alias = "note")]
    pub summary: Option<String>,
    #[serde(default)]
    pub risks: Vec<String>,
    /// The next slice of the work
    pub next: Option<String>,
    pub lease: Option<Lease>,
}

impl VerbInput for BlockInput {
    fn order(self, store: &mut Onus, task: Option<&TaskId>) -> Result<Order, Refusal> {
        let words = words(self.summary, self.risks, self.next)?;
        let command = Command::Block {
            lease: if self.release_lease { WhileBlocked::ReleaseLease } else { WhileBlocked::KeepLease },
            note: words.said(),
            handoff: store.compose_handoff(named(task)?, Standing::Blocked, Some(&self.on), &words)?,
            on: self.on,
        };
        Ok(Order::held(command, self.lease))
    }
}

/// What the work waited for is there.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnblockInput {
    pub lease: Option<Lease>,
}

impl VerbInput for UnblockInput {
    fn order(self, _: &mut Onus, _: Option<&TaskId>) -> Result<Order, Refusal> {
        Ok(Order::held(Command::Unblock, self.lease))
    }
}
