//! What reports ask: entries by verb and time, and the few rows that want somebody's attention.

use crate::codec::{self, row};
use crate::error::{Result, StoreError};
use crate::port::{Tx, Value};
use crate::read::ledger::{BYTES, BoundedEntries};
use crate::read::queue::ACTIVE;
use crate::sql;
use crate::statement::params;
use crate::tables::EntryRow;
use onus_core::id::{Handle, Seq, TaskId};
use onus_core::ledger::Entry;
use onus_core::task::{Check, CheckState, Exception, Risk, Route, StateName};
use onus_core::time::Timestamp;
use std::collections::BTreeMap;

params! {
    SearchParams { before, down_to, actor, verb, from, to, limit }
}

/// A NULL has no type of its own: the cast gives it one.
const SEARCHED_BY: &str = "AND l.seq < :before AND l.seq >= :down_to \
    AND (CAST(:actor AS TEXT) IS NULL OR l.actor = :actor) AND (CAST(:verb AS TEXT) IS NULL OR l.verb = :verb) \
    AND l.at >= :from AND l.at < :to ORDER BY l.seq DESC LIMIT :limit";

sql! {
    /// Answered from the index `ledger_verb` alone.
    pub(crate) TIMES(verb, from, to) = "SELECT l.at FROM ledger l WHERE l.workspace = :workspace AND l.verb = :verb \
        AND l.at >= :from AND l.at < :to";
    TIMES_OF_SPRINT(verb, from, to, sprint) = "SELECT l.at FROM ledger l \
        JOIN task t ON t.workspace = l.workspace AND t.id = l.task \
        WHERE l.workspace = :workspace AND l.verb = :verb AND l.at >= :from AND l.at < :to \
        AND (CAST(:sprint AS TEXT) IS NULL OR t.sprint = :sprint)";
    pub(crate) HAPPENED(verb, from, to, limit) = "SELECT ", EntryRow::LIST, " FROM ledger l \
        WHERE l.workspace = :workspace AND l.verb = :verb AND l.at >= :from AND l.at < :to ORDER BY l.at DESC, l.seq \
        DESC LIMIT :limit";
    /// In the order of the record, which is not always that of the clock.
    BETWEEN(after, from, to) = "SELECT l.seq, ", EntryRow::LIST, " FROM ledger l \
        WHERE +l.workspace = :workspace AND l.seq > :after AND l.at >= :from AND l.at < :to ORDER BY l.seq";
    SEARCHED(..by: SearchParams) = "SELECT ", EntryRow::LIST, " FROM ledger l WHERE +l.workspace = :workspace ",
        SEARCHED_BY;
    SEARCHED_OF(task, ..by: SearchParams) = "SELECT ", EntryRow::LIST, " FROM ledger l \
        WHERE l.workspace = :workspace AND l.task = :task ", SEARCHED_BY;
    TAKEN(sprint) = "SELECT a.task, a.assignee, a.workstation, a.end_reason, a.forced, a.route, t.type, \
        t.sprint \
        FROM assignment a JOIN task t ON t.workspace = a.workspace AND t.id = a.task \
        WHERE a.workspace = :workspace AND (CAST(:sprint AS TEXT) IS NULL OR t.sprint = :sprint)";
    PLANNED(sprint) = "SELECT t.state, t.created_at FROM task t \
        WHERE +t.workspace = :workspace AND (CAST(:sprint AS TEXT) IS NULL OR t.sprint = :sprint)";
    /// The head of the queue; what of it waits for somebody is seen row by row.
    pub(crate) WANTING(limit) = "SELECT t.id, t.title, t.state, t.blocker, t.checks, t.risk, t.updated_at, \
        t.exceptions FROM task t \
        WHERE ", ACTIVE, "ORDER BY t.priority, t.born LIMIT :limit";
    pub(crate) WORKED(worker, from, to) = "SELECT 1 FROM session WHERE workspace = :workspace AND worker = :worker AND \
        started_at >= :from AND started_at < :to LIMIT 1";
    ANY_APPROVAL = "SELECT 1 FROM approval WHERE workspace = :workspace LIMIT 1";
    pub(crate) BRIEF(task) = "SELECT title, type, kind, sprint, state, checks FROM task WHERE workspace = :workspace \
        AND id = :task";
}

/// From a moment, up to another one and without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub from: Timestamp,
    pub to: Timestamp,
}

/// Tells when each entry of a verb was made.
pub fn times(tx: &mut dyn Tx, verb: &str, span: Span, look: &mut dyn FnMut(Timestamp)) -> Result<()> {
    tx.visit(&TIMES { verb, from: span.from, to: span.to }, &mut |row| {
        look(time(row)?);
        Ok(())
    })
}

/// The same of a sprint's tasks, or of all.
pub fn times_of_sprint(
    tx: &mut dyn Tx,
    verb: &str,
    span: Span,
    sprint: Option<&str>,
    look: &mut dyn FnMut(Timestamp),
) -> Result<()> {
    let question = TIMES_OF_SPRINT { verb, from: span.from, to: span.to, sprint };
    tx.visit(&question, &mut |row| {
        look(time(row)?);
        Ok(())
    })
}

