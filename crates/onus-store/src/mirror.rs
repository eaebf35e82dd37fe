//! The outbox as rows: how far each mirror has been told of each task, and who may tell it.
//!
//! Nothing is written here when something happens: the ledger has it, and a cursor says how far it was sorted by task. So a
//! mirror that is away costs a claim nothing.

use crate::codec;
use crate::error::{Result, StoreError};
use crate::port::{Row, Tx};
use crate::sql;
use crate::tables::{MirrorRow, MirrorTaskRow};
use onus_core::id::{Epoch, MirrorName, Seq};
use onus_core::mirror::Counterpart;
use onus_core::mirror::drift::Drift;
use onus_core::time::Timestamp;

sql! {
    FIND(mirror) = "SELECT ", MirrorRow::LIST, " FROM mirror m WHERE m.workspace = :workspace AND m.name = :mirror";
    EVERY = "SELECT ", MirrorRow::LIST, " FROM mirror m WHERE m.workspace = :workspace ORDER BY m.name";
    BEGIN(mirror, heard) = "INSERT INTO mirror (workspace, name, heard, epoch, sender, lent_until, failures, next_at, error, \
        polled, polled_at) VALUES (:workspace, :mirror, :heard, 0, NULL, 0, 0, 0, NULL, NULL, 0) \
        ON CONFLICT (workspace, name) DO NOTHING";
    LEND(mirror, sender, until, now) = "UPDATE mirror SET epoch = epoch + 1, sender = :sender, lent_until = :until \
        WHERE workspace = :workspace AND name = :mirror AND (sender IS NULL OR lent_until < :now)";
    KEEP(mirror, epoch, until) = "UPDATE mirror SET lent_until = :until WHERE workspace = :workspace AND name = :mirror \
        AND epoch = :epoch AND sender IS NOT NULL";
    GIVE_BACK(mirror, epoch) = "UPDATE mirror SET sender = NULL, lent_until = 0 WHERE workspace = :workspace \
        AND name = :mirror AND epoch = :epoch";
    BURY(mirror, sender) = "UPDATE mirror SET sender = NULL, lent_until = 0 WHERE workspace = :workspace \
        AND name = :mirror AND sender = :sender";
    STAND(mirror, failures, next_at, error) = "UPDATE mirror SET failures = :failures, next_at = :next_at, error = :error \
        WHERE workspace = :workspace AND name = :mirror";
    POLLED(mirror, polled, at) = "UPDATE mirror SET polled = :polled, polled_at = :at WHERE workspace = :workspace \
        AND name = :mirror";
    HEARD(mirror, heard) = "UPDATE mirror SET heard = :heard WHERE workspace = :workspace AND name = :mirror AND heard < :heard";
    HEAR(mirror, task, heard, delivered, since) = "INSERT INTO mirror_task (workspace, mirror, task, heard, delivered, since, attempts, \
        next_at, stuck, error, far_id, told, drift) \
        VALUES (:workspace, :mirror, :task, :heard, :delivered, :since, 0, 0, 0, NULL, NULL, NULL, NULL) \
        ON CONFLICT (workspace, mirror, task) DO UPDATE SET heard = excluded.heard, since = CASE \
        WHEN mirror_task.heard > mirror_task.delivered THEN mirror_task.since ELSE excluded.since END";
    ONE_TASK(mirror, task) = "SELECT ", MirrorTaskRow::LIST, " FROM mirror_task k WHERE k.workspace = :workspace \
        AND k.mirror = :mirror AND k.task = :task";
    FAR(mirror, far_id) = "SELECT ", MirrorTaskRow::LIST, " FROM mirror_task k WHERE k.workspace = :workspace \
        AND k.mirror = :mirror AND k.far_id = :far_id ORDER BY k.task";
    DUE(mirror, now, limit) = "SELECT ", MirrorTaskRow::LIST, " FROM mirror_task k WHERE k.workspace = :workspace \
        AND k.mirror = :mirror AND k.heard > k.delivered AND k.stuck = 0 AND k.next_at <= :now ORDER BY k.since, k.task \
        LIMIT :limit";
    WAITING(mirror) = "SELECT count(*), CAST(coalesce(sum(k.stuck), 0) AS BIGINT), min(k.since) FROM mirror_task k \
        WHERE k.workspace = :workspace AND k.mirror = :mirror AND k.heard > k.delivered";
    STUCK(mirror, limit) = "SELECT ", MirrorTaskRow::LIST, " FROM mirror_task k WHERE k.workspace = :workspace \
        AND k.mirror = :mirror AND k.heard > k.delivered AND k.stuck = 1 ORDER BY k.since, k.task LIMIT :limit";
    KNOWN(mirror, after, limit) = "SELECT ", MirrorTaskRow::LIST, " FROM mirror_task k WHERE k.workspace = :workspace \
        AND k.mirror = :mirror AND k.task > :after ORDER BY k.task LIMIT :limit";
    DRIFTED(mirror, limit) = "SELECT ", MirrorTaskRow::LIST, " FROM mirror_task k WHERE k.workspace = :workspace \
        AND k.mirror = :mirror AND k.drift IS NOT NULL ORDER BY k.task LIMIT :limit";
    PUT(mirror, task, delivered, since, attempts, next_at, stuck, error, far_id, told, drift) = "UPDATE mirror_task SET \
        delivered = :delivered, since = :since, attempts = :attempts, next_at = :next_at, stuck = :stuck, error = :error, \
        far_id = :far_id, told = :told, drift = :drift \
        WHERE workspace = :workspace AND mirror = :mirror AND task = :task";
    /// Tells every story again from its beginning.
    RETELL(mirror) = "UPDATE mirror_task SET delivered = 0, stuck = 0, attempts = 0, next_at = 0, error = NULL \
        WHERE workspace = :workspace AND mirror = :mirror";
    RETRY(mirror, task) = "UPDATE mirror_task SET stuck = 0, attempts = 0, next_at = 0 WHERE workspace = :workspace \
        AND mirror = :mirror AND heard > delivered AND (CAST(:task AS TEXT) IS NULL OR task = :task)";
}

