//! What an agent's client asks around its tools: may this be written, is a lease to be renewed, is anything still held
//! (mission E2)? It answers early and in the client's own words; what lands is still git's hooks to guard.

use crate::Onus;
use crate::guard::Fleet;
use crate::remote::calls;
use onus_core::boundary;
use onus_core::code::Code;
use onus_core::id::{Handle, TaskId};
use onus_core::lease::Token;
use onus_core::refusal::Refusal;
use onus_core::task::Assignment;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Who works with the client, and the lease tokens that lie where it works.
#[derive(Debug)]
pub struct Seat {
    pub worker: Handle,
    pub leases: Vec<(TaskId, Token)>,
}

/// A task that the worker holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holding {
    pub task: TaskId,
    pub assignment: Assignment,
    /// The lease is to be renewed.
    pub due: bool,
}

impl Onus {
    /// Whether the worker may write: to a file, or by git where none is named. Whoever holds nothing and never lost
    /// anything here may.
    pub fn may_write(&mut self, seat: &Seat, path: Option<&Path>) -> Result<(), Refusal> {
        let fleet = self.fleet()?;
        let held: Vec<&(TaskId, Assignment)> =
            fleet.held.values().filter(|(_, held)| held.assignee == seat.worker).collect();
        if let Some(lost) = lost(&fleet, seat) {
            return Err(fenced(&fleet, lost));
        }
        let Some(path) = path.filter(|_| !held.is_empty()) else {
            return Ok(());
        };
        let place = containing(&fleet, path);
        let root = self.place.repo.as_ref().and_then(|repo| repo.root.clone());
        let own = held.iter().find_map(|(task, held)| {
            let directory = fleet.live().find(|one| one.name == held.workstation)?.path.as_deref();
            match (directory, &place) {
                (Some(directory), Some((name, _))) if *name == held.workstation.as_str() => {
                    Some((task, path.strip_prefix(directory).ok()?))
                }
                // A workstation that is only a name is wherever its worker stands.
                (None, _) => Some((task, path.strip_prefix(root.as_deref()?).ok()?)),
                _ => None,
            }
        });
        match (own, place, held.first()) {
            (Some((task, inside)), ..) => self.within_scope(task, inside),
            (None, Some((name, _)), Some((task, held))) => Err(elsewhere(task, held, name, path)),
            _ => Ok(()),
        }
    }

    fn within_scope(&mut self, task: &TaskId, path: &Path) -> Result<(), Refusal> {
        let spec = self.task(task)?.spec;
        let findings =
            boundary::path_findings(&self.policy()?, &spec, &[path.to_string_lossy().into_owned()]);
        Refusal::from_findings(findings).map_or(Ok(()), |refusal| Err(refusal.task(task)))
    }

    /// What the worker holds now.
    pub fn holdings(&mut self, worker: &Handle) -> Result<Vec<Holding>, Refusal> {
        if let Some(answer) = self.remote(|| calls::Holdings { worker: worker.clone() })? {
            return Ok(answer);
        }
        let fleet = self.fleet()?;
        let now = self.ask(|tx| tx.now())?;
        let own = fleet.held.into_values().filter(|(_, held)| held.assignee == *worker);
        Ok(own
            .map(|(task, assignment)| {
                let due = assignment.lease.is_renewal_due(&now);
                Holding { task, assignment, due }
            })
            .collect())
    }
}

/// The workstation whose directory a path lies in.
fn containing<'a>(fleet: &'a Fleet, path: &Path) -> Option<(&'a str, &'a Path)> {
    let places = fleet.live().filter_map(|one| Some((one.name.as_str(), Path::new(one.path.as_deref()?))));
    places.filter(|(_, at)| path.starts_with(at)).max_by_key(|(_, at)| at.components().count())
}

/// A task whose lease token lies here and opens nothing any more, where no other one does.
fn lost<'a>(fleet: &Fleet, seat: &'a Seat) -> Option<&'a TaskId> {
    let is_good = |token: &Token| token.generation == fleet.generation && fleet.opened_by(token).is_some();
    let none_is_good = !seat.leases.iter().any(|(_, token)| is_good(token));
    seat.leases.first().filter(|_| none_is_good).map(|(task, _)| task)
}

fn fenced(fleet: &Fleet, task: &TaskId) -> Refusal {
    let holder =
        fleet.held.values().find(|(held, _)| held == task).map(|(_, held)| held.assignee.to_string());
    let now =
        holder.map_or_else(|| "nobody".to_owned(), |worker| format!("{worker} (or another session of it)"));
    Refusal::new(Code::Fenced, format!("you no longer hold {task}: {now} does")).task(task).hint(format!(
        "stop writing for it; `onus show {task}` tells why; take other work: onus claim --next"
    ))
}

fn elsewhere(task: &TaskId, held: &Assignment, name: &str, path: &Path) -> Refusal {
    let detail = format!("you hold {task} in {}; {} lies in {name}", held.workstation, path.display());
    Refusal::new(Code::NotPermitted, detail)
        .task(task)
        .hint("work in your own workstation: onus prime tells its directory")
}
