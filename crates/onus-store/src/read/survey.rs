//! The whole store at once: counts, export, and what `doctor` and `validate` compare.

use super::story::{PastAssignment, Session};
use crate::codec::{self, StoredTask, task_columns, task_from};
use crate::error::{Result, StoreError};
use crate::port::{Row, Tx};
use crate::{args, sql};
use onus_core::id::{Seq, TaskId, WorkspaceId};
use onus_core::task::StateName;
use onus_core::time::Timestamp;

/// The columns of an assignment, in the order of [`codec::assignment`].
macro_rules! assignment_columns {
    () => {
        "assignee, tier, workstation, lease_id, ttl_ms, assigned_at, renewed_at, tick, renewals, handoff_reason, \
         forced, route"
    };
}

macro_rules! session_columns {
    () => {
        "id, epoch, worker, workstation, started_at, ended_at, end_reason"
    };
}

sql! {
    STATES = "SELECT state, count(*) FROM task WHERE workspace = ?1 GROUP BY state";
    EVERY_TASK = "SELECT ", task_columns!(), task_from!(), "WHERE t.workspace = ?1 ORDER BY t.born";
    /// In no order: sorting a million rows costs more than reading them.
    TASK_ROWS = "SELECT t.id, ", task_columns!(), task_from!(), "WHERE +t.workspace = ?1";
    TASK_ROW = "SELECT t.id, ", task_columns!(), task_from!(), "WHERE t.workspace = ?1 AND t.id = ?2";
    ASSIGNMENT_ROWS = "SELECT task, epoch, ended_at, end_reason, ", assignment_columns!(),
        " FROM assignment WHERE workspace = ?1";
    ASSIGNMENTS_OF = "SELECT task, epoch, ended_at, end_reason, ", assignment_columns!(),
        " FROM assignment WHERE workspace = ?1 AND task = ?2 ORDER BY epoch";
    SESSION_ROWS = "SELECT task, ", session_columns!(), " FROM session WHERE +workspace = ?1";
    SESSIONS_OF = "SELECT task, ", session_columns!(), " FROM session WHERE workspace = ?1 AND task = ?2 ORDER BY id";
    NOTE_ROWS = "SELECT seq, task, kind, text FROM note WHERE +workspace = ?1";
    NOTES_OF = "SELECT seq, task, kind, text FROM note WHERE workspace = ?1 AND task = ?2 ORDER BY seq";
    /// More than one live assignment in one workstation; the schema forbids it, damage does not.
    SHARED_WORKSTATIONS = "SELECT workstation, string_agg(task, ' ') FROM assignment \
        WHERE workspace = ?1 AND ended_at IS NULL GROUP BY workstation HAVING count(*) > 1 ORDER BY workstation";
    /// The fence stands in the task's row and in its live assignment's: alike, or in neither.
    SPLIT_LEASES = "SELECT t.id FROM task t LEFT JOIN assignment a \
            ON a.workspace = t.workspace AND a.task = t.id AND a.epoch = t.epoch AND a.ended_at IS NULL \
            WHERE t.workspace = ?1 AND a.lease_id IS DISTINCT FROM t.lease_id \
        UNION SELECT a.task FROM assignment a JOIN task t ON t.workspace = a.workspace AND t.id = a.task \
            WHERE a.workspace = ?1 AND a.ended_at IS NULL AND a.epoch <> t.epoch ORDER BY 1";
    TASK_IDS = "SELECT id FROM task WHERE workspace = ?1 ORDER BY born";
    EDGES = "SELECT t.id, u.id, t.state, u.state FROM dependency d \
        JOIN task t ON t.workspace = d.workspace AND t.id = d.task \
        JOIN task u ON u.workspace = d.workspace AND u.id = d.depends_on WHERE d.workspace = ?1";
    RESOLUTIONS = "SELECT n.task, n.text FROM note n WHERE n.workspace = ?1 AND n.kind = 'resolution' ORDER BY n.seq";
    OPEN_SESSIONS = "SELECT s.task, s.epoch FROM session s LEFT JOIN assignment a \
        ON a.workspace = s.workspace AND a.task = s.task AND a.epoch = s.epoch AND a.ended_at IS NULL \
        WHERE s.workspace = ?1 AND s.ended_at IS NULL AND a.task IS NULL";
    MISQUEUED = "SELECT t.id FROM task t WHERE t.workspace = ?1 AND t.waits <> CASE WHEN EXISTS ( \
            SELECT 1 FROM dependency w JOIN task u ON u.workspace = w.workspace AND u.id = w.depends_on \
            WHERE w.workspace = t.workspace AND w.task = t.id AND u.state <> 'complete') THEN 1 ELSE 0 END \
        ORDER BY t.born LIMIT 20";
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

/// The last resolution note of each task.
pub fn resolutions(tx: &mut dyn Tx, workspace: WorkspaceId) -> Result<Vec<(String, String)>> {
    tx.rows(&RESOLUTIONS, &args![workspace.0])?
        .into_iter()
        .map(|mut row| Ok((row.text()?, row.text()?)))
        .collect()
}

/// Tasks whose place in the queue does not fit their dependencies.
pub fn misqueued(tx: &mut dyn Tx, workspace: WorkspaceId) -> Result<Vec<String>> {
    tx.rows(&MISQUEUED, &args![workspace.0])?.into_iter().map(|mut row| row.text()).collect()
}

/// Sessions that run although their assignment has ended.
pub fn orphan_sessions(tx: &mut dyn Tx, workspace: WorkspaceId) -> Result<Vec<(String, i64)>> {
    tx.rows(&OPEN_SESSIONS, &args![workspace.0])?
        .into_iter()
        .map(|mut row| Ok((row.text()?, row.int()?)))
        .collect()
}

/// Workstations with more than one live assignment, and the tasks.
pub fn shared_workstations(tx: &mut dyn Tx, workspace: WorkspaceId) -> Result<Vec<(String, String)>> {
    tx.rows(&SHARED_WORKSTATIONS, &args![workspace.0])?
        .into_iter()
        .map(|mut row| Ok((row.text()?, row.text()?)))
        .collect()
}

/// Tasks whose lease is not their live assignment's.
pub fn split_leases(tx: &mut dyn Tx, workspace: WorkspaceId) -> Result<Vec<String>> {
    tx.rows(&SPLIT_LEASES, &args![workspace.0])?.into_iter().map(|mut row| row.text()).collect()
}

/// Whose rows to read.
#[derive(Debug, Clone, Copy)]
pub enum Whose<'a> {
    Every,
    Of(&'a str),
}

/// Told of one row: whose it is, and what it says or why it makes no sense.
pub type Each<'a, T> = &'a mut dyn FnMut(&str, Result<T>) -> Result<()>;

pub fn task_rows(
    tx: &mut dyn Tx,
    workspace: WorkspaceId,
    whose: Whose<'_>,
    each: Each<'_, StoredTask>,
) -> Result<()> {
    let mut read = |mut row: Row| each(&row.text()?, codec::task(&mut row));
    match whose {
        Whose::Every => tx.each(&TASK_ROWS, &args![workspace.0], &mut read),
        Whose::Of(task) => tx.each(&TASK_ROW, &args![workspace.0, task], &mut read),
    }
}

pub fn assignment_rows(
    tx: &mut dyn Tx,
    workspace: WorkspaceId,
    whose: Whose<'_>,
    each: Each<'_, PastAssignment>,
) -> Result<()> {
    let mut read = |mut row: Row| each(&row.text()?, past_assignment(&mut row));
    match whose {
        Whose::Every => tx.each(&ASSIGNMENT_ROWS, &args![workspace.0], &mut read),
        Whose::Of(task) => tx.each(&ASSIGNMENTS_OF, &args![workspace.0, task], &mut read),
    }
}

fn past_assignment(row: &mut Row) -> Result<PastAssignment> {
    let epoch = row.int()?;
    let ended_at = row.opt_int()?.map(Timestamp);
    let end_reason = row.opt_text()?;
    let assignment = codec::assignment(row, epoch)?
        .ok_or_else(|| StoreError::Corrupt("an assignment without an assignee".into()))?;
    Ok(PastAssignment { assignment, ended_at, end_reason })
}

pub fn session_rows(
    tx: &mut dyn Tx,
    workspace: WorkspaceId,
    whose: Whose<'_>,
    each: Each<'_, Session>,
) -> Result<()> {
    let mut read = |mut row: Row| each(&row.text()?, session(&mut row));
    match whose {
        Whose::Every => tx.each(&SESSION_ROWS, &args![workspace.0], &mut read),
        Whose::Of(task) => tx.each(&SESSIONS_OF, &args![workspace.0, task], &mut read),
    }
}

fn session(row: &mut Row) -> Result<Session> {
    Ok(Session {
        id: row.int()?,
        epoch: row.int()?,
        worker: row.parsed()?,
        workstation: row.text()?,
        started_at: Timestamp(row.int()?),
        ended_at: row.opt_int()?.map(Timestamp),
        end_reason: row.opt_text()?,
    })
}

pub fn note_rows(
    tx: &mut dyn Tx,
    workspace: WorkspaceId,
    whose: Whose<'_>,
    each: &mut dyn FnMut(RowNote) -> Result<()>,
) -> Result<()> {
    let mut read = |mut row: Row| {
        each(RowNote { seq: row.int()?, task: row.text()?, kind: row.text()?, text: row.text()? })
    };
    match whose {
        Whose::Every => tx.each(&NOTE_ROWS, &args![workspace.0], &mut read),
        Whose::Of(task) => tx.each(&NOTES_OF, &args![workspace.0, task], &mut read),
    }
}
