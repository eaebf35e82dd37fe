//! Checkpoints, stored and anchored: are they what was signed, and is the ledger what they signed?

use super::anchor_sync::{Anchorage, Anchored};
use super::finding::{FindingKind, Findings};
use onus_core::code::Code;
use onus_core::hash::{Digest, decode_hex, encode_hex};
use onus_core::id::{Generation, Seq};
use onus_core::ledger::Checkpoint;
use onus_host::key;
use onus_store::load::Workspace;
use onus_store::read::ledger::StoredCheckpoint;

/// The ledger as it was right after the entry `seq`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AsOf {
    pub(super) seq: Seq,
    pub(super) entries: i64,
    pub(super) chains: i64,
    pub(super) root: Digest,
    pub(super) generation: Generation,
}

/// Whose word counts.
#[derive(Debug)]
pub(super) struct Authority<'a> {
    pub(super) workspace: &'a Workspace,
    /// The key that the workspace was founded with; its row may have been changed.
    pub(super) public_key: &'a str,
}

impl Authority<'_> {
    fn signed(&self, checkpoint: &Checkpoint, signature: &[u8]) -> bool {
        let mut public = [0; 32];
        let signature: Result<&[u8; 64], _> = signature.try_into();
        decode_hex(self.public_key, &mut public)
            && signature.is_ok_and(|signature| key::verify(&public, &checkpoint.digest().0, signature))
    }
}

/// Looks at every stored checkpoint; gives the places where the ledger is not what was signed.
pub(super) fn stored(
    authority: &Authority<'_>,
    checkpoints: &[StoredCheckpoint],
    as_of: &[AsOf],
    found: &mut Findings,
) -> Vec<Seq> {
    let mut disputed = Vec::new();
    let mut before = Some(Digest::ZERO);
    for (stored, as_of) in checkpoints.iter().zip(as_of) {
        let forged = |found: &mut Findings, why: &str| {
            found.add(
                FindingKind::CheckpointForged,
                stored.seq,
                None,
                format!("the checkpoint {}: {why}", stored.seq),
            );
        };
        let Ok(checkpoint) = serde_json::from_str::<Checkpoint>(&stored.document) else {
            forged(found, "its document cannot be read");
            before = None;
            continue;
        };
        let is_own = checkpoint.workspace == authority.workspace.uid
            && checkpoint.public_key == authority.public_key
            && checkpoint.seq == stored.seq
            && serde_json::to_string(&checkpoint).is_ok_and(|text| text == stored.document);
        if !is_own {
            forged(found, "its document is not one of this workspace");
        } else if !authority.signed(&checkpoint, &stored.signature) {
            forged(found, "its signature does not fit");
        }
        if before.is_some_and(|before| before != checkpoint.prev) {
            let detail = format!("the checkpoint before the one at {} is gone or was changed", stored.seq);
            found.add(FindingKind::CheckpointMissing, stored.seq, None, detail);
        }
        before = Some(checkpoint.digest());
        let signed = AsOf {
            seq: checkpoint.seq,
            entries: checkpoint.entries,
            chains: checkpoint.chains,
            root: checkpoint.root,
            generation: checkpoint.generation,
        };
        if signed != *as_of {
            let detail = format!(
                "the ledger up to here has {} entries in {} chains; {} in {} with another root were signed",
                as_of.entries, as_of.chains, signed.entries, signed.chains
            );
            found.add(FindingKind::CheckpointDiffers, stored.seq, None, detail);
            disputed.push(stored.seq);
        }
    }
    disputed
}

/// What became of the anchored checkpoints.
#[derive(Debug, Default)]
pub(super) struct Anchoring<'a> {
    /// Those that belong to this life of the store, the oldest first.
    pub(super) lineage: Vec<&'a Anchored>,
    /// How many of them the store has, too.
    pub(super) agreed: i64,
    /// Those that a person gave up by raising the generation.
    pub(super) superseded: i64,
    /// Places of anchored checkpoints that the store does not know.
    pub(super) unknown: Vec<Seq>,
}

pub(super) fn anchored<'a>(
    authority: &Authority<'_>,
    checkpoints: &[StoredCheckpoint],
    anchorage: &'a Anchorage,
    found: &mut Findings,
) -> Anchoring<'a> {
    reachable(authority.workspace, anchorage, found);
    let mut anchoring = Anchoring::default();
    let own = |anchored: &Anchored| {
        checkpoints.iter().find(|stored| anchored.document.as_deref() == Some(stored.document.as_bytes()))
    };
    // From the newest to the oldest: what a later life of the store gave up is known when it comes.
    let mut acknowledged = None;
    for anchored in anchorage.history.iter().rev() {
        let Some(checkpoint) = &anchored.checkpoint else {
            let detail = format!("{} holds no checkpoint that can be read", anchored.id);
            found.add(FindingKind::AnchorDiffers, None, None, detail);
            continue;
        };
        match own(anchored) {
            Some(stored) => {
                let signature = encode_hex(&stored.signature).into_bytes();
                if anchored.signature.as_ref() != Some(&signature) {
                    let detail = format!("{} has another signature than the store", anchored.id);
                    found.add(FindingKind::AnchorDiffers, checkpoint.seq, None, detail);
                }
                acknowledged = acknowledged.max(Some(checkpoint.generation));
                anchoring.agreed += 1;
            }
            None if acknowledged.is_some_and(|generation| generation > checkpoint.generation) => {
                anchoring.superseded += 1;
                continue;
            }
            None => {
                unknown(authority, anchored, checkpoint, found);
                anchoring.unknown.push(checkpoint.seq);
            }
        }
        anchoring.lineage.push(anchored);
    }
    anchoring.lineage.reverse();
    anchoring
}

fn reachable(workspace: &Workspace, anchorage: &Anchorage, found: &mut Findings) {
    if let Some(trouble) = &anchorage.trouble {
        if trouble.code == Code::LedgerBroken {
            found.add(FindingKind::AnchorDiffers, None, None, trouble.detail.clone());
        } else if workspace.anchor.is_some() {
            found.add(
                FindingKind::AnchorMissing,
                None,
                None,
                format!("the anchor cannot be read: {}", trouble.detail),
            );
        }
        return;
    }
    let Some(id) = &workspace.anchor else {
        return;
    };
    if anchorage.history.is_empty() {
        found.add(
            FindingKind::AnchorMissing,
            None,
            None,
            format!("the last checkpoint was anchored as {id}; it is gone"),
        );
    } else if !anchorage.history.iter().any(|anchored| anchored.id == *id) {
        let detail =
            format!("the last checkpoint was anchored as {id}; the anchor's history has no such entry");
        found.add(FindingKind::AnchorDiffers, None, None, detail);
    }
}

fn unknown(authority: &Authority<'_>, anchored: &Anchored, checkpoint: &Checkpoint, found: &mut Findings) {
    let (id, seq) = (&anchored.id, checkpoint.seq);
    let mut signature = [0; 64];
    let hex = anchored.signature.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
    if !decode_hex(&hex, &mut signature) || !authority.signed(checkpoint, &signature) {
        found.add(
            FindingKind::AnchorDiffers,
            seq,
            None,
            format!("{id} is not signed with the workspace's key"),
        );
    } else if seq > authority.workspace.last_seq {
        let detail =
            format!("{id} was anchored at entry {seq}; the store ends at {}", authority.workspace.last_seq);
        found.add(FindingKind::StoreBehind, seq, None, detail);
    } else {
        found.add(
            FindingKind::CheckpointMissing,
            seq,
            None,
            format!("the store has not the checkpoint anchored as {id}"),
        );
    }
}
