//! The whole story of one task: assignments, sessions, notes, what waits for it.

use crate::codec::{self, assignment_columns};
use crate::error::{Result, StoreError};
use crate::port::{Row, Tx};
use crate::{args, evidence, sql};
use onus_core::evidence::Review;
use onus_core::id::{Epoch, Handle, Seq, TaskId};
use onus_core::task::{Assignment, Exception};
use onus_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

sql! {
    pub(crate) ASSIGNMENTS = "SELECT epoch, ended_at, end_reason, ", assignment_columns!(), "FROM assignment \
        WHERE workspace = ?1 AND task = ?2 ORDER BY epoch";
    pub(crate) SESSIONS = "SELECT id, epoch, worker, workstation, started_at, ended_at, end_reason FROM session \
        WHERE workspace = ?1 AND task = ?2 ORDER BY id";
    /// The last ones up to an epoch.
    pub(crate) LAST_ASSIGNMENTS = "SELECT epoch, ended_at, end_reason, ", assignment_columns!(), "FROM assignment \
        WHERE workspace = ?1 AND task = ?2 AND epoch <= ?3 ORDER BY epoch DESC LIMIT ?4";
    pub(crate) NOTES = "SELECT n.seq, n.kind, n.text, l.actor, l.at FROM note n \
        JOIN ledger l ON l.workspace = n.workspace AND l.seq = n.seq \
        WHERE n.workspace = ?1 AND n.task = ?2 AND n.seq >= ?3 AND n.seq < ?4 ORDER BY n.seq";
    pub(crate) LAST_NOTE = "SELECT text FROM note WHERE workspace = ?1 AND task = ?2 AND kind = ?3 ORDER BY seq DESC LIMIT 1";
    REVIEWS = "SELECT r.seq, l.actor, l.workstation, r.verdict, r.classification, r.commit_id, r.note, l.at FROM review r \
        JOIN ledger l ON l.workspace = r.workspace AND l.seq = r.seq \
        WHERE r.workspace = ?1 AND r.task = ?2 AND r.seq >= ?3 AND r.seq < ?4 ORDER BY r.seq";
    pub(crate) NOTE = "SELECT text FROM note WHERE workspace = ?1 AND seq = ?2";
    pub(crate) DEPENDENTS = "SELECT task FROM dependency WHERE workspace = ?1 AND depends_on = ?2 ORDER BY task LIMIT 100";
    EXCEPTIONS = "SELECT id, exceptions FROM task WHERE workspace = ?1 AND exceptions IS NOT NULL ORDER BY born";
    pub(crate) LIVE = "SELECT a.epoch, a.task, t.title, t.state, t.type, a.assignee, a.tier, a.workstation, a.lease_id, a.ttl_ms, \
        a.assigned_at, a.renewed_at, a.tick, a.renewals, a.handoff_reason, a.forced, a.route, a.lane, a.base, a.resting \
        FROM assignment a JOIN task t ON t.workspace = a.workspace AND t.id = a.task \
        WHERE a.workspace = ?1 AND a.ended_at IS NULL ORDER BY a.renewed_at";
}

/// One assignment of the task's history.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PastAssignment {
    pub assignment: Assignment,
    pub ended_at: Option<Timestamp>,
    pub end_reason: Option<String>,
}

pub fn assignments(tx: &mut dyn Tx, task: &TaskId) -> Result<Vec<PastAssignment>> {
    assignments_of(tx, &task.to_string())?.into_iter().collect()
}

/// The last assignments up to an epoch, the first of them first.
pub fn last_assignments(
    tx: &mut dyn Tx,
    task: &TaskId,
    epoch: Epoch,
    limit: i64,
) -> Result<Vec<PastAssignment>> {
    let workspace = tx.workspace();
    let id = task.to_string();
    let mut rows = tx.rows(&LAST_ASSIGNMENTS, &args![workspace.0, id.as_str(), epoch, limit])?;
    rows.reverse();
    rows.into_iter().map(|row| past(row, &id)).collect()
}

/// Each by itself: where one makes no sense, the others may.
pub fn assignments_of(tx: &mut dyn Tx, task: &str) -> Result<Vec<Result<PastAssignment>>> {
    let workspace = tx.workspace();
    Ok(tx.rows(&ASSIGNMENTS, &args![workspace.0, task])?.into_iter().map(|row| past(row, task)).collect())
}

fn past(mut row: Row, task: &str) -> Result<PastAssignment> {
    let epoch = row.int()?;
    let ended_at = row.opt_int()?.map(Timestamp);
    let end_reason = row.opt_text()?;
    let assignment = codec::assignment(&mut row, epoch)?
        .ok_or_else(|| StoreError::Corrupt(format!("{task}: an assignment without an assignee")))?;
    Ok(PastAssignment { assignment, ended_at, end_reason })
}

