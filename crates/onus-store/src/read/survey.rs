//! The whole store at once: counts, export, and what `doctor` and `validate` compare.

use crate::codec::{self, StoredTask, task_columns, task_from};
use crate::error::{Result, StoreError};
use crate::port::Tx;
use crate::{args, sql};
use onus_core::hash::Digest;
use onus_core::id::{Seq, TaskId, WorkspaceId};
use onus_core::task::StateName;

sql! {
    STATES = "SELECT state, count(*) FROM task WHERE workspace = ?1 GROUP BY state";
    EVERY_TASK = "SELECT ", task_columns!(), task_from!(), "WHERE t.workspace = ?1 ORDER BY t.born";
    TASK_IDS = "SELECT id FROM task WHERE workspace = ?1 ORDER BY born";
    HEADS = "SELECT id, version, head FROM task WHERE workspace = ?1 ORDER BY id";
    EDGES = "SELECT t.id, u.id, t.state, u.state FROM dependency d \
        JOIN task t ON t.workspace = d.workspace AND t.id = d.task \
        JOIN task u ON u.workspace = d.workspace AND u.id = d.depends_on WHERE d.workspace = ?1";
    EVERY_NOTE = "SELECT seq, task, kind, text FROM note WHERE workspace = ?1 ORDER BY seq";
    RESOLUTIONS = "SELECT n.task, n.text FROM note n WHERE n.workspace = ?1 AND n.kind = 'resolution' ORDER BY n.seq";
    OPEN_SESSIONS = "SELECT s.task, s.epoch FROM session s LEFT JOIN assignment a \
        ON a.workspace = s.workspace AND a.task = s.task AND a.epoch = s.epoch AND a.ended_at IS NULL \
        WHERE s.workspace = ?1 AND s.ended_at IS NULL AND a.task IS NULL";
}

pub fn states(tx: &mut dyn Tx, workspace: WorkspaceId) -> Result<Vec<(StateName, i64)>> {
    let rows = tx.rows(&STATES, &args![workspace.0])?;
    rows.into_iter()
        .map(|mut row| {
            let text = row.text()?;
            let state = StateName::parse(&text)
                .ok_or_else(|| StoreError::Corrupt(format!("unknown state `{text}`")))?;
            Ok((state, row.int()?))
        })
        .collect()
}

/// Streams every task in the order in which they were asked for. A row that makes no sense is handed on as the error
/// it is, so that one bad row does not hide the others.
pub fn every_task(
    tx: &mut dyn Tx,
    workspace: WorkspaceId,
    each: &mut dyn FnMut(Result<StoredTask>) -> Result<()>,
) -> Result<()> {
    tx.each(&EVERY_TASK, &args![workspace.0], &mut |mut row| each(codec::task(&mut row)))
}

pub fn task_ids(tx: &mut dyn Tx, workspace: WorkspaceId) -> Result<Vec<String>> {
    tx.rows(&TASK_IDS, &args![workspace.0])?.into_iter().map(|mut row| row.text()).collect()
}

/// A task's own word about its chain.
#[derive(Debug, Clone)]
pub struct RowHead {
    pub id: String,
    pub version: i64,
    pub head: Digest,
}

pub fn heads(
    tx: &mut dyn Tx,
    workspace: WorkspaceId,
    each: &mut dyn FnMut(RowHead) -> Result<()>,
) -> Result<()> {
    tx.each(&HEADS, &args![workspace.0], &mut |mut row| {
        each(RowHead { id: row.text()?, version: row.int()?, head: row.digest()? })
    })
}

/// One `depends_on`, with the states at both ends.
#[derive(Debug, Clone)]
pub struct Edge {
    pub task: TaskId,
    pub on: TaskId,
    pub task_state: String,
    pub on_state: String,
}

pub fn edges(
    tx: &mut dyn Tx,
    workspace: WorkspaceId,
    each: &mut dyn FnMut(Edge) -> Result<()>,
) -> Result<()> {
    tx.each(&EDGES, &args![workspace.0], &mut |mut row| {
        each(Edge { task: row.parsed()?, on: row.parsed()?, task_state: row.text()?, on_state: row.text()? })
    })
}

/// A note's text with the entry that vouches for it.
#[derive(Debug, Clone)]
pub struct RowNote {
    pub seq: Seq,
    pub task: String,
    pub kind: String,
    pub text: String,
}

pub fn every_note(
    tx: &mut dyn Tx,
    workspace: WorkspaceId,
    each: &mut dyn FnMut(RowNote) -> Result<()>,
) -> Result<()> {
    tx.each(&EVERY_NOTE, &args![workspace.0], &mut |mut row| {
        each(RowNote { seq: row.int()?, task: row.text()?, kind: row.text()?, text: row.text()? })
    })
}

/// The last resolution note of each task.
pub fn resolutions(tx: &mut dyn Tx, workspace: WorkspaceId) -> Result<Vec<(String, String)>> {
    tx.rows(&RESOLUTIONS, &args![workspace.0])?
        .into_iter()
        .map(|mut row| Ok((row.text()?, row.text()?)))
        .collect()
}

/// Sessions that run although their assignment has ended.
pub fn orphan_sessions(tx: &mut dyn Tx, workspace: WorkspaceId) -> Result<Vec<(String, i64)>> {
    tx.rows(&OPEN_SESSIONS, &args![workspace.0])?
        .into_iter()
        .map(|mut row| Ok((row.text()?, row.int()?)))
        .collect()
}
