//! Between rows and the types of the rules. Reading rejects what writing cannot produce.

use crate::error::{Result, StoreError};
use crate::output::CLOSED;
use crate::port::{Cell, Row, Value};
use crate::read::effort::{CORRECTED, PROPOSED, USED};
use crate::statement::joined;
use crate::tables::{
    AssignmentHeld, EntryRow, NoteRow, SessionFactRow, TaskAsked, TaskGiven, TaskMoving, WorkstationKey,
    WorkstationRest,
};
use onus_core::effect::Effect;
use onus_core::event::Said;
use onus_core::hash::Digest;
use onus_core::id::{Handle, Seq, TaskId};
use onus_core::lease::{Lease, LeaseId};
use onus_core::ledger::Entry;
use onus_core::process::Process;
use onus_core::task::{
    Assignment, Check, Closing, Criterion, Exception, Priority, Risk, Route, Spec, State, StateName, Task,
};
use onus_core::text::Text;
use onus_core::time::{Millis, Tick, Timestamp};
use onus_core::worker::{Kind, Worker, WorkerState};
use onus_core::workstation::{Lifecycle, Workstation, WorkstationKind, WorkstationState};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};

/// That something has not ended, for whoever finds its row by its key. Said like this, PostgreSQL cannot go by an index of
/// what has not ended: that is short, so it reads all of it, and where work comes and goes it is full of what has ended.
macro_rules! goes_on {
    ($ended_at:literal) => {
        concat!("coalesce(", $ended_at, ", -1) = -1 ")
    };
}

/// The assignment in force of `task t`.
pub(crate) const IN_FORCE: &str = concat!(
    "LEFT JOIN assignment a ON a.workspace = t.workspace AND a.task = t.id AND a.epoch = t.epoch AND ",
    goes_on!("a.ended_at")
);

/// A task with the assignment in force.
pub(crate) const TASK_FROM: &str = joined!("FROM task t ", IN_FORCE);

/// What [`task`] reads, in its order, from [`TASK_FROM`].
pub(crate) const TASK_COLUMNS: &str = joined!(
    TaskAsked::LIST,
    ", ",
    TaskMoving::LIST,
    ", ",
    TaskGiven::LIST,
    ", (SELECT string_agg(d.depends_on, ' ') FROM dependency d WHERE d.workspace = t.workspace AND d.task = t.id), ",
    AssignmentHeld::LIST,
    " ",
);

pub(crate) use goes_on;

/// A task with the last hash of its chain.
#[derive(Debug, Clone)]
pub struct StoredTask {
    pub task: Task,
    pub head: Digest,
}

pub(crate) fn task(row: &mut Row) -> Result<StoredTask> {
    let (asked, moving, given) = (TaskAsked::read(row)?, TaskMoving::read(row)?, TaskGiven::read(row)?);
    let depends_on = row.opt_text()?.unwrap_or_default();
    let held = assignment(AssignmentHeld::read(row)?)?;
    let TaskGiven { born, id, uid, created_by, created_at } = given;
    let TaskMoving {
        lease_id,
        head,
        state,
        blocker,
        epoch,
        version,
        checks,
        criteria,
        updated_at,
        closed_by,
        closed_at,
        forced,
        exceptions,
        archived,
    } = moving;
    let id: TaskId = id.parsed()?;
    let corrupt = |what: &str| StoreError::Corrupt(format!("{id}: {what}"));
    // The fence stands in both rows; a difference means that one of them was changed by hand.
    let sealed = held.as_ref().and_then(|held| held.lease.id.secret().map(|secret| secret.to_vec()));
    if sealed != lease_id.opt_blob()? {
        return Err(corrupt("its lease and its assignment disagree"));
    }
    let state = state.text()?;
    let state =
        StateName::parse(&state).filter(|s| s.name() == state).ok_or_else(|| corrupt("unknown state"))?;
    let (closed_by, closed_at, forced) = (closed_by.opt_parsed()?, closed_at.opt_int()?, forced.flag()?);
    let closing = |by: Option<Handle>| match (by, closed_at) {
        (Some(by), Some(at)) => Ok(Closing { by, at: Timestamp(at), forced }),
        _ => Err(corrupt("it has ended, but nobody ended it")),
    };
    if !state.is_terminal() && (closed_by.is_some() || closed_at.is_some() || forced) {
        return Err(corrupt("it has not ended, but its row says who ended it"));
    }
    let state = match (state, blocker.opt_parsed()?, held) {
        (StateName::Open, None, None) => State::Open,
        (StateName::InProgress, None, Some(held)) => State::InProgress(held),
        (StateName::Blocked, Some(on), held) => State::Blocked { on, held },
        (StateName::Complete, None, None) => State::Complete(closing(closed_by)?),
        (StateName::Dropped, None, None) => State::Dropped(closing(closed_by)?),
        (state, ..) => return Err(corrupt(&format!("its row makes no sense as {state}"))),
    };
    let depends_on: std::result::Result<BTreeSet<TaskId>, String> =
        depends_on.split_whitespace().map(str::parse).collect();
    let task = Task {
        depends_on: depends_on.map_err(|e| corrupt(&e))?,
        exceptions: exceptions_of(exceptions.opt_text()?)?,
        uid: uid.text()?.parse().map_err(|_| corrupt("its uid is none"))?,
        spec: spec(asked, json_list(checks.opt_text()?)?, json_list(criteria.opt_text()?)?)?,
        state,
        epoch: epoch.int()?,
        version: version.int()?,
        archived: archived.flag()?,
        born: born.int()?,
        created_by: created_by.parsed()?,
        created_at: Timestamp(created_at.int()?),
        updated_at: Timestamp(updated_at.int()?),
        id,
    };
    Ok(StoredTask { task, head: head.digest()? })
}

