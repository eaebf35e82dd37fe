//! Sessions as they count: who worked on what, from when until when, and what it used up (mission A4).
//!
//! A period is read in one pass in the order of its sessions' beginnings. Sessions that run, last longer than a day or
//! were corrected are few: each kind is read for itself.

use crate::error::{Result, StoreError};
use crate::load::session::{corrected_session, usage};
use crate::port::{Row, Tx, Value};
use crate::sql;
use onus_core::event::Event;
use onus_core::id::{Handle, Seq, TaskId};
use onus_core::session::{Counts, Usage};
use onus_core::time::{Date, Timestamp};
use onus_core::timesheet::About;
use std::collections::HashMap;

/// The kinds of facts about a session.
pub const CORRECTED: &str = "corrected";
/// A correction that waits for another person.
pub const PROPOSED: &str = "proposed";
pub const USED: &str = "used";

macro_rules! long_or_running {
    () => {
        "(ended_at IS NULL OR ended_at - started_at > 86400000) "
    };
}

macro_rules! listed_columns {
    () => {
        "s.id, s.task, s.worker, s.workstation, s.started_at, s.ended_at, s.end_reason, s.epoch, c.seq, c.started_at, c.ended_at, \
         a.renewed_at, p.seq, p.started_at, p.ended_at "
    };
}

macro_rules! listed_from {
    () => {
        concat!(
            "FROM ",
            corrected_session!(),
            "LEFT JOIN assignment a ON a.workspace = s.workspace AND a.task = s.task AND a.epoch = s.epoch \
             LEFT JOIN session_fact p ON p.workspace = s.workspace AND p.seq = (SELECT f.seq FROM session_fact f \
             WHERE f.workspace = s.workspace AND f.kind = 'proposed' AND f.session = s.id \
             AND f.seq > coalesce(c.seq, 0) ORDER BY f.seq DESC LIMIT 1) "
        )
    };
}

sql! {
    /// Sessions of at most a day that touch a period.
    pub(crate) WITHIN(from, to, as_of) = "SELECT id, task, worker, started_at, ended_at FROM session \
        WHERE workspace = :workspace AND started_at >= :from - 86400000 AND started_at < :to AND id <= :as_of \
        AND ended_at >= :from AND ended_at - started_at <= 86400000 ORDER BY started_at";
    pub(crate) WITHIN_OF(from, to, as_of, worker) = "SELECT id, task, worker, started_at, ended_at FROM session \
        WHERE workspace = :workspace AND worker = :worker AND started_at >= :from - 86400000 AND started_at < :to AND \
        id <= :as_of \
        AND ended_at >= :from AND ended_at - started_at <= 86400000 ORDER BY started_at";
    LONG(from, to, as_of) = "SELECT id, task, worker, started_at, ended_at FROM session \
        WHERE workspace = :workspace AND ", long_or_running!(), "AND started_at < :to AND id <= :as_of AND ended_at >= \
        :from";
    /// A running session counts up to the last sign of life.
    RUNNING(to, as_of) = "SELECT s.id, s.task, s.worker, s.started_at, a.renewed_at FROM session s \
        JOIN assignment a ON a.workspace = s.workspace AND a.task = s.task AND a.epoch = s.epoch \
        WHERE s.workspace = :workspace AND (s.ended_at IS NULL OR s.ended_at - s.started_at > 86400000) AND s.ended_at \
        IS NULL \
        AND s.started_at < :to AND s.id <= :as_of";
    CORRECTIONS(as_of) = "SELECT s.id, s.task, s.worker, f.started_at, f.ended_at FROM session_fact f \
        CROSS JOIN session s WHERE f.workspace = :workspace AND f.kind = 'corrected' AND f.seq <= :as_of \
        AND s.workspace = f.workspace AND s.id = f.session \
        ORDER BY f.session, f.seq";
    pub(crate) USED_BETWEEN(first, last, as_of) = "SELECT f.session, s.task, s.worker, s.started_at, f.key, f.source, \
        f.model, f.input_tokens, \
        f.output_tokens, f.cache_read_tokens, f.cache_creation_tokens, f.cost_micros, f.turns \
        FROM session_fact f CROSS JOIN session s \
        WHERE f.workspace = :workspace AND f.kind = 'used' AND f.session >= :first AND f.session <= :last AND f.seq <= \
        :as_of \
        AND s.workspace = f.workspace AND s.id = f.session ORDER BY f.session, f.seq";
    pub(crate) ABOUT(task) = "SELECT type, kind, sprint FROM task WHERE workspace = :workspace AND id = :task";
    pub(crate) TITLE(task) = "SELECT title FROM task WHERE workspace = :workspace AND id = :task";
    pub(crate) BY_TASK(task, before, limit) = "SELECT ", listed_columns!(), listed_from!(), "WHERE s.workspace = :workspace \
        AND s.task = :task AND s.id < :before ORDER BY s.id DESC LIMIT :limit";
    pub(crate) BY_WORKER(worker, limit) = "SELECT ", listed_columns!(), listed_from!(),
        "WHERE s.workspace = :workspace AND s.worker = :worker ORDER BY s.started_at DESC LIMIT :limit";
    ALL(limit) = "SELECT ", listed_columns!(), listed_from!(), "WHERE +s.workspace = :workspace ORDER BY s.id DESC \
        LIMIT :limit";
    ONE(session) = "SELECT ", listed_columns!(), listed_from!(), "WHERE s.workspace = :workspace AND s.id = :session";
    pub(crate) APPROVALS(worker, from, to) = "SELECT p.seq, p.first_day, p.last_day, p.fingerprint, l.actor, l.at FROM \
        approval p \
        CROSS JOIN ledger l WHERE p.workspace = :workspace AND p.worker = :worker AND l.workspace = p.workspace AND \
        l.seq = p.seq \
        AND p.first_day <= :to AND p.last_day >= :from";
    EVERY_APPROVAL = "SELECT seq, worker, first_day, last_day, fingerprint FROM approval WHERE workspace = :workspace \
        ORDER BY seq";
    /// What others found in a worker's work is part of its day.
    ACTS(task, worker, from, to) = "SELECT l.seq, l.at, l.actor, l.verb, l.data, n.kind, n.text FROM ledger l LEFT \
        JOIN note n \
        ON n.workspace = l.workspace AND n.seq = l.seq \
        WHERE l.workspace = :workspace AND l.task = :task AND (l.actor = :worker OR l.verb = 'reviewed') AND l.at >= \
        :from AND l.at < :to \
        ORDER BY l.seq";
}

