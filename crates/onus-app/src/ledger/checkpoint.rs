//! `ledger checkpoint` and `ledger raise-generation`.
//!
//! A checkpoint is signed and stored first and anchored afterwards. After a crash in between the next one finds a stored
//! checkpoint that is not anchored, or an anchored one that is not on record, and finishes the work.

use super::anchor_sync::{AnchorStanding, Tip, append};
use super::heads::{Heads, WORKSPACE_CHAIN};
use super::unexpected;
use crate::idempotent_admin::{Asker, once};
use crate::registry::record;
use crate::remote::calls;
use crate::{Onus, anchor};
use onus_core::code::Code;
use onus_core::hash::{Digest, encode_hex};
use onus_core::id::{Generation, Handle};
use onus_core::ledger::{Checkpoint, raise_generation};
use onus_core::refusal::Refusal;
use onus_core::time::Timestamp;
use onus_host::anchor::Anchor;
use onus_host::key::{self, Key};
use onus_store::load::{self, Workspace};
use onus_store::port::{Outcome, Store, Tx};
use onus_store::read::ledger::{self, StoredCheckpoint};
use onus_store::registry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How often another process may be faster before we give up.
const ATTEMPTS: usize = 16;

/// A signed statement about the whole ledger, and where it is anchored.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointView {
    /// `created`, or `existing` when nothing had happened since the last one.
    pub outcome: String,
    /// The last entry that it covers.
    pub seq: i64,
    pub entries: i64,
    pub chains: i64,
    pub generation: i64,
    pub root: String,
    pub digest: String,
    pub at: Timestamp,
    pub public_key: String,
    pub signature: String,
    pub anchor: AnchorView,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AnchorView {
    /// `git` or `directory`.
    pub kind: String,
    pub id: String,
}

/// The answer to `ledger raise-generation`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct GenerationView {
    pub generation: i64,
    pub reason: String,
    pub checkpoint: CheckpointView,
}

/// Whether a person has said that the anchor may know more than the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Consent {
    None,
    Given,
}

impl Onus {
    /// Signs the heads of all chains and anchors them. Any registered worker may.
    pub fn checkpoint(&mut self, actor: Option<&Handle>) -> Result<CheckpointView, Refusal> {
        if let Some(answer) = self.remote(|| calls::Checkpoint {})? {
            return Ok(answer);
        }
        self.ask(|tx| load::caller(tx, actor))
            .and_then(|caller| onus_core::registry::known(&caller).map(drop))?;
        self.checkpoint_after(Consent::None)
    }

