//! `init`, `worker add`, `workstation add`: who there is, and where.

use crate::view::{WorkerView, WorkersView, WorkstationView, WorkstationsView};
use crate::{LOCAL, Onus};
use onus_core::code::Code;
use onus_core::event::{Event, ProjectAdded, Stamped, WorkerAdded, WorkspaceCreated, WorkstationAdded};
use onus_core::id::{Handle, ProjectKey, TaskId, WorkstationName};
use onus_core::ledger::Entry;
use onus_core::refusal::Refusal;
use onus_core::registry::{Registration, person, register_worker, register_workstation};
use onus_core::worker::Worker;
use onus_core::workstation::Workstation;
use onus_store::error::StoreError;
use onus_store::port::{Outcome, Store, Tx};
use onus_store::{apply, load, registry};
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// What `init` makes sure of.
#[derive(Debug, Clone)]
pub struct Founding {
    /// The project that was asked for by name.
    pub project: Option<ProjectKey>,
    /// What the first project is called when none was.
    pub default_project: ProjectKey,
    /// The person who runs it.
    pub person: Worker,
    /// The checkout in which they stand, if there is one.
    pub checkout: Option<Workstation>,
}

/// What `init` found or made.
#[derive(Debug, Clone)]
pub struct Founded {
    pub uid: String,
    pub project: ProjectKey,
    /// The person, if they are registered.
    pub person: Option<Handle>,
    pub checkout: Option<WorkstationName>,
    /// Whether anything was new.
    pub created: bool,
}

impl<S: Store> Onus<S> {
    /// Makes the workspace, its first person, workstation and project, as far as they are not there. The signing key
    /// comes from outside: `key` is asked for the public half of the key that belongs to a workspace.
    pub fn init(
        &mut self,
        founding: &Founding,
        key: impl Fn(&str) -> Result<String, Refusal>,
    ) -> Result<Founded, Refusal> {
        self.store.write(|tx| {
            let founded = match load::workspace(tx, LOCAL) {
                Ok(workspace) => join_workspace(tx, workspace.uid, founding)?,
                Err(StoreError::Missing(_)) => found_workspace(tx, founding, &key)?,
                Err(error) => return Err(Refusal::from(error)),
            };
            Ok(Outcome::Commit(founded))
        })
    }

    pub fn add_worker(&mut self, actor: Option<&Handle>, worker: &Worker) -> Result<Registration, Refusal> {
        self.store.write(|tx| {
            let caller = load::caller(tx, LOCAL, actor)?;
            let by = person(&caller)?;
            let registration = register_worker(load::worker(tx, LOCAL, &worker.handle)?.as_ref(), worker)?;
            if registration == Registration::Created {
                add_worker(tx, by, worker)?;
            }
            Ok(Outcome::Commit(registration))
        })
    }

    pub fn add_workstation(
        &mut self,
        actor: Option<&Handle>,
        workstation: &Workstation,
    ) -> Result<Registration, Refusal> {
        self.store.write(|tx| {
            let caller = load::caller(tx, LOCAL, actor)?;
            let by = person(&caller)?;
            let known = registry::workstations(tx, LOCAL)?;
            let found = known.iter().map(|row| &row.workstation).find(|found| found.name == workstation.name);
            let registration = register_workstation(found, workstation)?;
            if registration == Registration::Created {
                let same_place =
                    |other: &&Workstation| other.path.is_some() && other.path == workstation.path;
                if let Some(other) = known.iter().map(|row| &row.workstation).find(same_place) {
                    return Err(Refusal::invalid(format!("{} already is at that directory", other.name))
                        .hint("one directory, one workstation"));
                }
                add_workstation(tx, by, workstation)?;
            }
            Ok(Outcome::Commit(registration))
        })
    }

    pub fn workers(&mut self, only: Option<&Handle>) -> Result<WorkersView, Refusal> {
        let rows = self.ask(|tx| registry::workers(tx, LOCAL, only))?;
        match only {
            Some(handle) if rows.is_empty() => {
                Err(Refusal::new(Code::UnknownName, format!("{handle} is not registered"))
                    .hint("onus worker list"))
            }
            _ => Ok(WorkersView { workers: rows.iter().map(WorkerView::from).collect() }),
        }
    }

    pub fn workstations(&mut self, only: Option<&WorkstationName>) -> Result<WorkstationsView, Refusal> {
        let mut rows = self.ask(|tx| registry::workstations(tx, LOCAL))?;
        if let Some(name) = only {
            rows.retain(|row| row.workstation.name == *name);
            if rows.is_empty() {
                return Err(Refusal::new(Code::UnknownName, format!("{name} is not registered"))
                    .hint("onus workstation list"));
            }
        }
        Ok(WorkstationsView { workstations: rows.iter().map(WorkstationView::from).collect() })
    }

