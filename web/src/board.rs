//! The board: tasks by state, and by whatever else the viewer wants lanes of.

mod card;
mod list;
mod view;

use crate::html::Html;
use crate::layout::rendered;
use crate::{Drawn, Page, PageRequest};
use card::{Card, CardFacts};
use onus_app::Onus;
use onus_app::queue::LIMIT_MAX;
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use onus_core::task::{Priority, StateName, Task};
use onus_store::error::Result as StoreResult;
use onus_store::port::{Store, Tx};
use onus_store::read::queue::{self, After, Filter, Which};
use onus_store::{load, registry};
use std::collections::{BTreeMap, BTreeSet};
use view::{BoardView, COLUMNS, Choice, Column, ColumnKind, Lane, SavedLink, Select};

/// So many cards of a column are drawn at first, and each time four times as many as before.
const FIRST: usize = 50;
const FURTHER: usize = 4;

/// The most that a search finds, and labels that are offered.
const FOUND: i64 = 2_000;
const LABELS: usize = 200;

/// So many cards the browser lays out together, once they come near (`assets/board.css`).
const RUN: usize = 25;

pub(crate) fn page() -> Page {
    Page { path: "/board", name: "Board", key: Some('b'), ask }
}

/// What the lanes are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lanes {
    None,
    Role,
    Worker,
    Workstation,
    Sprint,
}

const LANES: [(&str, Lanes); 5] = [
    ("none", Lanes::None),
    ("role", Lanes::Role),
    ("worker", Lanes::Worker),
    ("workstation", Lanes::Workstation),
    ("sprint", Lanes::Sprint),
];

impl Lanes {
    /// The lane of those who have none.
    const fn rest(self) -> &'static str {
        match self {
            Lanes::None => "all",
            Lanes::Role => "no role",
            Lanes::Worker => "nobody",
            Lanes::Workstation => "nowhere",
            Lanes::Sprint => "no sprint",
        }
    }
}

/// The question in the address.
#[derive(Debug)]
struct BoardQuery {
    lanes: Lanes,
    filter: Filter,
    /// All of these words must be found.
    words: String,
    /// Of each column.
    shown: BTreeMap<&'static str, usize>,
}

impl BoardQuery {
    fn read(seen: &PageRequest) -> Result<BoardQuery, Refusal> {
        let lanes = seen.word("lanes").unwrap_or("none");
        let lanes = LANES.iter().find(|(name, _)| *name == lanes).ok_or_else(|| {
            Refusal::invalid(format!(
                "lanes: {} is not one of none, role, worker, workstation, sprint",
                shown(lanes)
            ))
        })?;
        Ok(BoardQuery {
            lanes: lanes.1,
            filter: Filter {
                project: seen.read("project")?,
                task_type: seen.read("type")?,
                role: seen.read("role")?,
                sprint: seen.word("sprint").map(str::to_owned),
                parent: seen.read("parent")?,
                assignee: seen.read("assignee")?,
                priority: seen.read("priority")?,
                tag: seen.word("tag").map(str::to_owned),
                lane: onus_app::saved_view::lane(seen.word("lane"))?,
            },
            words: seen.word("q").unwrap_or_default().trim().to_owned(),
            shown: read_shown(seen.word("show").unwrap_or_default()),
        })
    }

    /// Words that every text has hold nothing back; signs without a word are found nowhere.
    fn searches(&self) -> bool {
        let has_words = self.words.chars().any(char::is_alphanumeric);
        if has_words { !onus_core::search::sought(&self.words).is_empty() } else { !self.words.is_empty() }
    }

    fn shown(&self, column: &ColumnKind) -> usize {
        self.shown.get(column.key).copied().unwrap_or(FIRST)
    }

    fn lane(&self, task: &Task) -> Option<String> {
        let held = task.assignment();
        match self.lanes {
            Lanes::None => None,
            Lanes::Role => task.spec.role.as_ref().map(ToString::to_string),
            Lanes::Worker => held.map(|held| held.assignee.to_string()),
            Lanes::Workstation => held.map(|held| held.workstation.to_string()),
            Lanes::Sprint => task.spec.sprint.clone(),
        }
    }
}

