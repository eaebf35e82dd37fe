//! Who there is, and where work happens.

use onus_core::id::{BranchName, Handle, Role, TaskId, WorkstationName};
use onus_core::probe::{Probe, ProbeResult, Verdict};
use onus_core::registry::Registration;
use onus_core::time::Timestamp;
use onus_core::worker::{Kind, Worker, WorkerState};
use onus_core::workstation::{Lifecycle, Workstation, WorkstationKind, WorkstationState};
use onus_store::registry::{WorkerHolding, WorkstationHolding};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WorkersView {
    pub workers: Vec<WorkerView>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WorkerView {
    pub handle: Handle,
    pub kind: Kind,
    pub tier: Option<String>,
    pub role: Option<Role>,
    pub state: WorkerState,
    pub tz: String,
    pub holds: Vec<TaskId>,
}

impl From<&WorkerHolding> for WorkerView {
    fn from(row: &WorkerHolding) -> WorkerView {
        let worker = &row.worker;
        WorkerView {
            handle: worker.handle.clone(),
            kind: worker.kind,
            tier: worker.tier.clone(),
            role: worker.role.clone(),
            state: worker.state,
            tz: worker.tz.clone(),
            holds: row.holds.clone(),
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WorkstationsView {
    pub workstations: Vec<WorkstationView>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WorkstationView {
    pub name: WorkstationName,
    pub kind: WorkstationKind,
    pub path: Option<String>,
    pub state: WorkstationState,
    pub lifecycle: Lifecycle,
    pub version: i64,
    pub held_by: Option<HeldByView>,
    pub probes: Vec<ProbeView>,
    pub branch: Option<BranchName>,
    /// Why it is quarantined or retired.
    pub reason: Option<String>,
}

/// A probe of a workstation and what it said last; nothing where it has not run yet.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ProbeView {
    pub probe: String,
    pub verdict: Option<Verdict>,
    pub at: Option<Timestamp>,
    pub took_ms: Option<i64>,
    pub detail: Option<String>,
}

/// The live assignment of a workstation.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HeldByView {
    pub task: TaskId,
    pub worker: Handle,
}

impl WorkstationView {
    pub fn new(row: &WorkstationHolding, results: &[ProbeResult]) -> WorkstationView {
        let workstation = &row.workstation;
        WorkstationView {
            name: workstation.name.clone(),
            kind: workstation.kind,
            path: workstation.path.clone(),
            state: workstation.state,
            lifecycle: workstation.lifecycle,
            version: workstation.version,
            held_by: row.holds.clone().map(|(task, worker)| HeldByView { task, worker }),
            probes: probe_views(&workstation.probes, results),
            branch: workstation.branch.clone(),
            reason: workstation.reason.clone(),
        }
    }
}

/// Every result, and every probe that has none yet.
fn probe_views(probes: &[Probe], results: &[ProbeResult]) -> Vec<ProbeView> {
    let told = results.iter().map(|result| ProbeView {
        probe: result.probe.clone(),
        verdict: Some(result.verdict),
        at: Some(result.at),
        took_ms: Some(result.took_ms),
        detail: Some(result.detail.clone()),
    });
    let untold = probes.iter().map(ToString::to_string);
    let untold = untold.filter(|spec| results.iter().all(|result| result.probe != *spec));
    let untold =
        untold.map(|probe| ProbeView { probe, verdict: None, at: None, took_ms: None, detail: None });
    told.chain(untold).collect()
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WorkerAddedView {
    pub outcome: Registration,
    pub worker: Worker,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WorkerChangedView {
    pub worker: Worker,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WorkstationAddedView {
    pub outcome: Registration,
    pub workstation: Workstation,
}

/// A workstation after a change.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WorkstationChangedView {
    pub workstation: WorkstationView,
}

impl From<&WorkstationHolding> for WorkstationChangedView {
    fn from(row: &WorkstationHolding) -> WorkstationChangedView {
        WorkstationChangedView { workstation: WorkstationView::new(row, &[]) }
    }
}
