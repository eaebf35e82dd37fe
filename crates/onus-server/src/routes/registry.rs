//! Who there is, and where work happens.

use crate::route::{Asked, Route, Told, get};
use crate::store::Store;
use onus_app::view::{WorkersView, WorkstationsView};
use onus_core::id::{Handle, WorkstationName};
use onus_core::refusal::Refusal;
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

impl Told for WorkersView {}
impl Told for WorkstationsView {}