    /// Declares every token given so far dead and lets a store grant again that is behind its anchor.
    pub fn raise_generation<'a>(
        &mut self,
        asker: impl Into<Asker<'a>>,
        reason: Option<&str>,
    ) -> Result<GenerationView, Refusal> {
        let asked = asker.into().asks(&calls::RaiseGeneration { reason: reason.map(str::to_owned) })?;
        if let Some(answer) = self.remote_once(&asked)? {
            return Ok(answer);
        }
        let workspace = self.ask(|tx| load::workspace(tx))?;
        let caller = self.ask(|tx| load::caller(tx, asked.asker.actor))?;
        raise_generation(&caller, reason, workspace.generation, None)?;
        // Whatever stands in the way of the checkpoint must show before the generation is raised.
        signing_key(&workspace)?;
        let tip = Tip::read(&anchor(&self.path, &workspace.uid)?)?;
        let raised = once(self.store.as_mut(), &asked, |tx, caller| {
            let workspace = load::workspace(tx)?;
            let (by, raised) = raise_generation(caller, reason, workspace.generation, tip.generation())?;
            registry::raise_generation(tx, workspace.generation, raised.generation)?;
            if let Some(lost) = tx.lost() {
                // Each lost entry may have been a task's first.
                registry::skip_numbers(tx, (lost - workspace.last_seq).max(0))?;
                tx.give_up_lost();
            }
            record(tx, &by, raised.clone())?;
            Ok(Outcome::Commit(raised))
        })?;
        let checkpoint = self.checkpoint_after(Consent::Given)?;
        Ok(GenerationView { generation: raised.generation, reason: raised.reason, checkpoint })
    }

    /// A restored store brings its signed checkpoints along: where nothing is anchored yet, the last one is.
    pub(crate) fn anchor_restored(&mut self) -> Result<(), Refusal> {
        let (uid, last) = self.ask(|tx| Ok((load::workspace(tx)?.uid, ledger::last_checkpoint(tx)?)))?;
        let anchor = anchor(&self.path, &uid)?;
        match last {
            Some(last) if anchor.tip()?.is_none() => self.anchor_up(&anchor, &last, Consent::None).map(drop),
            _ => Ok(()),
        }
    }

    fn checkpoint_after(&mut self, consent: Consent) -> Result<CheckpointView, Refusal> {
        let uid = self.ask(|tx| load::workspace(tx))?.uid;
        let anchor = anchor(&self.path, &uid)?;
        let (outcome, stored) = self.sign(&anchor, consent)?;
        let id = self.anchor_up(&anchor, &stored, consent)?;
        let checkpoint = parse(&stored)?;
        Ok(CheckpointView {
            outcome: outcome.to_owned(),
            seq: checkpoint.seq,
            entries: checkpoint.entries,
            chains: checkpoint.chains,
            generation: checkpoint.generation,
            root: checkpoint.root.to_string(),
            digest: checkpoint.digest().to_string(),
            at: checkpoint.at,
            public_key: checkpoint.public_key,
            signature: encode_hex(&stored.signature),
            anchor: AnchorView { kind: kind_of(&anchor).to_owned(), id },
        })
    }

    /// The checkpoint of the ledger as it is: the stored one, or a new one.
    fn sign(
        &mut self,
        anchor: &Anchor,
        consent: Consent,
    ) -> Result<(&'static str, StoredCheckpoint), Refusal> {
        for _ in 0..ATTEMPTS {
            // Read before the store is: what was anchored by then was stored before.
            let tip = Tip::read(anchor)?;
            // Counting the whole record takes a while; no writer waits for it.
            let ledger = self.ask(Ledger::read)?;
            ledger.is_as_signed()?;
            refuse_if_behind(&tip, &ledger.known, ledger.workspace.generation, consent)?;
            if let Some(last) = ledger.known.last().filter(|last| last.seq == ledger.workspace.last_seq) {
                return Ok(("existing", last.clone()));
            }
            let key = signing_key(&ledger.workspace)?;
            let made = self.store.write(|tx| {
                if ledger::last_checkpoint(tx)?.as_ref() != ledger.known.last() {
                    return Ok::<_, Refusal>(Outcome::Rollback(None));
                }
                let stored = ledger.sign(&key, tx.now()?.wall)?;
                ledger::insert_checkpoint(tx, &stored)?;
                Ok(Outcome::Commit(Some(stored)))
            })?;
            if let Some(stored) = made {
                return Ok(("created", stored));
            }
        }
        Err(overtaken())
    }

    /// Makes sure that the anchor holds `stored` or a later checkpoint of this store, and that the store knows it.
    fn anchor_up(
        &mut self,
        anchor: &Anchor,
        stored: &StoredCheckpoint,
        consent: Consent,
    ) -> Result<String, Refusal> {
        for _ in 0..ATTEMPTS {
            let tip = Tip::read(anchor)?;
            let (generation, known) =
                self.ask(|tx| Ok((load::workspace(tx)?.generation, ledger::checkpoints(tx)?)))?;
            refuse_if_behind(&tip, &known, generation, consent)?;
            let since = match (tip.standing(&known, generation), tip.id()) {
                (AnchorStanding::Known { seq }, Some(id)) if seq >= stored.seq => {
                    self.remember(anchor, id)?;
                    return Ok(id.to_owned());
                }
                (AnchorStanding::Known { seq }, _) => seq,
                // Whatever was anchored belongs to another life of the store: this one begins with all its heads.
                _ => 0,
            };
            let heads = self.ask(|tx| Heads::until(tx, stored.seq))?.since(since);
            match append(anchor, tip.id(), stored, &heads) {
                Ok(id) => {
                    self.remember(anchor, &id)?;
                    return Ok(id);
                }
                Err(refusal) if refusal.code == Code::StoreBusy => {}
                Err(refusal) => return Err(refusal),
            }
        }
        Err(overtaken())
    }

    /// Notes where the last checkpoint is anchored, so that a grant need not read it.
    fn remember(&mut self, anchor: &Anchor, id: &str) -> Result<(), Refusal> {
        if self.ask(|tx| load::workspace(tx))?.anchor.as_deref() == Some(id) {
            return Ok(());
        }
        self.store.write(|tx| {
            // Another process may have anchored a later one meanwhile.
            if anchor.tip()?.as_deref() == Some(id) {
                registry::set_anchor(tx, id)?;
            }
            Ok(Outcome::Commit(()))
        })
    }
}