/// A stretch of time, and up to which entry the record is believed: the past can be asked for as it was then.
#[derive(Debug, Clone, Copy)]
pub struct Period<'a> {
    pub from: Timestamp,
    pub to: Timestamp,
    pub as_of: Seq,
    pub worker: Option<&'a Handle>,
}

/// A session as it counts.
#[derive(Debug, Clone, Copy)]
pub struct Counted<'a> {
    pub id: Seq,
    pub task: &'a str,
    pub worker: &'a str,
    pub from: Timestamp,
    pub to: Timestamp,
    pub is_running: bool,
    /// A person gave its beginning and end.
    pub is_corrected: bool,
}

/// A session whose beginning and end a person gave.
#[derive(Debug)]
struct Correction {
    task: String,
    worker: String,
    from: Timestamp,
    to: Timestamp,
}

/// The corrections that are in force.
#[derive(Debug, Default)]
pub struct Corrections(HashMap<Seq, Correction>);

pub fn corrections(tx: &mut dyn Tx, as_of: Seq) -> Result<Corrections> {
    let mut found = HashMap::new();
    tx.each(&CORRECTIONS { as_of }, &mut |mut row| {
        let id = row.int()?;
        let (task, worker) = (row.text()?, row.text()?);
        let (from, to) = (Timestamp(row.int()?), Timestamp(row.int()?));
        found.insert(id, Correction { task, worker, from, to });
        Ok(())
    })?;
    Ok(Corrections(found))
}

/// Tells every session that touches a period, and every one that began before its end and still runs.
pub fn sessions(
    tx: &mut dyn Tx,
    period: &Period<'_>,
    corrections: &Corrections,
    look: &mut dyn FnMut(Counted<'_>) -> Result<()>,
) -> Result<()> {
    let is_about = |worker: &str| period.worker.is_none_or(|only| only.as_str() == worker);
    for (id, Correction { task, worker, from, to }) in &corrections.0 {
        if is_about(worker) && *from < period.to && *to >= period.from {
            let (from, to) = (*from, *to);
            look(Counted { id: *id, task, worker, from, to, is_running: false, is_corrected: true })?;
        }
    }
    let mut tell = |row: &[Value<'_>], is_running| match row {
        [Value::Int(id), Value::Text(task), Value::Text(worker), Value::Int(from), Value::Int(to)] => {
            if corrections.0.contains_key(id) || !is_about(worker) {
                return Ok(());
            }
            let (from, to) = (Timestamp(*from), Timestamp(*to));
            // A sign of life may have come in the very second in which the session began.
            let to = if is_running { to.whole_second().max(from) } else { to };
            look(Counted { id: *id, task, worker, from, to, is_running, is_corrected: false })
        }
        _ => Err(StoreError::Corrupt("a session makes no sense".into())),
    };
    let Period { from, to, as_of, worker } = *period;
    match worker {
        None => tx.visit(&WITHIN { from, to, as_of }, &mut |row| tell(row, false))?,
        Some(worker) => tx.visit(&WITHIN_OF { from, to, as_of, worker }, &mut |row| tell(row, false))?,
    }
    tx.visit(&LONG { from, to, as_of }, &mut |row| tell(row, false))?;
    tx.visit(&RUNNING { to, as_of }, &mut |row| tell(row, true))
}

/// What was used up in one session, and by whom.
#[derive(Debug, Clone)]
pub struct Used {
    pub session: Seq,
    pub task: String,
    pub worker: String,
    /// When the session began, as it counts.
    pub began: Timestamp,
    /// The last word of each record.
    pub usages: Vec<Usage>,
}

impl Used {
    pub fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        self.usages.iter().for_each(|usage| sum.add(&usage.counts));
        sum
    }
}