fn spec(asked: TaskAsked<Cell>, checks: Vec<Check>, criteria: Vec<Criterion>) -> Result<Spec> {
    let TaskAsked {
        body,
        extra,
        title,
        task_type,
        kind,
        priority,
        risk,
        role,
        lane,
        sprint,
        tags,
        scope,
        parent,
        merge_order,
        origin,
    } = asked;
    Ok(Spec {
        title: title.text()?,
        body: body.opt_text()?.map(Text::new),
        task_type: task_type.opt_parsed()?,
        kind: kind.text()?,
        priority: word(priority.int()?, Priority::from_rank)?,
        risk: word(risk.text()?.as_str(), Risk::parse)?,
        role: role.opt_parsed()?,
        lane: lane.opt_int()?,
        sprint: sprint.opt_text()?,
        tags: json_list(tags.opt_text()?)?,
        scope: json_list(scope.opt_text()?)?,
        parent: parent.opt_parsed()?,
        merge_order: merge_order.opt_int()?,
        origin: origin.opt_parsed()?,
        checks,
        criteria,
        extra: extra.opt_text()?.map(Text::new),
    })
}

/// Names the values of a row.
macro_rules! row {
    ($row:ident { $($column:ident: $value:expr),+ $(,)? }) => {
        $row { $($column: $crate::port::Value::from($value)),+ }
    };
}

pub(crate) use row;

pub(crate) fn asked_row(spec: &Spec) -> Result<TaskAsked<Value<'_>>> {
    Ok(row!(TaskAsked {
        body: spec.body.as_ref().and_then(|body| body.content()),
        extra: spec.extra.as_ref().and_then(|extra| extra.content()),
        title: spec.title.as_str(),
        task_type: spec.task_type.as_ref().map(|t| t.as_str()),
        kind: spec.kind.as_str(),
        priority: spec.priority.rank(),
        risk: spec.risk.name(),
        role: spec.role.as_ref().map(|r| r.as_str()),
        lane: spec.lane,
        sprint: spec.sprint.as_deref(),
        tags: list_text(&spec.tags)?,
        scope: list_text(&spec.scope)?,
        parent: spec.parent.as_ref().map(ToString::to_string),
        merge_order: spec.merge_order,
        origin: spec.origin.as_ref().map(|o| o.as_str()),
    }))
}

/// The head is no part of the task: it is what the record says of it.
pub(crate) fn moving_row<'t>(task: &'t Task, head: Option<&'t Digest>) -> Result<TaskMoving<Value<'t>>> {
    let closing = match &task.state {
        State::Complete(closing) | State::Dropped(closing) => Some(closing),
        State::Open | State::InProgress(_) | State::Blocked { .. } => None,
    };
    let blocker = match &task.state {
        State::Blocked { on, .. } => Some(on.to_string()),
        _ => None,
    };
    Ok(row!(TaskMoving {
        lease_id: secret(task.assignment()),
        head: head,
        state: task.state.name().name(),
        blocker: blocker,
        epoch: task.epoch,
        version: task.version,
        checks: list_text(&task.spec.checks)?,
        criteria: list_text(&task.spec.criteria)?,
        updated_at: task.updated_at.0,
        closed_by: closing.map(|closing| closing.by.as_str()),
        closed_at: closing.map(|closing| closing.at.0),
        forced: closing.is_some_and(|closing| closing.forced),
        exceptions: exceptions_text(&task.exceptions)?,
        archived: task.archived,
    }))
}