/// The whole ledger at one moment, as far as a checkpoint speaks of it.
struct Ledger {
    workspace: Workspace,
    known: Vec<StoredCheckpoint>,
    entries: i64,
    chains: i64,
    root: Digest,
    /// The root when the last checkpoint was made.
    root_then: Option<Digest>,
}

impl Ledger {
    fn read(tx: &mut dyn Tx) -> onus_store::error::Result<Ledger> {
        let workspace = load::workspace(tx)?;
        let known = ledger::checkpoints(tx)?;
        let then = known.last().map(|last| last.seq);
        let mut heads = Heads::default();
        let mut root_then = None;
        ledger::heads(tx, 0, &mut |seq, task, hash| {
            if then.is_some_and(|then| then < seq) && root_then.is_none() {
                root_then = Some(heads.root());
            }
            heads.advance(task.as_deref().unwrap_or(WORKSPACE_CHAIN), seq, hash);
            Ok(())
        })?;
        let root = heads.root();
        let root_then = root_then.or(then.map(|_| root));
        Ok(Ledger { workspace, known, entries: heads.entries, chains: heads.chains(), root, root_then })
    }

    /// Signing on top of a changed record would lend it our word.
    fn is_as_signed(&self) -> Result<(), Refusal> {
        let Some(last) = self.known.last() else {
            return Ok(());
        };
        let checkpoint = parse(last)?;
        if Some(checkpoint.root) == self.root_then {
            return Ok(());
        }
        let detail = format!("the ledger up to entry {} is not the one that was signed", last.seq);
        Err(Refusal::new(Code::LedgerBroken, detail).hint("onus ledger verify tells where"))
    }

    fn sign(&self, key: &Key, at: Timestamp) -> Result<StoredCheckpoint, Refusal> {
        let checkpoint = Checkpoint {
            workspace: self.workspace.uid.clone(),
            generation: self.workspace.generation,
            seq: self.workspace.last_seq,
            entries: self.entries,
            chains: self.chains,
            root: self.root,
            prev: self.known.last().map(parse).transpose()?.map_or(Digest::ZERO, |last| last.digest()),
            at,
            public_key: self.workspace.public_key.clone(),
        };
        Ok(StoredCheckpoint {
            seq: checkpoint.seq,
            document: serde_json::to_string(&checkpoint).map_err(|error| unexpected(&error))?,
            signature: key.sign(&checkpoint.digest().0).to_vec(),
        })
    }
}

fn parse(stored: &StoredCheckpoint) -> Result<Checkpoint, Refusal> {
    serde_json::from_str(&stored.document).map_err(|error| {
        Refusal::new(Code::LedgerBroken, format!("the checkpoint {} cannot be read: {error}", stored.seq))
            .hint("onus ledger verify")
    })
}

fn refuse_if_behind(
    tip: &Tip,
    known: &[StoredCheckpoint],
    generation: Generation,
    consent: Consent,
) -> Result<(), Refusal> {
    if consent == Consent::Given || tip.standing(known, generation) != AnchorStanding::Behind {
        return Ok(());
    }
    Err(Refusal::new(
        Code::StoreBehindAnchor,
        "the anchor has seen a checkpoint that the store does not know",
    )
    .hint(
        "if the store was restored from a backup, a person runs: onus ledger raise-generation --reason TEXT",
    ))
}

/// The workspace's own key; another one would make a checkpoint that nobody accepts.
fn signing_key(workspace: &Workspace) -> Result<Key, Refusal> {
    let key = key::load(&workspace.uid)?;
    if encode_hex(&key.public()) == workspace.public_key {
        return Ok(key);
    }
    Err(Refusal::new(Code::StoreUnavailable, "the key on this machine is not the one that signs this ledger")
        .hint("copy the key from where the store was made"))
}

fn kind_of(anchor: &Anchor) -> &'static str {
    match anchor {
        Anchor::Git { .. } => "git",
        Anchor::Directory(_) => "directory",
    }
}

fn overtaken() -> Refusal {
    Refusal::new(Code::StoreBusy, "other processes made checkpoints all the time").hint("try again")
}