/// Tells what was used up in the sessions between two numbers, session by session.
pub fn used(
    tx: &mut dyn Tx,
    (first, last): (Seq, Seq),
    as_of: Seq,
    corrections: &Corrections,
    look: &mut dyn FnMut(Used) -> Result<()>,
) -> Result<()> {
    let mut open: Option<Used> = None;
    tx.each(&USED_BETWEEN { first, last, as_of }, &mut |mut row| {
        let session = row.int()?;
        let (task, worker, began) = (row.text()?, row.text()?, Timestamp(row.int()?));
        let said = usage(&mut row)?;
        if open.as_ref().is_none_or(|used| used.session != session)
            && let Some(done) = open.take()
        {
            look(done)?;
        }
        let began = corrections.0.get(&session).map_or(began, |correction| correction.from);
        let used = open.get_or_insert_with(|| Used { session, task, worker, began, usages: Vec::new() });
        used.usages.retain(|known| known.key != said.key);
        used.usages.push(said);
        Ok(())
    })?;
    open.map_or(Ok(()), look)
}

/// The same of some sessions only: between the first and the last of one worker lie those of everybody.
pub fn used_in(
    tx: &mut dyn Tx,
    sessions: impl Iterator<Item = Seq>,
    as_of: Seq,
    corrections: &Corrections,
    look: &mut dyn FnMut(Used) -> Result<()>,
) -> Result<()> {
    for session in sessions {
        used(tx, (session, session), as_of, corrections, look)?;
    }
    Ok(())
}

/// What a sheet must know of a task.
pub fn about(tx: &mut dyn Tx, task: &TaskId) -> Result<About> {
    match tx.row(&ABOUT { task })? {
        Some(mut row) => Ok(About { task_type: row.opt_text()?, kind: row.text()?, sprint: row.opt_text()? }),
        None => Err(StoreError::Corrupt(format!("{task} has sessions, and no row"))),
    }
}

pub fn title(tx: &mut dyn Tx, task: &TaskId) -> Result<String> {
    tx.row(&TITLE { task })?.map_or(Ok(String::new()), |mut row| row.text())
}

/// A session with its last correction.
#[derive(Debug, Clone)]
pub struct Listed {
    pub id: Seq,
    pub task: TaskId,
    pub worker: Handle,
    pub workstation: String,
    /// As it was recorded.
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub end_reason: Option<String>,
    pub epoch: i64,
    /// The entry that corrected it, and what it said.
    pub correction: Option<(Seq, Timestamp, Timestamp)>,
    /// The holder's last sign of life.
    pub renewed_at: Option<Timestamp>,
    /// A correction that waits for another person.
    pub proposal: Option<(Seq, Timestamp, Timestamp)>,
}

impl Listed {
    /// When it began, as it counts.
    pub fn began(&self) -> Timestamp {
        self.correction.map_or(self.started_at, |(_, from, _)| from)
    }

    /// When it ended, as it counts; none while it runs.
    pub fn ended(&self) -> Option<Timestamp> {
        self.correction.map(|(_, _, to)| to).or(self.ended_at)
    }

    /// Up to when it counts: its end, else the holder's last sign of life. Never up to now: nobody has seen that yet.
    pub fn counts_until(&self) -> Timestamp {
        let seen = || self.renewed_at.map_or(self.started_at, Timestamp::whole_second);
        self.ended().unwrap_or_else(seen).max(self.began())
    }
}

