//! `complete`

use super::{Lease, Order, VerbInput, named, text, warrant};
use crate::Onus;
use onus_core::command::Command;
use onus_core::evidence::RootCause;
use onus_core::id::{CommitId, TaskId};
use onus_core::refusal::Refusal;
use schemars::JsonSchema;
use serde::Deserialize;

/// What was done.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteInput {
    /// What was done
    // A rule asks for it, with a code of its own: leaving it out is not a typing error.
    #[schemars(required)]
    pub resolution: Option<String>,
    /// Of a defect: why it happened
    pub root_cause: Option<RootCause>,
    /// The commit that the work is at; default: the head of the workstation's branch, where the server has it
    pub commit: Option<CommitId>,
    /// Against the rules: people only, with a reason, on record for ever
    #[serde(default)]
    pub force: bool,
    /// Of force: why
    pub reason: Option<String>,
    pub lease: Option<Lease>,
}

impl VerbInput for CompleteInput {
    fn order(self, store: &mut Onus, task: Option<&TaskId>) -> Result<Order, Refusal> {
        let task = named(task)?;
        let root_cause = match (self.root_cause, store.find_task(task)?) {
            (None, Some(found)) => store.root_cause_of_merge(&found)?,
            (said, _) => said,
        };
        let command = Command::Complete {
            resolution: self.resolution.as_deref().map(text),
            root_cause,
            warrant: warrant(self.force, self.reason),
            proof: store.stated_proof(task, self.commit)?,
        };
        Ok(Order::held(command, self.lease))
    }
}