/// A mirror as it stands.
#[derive(Debug, Clone)]
pub struct StoredMirror {
    pub name: MirrorName,
    pub heard: Seq,
    pub epoch: Epoch,
    pub sender: Option<String>,
    pub lent_until: Timestamp,
    pub failures: i64,
    pub next_at: Timestamp,
    pub error: Option<String>,
    pub polled: Option<String>,
    pub polled_at: Timestamp,
}

/// How far a mirror has been told of one task.
#[derive(Debug, Clone)]
pub struct StoredCounterpart {
    pub mirror: MirrorName,
    /// Empty for the workspace's own entries.
    pub task: String,
    pub heard: Seq,
    pub delivered: Seq,
    pub since: Timestamp,
    pub attempts: i64,
    pub next_at: Timestamp,
    pub stuck: bool,
    pub error: Option<String>,
    pub told: Counterpart,
    pub drift: Vec<Drift>,
}

/// How much waits for a mirror.
#[derive(Debug, Clone, Copy, Default)]
pub struct MirrorBacklog {
    pub tasks: i64,
    pub stuck: i64,
    pub oldest: Option<Timestamp>,
}

fn mirror(row: &mut Row) -> Result<StoredMirror> {
    let MirrorRow { name, heard, epoch, sender, lent_until, failures, next_at, error, polled, polled_at } =
        MirrorRow::read(row)?;
    Ok(StoredMirror {
        name: name.parsed()?,
        heard: heard.int()?,
        epoch: epoch.int()?,
        sender: sender.opt_text()?,
        lent_until: Timestamp(lent_until.int()?),
        failures: failures.int()?,
        next_at: Timestamp(next_at.int()?),
        error: error.opt_text()?,
        polled: polled.opt_text()?,
        polled_at: Timestamp(polled_at.int()?),
    })
}

