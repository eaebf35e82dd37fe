//! The record, in the order in which it was written.

use crate::codec::{self, entry_columns};
use crate::error::{Result, StoreError};
use crate::port::{Row, Tx};
use crate::{args, sql};
use onus_core::event::Event;
use onus_core::hash::Digest;
use onus_core::id::{Generation, Seq, TaskId};
use onus_core::ledger::Entry;

pub use codec::entry_data;

// The unary plus keeps the planner on the primary key: by an index that leads with the workspace it would read and sort
// the whole record for its last line.
sql! {
    LOG = "SELECT ", entry_columns!(), " FROM ledger l WHERE +l.workspace = ?1 AND l.seq > ?2 ORDER BY l.seq LIMIT ?3";
    LATEST = "SELECT ", entry_columns!(), " FROM ledger l WHERE +l.workspace = ?1 ORDER BY l.seq DESC LIMIT ?2";
    TASK_LOG = "SELECT ", entry_columns!(),
        " FROM ledger l WHERE l.workspace = ?1 AND l.task = ?2 AND l.seq > ?3 ORDER BY l.seq LIMIT ?4";
    pub(crate) TASK_BEFORE = "SELECT ", entry_columns!(),
        " FROM ledger l WHERE l.workspace = ?1 AND l.task = ?2 AND l.seq < ?3 ORDER BY l.seq DESC LIMIT ?4";
    ONE = "SELECT ", entry_columns!(), " FROM ledger l WHERE l.workspace = ?1 AND l.seq = ?2";
    EVERY = "SELECT l.seq, ", entry_columns!(), " FROM ledger l WHERE +l.workspace = ?1 AND l.seq > ?2 ORDER BY l.seq";
    CHAIN = "SELECT l.seq, ", entry_columns!(),
        " FROM ledger l WHERE l.workspace = ?1 AND l.task IS NOT DISTINCT FROM ?2 ORDER BY l.seq";
    HEAD_BEFORE = "SELECT l.hash FROM ledger l WHERE l.workspace = ?1 AND l.task = ?2 AND l.seq < ?3 ORDER BY l.seq DESC LIMIT 1";
    OWN_HEAD_BEFORE = "SELECT l.hash FROM ledger l WHERE l.workspace = ?1 AND l.task IS NULL AND l.seq < ?2 \
        ORDER BY l.seq DESC LIMIT 1";
    HEADS = "SELECT l.seq, l.task, l.hash FROM ledger l WHERE +l.workspace = ?1 AND l.seq > ?2 ORDER BY l.seq";
    INSERT_CHECKPOINT = "INSERT INTO checkpoint (workspace, seq, document, signature) VALUES (?1, ?2, ?3, ?4)";
    CHECKPOINTS = "SELECT seq, document, signature FROM checkpoint WHERE workspace = ?1 ORDER BY seq";
    LAST_CHECKPOINT = "SELECT seq, document, signature FROM checkpoint WHERE workspace = ?1 ORDER BY seq DESC LIMIT 1";
    RAISED = "SELECT verb, data FROM ledger WHERE workspace = ?1 AND task IS NULL AND seq <= ?2 \
        AND verb = 'generation_raised' ORDER BY seq DESC LIMIT 1";
    COUNT = "SELECT count(*) FROM ledger WHERE workspace = ?1";
}

