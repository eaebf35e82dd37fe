//! Rows as they stand, and rows as the record says they must be: the same columns in the same order, so that the two
//! can be compared a million times without being understood.
//!
//! Two columns are secret or long, and the record has only their digests: a lease id is given as its seal, a text as
//! its SHA-256.

use crate::codec::{self, StoredTask, entry_columns, exceptions_text, json_text, list_text, sign_text};
use crate::error::{Result, StoreError};
use crate::load;
use crate::port::{Tx, Value};
use crate::{args, sql};
use onus_core::effect::Effect;
use onus_core::hash::Digest;
use onus_core::id::Seq;
use onus_core::lease::LeaseId;
use onus_core::ledger::EntryRef;
use onus_core::task::{Assignment, Spec, State, Task};
use onus_core::text::Text;
use onus_core::time::Timestamp;
use std::ops::RangeInclusive;

use super::effort::{CORRECTED, USED};
use super::show::Session;

/// Whose it is, the text that the record has by its digest, the rest as `evidence::run_columns` gives it.
macro_rules! run_columns {
    () => {
        "task, output, seq, check_id, verdict, exit, signal, took_ms, commit_id, dirty, output_length, output_sha256, \
         environment, sandbox"
    };
}

macro_rules! review_columns {
    () => {
        "task, note, seq, verdict, classification, commit_id"
    };
}

macro_rules! fact_columns {
    () => {
        "seq, session, kind, started_at, ended_at, key, source, model, input_tokens, output_tokens, \
         cache_read_tokens, cache_creation_tokens, cost_micros"
    };
}

// In no order where none is needed: sorting a million rows costs more than reading them. The unary plus keeps the
// planner from walking an index to every row of the table.
sql! {
    TASKS = "SELECT id, version, head, lease_id, body, \
        title, type, kind, priority, risk, role, lane, sprint, tags, scope, parent, merge_order, origin_ask_ref, \
        checks, uid, state, blocker, archived, epoch, version, born, created_by, created_at, updated_at, closed_by, closed_at, \
        forced, exceptions FROM task WHERE +workspace = ?1 AND born BETWEEN ?2 AND ?3";
    DEPENDENCIES = "SELECT task, depends_on, excepted FROM dependency WHERE workspace = ?1";
    ASSIGNMENTS = "SELECT task, lease_id, epoch, assignee, tier, workstation, ttl_ms, assigned_at, renewed_at, tick, \
        renewals, handoff_reason, forced, route, lane, base, resting, ended_at, end_reason FROM assignment WHERE workspace = ?1";
    SESSIONS = "SELECT task, id, epoch, worker, workstation, started_at, ended_at, end_reason FROM session WHERE +workspace = ?1";
    SESSION_FACTS = "SELECT task, ", fact_columns!(), " FROM session_fact WHERE +workspace = ?1";
    NOTES = "SELECT task, text, seq, kind FROM note WHERE +workspace = ?1";
    RUNS = "SELECT ", run_columns!(), " FROM evidence WHERE +workspace = ?1";
    LANDED = "SELECT task, seq, commit_id, epoch FROM landed WHERE workspace = ?1";
    LANDED_OF = "SELECT seq, commit_id, epoch FROM landed WHERE workspace = ?1 AND task = ?2";
    REVIEWS = "SELECT ", review_columns!(), " FROM review WHERE +workspace = ?1";
    RUNS_OF = "SELECT ", run_columns!(), " FROM evidence WHERE workspace = ?1 AND task = ?2";
    REVIEWS_OF = "SELECT ", review_columns!(), " FROM review WHERE workspace = ?1 AND task = ?2";
    ENTRIES = "SELECT ", entry_columns!(), " FROM ledger l WHERE +l.workspace = ?1 AND l.seq BETWEEN ?2 AND ?3 \
        ORDER BY l.seq";
    FACTS_OF = "SELECT ", fact_columns!(), " FROM session_fact WHERE workspace = ?1 AND task = ?2 ORDER BY seq";
    NOTES_OF = "SELECT seq, kind, text FROM note WHERE workspace = ?1 AND task = ?2 ORDER BY seq";
}

/// How many of the task's columns say what was asked for.
const ASKED: std::ops::Range<usize> = 5..18;

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
    let workspace = tx.workspace();
    tx.visit(&TASKS, &args![workspace.0, *born.start(), *born.end()], &mut |row| {
        let (seal, text) = (sealed(&row[3]), digest_of(&row[4]));
        look(RawTask {
            id: text_of(&row[0])?,
            version: int_of(&row[1])?,
            head: blob_of(&row[2]).and_then(Digest::from_slice),
            asked: [&[Value::from(text.as_ref())], &row[ASKED]],
            lifecycle: [&[seal], &row[ASKED.end..]],
        })
    })
}

