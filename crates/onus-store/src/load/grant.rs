//! What a grant stands on: the place, who else is at work, and what the identity map's candidates are doing.

use super::at_work::AtWork;
use super::{Loaded, caller, dependencies_of, reachable};
use crate::codec;
use crate::error::Result;
use crate::port::Tx;
use crate::statement::Statement;
use crate::tables::WorkstationRow;
use crate::{registry, sql};
use onus_core::command::{Command, Envelope};
use onus_core::facts::{Builder, Caller, Place};
use onus_core::id::{Handle, TaskId, WorkstationName};
use onus_core::identity_map::{self, Policy, Signals, WorkerSignal, WorkstationSignal};
use onus_core::lane::Occupied;
use onus_core::queue;
use onus_core::task::{Spec, Task};
use onus_core::time::{Millis, Timestamp};
use onus_core::worker::Worker;
use onus_core::workstation::{Workstation, WorkstationState};

sql! {
    /// The live assignments, with the scopes they hold. There are never more than workstations, so they lead the join:
    /// `CROSS` keeps the database from beginning with the tasks.
    pub(crate) LIVE_SCOPES = "SELECT a.workstation, a.task, a.assignee, t.scope FROM assignment a CROSS JOIN task t \
        WHERE a.workspace = :workspace AND a.ended_at IS NULL \
        AND t.workspace = a.workspace AND t.id = a.task AND t.scope IS NOT NULL ORDER BY a.workstation";
    pub(crate) WORKSTATION(workstation) reads [workstation] = "SELECT ", WorkstationRow::LIST, ", a.task, a.assignee \
        FROM workstation w LEFT JOIN assignment a ON a.workspace = w.workspace AND a.workstation = w.name \
        AND a.ended_at IS NULL WHERE w.workspace = :workspace AND w.name = :workstation";
    /// Ready workstations that hold nothing.
    pub(crate) FREE_WORKSTATIONS = "SELECT w.name FROM workstation w WHERE w.workspace = :workspace AND w.state = \
        'ready' AND NOT EXISTS ( \
            SELECT 1 FROM assignment a WHERE a.workspace = w.workspace AND a.workstation = w.name AND a.ended_at IS \
        NULL) \
        ORDER BY w.name LIMIT 8";
    /// Who is at work in which role, and in which of its lanes. Live assignments lead the join, as in `LIVE_SCOPES`.
    pub(crate) OCCUPIED = "SELECT a.workstation, a.task, a.assignee, t.role, coalesce(a.lane, t.lane, 1) \
        FROM assignment a CROSS JOIN task t WHERE a.workspace = :workspace AND a.ended_at IS NULL \
        AND t.workspace = a.workspace AND t.id = a.task AND t.role IS NOT NULL ORDER BY a.workstation";
    /// `CROSS` keeps the database from beginning with the assignments.
    pub(crate) BUILDERS(task) = "SELECT a.task, a.assignee, a.workstation FROM dependency d CROSS JOIN assignment a \
        WHERE d.workspace = :workspace AND d.task = :task AND a.workspace = d.workspace AND a.task = d.depends_on";
    pub(crate) WORKERS_OF(task) = "SELECT task, assignee, workstation FROM assignment WHERE workspace = :workspace AND \
        task = :task";
    /// What else a worker holds.
    pub(crate) HOLDS(worker, but_task) = "SELECT task FROM assignment WHERE workspace = :workspace AND assignee = \
        :worker AND ended_at IS NULL \
        AND task <> :but_task ORDER BY workstation";
    /// Sessions of a worker in a workstation that began after a moment.
    pub(crate) WORKED(worker, since, workstation) = "SELECT started_at, ended_at FROM session WHERE workspace = \
        :workspace AND worker = :worker AND started_at > :since \
        AND workstation = :workstation";
}

/// Utilisation is the share of this much time.
const DAY: Millis = Millis::hours(24);

/// The task that a workstation holds, and for whom.
pub type Holding = Option<(TaskId, Handle)>;

/// What only a grant needs to know.
#[derive(Debug, Default)]
pub struct Ground {
    pub place: Place,
    pub live_scopes: Vec<(TaskId, Handle, Vec<String>)>,
    pub signals: Signals,
    pub occupied: Vec<Occupied>,
    pub builders: Vec<Builder>,
}

pub(super) fn load(
    tx: &mut dyn Tx,
    envelope: &Envelope,
    policy: &Policy,
    now: Timestamp,
    at_work: &mut AtWork,
    loaded: &mut Loaded,
) -> Result<()> {
    let (named, here) = match &envelope.command {
        Command::Claim { workstation, here, assignee, .. } => {
            if let Some(assignee) = assignee {
                loaded.mentioned = Some(caller(tx, Some(assignee))?);
            }
            (workstation.as_ref(), here.as_ref())
        }
        Command::Takeover { workstation, here, .. } => (workstation.as_ref(), here.as_ref()),
        _ => return Ok(()),
    };
    let Some(task) = loaded.task.as_ref().map(|stored| &stored.task) else {
        loaded.ground.place = place(tx, named.or(here))?;
        return Ok(());
    };
    let ground = &mut loaded.ground;
    loaded.dependencies = dependencies_of(tx, task)?;
    ground.signals = signals(tx, policy, task, now)?;
    let grantee = match loaded.mentioned.as_ref().unwrap_or(&loaded.caller) {
        Caller::Registered(worker) => Some(worker),
        Caller::Anonymous | Caller::Unregistered(_) => None,
    };
    let chosen = chosen(policy, &task.spec, grantee, &ground.signals, named, here);
    ground.place = place(tx, chosen)?;
    if !task.spec.scope.is_empty() {
        ground.live_scopes = at_work.scopes_but(tx, &task.id)?;
    }
    if let Some(role) = &task.spec.role {
        ground.occupied = at_work.in_role_but(tx, role, &task.id)?;
    }
    if identity_map::needs_independence(policy, &task.spec) {
        ground.builders = builders(tx, &task.id)?;
    }
    Ok(())
}

