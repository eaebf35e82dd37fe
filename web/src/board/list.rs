//! The same tasks as a table: sorted by any column, in groups.

use super::card::{Card, CardFacts};
use super::view::{Choice, ColumnKind, ListHead, ListPart, ListRow};
use super::{Stack, shown};
use crate::PageRequest;
use crate::html::when;
use onus_core::refusal::Refusal;
use onus_core::task::Task;
use std::cmp::Ordering;

/// What a list is sorted by: the word in the address, the head of the column, and whether it is left out on a phone.
const SORTS: [(&str, &str, bool); 8] = [
    ("priority", "Priority", false),
    ("id", "Task", false),
    ("title", "Title", false),
    ("state", "State", false),
    ("holder", "Holder", true),
    ("type", "Type", true),
    ("sprint", "Sprint", true),
    ("changed", "Changed", true),
];

/// Without these a row is none.
const ALWAYS: [&str; 2] = ["id", "title"];

pub(super) const GROUPS: [&str; 6] = ["state", "holder", "sprint", "role", "type", "priority"];

/// The question in the address, where it asks for a list.
#[derive(Debug)]
pub(super) struct ListQuery {
    sort: &'static str,
    falling: bool,
    group: Option<&'static str>,
    columns: Vec<&'static str>,
}

type ListLine<'a> = (&'static ColumnKind, &'a Task);

impl ListQuery {
    pub(super) fn read(seen: &PageRequest) -> Result<Option<ListQuery>, Refusal> {
        match seen.word("view") {
            None | Some("board") => return Ok(None),
            Some("list") => {}
            Some(other) => {
                return Err(Refusal::invalid(format!("view: {} is neither board nor list", shown(other))));
            }
        }
        let word = seen.word("sort").unwrap_or("state");
        let (word, falling) = word.strip_prefix('-').map_or((word, false), |word| (word, true));
        let sort = SORTS.iter().find(|(name, ..)| *name == word).ok_or_else(|| {
            let known = SORTS.map(|(name, ..)| name).join(", ");
            Refusal::invalid(format!("sort: {} is none of {known}", shown(word)))
        })?;
        let group = seen.word("group").map(|word| {
            let known =
                || Refusal::invalid(format!("group: {} is none of {}", shown(word), GROUPS.join(", ")));
            GROUPS.iter().find(|name| **name == word).copied().ok_or_else(known)
        });
        let columns = columns(seen.word("columns"))?;
        Ok(Some(ListQuery { sort: sort.0, falling, group: group.transpose()?, columns }))
    }

    pub(super) fn draw(&self, seen: &PageRequest, stacks: &[Stack], known: &CardFacts) -> ListPart {
        let lines = stacks.iter().flat_map(|stack| stack.tasks.iter().map(|task| (stack.column, task)));
        let mut lines: Vec<ListLine<'_>> = lines.collect();
        // What is equal stays in the order of the board.
        lines.sort_by(|one, other| {
            let order = compare(self.sort, *one, *other);
            if self.falling { order.reverse() } else { order }
        });
        let mut groups: Vec<(String, Vec<ListRow>)> = Vec::new();
        for (column, task) in lines {
            let name = self.group.map(|group| named(group, column, task)).unwrap_or_default();
            let row = ListRow {
                card: Card::new(task, seen, known),
                column,
                task_type: word("type", column, task),
                changed: when(task.updated_at, seen.now),
            };
            match groups.iter_mut().find(|(known, _)| *known == name) {
                Some((_, rows)) => rows.push(row),
                None => groups.push((name, vec![row])),
            }
        }
        if self.group.is_some_and(|group| group != "state") {
            // Who has none comes last.
            let rest = self.group.map(none_of).unwrap_or_default();
            groups.sort_by(|(one, _), (other, _)| (*one == rest, one).cmp(&(*other == rest, other)));
        }
        let left_out = stacks.iter().find(|stack| stack.tasks.len() < stack.count);
        ListPart {
            heads: SORTS
                .iter()
                .filter(|(name, ..)| self.columns.contains(name))
                .map(|sort| self.head(seen, *sort))
                .collect(),
            choices: self.choices(seen),
            columns: self.columns.clone(),
            kept: ["sort", "columns"]
                .iter()
                .filter_map(|name| Some((*name, seen.word(name)?.to_owned())))
                .collect(),
            groups,
            grouped: self.group.is_some(),
            more: left_out
                .map(|stack| format!("{} of {} in “{}”", stack.tasks.len(), stack.count, stack.column.title)),
        }
    }

