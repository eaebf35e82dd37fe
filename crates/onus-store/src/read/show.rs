//! The whole story of one task: assignments, sessions, notes, what waits for it.

use crate::codec;
use crate::error::{Result, StoreError};
use crate::port::{Row, Tx};
use crate::tables::{AssignmentEnd, AssignmentHeld, SessionRow};
use crate::{evidence, sql};
use onus_core::event::Said;
use onus_core::evidence::Review;
use onus_core::id::{Epoch, Handle, Seq, TaskId};
use onus_core::task::{Assignment, Exception};
use onus_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

sql! {
    pub(crate) ASSIGNMENTS(task) = "SELECT ", AssignmentHeld::LIST, ", ", AssignmentEnd::LIST, " FROM assignment a \
        WHERE a.workspace = :workspace AND a.task = :task ORDER BY a.epoch";
    pub(crate) SESSIONS(task) = "SELECT ", SessionRow::LIST, " FROM session s WHERE s.workspace = :workspace AND \
        s.task = :task ORDER BY s.id";
    /// The last ones up to an epoch.
    pub(crate) LAST_ASSIGNMENTS(task, epoch, limit) = "SELECT ", AssignmentHeld::LIST, ", ", AssignmentEnd::LIST, " \
        FROM assignment a WHERE a.workspace = :workspace AND a.task = :task AND a.epoch <= :epoch \
        ORDER BY a.epoch DESC LIMIT :limit";
    pub(crate) NOTES(task, from, before) = "SELECT n.seq, n.kind, n.text, l.actor, l.at, n.said_by, n.said_at, n.said_key FROM note n \
        JOIN ledger l ON l.workspace = n.workspace AND l.seq = n.seq \
        WHERE n.workspace = :workspace AND n.task = :task AND n.seq >= :from AND n.seq < :before ORDER BY n.seq";
    pub(crate) LAST_NOTE(task, kind) = "SELECT text FROM note WHERE workspace = :workspace AND task = :task AND kind = :kind \
        ORDER BY seq DESC LIMIT 1";
    REVIEWS(task, from, before) = "SELECT r.seq, l.actor, l.workstation, r.verdict, r.classification, r.commit_id, r.note, l.at \
        FROM review r JOIN ledger l ON l.workspace = r.workspace AND l.seq = r.seq \
        WHERE r.workspace = :workspace AND r.task = :task AND r.seq >= :from AND r.seq < :before ORDER BY r.seq";
    pub(crate) NOTE(entry) = "SELECT text FROM note WHERE workspace = :workspace AND seq = :entry";
    pub(crate) DEPENDENTS(task) = "SELECT task FROM dependency WHERE workspace = :workspace AND depends_on = :task \
        ORDER BY task LIMIT 100";
    EXCEPTIONS(after) = "SELECT id, exceptions FROM task WHERE workspace = :workspace AND exceptions IS NOT NULL AND born > \
        coalesce((SELECT t.born FROM task t WHERE t.workspace = :workspace AND t.id = :after), 0) ORDER BY born";
    pub(crate) LIVE = "SELECT a.task, t.title, t.state, t.type, ", AssignmentHeld::LIST, " FROM assignment a JOIN task \
        t ON t.workspace = a.workspace AND t.id = a.task \
        WHERE a.workspace = :workspace AND a.ended_at IS NULL ORDER BY a.renewed_at";
}

/// One assignment of the task's history.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PastAssignment {
    pub assignment: Assignment,
    pub ended_at: Option<Timestamp>,
    pub end_reason: Option<String>,
}

/// So many of a task's assignments are told: the first one, and the last ones.
pub const ASSIGNMENTS_MAX: usize = 1_000;

/// The assignments of a task, the first one first. Of more than [`ASSIGNMENTS_MAX`] those after the first are left out.
pub fn assignments(tx: &mut dyn Tx, task: &TaskId) -> Result<Vec<PastAssignment>> {
    let (mut first, mut last, name) = (None, VecDeque::new(), task.to_string());
    tx.each(&ASSIGNMENTS { task: &name }, &mut |row| {
        let found = past(row, &name)?;
        if first.is_none() {
            first = Some(found);
            return Ok(());
        }
        if last.len() == ASSIGNMENTS_MAX - 1 {
            last.pop_front();
        }
        last.push_back(found);
        Ok(())
    })?;
    Ok(first.into_iter().chain(last).collect())
}

/// The last assignments up to an epoch, the first of them first.
pub fn last_assignments(
    tx: &mut dyn Tx,
    task: &TaskId,
    epoch: Epoch,
    limit: i64,
) -> Result<Vec<PastAssignment>> {
    let mut rows = tx.rows(&LAST_ASSIGNMENTS { task, epoch, limit })?;
    rows.reverse();
    rows.into_iter().map(|row| past(row, &task.to_string())).collect()
}