/// The workstation that was named, else the one that the map names for this worker, else where the caller stands.
fn chosen<'a>(
    policy: &'a Policy,
    spec: &Spec,
    grantee: Option<&Worker>,
    signals: &Signals,
    named: Option<&'a WorkstationName>,
    here: Option<&'a WorkstationName>,
) -> Option<&'a WorkstationName> {
    let mapped = || grantee.and_then(|worker| identity_map::workstation_for(policy, spec, worker, signals));
    named.or_else(mapped).or(here)
}

/// The candidates that the map names for a task, as they are now.
pub fn signals(tx: &mut dyn Tx, policy: &Policy, task: &Task, now: Timestamp) -> Result<Signals> {
    let mut signals = Signals::default();
    let candidates = identity_map::candidates(policy, &task.spec);
    if candidates.is_empty() {
        return Ok(signals);
    }
    for (handle, name) in candidates {
        if let Some(worker) = super::worker(tx, handle)? {
            let holds = tx.rows(&HOLDS { worker: handle, but_task: &task.id })?;
            let holds = holds.into_iter().map(|mut row| row.parsed()).collect::<Result<_>>()?;
            signals.workers.insert(handle.clone(), WorkerSignal { worker, holds });
        }
        if let Some((found, holds)) = workstation(tx, name)? {
            let utilisation = utilisation(tx, handle, name, now)?;
            // A grant of this very task would set its own workstation free.
            let holds = holds.filter(|(held, _)| *held != task.id);
            let signal = WorkstationSignal { state: found.state, holds, utilisation };
            signals.workstations.insert(name.clone(), signal);
        }
    }
    if !task.depends_on.is_empty() {
        signals.dependency_depth = queue::depth(&reachable(tx, &task.id)?, &task.id);
    }
    Ok(signals)
}

/// How much of the last day the worker spent in the workstation, in percent.
fn utilisation(tx: &mut dyn Tx, worker: &Handle, name: &WorkstationName, now: Timestamp) -> Result<u8> {
    let since = now.0.saturating_sub(DAY.0);
    let rows = tx.rows(&WORKED { worker, since, workstation: name })?;
    let mut worked: i64 = 0;
    for mut row in rows {
        let (from, to) = (row.int()?, row.opt_int()?.unwrap_or(now.0));
        worked = worked.saturating_add(to.saturating_sub(from).max(0));
    }
    Ok(u8::try_from(worked.saturating_mul(100) / DAY.0).unwrap_or(100).min(100))
}

/// Who built what a task depends on.
fn builders(tx: &mut dyn Tx, task: &TaskId) -> Result<Vec<Builder>> {
    read_builders(tx, &BUILDERS { task })
}

/// Who has worked on a task itself.
pub(super) fn workers_of(tx: &mut dyn Tx, task: &TaskId) -> Result<Vec<Builder>> {
    read_builders(tx, &WORKERS_OF { task })
}

fn read_builders(tx: &mut dyn Tx, question: &dyn Statement) -> Result<Vec<Builder>> {
    tx.rows(question)?
        .into_iter()
        .map(|mut row| Ok(Builder { task: row.parsed()?, worker: row.parsed()?, workstation: row.parsed()? }))
        .collect()
}

/// A workstation, and the live assignment it holds.
pub fn workstation(tx: &mut dyn Tx, name: &WorkstationName) -> Result<Option<(Workstation, Holding)>> {
    let Some(mut row) = tx.row(&WORKSTATION { workstation: name })? else {
        return Ok(None);
    };
    let found = codec::workstation(&mut row)?;
    let held: Option<TaskId> = row.opt_parsed()?;
    Ok(Some((found, held.zip(row.opt_parsed()?))))
}

fn place(tx: &mut dyn Tx, asked: Option<&WorkstationName>) -> Result<Place> {
    let Some(name) = asked else {
        let rows = tx.rows(&FREE_WORKSTATIONS {})?;
        let would_do = rows.into_iter().map(|mut row| row.parsed()).collect::<Result<_>>()?;
        return Ok(Place { would_do, ..Place::default() });
    };
    let mut place = Place { asked: Some(name.clone()), ..Place::default() };
    if let Some((found, holds)) = workstation(tx, name)? {
        if found.state == WorkstationState::Registered {
            place.probes = registry::probes(tx, name)?;
        }
        (place.found, place.holds) = (Some(found), holds);
    }
    Ok(place)
}
