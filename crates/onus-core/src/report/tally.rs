//! Who got how much work, where, of which kind, and what came of it (mission C9).

use super::Compliance;
use crate::id::Handle;
use crate::task::{Route, StateName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One assignment of a task, as a report counts it.
#[derive(Debug, Clone)]
pub struct Taken<'a> {
    pub task: &'a str,
    pub assignee: &'a Handle,
    pub workstation: &'a str,
    pub task_type: Option<&'a str>,
    pub sprint: Option<&'a str>,
    pub end_reason: Option<&'a str>,
    pub forced: bool,
    pub route: Option<&'a Route>,
}

/// What one worker, workstation, type or sprint had.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Group {
    /// Absent for tasks that have none.
    pub name: Option<String>,
    /// Tasks that it had at all.
    pub tasks: i64,
    /// Assignments whose holders completed the task: a completion by force is nobody's merit.
    pub completed: i64,
    /// Assignments that have not ended.
    pub live: i64,
    pub grants: i64,
    /// Leases that were lost to a takeover.
    pub leases_lost: i64,
    pub forced: i64,
    /// Grants that stepped over the identity map.
    pub outside_policy: i64,
}

#[derive(Debug, Default)]
struct Counting {
    group: Group,
    tasks: BTreeSet<String>,
}

type Groups = BTreeMap<Option<String>, Counting>;

/// Counts assignments by who, where and what.
#[derive(Debug, Default)]
pub struct Tally {
    workers: Groups,
    workstations: Groups,
    types: Groups,
    sprints: Groups,
    all: Counting,
    states: BTreeMap<String, i64>,
}

impl Tally {
    /// A task, whether or not anybody had it.
    pub fn task(&mut self, state: StateName) {
        *self.states.entry(state.name().to_owned()).or_default() += 1;
    }

    pub fn assignment(&mut self, taken: &Taken<'_>) {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let groups = [
            self.workers.entry(Some(taken.assignee.to_string())).or_default(),
            self.workstations.entry(Some(taken.workstation.to_owned())).or_default(),
            self.types.entry(owned(taken.task_type)).or_default(),
            self.sprints.entry(owned(taken.sprint)).or_default(),
            &mut self.all,
        ];
        for counting in groups {
            counting.add(taken);
        }
    }

    /// Every state with its count, also those that no task is in.
    pub fn states(&self) -> BTreeMap<String, i64> {
        let count = |state: &StateName| {
            let name = state.name().to_owned();
            let count = self.states.get(&name).copied().unwrap_or(0);
            (name, count)
        };
        StateName::ALL.iter().map(count).collect()
    }

    pub fn workers(&self) -> Vec<Group> {
        in_order(&self.workers)
    }

    pub fn workstations(&self) -> Vec<Group> {
        in_order(&self.workstations)
    }

    pub fn types(&self) -> Vec<Group> {
        in_order(&self.types)
    }

    pub fn sprints(&self) -> Vec<Group> {
        in_order(&self.sprints)
    }

    pub fn total(&self) -> Group {
        self.all.told(&None)
    }
}

impl Counting {
    fn add(&mut self, taken: &Taken<'_>) {
        let group = &mut self.group;
        group.grants += 1;
        group.completed += i64::from(taken.end_reason == Some("completed"));
        group.live += i64::from(taken.end_reason.is_none());
        group.leases_lost += i64::from(taken.end_reason == Some("taken_over"));
        group.forced += i64::from(taken.forced);
        group.outside_policy += i64::from(Compliance::of(taken.route, taken.forced) == Compliance::Outside);
        if !self.tasks.contains(taken.task) {
            self.tasks.insert(taken.task.to_owned());
        }
    }

    fn told(&self, name: &Option<String>) -> Group {
        Group { name: name.clone(), tasks: self.tasks.len() as i64, ..self.group.clone() }
    }
}

/// The busiest first.
fn in_order(groups: &Groups) -> Vec<Group> {
    let mut told: Vec<Group> = groups.iter().map(|(name, counting)| counting.told(name)).collect();
    told.sort_by_key(|group| std::cmp::Reverse(group.tasks));
    told
}
