//! Workspaces, projects, workers and workstations: who and where.

use crate::codec::{self, in_force, workstation_columns};
use crate::error::Result;
use crate::load;
use crate::port::Tx;
use crate::{args, sql};
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
    INSERT_WORKSPACE = "INSERT INTO workspace (id, uid, generation, head, public_key, created_at) \
        VALUES (?1, ?2, 1, ?3, ?4, ?5)";
    RAISE_GENERATION = "UPDATE workspace SET generation = ?3 WHERE id = ?1 AND generation = ?2";
    SET_ANCHOR = "UPDATE workspace SET anchor = ?2 WHERE id = ?1";
    INSERT_PROJECT = "INSERT INTO project (workspace, key, last_number, born) \
        VALUES (?1, ?2, 0, (SELECT coalesce(max(seq), 0) + 1 FROM ledger WHERE workspace = ?1))";
    PROJECTS = "SELECT key FROM project WHERE workspace = ?1 ORDER BY born";
    INSERT_WORKER = "INSERT INTO worker (workspace, handle, kind, tier, role, state, tz) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    WORKERS = "SELECT w.handle, w.kind, w.tier, w.role, w.state, w.tz, \
        (SELECT string_agg(a.task, ' ') FROM assignment a \
            WHERE a.workspace = w.workspace AND a.assignee = w.handle AND a.ended_at IS NULL) \
        FROM worker w WHERE w.workspace = ?1 AND (CAST(?2 AS TEXT) IS NULL OR w.handle = ?2) ORDER BY w.handle";
    PUT_WORKER = "UPDATE worker SET state = ?3 WHERE workspace = ?1 AND handle = ?2";
    INSERT_WORKSTATION = "INSERT INTO workstation (workspace, name, kind, path, state, lifecycle, version, branch, probes, \
        reason, role, lane) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    PUT_WORKSTATION = "UPDATE workstation SET kind = ?3, path = ?4, state = ?5, lifecycle = ?6, version = ?7, branch = ?8, \
        probes = ?9, reason = ?10, role = ?11, lane = ?12 WHERE workspace = ?1 AND name = ?2";
    PUT_PROBES = "INSERT INTO probe (workspace, workstation, at, results) VALUES (?1, ?2, ?3, ?4) \
        ON CONFLICT (workspace, workstation) DO UPDATE SET at = excluded.at, results = excluded.results";
    pub(crate) PROBES = "SELECT results FROM probe WHERE workspace = ?1 AND workstation = ?2";
    HOLDING_DIRECTORY = "SELECT w.path FROM assignment a \
        JOIN workstation w ON w.workspace = a.workspace AND w.name = a.workstation \
        WHERE a.workspace = ?1 AND a.task = ?2 AND a.assignee = ?3 AND a.ended_at IS NULL";
    PENDING = "SELECT t.id, t.state, coalesce(a.lane, t.lane) FROM task t ", in_force!(), "WHERE t.workspace = ?1 \
        AND t.role = ?2 AND t.state <> 'complete' AND t.state <> 'dropped' ORDER BY t.priority, t.born LIMIT 200";
    WORKSTATIONS = "SELECT ", workstation_columns!(), ", a.task, a.assignee \
        FROM workstation w LEFT JOIN assignment a ON a.workspace = w.workspace AND a.workstation = w.name \
        AND a.ended_at IS NULL WHERE w.workspace = ?1 ORDER BY w.name";
}

pub fn insert_workspace(tx: &mut dyn Tx, uid: &str, public_key: &str, created_at: Timestamp) -> Result<()> {
    let workspace = tx.workspace();
    tx.run_one(&INSERT_WORKSPACE, &args![workspace.0, uid, &Digest::ZERO, public_key, created_at.0])
}

pub fn raise_generation(tx: &mut dyn Tx, from: Generation, to: Generation) -> Result<()> {
    let workspace = tx.workspace();
    tx.run_one(&RAISE_GENERATION, &args![workspace.0, from, to])
}

pub fn set_anchor(tx: &mut dyn Tx, anchor: &str) -> Result<()> {
    let workspace = tx.workspace();
    tx.run_one(&SET_ANCHOR, &args![workspace.0, anchor])
}

/// Adds a project; its own ledger entry must be the next one.
pub fn insert_project(tx: &mut dyn Tx, key: &ProjectKey) -> Result<()> {
    let workspace = tx.workspace();
    tx.run_one(&INSERT_PROJECT, &args![workspace.0, key.as_str()])
}

