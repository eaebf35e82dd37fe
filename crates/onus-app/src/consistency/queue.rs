//! The part of the queue that the commits speak of.

use onus_core::id::{TaskId, WorkstationName};
use onus_core::task::StateName;
use onus_store::error::Result;
use onus_store::port::Tx;
use onus_store::read::grants::{self, Grant, Standing};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Queue {
    /// Those that some commit names, or that were the last to be worked on in a workstation.
    pub(super) tasks: HashMap<TaskId, Known>,
    /// By workstation: the latest assignment there.
    pub(super) last: BTreeMap<WorkstationName, Grant>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Known {
    pub(super) state: StateName,
    /// Who held it is known elsewhere.
    pub(super) archived: bool,
    pub(super) grants: Vec<Grant>,
}

impl Known {
    pub(super) fn is_held(&self) -> bool {
        self.grants.iter().any(|grant| grant.is_live)
    }
}

impl Queue {
    /// Two passes over narrow rows, however many commits there are.
    pub(super) fn load(tx: &mut dyn Tx, mut wanted: BTreeSet<TaskId>) -> Result<Queue> {
        let mut queue = Queue::default();
        let mut grants: HashMap<TaskId, Vec<Grant>> = HashMap::new();
        grants::grants(tx, &mut |grant| {
            if wanted.contains(&grant.task) {
                grants.entry(grant.task.clone()).or_default().push(grant.clone());
            }
            queue.last.insert(grant.workstation.clone(), grant);
            Ok(())
        })?;
        wanted.extend(queue.last.values().map(|grant| grant.task.clone()));
        grants::states(tx, &mut |Standing { task, state, archived }| {
            if wanted.contains(&task) {
                let grants = grants.remove(&task).unwrap_or_default();
                queue.tasks.insert(task, Known { state, archived, grants });
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
