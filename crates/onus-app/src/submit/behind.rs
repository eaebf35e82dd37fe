//! A store that is older than its anchor, or than what was committed through this process, grants nothing.

use super::Call;
use crate::anchor;
use onus_core::ledger::Checkpoint;
use onus_core::refusal::Refusal;
use onus_store::port::Tx;
use onus_store::read;

impl Call<'_> {
    /// Whether there was more on record than the store knows: what this process itself wrote, or what is anchored.
    pub(super) fn is_behind(&mut self, tx: &mut dyn Tx) -> Result<bool, Refusal> {
        let generation = self.common.workspace.generation;
        Ok(tx.lost().is_some()
            || self.common.memory.is_lacking(tx, generation)?
            || self.is_behind_anchor(tx)?)
    }

    /// Whether the anchor outside the store has seen more than the store knows: then it was rolled back. No command of
    /// the transaction anchors anything, so one answer holds for all of them.
    fn is_behind_anchor(&mut self, tx: &mut dyn Tx) -> Result<bool, Refusal> {
        if let Some(known) = self.common.is_behind_anchor {
            return Ok(known);
        }
        let is_behind = self.behind_anchor(tx)?;
        self.common.is_behind_anchor = Some(is_behind);
        Ok(is_behind)
    }

    fn behind_anchor(&self, tx: &mut dyn Tx) -> Result<bool, Refusal> {
        // A store without a reachable anchor has nothing to be behind of.
        let Ok(anchor) = anchor(self.outside.path, &self.common.workspace.uid) else {
            return Ok(false);
        };
        let tip = anchor.tip()?;
        if tip.is_none() || tip == self.common.workspace.anchor {
            return Ok(false);
        }
        // The tip is not the one on record. Either a crash came between anchoring and recording, or the store is old.
        let Some(document) =
            tip.as_deref().map(|tip| anchor.read(tip, "checkpoint.json")).transpose()?.flatten()
        else {
            return Ok(true);
        };
        let Ok(anchored) = serde_json::from_slice::<Checkpoint>(&document) else {
            return Ok(true);
        };
        let known = read::ledger::checkpoints(tx)?;
        Ok(!known.iter().any(|stored| {
            stored.seq == anchored.seq
                && serde_json::from_str::<Checkpoint>(&stored.document).is_ok_and(|own| own == anchored)
        }))
    }
}
