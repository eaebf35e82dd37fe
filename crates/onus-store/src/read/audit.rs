//! Rows as they stand, and rows as the record says they must be: the same columns in the same order, so that the two
//! can be compared a million times without being understood.
//!
//! Two columns are secret or long, and the record has only their digests: a lease id is given as its seal, a text as
//! its SHA-256.

use crate::codec::{self, StoredTask, row};
use crate::error::{Result, StoreError};
use crate::port::{Tx, Value};
use crate::tables::{
    AssignmentEnd, AssignmentRow, EntryRow, EvidenceRow, LandedRow, NoteRow, ReviewRow, SessionFactRow,
    SessionRow, TaskAsked, TaskQueue, TaskRow,
};
use crate::{evidence, load, sql};
use onus_core::effect::Effect;
use onus_core::event::{CheckRun, Reviewed, Said};
use onus_core::hash::Digest;
use onus_core::id::Seq;
use onus_core::lease::LeaseId;
use onus_core::ledger::EntryRef;
use onus_core::task::{Assignment, Spec, Task};
use onus_core::text::Text;
use onus_core::time::Timestamp;
use std::ops::RangeInclusive;

use super::show::Session;

// In no order where none is needed: sorting a million rows costs more than reading them. The unary plus keeps the
// planner from walking an index to every row of the table.
sql! {
    TASKS(first, last) = "SELECT ", TaskRow::LIST, " FROM task t WHERE +t.workspace = :workspace AND t.born BETWEEN \
        :first AND :last";
    DEPENDENCIES = "SELECT task, depends_on, excepted FROM dependency WHERE workspace = :workspace";
    ASSIGNMENTS = "SELECT ", AssignmentRow::LIST, " FROM assignment a WHERE a.workspace = :workspace";
    SESSIONS = "SELECT ", SessionRow::LIST, " FROM session s WHERE +s.workspace = :workspace";
    SESSION_FACTS = "SELECT ", SessionFactRow::LIST, " FROM session_fact f WHERE +f.workspace = :workspace";
    NOTES = "SELECT ", NoteRow::LIST, " FROM note n WHERE +n.workspace = :workspace";
    RUNS = "SELECT ", EvidenceRow::LIST, " FROM evidence e WHERE +e.workspace = :workspace";
    LANDED = "SELECT ", LandedRow::LIST, " FROM landed d WHERE d.workspace = :workspace";
    LANDED_OF(task) = "SELECT seq, commit_id, epoch FROM landed WHERE workspace = :workspace AND task = :task";
    REVIEWS = "SELECT ", ReviewRow::LIST, " FROM review r WHERE +r.workspace = :workspace";
    RUNS_OF(task) = "SELECT ", EvidenceRow::LIST, " FROM evidence e WHERE e.workspace = :workspace AND e.task = :task";
    REVIEWS_OF(task) = "SELECT ", ReviewRow::LIST, " FROM review r WHERE r.workspace = :workspace AND r.task = :task";
    ENTRIES(first, last) = "SELECT ", EntryRow::LIST, " FROM ledger l WHERE +l.workspace = :workspace \
        AND l.seq BETWEEN :first AND :last ORDER BY l.seq";
    FACTS_OF(task) = "SELECT ", SessionFactRow::LIST, " FROM session_fact f WHERE f.workspace = :workspace AND f.task \
        = :task \
        ORDER BY f.seq";
    NOTES_OF(task) = "SELECT seq, kind, text, said_by, said_at, said_key FROM note WHERE workspace = :workspace AND task = :task ORDER BY seq";
}

/// Where the part of a task's row begins that says what became of it; before it stand what is computed, the fence and the head.
const LIFECYCLE: usize = TaskAsked::WIDTH + TaskQueue::WIDTH + FENCE_AND_HEAD;
const FENCE_AND_HEAD: usize = 2;
/// The texts of an ask, which the record has by their digests.
const ASKED_TEXTS: usize = 2;

/// A task's row as it stands.
#[derive(Debug)]
pub struct RawTask<'a> {
    pub id: &'a str,
    pub version: i64,
    /// None where it is not a digest.
    pub head: Option<Digest>,
    /// As [`asked`] gives them.
    pub asked: [&'a [Value<'a>]; 2],
    /// As [`lifecycle`] gives them.
    pub lifecycle: [&'a [Value<'a>]; 2],
}

