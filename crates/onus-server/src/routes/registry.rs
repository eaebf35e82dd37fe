//! Who there is, and where work happens.

use crate::route::{Asked, Rendered, Route, administration, get};
use crate::store::Store;
use onus_app::remote::CallName;
use onus_app::view::{
    WorkerAddedView, WorkerChangedView, WorkersView, WorkstationAddedView, WorkstationChangedView,
    WorkstationsView,
};
use onus_core::event::{WorkerAdded, WorkstationAdded};
use onus_core::id::{Handle, Role, WorkstationName};
use onus_core::probe::Probe;
use onus_core::refusal::Refusal;
use onus_core::worker::Kind;
use onus_core::workstation::Lifecycle;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn routes() -> Vec<Route> {
    vec![
        get("/v1/workers", "workers", "Everybody, and what they hold", workers),
        get(
            "/v1/workstations",
            "workstations",
            "Every workstation, whether it is ready, and what it holds",
            workstations,
        ),
        administration(
            "/v1/workers",
            CallName::AddWorker,
            "Register a person or an agent: people only",
            add_worker,
        ),
        administration(
            "/v1/workers/{name}/pause",
            CallName::PauseWorker,
            "Give a worker no new work; what it holds stays its own: people only",
            pause,
        ),
        administration(
            "/v1/workers/{name}/resume",
            CallName::ResumeWorker,
            "Let a paused worker have work again: people only",
            resume,
        ),
        administration(
            "/v1/workstations",
            CallName::AddWorkstation,
            "Register a workstation that is a name only; a directory is registered where it is: people only",
            add_workstation,
        ),
        administration(
            "/v1/workstations/{name}/quarantine",
            CallName::Quarantine,
            "No new work there, and whoever works there is suspended: people only",
            quarantine,
        ),
        administration(
            "/v1/workstations/{name}/restore",
            CallName::Restore,
            "Back from quarantine; with probes it is ready once they pass: people only",
            restore,
        ),
        administration(
            "/v1/workstations/{name}/retire",
            CallName::Retire,
            "No work there ever again, under this registration: people only",
            retire,
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WorkersQuery {
    /// Only this one
    handle: Option<Handle>,
}

fn workers(store: &mut Store, _: &Asked, query: WorkersQuery) -> Result<WorkersView, Refusal> {
    store.workers(query.handle.as_ref())
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WorkstationsQuery {
    /// Only this one
    name: Option<WorkstationName>,
}

fn workstations(store: &mut Store, _: &Asked, query: WorkstationsQuery) -> Result<WorkstationsView, Refusal> {
    store.workstations(query.name.as_ref())
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WorkerBody {
    handle: Handle,
    kind: Kind,
    /// The agent's model or class, e.g. opus
    tier: Option<String>,
    role: Option<Role>,
    /// The zone of the worker's days, e.g. Europe/Berlin; default: UTC
    tz: Option<String>,
}

fn add_worker(store: &mut Store, asked: &Asked, body: WorkerBody) -> Result<WorkerAddedView, Refusal> {
    let WorkerBody { handle, kind, tier, role, tz } = body;
    let tz = tz.unwrap_or_else(|| "UTC".to_owned());
    let (outcome, worker) = store.add_worker(asked.asker(), &WorkerAdded { handle, kind, tier, role, tz })?;
    Ok(WorkerAddedView { outcome, worker })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReasonBody {
    /// Why; goes into the ledger
    reason: Option<String>,
}

fn pause(store: &mut Store, asked: &Asked, body: ReasonBody) -> Result<WorkerChangedView, Refusal> {
    let worker = store.pause_worker(asked.asker(), &asked.name()?, body.reason.as_deref())?;
    Ok(WorkerChangedView { worker })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoBody {}

fn resume(store: &mut Store, asked: &Asked, _: NoBody) -> Result<WorkerChangedView, Refusal> {
    Ok(WorkerChangedView { worker: store.resume_worker(asked.asker(), &asked.name()?)? })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WorkstationBody {
    name: WorkstationName,
    lifecycle: Option<Lifecycle>,
    /// What must hold before work goes there
    #[serde(default)]
    probes: Vec<Probe>,
}

fn add_workstation(
    store: &mut Store,
    asked: &Asked,
    body: WorkstationBody,
) -> Result<WorkstationAddedView, Refusal> {
    let logical = WorkstationAdded::logical(body.name);
    let lifecycle = body.lifecycle.unwrap_or(logical.lifecycle);
    let wanted = WorkstationAdded { lifecycle, probes: body.probes, ..logical };
    let (outcome, workstation) = store.add_workstation(asked.asker(), &wanted)?;
    Ok(WorkstationAddedView { outcome, workstation })
}

fn quarantine(store: &mut Store, asked: &Asked, body: ReasonBody) -> Result<WorkstationChangedView, Refusal> {
    let row = store.quarantine(asked.asker(), &asked.name()?, body.reason.as_deref())?;
    // What was on its way when the quarantine was committed has arrived or is refused after this.
    if let Some((task, _)) = &row.holds
        && let Some(held) = store.held_in(task, &row.workstation.name)?
    {
        store.bar(&held)?;
    }
    Ok(WorkstationChangedView::from(&row))
}

fn restore(store: &mut Store, asked: &Asked, body: ReasonBody) -> Result<WorkstationChangedView, Refusal> {
    let row = store.restore(asked.asker(), &asked.name()?, body.reason.as_deref())?;
    Ok(WorkstationChangedView::from(&row))
}

fn retire(store: &mut Store, asked: &Asked, body: ReasonBody) -> Result<WorkstationChangedView, Refusal> {
    let row = store.retire(asked.asker(), &asked.name()?, body.reason.as_deref(), false)?;
    Ok(WorkstationChangedView::from(&row))
}

impl Rendered for WorkersView {}
impl Rendered for WorkstationsView {}
impl Rendered for WorkerAddedView {}
impl Rendered for WorkerChangedView {}
impl Rendered for WorkstationAddedView {}
impl Rendered for WorkstationChangedView {}