pub fn dependencies(tx: &mut dyn Tx, look: Look<'_>) -> Result<()> {
    let workspace = tx.workspace();
    tx.visit(&DEPENDENCIES, &args![workspace.0], &mut |row| look(text_of(&row[0])?, [&[], &row[1..]]))
}

pub fn assignments(tx: &mut dyn Tx, look: Look<'_>) -> Result<()> {
    let workspace = tx.workspace();
    tx.visit(&ASSIGNMENTS, &args![workspace.0], &mut |row| {
        look(text_of(&row[0])?, [&[sealed(&row[1])], &row[2..]])
    })
}

pub fn sessions(tx: &mut dyn Tx, look: Look<'_>) -> Result<()> {
    let workspace = tx.workspace();
    tx.visit(&SESSIONS, &args![workspace.0], &mut |row| look(text_of(&row[0])?, [&[], &row[1..]]))
}

pub fn session_facts(tx: &mut dyn Tx, look: Look<'_>) -> Result<()> {
    let workspace = tx.workspace();
    tx.visit(&SESSION_FACTS, &args![workspace.0], &mut |row| look(text_of(&row[0])?, [&[], &row[1..]]))
}

pub fn notes(tx: &mut dyn Tx, look: Look<'_>) -> Result<()> {
    let workspace = tx.workspace();
    tx.visit(&NOTES, &args![workspace.0], &mut |row| with_text(row, look))
}

pub fn runs(tx: &mut dyn Tx, look: Look<'_>) -> Result<()> {
    let workspace = tx.workspace();
    tx.visit(&RUNS, &args![workspace.0], &mut |row| with_text(row, look))
}

pub fn reviews(tx: &mut dyn Tx, look: Look<'_>) -> Result<()> {
    let workspace = tx.workspace();
    tx.visit(&REVIEWS, &args![workspace.0], &mut |row| with_text(row, look))
}

pub fn landed(tx: &mut dyn Tx, look: Look<'_>) -> Result<()> {
    let workspace = tx.workspace();
    tx.visit(&LANDED, &args![workspace.0], &mut |row| look(text_of(&row[0])?, [&[], &row[1..]]))
}

/// Which entry of one task says that which commit landed, under which epoch.
pub fn landed_of(tx: &mut dyn Tx, task: &str) -> Result<Vec<(Seq, String, i64)>> {
    let workspace = tx.workspace();
    let rows = tx.rows(&LANDED_OF, &args![workspace.0, task])?;
    rows.into_iter().map(|mut row| Ok((row.int()?, row.text()?, row.int()?))).collect()
}

/// The same of one task.
pub fn shown_of(tx: &mut dyn Tx, task: &str, about: Shown, look: Look<'_>) -> Result<()> {
    let workspace = tx.workspace();
    let statement = match about {
        Shown::Run => &RUNS_OF,
        Shown::Review => &REVIEWS_OF,
    };
    tx.visit(statement, &args![workspace.0, task], &mut |row| with_text(row, look))
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
    let workspace = tx.workspace();
    tx.visit(&ENTRIES, &args![workspace.0, *part.start(), *part.end()], &mut |row| {
        look(int_of(&row[0])?, entry(row))
    })
}