/// Told of one row: whose it is, and its columns.
pub type Look<'a> = &'a mut dyn FnMut(&str, [&[Value<'_>]; 2]) -> Result<()>;

/// The tasks whose first entries lie in a part of the record.
pub fn tasks(
    tx: &mut dyn Tx,
    born: RangeInclusive<Seq>,
    look: &mut dyn FnMut(RawTask<'_>) -> Result<()>,
) -> Result<()> {
    tx.visit(&TASKS { first: *born.start(), last: *born.end() }, &mut |row| {
        let TaskRow { asked, moving, given, .. } = TaskRow::view(row).ok_or_else(|| wrong("a task's"))?;
        let (seal, body, extra) = (sealed(moving.lease_id), digest_of(asked.body), digest_of(asked.extra));
        look(RawTask {
            id: text_of(given.id)?,
            version: int_of(moving.version)?,
            head: blob_of(moving.head).and_then(Digest::from_slice),
            asked: [
                &[Value::from(body.as_ref()), Value::from(extra.as_ref())],
                &row[ASKED_TEXTS..TaskAsked::WIDTH],
            ],
            lifecycle: [&[seal], &row[LIFECYCLE..]],
        })
    })
}

pub fn dependencies(tx: &mut dyn Tx, look: Look<'_>) -> Result<()> {
    tx.visit(&DEPENDENCIES {}, &mut |row| look(text_of(&row[0])?, [&[], &row[1..]]))
}

pub fn assignments(tx: &mut dyn Tx, look: Look<'_>) -> Result<()> {
    tx.visit(&ASSIGNMENTS {}, &mut |row| look(text_of(&row[0])?, [&[sealed(&row[1])], &row[2..]]))
}

pub fn sessions(tx: &mut dyn Tx, look: Look<'_>) -> Result<()> {
    tx.visit(&SESSIONS {}, &mut |row| look(text_of(&row[0])?, [&[], &row[1..]]))
}

pub fn session_facts(tx: &mut dyn Tx, look: Look<'_>) -> Result<()> {
    tx.visit(&SESSION_FACTS {}, &mut |row| look(text_of(&row[0])?, [&[], &row[1..]]))
}

pub fn notes(tx: &mut dyn Tx, look: Look<'_>) -> Result<()> {
    tx.visit(&NOTES {}, &mut |row| with_text(row, look))
}

pub fn runs(tx: &mut dyn Tx, look: Look<'_>) -> Result<()> {
    tx.visit(&RUNS {}, &mut |row| with_text(row, look))
}

pub fn reviews(tx: &mut dyn Tx, look: Look<'_>) -> Result<()> {
    tx.visit(&REVIEWS {}, &mut |row| with_text(row, look))
}

pub fn landed(tx: &mut dyn Tx, look: Look<'_>) -> Result<()> {
    tx.visit(&LANDED {}, &mut |row| look(text_of(&row[0])?, [&[], &row[1..]]))
}

/// Which entry of one task says that which commit landed, under which epoch.
pub fn landed_of(tx: &mut dyn Tx, task: &str) -> Result<Vec<(Seq, String, i64)>> {
    let rows = tx.rows(&LANDED_OF { task })?;
    rows.into_iter().map(|mut row| Ok((row.int()?, row.text()?, row.int()?))).collect()
}

/// The same of one task.
pub fn shown_of(tx: &mut dyn Tx, task: &str, about: Shown, look: Look<'_>) -> Result<()> {
    let look = &mut |row: &[Value<'_>]| with_text(row, look);
    match about {
        Shown::Run => tx.visit(&RUNS_OF { task }, look),
        Shown::Review => tx.visit(&REVIEWS_OF { task }, look),
    }
}

/// What a task's evidence consists of.
#[derive(Debug, Clone, Copy)]
pub enum Shown {
    Run,
    Review,
}

/// A row that begins with whose it is and a text that the record has by its digest.
fn with_text(row: &[Value<'_>], look: Look<'_>) -> Result<()> {
    let text = digest_of(&row[1]);
    look(text_of(&row[0])?, [&[Value::from(text.as_ref())], &row[2..]])
}

/// The entries of a part of the record, each with its place; one that makes no sense is handed on as the error it is.
pub fn entries(
    tx: &mut dyn Tx,
    part: RangeInclusive<Seq>,
    look: &mut dyn FnMut(Seq, Result<EntryRef<'_>>) -> Result<()>,
) -> Result<()> {
    tx.visit(&ENTRIES { first: *part.start(), last: *part.end() }, &mut |row| {
        look(int_of(&row[0])?, entry(row))
    })
}

fn entry<'a>(row: &'a [Value<'a>]) -> Result<EntryRef<'a>> {
    let digest = |value| blob_of(value).and_then(Digest::from_slice).ok_or_else(|| wrong("a digest"));
    let row = EntryRow::view(row).ok_or_else(|| wrong("an entry's"))?;
    Ok(EntryRef {
        seq: int_of(row.seq)?,
        task: opt_text_of(row.task)?,
        at: Timestamp(int_of(row.at)?),
        actor: text_of(row.actor)?,
        workstation: opt_text_of(row.workstation)?,
        epoch: int_of(row.epoch)?,
        verb: text_of(row.verb)?,
        data: text_of(row.data)?,
        prev: digest(row.prev)?,
        hash: digest(row.hash)?,
    })
}

/// The columns that say what was asked for: first the digests of body and extra, then the rest.
pub fn asked(spec: &Spec) -> Result<[Vec<Value<'_>>; 2]> {
    let rest = behind(ASKED_TEXTS, codec::asked_row(spec)?.into_values());
    let digest =
        |text: &'_ Option<Text>| Value::from(text.as_ref().map(Text::digest).copied().as_ref()).into_owned();
    Ok([vec![digest(&spec.body), digest(&spec.extra)], rest])
}

/// The columns that a lifecycle moves, and those that are given at birth: first the lease's seal, then the rest.
pub fn lifecycle(task: &Task) -> Result<[Vec<Value<'_>>; 2]> {
    let mut rest = behind(FENCE_AND_HEAD, codec::moving_row(task, None)?.into_values());
    rest.extend(codec::given_row(task).into_values());
    Ok([vec![task.assignment().map_or(Value::Null, |held| seal_of(&held.lease.id))], rest])
}

/// The columns of an assignment: first its lease's seal, then the rest.
pub fn assignment<'a>(
    held: &'a Assignment,
    ended_at: Option<Timestamp>,
    end_reason: Option<&'a str>,
) -> Result<[Vec<Value<'a>>; 2]> {
    let mut rest = behind(1, codec::held_row(held)?.into_values());
    rest.extend(
        row!(AssignmentEnd { ended_at: ended_at.map(|at| at.0), end_reason: end_reason }).into_values(),
    );
    Ok([vec![seal_of(&held.lease.id)], rest])
}

pub fn session(session: &Session) -> Vec<Value<'_>> {
    let row = row!(SessionRow {
        task: "",
        id: session.id,
        epoch: session.epoch,
        worker: session.worker.as_str(),
        workstation: session.workstation.as_str(),
        started_at: session.started_at.0,
        ended_at: session.ended_at.map(|at| at.0),
        end_reason: session.end_reason.as_deref(),
    });
    behind(1, row.into_values())
}

/// The columns of what was said about a session; none for an effect that says nothing of the kind.
pub fn session_fact(seq: Seq, effect: &Effect) -> Option<Vec<Value<'_>>> {
    codec::fact_row("", seq, effect).map(|row| behind(1, row.into_values()))
}

/// The columns of a run: first its output's digest, then the rest, beginning with its entry.
pub fn run(seq: Seq, run: &CheckRun) -> [Vec<Value<'_>>; 2] {
    [vec![run.output.digest().into()], behind(2, evidence::run_row("", seq, run).into_values())]
}

/// The columns of a review: first its note's digest, then the rest, beginning with its entry.
pub fn review(seq: Seq, review: &Reviewed) -> [Vec<Value<'_>>; 2] {
    let digest = review.note.as_ref().map(|note| note.digest());
    [vec![digest.into()], behind(2, evidence::review_row("", seq, review).into_values())]
}

/// The columns of a note behind its text: its entry, its kind, and who said it elsewhere.
pub fn note<'a>(seq: Seq, kind: &'a str, said: Option<&'a Said>) -> Vec<Value<'a>> {
    behind(2, codec::note_row("", "", seq, kind, said).into_values())
}

/// What comes behind the columns that are compared in another way.
fn behind(first: usize, mut columns: Vec<Value<'_>>) -> Vec<Value<'_>> {
    columns.split_off(first)
}

fn sealed(lease_id: &Value<'_>) -> Value<'static> {
    match blob_of(lease_id) {
        None => Value::Null,
        // What is no lease id has no seal; it must not pass for nothing.
        Some(bytes) => bytes.try_into().map_or(Value::Int(0), |secret| seal_of(&LeaseId::new(secret))),
    }
}

fn seal_of(id: &LeaseId) -> Value<'static> {
    serde_json::to_string(id).map_or(Value::Int(1), Value::from)
}

fn digest_of(text: &Value<'_>) -> Option<Digest> {
    match text {
        Value::Text(text) => Some(Digest::of(text.as_bytes())),
        _ => None,
    }
}

fn wrong(wanted: &str) -> StoreError {
    StoreError::Corrupt(format!("a column is not {wanted}"))
}

pub(super) fn int_of(value: &Value<'_>) -> Result<i64> {
    match value {
        Value::Int(n) => Ok(*n),
        _ => Err(wrong("a number")),
    }
}

pub(super) fn opt_text_of<'a>(value: &'a Value<'_>) -> Result<Option<&'a str>> {
    match value {
        Value::Text(text) => Ok(Some(text)),
        Value::Null => Ok(None),
        _ => Err(wrong("text")),
    }
}

pub(super) fn text_of<'a>(value: &'a Value<'_>) -> Result<&'a str> {
    opt_text_of(value)?.ok_or_else(|| wrong("text"))
}

fn blob_of<'a>(value: &'a Value<'_>) -> Option<&'a [u8]> {
    match value {
        Value::Blob(bytes) => Some(bytes),
        _ => None,
    }
}

/// One task's row, understood; an error where it makes no sense.
pub fn task_row(tx: &mut dyn Tx, task: &str) -> Result<Option<Result<StoredTask>>> {
    Ok(tx.row(&load::TASK { task })?.map(|mut row| codec::task(&mut row)))
}

/// A note's text with the entry that vouches for it.
#[derive(Debug, Clone)]
pub struct RowNote {
    pub seq: Seq,
    pub kind: String,
    pub text: String,
    pub said: Option<Said>,
}

pub fn notes_of(tx: &mut dyn Tx, task: &str) -> Result<Vec<RowNote>> {
    tx.rows(&NOTES_OF { task })?
        .into_iter()
        .map(|mut row| {
            let (seq, kind, text) = (row.int()?, row.text()?, row.text()?);
            Ok(RowNote { seq, kind, text, said: codec::said(&mut row)? })
        })
        .collect()
}

/// What was said about the sessions of one task, by entry.
pub fn session_facts_of(tx: &mut dyn Tx, task: &str) -> Result<Vec<(Seq, Vec<Value<'static>>)>> {
    let rows = tx.rows(&FACTS_OF { task })?;
    rows.into_iter()
        .map(|row| {
            let values = behind(1, row.into_values());
            Ok((values.first().map_or(Ok(0), int_of)?, values))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{Column, TASK};

    /// A column that is neither compared nor named here could be changed by hand without anybody noticing.
    #[test]
    fn the_record_vouches_for_every_column_of_a_task() {
        let names: Vec<&str> = TASK.columns.iter().map(|Column { name, .. }| *name).collect();
        let apart = [&names[..ASKED_TEXTS], &names[TaskAsked::WIDTH..LIFECYCLE]].concat();
        // By their digests, computed from dependencies, by its seal, compared with the chain's last entry.
        assert_eq!(apart, ["body", "extra", "waits", "lease_id", "head"]);
        let spec = Spec::titled("one");
        let [_, rest] = asked(&spec).unwrap();
        assert_eq!(rest.len(), TaskAsked::WIDTH - ASKED_TEXTS);
    }
}