/// The fence; none where nobody holds the task, or where the record has only its seal.
pub(crate) fn secret(held: Option<&Assignment>) -> Option<Vec<u8>> {
    held.and_then(|held| held.lease.id.secret()).map(|secret| secret.to_vec())
}

pub(crate) fn given_row(task: &Task) -> TaskGiven<Value<'_>> {
    row!(TaskGiven {
        born: task.born,
        id: task.id.to_string(),
        uid: task.uid.to_string(),
        created_by: task.created_by.as_str(),
        created_at: task.created_at.0,
    })
}

/// None where the join found no assignment in force.
pub(crate) fn assignment(held: AssignmentHeld<Cell>) -> Result<Option<Assignment>> {
    let AssignmentHeld {
        lease_id,
        epoch,
        assignee,
        tier,
        workstation,
        ttl_ms,
        assigned_at,
        renewed_at,
        tick,
        renewals,
        handoff_reason,
        forced,
        route,
        lane,
        base,
        resting,
        constraints,
    } = held;
    let Some(assignee) = assignee.opt_parsed()? else {
        return Ok(None);
    };
    let secret: [u8; 16] = lease_id
        .opt_blob()?
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| StoreError::Corrupt("a lease id is not 16 bytes".into()))?;
    let (tick, process) = sign(&tick.text()?)?;
    let lease = Lease {
        id: LeaseId::new(secret),
        ttl: Millis(ttl_ms.int()?),
        renewed_at: Timestamp(renewed_at.int()?),
        tick,
        renewals: renewals.int()?,
        process,
    };
    Ok(Some(Assignment {
        assignee,
        tier: tier.opt_text()?,
        workstation: workstation.parsed()?,
        epoch: epoch.int()?,
        assigned_at: Timestamp(assigned_at.int()?),
        lease,
        handoff_reason: handoff_reason.opt_text()?,
        forced: forced.flag()?,
        route: route_of(route.opt_text()?)?,
        lane: lane.opt_int()?,
        base: base.opt_parsed()?,
        resting: resting.flag()?,
        constraints: json_list(constraints.opt_text()?)?,
    }))
}

pub(crate) fn held_row(held: &Assignment) -> Result<AssignmentHeld<Value<'_>>> {
    let lease = &held.lease;
    Ok(row!(AssignmentHeld {
        lease_id: secret(Some(held)),
        epoch: held.epoch,
        assignee: held.assignee.as_str(),
        tier: held.tier.as_deref(),
        workstation: held.workstation.as_str(),
        ttl_ms: lease.ttl.0,
        assigned_at: held.assigned_at.0,
        renewed_at: lease.renewed_at.0,
        tick: sign_text(lease),
        renewals: lease.renewals,
        handoff_reason: held.handoff_reason.as_deref(),
        forced: held.forced,
        route: held.route.as_ref().map(json_text).transpose()?,
        lane: held.lane,
        base: held.base.as_ref().map(|base| base.as_str()),
        resting: held.resting,
        constraints: list_text(&held.constraints)?,
    }))
}

/// A note, with who said it elsewhere.
pub(crate) fn note_row<'n>(
    task: &'n str,
    text: &'n str,
    seq: Seq,
    kind: &'n str,
    said: Option<&'n Said>,
) -> NoteRow<Value<'n>> {
    row!(NoteRow {
        task: task,
        text: text,
        seq: seq,
        kind: kind,
        said_by: said.map(|said| said.by.as_str()),
        said_at: said.and_then(|said| said.at).map(|at| at.0),
        said_key: said.and_then(|said| said.key.as_deref()),
    })
}

/// The three columns of who said it elsewhere.
pub(crate) fn said(row: &mut Row) -> Result<Option<Said>> {
    let (by, at, key) = (row.opt_text()?, row.opt_int()?, row.opt_text()?);
    Ok(by.map(|by| Said { by, at: at.map(Timestamp), key }))
}

