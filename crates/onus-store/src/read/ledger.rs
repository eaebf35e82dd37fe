//! The record, in the order in which it was written.

use crate::codec::{self, entry_columns};
use crate::error::Result;
use crate::port::Tx;
use crate::{args, sql};
use onus_core::id::{Generation, Seq, TaskId, WorkspaceId};
use onus_core::ledger::Entry;

pub use codec::entry_data;

sql! {
    LOG = "SELECT ", entry_columns!(), " FROM ledger l WHERE l.workspace = ?1 AND l.seq > ?2 ORDER BY l.seq LIMIT ?3";
    LATEST = "SELECT ", entry_columns!(), " FROM ledger l WHERE l.workspace = ?1 ORDER BY l.seq DESC LIMIT ?2";
    TASK_LOG = "SELECT ", entry_columns!(),
        " FROM ledger l WHERE l.workspace = ?1 AND l.task = ?2 AND l.seq > ?3 ORDER BY l.seq LIMIT ?4";
    ONE = "SELECT ", entry_columns!(), " FROM ledger l WHERE l.workspace = ?1 AND l.seq = ?2";
    EVERY = "SELECT ", entry_columns!(), " FROM ledger l WHERE l.workspace = ?1 ORDER BY l.seq";
    INSERT_CHECKPOINT = "INSERT INTO checkpoint (workspace, seq, document, signature) VALUES (?1, ?2, ?3, ?4)";
    CHECKPOINTS = "SELECT seq, document, signature FROM checkpoint WHERE workspace = ?1 ORDER BY seq";
    GENERATIONS = "SELECT count(*) FROM ledger WHERE workspace = ?1 AND task IS NULL AND seq <= ?2 \
        AND verb = 'generation_raised'";
    COUNT = "SELECT count(*) FROM ledger WHERE workspace = ?1";
}

/// Which part of the record.
#[derive(Debug, Clone)]
pub enum Part<'a> {
    After(Seq),
    Latest,
    Task(&'a TaskId, Seq),
}

/// Entries in the order of their writing, at most `limit`.
pub fn log(tx: &mut dyn Tx, workspace: WorkspaceId, part: &Part<'_>, limit: i64) -> Result<Vec<Entry>> {
    let rows = match part {
        Part::After(seq) => tx.rows(&LOG, &args![workspace.0, *seq, limit])?,
        Part::Task(task, seq) => tx.rows(&TASK_LOG, &args![workspace.0, task.to_string(), *seq, limit])?,
        Part::Latest => {
            let mut rows = tx.rows(&LATEST, &args![workspace.0, limit])?;
            rows.reverse();
            rows
        }
    };
    rows.into_iter().map(|mut row| codec::entry(&mut row)).collect()
}

pub fn entry(tx: &mut dyn Tx, workspace: WorkspaceId, seq: Seq) -> Result<Option<Entry>> {
    tx.row(&ONE, &args![workspace.0, seq])?.map(|mut row| codec::entry(&mut row)).transpose()
}

/// Streams the whole record.
pub fn every(
    tx: &mut dyn Tx,
    workspace: WorkspaceId,
    each: &mut dyn FnMut(Entry) -> Result<()>,
) -> Result<()> {
    tx.each(&EVERY, &args![workspace.0], &mut |mut row| each(codec::entry(&mut row)?))
}

/// The generation that was in force when entry `seq` was written; the first is 1.
pub fn generation_at(tx: &mut dyn Tx, workspace: WorkspaceId, seq: Seq) -> Result<Generation> {
    tx.row(&GENERATIONS, &args![workspace.0, seq])?.map_or(Ok(1), |mut row| Ok(row.int()? + 1))
}

pub fn count(tx: &mut dyn Tx, workspace: WorkspaceId) -> Result<i64> {
    tx.row(&COUNT, &args![workspace.0])?.map_or(Ok(0), |mut row| row.int())
}

/// A stored checkpoint: the signed document's text and its signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCheckpoint {
    pub seq: Seq,
    pub document: String,
    pub signature: Vec<u8>,
}

pub fn insert_checkpoint(
    tx: &mut dyn Tx,
    workspace: WorkspaceId,
    checkpoint: &StoredCheckpoint,
) -> Result<()> {
    let StoredCheckpoint { seq, document, signature } = checkpoint;
    tx.run_one(&INSERT_CHECKPOINT, &args![workspace.0, *seq, document.as_str(), signature.as_slice()])
}

pub fn checkpoints(tx: &mut dyn Tx, workspace: WorkspaceId) -> Result<Vec<StoredCheckpoint>> {
    let rows = tx.rows(&CHECKPOINTS, &args![workspace.0])?;
    rows.into_iter()
        .map(|mut row| {
            Ok(StoredCheckpoint {
                seq: row.int()?,
                document: row.text()?,
                signature: row.opt_blob()?.unwrap_or_default(),
            })
        })
        .collect()
}