fn counterpart(row: &mut Row) -> Result<StoredCounterpart> {
    let row = MirrorTaskRow::read(row)?;
    let read = |text: Option<String>| text.map(|text| serde_json::from_str(&text)).transpose();
    let told: Option<Counterpart> =
        read(row.told.opt_text()?).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    // What the column says is what is searched by.
    let told = Counterpart { far_id: row.far_id.opt_text()?, ..told.unwrap_or_default() };
    Ok(StoredCounterpart {
        mirror: row.mirror.parsed()?,
        task: row.task.text()?,
        heard: row.heard.int()?,
        delivered: row.delivered.int()?,
        since: Timestamp(row.since.int()?),
        attempts: row.attempts.int()?,
        next_at: Timestamp(row.next_at.int()?),
        stuck: row.stuck.flag()?,
        error: row.error.opt_text()?,
        told,
        drift: codec::json_list(row.drift.opt_text()?)?,
    })
}

pub fn find(tx: &mut dyn Tx, name: &MirrorName) -> Result<Option<StoredMirror>> {
    tx.row(&FIND { mirror: name })?.map(|mut row| mirror(&mut row)).transpose()
}

/// Every mirror that was ever sent to.
pub fn every(tx: &mut dyn Tx) -> Result<Vec<StoredMirror>> {
    tx.rows(&EVERY {})?.into_iter().map(|mut row| mirror(&mut row)).collect()
}

/// Lends a mirror to a sender; none while another one has it. `heard` is where a mirror begins that nobody knows yet.
pub fn lend(
    tx: &mut dyn Tx,
    name: &MirrorName,
    sender: &str,
    heard: Seq,
    (now, until): (Timestamp, Timestamp),
) -> Result<Option<Epoch>> {
    tx.run_any(&BEGIN { mirror: name, heard })?;
    match tx.run(&LEND { mirror: name, sender, until, now })? {
        0 => Ok(None),
        _ => Ok(find(tx, name)?.map(|found| found.epoch)),
    }
}

/// Whether a sender still has the mirror; its lease runs anew. Whoever writes as a sender asks first, in the same transaction.
pub fn keep(tx: &mut dyn Tx, name: &MirrorName, epoch: Epoch, until: Timestamp) -> Result<bool> {
    Ok(tx.run(&KEEP { mirror: name, epoch, until })? == 1)
}

/// The sender is done: another one need not wait for its lease to run out.
pub fn give_back(tx: &mut dyn Tx, name: &MirrorName, epoch: Epoch) -> Result<()> {
    tx.run_any(&GIVE_BACK { mirror: name, epoch })
}

/// A sender is known to be dead: its lease is nobody's any more.
pub fn bury(tx: &mut dyn Tx, name: &MirrorName, sender: &str) -> Result<()> {
    tx.run_any(&BURY { mirror: name, sender })
}

/// How the far end is: after so many failures in a row it is left alone for a while.
pub fn put_stand(
    tx: &mut dyn Tx,
    name: &MirrorName,
    failures: i64,
    next_at: Timestamp,
    error: Option<&str>,
) -> Result<()> {
    tx.run_one(&STAND { mirror: name, failures, next_at, error })
}

pub fn put_polled(tx: &mut dyn Tx, name: &MirrorName, polled: Option<&str>, at: Timestamp) -> Result<()> {
    tx.run_one(&POLLED { mirror: name, polled, at })
}

/// An entry is to be told. Of a task that the mirror does not know yet, it counts as told up to `delivered`.
pub fn hear(
    tx: &mut dyn Tx,
    name: &MirrorName,
    task: &str,
    seq: Seq,
    delivered: Seq,
    at: Timestamp,
) -> Result<()> {
    tx.run_one(&HEAR { mirror: name, task, heard: seq, delivered, since: at })
}

