//! Between rows and the types of the rules. Reading rejects what writing cannot produce.

use crate::error::{Result, StoreError};
use crate::port::Row;
use onus_core::id::{Epoch, Handle, TaskId};
use onus_core::lease::{Lease, LeaseId};
use onus_core::ledger::Entry;
use onus_core::process::Process;
use onus_core::task::{Assignment, Closing, Exception, Priority, Risk, Route, Spec, State, StateName, Task};
use onus_core::text::Text;
use onus_core::time::{Millis, Tick, Timestamp};
use onus_core::worker::{Kind, Worker, WorkerState};
use onus_core::workstation::{Lifecycle, Workstation, WorkstationKind, WorkstationState};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};

/// The columns of [`task`], in its order, from `task t LEFT JOIN assignment a`.
macro_rules! task_columns {
    () => {
        "t.id, t.uid, t.title, t.body, t.type, t.kind, t.priority, t.risk, t.role, t.lane, t.sprint, t.tags, \
         t.scope, t.parent, t.merge_order, t.origin_ask_ref, t.checks, t.state, t.blocker, t.archived, t.epoch, \
         t.lease_id, t.version, t.head, t.born, t.created_by, t.created_at, t.updated_at, t.closed_by, t.closed_at, \
         t.forced, t.exceptions, \
         (SELECT string_agg(d.depends_on, ' ') FROM dependency d WHERE d.workspace = t.workspace AND d.task = t.id), \
         a.assignee, a.tier, a.workstation, a.lease_id, a.ttl_ms, a.assigned_at, a.renewed_at, a.tick, a.renewals, \
         a.handoff_reason, a.forced, a.route, a.lane, a.base, a.resting "
    };
}

/// That something has not ended, for whoever finds its row by its key. Said like this, PostgreSQL cannot go by an index of
/// what has not ended: that is short, so it reads all of it, and where work comes and goes it is full of what has ended.
macro_rules! goes_on {
    ($ended_at:literal) => {
        concat!("coalesce(", $ended_at, ", -1) = -1 ")
    };
}

/// The assignment in force of `task t`.
macro_rules! in_force {
    () => {
        concat!(
            "LEFT JOIN assignment a ON a.workspace = t.workspace AND a.task = t.id AND a.epoch = t.epoch AND ",
            $crate::codec::goes_on!("a.ended_at")
        )
    };
}

/// A task with the assignment in force.
macro_rules! task_from {
    () => {
        concat!("FROM task t ", $crate::codec::in_force!())
    };
}

/// The columns of [`assignment`], in its order.
macro_rules! assignment_columns {
    () => {
        "assignee, tier, workstation, lease_id, ttl_ms, assigned_at, renewed_at, tick, renewals, handoff_reason, \
         forced, route, lane, base, resting "
    };
}

/// The columns of [`workstation`], in its order, from `workstation w`.
macro_rules! workstation_columns {
    () => {
        "w.name, w.kind, w.path, w.state, w.lifecycle, w.version, w.branch, w.probes, w.reason, w.role, w.lane "
    };
}

pub(crate) use {assignment_columns, goes_on, in_force, task_columns, task_from, workstation_columns};

/// A task with the last hash of its chain.
#[derive(Debug, Clone)]
pub struct StoredTask {
    pub task: Task,
    pub head: onus_core::hash::Digest,
}

