//! `list`, `ready` and the next task to claim: bounded, in a stable order, never a scan of the whole table.

use super::audit::{int_of, opt_text_of, text_of};
use crate::codec::{self, IN_FORCE, StoredTask as Stored, TASK_COLUMNS, TASK_FROM, row};
use crate::error::{Result, StoreError};
use crate::port::{Tx, Value};
use crate::sql;
use crate::statement::{Statement, params};
use onus_core::id::{Handle, ProjectKey, Role, Seq, TaskId, TaskType};
use onus_core::search::Sought;
use onus_core::task::{Priority, Spec, StateName, Task};
use serde::{Deserialize, Serialize};

/// Which tasks; everything that is absent matches.
///
/// The usual question has no filter, and statements of its own: to prepare conditions that hold anyway would take longer than
/// to read the rows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    pub project: Option<ProjectKey>,
    pub task_type: Option<TaskType>,
    pub role: Option<Role>,
    pub lane: Option<i64>,
    pub sprint: Option<String>,
    pub parent: Option<TaskId>,
    pub assignee: Option<Handle>,
    pub priority: Option<Priority>,
    /// A label that it has.
    pub tag: Option<String>,
}

impl Filter {
    fn is_absent(&self) -> bool {
        *self == Filter::default()
    }
}

/// The states that `list` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Which {
    /// Everything that somebody still has to do.
    Active,
    All,
    Only(StateName),
}

/// Where the next page begins: behind the task with this priority and birth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct After {
    pub priority: i64,
    pub born: Seq,
}

impl After {
    /// Before every task.
    pub const START: After = After { priority: -1, born: 0 };

    pub fn task(task: &Task) -> After {
        After { priority: task.spec.priority.rank(), born: task.born }
    }
}

params! {
    /// What a [`Filter`] asks for, as [`MATCHES`] names it.
    pub(crate) FilterParams { project, task_type, role, lane, sprint, parent, assignee, urgency, tag }
}

/// The filter's conditions. A NULL has no type of its own: the cast gives it one.
const MATCHES: &str = "AND (CAST(:project AS TEXT) IS NULL OR substr(t.id, 1, length(:project) + 1) = :project || '-') \
    AND (CAST(:task_type AS TEXT) IS NULL OR t.type = :task_type) AND (CAST(:role AS TEXT) IS NULL OR t.role = :role) \
    AND (CAST(:lane AS BIGINT) IS NULL OR t.lane = :lane) AND (CAST(:sprint AS TEXT) IS NULL OR t.sprint = :sprint) \
    AND (CAST(:parent AS TEXT) IS NULL OR t.parent = :parent) \
    AND (CAST(:assignee AS TEXT) IS NULL OR a.assignee = :assignee) \
    AND (CAST(:urgency AS BIGINT) IS NULL OR t.priority = :urgency) \
    AND (CAST(:tag AS TEXT) IS NULL OR t.tags LIKE :tag ESCAPE '!') ";

/// Spelled exactly as the partial index `task_queue` spells it, so that the planner can use it.
pub(crate) const ACTIVE: &str =
    "t.workspace = :workspace AND t.state <> 'complete' AND t.state <> 'dropped' ";

/// Spelled as the partial index `task_ready` spells it.
const IS_READY: &str = "t.workspace = :workspace AND t.state = 'open' AND t.waits = 0 ";

const FIRST: &str = "ORDER BY t.priority, t.born LIMIT :limit";

/// Spelled as the partial index `task_ended` spells it.
const HAS_ENDED: &str =
    "t.workspace = :workspace AND t.state = :state AND t.state IN ('complete', 'dropped') ";

/// The tasks that say a word.
const SAYING: &str = "(SELECT w.born FROM word w WHERE w.workspace = :workspace AND w.word BETWEEN ";

const WINDOW_COLUMNS: &str = "t.id, t.state, t.waits, t.blocker, t.title ";