/// Which part of the record.
#[derive(Debug, Clone)]
pub enum Part<'a> {
    After(Seq),
    Latest,
    Task(&'a TaskId, Seq),
    /// The last ones of a task before an entry.
    TaskBefore(&'a TaskId, Seq),
}

/// Entries in the order of their writing, at most `limit`.
pub fn log(tx: &mut dyn Tx, part: &Part<'_>, limit: i64) -> Result<Vec<Entry>> {
    let workspace = tx.workspace();
    let rows = match part {
        Part::After(seq) => tx.rows(&LOG, &args![workspace.0, *seq, limit])?,
        Part::Task(task, seq) => tx.rows(&TASK_LOG, &args![workspace.0, task.to_string(), *seq, limit])?,
        Part::TaskBefore(task, seq) => {
            let mut rows = tx.rows(&TASK_BEFORE, &args![workspace.0, task.to_string(), *seq, limit])?;
            rows.reverse();
            rows
        }
        Part::Latest => {
            let mut rows = tx.rows(&LATEST, &args![workspace.0, limit])?;
            rows.reverse();
            rows
        }
    };
    rows.into_iter().map(|mut row| codec::entry(&mut row)).collect()
}

pub fn entry(tx: &mut dyn Tx, seq: Seq) -> Result<Option<Entry>> {
    let workspace = tx.workspace();
    tx.row(&ONE, &args![workspace.0, seq])?.map(|mut row| codec::entry(&mut row)).transpose()
}

/// Streams the record after `after`, each entry with its place. An entry that makes no sense is handed on as the
/// error it is, so that one bad entry does not hide the others.
pub fn every(
    tx: &mut dyn Tx,
    after: Seq,
    each: &mut dyn FnMut(Seq, Result<Entry>) -> Result<()>,
) -> Result<()> {
    let workspace = tx.workspace();
    tx.each(&EVERY, &args![workspace.0, after], &mut |mut row| each(row.int()?, codec::entry(&mut row)))
}

/// One chain; without a task the workspace's own.
pub fn chain(
    tx: &mut dyn Tx,
    task: Option<&str>,
    each: &mut dyn FnMut(Seq, Result<Entry>) -> Result<()>,
) -> Result<()> {
    let workspace = tx.workspace();
    tx.each(&CHAIN, &args![workspace.0, task], &mut |mut row| each(row.int()?, codec::entry(&mut row)))
}

/// Which chain each entry after `after` belongs to, and its hash: the last one of each chain is its head.
pub fn heads(
    tx: &mut dyn Tx,
    after: Seq,
    each: &mut dyn FnMut(Seq, Option<String>, Digest) -> Result<()>,
) -> Result<()> {
    let workspace = tx.workspace();
    tx.each(&HEADS, &args![workspace.0, after], &mut |mut row| {
        each(row.int()?, row.opt_text()?, row.digest()?)
    })
}

/// The hash of the last entry of a chain before an entry; without a task of the workspace's own chain.
pub fn head_before(tx: &mut dyn Tx, task: Option<&str>, entry: Seq) -> Result<Option<Digest>> {
    let workspace = tx.workspace();
    let row = match task {
        Some(task) => tx.row(&HEAD_BEFORE, &args![workspace.0, task, entry])?,
        None => tx.row(&OWN_HEAD_BEFORE, &args![workspace.0, entry])?,
    };
    row.map(|mut row| row.digest()).transpose()
}

/// The generation that was in force when entry `seq` was written; the first is 1.
pub fn generation_at(tx: &mut dyn Tx, seq: Seq) -> Result<Generation> {
    let workspace = tx.workspace();
    let Some(mut row) = tx.row(&RAISED, &args![workspace.0, seq])? else {
        return Ok(1);
    };
    match Event::parse(&row.text()?, &row.text()?) {
        Ok(Event::GenerationRaised(raised)) => Ok(raised.generation),
        Ok(_) => Err(StoreError::Corrupt("a generation was raised by something else".into())),
        Err(error) => Err(StoreError::Corrupt(error)),
    }
}

pub fn count(tx: &mut dyn Tx) -> Result<i64> {
    let workspace = tx.workspace();
    tx.row(&COUNT, &args![workspace.0])?.map_or(Ok(0), |mut row| row.int())
}

/// A stored checkpoint: the signed document's text and its signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCheckpoint {
    pub seq: Seq,
    pub document: String,
    pub signature: Vec<u8>,
}

pub fn insert_checkpoint(tx: &mut dyn Tx, checkpoint: &StoredCheckpoint) -> Result<()> {
    let workspace = tx.workspace();
    let StoredCheckpoint { seq, document, signature } = checkpoint;
    tx.run_one(&INSERT_CHECKPOINT, &args![workspace.0, *seq, document.as_str(), signature.as_slice()])
}

pub fn checkpoints(tx: &mut dyn Tx) -> Result<Vec<StoredCheckpoint>> {
    let workspace = tx.workspace();
    tx.rows(&CHECKPOINTS, &args![workspace.0])?
        .into_iter()
        .map(|mut row| stored_checkpoint(&mut row))
        .collect()
}

pub fn last_checkpoint(tx: &mut dyn Tx) -> Result<Option<StoredCheckpoint>> {
    let workspace = tx.workspace();
    tx.row(&LAST_CHECKPOINT, &args![workspace.0])?.map(|mut row| stored_checkpoint(&mut row)).transpose()
}

fn stored_checkpoint(row: &mut Row) -> Result<StoredCheckpoint> {
    Ok(StoredCheckpoint {
        seq: row.int()?,
        document: row.text()?,
        signature: row.opt_blob()?.unwrap_or_default(),
    })
}
