//! The ledger: append-only, attributable, tamper-evident (mission A7; rules.md "Ledger").
//!
//! Every entry hashes all of its fields and the hash before it in its task's chain. A checkpoint hashes the heads of
//! all chains into one Merkle root, which is signed and anchored outside the database. The formats are documented in
//! `docs/reference/ledger.md`, so that anybody can verify an export without this program.

use crate::code::Code;
use crate::event::{Event, GenerationRaised, Stamped};
use crate::facts::Caller;
use crate::hash::{Digest, Fields};
use crate::id::{Epoch, Generation, Handle, Seq};
use crate::refusal::Refusal;
use crate::registry::person;
use crate::text::{REASON_MAX, line};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// One stored line of the record: plain values, exactly as hashed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub seq: Seq,
    /// The task's readable id; `None` in the workspace's own chain.
    pub task: Option<String>,
    pub at: Timestamp,
    pub actor: String,
    pub workstation: Option<String>,
    pub epoch: Epoch,
    pub verb: String,
    pub data: String,
    pub prev: Digest,
    pub hash: Digest,
}

impl Entry {
    /// Writes an event down behind `prev`, the head of its chain.
    pub fn seal(workspace: &str, stamped: &Stamped, prev: Digest) -> Result<Entry, serde_json::Error> {
        let mut entry = Entry {
            seq: stamped.seq,
            task: stamped.task.as_ref().map(ToString::to_string),
            at: stamped.at,
            actor: stamped.actor.to_string(),
            workstation: stamped.workstation.as_ref().map(ToString::to_string),
            epoch: stamped.epoch,
            verb: stamped.event.verb().to_owned(),
            data: stamped.event.data()?,
            prev,
            hash: Digest::ZERO,
        };
        entry.hash = entry.expected_hash(workspace);
        Ok(entry)
    }

    /// The hash that the entry's fields give. `workspace` is its uid: an entry cannot move to another store.
    pub fn expected_hash(&self, workspace: &str) -> Digest {
        self.borrowed().expected_hash(workspace)
    }

    /// Reads the entry back as an event; what writing cannot produce is an error.
    pub fn open(&self) -> Result<Stamped, String> {
        self.borrowed().open()
    }

    fn borrowed(&self) -> EntryRef<'_> {
        EntryRef {
            seq: self.seq,
            task: self.task.as_deref(),
            at: self.at,
            actor: &self.actor,
            workstation: self.workstation.as_deref(),
            epoch: self.epoch,
            verb: &self.verb,
            data: &self.data,
            prev: self.prev,
            hash: self.hash,
        }
    }
}

/// An entry whose texts lie elsewhere: following a million entries must not copy them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryRef<'a> {
    pub seq: Seq,
    pub task: Option<&'a str>,
    pub at: Timestamp,
    pub actor: &'a str,
    pub workstation: Option<&'a str>,
    pub epoch: Epoch,
    pub verb: &'a str,
    pub data: &'a str,
    pub prev: Digest,
    pub hash: Digest,
}

impl EntryRef<'_> {
    /// See [`Entry::expected_hash`].
    pub fn expected_hash(&self, workspace: &str) -> Digest {
        let mut fields = Fields::new("onus-ledger-1");
        fields
            .text(workspace)
            .int(self.seq)
            .text(self.task.unwrap_or(""))
            .int(self.at.0)
            .text(self.actor)
            .text(self.workstation.unwrap_or(""))
            .int(self.epoch)
            .text(self.verb)
            .text(self.data)
            .bytes(&self.prev.0);
        fields.digest()
    }

    /// See [`Entry::open`].
    pub fn open(&self) -> Result<Stamped, String> {
        Ok(Stamped {
            seq: self.seq,
            task: self.task.map(str::parse).transpose()?,
            at: self.at,
            actor: self.actor.parse()?,
            workstation: self.workstation.map(str::parse).transpose()?,
            epoch: self.epoch,
            event: Event::parse(self.verb, self.data)?,
        })
    }
}

/// The last entry of one chain at some moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The task's id; empty for the workspace's own chain.
    pub chain: String,
    pub seq: Seq,
    pub hash: Digest,
}