fn shown(text: &str) -> String {
    onus_core::id::shown(text)
}

/// `ready:200,complete:800`; what makes no sense asks for nothing.
fn read_shown(text: &str) -> BTreeMap<&'static str, usize> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once(':'));
    let pairs = pairs.filter_map(|(key, count)| {
        let column = COLUMNS.iter().find(|column| column.key == key)?;
        Some((column.key, count.parse().ok()?))
    });
    pairs.map(|(key, count): (_, usize)| (key, count.clamp(FIRST, LIMIT_MAX as usize))).collect()
}

fn write_shown(shown: &BTreeMap<&'static str, usize>) -> String {
    let pairs = shown.iter().map(|(key, count)| format!("{key}:{count}"));
    pairs.collect::<Vec<_>>().join(",")
}

/// The tasks of one column, as many as are shown, and how many there are.
#[derive(Debug)]
struct Stack {
    column: &'static ColumnKind,
    tasks: Vec<Task>,
    count: usize,
    /// There are more than were counted.
    more: bool,
}

fn ask(onus: &mut Onus, seen: &PageRequest) -> Result<Drawn, Refusal> {
    let asked = BoardQuery::read(seen)?;
    let list = list::ListQuery::read(seen)?;
    if asked.searches() {
        onus.index_words()?;
    }
    let saved = onus.views()?.views;
    let (stacks, known, projects) = onus.store.read(|tx| {
        let stacks = if asked.searches() { found(tx, &asked)? } else { stacks(tx, &asked)? };
        let known = CardFacts::load(tx, stacks.iter().flat_map(|stack| &stack.tasks))?;
        Ok((stacks, known, registry::projects(tx)?))
    })?;
    let mut view = draw(&asked, seen, &stacks, &known);
    view.saved = saved.iter().map(|one| SavedLink::new(one, seen)).collect();
    if projects.len() > 1 {
        let names = projects.iter().map(ToString::to_string).collect();
        view.selects.insert(0, filter(seen, "project", "Project", names));
    }
    if list.is_some() {
        let groups = list::GROUPS.map(str::to_owned).into();
        let mut group = filter(seen, "group", "Group", groups);
        for choice in &mut group.choices {
            choice.label =
                if choice.value.is_empty() { "No groups".to_owned() } else { format!("by {}", choice.value) };
        }
        view.selects.insert(0, group);
        view.selects.retain(|select| select.name != "lanes");
    }
    view.list = list.map(|list| list.draw(seen, &stacks, &known));
    Ok(Drawn { title: "Board".to_owned(), main: rendered(&view)? })
}

/// What the words are found in, by column.
fn found(tx: &mut dyn Tx, asked: &BoardQuery) -> StoreResult<Vec<Stack>> {
    let mut all = Vec::new();
    let sought = onus_core::search::sought(&asked.words);
    queue::search(tx, &sought, Which::All, &asked.filter, FOUND, &mut |passing| {
        all.push(InQueue { state: passing.state, waits: passing.waiting, id: passing.id.parse().ok() });
        Ok(())
    })?;
    let more = all.len() as i64 == FOUND;
    let stack = |column: &'static ColumnKind| {
        let count = all.iter().filter(|seen| seen.is_in(column)).count();
        Ok(Stack { column, tasks: near(tx, &all, column, asked.shown(column) as i64)?, count, more })
    };
    COLUMNS.iter().map(stack).collect()
}

/// A task at the head of the queue, or found.
#[derive(Debug)]
struct InQueue {
    state: StateName,
    waits: bool,
    id: Option<TaskId>,
}

impl InQueue {
    fn is_in(&self, column: &ColumnKind) -> bool {
        let waits = self.state == StateName::Open && self.waits;
        self.state == column.state && waits == (column.key == "waiting")
    }
}