fn entry<'a>(row: &'a [Value<'_>]) -> Result<EntryRef<'a>> {
    let digest = |value| blob_of(value).and_then(Digest::from_slice).ok_or_else(|| wrong("a digest"));
    Ok(EntryRef {
        seq: int_of(&row[0])?,
        task: opt_text_of(&row[1])?,
        at: Timestamp(int_of(&row[2])?),
        actor: text_of(&row[3])?,
        workstation: opt_text_of(&row[4])?,
        epoch: int_of(&row[5])?,
        verb: text_of(&row[6])?,
        data: text_of(&row[7])?,
        prev: digest(&row[8])?,
        hash: digest(&row[9])?,
    })
}

/// The columns that say what was asked for: first the body's digest, then the rest.
pub fn asked(spec: &Spec) -> Result<[Vec<Value<'_>>; 2]> {
    let rest = args![
        spec.title.as_str(),
        spec.task_type.as_ref().map(|t| t.as_str()),
        spec.kind.as_str(),
        spec.priority.rank(),
        spec.risk.name(),
        spec.role.as_ref().map(|r| r.as_str()),
        spec.lane,
        spec.sprint.as_deref(),
        list_text(&spec.tags)?,
        list_text(&spec.scope)?,
        spec.parent.as_ref().map(ToString::to_string),
        spec.merge_order,
        spec.origin.as_ref().map(|o| o.as_str()),
    ];
    Ok([vec![Value::from(spec.body.as_ref().map(Text::digest))], rest.into()])
}

/// The columns that a lifecycle moves, and those that are given at birth: first the lease's seal, then the rest.
pub fn lifecycle(task: &Task) -> Result<[Vec<Value<'_>>; 2]> {
    let closing = match &task.state {
        State::Complete(closing) | State::Dropped(closing) => Some(closing),
        State::Open | State::InProgress(_) | State::Blocked { .. } => None,
    };
    let blocker = match &task.state {
        State::Blocked { on, .. } => Some(on.to_string()),
        _ => None,
    };
    let rest = args![
        list_text(&task.spec.checks)?,
        task.uid.to_string(),
        task.state.name().name(),
        blocker,
        task.archived,
        task.epoch,
        task.version,
        task.born,
        task.created_by.as_str(),
        task.created_at.0,
        task.updated_at.0,
        closing.map(|closing| closing.by.as_str()),
        closing.map(|closing| closing.at.0),
        closing.is_some_and(|closing| closing.forced),
        exceptions_text(&task.exceptions)?,
    ];
    Ok([vec![task.assignment().map_or(Value::Null, |held| seal_of(&held.lease.id))], rest.into()])
}

/// The columns of an assignment: first its lease's seal, then the rest.
pub fn assignment<'a>(
    held: &'a Assignment,
    ended_at: Option<Timestamp>,
    end_reason: Option<&'a str>,
) -> Result<[Vec<Value<'a>>; 2]> {
    let lease = &held.lease;
    let rest = args![
        held.epoch,
        held.assignee.as_str(),
        held.tier.as_deref(),
        held.workstation.as_str(),
        lease.ttl.0,
        held.assigned_at.0,
        lease.renewed_at.0,
        sign_text(lease),
        lease.renewals,
        held.handoff_reason.as_deref(),
        held.forced,
        held.route.as_ref().map(json_text).transpose()?,
        held.lane,
        held.base.as_ref().map(|base| base.as_str()),
        held.resting,
        ended_at.map(|at| at.0),
        end_reason,
    ];
    Ok([vec![seal_of(&lease.id)], rest.into()])
}

pub fn session(session: &Session) -> [Value<'_>; 7] {
    args![
        session.id,
        session.epoch,
        session.worker.as_str(),
        session.workstation.as_str(),
        session.started_at.0,
        session.ended_at.map(|at| at.0),
        session.end_reason.as_deref(),
    ]
}

/// The columns of what was said about a session; none for an effect that says nothing of the kind.
pub fn session_fact(seq: Seq, effect: &Effect) -> Option<[Value<'_>; 13]> {
    match effect {
        Effect::SessionCorrected { session, started_at, ended_at } => {
            let nothing = None::<i64>;
            let (at, until) = (started_at.0, ended_at.0);
            let no_text = None::<&str>;
            Some(args![
                seq, *session, CORRECTED, at, until, no_text, no_text, no_text, nothing, nothing, nothing,
                nothing, nothing
            ])
        }
        Effect::SessionUsed { session, usage } => {
            let (nothing, counts) = (None::<i64>, &usage.counts);
            Some(args![
                seq,
                *session,
                USED,
                nothing,
                nothing,
                usage.key.as_str(),
                usage.source.as_str(),
                usage.model.as_deref(),
                counts.input_tokens,
                counts.output_tokens,
                counts.cache_read_tokens,
                counts.cache_creation_tokens,
                counts.cost_micros,
            ])
        }
        _ => None,
    }
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
    let workspace = tx.workspace();
    Ok(tx.row(&load::TASK, &args![workspace.0, task])?.map(|mut row| codec::task(&mut row)))
}

/// A note's text with the entry that vouches for it.
#[derive(Debug, Clone)]
pub struct RowNote {
    pub seq: Seq,
    pub kind: String,
    pub text: String,
}

pub fn notes_of(tx: &mut dyn Tx, task: &str) -> Result<Vec<RowNote>> {
    let workspace = tx.workspace();
    tx.rows(&NOTES_OF, &args![workspace.0, task])?
        .into_iter()
        .map(|mut row| Ok(RowNote { seq: row.int()?, kind: row.text()?, text: row.text()? }))
        .collect()
}

/// What was said about the sessions of one task, by entry.
pub fn session_facts_of(tx: &mut dyn Tx, task: &str) -> Result<Vec<(Seq, Vec<Value<'static>>)>> {
    let workspace = tx.workspace();
    let rows = tx.rows(&FACTS_OF, &args![workspace.0, task])?;
    rows.into_iter()
        .map(|row| {
            let values = row.into_values();
            Ok((values.first().map_or(Ok(0), int_of)?, values))
        })
        .collect()
}