/// Which sessions a list is about.
#[derive(Debug, Clone, Copy)]
pub enum Which<'a> {
    All,
    OfTask(&'a TaskId),
    /// Those that began before an entry.
    OfTaskBefore(&'a TaskId, Seq),
    OfWorker(&'a Handle),
    One(Seq),
}

/// Sessions, the latest first.
pub fn list(tx: &mut dyn Tx, which: Which<'_>, limit: i64) -> Result<Vec<Listed>> {
    let rows = match which {
        Which::All => tx.rows(&ALL { limit })?,
        Which::OfTask(task) => tx.rows(&BY_TASK { task, before: Seq::MAX, limit })?,
        Which::OfTaskBefore(task, before) => tx.rows(&BY_TASK { task, before, limit })?,
        Which::OfWorker(worker) => tx.rows(&BY_WORKER { worker, limit })?,
        Which::One(id) => tx.rows(&ONE { session: id })?,
    };
    rows.into_iter().map(listed).collect()
}

/// What an entry says about a session's times.
fn said(row: &mut Row) -> Result<Option<(Seq, Timestamp, Timestamp)>> {
    let (seq, from, to) = (row.opt_int()?, row.opt_int()?, row.opt_int()?);
    Ok(seq.zip(from).zip(to).map(|((seq, from), to)| (seq, Timestamp(from), Timestamp(to))))
}

fn listed(mut row: Row) -> Result<Listed> {
    let id = row.int()?;
    let (task, worker, workstation) = (row.parsed()?, row.parsed()?, row.text()?);
    let started_at = Timestamp(row.int()?);
    let ended_at = row.opt_int()?.map(Timestamp);
    let end_reason = row.opt_text()?;
    let epoch = row.int()?;
    let correction = said(&mut row)?;
    let renewed_at = row.opt_int()?.map(Timestamp);
    let proposal = said(&mut row)?;
    Ok(Listed {
        id,
        task,
        worker,
        workstation,
        started_at,
        ended_at,
        end_reason,
        epoch,
        correction,
        renewed_at,
        proposal,
    })
}

/// A period that a person approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    pub seq: Seq,
    pub from: Date,
    pub to: Date,
    pub fingerprint: onus_core::hash::Digest,
    pub by: Handle,
    pub at: Timestamp,
}

/// The approvals that touch some days of a worker, the latest last.
pub fn approvals(tx: &mut dyn Tx, worker: &Handle, (from, to): (Date, Date)) -> Result<Vec<Approval>> {
    let rows = tx.rows(&APPROVALS { worker, from, to })?.into_iter().map(|mut row| {
        Ok(Approval {
            seq: row.int()?,
            from: row.parsed()?,
            to: row.parsed()?,
            fingerprint: row.digest()?,
            by: row.parsed()?,
            at: Timestamp(row.int()?),
        })
    });
    let mut found: Vec<Approval> = rows.collect::<Result<_>>()?;
    found.sort_by_key(|approval| approval.seq);
    Ok(found)
}

/// Every approval as its row has it, by its entry.
pub fn every_approval(tx: &mut dyn Tx) -> Result<Vec<(Seq, onus_core::event::TimesheetApproved)>> {
    let rows = tx.rows(&EVERY_APPROVAL {})?;
    rows.into_iter()
        .map(|mut row| {
            let seq = row.int()?;
            let (worker, from, to) = (row.parsed()?, row.parsed()?, row.parsed()?);
            let fingerprint = row.digest()?;
            Ok((seq, onus_core::event::TimesheetApproved { worker, from, to, fingerprint }))
        })
        .collect()
}

/// Something a worker did to a task, or another one said about it.
#[derive(Debug, Clone)]
pub struct Act {
    pub seq: Seq,
    pub at: Timestamp,
    pub by: Handle,
    pub event: Event,
    /// The note that came with it: its kind and words.
    pub note: Option<(String, String)>,
}

/// What a worker did to a task between two moments, and how it was reviewed.
pub fn acts(
    tx: &mut dyn Tx,
    task: &TaskId,
    worker: &Handle,
    (from, to): (Timestamp, Timestamp),
    each: &mut dyn FnMut(Act) -> Result<()>,
) -> Result<()> {
    tx.each(&ACTS { task, worker, from, to }, &mut |mut row| {
        let (seq, at, by) = (row.int()?, Timestamp(row.int()?), row.parsed()?);
        let (verb, data) = (row.text()?, row.text()?);
        let event = Event::parse(&verb, &data).map_err(StoreError::Corrupt)?;
        let (kind, text) = (row.opt_text()?, row.opt_text()?);
        each(Act { seq, at, by, event, note: kind.zip(text) })
    })
}