sql! {
    /// The first page of all that is active.
    pub(crate) LIST_FIRST(limit) = "SELECT ", TASK_COLUMNS, TASK_FROM, "WHERE ", ACTIVE, FIRST;
    pub(crate) LIST_ACTIVE(state, priority, born, limit, ..filter: FilterParams) = "SELECT ", TASK_COLUMNS, TASK_FROM,
        "WHERE ",
        ACTIVE, MATCHES, "AND (CAST(:state AS TEXT) IS NULL OR t.state = :state) AND (t.priority, t.born) > \
        (:priority, :born) ",
        FIRST;
    pub(crate) LIST_ALL(state, born, limit, ..filter: FilterParams) = "SELECT ", TASK_COLUMNS, TASK_FROM,
        "WHERE t.workspace = :workspace ", MATCHES,
        "AND (CAST(:state AS TEXT) IS NULL OR t.state = :state) AND t.born > :born ORDER BY t.born LIMIT :limit";
    /// Reads the index `task_ready`: as many rows as it gives, however many others wait.
    pub(crate) READY(limit) = "SELECT ", TASK_COLUMNS, TASK_FROM, "WHERE ", IS_READY, FIRST;
    pub(crate) READY_MATCHING(limit, ..filter: FilterParams) = "SELECT ", TASK_COLUMNS, TASK_FROM, "WHERE ", IS_READY,
        MATCHES, FIRST;
    pub(crate) READY_PAGE(priority, born, limit, ..filter: FilterParams) = "SELECT ", TASK_COLUMNS, TASK_FROM, "WHERE ",
        IS_READY, MATCHES, "AND (t.priority, t.born) > (:priority, :born) ", FIRST;
    /// Ready tasks behind one of them, by what can be told against a claim at a glance.
    pub(crate) READY_AFTER(priority, born, limit, ..filter: FilterParams) = "SELECT t.id, t.priority, t.born, t.type, t.role, \
        t.lane, t.scope ", TASK_FROM, "WHERE ", IS_READY, MATCHES, "AND (t.priority, t.born) > (:priority, :born) ", FIRST;
    /// Open, and waiting for another task.
    LIST_WAITING(limit, ..filter: FilterParams) = "SELECT ", TASK_COLUMNS, TASK_FROM, "WHERE ", ACTIVE, MATCHES,
        "AND t.state = 'open' AND t.waits = 1 ", FIRST;
    /// What somebody holds: few rows, whatever the queue is like.
    LIST_HELD(state, limit, ..filter: FilterParams) = "SELECT ", TASK_COLUMNS,
        "FROM assignment a JOIN task t ON t.workspace = a.workspace AND t.id = a.task AND t.epoch = a.epoch \
        WHERE a.workspace = :workspace AND a.ended_at IS NULL AND t.state = :state ", MATCHES, FIRST;
    /// History from elsewhere: it ended before it came here, and the record has no entry of its end.
    pub(crate) LIST_ARCHIVED(state, limit, ..filter: FilterParams) = "SELECT ", TASK_COLUMNS, TASK_FROM,
        "WHERE ", HAS_ENDED, "AND t.archived = 1 ", MATCHES, "ORDER BY t.born DESC LIMIT :limit";
    pub(crate) COUNT_ENDED(state, limit) = "SELECT count(*) FROM (SELECT 1 FROM task t WHERE ", HAS_ENDED, "LIMIT :limit) counted";
    COUNT_ENDED_MATCHING(state, limit, ..filter: FilterParams) = "SELECT count(*) FROM (SELECT 1 ", TASK_FROM, "WHERE ",
        HAS_ENDED, MATCHES, "LIMIT :limit) counted";
    /// Every word somewhere in what a task says or in what was noted about it. The first one finds, the others are compared.
    pub(crate) SEARCH(one, one_to, two, two_to, three, three_to, active, state, limit, ..filter: FilterParams) = "SELECT ", WINDOW_COLUMNS, TASK_FROM,
        "WHERE +t.workspace = :workspace AND t.born IN ", SAYING, ":one AND :one_to) ", MATCHES,
        "AND (:active = 0 OR t.state NOT IN ('complete', 'dropped')) AND (CAST(:state AS TEXT) IS NULL OR t.state = :state) ",
        "AND (CAST(:two AS TEXT) = '' OR t.born IN ", SAYING, ":two AND :two_to)) \
         AND (CAST(:three AS TEXT) = '' OR t.born IN ", SAYING, ":three AND :three_to)) ", FIRST;
    /// What ended last, first. What never had a holder here, such as imported history, is not among it.
    LIST_ENDED(verb, state, limit, ..filter: FilterParams) = "SELECT ", TASK_COLUMNS,
        "FROM ledger l JOIN task t ON t.workspace = l.workspace AND t.id = l.task ", IN_FORCE,
        "WHERE l.workspace = :workspace AND l.verb = :verb AND t.state = :state ", MATCHES,
        "ORDER BY l.at DESC, l.seq DESC LIMIT :limit";
    /// The head of the queue with what each task waits for.
    pub(crate) WINDOW(limit) = "SELECT ", WINDOW_COLUMNS, "FROM task t WHERE ", ACTIVE, FIRST;
    pub(crate) WINDOW_MATCHING(limit, ..filter: FilterParams) = "SELECT ", WINDOW_COLUMNS, TASK_FROM, "WHERE ",
        ACTIVE, MATCHES, FIRST;
}