/// The Merkle root over the heads, sorted by chain name. As in RFC 6962, leaves and nodes are hashed differently,
/// so that no node can pass for a leaf.
pub fn merkle_root(heads: &[Head]) -> Digest {
    root_of_leaves(heads.iter().map(|head| leaf(&head.chain, head.seq, &head.hash)).collect())
}

/// A head as it enters the Merkle tree.
pub fn leaf(chain: &str, seq: Seq, hash: &Digest) -> Digest {
    let mut fields = Fields::new("onus-head-1");
    fields.text(chain).int(seq).bytes(&hash.0);
    fields.digest()
}

/// The root over leaves in the order of their chains' names; see [`merkle_root`].
pub fn root_of_leaves(mut level: Vec<Digest>) -> Digest {
    if level.is_empty() {
        return Digest::of(b"");
    }
    while level.len() > 1 {
        level = level
            .chunks(2)
            .map(|pair| match pair {
                [left, right] => {
                    let mut hash = Sha256::new();
                    hash.update([1]);
                    hash.update(left.0);
                    hash.update(right.0);
                    Digest(hash.finalize().into())
                }
                // An odd one moves up unchanged: duplicating it would let two trees share a root.
                odd => odd[0],
            })
            .collect();
    }
    level[0]
}

/// A statement about the whole ledger at one moment: signed, and anchored outside the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    pub workspace: String,
    pub generation: Generation,
    /// The last entry that it covers.
    pub seq: Seq,
    pub entries: i64,
    pub chains: i64,
    pub root: Digest,
    /// The checkpoint before it; zero for the first.
    pub prev: Digest,
    pub at: Timestamp,
    /// The Ed25519 key that signs, in hexadecimal.
    pub public_key: String,
}

impl Checkpoint {
    /// What is signed, and what the next checkpoint names as its predecessor.
    pub fn digest(&self) -> Digest {
        let mut fields = Fields::new("onus-checkpoint-1");
        fields
            .text(&self.workspace)
            .int(self.generation)
            .int(self.seq)
            .int(self.entries)
            .int(self.chains)
            .bytes(&self.root.0)
            .bytes(&self.prev.0)
            .int(self.at.0)
            .text(&self.public_key);
        fields.digest()
    }
}

/// A person's word that every token given so far is dead, after a restore or a lossy failover (rules.md "Lease and
/// fence"). `anchored` is the generation that the anchor has seen last: a store that came back from a backup may have
/// forgotten that it was raised before.
pub fn raise_generation(
    caller: &Caller,
    reason: Option<&str>,
    present: Generation,
    anchored: Option<Generation>,
) -> Result<(Handle, GenerationRaised), Refusal> {
    let by = person(caller)?.clone();
    let reason = reason.filter(|text| !text.trim().is_empty()).ok_or_else(|| {
        Refusal::new(Code::ReasonRequired, "say why; the reason goes into the ledger").hint("--reason TEXT")
    })?;
    let reason = line("the reason", reason, REASON_MAX).map_err(Refusal::invalid)?;
    let highest = present.max(anchored.unwrap_or(present));
    let generation = highest.checked_add(1).ok_or_else(|| {
        Refusal::new(Code::LedgerBroken, "the generation cannot rise any further").hint("onus ledger verify")
    })?;
    Ok((by, GenerationRaised { generation, reason }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(chain: &str, n: u8) -> Head {
        Head { chain: chain.into(), seq: i64::from(n), hash: Digest([n; 32]) }
    }

    #[test]
    fn the_root_depends_on_every_head_and_their_number() {
        let all: Vec<Head> = (1..=7).map(|n| head(&format!("T-{n}"), n)).collect();
        let root = merkle_root(&all);
        for i in 0..all.len() {
            let mut fewer = all.clone();
            fewer.remove(i);
            assert_ne!(merkle_root(&fewer), root);
            let mut edited = all.clone();
            edited[i].hash = Digest([99; 32]);
            assert_ne!(merkle_root(&edited), root);
        }
        let mut doubled = all.clone();
        doubled.push(all[6].clone());
        assert_ne!(merkle_root(&doubled), root);
    }
}
