//! By what a sheet adds up.

use super::period::week_name;
use super::{About, Person, Row, SheetPlace};
use crate::id::TaskId;
use crate::time::Date;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Dimension {
    Worker,
    Task,
    Project,
    Sprint,
    Type,
    Day,
    Week,
}

impl Dimension {
    pub const ALL: &[Dimension] = &[
        Dimension::Worker,
        Dimension::Task,
        Dimension::Project,
        Dimension::Sprint,
        Dimension::Type,
        Dimension::Day,
        Dimension::Week,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Dimension::Worker => "worker",
            Dimension::Task => "task",
            Dimension::Project => "project",
            Dimension::Sprint => "sprint",
            Dimension::Type => "type",
            Dimension::Day => "day",
            Dimension::Week => "week",
        }
    }

    pub fn parse(text: &str) -> Option<Dimension> {
        Dimension::ALL.iter().copied().find(|dimension| dimension.name() == text)
    }
}

/// A group's place among all groups: one rank for each dimension, in the order that was asked for.
pub(super) type GroupKey = [u32; 7];

/// Ranks of everything that can be grouped by, worked out once.
#[derive(Debug)]
pub(super) struct Grouping<'a> {
    by: &'a [Dimension],
    people: &'a [Person],
    tasks: &'a [TaskId],
    about: &'a [About],
    workers: Vec<u32>,
    task_ranks: Vec<u32>,
    projects: Vec<u32>,
    sprints: Vec<u32>,
    types: Vec<u32>,
    weeks: Vec<(u32, String)>,
}

impl<'a> Grouping<'a> {
    pub(super) fn new(
        by: &'a [Dimension],
        people: &'a [Person],
        tasks: &'a [TaskId],
        about: &'a [About],
    ) -> Grouping<'a> {
        let dates: Vec<Date> = people.first().map(|person| person.days.dates().collect()).unwrap_or_default();
        let weeks: Vec<String> = dates.into_iter().map(week_name).collect();
        Grouping {
            by,
            people,
            tasks,
            about,
            workers: ranks(people.iter().map(|person| &person.handle)),
            task_ranks: ranks(tasks.iter()),
            projects: ranks(tasks.iter().map(|task| &task.project)),
            sprints: ranks(about.iter().map(|about| &about.sprint)),
            types: ranks(about.iter().map(|about| &about.task_type)),
            weeks: ranks(weeks.iter()).into_iter().zip(weeks).collect(),
        }
    }

    pub(super) fn key(&self, (who, what, day): SheetPlace) -> GroupKey {
        let rank = |ranks: &[u32], at: u32| ranks.get(at as usize).copied().unwrap_or(0);
        let mut key = [0; 7];
        for (slot, dimension) in key.iter_mut().zip(self.by) {
            *slot = match dimension {
                Dimension::Worker => rank(&self.workers, who),
                Dimension::Task => rank(&self.task_ranks, what),
                Dimension::Project => rank(&self.projects, what),
                Dimension::Sprint => rank(&self.sprints, what),
                Dimension::Type => rank(&self.types, what),
                Dimension::Day => day,
                Dimension::Week => self.weeks.get(day as usize).map_or(0, |(rank, _)| *rank),
            };
        }
        key
    }

    /// An empty row of the group in which a place lies.
    pub(super) fn row(&self, (who, what, day): SheetPlace) -> Row {
        let has = |dimension: Dimension| self.by.contains(&dimension);
        let person = &self.people[who as usize];
        let task = &self.tasks[what as usize];
        let about = self.about.get(what as usize);
        Row {
            worker: has(Dimension::Worker).then(|| person.handle.clone()),
            task: has(Dimension::Task).then(|| task.clone()),
            project: has(Dimension::Project).then(|| task.project.clone()),
            sprint: about.filter(|_| has(Dimension::Sprint)).and_then(|about| about.sprint.clone()),
            task_type: about.filter(|_| has(Dimension::Type)).and_then(|about| about.task_type.clone()),
            day: has(Dimension::Day).then(|| person.days.date(day)),
            week: self.weeks.get(day as usize).filter(|_| has(Dimension::Week)).map(|(_, week)| week.clone()),
            ..Row::default()
        }
    }
}

/// Each value's place among all different ones.
fn ranks<T: Ord>(values: impl Iterator<Item = T> + Clone) -> Vec<u32> {
    let sorted: Vec<T> = values.clone().collect::<BTreeSet<T>>().into_iter().collect();
    values.map(|value| sorted.partition_point(|other| *other < value) as u32).collect()
}
