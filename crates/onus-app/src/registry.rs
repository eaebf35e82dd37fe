//! `init` and `worker`: who there is.

use crate::idempotent_admin::Asker;
use crate::remote::calls;
use crate::submit::unexpected;
use crate::view::{WorkerView, WorkersView};
use crate::{Onus, workstation};
use onus_core::code::Code;
use onus_core::event::{Event, ProjectAdded, Stamped, WorkerAdded, WorkspaceCreated, WorkstationAdded};
use onus_core::facts::Caller;
use onus_core::id::{Handle, ProjectKey, WorkstationName};
use onus_core::ledger::Entry;
use onus_core::refusal::Refusal;
use onus_core::registry::{Registration, person, worker};
use onus_core::worker::Worker;
use onus_core::workstation::WorkstationState;
use onus_store::error::StoreError;
use onus_store::port::{Outcome, Store, Tx};
use onus_store::registry::WorkstationHolding;
use onus_store::{apply, load, registry};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What `init` makes sure of.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Founding {
    /// The project that was asked for by name.
    pub project: Option<ProjectKey>,
    /// What the first project is called when none was.
    pub default_project: ProjectKey,
    /// The person who runs it.
    pub person: WorkerAdded,
    /// The checkout in which they stand, if there is one.
    pub checkout: Option<WorkstationAdded>,
}

/// What `init` found or made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Founded {
    pub uid: String,
    pub project: ProjectKey,
    /// The person, if they are registered.
    pub person: Option<Handle>,
    pub checkout: Option<WorkstationName>,
    /// Whether anything was new.
    pub created: bool,
}

impl Onus {
    /// Makes the workspace, its first person, workstation and project, as far as they are not there. The signing key
    /// comes from outside: `key` is asked for the public half of the key that belongs to a workspace.
    pub fn init(
        &mut self,
        founding: &Founding,
        key: impl Fn(&str) -> Result<String, Refusal>,
    ) -> Result<Founded, Refusal> {
        self.store.write(|tx| {
            let founded = match load::workspace(tx) {
                Ok(workspace) => {
                    let caller = load::caller(tx, Some(&founding.person.handle))?;
                    join_workspace(tx, workspace.uid, &caller, founding)?
                }
                Err(StoreError::Missing(_)) => found_workspace(tx, founding, &key)?,
                Err(error) => return Err(Refusal::from(error)),
            };
            Ok(Outcome::Commit(founded))
        })
    }

    /// `init` at a store that somebody else keeps: adds the project and the checkout that its caller lacks.
    pub fn join<'a>(&mut self, asker: impl Into<Asker<'a>>, founding: &Founding) -> Result<Founded, Refusal> {
        self.administer(asker, &calls::Join { founding: founding.clone() }, |tx, caller| {
            let uid = load::workspace(tx)?.uid;
            let founded = join_workspace(tx, uid, caller, founding)?;
            Ok(if founded.created { Outcome::Commit(founded) } else { Outcome::Rollback(founded) })
        })
    }

    pub fn add_worker<'a>(
        &mut self,
        asker: impl Into<Asker<'a>>,
        wanted: &WorkerAdded,
    ) -> Result<(Registration, Worker), Refusal> {
        self.administer(asker, &calls::AddWorker { wanted: wanted.clone() }, |tx, caller| {
            onus_host::zone::known(&wanted.tz).map_err(Refusal::invalid)?;
            let by = person(caller)?;
            let found = load::worker(tx, &wanted.handle)?;
            match (worker::register(found.as_ref(), wanted)?, found) {
                (Registration::Existing, Some(found)) => {
                    Ok(Outcome::Rollback((Registration::Existing, found)))
                }
                (registration, _) => {
                    let added = change_worker(tx, by, wanted.clone().into())?;
                    Ok(Outcome::Commit((registration, added)))
                }
            }
        })
    }

    /// A paused worker gets no new work.
    pub fn pause_worker<'a>(
        &mut self,
        asker: impl Into<Asker<'a>>,
        handle: &Handle,
        reason: Option<&str>,
    ) -> Result<Worker, Refusal> {
        let call = calls::PauseWorker { worker: handle.clone(), reason: reason.map(str::to_owned) };
        self.administer(asker, &call, |tx, caller| {
            let (by, event) = worker::pause(caller, &worker_of(tx, handle)?, reason)?;
            Ok(Outcome::Commit(change_worker(tx, &by, event)?))
        })
    }

    pub fn resume_worker<'a>(
        &mut self,
        asker: impl Into<Asker<'a>>,
        handle: &Handle,
    ) -> Result<Worker, Refusal> {
        self.administer(asker, &calls::ResumeWorker { worker: handle.clone() }, |tx, caller| {
            let (by, event) = worker::resume(caller, &worker_of(tx, handle)?)?;
            Ok(Outcome::Commit(change_worker(tx, &by, event)?))
        })
    }

    pub fn workers(&mut self, only: Option<&Handle>) -> Result<WorkersView, Refusal> {
        if let Some(answer) = self.remote(|| calls::Workers { only: only.cloned() })? {
            return Ok(answer);
        }
        let rows = self.ask(|tx| registry::workers(tx, only))?;
        match only {
            Some(handle) if rows.is_empty() => Err(no_worker(handle)),
            _ => Ok(WorkersView { workers: rows.iter().map(WorkerView::from).collect() }),
        }
    }
}