/// The tasks of a column that were seen at the head of the queue.
fn near(tx: &mut dyn Tx, window: &[InQueue], column: &ColumnKind, limit: i64) -> StoreResult<Vec<Task>> {
    let own = window.iter().filter(|seen| seen.is_in(column)).filter_map(|seen| seen.id.as_ref());
    let own = own.take(usize::try_from(limit).unwrap_or(usize::MAX));
    let found = own.map(|id| Ok(load::task(tx, id)?.map(|stored| stored.task)));
    found.filter_map(Result::transpose).collect()
}

fn stacks(tx: &mut dyn Tx, asked: &BoardQuery) -> StoreResult<Vec<Stack>> {
    // Counted over the head of the queue, so that a look costs the same with a million tasks. Whatever a filter asks for was read
    // to be counted: it is not looked for again.
    let is_narrowed = asked.filter != Filter::default();
    let mut window = Vec::new();
    queue::window(tx, &asked.filter, LIMIT_MAX, &mut |passing| {
        // What an index gives need not be remembered by name.
        let is_odd = passing.waiting || passing.state == StateName::Blocked;
        let id = if is_odd || is_narrowed { passing.id.parse().ok() } else { None };
        window.push(InQueue { state: passing.state, waits: passing.waiting, id });
        Ok(())
    })?;
    let further = window.len() as i64 == LIMIT_MAX;
    let mut stacks = Vec::with_capacity(COLUMNS.len());
    for column in &COLUMNS {
        let (shown, filter) = (asked.shown(column), &asked.filter);
        let limit = shown as i64 + 1;
        let mut tasks = match column.key {
            "ready" if is_narrowed && !further => near(tx, &window, column, limit)?,
            "ready" => queue::ready(tx, filter, After::START, limit)?,
            // In a long queue what waits or is blocked is looked for at its head alone.
            "waiting" | "blocked" => near(tx, &window, column, limit)?,
            "in_progress" => queue::held(tx, column.state, filter, limit)?,
            _ => queue::ended(tx, column.state, filter, limit)?,
        };
        let full = tasks.len() as i64 == limit;
        let (count, more) = if column.state.is_terminal() {
            let count = if full {
                queue::count_ended(tx, column.state, filter, LIMIT_MAX)?
            } else {
                tasks.len() as i64
            };
            (usize::try_from(count).unwrap_or(0), count == LIMIT_MAX)
        } else {
            (window.iter().filter(|seen| seen.is_in(column)).count(), further)
        };
        tasks.truncate(shown);
        stacks.push(Stack { column, tasks, count, more });
    }
    Ok(stacks)
}

fn draw(asked: &BoardQuery, seen: &PageRequest, stacks: &[Stack], known: &CardFacts) -> BoardView {
    let mut names: BTreeSet<Option<String>> = BTreeSet::new();
    for task in stacks.iter().flat_map(|stack| &stack.tasks) {
        names.insert(asked.lane(task));
    }
    // Who has no lane comes last; an empty board has one that is empty.
    let mut names: Vec<Option<String>> = names.into_iter().collect();
    names.sort_by_key(Option::is_none);
    if names.is_empty() {
        names.push(None);
    }
    let lanes = names.into_iter().map(|name| {
        let cells = stacks.iter().map(|stack| {
            let own: Vec<&Task> = stack.tasks.iter().filter(|task| asked.lane(task) == name).collect();
            let run = |tasks: &[&Task]| tasks.iter().map(|task| Card::new(task, seen, known)).collect();
            (stack.column, own.chunks(RUN).map(run).collect())
        });
        Lane { cells: cells.collect(), name: name.unwrap_or_else(|| asked.lanes.rest().to_owned()) }
    });
    BoardView {
        columns: stacks.iter().map(|stack| column(asked, seen, stack)).collect(),
        lanes: lanes.collect(),
        laned: asked.lanes != Lanes::None,
        selects: selects(asked, seen, stacks, known),
        q: seen.word("q").unwrap_or_default().to_owned(),
        filtered: seen.words().any(|(word, _)| !LOOKS.contains(&word)),
        clear: cleared(seen),
        now: Html(seen.now.0.to_string()),
        list: None,
        as_board: seen.with("view", None),
        as_list: seen.with("view", Some("list")),
        person: seen.viewer.is_person(),
        saved: Vec::new(),
    }
}

