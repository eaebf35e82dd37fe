//! Timesheets: sessions summed up by who, what and when (mission A4, A6). A total is asked for, never stored.
//!
//! Days are the worker's own. Where a day begins depends on its zone, and is an argument ([`Days`]); so a session across
//! midnight, or through a day of 23 or 25 hours, is split exactly. All times are whole seconds, so that every grouping
//! adds up to the same sum.

mod approval;
mod days;
mod dimension;
mod period;
mod row;

pub use approval::{Approving, Difference, Fingerprint, approve, differences};
pub use days::Days;
pub use dimension::Dimension;
pub use period::{days_before, month, month_of, neighbours, period, week, week_before, week_name};
pub use row::Row;

use crate::id::{Handle, ProjectKey, TaskId};
use crate::session::Counts;
use crate::settings::{BillableRule, EffortSettings};
use crate::time::{Date, Timestamp};
use crate::worker::Kind;
use std::collections::HashMap;

/// Whose time is counted, and where their days begin.
#[derive(Debug, Clone)]
pub struct Person {
    pub handle: Handle,
    pub kind: Kind,
    /// All workers of one sheet have the same dates; only the moments differ.
    pub days: Days,
}

/// What a sheet must know of a task to group and to bill its time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    pub task_type: Option<String>,
    pub kind: String,
    pub sprint: Option<String>,
}

/// Adds sessions and usages up, each as it comes, by worker, task and day.
#[derive(Debug)]
pub struct Sheet {
    people: Vec<Person>,
    by_handle: HashMap<String, u32>,
    tasks: Vec<TaskId>,
    by_task: HashMap<String, u32>,
    cells: HashMap<SheetPlace, Cell>,
}

/// Where a session's beginning and end come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    Recorded,
    /// A person gave them afterwards.
    Corrected,
}

/// Worker, task and day, by their numbers in the sheet.
type SheetPlace = (u32, u32, u32);

#[derive(Debug, Clone, Default)]
struct Cell {
    /// Sessions that have a part here.
    parts: i64,
    /// How many of them also have one in the day before.
    continued: i64,
    seconds: i64,
    /// Sessions here whose times a person gave, and how many of them also have a part in the day before.
    corrected: i64,
    corrected_continued: i64,
    counts: Counts,
}

impl Sheet {
    pub fn new(people: Vec<Person>) -> Sheet {
        let number = |(at, person): (usize, &Person)| (person.handle.to_string(), at as u32);
        Sheet {
            by_handle: people.iter().enumerate().map(number).collect(),
            people,
            tasks: Vec::new(),
            by_task: HashMap::new(),
            cells: HashMap::new(),
        }
    }

    /// Counts what a session has in common with the sheet's days. Nothing of a worker that the sheet is not about.
    pub fn session(
        &mut self,
        worker: &str,
        task: &str,
        from: Timestamp,
        to: Timestamp,
        times: Times,
    ) -> Result<(), String> {
        let Some(who) = self.by_handle.get(worker).copied() else {
            return Ok(());
        };
        let days = &self.people[who as usize].days;
        let mut parts = days.parts(from, to);
        let Some(first) = parts.next() else {
            return Ok(());
        };
        let rest: Vec<(u32, i64)> = parts.collect();
        let what = self.task(task)?;
        self.part((who, what, first.0), first.1, 0, times);
        for (day, seconds) in rest {
            self.part((who, what, day), seconds, 1, times);
        }
        Ok(())
    }

    fn part(&mut self, place: SheetPlace, seconds: i64, continued: i64, times: Times) {
        let cell = self.cells.entry(place).or_default();
        cell.parts += 1;
        cell.continued += continued;
        if times == Times::Corrected {
            cell.corrected += 1;
            cell.corrected_continued += continued;
        }
        cell.seconds += seconds;
    }

    /// Tokens belong to a session, not to an hour: they count on the day on which it began.
    pub fn usage(
        &mut self,
        worker: &str,
        task: &str,
        began: Timestamp,
        counts: &Counts,
    ) -> Result<(), String> {
        let Some(who) = self.by_handle.get(worker).copied() else {
            return Ok(());
        };
        let Some(day) = self.people[who as usize].days.index(began) else {
            return Ok(());
        };
        let what = self.task(task)?;
        self.cells.entry((who, what, day)).or_default().counts.add(counts);
        Ok(())
    }

    fn task(&mut self, task: &str) -> Result<u32, String> {
        if let Some(number) = self.by_task.get(task) {
            return Ok(*number);
        }
        let number = self.tasks.len() as u32;
        self.tasks.push(task.parse()?);
        self.by_task.insert(task.to_owned(), number);
        Ok(number)
    }

    /// The tasks that have time or usage so far.
    pub fn tasks(&self) -> &[TaskId] {
        &self.tasks
    }

    /// The sums, in the order of their dimensions. `about` has one for each of [`Sheet::tasks`].
    pub fn rows(&self, by: &[Dimension], about: &[About], effort: &EffortSettings) -> Vec<Row> {
        let grouping = dimension::Grouping::new(by, &self.people, &self.tasks, about);
        let mut groups: HashMap<dimension::GroupKey, Row> = HashMap::new();
        for (place @ (who, what, day), cell) in &self.cells {
            let key = grouping.key(*place);
            let row = groups.entry(key).or_insert_with(|| grouping.row(*place));
            // A session that goes on from the day before was counted there, if that is the same group.
            let again = *day > 0 && grouping.key((*who, *what, day - 1)) == key;
            row.sessions += if again { cell.parts - cell.continued } else { cell.parts };
            row.corrected += if again { cell.corrected - cell.corrected_continued } else { cell.corrected };
            row.seconds += cell.seconds;
            row.counts.add(&cell.counts);
            let person = &self.people[*who as usize];
            let about = about.get(*what as usize);
            if is_billable(&effort.billable, person, &self.tasks[*what as usize].project, about) {
                row.billable_seconds += rounded(cell.seconds, effort);
            }
        }
        let mut rows: Vec<(dimension::GroupKey, Row)> = groups.into_iter().collect();
        rows.sort_unstable_by_key(|(key, _)| *key);
        rows.into_iter().map(|(_, row)| row).collect()
    }

    /// The days of the sheet.
    pub fn dates(&self) -> impl Iterator<Item = Date> + '_ {
        self.people.first().into_iter().flat_map(|person| person.days.dates())
    }
}

fn is_billable(rules: &[BillableRule], person: &Person, project: &ProjectKey, about: Option<&About>) -> bool {
    let rule = rules.iter().find(|rule| {
        rule.worker_kind.is_none_or(|kind| kind == person.kind)
            && rule.worker.as_ref().is_none_or(|worker| *worker == person.handle)
            && rule.project.as_ref().is_none_or(|wanted| wanted == project)
            && rule.kind.as_ref().is_none_or(|kind| about.is_some_and(|about| about.kind == *kind))
            && named(rule.task_type.as_ref(), about.and_then(|about| about.task_type.as_ref()))
            && named(rule.sprint.as_ref(), about.and_then(|about| about.sprint.as_ref()))
    });
    rule.is_none_or(|rule| rule.billable)
}

fn named(wanted: Option<&String>, found: Option<&String>) -> bool {
    wanted.is_none() || wanted == found
}

fn rounded(seconds: i64, effort: &EffortSettings) -> i64 {
    match effort.round_up_to.map(|step| step.0 / 1_000) {
        Some(step) if step > 1 => {
            seconds.div_euclid(step) * step + if seconds % step == 0 { 0 } else { step }
        }
        _ => seconds,
    }
}
