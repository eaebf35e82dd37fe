//! What agents have used up, as far as limits ask: of a task, of a worker's day, of a sprint, of a day (mission E10).
//!
//! Each is one question whose answer is as long as what it is about: sessions, and what their records told.

use super::session::corrected_session;
use crate::error::{Result, StoreError};
use crate::port::{Row, Tx};
use crate::sql;
use crate::statement::Statement;
use onus_core::event::Event;
use onus_core::id::{Handle, Seq, TaskId};
use onus_core::limits::Used;
use onus_core::refusal::Finding;
use onus_core::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// A session that began longer ago than this does not reach into a day.
macro_rules! day {
    () => {
        "86400000"
    };
}

macro_rules! used_columns {
    () => {
        "SELECT s.id, s.task, s.epoch, coalesce(c.started_at, s.started_at), coalesce(c.ended_at, s.ended_at), a.renewed_at, \
         a.ttl_ms, a.end_reason, f.key, f.input_tokens + f.output_tokens + f.cache_read_tokens + f.cache_creation_tokens, \
         f.cost_micros, f.turns, f.seq FROM "
    };
}

/// Behind the sessions, in this order: `CROSS` keeps a database from beginning with the workers.
macro_rules! used_joins {
    () => {
        "CROSS JOIN worker k CROSS JOIN assignment a LEFT JOIN session_fact f ON f.workspace = s.workspace AND f.kind = 'used' \
         AND f.session = s.id WHERE s.workspace = :workspace AND k.workspace = s.workspace AND k.handle = s.worker \
         AND k.kind = 'agent' AND a.workspace = s.workspace AND a.task = s.task AND a.epoch = s.epoch "
    };
}

sql! {
    pub(crate) USED_BY_TASK(task, since) = used_columns!(), corrected_session!(), used_joins!(),
        "AND s.task = :task AND s.id >= :since";
    pub(crate) USED_BY_WORKER(worker, from, to) = used_columns!(), corrected_session!(), used_joins!(),
        "AND s.worker = :worker AND s.started_at >= :from - ", day!(), " AND s.started_at < :to";
    pub(crate) USED_BY_SPRINT(sprint) = used_columns!(), "task t CROSS JOIN ", corrected_session!(), used_joins!(),
        "AND t.workspace = s.workspace AND t.sprint = :sprint AND t.workspace = :workspace AND s.task = t.id";
    pub(crate) USED_IN_DAY(from, to) = used_columns!(), corrected_session!(), used_joins!(),
        "AND s.started_at >= :from - ", day!(), " AND s.started_at < :to";
    /// By the task's own chain: there may be many such entries in the workspace.
    pub(crate) LAST_OF(task, verb) = "SELECT seq, at, data FROM ledger WHERE workspace = :workspace AND seq = \
        (SELECT max(seq + 0) FROM ledger WHERE workspace = :workspace AND task = :task AND verb || '' = :verb)";
    pub(crate) SPRINTS = "SELECT DISTINCT sprint FROM task WHERE workspace = :workspace AND sprint IS NOT NULL \
        AND state IN ('open', 'in_progress', 'blocked') ORDER BY sprint LIMIT 50";
}

/// From a moment, up to another one and without it.
#[derive(Debug, Clone, Copy)]
pub struct Day {
    pub from: Timestamp,
    pub to: Timestamp,
}

/// What a task has used up in the sessions that began with an entry or after it.
pub fn used_by_task(tx: &mut dyn Tx, task: &TaskId, since: Seq, now: Timestamp) -> Result<Used> {
    sum(tx, &USED_BY_TASK { task, since }, None, now)
}

pub fn used_by_worker(tx: &mut dyn Tx, worker: &Handle, day: Day, now: Timestamp) -> Result<Used> {
    sum(tx, &USED_BY_WORKER { worker, from: day.from, to: day.to }, Some(day), now)
}

pub fn used_by_sprint(tx: &mut dyn Tx, sprint: &str, now: Timestamp) -> Result<Used> {
    sum(tx, &USED_BY_SPRINT { sprint }, None, now)
}