    /// Each column that can be left out, and where the list is with it or without it.
    fn choices(&self, seen: &PageRequest) -> Vec<Choice> {
        let optional = SORTS.iter().filter(|(name, ..)| !ALWAYS.contains(name));
        let choice = |(name, label, _): &(&'static str, &'static str, bool)| {
            let chosen = self.columns.contains(name);
            let wanted = SORTS
                .iter()
                .map(|(other, ..)| *other)
                .filter(|other| if other == name { !chosen } else { self.columns.contains(other) });
            let wanted: Vec<&str> = wanted.collect();
            let all = wanted.len() == SORTS.len();
            let value = seen.with("columns", (!all).then(|| wanted.join(",")).as_deref());
            Choice { value, label: (*label).to_owned(), chosen }
        };
        optional.map(choice).collect()
    }

    fn head(&self, seen: &PageRequest, (name, label, less): (&'static str, &'static str, bool)) -> ListHead {
        let is_own = name == self.sort;
        let next = if is_own && !self.falling { format!("-{name}") } else { name.to_owned() };
        let order = is_own.then_some(if self.falling { "descending" } else { "ascending" });
        ListHead { label, href: seen.with("sort", Some(&next)), order, less }
    }
}

/// The columns in the address, in the order of the table; all of them where it names none.
fn columns(words: Option<&str>) -> Result<Vec<&'static str>, Refusal> {
    let Some(words) = words else { return Ok(SORTS.map(|(name, ..)| name).into()) };
    let wanted: Vec<&str> = words.split(',').map(str::trim).collect();
    if let Some(odd) = wanted.iter().find(|word| !SORTS.iter().any(|(name, ..)| name == *word)) {
        let known = SORTS.map(|(name, ..)| name).join(", ");
        return Err(Refusal::invalid(format!("columns: {} is none of {known}", shown(odd))));
    }
    let names = SORTS.iter().map(|(name, ..)| *name);
    Ok(names.filter(|name| wanted.contains(name) || ALWAYS.contains(name)).collect())
}

/// The group of a task.
fn named(group: &str, column: &ColumnKind, task: &Task) -> String {
    let name = word(group, column, task);
    if name.is_empty() { none_of(group) } else { name }
}

fn none_of(group: &str) -> String {
    if group == "holder" { "nobody".to_owned() } else { format!("no {group}") }
}

/// A task's word in a column.
fn word(of: &str, column: &ColumnKind, task: &Task) -> String {
    let spec = &task.spec;
    let found = match of {
        "state" => Some(column.title.to_owned()),
        "holder" => task.assignment().map(|held| held.assignee.to_string()),
        "sprint" => spec.sprint.clone(),
        "role" => spec.role.as_ref().map(ToString::to_string),
        "type" => spec.task_type.as_ref().map(ToString::to_string),
        "priority" => Some(spec.priority.to_string()),
        _ => None,
    };
    found.unwrap_or_default()
}

fn compare(sort: &str, (in_one, one): ListLine<'_>, (in_other, other): ListLine<'_>) -> Ordering {
    match sort {
        "priority" => one.spec.priority.rank().cmp(&other.spec.priority.rank()),
        "id" => (one.id.project.as_str(), one.id.number).cmp(&(other.id.project.as_str(), other.id.number)),
        "title" => one.spec.title.to_lowercase().cmp(&other.spec.title.to_lowercase()),
        // The newest first, as people ask for it.
        "changed" => other.updated_at.cmp(&one.updated_at),
        // The columns' own order.
        "state" => Ordering::Equal,
        // Who has none comes last.
        of => {
            let (one, other) = (word(of, in_one, one), word(of, in_other, other));
            (one.is_empty(), one).cmp(&(other.is_empty(), other))
        }
    }
}
