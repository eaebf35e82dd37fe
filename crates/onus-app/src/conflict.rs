//! Two tasks changed the same lines: whose work stays, in the order that the queue gives (mission D11).

use crate::Onus;
use crate::merge::short;
use crate::remote::calls;
use onus_core::code::Code;
use onus_core::id::{TaskId, WorkstationName};
use onus_core::queue;
use onus_core::refusal::{Finding, Refusal};
use onus_host::worktree::Conflict;
use onus_store::load;
use onus_store::port::Tx;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// How the task that is to be merged stands to one that is in the main branch. The first ones are told first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Relation {
    DependsOnIt,
    IsNeededByIt,
    Neither,
}

impl Onus {
    /// The refusal of a rebase: each path with the tasks that changed it on the main branch. `task` is what the
    /// workstation holds.
    pub fn conflicting(
        &mut self,
        task: Option<&TaskId>,
        workstation: &WorkstationName,
        main: &str,
        conflicts: &[Conflict],
    ) -> Result<Refusal, Refusal> {
        let main = short(main);
        let others: BTreeSet<TaskId> = conflicts.iter().flat_map(tasks).collect();
        let relations = match task {
            Some(task) => self.relations(task, &others)?,
            None => BTreeMap::new(),
        };
        let findings = conflicts.iter().map(|conflict| {
            let mut whose: Vec<(Relation, TaskId)> = tasks(conflict)
                .filter(|other| Some(other) != task)
                .map(|other| (relations.get(&other).copied().unwrap_or(Relation::Neither), other))
                .collect();
            whose.sort();
            whose.dedup();
            let words: Vec<String> =
                whose.iter().map(|(relation, other)| told(task, *relation, other)).collect();
            let whose = if words.is_empty() { String::new() } else { format!(": {}", words.join("; ")) };
            Finding::new(Code::NotMerged, format!("{} conflicts with {main}{whose}", conflict.path))
                .hint(format!("in {workstation}: git rebase {main}, and resolve it there"))
        });
        let refusal = Refusal::from_findings(findings.collect())
            .unwrap_or_else(|| Refusal::new(Code::NotMerged, format!("{workstation} conflicts with {main}")));
        Ok(match task {
            Some(task) => refusal.task(task),
            None => refusal,
        })
    }
}

impl Onus {
    pub(crate) fn relations(
        &mut self,
        task: &TaskId,
        others: &BTreeSet<TaskId>,
    ) -> Result<BTreeMap<TaskId, Relation>, Refusal> {
        if let Some(answer) =
            self.remote(|| calls::Relations { task: task.clone(), others: others.clone() })?
        {
            return Ok(answer);
        }
        self.ask(|tx| relations(tx, task, others))
    }
}

/// As the commits say; what is no task's id is nobody's.
fn tasks(conflict: &Conflict) -> impl Iterator<Item = TaskId> + '_ {
    conflict.commits.iter().filter_map(|commit| commit.trailers.task.as_deref()?.parse().ok())
}

fn told(task: Option<&TaskId>, relation: Relation, other: &TaskId) -> String {
    match (task, relation) {
        (None, _) => format!("changed by {other}, which was merged first and stays"),
        (Some(task), Relation::DependsOnIt) => {
            format!("changed by {other}, on which {task} depends: it stays, and {task} builds on it")
        }
        (Some(task), Relation::IsNeededByIt) => {
            format!(
                "changed by {other}, which depends on {task} and was merged before it: what is there stays"
            )
        }
        (Some(_), Relation::Neither) => {
            format!("changed by {other}, and neither depends on the other: what was merged first stays")
        }
    }
}

fn relations(
    tx: &mut dyn Tx,
    task: &TaskId,
    others: &BTreeSet<TaskId>,
) -> onus_store::error::Result<BTreeMap<TaskId, Relation>> {
    let below = load::reachable(tx, task)?;
    let mut found = BTreeMap::new();
    for other in others {
        let relation = if queue::path(&below, task, other).is_some() {
            Relation::DependsOnIt
        } else if queue::path(&load::reachable(tx, other)?, other, task).is_some() {
            Relation::IsNeededByIt
        } else {
            Relation::Neither
        };
        found.insert(other.clone(), relation);
    }
    Ok(found)
}