/// What was said about a session afterwards; none for an effect that says nothing of the kind.
pub(crate) fn fact_row<'e>(task: &'e str, seq: Seq, effect: &'e Effect) -> Option<SessionFactRow<Value<'e>>> {
    let fact = |session: Seq, kind: &'static str| {
        let nothing = || Value::Null;
        SessionFactRow {
            task: task.into(),
            seq: seq.into(),
            session: session.into(),
            kind: kind.into(),
            started_at: nothing(),
            ended_at: nothing(),
            key: nothing(),
            source: nothing(),
            model: nothing(),
            input_tokens: nothing(),
            output_tokens: nothing(),
            cache_read_tokens: nothing(),
            cache_creation_tokens: nothing(),
            cost_micros: nothing(),
            turns: nothing(),
        }
    };
    match effect {
        Effect::SessionCorrected { session, started_at, ended_at, proposed } => Some(SessionFactRow {
            started_at: started_at.0.into(),
            ended_at: ended_at.0.into(),
            ..fact(*session, if *proposed { PROPOSED } else { CORRECTED })
        }),
        Effect::SessionUsed { session, usage } => Some(SessionFactRow {
            key: usage.key.as_str().into(),
            source: usage.source.as_str().into(),
            model: usage.model.as_deref().into(),
            input_tokens: usage.counts.input_tokens.into(),
            output_tokens: usage.counts.output_tokens.into(),
            cache_read_tokens: usage.counts.cache_read_tokens.into(),
            cache_creation_tokens: usage.counts.cache_creation_tokens.into(),
            cost_micros: usage.counts.cost_micros.into(),
            turns: Some(usage.counts.turns).filter(|turns| *turns > 0).into(),
            ..fact(*session, USED)
        }),
        Effect::OutputClosed { session, output } => Some(SessionFactRow {
            key: output.sha256.as_str().into(),
            input_tokens: output.bytes.into(),
            output_tokens: output.kept.into(),
            ..fact(*session, CLOSED)
        }),
        _ => None,
    }
}

pub(crate) fn route_of(text: Option<String>) -> Result<Option<Route>> {
    text.map(|text| serde_json::from_str(&text)).transpose().map_err(json)
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
    let WorkstationKey { name } = WorkstationKey::read(row)?;
    let WorkstationRest { kind, path, state, lifecycle, version, branch, probes, reason, role, lane } =
        WorkstationRest::read(row)?;
    Ok(Workstation {
        name: name.parsed()?,
        kind: word(kind.text()?.as_str(), WorkstationKind::parse)?,
        path: path.opt_text()?,
        state: word(state.text()?.as_str(), WorkstationState::parse)?,
        lifecycle: word(lifecycle.text()?.as_str(), Lifecycle::parse)?,
        version: version.int()?,
        branch: branch.opt_parsed()?,
        probes: json_list(probes.opt_text()?)?,
        reason: reason.opt_text()?,
        role: role.opt_parsed()?,
        lane: lane.opt_int()?,
    })
}

pub(crate) fn workstation_row(workstation: &Workstation) -> Result<WorkstationRest<Value<'_>>> {
    Ok(row!(WorkstationRest {
        kind: workstation.kind.name(),
        path: workstation.path.as_deref(),
        state: workstation.state.name(),
        lifecycle: workstation.lifecycle.name(),
        version: workstation.version,
        branch: workstation.branch.as_ref().map(|branch| branch.as_str()),
        probes: list_text(&workstation.probes)?,
        reason: workstation.reason.as_deref(),
        role: workstation.role.as_ref().map(|role| role.as_str()),
        lane: workstation.lane,
    }))
}

pub(crate) fn entry(row: &mut Row) -> Result<Entry> {
    let EntryRow { seq, task, at, actor, workstation, epoch, verb, data, prev, hash } = EntryRow::read(row)?;
    Ok(Entry {
        seq: seq.int()?,
        task: task.opt_text()?,
        at: Timestamp(at.int()?),
        actor: actor.text()?,
        workstation: workstation.opt_text()?,
        epoch: epoch.int()?,
        verb: verb.text()?,
        data: data.text()?,
        prev: prev.digest()?,
        hash: hash.digest()?,
    })
}

pub(crate) fn word<A: std::fmt::Debug + Copy, T>(value: A, parse: impl Fn(A) -> Option<T>) -> Result<T> {
    parse(value).ok_or_else(|| StoreError::Corrupt(format!("{value:?} is none of the known words")))
}

fn json(error: serde_json::Error) -> StoreError {
    StoreError::Corrupt(error.to_string())
}

pub(crate) fn json_list<T: serde::de::DeserializeOwned>(text: Option<String>) -> Result<Vec<T>> {
    text.map_or(Ok(Vec::new()), |text| serde_json::from_str(&text).map_err(json))
}

pub(crate) fn exceptions_of(text: Option<String>) -> Result<BTreeMap<TaskId, Exception>> {
    text.map_or(Ok(BTreeMap::new()), |text| serde_json::from_str(&text).map_err(json))
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