pub(crate) fn task(row: &mut Row) -> Result<StoredTask> {
    let id: TaskId = row.parsed()?;
    let corrupt = |what: &str| StoreError::Corrupt(format!("{id}: {what}"));
    let uid = row.text()?.parse().map_err(|_| corrupt("its uid is none"))?;
    let spec = spec(row)?;
    let state = row.text()?;
    let state =
        StateName::parse(&state).filter(|s| s.name() == state).ok_or_else(|| corrupt("unknown state"))?;
    let blocker = row.opt_parsed()?;
    let archived = row.flag()?;
    let epoch = row.int()?;
    let lease_id = row.opt_blob()?;
    let version = row.int()?;
    let head = row.digest()?;
    let born = row.int()?;
    let created_by = row.parsed()?;
    let created_at = Timestamp(row.int()?);
    let updated_at = Timestamp(row.int()?);
    let closed_by: Option<Handle> = row.opt_parsed()?;
    let closed_at = row.opt_int()?;
    let forced = row.flag()?;
    let exceptions = exceptions(row)?;
    let depends_on = row.opt_text()?.unwrap_or_default();
    let depends_on: std::result::Result<BTreeSet<TaskId>, String> =
        depends_on.split_whitespace().map(str::parse).collect();
    let held = assignment(row, epoch)?;
    // The fence stands in both rows; a difference means that one of them was changed by hand.
    let sealed = held.as_ref().and_then(|held| held.lease.id.secret().map(|secret| secret.to_vec()));
    if sealed != lease_id {
        return Err(corrupt("its lease and its assignment disagree"));
    }
    let closing = |by: Option<Handle>| match (by, closed_at) {
        (Some(by), Some(at)) => Ok(Closing { by, at: Timestamp(at), forced }),
        _ => Err(corrupt("it has ended, but nobody ended it")),
    };
    if !state.is_terminal() && (closed_by.is_some() || closed_at.is_some() || forced) {
        return Err(corrupt("it has not ended, but its row says who ended it"));
    }
    let state = match (state, blocker, held) {
        (StateName::Open, None, None) => State::Open,
        (StateName::InProgress, None, Some(held)) => State::InProgress(held),
        (StateName::Blocked, Some(on), held) => State::Blocked { on, held },
        (StateName::Complete, None, None) => State::Complete(closing(closed_by)?),
        (StateName::Dropped, None, None) => State::Dropped(closing(closed_by)?),
        (state, ..) => return Err(corrupt(&format!("its row makes no sense as {state}"))),
    };
    let task = Task {
        depends_on: depends_on.map_err(|e| corrupt(&e))?,
        exceptions,
        id,
        uid,
        spec,
        state,
        epoch,
        version,
        archived,
        born,
        created_by,
        created_at,
        updated_at,
    };
    Ok(StoredTask { task, head })
}

fn spec(row: &mut Row) -> Result<Spec> {
    Ok(Spec {
        title: row.text()?,
        body: row.opt_text()?.map(Text::new),
        task_type: row.opt_parsed()?,
        kind: row.text()?,
        priority: word(row.int()?, Priority::from_rank)?,
        risk: word(row.text()?.as_str(), Risk::parse)?,
        role: row.opt_parsed()?,
        lane: row.opt_int()?,
        sprint: row.opt_text()?,
        tags: json_list(row)?,
        scope: json_list(row)?,
        parent: row.opt_parsed()?,
        merge_order: row.opt_int()?,
        origin: row.opt_parsed()?,
        checks: json_list(row)?,
    })
}

/// The assignment columns of [`task_columns`]; `None` where the join found no live one.
pub(crate) fn assignment(row: &mut Row, epoch: Epoch) -> Result<Option<Assignment>> {
    let Some(assignee) = row.opt_parsed()? else {
        return Ok(None);
    };
    let tier = row.opt_text()?;
    let workstation = row.parsed()?;
    let secret: [u8; 16] = row
        .opt_blob()?
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| StoreError::Corrupt("a lease id is not 16 bytes".into()))?;
    let ttl = Millis(row.int()?);
    let assigned_at = Timestamp(row.int()?);
    let renewed_at = Timestamp(row.int()?);
    let (tick, process) = sign(&row.text()?)?;
    let renewals = row.int()?;
    let lease = Lease { id: LeaseId::new(secret), ttl, renewed_at, tick, renewals, process };
    let handoff_reason = row.opt_text()?;
    let forced = row.flag()?;
    let route = route(row)?;
    Ok(Some(Assignment {
        assignee,
        tier,
        workstation,
        epoch,
        assigned_at,
        lease,
        handoff_reason,
        forced,
        route,
        lane: row.opt_int()?,
        base: row.opt_parsed()?,
        resting: row.flag()?,
    }))
}

pub(crate) fn route(row: &mut Row) -> Result<Option<Route>> {
    row.opt_text()?.map(|text| serde_json::from_str(&text)).transpose().map_err(json)
}