fn time(row: &[Value<'_>]) -> Result<Timestamp> {
    match row {
        [Value::Int(at)] => Ok(Timestamp(*at)),
        _ => Err(StoreError::Corrupt("an entry without its time".into())),
    }
}

/// Entries of a verb, the newest first.
pub fn happened(tx: &mut dyn Tx, verb: &str, span: Span, limit: i64) -> Result<Vec<Entry>> {
    let rows = tx.rows(&HAPPENED { verb, from: span.from, to: span.to, limit })?;
    rows.into_iter().map(|mut row| codec::entry(&mut row)).collect()
}

/// Tells every entry of a span, in the order of the record.
pub fn between(
    tx: &mut dyn Tx,
    after: Seq,
    span: Span,
    each: &mut dyn FnMut(Entry) -> Result<()>,
) -> Result<()> {
    tx.each(&BETWEEN { after, from: span.from, to: span.to }, &mut |mut row| {
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

/// Matching entries, the newest first; not more than is told at once.
pub fn search(tx: &mut dyn Tx, search: &Search<'_>, limit: i64) -> Result<Vec<Entry>> {
    let by = row!(SearchParams {
        before: search.before,
        down_to: search.down_to,
        actor: search.actor.map(Handle::as_str),
        verb: search.verb,
        from: search.span.from.0,
        to: search.span.to.0,
        limit: limit,
    });
    let mut found = BoundedEntries::default();
    let mut each = |row| found.take(row);
    match search.task {
        Some(task) => tx.each(&SEARCHED_OF { task, by }, &mut each)?,
        None => tx.each(&SEARCHED { by }, &mut each)?,
    }
    Ok(found.entries)
}

/// One assignment, with what its task is about.
#[derive(Debug)]
pub struct TakenRow {
    pub task: String,
    pub assignee: Handle,
    pub workstation: String,
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
    tx.each(&TAKEN { sprint }, &mut |mut row| {
        each(TakenRow {
            task: row.text()?,
            assignee: row.parsed()?,
            workstation: row.text()?,
            end_reason: row.opt_text()?,
            forced: row.flag()?,
            route: codec::route_of(row.opt_text()?)?,
            task_type: row.opt_text()?,
            sprint: row.opt_text()?,
        })
    })
}

/// One task of a sprint: where it stands, and when it was asked for.
#[derive(Debug)]
pub struct Planned {
    pub state: StateName,
    pub created_at: Timestamp,
}

/// Tells every task of a sprint, or of all.
pub fn planned(
    tx: &mut dyn Tx,
    sprint: Option<&str>,
    each: &mut dyn FnMut(Planned) -> Result<()>,
) -> Result<()> {
    tx.each(&PLANNED { sprint }, &mut |mut row| {
        each(Planned {
            state: codec::word(row.text()?.as_str(), StateName::parse)?,
            created_at: Timestamp(row.int()?),
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
    let (mut found, mut bytes) = (Vec::new(), 0);
    tx.each(&WANTING { limit: window }, &mut |mut row| {
        let mut one = Wanting {
            task: row.parsed()?,
            title: row.text()?,
            state: codec::word(row.text()?.as_str(), StateName::parse)?,
            blocker: row.opt_text()?,
            checks: codec::json_list(row.opt_text()?)?,
            risk: codec::word(row.text()?.as_str(), Risk::parse)?,
            updated_at: Timestamp(row.int()?),
            exceptions: codec::exceptions_of(row.opt_text()?)?,
        };
        one.checks.retain(|check| check.state == CheckState::Proposed);
        bytes += one.checks.iter().map(|check| check.command.len()).sum::<usize>();
        if bytes > BYTES {
            // Those before them are enough for one look.
            one.checks.clear();
        }
        let proposed = !one.checks.is_empty();
        if one.blocker.is_some() || !one.exceptions.is_empty() || proposed {
            found.push(one);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Whether a worker had a session that began in a span.
pub fn worked(tx: &mut dyn Tx, worker: &Handle, span: Span) -> Result<bool> {
    Ok(tx.row(&WORKED { worker, from: span.from, to: span.to })?.is_some())
}

/// Whether anybody ever approved a timesheet here.
pub fn is_approving(tx: &mut dyn Tx) -> Result<bool> {
    Ok(tx.row(&ANY_APPROVAL {})?.is_some())
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
    let Some(mut row) = tx.row(&BRIEF { task })? else { return Ok(None) };
    Ok(Some(Brief {
        title: row.text()?,
        task_type: row.opt_text()?,
        kind: row.text()?,
        sprint: row.opt_text()?,
        state: codec::word(row.text()?.as_str(), StateName::parse)?,
        checks: codec::json_list(row.opt_text()?)?,
    }))
}
