//! The part of the queue that the commits speak of.

use onus_core::id::{CommitId, TaskId, WorkstationName};
use onus_core::task::StateName;
use onus_store::error::Result;
use onus_store::landed::{self, LandedCommit};
use onus_store::port::Tx;
use onus_store::read::grants::{self, Grant, TaskStanding};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Queue {
    /// Those that some commit names, or that were the last to be worked on in a workstation.
    pub(super) tasks: HashMap<TaskId, KnownWork>,
    /// By workstation: the latest assignment there.
    pub(super) last: BTreeMap<WorkstationName, Grant>,
    /// Every commit that the record says has landed.
    #[serde(default)]
    pub(super) landed: Vec<LandedCommit>,
    /// Where the first work of all began.
    #[serde(default)]
    pub(super) first_base: Option<CommitId>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KnownWork {
    pub(super) state: StateName,
    /// Who held it is known elsewhere.
    pub(super) archived: bool,
    pub(super) grants: Vec<Grant>,
}

impl KnownWork {
    pub(super) fn is_held(&self) -> bool {
        self.grants.iter().any(|grant| grant.is_live)
    }
}

impl Queue {
    /// Of these tasks, or of all. Two passes over narrow rows, however many commits there are.
    pub(super) fn load(tx: &mut dyn Tx, wanted: Option<BTreeSet<TaskId>>) -> Result<Queue> {
        let is_wanted = |task: &TaskId| wanted.as_ref().is_none_or(|wanted| wanted.contains(task));
        let mut queue = Queue { first_base: landed::first_base(tx)?, ..Queue::default() };
        landed::every(tx, &mut |one| {
            queue.landed.push(one);
            Ok(())
        })?;
        let mut grants: HashMap<TaskId, Vec<Grant>> = HashMap::new();
        grants::grants(tx, &mut |grant| {
            if is_wanted(&grant.task) {
                grants.entry(grant.task.clone()).or_default().push(grant.clone());
            }
            queue.last.insert(grant.workstation.clone(), grant);
            Ok(())
        })?;
        let last: BTreeSet<TaskId> = queue.last.values().map(|grant| grant.task.clone()).collect();
        grants::states(tx, &mut |TaskStanding { task, state, archived }| {
            if is_wanted(&task) || last.contains(&task) {
                let grants = grants.remove(&task).unwrap_or_default();
                queue.tasks.insert(task, KnownWork { state, archived, grants });
            }
            Ok(())
        })?;
        Ok(queue)
    }
}

/// The task of `refs/onus/salvage/TASK/EPOCH`.
pub(super) fn salvaged_task(refname: &str) -> Option<TaskId> {
    let (task, epoch) = refname.strip_prefix("refs/onus/salvage/")?.split_once('/')?;
    epoch.split('.').next()?.parse::<i64>().ok()?;
    task.parse().ok()
}
