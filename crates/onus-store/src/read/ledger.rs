//! The record, in the order in which it was written.

use crate::codec;
use crate::error::{Result, StoreError};
use crate::port::{Row, Tx};
use crate::sql;
use crate::tables::EntryRow;
use onus_core::event::Event;
use onus_core::hash::Digest;
use onus_core::id::{Generation, Seq, TaskId};
use onus_core::ledger::Entry;

pub use codec::entry_data;

// The unary plus keeps the planner on the primary key: by an index that leads with the workspace it would read and sort
// the whole record for its last line.
sql! {
    LOG(after, limit) = "SELECT ", EntryRow::LIST, " FROM ledger l WHERE +l.workspace = :workspace AND l.seq > :after \
        ORDER BY l.seq LIMIT :limit";
    LATEST(limit) = "SELECT ", EntryRow::LIST, " FROM ledger l WHERE +l.workspace = :workspace ORDER BY l.seq DESC \
        LIMIT :limit";
    TASK_LOG(task, after, limit) = "SELECT ", EntryRow::LIST,
        " FROM ledger l WHERE l.workspace = :workspace AND l.task = :task AND l.seq > :after ORDER BY l.seq LIMIT :limit";
    /// Reads the chain of the task, which has no index by number, and keeps the last ones.
    TASK_BEFORE(task, before, limit) = "SELECT ", EntryRow::LIST, " FROM ledger l \
        WHERE l.workspace = :workspace AND l.task = :task AND l.seq < :before ORDER BY l.seq DESC LIMIT :limit";
    ONE(seq) = "SELECT ", EntryRow::LIST, " FROM ledger l WHERE l.workspace = :workspace AND l.seq = :seq";
    EVERY(after) = "SELECT l.seq, ", EntryRow::LIST, " FROM ledger l WHERE +l.workspace = :workspace AND l.seq > \
        :after ORDER BY l.seq";
    CHAIN(task) = "SELECT l.seq, ", EntryRow::LIST,
        " FROM ledger l WHERE l.workspace = :workspace AND l.task IS NOT DISTINCT FROM :task ORDER BY l.seq";
    HEAD_BEFORE(task, before) = "SELECT l.hash FROM ledger l WHERE l.workspace = :workspace AND l.task = :task AND \
        l.seq < :before ORDER BY l.seq DESC LIMIT 1";
    OWN_HEAD_BEFORE(before) = "SELECT l.hash FROM ledger l WHERE l.workspace = :workspace AND l.task IS NULL AND l.seq \
        < :before \
        ORDER BY l.seq DESC LIMIT 1";
    HEADS(after) = "SELECT l.seq, l.task, l.hash FROM ledger l WHERE +l.workspace = :workspace AND l.seq > :after \
        ORDER BY l.seq";
    INSERT_CHECKPOINT(seq, document, signature) = "INSERT INTO checkpoint (workspace, seq, document, signature) VALUES \
        (:workspace, :seq, :document, :signature)";
    CHECKPOINTS = "SELECT seq, document, signature FROM checkpoint WHERE workspace = :workspace ORDER BY seq";
    LAST_CHECKPOINT = "SELECT seq, document, signature FROM checkpoint WHERE workspace = :workspace ORDER BY seq DESC \
        LIMIT 1";
    RAISED(up_to) = "SELECT verb, data FROM ledger WHERE workspace = :workspace AND task IS NULL AND seq <= :up_to \
        AND verb = 'generation_raised' ORDER BY seq DESC LIMIT 1";
    COUNT = "SELECT count(*) FROM ledger WHERE workspace = :workspace";
}