impl Filter {
    fn params(&self) -> FilterParams<Value<'_>> {
        row!(FilterParams {
            project: self.project.as_ref().map(|p| p.as_str()),
            task_type: self.task_type.as_ref().map(|t| t.as_str()),
            role: self.role.as_ref().map(|r| r.as_str()),
            lane: self.lane,
            sprint: self.sprint.as_deref(),
            parent: self.parent.as_ref().map(ToString::to_string),
            assignee: self.assignee.as_ref().map(|a| a.as_str()),
            urgency: self.priority.map(Priority::rank),
            tag: self.tag.as_deref().map(within_list),
        })
    }
}

/// Finds a text in a list of them, as it is stored.
fn within_list(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    format!("%{}%", quoted.replace('!', "!!").replace('%', "!%").replace('_', "!_"))
}

fn stored(tx: &mut dyn Tx, question: &dyn Statement) -> Result<Vec<Stored>> {
    tx.rows(question)?.into_iter().map(|mut row| codec::task(&mut row)).collect()
}

fn tasks(tx: &mut dyn Tx, question: &dyn Statement) -> Result<Vec<Task>> {
    Ok(stored(tx, question)?.into_iter().map(|stored| stored.task).collect())
}

pub fn list(tx: &mut dyn Tx, which: Which, filter: &Filter, after: After, limit: i64) -> Result<Vec<Task>> {
    let After { priority, born } = after;
    let state = match which {
        Which::Active if filter.is_absent() && after == After::START => {
            return tasks(tx, &LIST_FIRST { limit });
        }
        Which::Active | Which::All => None,
        Which::Only(state) => Some(state.name()),
    };
    let filter = filter.params();
    match which {
        Which::All => tasks(tx, &LIST_ALL { state, born, limit, filter }),
        Which::Only(state_name) if state_name.is_terminal() => {
            tasks(tx, &LIST_ALL { state, born, limit, filter })
        }
        Which::Active | Which::Only(_) => tasks(tx, &LIST_ACTIVE { state, priority, born, limit, filter }),
    }
}

/// Tasks in a state that ends them, the latest first. One that ended twice comes where it ended last.
pub fn ended(tx: &mut dyn Tx, state: StateName, filter: &Filter, limit: i64) -> Result<Vec<Task>> {
    let verb = if state == StateName::Complete { "completed" } else { "dropped" };
    let ended = LIST_ENDED { verb, state: state.name(), limit, filter: filter.params() };
    let mut found = tasks(tx, &ended)?;
    let mut met = std::collections::BTreeSet::new();
    found.retain(|task| met.insert(task.born));
    // History comes last: it ended elsewhere, before.
    let room = limit - found.len() as i64;
    if room > 0 {
        let archived = LIST_ARCHIVED { state: state.name(), limit: room, filter: filter.params() };
        found.extend(tasks(tx, &archived)?.into_iter().filter(|task| met.insert(task.born)));
    }
    Ok(found)
}

/// How many tasks ended so, counted up to a limit.
pub fn count_ended(tx: &mut dyn Tx, state: StateName, filter: &Filter, limit: i64) -> Result<i64> {
    let state = state.name();
    let count = match filter.is_absent() {
        true => tx.row(&COUNT_ENDED { state, limit })?,
        false => tx.row(&COUNT_ENDED_MATCHING { state, limit, filter: filter.params() })?,
    };
    count.map_or(Ok(0), |mut row| row.int())
}

/// Tasks in a state that somebody holds, the most important first.
pub fn held(tx: &mut dyn Tx, state: StateName, filter: &Filter, limit: i64) -> Result<Vec<Task>> {
    tasks(tx, &LIST_HELD { state: state.name(), limit, filter: filter.params() })
}

/// Open tasks that wait for others, the most important first.
pub fn waiting(tx: &mut dyn Tx, filter: &Filter, limit: i64) -> Result<Vec<Task>> {
    tasks(tx, &LIST_WAITING { limit, filter: filter.params() })
}