/// A stretch of work: one worker, one workstation, one task.
#[derive(Debug, Clone)]
pub struct Session {
    pub id: Seq,
    pub epoch: i64,
    pub worker: Handle,
    pub workstation: String,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub end_reason: Option<String>,
}

pub fn sessions(tx: &mut dyn Tx, task: &TaskId) -> Result<Vec<Session>> {
    sessions_of(tx, &task.to_string())?.into_iter().collect()
}

/// Each by itself, like the assignments.
pub fn sessions_of(tx: &mut dyn Tx, task: &str) -> Result<Vec<Result<Session>>> {
    let workspace = tx.workspace();
    let session = |mut row: Row| {
        Ok(Session {
            id: row.int()?,
            epoch: row.int()?,
            worker: row.parsed()?,
            workstation: row.text()?,
            started_at: Timestamp(row.int()?),
            ended_at: row.opt_int()?.map(Timestamp),
            end_reason: row.opt_text()?,
        })
    };
    Ok(tx.rows(&SESSIONS, &args![workspace.0, task])?.into_iter().map(session).collect())
}

#[derive(Debug, Clone)]
pub struct Note {
    pub seq: Seq,
    pub kind: String,
    pub text: String,
    pub by: String,
    pub at: Timestamp,
}

/// The notes of a task between two entries: from the first one on, and before the other.
pub fn notes(tx: &mut dyn Tx, task: &TaskId, from: Seq, before: Seq) -> Result<Vec<Note>> {
    let workspace = tx.workspace();
    let rows = tx.rows(&NOTES, &args![workspace.0, task.to_string(), from, before])?;
    rows.into_iter()
        .map(|mut row| {
            Ok(Note {
                seq: row.int()?,
                kind: row.text()?,
                text: row.text()?,
                by: row.text()?,
                at: Timestamp(row.int()?),
            })
        })
        .collect()
}

/// A review with its words.
#[derive(Debug, Clone)]
pub struct KeptReview {
    pub review: Review,
    pub by: String,
    pub at: Timestamp,
    pub note: Option<String>,
}

/// What others said about the work from one entry to before another, the first one first.
pub fn reviews(tx: &mut dyn Tx, task: &TaskId, from: Seq, before: Seq) -> Result<Vec<KeptReview>> {
    let workspace = tx.workspace();
    tx.rows(&REVIEWS, &args![workspace.0, task.to_string(), from, before])?
        .into_iter()
        .map(|mut row| {
            let review = evidence::review(&mut row)?;
            let by = review.by.to_string();
            Ok(KeptReview { review, by, note: row.opt_text()?, at: Timestamp(row.int()?) })
        })
        .collect()
}

/// The last note of a kind.
pub fn last_note(tx: &mut dyn Tx, task: &TaskId, kind: &str) -> Result<Option<String>> {
    let workspace = tx.workspace();
    let row = tx.row(&LAST_NOTE, &args![workspace.0, task.to_string(), kind])?;
    row.map(|mut row| row.text()).transpose()
}

/// The words that an entry wrote down.
pub fn note(tx: &mut dyn Tx, entry: Seq) -> Result<Option<String>> {
    let workspace = tx.workspace();
    tx.row(&NOTE, &args![workspace.0, entry])?.map(|mut row| row.text()).transpose()
}

/// Tasks that wait for this one.
pub fn dependents(tx: &mut dyn Tx, task: &TaskId) -> Result<Vec<TaskId>> {
    let workspace = tx.workspace();
    tx.rows(&DEPENDENTS, &args![workspace.0, task.to_string()])?
        .into_iter()
        .map(|mut row| row.parsed())
        .collect()
}

/// Every task that has exceptions, with them.
pub fn exceptions(tx: &mut dyn Tx) -> Result<Vec<(TaskId, BTreeMap<TaskId, Exception>)>> {
    let workspace = tx.workspace();
    let rows = tx.rows(&EXCEPTIONS, &args![workspace.0])?;
    rows.into_iter().map(|mut row| Ok((row.parsed()?, codec::exceptions(&mut row)?))).collect()
}

/// A task that somebody holds now.
#[derive(Debug, Clone)]
pub struct Held {
    pub task: TaskId,
    pub title: String,
    pub state: String,
    pub task_type: Option<String>,
    pub assignment: Assignment,
}

/// Every live assignment, the longest silent first.
pub fn live(tx: &mut dyn Tx) -> Result<Vec<Held>> {
    let workspace = tx.workspace();
    let rows = tx.rows(&LIVE, &args![workspace.0])?;
    rows.into_iter()
        .map(|mut row| {
            let epoch = row.int()?;
            let (task, title, state, task_type) = (row.parsed()?, row.text()?, row.text()?, row.opt_text()?);
            let assignment = codec::assignment(&mut row, epoch)?
                .ok_or_else(|| StoreError::Corrupt(format!("{task}: an assignment without an assignee")))?;
            Ok(Held { task, title, state, task_type, assignment })
        })
        .collect()
}