/// Each by itself: where one makes no sense, the others may.
pub fn assignments_of(tx: &mut dyn Tx, task: &str) -> Result<Vec<Result<PastAssignment>>> {
    Ok(tx.rows(&ASSIGNMENTS { task })?.into_iter().map(|row| past(row, task)).collect())
}

fn past(mut row: Row, task: &str) -> Result<PastAssignment> {
    let assignment = codec::assignment(AssignmentHeld::read(&mut row)?)?
        .ok_or_else(|| StoreError::Corrupt(format!("{task}: an assignment without an assignee")))?;
    let AssignmentEnd { ended_at, end_reason } = AssignmentEnd::read(&mut row)?;
    Ok(PastAssignment {
        assignment,
        ended_at: ended_at.opt_int()?.map(Timestamp),
        end_reason: end_reason.opt_text()?,
    })
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
    let session = |mut row: Row| {
        let SessionRow { task: _, id, epoch, worker, workstation, started_at, ended_at, end_reason } =
            SessionRow::read(&mut row)?;
        Ok(Session {
            id: id.int()?,
            epoch: epoch.int()?,
            worker: worker.parsed()?,
            workstation: workstation.text()?,
            started_at: Timestamp(started_at.int()?),
            ended_at: ended_at.opt_int()?.map(Timestamp),
            end_reason: end_reason.opt_text()?,
        })
    };
    Ok(tx.rows(&SESSIONS { task })?.into_iter().map(session).collect())
}

#[derive(Debug, Clone)]
pub struct Note {
    pub seq: Seq,
    pub kind: String,
    pub text: String,
    pub by: String,
    pub at: Timestamp,
    /// Who said it elsewhere; `by` brought it in.
    pub said: Option<Said>,
}

/// The notes of a task between two entries: from the first one on, and before the other.
pub fn notes(tx: &mut dyn Tx, task: &TaskId, from: Seq, before: Seq) -> Result<Vec<Note>> {
    let rows = tx.rows(&NOTES { task, from, before })?;
    rows.into_iter().map(|mut row| note_of(&mut row)).collect()
}

pub(crate) fn note_of(row: &mut Row) -> Result<Note> {
    Ok(Note {
        seq: row.int()?,
        kind: row.text()?,
        text: row.text()?,
        by: row.text()?,
        at: Timestamp(row.int()?),
        said: codec::said(row)?,
    })
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
    tx.rows(&REVIEWS { task, from, before })?
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
    tx.row(&LAST_NOTE { task, kind })?.map(|mut row| row.text()).transpose()
}

/// The words that an entry wrote down.
pub fn note(tx: &mut dyn Tx, entry: Seq) -> Result<Option<String>> {
    tx.row(&NOTE { entry })?.map(|mut row| row.text()).transpose()
}

/// Tasks that wait for this one.
pub fn dependents(tx: &mut dyn Tx, task: &TaskId) -> Result<Vec<TaskId>> {
    tx.rows(&DEPENDENTS { task })?.into_iter().map(|mut row| row.parsed()).collect()
}

/// Every task after this one that has exceptions, with them, in the order in which they were asked for.
pub fn exceptions(
    tx: &mut dyn Tx,
    after: Option<&TaskId>,
    each: &mut dyn FnMut(TaskId, BTreeMap<TaskId, Exception>) -> Result<()>,
) -> Result<()> {
    let after = after.map(ToString::to_string);
    tx.each(&EXCEPTIONS { after: after.as_deref() }, &mut |mut row| {
        each(row.parsed()?, codec::exceptions_of(row.opt_text()?)?)
    })
}

/// A task that somebody holds now.
#[derive(Debug, Clone)]
pub struct HeldNow {
    pub task: TaskId,
    pub title: String,
    pub state: String,
    pub task_type: Option<String>,
    pub assignment: Assignment,
}

/// Every live assignment, the longest silent first.
pub fn live(tx: &mut dyn Tx) -> Result<Vec<HeldNow>> {
    let rows = tx.rows(&LIVE {})?;
    rows.into_iter()
        .map(|mut row| {
            let (task, title, state, task_type) = (row.parsed()?, row.text()?, row.text()?, row.opt_text()?);
            let assignment = codec::assignment(AssignmentHeld::read(&mut row)?)?
                .ok_or_else(|| StoreError::Corrupt(format!("{task}: an assignment without an assignee")))?;
            Ok(HeldNow { task, title, state, task_type, assignment })
        })
        .collect()
}