fn found_workspace(
    tx: &mut dyn Tx,
    founding: &Founding,
    key: &impl Fn(&str) -> Result<String, Refusal>,
) -> Result<Founded, Refusal> {
    let now = tx.now()?;
    let uid = new_uid(now.wall.0)?;
    let public_key = key(&uid.to_string())?;
    let person = &founding.person.handle;
    registry::insert_workspace(tx, &uid.to_string(), &public_key, now.wall)?;
    record(tx, person, WorkspaceCreated { uid, public_key })?;
    change_worker(tx, person, founding.person.clone().into())?;
    let project = founding.project.as_ref().unwrap_or(&founding.default_project);
    add_project(tx, person, project)?;
    let checkout = founding.checkout.as_ref().map(|wanted| checkout_of(tx, person, wanted)).transpose()?;
    Ok(Founded {
        uid: uid.to_string(),
        project: project.clone(),
        person: Some(person.clone()),
        checkout: checkout.map(|(name, _)| name),
        created: true,
    })
}

/// A store that is there keeps its people: running `init` in it makes nobody a person. A registered person's `init`
/// adds the project and the checkout that are missing.
fn join_workspace(
    tx: &mut dyn Tx,
    uid: String,
    caller: &Caller,
    founding: &Founding,
) -> Result<Founded, Refusal> {
    let known = registry::projects(tx)?;
    let mut created = false;
    if let Some(wanted) = founding.project.as_ref().filter(|wanted| !known.contains(wanted)) {
        add_project(tx, person(caller)?, wanted)?;
        created = true;
    }
    let mut checkout = None;
    if let (Some(wanted), Ok(by)) = (&founding.checkout, person(caller)) {
        let (name, new) = checkout_of(tx, by, wanted)?;
        created |= new;
        checkout = Some(name);
    }
    let project = founding.project.clone().or_else(|| known.first().cloned());
    Ok(Founded {
        uid,
        project: project.unwrap_or_else(|| founding.default_project.clone()),
        person: person(caller).ok().cloned(),
        checkout,
        created,
    })
}

fn add_project(tx: &mut dyn Tx, by: &Handle, key: &ProjectKey) -> Result<(), Refusal> {
    registry::insert_project(tx, key)?;
    record(tx, by, ProjectAdded { key: key.clone() }).map(drop)
}

fn new_uid(wall: i64) -> Result<Uuid, Refusal> {
    let mut tail = [0; 10];
    getrandom::fill(&mut tail).map_err(|error| Refusal::new(Code::Internal, error.to_string()))?;
    Ok(uuid::Builder::from_unix_timestamp_millis(u64::try_from(wall).unwrap_or(0), &tail).into_uuid())
}

fn worker_of(tx: &mut dyn Tx, handle: &Handle) -> Result<Worker, Refusal> {
    load::worker(tx, handle)?.ok_or_else(|| no_worker(handle))
}

fn no_worker(handle: &Handle) -> Refusal {
    Refusal::new(Code::UnknownName, format!("{handle} is not registered")).hint("onus worker list")
}

/// Records what happened to a worker, and makes its row say so.
fn change_worker(tx: &mut dyn Tx, by: &Handle, event: Event) -> Result<Worker, Refusal> {
    let handle = worker::changed(&event).ok_or_else(|| unexpected("an event about no worker"))?;
    let before = load::worker(tx, handle)?;
    let is_new = before.is_none();
    let after = worker::evolve(before, &event).map_err(unexpected)?;
    if is_new {
        registry::insert_worker(tx, &after)?;
    } else {
        registry::put_worker(tx, &after)?;
    }
    record(tx, by, event)?;
    Ok(after)
}

/// The workstation of a directory: the one registered there, else a new one under the first free name.
fn checkout_of(
    tx: &mut dyn Tx,
    by: &Handle,
    wanted: &WorkstationAdded,
) -> Result<(WorkstationName, bool), Refusal> {
    let known = registry::workstations(tx)?;
    let is_there = |row: &&WorkstationHolding| {
        row.workstation.path == wanted.path && row.workstation.state != WorkstationState::Retired
    };
    if let Some(row) = known.iter().find(is_there) {
        return Ok((row.workstation.name.clone(), false));
    }
    let taken = |name: &WorkstationName| known.iter().any(|row| row.workstation.name == *name);
    let mut named = wanted.clone();
    let mut number = 1;
    while taken(&named.name) {
        number += 1;
        let candidate = format!("{}-{number}", wanted.name);
        named.name = candidate.parse().map_err(Refusal::invalid)?;
    }
    let name = named.name.clone();
    workstation::change(tx, by, named.into())?;
    Ok((name, true))
}

/// Writes an event of the workspace's own chain down.
pub(crate) fn record(tx: &mut dyn Tx, actor: &Handle, event: impl Into<Event>) -> Result<Stamped, Refusal> {
    let workspace = load::workspace(tx)?;
    let stamped = Stamped {
        seq: workspace.last_seq + 1,
        task: None,
        at: tx.now()?.wall,
        actor: actor.clone(),
        workstation: None,
        epoch: 0,
        event: event.into(),
    };
    let entry = Entry::seal(&workspace.uid, &stamped, workspace.head).map_err(unexpected)?;
    apply::workspace_entry(tx, &entry)?;
    Ok(stamped)
}