    /// The workstation whose directory contains `here`: the innermost one.
    pub fn workstation_at(&mut self, here: &Path) -> Result<Option<(WorkstationName, PathBuf)>, Refusal> {
        let rows = self.ask(|tx| registry::workstations(tx, LOCAL))?;
        let containing = rows.into_iter().filter_map(|row| {
            let path = PathBuf::from(row.workstation.path?);
            here.starts_with(&path).then_some((row.workstation.name, path))
        });
        Ok(containing.max_by_key(|(_, path)| path.components().count()))
    }

    /// The directory of a workstation, if it has one.
    pub fn directory_of(&mut self, name: &WorkstationName) -> Result<Option<PathBuf>, Refusal> {
        Ok(self.ask(|tx| registry::directory(tx, LOCAL, name))?.map(PathBuf::from))
    }

    /// The directory in which `worker` holds `task`, if it does and the workstation has one.
    pub fn holding_directory(&mut self, task: &TaskId, worker: &Handle) -> Result<Option<PathBuf>, Refusal> {
        Ok(self.ask(|tx| registry::holding_directory(tx, LOCAL, task, worker))?.map(PathBuf::from))
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
    registry::insert_workspace(tx, LOCAL, &uid.to_string(), &public_key, now.wall)?;
    record(tx, person, WorkspaceCreated { uid, public_key })?;
    add_worker(tx, person, &founding.person)?;
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
fn join_workspace(tx: &mut dyn Tx, uid: String, founding: &Founding) -> Result<Founded, Refusal> {
    let caller = load::caller(tx, LOCAL, Some(&founding.person.handle))?;
    let known = registry::projects(tx, LOCAL)?;
    let mut created = false;
    if let Some(wanted) = founding.project.as_ref().filter(|wanted| !known.contains(wanted)) {
        add_project(tx, person(&caller)?, wanted)?;
        created = true;
    }
    let mut checkout = None;
    if let (Some(wanted), Ok(by)) = (&founding.checkout, person(&caller)) {
        let (name, new) = checkout_of(tx, by, wanted)?;
        created |= new;
        checkout = Some(name);
    }
    let project = founding.project.clone().or_else(|| known.first().cloned());
    Ok(Founded {
        uid,
        project: project.unwrap_or_else(|| founding.default_project.clone()),
        person: person(&caller).ok().cloned(),
        checkout,
        created,
    })
}

fn add_project(tx: &mut dyn Tx, by: &Handle, key: &ProjectKey) -> Result<(), Refusal> {
    registry::insert_project(tx, LOCAL, key)?;
    record(tx, by, ProjectAdded { key: key.clone() })
}

fn new_uid(wall: i64) -> Result<Uuid, Refusal> {
    let mut tail = [0; 10];
    getrandom::fill(&mut tail).map_err(|error| Refusal::new(Code::Internal, error.to_string()))?;
    Ok(uuid::Builder::from_unix_timestamp_millis(u64::try_from(wall).unwrap_or(0), &tail).into_uuid())
}

fn add_worker(tx: &mut dyn Tx, by: &Handle, worker: &Worker) -> Result<(), Refusal> {
    registry::insert_worker(tx, LOCAL, worker)?;
    record(
        tx,
        by,
        WorkerAdded {
            handle: worker.handle.clone(),
            kind: worker.kind,
            tier: worker.tier.clone(),
            role: worker.role.clone(),
            tz: worker.tz.clone(),
        },
    )
}

fn add_workstation(tx: &mut dyn Tx, by: &Handle, workstation: &Workstation) -> Result<(), Refusal> {
    registry::insert_workstation(tx, LOCAL, workstation)?;
    record(
        tx,
        by,
        WorkstationAdded {
            name: workstation.name.clone(),
            kind: workstation.kind,
            path: workstation.path.clone(),
            lifecycle: workstation.lifecycle,
        },
    )
}

/// The workstation of a directory: the one registered there, else a new one under the first free name.
fn checkout_of(
    tx: &mut dyn Tx,
    by: &Handle,
    wanted: &Workstation,
) -> Result<(WorkstationName, bool), Refusal> {
    let known = registry::workstations(tx, LOCAL)?;
    if let Some(row) = known.iter().find(|row| row.workstation.path == wanted.path) {
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
    add_workstation(tx, by, &named)?;
    Ok((named.name, true))
}

/// Writes an event of the workspace's own chain down.
pub(crate) fn record(tx: &mut dyn Tx, actor: &Handle, event: impl Into<Event>) -> Result<(), Refusal> {
    let workspace = load::workspace(tx, LOCAL)?;
    let stamped = Stamped {
        seq: workspace.last_seq + 1,
        task: None,
        at: tx.now()?.wall,
        actor: actor.clone(),
        workstation: None,
        epoch: 0,
        event: event.into(),
    };
    let entry = Entry::seal(&workspace.uid, &stamped, workspace.head)
        .map_err(|error| Refusal::new(Code::Internal, error.to_string()))?;
    Ok(apply::workspace_entry(tx, LOCAL, &entry)?)
}
