//! Whose words a command is: those of the process under the lease, or of somebody who goes on without it.

use super::Call;
use crate::token::Shown;
use onus_core::lease::Lease;
use onus_core::process::{Process, Vital};
use onus_host::process_liveness;

impl<'a> Call<'a> {
    pub(super) fn sent_by(self, shown: Option<&'a Shown>) -> Call<'a> {
        Call { sender: shown.and_then(|shown| shown.sender.as_ref()), ..self }
    }

    /// What is known of the process under a lease. Its own last words may be heard after its death: they are no sign that
    /// somebody goes on without it.
    pub(super) fn vital(&self, held: &Lease) -> Vital {
        let is_its_own = |process: &Process| self.sender.is_some_and(|sender| process.includes(sender));
        match held.process.as_ref().is_some_and(is_its_own) {
            true => Vital::Lives,
            false => process_liveness::of(held),
        }
    }
}
