//! What reports ask: entries by verb and time, and the few rows that want somebody's attention.

use crate::codec::{self, entry_columns};
use crate::error::{Result, StoreError};
use crate::port::{Tx, Value};
use crate::read::queue::active;
use crate::{args, sql};
use onus_core::id::{Handle, Seq, TaskId};
use onus_core::ledger::Entry;
use onus_core::task::{Check, CheckState, Exception, Risk, Route, StateName};
use onus_core::time::Timestamp;
use std::collections::BTreeMap;

/// ?1 is the workspace; the filter is ?4 to ?7. A NULL has no type of its own: the cast gives it one.
macro_rules! searched {
    () => {
        "AND (CAST(?4 AS TEXT) IS NULL OR l.actor = ?4) AND (CAST(?5 AS TEXT) IS NULL OR l.verb = ?5) \
         AND l.at >= ?6 AND l.at < ?7 ORDER BY l.seq DESC LIMIT ?8"
    };
}

sql! {
    /// Answered from the index `ledger_verb` alone.
    pub(crate) TIMES = "SELECT l.at FROM ledger l WHERE l.workspace = ?1 AND l.verb = ?2 AND l.at >= ?3 AND l.at < ?4";
    pub(crate) HAPPENED = "SELECT ", entry_columns!(), " FROM ledger l \
        WHERE l.workspace = ?1 AND l.verb = ?2 AND l.at >= ?3 AND l.at < ?4 ORDER BY l.at DESC, l.seq DESC LIMIT ?5";
    /// In the order of the record, which is not always that of the clock.
    BETWEEN = "SELECT l.seq, ", entry_columns!(), " FROM ledger l \
        WHERE +l.workspace = ?1 AND l.seq > ?2 AND l.at >= ?3 AND l.at < ?4 ORDER BY l.seq";
    SEARCHED = "SELECT ", entry_columns!(), " FROM ledger l \
        WHERE +l.workspace = ?1 AND l.seq < ?2 AND l.seq >= ?3 ", searched!();
    SEARCHED_OF = "SELECT ", entry_columns!(), " FROM ledger l \
        WHERE l.workspace = ?1 AND l.task = ?9 AND l.seq < ?2 AND l.seq >= ?3 ", searched!();
    TAKEN = "SELECT a.task, a.assignee, a.workstation, a.ended_at, a.end_reason, a.forced, a.route, t.type, t.sprint \
        FROM assignment a JOIN task t ON t.workspace = a.workspace AND t.id = a.task \
        WHERE a.workspace = ?1 AND (CAST(?2 AS TEXT) IS NULL OR t.sprint = ?2)";
    PLANNED = "SELECT t.state, t.created_at, t.closed_at FROM task t \
        WHERE +t.workspace = ?1 AND (CAST(?2 AS TEXT) IS NULL OR t.sprint = ?2)";
    /// The head of the queue; what of it waits for somebody is seen row by row.
    pub(crate) WANTING = "SELECT t.id, t.title, t.state, t.blocker, t.checks, t.risk, t.updated_at, t.exceptions FROM task t \
        WHERE ", active!(), "ORDER BY t.priority, t.born LIMIT ?2";
    pub(crate) WORKED = "SELECT 1 FROM session WHERE workspace = ?1 AND worker = ?2 AND started_at >= ?3 AND started_at < ?4 LIMIT 1";
    ANY_APPROVAL = "SELECT 1 FROM approval WHERE workspace = ?1 LIMIT 1";
    pub(crate) BRIEF = "SELECT title, type, kind, sprint, state, checks FROM task WHERE workspace = ?1 AND id = ?2";
}

/// From a moment, up to another one and without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub from: Timestamp,
    pub to: Timestamp,
}

/// Tells when each entry of a verb was made.
pub fn times(tx: &mut dyn Tx, verb: &str, span: Span, look: &mut dyn FnMut(Timestamp)) -> Result<()> {
    let workspace = tx.workspace();
    tx.visit(&TIMES, &args![workspace.0, verb, span.from.0, span.to.0], &mut |row| match row {
        [Value::Int(at)] => {
            look(Timestamp(*at));
            Ok(())
        }
        _ => Err(StoreError::Corrupt("an entry without its time".into())),
    })
}

/// Entries of a verb, the newest first.
pub fn happened(tx: &mut dyn Tx, verb: &str, span: Span, limit: i64) -> Result<Vec<Entry>> {
    let workspace = tx.workspace();
    let rows = tx.rows(&HAPPENED, &args![workspace.0, verb, span.from.0, span.to.0, limit])?;
    rows.into_iter().map(|mut row| codec::entry(&mut row)).collect()
}

/// Tells every entry of a span, in the order of the record.
pub fn between(
    tx: &mut dyn Tx,
    after: Seq,
    span: Span,
    each: &mut dyn FnMut(Entry) -> Result<()>,
) -> Result<()> {
    let workspace = tx.workspace();
    tx.each(&BETWEEN, &args![workspace.0, after, span.from.0, span.to.0], &mut |mut row| {
        row.int()?;
        each(codec::entry(&mut row)?)
    })
}

/// Which entries; everything that is absent matches.
#[derive(Debug, Clone)]
pub struct Search<'a> {
    pub before: Seq,
    /// No older ones are looked at: a filter that matches nothing must not read everything.
    pub down_to: Seq,
    pub task: Option<&'a TaskId>,
    pub actor: Option<&'a Handle>,
    pub verb: Option<&'a str>,
    pub span: Span,
}