/// Words of the address that hold nothing back: they say how tasks are shown.
const LOOKS: [&str; 6] = ["view", "lanes", "group", "sort", "columns", "show"];

/// The address without what holds tasks back.
fn cleared(seen: &PageRequest) -> String {
    let looks = seen.words().filter(|(word, _)| LOOKS.contains(word));
    let words = form_urlencoded::Serializer::new(String::new()).extend_pairs(looks).finish();
    if words.is_empty() { seen.path.clone() } else { format!("{}?{words}", seen.path) }
}

fn column(asked: &BoardQuery, seen: &PageRequest, stack: &Stack) -> Column {
    let is_all = stack.tasks.len() >= stack.count && !stack.more;
    let further = (!is_all).then(|| {
        let mut shown = asked.shown.clone();
        shown.insert(stack.column.key, (asked.shown(stack.column) * FURTHER).min(LIMIT_MAX as usize));
        seen.with("show", Some(&write_shown(&shown)))
    });
    Column {
        kind: stack.column,
        count: format!("{}{}", stack.count, if stack.more { "+" } else { "" }),
        further: further.filter(|_| asked.shown(stack.column) < LIMIT_MAX as usize),
    }
}

/// A filter by one of several words; the one that is set is always among them.
fn filter(
    seen: &PageRequest,
    name: &'static str,
    label: &'static str,
    mut values: BTreeSet<String>,
) -> Select {
    let chosen = seen.word(name).unwrap_or_default().to_owned();
    if !chosen.is_empty() {
        values.insert(chosen.clone());
    }
    let choice = |value: String| Choice { chosen: value == chosen, label: value.clone(), value };
    let any = Choice::any(label, chosen.is_empty());
    Select { name, label, choices: std::iter::once(any).chain(values.into_iter().map(choice)).collect() }
}

fn selects(asked: &BoardQuery, seen: &PageRequest, stacks: &[Stack], known: &CardFacts) -> Vec<Select> {
    let tasks = || stacks.iter().flat_map(|stack| &stack.tasks);
    let filter = |name, label, values| filter(seen, name, label, values);
    let lanes = LANES.iter().map(|(name, lanes)| Choice {
        value: if *lanes == Lanes::None { String::new() } else { (*name).to_owned() },
        label: if *lanes == Lanes::None { "No lanes".to_owned() } else { format!("by {name}") },
        chosen: *lanes == asked.lanes,
    });
    let roles = tasks().filter_map(|task| task.spec.role.as_ref()).map(ToString::to_string);
    let types = tasks().filter_map(|task| task.spec.task_type.as_ref()).map(ToString::to_string);
    let sprints = tasks().filter_map(|task| task.spec.sprint.clone());
    let tags = tasks().flat_map(|task| task.spec.tags.iter().cloned());
    vec![
        Select { name: "lanes", label: "Lanes", choices: lanes.collect() },
        filter("assignee", "Holder", known.workers.keys().map(ToString::to_string).collect()),
        filter("role", "Role", roles.collect()),
        filter("type", "Type", types.collect()),
        filter("sprint", "Sprint", sprints.collect()),
        filter("tag", "Label", tags.take(LABELS).collect()),
        filter("priority", "Priority", Priority::ALL.iter().map(ToString::to_string).collect()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_survives_its_address() {
        let shown = read_shown("ready:200,complete:800,nonsense:5,blocked:x,dropped:999999999");
        assert_eq!(write_shown(&shown), "complete:800,dropped:10000,ready:200");
        assert_eq!(read_shown(&write_shown(&shown)), shown);
    }
}