pub fn used_in_day(tx: &mut dyn Tx, day: Day, now: Timestamp) -> Result<Used> {
    sum(tx, &USED_IN_DAY { from: day.from, to: day.to }, Some(day), now)
}

/// The sprints that somebody still works for.
pub fn sprints(tx: &mut dyn Tx) -> Result<Vec<String>> {
    tx.rows(&SPRINTS {})?.into_iter().map(|mut row| row.text()).collect()
}

/// When a person last let a task go on beyond its limits.
pub fn lifted(tx: &mut dyn Tx, task: &TaskId) -> Result<Option<(Seq, Timestamp)>> {
    let found = tx.row(&LAST_OF { task, verb: "limits_lifted" })?;
    found.map(|mut row| Ok((row.int()?, Timestamp(row.int()?)))).transpose()
}

/// The limits that stopped a task when it was last blocked.
pub fn stopped_by(tx: &mut dyn Tx, task: &TaskId) -> Result<Vec<Finding>> {
    let Some(mut row) = tx.row(&LAST_OF { task, verb: "blocked" })? else {
        return Ok(Vec::new());
    };
    let (_, _, data) = (row.int()?, row.int()?, row.text()?);
    match Event::parse("blocked", &data).map_err(StoreError::Corrupt)? {
        Event::Blocked(blocked) => Ok(blocked.limits),
        _ => Ok(Vec::new()),
    }
}

/// What one word of a record tells; the last one counts.
struct Told {
    seq: Seq,
    tokens: i64,
    cost_micros: Option<i64>,
    turns: i64,
}

fn sum(tx: &mut dyn Tx, question: &dyn Statement, day: Option<Day>, now: Timestamp) -> Result<Used> {
    let mut used = Used::default();
    let mut seen: BTreeSet<Seq> = BTreeSet::new();
    let mut ended: BTreeSet<(String, i64)> = BTreeSet::new();
    let mut records: BTreeMap<(Seq, String), Told> = BTreeMap::new();
    for mut row in tx.rows(question)? {
        let (id, task, epoch) = (row.int()?, row.text()?, row.int()?);
        let (from, to) = span(&mut row, now)?;
        let end_reason = row.opt_text()?;
        if seen.insert(id) {
            let clipped = day.map_or((from, to), |day| (from.max(day.from), to.min(day.to)));
            used.time_ms += clipped.1.since(clipped.0).0.max(0);
        }
        // Like a timesheet: what a session used up belongs to the day on which it began.
        if day.is_some_and(|day| from < day.from) {
            continue;
        }
        if end_reason.is_some_and(|reason| reason != "completed") {
            ended.insert((task, epoch));
        }
        if let Some(key) = row.opt_text()? {
            let (tokens, cost_micros) = (row.int()?, row.opt_int()?);
            let (turns, seq) = (row.opt_int()?.unwrap_or(0), row.int()?);
            let last = records.get(&(id, key.clone())).map_or(Seq::MIN, |known| known.seq);
            if seq > last {
                records.insert((id, key), Told { seq, tokens, cost_micros, turns });
            }
        }
    }
    for told in records.values() {
        used.tokens += told.tokens;
        used.turns += told.turns;
        used.cost_micros += told.cost_micros.unwrap_or(0);
        used.is_cost_partial |= told.cost_micros.is_none() && told.tokens > 0;
    }
    used.attempts = i64::try_from(ended.len()).unwrap_or(i64::MAX);
    Ok(used)
}

/// From when until when a session counts: one that runs up to now, while its holder's lease does; else up to the last sign of
/// life.
fn span(row: &mut Row, now: Timestamp) -> Result<(Timestamp, Timestamp)> {
    let (from, to) = (Timestamp(row.int()?), row.opt_int()?.map(Timestamp));
    let (renewed_at, ttl) = (row.int()?, row.int()?);
    let alive = now.0 < renewed_at.saturating_add(ttl);
    let seen = if alive { now } else { Timestamp(renewed_at) };
    Ok((from, to.unwrap_or(seen).max(from)))
}