/// What a mirror knows of a task; one that it does not know yet counts as told up to `heard`.
pub fn known_from(
    tx: &mut dyn Tx,
    name: &MirrorName,
    task: &str,
    heard: Seq,
    at: Timestamp,
) -> Result<StoredCounterpart> {
    if let Some(row) = one(tx, name, task)? {
        return Ok(row);
    }
    hear(tx, name, task, heard, heard, at)?;
    one(tx, name, task)?.ok_or_else(|| StoreError::Missing("the row is gone".into()))
}

/// The ledger was sorted by task up to here.
pub fn put_heard(tx: &mut dyn Tx, name: &MirrorName, seq: Seq) -> Result<()> {
    tx.run_any(&HEARD { mirror: name, heard: seq })
}

pub fn one(tx: &mut dyn Tx, name: &MirrorName, task: &str) -> Result<Option<StoredCounterpart>> {
    tx.row(&ONE_TASK { mirror: name, task })?.map(|mut row| counterpart(&mut row)).transpose()
}

fn several(rows: Vec<Row>) -> Result<Vec<StoredCounterpart>> {
    rows.into_iter().map(|mut row| counterpart(&mut row)).collect()
}

/// The tasks whose counterpart has this id there.
pub fn by_far_id(tx: &mut dyn Tx, name: &MirrorName, far_id: &str) -> Result<Vec<StoredCounterpart>> {
    several(tx.rows(&FAR { mirror: name, far_id })?)
}

/// What may be told now, the longest waiting first.
pub fn due(tx: &mut dyn Tx, name: &MirrorName, now: Timestamp, limit: i64) -> Result<Vec<StoredCounterpart>> {
    several(tx.rows(&DUE { mirror: name, now, limit })?)
}

pub fn stuck(tx: &mut dyn Tx, name: &MirrorName, limit: i64) -> Result<Vec<StoredCounterpart>> {
    several(tx.rows(&STUCK { mirror: name, limit })?)
}

/// Every task that the mirror was ever to be told of, by name, from behind one on.
pub fn known(tx: &mut dyn Tx, name: &MirrorName, after: &str, limit: i64) -> Result<Vec<StoredCounterpart>> {
    several(tx.rows(&KNOWN { mirror: name, after, limit })?)
}

/// What somebody changed there.
pub fn drifted(tx: &mut dyn Tx, name: &MirrorName, limit: i64) -> Result<Vec<StoredCounterpart>> {
    several(tx.rows(&DRIFTED { mirror: name, limit })?)
}

pub fn waiting(tx: &mut dyn Tx, name: &MirrorName) -> Result<MirrorBacklog> {
    let Some(mut row) = tx.row(&WAITING { mirror: name })? else { return Ok(MirrorBacklog::default()) };
    Ok(MirrorBacklog { tasks: row.int()?, stuck: row.int()?, oldest: row.opt_int()?.map(Timestamp) })
}

pub fn put(tx: &mut dyn Tx, row: &StoredCounterpart) -> Result<()> {
    let drift = if row.drift.is_empty() { None } else { Some(codec::json_text(&row.drift)?) };
    tx.run_one(&PUT {
        mirror: &row.mirror,
        task: &row.task,
        delivered: row.delivered,
        since: row.since,
        attempts: row.attempts,
        next_at: row.next_at,
        stuck: row.stuck,
        error: &row.error,
        far_id: &row.told.far_id,
        told: codec::json_text(&row.told)?,
        drift,
    })
}

/// Tells everything again: what the far end still has is known by its marks.
pub fn retell(tx: &mut dyn Tx, name: &MirrorName) -> Result<u64> {
    tx.run(&RETELL { mirror: name })
}

/// Lets what is stuck, or waits for its next attempt, be tried at once; without a task all of it.
pub fn retry(tx: &mut dyn Tx, name: &MirrorName, task: Option<&str>) -> Result<u64> {
    tx.run(&RETRY { mirror: name, task })
}