/// The last sign of life in its one column: the clock reading, and behind a blank what works under the lease.
pub(crate) fn sign_text(lease: &Lease) -> String {
    match &lease.process {
        None => lease.tick.to_string(),
        Some(process) => format!("{} {process}", lease.tick),
    }
}

fn sign(text: &str) -> Result<(Tick, Option<Process>)> {
    let (tick, process) = text.split_once(' ').map_or((text, None), |(tick, rest)| (tick, Some(rest)));
    let corrupt = || StoreError::Corrupt(format!("`{text}` is no sign of life"));
    let tick = Tick::parse(tick).ok_or_else(corrupt)?;
    let process = process.map(str::parse).transpose().map_err(|_| corrupt())?;
    Ok((tick, process))
}

pub(crate) fn worker(row: &mut Row) -> Result<Worker> {
    Ok(Worker {
        handle: row.parsed()?,
        kind: word(row.text()?.as_str(), Kind::parse)?,
        tier: row.opt_text()?,
        role: row.opt_parsed()?,
        state: word(row.text()?.as_str(), WorkerState::parse)?,
        tz: row.text()?,
    })
}

pub(crate) fn workstation(row: &mut Row) -> Result<Workstation> {
    Ok(Workstation {
        name: row.parsed()?,
        kind: word(row.text()?.as_str(), WorkstationKind::parse)?,
        path: row.opt_text()?,
        state: word(row.text()?.as_str(), WorkstationState::parse)?,
        lifecycle: word(row.text()?.as_str(), Lifecycle::parse)?,
        version: row.int()?,
        branch: row.opt_parsed()?,
        probes: json_list(row)?,
        reason: row.opt_text()?,
        role: row.opt_parsed()?,
        lane: row.opt_int()?,
    })
}

/// The columns of [`entry`], in its order.
macro_rules! entry_columns {
    () => {
        "l.seq, l.task, l.at, l.actor, l.workstation, l.epoch, l.verb, l.data, l.prev, l.hash"
    };
}

pub(crate) use entry_columns;

pub(crate) fn entry(row: &mut Row) -> Result<Entry> {
    Ok(Entry {
        seq: row.int()?,
        task: row.opt_text()?,
        at: Timestamp(row.int()?),
        actor: row.text()?,
        workstation: row.opt_text()?,
        epoch: row.int()?,
        verb: row.text()?,
        data: row.text()?,
        prev: row.digest()?,
        hash: row.digest()?,
    })
}

pub(crate) fn word<A: std::fmt::Debug + Copy, T>(value: A, parse: impl Fn(A) -> Option<T>) -> Result<T> {
    parse(value).ok_or_else(|| StoreError::Corrupt(format!("{value:?} is none of the known words")))
}

fn json(error: serde_json::Error) -> StoreError {
    StoreError::Corrupt(error.to_string())
}

pub(crate) fn json_list<T: serde::de::DeserializeOwned>(row: &mut Row) -> Result<Vec<T>> {
    row.opt_text()?.map_or(Ok(Vec::new()), |text| serde_json::from_str(&text).map_err(json))
}

pub(crate) fn exceptions(row: &mut Row) -> Result<BTreeMap<TaskId, Exception>> {
    row.opt_text()?.map_or(Ok(BTreeMap::new()), |text| serde_json::from_str(&text).map_err(json))
}

/// No exception is stored as nothing.
pub(crate) fn exceptions_text(exceptions: &BTreeMap<TaskId, Exception>) -> Result<Option<String>> {
    if exceptions.is_empty() { Ok(None) } else { json_text(exceptions).map(Some) }
}

/// An empty list is stored as nothing.
pub(crate) fn list_text<T: serde::Serialize>(list: &[T]) -> Result<Option<String>> {
    if list.is_empty() {
        return Ok(None);
    }
    serde_json::to_string(list).map(Some).map_err(json)
}

pub(crate) fn json_text<T: serde::Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(json)
}

/// The stored JSON of an entry, for documents.
pub fn entry_data(entry: &Entry) -> Json {
    serde_json::from_str(&entry.data).unwrap_or(Json::Null)
}
