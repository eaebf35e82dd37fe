//! What an agent's client asks around its tools: may this be written, is a lease to be renewed, is anything still held
//! (mission E2)? It answers early and in the client's own words; what lands is still git's hooks to guard.

use crate::Onus;
use crate::guard::{Desk, Fleet};
use crate::remote::calls;
use onus_core::boundary;
use onus_core::code::Code;
use onus_core::constraint;
use onus_core::guard::{Held, Post};
use onus_core::id::{Handle, TaskId};
use onus_core::lease::Token;
use onus_core::refusal::Refusal;
use onus_core::task::Assignment;
use onus_core::tool_guard::{self, Guarding, ToolSpot, ToolUser};
use onus_host::worktree;
use onus_store::read::queue::Filter;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Who works with the client, and the lease tokens that lie where it works.
#[derive(Debug)]
pub struct Seat<'a> {
    /// None: the client does not say for whom it works.
    pub worker: Option<&'a Handle>,
    pub leases: Vec<(TaskId, Token)>,
}

/// What a tool is about to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolTarget {
    File(PathBuf),
    /// The working tree or the branches of the repository there; git judges the paths itself.
    Repository(PathBuf),
}

impl ToolTarget {
    fn path(&self) -> &Path {
        match self {
            ToolTarget::File(path) | ToolTarget::Repository(path) => path,
        }
    }
}

/// A task that the worker holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldTask {
    pub task: TaskId,
    pub assignment: Assignment,
    /// The lease is to be renewed.
    pub due: bool,
}

impl Onus {
    /// Whether the worker may write there. What lies in no working tree of the repository is nobody's business.
    pub fn may_write(&mut self, seat: &Seat<'_>, touched: &[ToolTarget]) -> Result<(), Refusal> {
        let fleet = self.fleet()?;
        let trees = self.working_trees(&fleet)?;
        let inside = |path: &Path| trees.iter().any(|tree| path.starts_with(tree));
        let desk = Desk { worker: seat.worker, client: Some("a client's hook"), ..Desk::default() };
        let mover = fleet.mover(&desk);
        let held: Vec<(Held<'_>, bool)> =
            seat.worker.into_iter().flat_map(|worker| fleet.held_by(worker)).collect();
        let lost = lost(&fleet, seat);
        let lost_to = lost.and_then(|lost| fleet.holder_of(lost));
        let worker = ToolUser { mover, held: &held, lost, lost_to: lost_to.as_ref() };
        let guarding = if self.unguarded().is_none() { Guarding::On } else { Guarding::Off };
        for one in touched.iter().filter(|one| inside(one.path())) {
            let name = one.path().display().to_string();
            let place = fleet.containing(one.path());
            let spot = ToolSpot { name: &name, place: place.map(|(post, _)| post) };
            let under = tool_guard::may_write(&worker, &spot, guarding);
            let under = under.map_err(|refusal| self.with_claim(refusal, seat, spot.place.as_ref()))?;
            if let (Some(held), ToolTarget::File(path)) = (under, one) {
                let root = place.map(|(_, at)| at.to_owned());
                let root = root.or_else(|| self.place.repo.as_ref().and_then(|repo| repo.root.clone()));
                if let Some(relative) = root.and_then(|root| path.strip_prefix(root).ok().map(Path::to_owned))
                {
                    self.within_scope(&held, &relative)?;
                }
            }
        }
        Ok(())
    }

    /// Every working tree of this repository, and every workstation's directory.
    fn working_trees(&self, fleet: &Fleet) -> Result<Vec<PathBuf>, Refusal> {
        let own = self.place.repo.as_ref().map(worktree::list).transpose()?.unwrap_or_default();
        let own = own.into_iter().filter(|tree| !tree.is_bare).map(|tree| tree.path);
        Ok(own.chain(fleet.live().filter_map(|one| one.path.as_deref().map(PathBuf::from))).collect())
    }

    /// A refusal for want of a task names the claim to make.
    fn with_claim(&mut self, refusal: Refusal, seat: &Seat<'_>, place: Option<&Post<'_>>) -> Refusal {
        if refusal.code != Code::LeaseRequired {
            return refusal;
        }
        let offer = seat.worker.and_then(|worker| {
            let ready = self.ready_for(Some(worker), &Filter::default(), 5).ok()?;
            let is_for_it = |task: &TaskId| !ready.not_for_caller.iter().any(|one| one.task == *task);
            ready.tasks.iter().map(|task| &task.id).find(|id| is_for_it(id)).cloned()
        });
        let free = place.filter(|place| tool_guard::is_free_for_agents(place)).map(|place| place.workstation);
        let line = tool_guard::claim_line(offer.as_ref(), free);
        refusal.hint(match seat.worker {
            Some(_) => line,
            None => format!("export ONUS_AS=@you, then {line}"),
        })
    }

    fn within_scope(&mut self, held: &Held<'_>, path: &Path) -> Result<(), Refusal> {
        let task = held.task;
        let (spec, allowed) = (self.task(task)?.spec, &held.assignment.constraints);
        let paths = [path.to_string_lossy().into_owned()];
        let findings = boundary::path_findings(&self.policy()?, &spec, allowed, &paths);
        Refusal::from_findings(findings).map_or(Ok(()), |refusal| Err(refusal.task(task)))
    }

    /// Whether an agent's client may run a line in its shell, by what the tasks that it holds allow.
    pub fn may_run(&mut self, worker: Option<&Handle>, line: &str) -> Result<(), Refusal> {
        let Some(worker) = worker else { return Ok(()) };
        for held in self.holdings(worker)? {
            if let Some(finding) = constraint::against_line(&held.assignment.constraints, line) {
                let refusal = Refusal::from_findings(vec![finding]);
                return refusal.map_or(Ok(()), |refusal| Err(refusal.task(&held.task)));
            }
        }
        Ok(())
    }

    /// What the worker holds now.
    pub fn holdings(&mut self, worker: &Handle) -> Result<Vec<HeldTask>, Refusal> {
        if let Some(answer) = self.remote(|| calls::Holdings { worker: worker.clone() })? {
            return Ok(answer);
        }
        let fleet = self.fleet()?;
        let now = self.ask(|tx| tx.now())?;
        let own = fleet.held.into_values().filter(|(_, held)| held.assignee == *worker);
        Ok(own
            .map(|(task, assignment)| {
                let due = assignment.lease.is_renewal_due(&now);
                HeldTask { task, assignment, due }
            })
            .collect())
    }
}

impl Fleet {
    fn holder_of(&self, task: &TaskId) -> Option<Held<'_>> {
        self.live().filter_map(|one| self.post(one).held).find(|held| held.task == task)
    }

    /// The workstation whose directory a path lies in.
    fn containing(&self, path: &Path) -> Option<(Post<'_>, &Path)> {
        let places = self.live().filter_map(|one| Some((one, Path::new(one.path.as_deref()?))));
        let around =
            places.filter(|(_, at)| path.starts_with(at)).max_by_key(|(_, at)| at.components().count());
        around.map(|(one, at)| (self.post(one), at))
    }
}

/// A task whose lease token lies here and opens nothing any more, where no other one does.
fn lost<'a>(fleet: &Fleet, seat: &'a Seat<'_>) -> Option<&'a TaskId> {
    let is_good = |token: &Token| token.generation == fleet.generation && fleet.opened_by(token).is_some();
    let none_is_good = !seat.leases.iter().any(|(_, token)| is_good(token));
    seat.leases.first().filter(|_| none_is_good).map(|(task, _)| task)
}
