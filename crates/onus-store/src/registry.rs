//! Workspaces, projects, workers and workstations: who and where.

use crate::codec::{self, IN_FORCE, row};
use crate::error::Result;
use crate::load;
use crate::port::Tx;
use crate::sql;
use crate::tables::{WorkstationKey, WorkstationRest, WorkstationRow};
use onus_core::hash::Digest;
use onus_core::id::{Generation, Handle, ProjectKey, Role, TaskId, WorkstationName};
use onus_core::probe::ProbeResult;
use onus_core::registry::workstation::Pending;
use onus_core::task::StateName;
use onus_core::time::Timestamp;
use onus_core::worker::Worker;
use onus_core::workstation::Workstation;
use serde::{Deserialize, Serialize};

sql! {
    INSERT_WORKSPACE(uid, head, public_key, created_at) = "INSERT INTO workspace (id, uid, generation, head, \
        public_key, created_at) \
        VALUES (:workspace, :uid, 1, :head, :public_key, :created_at)";
    RAISE_GENERATION(from, to) = "UPDATE workspace SET generation = :to WHERE id = :workspace AND generation = :from";
    SET_ANCHOR(anchor) = "UPDATE workspace SET anchor = :anchor WHERE id = :workspace";
    SKIP_NUMBERS(count) = "UPDATE project SET last_number = last_number + :count WHERE workspace = :workspace";
    INSERT_PROJECT(key) = "INSERT INTO project (workspace, key, last_number, born) \
        VALUES (:workspace, :key, 0, (SELECT coalesce(max(seq), 0) + 1 FROM ledger WHERE workspace = :workspace))";
    PROJECTS = "SELECT key FROM project WHERE workspace = :workspace ORDER BY born";
    INSERT_WORKER(handle, kind, tier, role, state, tz) = "INSERT INTO worker (workspace, handle, kind, tier, role, \
        state, tz) \
        VALUES (:workspace, :handle, :kind, :tier, :role, :state, :tz)";
    WORKERS(only) = "SELECT w.handle, w.kind, w.tier, w.role, w.state, w.tz, \
        (SELECT string_agg(a.task, ' ') FROM assignment a \
            WHERE a.workspace = w.workspace AND a.assignee = w.handle AND a.ended_at IS NULL) \
        FROM worker w WHERE w.workspace = :workspace AND (CAST(:only AS TEXT) IS NULL OR w.handle = :only) ORDER BY \
        w.handle";
    PUT_WORKER(handle, state) = "UPDATE worker SET state = :state WHERE workspace = :workspace AND handle = :handle";
    PUT_WORKSTATION(name, ..rest: WorkstationRest) = "UPDATE workstation SET ", WorkstationRest::SET, " \
        WHERE workspace = :workspace AND name = :name";
    PUT_PROBES(workstation, at, results) = "INSERT INTO probe (workspace, workstation, at, results) VALUES \
        (:workspace, :workstation, :at, :results) \
        ON CONFLICT (workspace, workstation) DO UPDATE SET at = excluded.at, results = excluded.results";
    pub(crate) PROBES(workstation) = "SELECT results FROM probe WHERE workspace = :workspace AND workstation = \
        :workstation";
    HOLDING_DIRECTORY(task, worker) = "SELECT w.path FROM assignment a \
        JOIN workstation w ON w.workspace = a.workspace AND w.name = a.workstation \
        WHERE a.workspace = :workspace AND a.task = :task AND a.assignee = :worker AND a.ended_at IS NULL";
    PENDING(role) = "SELECT t.id, t.state, coalesce(a.lane, t.lane) FROM task t ", IN_FORCE, "WHERE t.workspace = :workspace \
        AND t.role = :role AND t.state <> 'complete' AND t.state <> 'dropped' ORDER BY t.priority, t.born LIMIT 200";
    WORKSTATIONS = "SELECT ", WorkstationRow::LIST, ", a.task, a.assignee \
        FROM workstation w LEFT JOIN assignment a ON a.workspace = w.workspace AND a.workstation = w.name \
        AND a.ended_at IS NULL WHERE w.workspace = :workspace ORDER BY w.name";
}

pub fn insert_workspace(tx: &mut dyn Tx, uid: &str, public_key: &str, created_at: Timestamp) -> Result<()> {
    tx.run_one(&INSERT_WORKSPACE { uid, head: &Digest::ZERO, public_key, created_at })
}

pub fn raise_generation(tx: &mut dyn Tx, from: Generation, to: Generation) -> Result<()> {
    tx.run_one(&RAISE_GENERATION { from, to })
}

/// Leaves so many numbers of every project out: tasks that are lost may have had them.
pub fn skip_numbers(tx: &mut dyn Tx, count: i64) -> Result<()> {
    tx.run_any(&SKIP_NUMBERS { count })
}

