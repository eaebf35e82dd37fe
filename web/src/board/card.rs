//! One task in few words.

use crate::PageRequest;
use crate::form;
use crate::html::{Html, blocker, ring};
use onus_core::id::{Handle, TaskId};
use onus_core::task::{State, StateName, Task, moves};
use onus_core::worker::{Kind, Worker};
use onus_store::error::Result as StoreResult;
use onus_store::port::Tx;
use onus_store::{load, registry};
use std::collections::BTreeMap;

/// What cards need to know beside their tasks.
#[derive(Debug)]
pub(super) struct CardFacts {
    pub(super) workers: BTreeMap<Handle, Kind>,
    /// The dependencies that a task still waits for.
    waits: BTreeMap<TaskId, Vec<TaskId>>,
}

impl CardFacts {
    pub(super) fn load<'a>(tx: &mut dyn Tx, tasks: impl Iterator<Item = &'a Task>) -> StoreResult<CardFacts> {
        let workers =
            registry::workers(tx, None)?.into_iter().map(|row| (row.worker.handle, row.worker.kind));
        let workers = workers.collect();
        let mut waits = BTreeMap::new();
        for task in tasks {
            let open = waits_of(tx, task)?;
            if !open.is_empty() {
                waits.insert(task.id.clone(), open);
            }
        }
        Ok(CardFacts { workers, waits })
    }
}

/// What an open task still waits for.
pub(super) fn waits_of(tx: &mut dyn Tx, task: &Task) -> StoreResult<Vec<TaskId>> {
    if !matches!(task.state, State::Open) || task.depends_on.is_empty() {
        return Ok(Vec::new());
    }
    let open = load::dependencies(tx, &task.id)?.into_iter();
    let open = open.filter(|on| on.state != Some(StateName::Complete) && !is_excepted(task, &on.id));
    Ok(open.map(|on| on.id).collect())
}

fn is_excepted(task: &Task, on: &TaskId) -> bool {
    task.exceptions.get(on).is_some_and(|exception| exception.approved_by.is_some())
}

#[derive(Debug)]
pub(super) struct Card {
    pub(super) id: String,
    pub(super) title: String,
    /// What it is called where it came from.
    pub(super) known_as: Option<String>,
    pub(super) state: StateName,
    pub(super) priority: String,
    pub(super) holder: Option<Holder>,
    pub(super) role: Option<String>,
    pub(super) sprint: Option<String>,
    pub(super) tags: Vec<String>,
    /// What it waits for, in words.
    pub(super) blockers: Vec<String>,
    pub(super) high_risk: bool,
    pub(super) forced: bool,
    /// What is wrong with it, as a class: its holder is silent, or it waits for something outside.
    pub(super) trouble: &'static str,
    pub(super) moves: String,
}

#[derive(Debug)]
pub(super) struct Holder {
    pub(super) handle: String,
    pub(super) kind: &'static str,
    pub(super) workstation: String,
    pub(super) ring: Html,
    pub(super) own: bool,
}

impl Card {
    pub(super) fn new(task: &Task, seen: &PageRequest, known: &CardFacts) -> Card {
        let viewer: Option<&Worker> = seen.viewer.worker.as_ref();
        let holder = task.assignment().map(|held| Holder {
            handle: held.assignee.to_string(),
            kind: known.workers.get(&held.assignee).map_or("", |kind| kind.name()),
            workstation: held.workstation.to_string(),
            ring: ring(held, seen.now),
            own: viewer.is_some_and(|viewer| viewer.handle == held.assignee),
        });
        let mut blockers: Vec<String> = match &task.state {
            State::Blocked { on, .. } => vec![blocker(&on.to_string()).to_owned()],
            _ => Vec::new(),
        };
        blockers.extend(known.waits.get(&task.id).into_iter().flatten().map(ToString::to_string));
        let forced = match &task.state {
            State::Complete(closing) | State::Dropped(closing) => closing.forced,
            _ => task.assignment().is_some_and(|held| held.forced),
        };
        let is_late = task.assignment().is_some_and(|held| held.lease.expires_at() <= seen.now);
        Card {
            trouble: match &task.state {
                _ if is_late => "late",
                State::Blocked { .. } => "hurt",
                _ => "",
            },
            id: task.id.to_string(),
            title: task.spec.title.clone(),
            known_as: task.spec.origin.as_ref().and_then(onus_core::intake::known_as).map(str::to_owned),
            state: task.state.name(),
            priority: task.spec.priority.to_string(),
            holder,
            role: task.spec.role.as_ref().map(ToString::to_string),
            sprint: task.spec.sprint.clone(),
            tags: task.spec.tags.clone(),
            blockers,
            high_risk: task.spec.risk == onus_core::task::Risk::High,
            forced,
            moves: viewer.map(|viewer| form::moves(&moves(task, viewer))).unwrap_or_default(),
        }
    }
}