/// Matching entries, the newest first.
pub fn search(tx: &mut dyn Tx, search: &Search<'_>, limit: i64) -> Result<Vec<Entry>> {
    let workspace = tx.workspace();
    let mut args = args![
        workspace.0,
        search.before,
        search.down_to,
        search.actor.map(Handle::as_str),
        search.verb,
        search.span.from.0,
        search.span.to.0,
        limit,
    ]
    .to_vec();
    let statement = match search.task {
        Some(task) => {
            args.push(task.to_string().into());
            &SEARCHED_OF
        }
        None => &SEARCHED,
    };
    tx.rows(statement, &args)?.into_iter().map(|mut row| codec::entry(&mut row)).collect()
}

/// One assignment, with what its task is about.
#[derive(Debug)]
pub struct TakenRow {
    pub task: String,
    pub assignee: Handle,
    pub workstation: String,
    pub ended_at: Option<Timestamp>,
    pub end_reason: Option<String>,
    pub forced: bool,
    pub route: Option<Route>,
    pub task_type: Option<String>,
    pub sprint: Option<String>,
}

/// Tells every assignment of a sprint's tasks, or of all.
pub fn taken(
    tx: &mut dyn Tx,
    sprint: Option<&str>,
    each: &mut dyn FnMut(TakenRow) -> Result<()>,
) -> Result<()> {
    let workspace = tx.workspace();
    tx.each(&TAKEN, &args![workspace.0, sprint], &mut |mut row| {
        each(TakenRow {
            task: row.text()?,
            assignee: row.parsed()?,
            workstation: row.text()?,
            ended_at: row.opt_int()?.map(Timestamp),
            end_reason: row.opt_text()?,
            forced: row.flag()?,
            route: codec::route(&mut row)?,
            task_type: row.opt_text()?,
            sprint: row.opt_text()?,
        })
    })
}

/// One task of a sprint: where it stands, when it was asked for and when it ended.
#[derive(Debug)]
pub struct Planned {
    pub state: StateName,
    pub created_at: Timestamp,
    pub closed_at: Option<Timestamp>,
}

/// Tells every task of a sprint, or of all.
pub fn planned(
    tx: &mut dyn Tx,
    sprint: Option<&str>,
    each: &mut dyn FnMut(Planned) -> Result<()>,
) -> Result<()> {
    let workspace = tx.workspace();
    tx.each(&PLANNED, &args![workspace.0, sprint], &mut |mut row| {
        each(Planned {
            state: codec::word(row.text()?.as_str(), StateName::parse)?,
            created_at: Timestamp(row.int()?),
            closed_at: row.opt_int()?.map(Timestamp),
        })
    })
}

/// A task that waits for a person's word, or for something outside.
#[derive(Debug)]
pub struct Wanting {
    pub task: TaskId,
    pub title: String,
    pub state: StateName,
    pub blocker: Option<String>,
    pub checks: Vec<Check>,
    pub risk: Risk,
    pub updated_at: Timestamp,
    pub exceptions: BTreeMap<TaskId, Exception>,
}

/// Such tasks among the first `window` of the queue.
pub fn wanting(tx: &mut dyn Tx, window: i64) -> Result<Vec<Wanting>> {
    let workspace = tx.workspace();
    let mut found = Vec::new();
    tx.each(&WANTING, &args![workspace.0, window], &mut |mut row| {
        let one = Wanting {
            task: row.parsed()?,
            title: row.text()?,
            state: codec::word(row.text()?.as_str(), StateName::parse)?,
            blocker: row.opt_text()?,
            checks: codec::json_list(&mut row)?,
            risk: codec::word(row.text()?.as_str(), Risk::parse)?,
            updated_at: Timestamp(row.int()?),
            exceptions: codec::exceptions(&mut row)?,
        };
        let proposed = one.checks.iter().any(|check| check.state == CheckState::Proposed);
        if one.blocker.is_some() || !one.exceptions.is_empty() || proposed {
            found.push(one);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Whether a worker had a session that began in a span.
pub fn worked(tx: &mut dyn Tx, worker: &Handle, span: Span) -> Result<bool> {
    let workspace = tx.workspace();
    Ok(tx.row(&WORKED, &args![workspace.0, worker.as_str(), span.from.0, span.to.0])?.is_some())
}

/// Whether anybody ever approved a timesheet here.
pub fn is_approving(tx: &mut dyn Tx) -> Result<bool> {
    let workspace = tx.workspace();
    Ok(tx.row(&ANY_APPROVAL, &args![workspace.0])?.is_some())
}

/// A task in a few words.
#[derive(Debug, Clone)]
pub struct Brief {
    pub title: String,
    pub task_type: Option<String>,
    pub kind: String,
    pub sprint: Option<String>,
    pub state: StateName,
    pub checks: Vec<Check>,
}

pub fn brief(tx: &mut dyn Tx, task: &TaskId) -> Result<Option<Brief>> {
    let workspace = tx.workspace();
    let Some(mut row) = tx.row(&BRIEF, &args![workspace.0, task.to_string()])? else { return Ok(None) };
    Ok(Some(Brief {
        title: row.text()?,
        task_type: row.opt_text()?,
        kind: row.text()?,
        sprint: row.opt_text()?,
        state: codec::word(row.text()?.as_str(), StateName::parse)?,
        checks: codec::json_list(&mut row)?,
    }))
}
