//! `ledger export`: everything that a third party needs to verify the ledger without this program.

use super::unexpected;
use crate::Onus;
use crate::progress::Progress;
use crate::remote::calls;
use onus_core::code::Code;
use onus_core::hash::{Digest, encode_hex};
use onus_core::ledger::{Checkpoint, Entry};
use onus_core::refusal::Refusal;
use onus_store::error::StoreError;
use onus_store::load;
use onus_store::port::{Store, Tx};
use onus_store::read::ledger;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// Progress is told once in so many entries.
const TELL_EVERY: i64 = 4_096;

/// What was written.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ExportedView {
    pub entries: i64,
    pub checkpoints: i64,
}

/// The first line: whose ledger this is, and how to read the rest.
#[derive(Serialize)]
struct Title<'a> {
    onus_ledger: i64,
    workspace: &'a str,
    public_key: &'a str,
    generation: i64,
    hash: &'static str,
    entry_format: &'static str,
    head_format: &'static str,
    checkpoint_format: &'static str,
}

/// One entry: every field that is hashed, in the order in which it is hashed. Time is a number and `data` a text,
/// because that is what is hashed.
#[derive(Serialize)]
struct EntryLine<'a> {
    seq: i64,
    task: Option<&'a str>,
    at_ms: i64,
    actor: &'a str,
    workstation: Option<&'a str>,
    epoch: i64,
    verb: &'a str,
    data: &'a str,
    prev: &'a Digest,
    hash: &'a Digest,
}

#[derive(Serialize)]
struct CheckpointLine<'a> {
    checkpoint: CheckpointFields<'a>,
    signature: String,
}

#[derive(Serialize)]
struct CheckpointFields<'a> {
    workspace: &'a str,
    generation: i64,
    seq: i64,
    entries: i64,
    chains: i64,
    root: &'a Digest,
    prev: &'a Digest,
    at_ms: i64,
    public_key: &'a str,
}

impl Onus {
    /// Writes the ledger as JSON lines: a title, the entries, the checkpoints.
    pub fn export_ledger(
        &mut self,
        writer: &mut dyn Write,
        progress: &mut dyn Progress,
    ) -> Result<ExportedView, Refusal> {
        if let Some((view, text)) = self.remote(|| calls::ExportLedger {})? {
            writer.write_all(text.as_bytes()).map_err(|error| unwritable(&error))?;
            return Ok(view);
        }
        let mut refused = None;
        let written = self.store.read(|tx| {
            write(tx, writer, progress).map_err(|refusal| {
                let detail = refusal.detail.clone();
                refused = Some(refusal);
                StoreError::unavailable(detail)
            })
        });
        written.map_err(|error| refused.take().unwrap_or_else(|| error.into()))
    }
}

fn write(
    tx: &mut dyn Tx,
    writer: &mut dyn Write,
    progress: &mut dyn Progress,
) -> Result<ExportedView, Refusal> {
    let workspace = load::workspace(tx)?;
    line(
        writer,
        &Title {
            onus_ledger: 1,
            workspace: &workspace.uid,
            public_key: &workspace.public_key,
            generation: workspace.generation,
            hash: "sha-256",
            entry_format: "onus-ledger-1",
            head_format: "onus-head-1",
            checkpoint_format: "onus-checkpoint-1",
        },
    )?;
    progress.begin("exporting the ledger", u64::try_from(workspace.last_seq).ok());
    let mut view = ExportedView { entries: 0, checkpoints: 0 };
    let mut stopped = None;
    let read = ledger::every(tx, 0, &mut |seq, entry| {
        let outcome = entry.map_err(Refusal::from).and_then(|entry| line(writer, &entry_line(&entry)));
        if let Err(refusal) = outcome {
            stopped = Some(refusal);
            return Err(StoreError::unavailable("stopped"));
        }
        view.entries += 1;
        if seq % TELL_EVERY == 0 {
            progress.at(u64::try_from(seq).unwrap_or(0));
        }
        Ok(())
    });
    if let Some(refusal) = stopped {
        return Err(refusal);
    }
    read?;
    for stored in ledger::checkpoints(tx)? {
        let checkpoint: Checkpoint = serde_json::from_str(&stored.document).map_err(|error| {
            Refusal::new(Code::LedgerBroken, format!("the checkpoint {} cannot be read: {error}", stored.seq))
                .hint("onus ledger verify")
        })?;
        line(
            writer,
            &CheckpointLine { checkpoint: fields(&checkpoint), signature: encode_hex(&stored.signature) },
        )?;
        view.checkpoints += 1;
    }
    writer.flush().map_err(|error| unwritable(&error))?;
    progress.end();
    Ok(view)
}

fn entry_line(entry: &Entry) -> EntryLine<'_> {
    EntryLine {
        seq: entry.seq,
        task: entry.task.as_deref(),
        at_ms: entry.at.0,
        actor: &entry.actor,
        workstation: entry.workstation.as_deref(),
        epoch: entry.epoch,
        verb: &entry.verb,
        data: &entry.data,
        prev: &entry.prev,
        hash: &entry.hash,
    }
}

fn fields(checkpoint: &Checkpoint) -> CheckpointFields<'_> {
    CheckpointFields {
        workspace: &checkpoint.workspace,
        generation: checkpoint.generation,
        seq: checkpoint.seq,
        entries: checkpoint.entries,
        chains: checkpoint.chains,
        root: &checkpoint.root,
        prev: &checkpoint.prev,
        at_ms: checkpoint.at.0,
        public_key: &checkpoint.public_key,
    }
}

fn line(writer: &mut dyn Write, value: &impl Serialize) -> Result<(), Refusal> {
    let mut bytes = serde_json::to_vec(value).map_err(|error| unexpected(&error))?;
    bytes.push(b'\n');
    writer.write_all(&bytes).map_err(|error| unwritable(&error))
}

fn unwritable(error: &io::Error) -> Refusal {
    Refusal::new(Code::StoreUnavailable, format!("the export could not be written: {error}"))
        .hint("check the target and the space on its disk")
}