/// Which part of the record.
#[derive(Debug, Clone)]
pub enum LedgerPart<'a> {
    After(Seq),
    Latest,
    Task(&'a TaskId, Seq),
    /// The last ones of a task before an entry.
    TaskBefore(&'a TaskId, Seq),
}

/// Entries in the order of their writing, at most `limit`.
pub fn log(tx: &mut dyn Tx, part: &LedgerPart<'_>, limit: i64) -> Result<Vec<Entry>> {
    let rows = match part {
        LedgerPart::After(seq) => tx.rows(&LOG { after: *seq, limit })?,
        LedgerPart::Task(task, seq) => tx.rows(&TASK_LOG { task, after: *seq, limit })?,
        LedgerPart::TaskBefore(task, before) => {
            let mut rows = tx.rows(&TASK_BEFORE { task, before: *before, limit })?;
            rows.reverse();
            rows
        }
        LedgerPart::Latest => {
            let mut rows = tx.rows(&LATEST { limit })?;
            rows.reverse();
            rows
        }
    };
    rows.into_iter().map(|mut row| codec::entry(&mut row)).collect()
}

/// So many bytes of entries are told at once; one of them is, however long it is.
pub const BYTES: usize = 2 * 1024 * 1024;

/// Entries up to [`BYTES`] of them: what is more stays where it is.
#[derive(Default)]
pub(crate) struct BoundedEntries {
    pub(crate) entries: Vec<Entry>,
    bytes: usize,
}

impl BoundedEntries {
    pub(crate) fn take(&mut self, mut row: Row) -> Result<()> {
        if self.bytes <= BYTES {
            let entry = codec::entry(&mut row)?;
            self.bytes += entry.data.len();
            self.entries.push(entry);
        }
        Ok(())
    }
}

/// Whether so many entries are as much as is told at once.
pub fn is_enough(entries: &[Entry]) -> bool {
    entries.iter().map(|entry| entry.data.len()).sum::<usize>() > BYTES
}

/// The same as `log` for whoever says how much it should be: [`BYTES`] of it at most.
pub fn log_bounded(tx: &mut dyn Tx, part: &LedgerPart<'_>, limit: i64) -> Result<Vec<Entry>> {
    let mut told = BoundedEntries::default();
    let mut each = |row| told.take(row);
    match part {
        LedgerPart::After(seq) => tx.each(&LOG { after: *seq, limit }, &mut each)?,
        LedgerPart::Task(task, seq) => tx.each(&TASK_LOG { task, after: *seq, limit }, &mut each)?,
        LedgerPart::TaskBefore(task, before) => {
            tx.each(&TASK_BEFORE { task, before: *before, limit }, &mut each)?;
        }
        LedgerPart::Latest => tx.each(&LATEST { limit }, &mut each)?,
    }
    if matches!(part, LedgerPart::TaskBefore(..) | LedgerPart::Latest) {
        told.entries.reverse();
    }
    Ok(told.entries)
}

pub fn entry(tx: &mut dyn Tx, seq: Seq) -> Result<Option<Entry>> {
    tx.row(&ONE { seq })?.map(|mut row| codec::entry(&mut row)).transpose()
}

/// Streams the record after `after`, each entry with its place. An entry that makes no sense is handed on as the
/// error it is, so that one bad entry does not hide the others.
pub fn every(
    tx: &mut dyn Tx,
    after: Seq,
    each: &mut dyn FnMut(Seq, Result<Entry>) -> Result<()>,
) -> Result<()> {
    tx.each(&EVERY { after }, &mut |mut row| each(row.int()?, codec::entry(&mut row)))
}

/// One chain; without a task the workspace's own.
pub fn chain(
    tx: &mut dyn Tx,
    task: Option<&str>,
    each: &mut dyn FnMut(Seq, Result<Entry>) -> Result<()>,
) -> Result<()> {
    tx.each(&CHAIN { task }, &mut |mut row| each(row.int()?, codec::entry(&mut row)))
}

/// Which chain each entry after `after` belongs to, and its hash: the last one of each chain is its head.
pub fn heads(
    tx: &mut dyn Tx,
    after: Seq,
    each: &mut dyn FnMut(Seq, Option<String>, Digest) -> Result<()>,
) -> Result<()> {
    tx.each(&HEADS { after }, &mut |mut row| each(row.int()?, row.opt_text()?, row.digest()?))
}

/// The hash of the last entry of a chain before an entry; without a task of the workspace's own chain.
pub fn head_before(tx: &mut dyn Tx, task: Option<&str>, entry: Seq) -> Result<Option<Digest>> {
    let row = match task {
        Some(task) => tx.row(&HEAD_BEFORE { task, before: entry })?,
        None => tx.row(&OWN_HEAD_BEFORE { before: entry })?,
    };
    row.map(|mut row| row.digest()).transpose()
}

/// The generation that was in force when entry `seq` was written; the first is 1.
pub fn generation_at(tx: &mut dyn Tx, seq: Seq) -> Result<Generation> {
    let Some(mut row) = tx.row(&RAISED { up_to: seq })? else {
        return Ok(1);
    };
    match Event::parse(&row.text()?, &row.text()?) {
        Ok(Event::GenerationRaised(raised)) => Ok(raised.generation),
        Ok(_) => Err(StoreError::Corrupt("a generation was raised by something else".into())),
        Err(error) => Err(StoreError::Corrupt(error)),
    }
}

pub fn count(tx: &mut dyn Tx) -> Result<i64> {
    tx.row(&COUNT {})?.map_or(Ok(0), |mut row| row.int())
}

/// A stored checkpoint: the signed document's text and its signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCheckpoint {
    pub seq: Seq,
    pub document: String,
    pub signature: Vec<u8>,
}

pub fn insert_checkpoint(tx: &mut dyn Tx, checkpoint: &StoredCheckpoint) -> Result<()> {
    let StoredCheckpoint { seq, document, signature } = checkpoint;
    tx.run_one(&INSERT_CHECKPOINT { seq: *seq, document, signature })
}

pub fn checkpoints(tx: &mut dyn Tx) -> Result<Vec<StoredCheckpoint>> {
    tx.rows(&CHECKPOINTS {})?.into_iter().map(|mut row| stored_checkpoint(&mut row)).collect()
}

pub fn last_checkpoint(tx: &mut dyn Tx) -> Result<Option<StoredCheckpoint>> {
    tx.row(&LAST_CHECKPOINT {})?.map(|mut row| stored_checkpoint(&mut row)).transpose()
}

fn stored_checkpoint(row: &mut Row) -> Result<StoredCheckpoint> {
    Ok(StoredCheckpoint {
        seq: row.int()?,
        document: row.text()?,
        signature: row.opt_blob()?.unwrap_or_default(),
    })
}