/// The projects, the oldest first.
pub fn projects(tx: &mut dyn Tx) -> Result<Vec<ProjectKey>> {
    let workspace = tx.workspace();
    tx.rows(&PROJECTS, &args![workspace.0])?.into_iter().map(|mut row| row.parsed()).collect()
}

pub fn insert_worker(tx: &mut dyn Tx, worker: &Worker) -> Result<()> {
    let workspace = tx.workspace();
    tx.run_one(
        &INSERT_WORKER,
        &args![
            workspace.0,
            worker.handle.as_str(),
            worker.kind.name(),
            worker.tier.as_deref(),
            worker.role.as_ref().map(|role| role.as_str()),
            worker.state.name(),
            worker.tz.as_str(),
        ],
    )
}

/// A worker and what it holds now.
#[derive(Debug, Clone)]
pub struct WorkerHolding {
    pub worker: Worker,
    pub holds: Vec<TaskId>,
}

pub fn workers(tx: &mut dyn Tx, only: Option<&Handle>) -> Result<Vec<WorkerHolding>> {
    let workspace = tx.workspace();
    let rows = tx.rows(&WORKERS, &args![workspace.0, only.map(Handle::as_str)])?;
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
    let workspace = tx.workspace();
    tx.run_one(&PUT_WORKER, &args![workspace.0, worker.handle.as_str(), worker.state.name()])
}

/// Whether a row is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    New,
    Changed,
}

pub fn put_workstation(tx: &mut dyn Tx, put: Put, workstation: &Workstation) -> Result<()> {
    let workspace = tx.workspace();
    let statement = match put {
        Put::New => &INSERT_WORKSTATION,
        Put::Changed => &PUT_WORKSTATION,
    };
    tx.run_one(
        statement,
        &args![
            workspace.0,
            workstation.name.as_str(),
            workstation.kind.name(),
            workstation.path.as_deref(),
            workstation.state.name(),
            workstation.lifecycle.name(),
            workstation.version,
            workstation.branch.as_ref().map(|branch| branch.as_str()),
            codec::list_text(&workstation.probes)?,
            workstation.reason.as_deref(),
            workstation.role.as_ref().map(|role| role.as_str()),
            workstation.lane,
        ],
    )
}

/// The tasks of a role that have not ended, each with its lane.
pub fn pending(tx: &mut dyn Tx, role: &Role) -> Result<Vec<Pending>> {
    let workspace = tx.workspace();
    let rows = tx.rows(&PENDING, &args![workspace.0, role.as_str()])?;
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
    let workspace = tx.workspace();
    let results = codec::json_text(&results)?;
    tx.run(&PUT_PROBES, &args![workspace.0, name.as_str(), at.0, results]).map(drop)
}

/// What the probes of a workstation said last.
pub fn probes(tx: &mut dyn Tx, name: &WorkstationName) -> Result<Vec<ProbeResult>> {
    let workspace = tx.workspace();
    let row = tx.row(&PROBES, &args![workspace.0, name.as_str()])?;
    row.map_or(Ok(Vec::new()), |mut row| codec::json_list(&mut row))
}

/// The directory of a workstation; none where it has none or is not registered. Asked by the statement that a grant has
/// just asked.
pub fn directory(tx: &mut dyn Tx, name: &WorkstationName) -> Result<Option<String>> {
    Ok(load::workstation(tx, name)?.and_then(|(found, _)| found.path))
}

/// The directory of the workstation in which `worker` holds `task`.
pub fn holding_directory(tx: &mut dyn Tx, task: &TaskId, worker: &Handle) -> Result<Option<String>> {
    let workspace = tx.workspace();
    let row = tx.row(&HOLDING_DIRECTORY, &args![workspace.0, task.to_string(), worker.as_str()])?;
    row.map_or(Ok(None), |mut row| row.opt_text())
}

/// A workstation and the assignment it holds now.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WorkstationHolding {
    pub workstation: Workstation,
    pub holds: Option<(TaskId, Handle)>,
}

pub fn workstations(tx: &mut dyn Tx) -> Result<Vec<WorkstationHolding>> {
    let workspace = tx.workspace();
    let rows = tx.rows(&WORKSTATIONS, &args![workspace.0])?;
    rows.into_iter()
        .map(|mut row| {
            let workstation = codec::workstation(&mut row)?;
            let task: Option<TaskId> = row.opt_parsed()?;
            Ok(WorkstationHolding { workstation, holds: task.zip(row.opt_parsed()?) })
        })
        .collect()
}