/// Tasks that say these words, or about which they were noted: in title, labels, body, origin or notes. What was
/// written since the index of words was made is not among them (`word_index::catch_up`).
pub fn search(
    tx: &mut dyn Tx,
    sought: &[Sought],
    which: Which,
    filter: &Filter,
    limit: i64,
    look: &mut dyn FnMut(Passing<'_>) -> Result<()>,
) -> Result<()> {
    let none = Sought { from: String::new(), to: String::new() };
    let [one, two, three] = [0, 1, 2].map(|n| sought.get(n).unwrap_or(&none));
    if one.from.is_empty() {
        return Ok(());
    }
    let question = SEARCH {
        one: one.from.as_str(),
        one_to: one.to.as_str(),
        two: two.from.as_str(),
        two_to: two.to.as_str(),
        three: three.from.as_str(),
        three_to: three.to.as_str(),
        active: which == Which::Active,
        state: if let Which::Only(state) = which { Some(state.name()) } else { None },
        limit,
        filter: filter.params(),
    };
    tx.visit(&question, &mut |row| look(passing(row)?))
}

/// Open tasks whose dependencies are complete, behind one of them, the most important first.
pub fn ready(tx: &mut dyn Tx, filter: &Filter, after: After, limit: i64) -> Result<Vec<Task>> {
    if after == After::START {
        return Ok(ready_rows(tx, filter, limit)?.into_iter().map(|stored| stored.task).collect());
    }
    let After { priority, born } = after;
    tasks(tx, &READY_PAGE { priority, born, limit, filter: filter.params() })
}

/// The first of them, as they are stored.
pub fn ready_rows(tx: &mut dyn Tx, filter: &Filter, limit: i64) -> Result<Vec<Stored>> {
    stored(tx, &*ready_question(filter, limit))
}

/// A ready task, with the part of its specification that can be judged without reading more about it.
#[derive(Debug, Clone)]
pub struct Waiting {
    pub id: TaskId,
    pub at: After,
    pub spec: Spec,
}

/// Ready tasks behind one of them, the most important first.
pub fn ready_after(tx: &mut dyn Tx, filter: &Filter, after: After, limit: i64) -> Result<Vec<Waiting>> {
    let After { priority, born } = after;
    let rows = tx.rows(&READY_AFTER { priority, born, limit, filter: filter.params() })?;
    rows.into_iter()
        .map(|mut row| {
            let (id, at) = (row.parsed()?, After { priority: row.int()?, born: row.int()? });
            let (task_type, role, lane) = (row.opt_parsed()?, row.opt_parsed()?, row.opt_int()?);
            let scope = codec::json_list(row.opt_text()?)?;
            Ok(Waiting { id, at, spec: Spec { task_type, role, lane, scope, ..Spec::titled("") } })
        })
        .collect()
}

/// Announces that [`ready_rows`] will be asked.
pub fn prefetch_ready(tx: &mut dyn Tx, filter: &Filter, limit: i64) -> Result<()> {
    tx.prefetch(&[ready_question(filter, limit)])
}

fn ready_question(filter: &Filter, limit: i64) -> Box<dyn Statement + '_> {
    match filter.is_absent() {
        true => Box::new(READY { limit }),
        false => Box::new(READY_MATCHING { limit, filter: filter.params() }),
    }
}

/// One task near the head of the queue, as it passes by: most are only counted.
#[derive(Debug, Clone, Copy)]
pub struct Passing<'a> {
    pub id: &'a str,
    pub state: StateName,
    pub waiting: bool,
    pub blocker: Option<&'a str>,
    pub title: &'a str,
}

/// Shows the first tasks of the queue, ready or not, so that `ready` can say why the rest is not.
pub fn window(
    tx: &mut dyn Tx,
    filter: &Filter,
    limit: i64,
    look: &mut dyn FnMut(Passing<'_>) -> Result<()>,
) -> Result<()> {
    let mut passed = |row: &[Value<'_>]| look(passing(row)?);
    if filter.is_absent() {
        return tx.visit(&WINDOW { limit }, &mut passed);
    }
    tx.visit(&WINDOW_MATCHING { limit, filter: filter.params() }, &mut passed)
}

/// What [`WINDOW_COLUMNS`] say.
fn passing<'r>(row: &'r [Value<'r>]) -> Result<Passing<'r>> {
    let [id, state, waits, blocker, title] = row else {
        return Err(StoreError::Corrupt("a row of the queue has other columns".into()));
    };
    Ok(Passing {
        id: text_of(id)?,
        state: codec::word(text_of(state)?, |text| StateName::parse(text).filter(|it| it.name() == text))?,
        waiting: codec::word(int_of(waits)?, |n| (n == 0 || n == 1).then_some(n == 1))?,
        blocker: opt_text_of(blocker)?,
        title: text_of(title)?,
    })
}