pub fn set_anchor(tx: &mut dyn Tx, anchor: &str) -> Result<()> {
    tx.run_one(&SET_ANCHOR { anchor })
}

/// Adds a project; its own ledger entry must be the next one.
pub fn insert_project(tx: &mut dyn Tx, key: &ProjectKey) -> Result<()> {
    tx.run_one(&INSERT_PROJECT { key })
}

/// The projects, the oldest first.
pub fn projects(tx: &mut dyn Tx) -> Result<Vec<ProjectKey>> {
    tx.rows(&PROJECTS {})?.into_iter().map(|mut row| row.parsed()).collect()
}

pub fn insert_worker(tx: &mut dyn Tx, worker: &Worker) -> Result<()> {
    tx.run_one(&INSERT_WORKER {
        handle: &worker.handle,
        kind: worker.kind.name(),
        tier: &worker.tier,
        role: &worker.role,
        state: worker.state.name(),
        tz: &worker.tz,
    })
}

/// A worker and what it holds now.
#[derive(Debug, Clone)]
pub struct WorkerHolding {
    pub worker: Worker,
    pub holds: Vec<TaskId>,
}

pub fn workers(tx: &mut dyn Tx, only: Option<&Handle>) -> Result<Vec<WorkerHolding>> {
    let rows = tx.rows(&WORKERS { only: only.map(Handle::as_str) })?;
    rows.into_iter()
        .map(|mut row| {
            let worker = codec::worker(&mut row)?;
            let holds = row.opt_text()?.unwrap_or_default();
            let holds = holds.split_whitespace().map(str::parse).collect::<std::result::Result<_, _>>();
            Ok(WorkerHolding { worker, holds: holds.map_err(crate::error::StoreError::Corrupt)? })
        })
        .collect()
}

/// Writes a worker's new state.
pub fn put_worker(tx: &mut dyn Tx, worker: &Worker) -> Result<()> {
    tx.run_one(&PUT_WORKER { handle: &worker.handle, state: worker.state.name() })
}

/// Whether a row is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    New,
    Changed,
}

pub fn put_workstation(tx: &mut dyn Tx, put: Put, workstation: &Workstation) -> Result<()> {
    let rest = codec::workstation_row(workstation)?;
    match put {
        Put::New => {
            let key = row!(WorkstationKey { name: workstation.name.as_str() });
            tx.run_one(&WorkstationRow { key, rest })
        }
        Put::Changed => tx.run_one(&PUT_WORKSTATION { name: &workstation.name, rest }),
    }
}

/// The tasks of a role that have not ended, each with its lane.
pub fn pending(tx: &mut dyn Tx, role: &Role) -> Result<Vec<Pending>> {
    let rows = tx.rows(&PENDING { role })?;
    rows.into_iter()
        .map(|mut row| {
            let task = row.parsed()?;
            let state = codec::word(row.text()?.as_str(), StateName::parse)?;
            Ok(Pending { task, state, lane: row.opt_int()? })
        })
        .collect()
}

/// Keeps what the probes of a workstation said, in place of what they said before.
pub fn put_probes(
    tx: &mut dyn Tx,
    name: &WorkstationName,
    at: Timestamp,
    results: &[ProbeResult],
) -> Result<()> {
    let results = codec::json_text(&results)?;
    tx.run(&PUT_PROBES { workstation: name, at, results }).map(drop)
}

/// What the probes of a workstation said last.
pub fn probes(tx: &mut dyn Tx, name: &WorkstationName) -> Result<Vec<ProbeResult>> {
    let row = tx.row(&PROBES { workstation: name })?;
    row.map_or(Ok(Vec::new()), |mut row| codec::json_list(row.opt_text()?))
}

/// The directory of a workstation; none where it has none or is not registered. Asked by the statement that a grant has
/// just asked.
pub fn directory(tx: &mut dyn Tx, name: &WorkstationName) -> Result<Option<String>> {
    Ok(load::workstation(tx, name)?.and_then(|(found, _)| found.path))
}

/// The directory of the workstation in which `worker` holds `task`.
pub fn holding_directory(tx: &mut dyn Tx, task: &TaskId, worker: &Handle) -> Result<Option<String>> {
    let row = tx.row(&HOLDING_DIRECTORY { task, worker })?;
    row.map_or(Ok(None), |mut row| row.opt_text())
}

/// A workstation and the assignment it holds now.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WorkstationHolding {
    pub workstation: Workstation,
    pub holds: Option<(TaskId, Handle)>,
}

pub fn workstations(tx: &mut dyn Tx) -> Result<Vec<WorkstationHolding>> {
    let rows = tx.rows(&WORKSTATIONS {})?;
    rows.into_iter()
        .map(|mut row| {
            let workstation = codec::workstation(&mut row)?;
            let task: Option<TaskId> = row.opt_parsed()?;
            Ok(WorkstationHolding { workstation, holds: task.zip(row.opt_parsed()?) })
        })
        .collect()
}
