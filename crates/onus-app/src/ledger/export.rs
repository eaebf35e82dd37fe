//! `ledger export`: everything that a third party needs to verify the ledger without this program.

use super::unexpected;
use crate::Onus;
use crate::export::PART;
use crate::progress::Progress;
use crate::remote::calls;
use onus_core::code::Code;
use onus_core::hash::{Digest, encode_hex};
use onus_core::id::Seq;
use onus_core::ledger::{Checkpoint, Entry};
use onus_core::refusal::Refusal;
use onus_store::error::StoreError;
use onus_store::load;
use onus_store::port::{Store, Tx};
use onus_store::read::ledger::{self, LedgerPart};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// So many entries are read at once.
const PAGE: i64 = 1_000;

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

/// A part of the record: whole lines, and behind which entry the next part begins.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LedgerExportPart {
    view: ExportedView,
    text: String,
    next: Option<Seq>,
}

impl Onus {
    /// Writes the ledger as JSON lines: a title, the entries, the checkpoints. Through a server it comes in parts, so that nobody
    /// has all of it in memory; what is on record does not change meanwhile.
    pub fn export_ledger(
        &mut self,
        writer: &mut dyn Write,
        progress: &mut dyn Progress,
    ) -> Result<ExportedView, Refusal> {
        let (mut view, mut after) = (ExportedView { entries: 0, checkpoints: 0 }, None);
        while let Some(part) = self.next_part(|| calls::ExportLedger { after })? {
            writer.write_all(part.text.as_bytes()).map_err(|error| unwritable(&error))?;
            view.entries += part.view.entries;
            view.checkpoints += part.view.checkpoints;
            after = part.next;
            if after.is_none() {
                return Ok(view);
            }
        }
        let mut sheet = LedgerSheet { writer, bytes: 0, view };
        self.reading(|tx| {
            progress.begin("exporting the ledger", u64::try_from(load::workspace(tx)?.last_seq).ok());
            let mut after = None;
            while let Some(seq) = sheet.page(tx, after)? {
                progress.at(u64::try_from(seq).unwrap_or(0));
                after = Some(seq);
            }
            sheet.writer.flush().map_err(|error| unwritable(&error))
        })?;
        progress.end();
        Ok(sheet.view)
    }

    /// The part of the record behind `after` that is sent at once; the first one has the title.
    pub(crate) fn export_ledger_part(&mut self, after: Option<Seq>) -> Result<LedgerExportPart, Refusal> {
        let (mut text, mut next) = (Vec::new(), after);
        let view = ExportedView { entries: 0, checkpoints: 0 };
        let mut sheet = LedgerSheet { writer: &mut text, bytes: 0, view };
        self.reading(|tx| {
            loop {
                next = sheet.page(tx, next)?;
                if next.is_none() || sheet.bytes >= PART {
                    return Ok(());
                }
            }
        })?;
        let view = sheet.view;
        Ok(LedgerExportPart { view, text: String::from_utf8(text).map_err(|e| unexpected(&e))?, next })
    }

    /// Reads of one moment that may be refused for other reasons than the store's.
    fn reading(&mut self, mut act: impl FnMut(&mut dyn Tx) -> Result<(), Refusal>) -> Result<(), Refusal> {
        let mut refused = None;
        let read = self.store.read(|tx| {
            act(tx).map_err(|refusal| {
                let stopped = StoreError::unavailable(refusal.detail.clone());
                refused = Some(refusal);
                stopped
            })
        });
        read.map_err(|error| refused.take().unwrap_or_else(|| error.into()))
    }
}

/// The lines of the record as far as they are written.
struct LedgerSheet<'w> {
    writer: &'w mut dyn Write,
    bytes: usize,
    view: ExportedView,
}

impl LedgerSheet<'_> {
    /// Writes the next entries; the last of them, or none when the checkpoints, which end it, are written as well.
    fn page(&mut self, tx: &mut dyn Tx, after: Option<Seq>) -> Result<Option<Seq>, Refusal> {
        if after.is_none() {
            self.title(tx)?;
        }
        let entries = ledger::log_bounded(tx, &LedgerPart::After(after.unwrap_or(0)), PAGE)?;
        for entry in &entries {
            self.line(&entry_line(entry))?;
            self.view.entries += 1;
        }
        if let Some(last) = entries.last() {
            return Ok(Some(last.seq));
        }
        for stored in ledger::checkpoints(tx)? {
            let checkpoint: Checkpoint = serde_json::from_str(&stored.document).map_err(|error| {
                let detail = format!("the checkpoint {} cannot be read: {error}", stored.seq);
                Refusal::new(Code::LedgerBroken, detail).hint("onus ledger verify")
            })?;
            let signature = encode_hex(&stored.signature);
            self.line(&CheckpointLine { checkpoint: fields(&checkpoint), signature })?;
            self.view.checkpoints += 1;
        }
        Ok(None)
    }

    fn title(&mut self, tx: &mut dyn Tx) -> Result<(), Refusal> {
        let workspace = load::workspace(tx)?;
        self.line(&Title {
            onus_ledger: 1,
            workspace: &workspace.uid,
            public_key: &workspace.public_key,
            generation: workspace.generation,
            hash: "sha-256",
            entry_format: "onus-ledger-1",
            head_format: "onus-head-1",
            checkpoint_format: "onus-checkpoint-1",
        })
    }

    fn line(&mut self, value: &impl Serialize) -> Result<(), Refusal> {
        let mut bytes = serde_json::to_vec(value).map_err(|error| unexpected(&error))?;
        bytes.push(b'\n');
        self.bytes += bytes.len();
        self.writer.write_all(&bytes).map_err(|error| unwritable(&error))
    }
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

fn unwritable(error: &io::Error) -> Refusal {
    Refusal::new(Code::StoreUnavailable, format!("the export could not be written: {error}"))
        .hint("check the target and the space on its disk")
}
