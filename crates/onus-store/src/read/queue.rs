//! `list`, `ready` and the next task to claim: bounded, in a stable order, never a scan of the whole table.

use super::audit::{int_of, opt_text_of, text_of};
use crate::codec::{self, StoredTask as Stored, in_force, task_columns, task_from};
use crate::error::{Result, StoreError};
use crate::port::{Sql, Tx, Value};
use crate::{args, sql};
use onus_core::id::{Handle, ProjectKey, Role, Seq, TaskId, TaskType, WorkspaceId};
use onus_core::task::{Spec, StateName, Task};
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

/// The filter's conditions; ?1 is the workspace, ?2 to ?8 the filter. A NULL has no type of its own: the cast gives it one.
macro_rules! matches {
    () => {
        "AND (CAST(?2 AS TEXT) IS NULL OR substr(t.id, 1, length(?2) + 1) = ?2 || '-') \
         AND (CAST(?3 AS TEXT) IS NULL OR t.type = ?3) AND (CAST(?4 AS TEXT) IS NULL OR t.role = ?4) \
         AND (CAST(?5 AS BIGINT) IS NULL OR t.lane = ?5) AND (CAST(?6 AS TEXT) IS NULL OR t.sprint = ?6) \
         AND (CAST(?7 AS TEXT) IS NULL OR t.parent = ?7) AND (CAST(?8 AS TEXT) IS NULL OR a.assignee = ?8) "
    };
}

/// Spelled exactly as the partial index `task_queue` spells it, so that the planner can use it.
macro_rules! active {
    () => {
        "t.workspace = ?1 AND t.state <> 'complete' AND t.state <> 'dropped' "
    };
}

/// Spelled as the partial index `task_ready` spells it.
macro_rules! is_ready {
    () => {
        "t.workspace = ?1 AND t.state = 'open' AND t.waits = 0 "
    };
}

macro_rules! in_order {
    () => {
        "ORDER BY t.priority, t.born LIMIT "
    };
}

macro_rules! window_columns {
    () => {
        "t.id, t.state, t.waits, t.blocker, t.title "
    };
}

pub(crate) use active;

sql! {
    /// The first page of all that is active.
    pub(crate) LIST_FIRST = "SELECT ", task_columns!(), task_from!(), "WHERE ", active!(), in_order!(), "?2";
    pub(crate) LIST_ACTIVE = "SELECT ", task_columns!(), task_from!(), "WHERE ", active!(), matches!(),
        "AND (CAST(?9 AS TEXT) IS NULL OR t.state = ?9) AND (t.priority, t.born) > (?10, ?11) ", in_order!(), "?12";
    pub(crate) LIST_ALL = "SELECT ", task_columns!(), task_from!(), "WHERE t.workspace = ?1 ", matches!(),
        "AND (CAST(?9 AS TEXT) IS NULL OR t.state = ?9) AND t.born > ?10 ORDER BY t.born LIMIT ?11";
    /// Reads the index `task_ready`: as many rows as it gives, however many others wait.
    pub(crate) READY = "SELECT ", task_columns!(), task_from!(), "WHERE ", is_ready!(), in_order!(), "?2";
    pub(crate) READY_MATCHING = "SELECT ", task_columns!(), task_from!(), "WHERE ", is_ready!(), matches!(), in_order!(), "?9";
    pub(crate) READY_PAGE = "SELECT ", task_columns!(), task_from!(), "WHERE ", is_ready!(), matches!(),
        "AND (t.priority, t.born) > (?9, ?10) ", in_order!(), "?11";
    /// Ready tasks behind one of them, by what can be told against a claim at a glance.
    pub(crate) READY_AFTER = "SELECT t.id, t.priority, t.born, t.type, t.role, t.lane, t.scope ", task_from!(), "WHERE ", is_ready!(),
        matches!(), "AND (t.priority, t.born) > (?9, ?10) ", in_order!(), "?11";
    /// What ended last, first. What never had a holder here, such as imported history, is not among it.
    LIST_ENDED = "SELECT ", task_columns!(),
        "FROM ledger l JOIN task t ON t.workspace = l.workspace AND t.id = l.task ", in_force!(),
        "WHERE l.workspace = ?1 AND l.verb = ?9 AND t.state = ?10 ", matches!(),
        "ORDER BY l.at DESC, l.seq DESC LIMIT ?11";
    /// The head of the queue with what each task waits for.
    pub(crate) WINDOW = "SELECT ", window_columns!(), "FROM task t WHERE ", active!(), in_order!(), "?2";
    pub(crate) WINDOW_MATCHING = "SELECT ", window_columns!(), task_from!(), "WHERE ", active!(), matches!(), in_order!(), "?9";
}

fn arguments<'a>(workspace: WorkspaceId, filter: &'a Filter) -> Vec<Value<'a>> {
    args![
        workspace.0,
        filter.project.as_ref().map(|p| p.as_str()),
        filter.task_type.as_ref().map(|t| t.as_str()),
        filter.role.as_ref().map(|r| r.as_str()),
        filter.lane,
        filter.sprint.as_deref(),
        filter.parent.as_ref().map(ToString::to_string),
        filter.assignee.as_ref().map(|a| a.as_str()),
    ]
    .into()
}

fn stored(tx: &mut dyn Tx, sql: &Sql, args: &[Value<'_>]) -> Result<Vec<Stored>> {
    tx.rows(sql, args)?.into_iter().map(|mut row| codec::task(&mut row)).collect()
}

fn tasks(tx: &mut dyn Tx, sql: &Sql, args: &[Value<'_>]) -> Result<Vec<Task>> {
    Ok(stored(tx, sql, args)?.into_iter().map(|stored| stored.task).collect())
}

pub fn list(tx: &mut dyn Tx, which: Which, filter: &Filter, after: After, limit: i64) -> Result<Vec<Task>> {
    let workspace = tx.workspace();
    let mut args = arguments(workspace, filter);
    match which {
        Which::Active if filter.is_absent() && after == After::START => {
            tasks(tx, &LIST_FIRST, &args![workspace.0, limit])
        }
        Which::Active => {
            args.extend(args![None::<i64>, after.priority, after.born, limit]);
            tasks(tx, &LIST_ACTIVE, &args)
        }
        Which::Only(state) if !state.is_terminal() => {
            args.extend(args![state.name(), after.priority, after.born, limit]);
            tasks(tx, &LIST_ACTIVE, &args)
        }
        Which::Only(state) => {
            args.extend(args![state.name(), after.born, limit]);
            tasks(tx, &LIST_ALL, &args)
        }
        Which::All => {
            args.extend(args![None::<&str>, after.born, limit]);
            tasks(tx, &LIST_ALL, &args)
        }
    }
}

/// Tasks in a state that ends them, the latest first. One that ended twice comes where it ended last.
pub fn ended(tx: &mut dyn Tx, state: StateName, filter: &Filter, limit: i64) -> Result<Vec<Task>> {
    let workspace = tx.workspace();
    let verb = if state == StateName::Complete { "completed" } else { "dropped" };
    let mut args = arguments(workspace, filter);
    args.extend(args![verb, state.name(), limit]);
    let mut found = tasks(tx, &LIST_ENDED, &args)?;
    let mut met = std::collections::BTreeSet::new();
    found.retain(|task| met.insert(task.born));
    Ok(found)
}

/// Open tasks whose dependencies are complete, behind one of them, the most important first.
pub fn ready(tx: &mut dyn Tx, filter: &Filter, after: After, limit: i64) -> Result<Vec<Task>> {
    if after == After::START {
        return Ok(ready_rows(tx, filter, limit)?.into_iter().map(|stored| stored.task).collect());
    }
    let mut args = arguments(tx.workspace(), filter);
    args.extend(args![after.priority, after.born, limit]);
    tasks(tx, &READY_PAGE, &args)
}

/// The first of them, as they are stored.
pub fn ready_rows(tx: &mut dyn Tx, filter: &Filter, limit: i64) -> Result<Vec<Stored>> {
    let (sql, args) = ready_question(tx.workspace(), filter, limit);
    stored(tx, sql, &args)
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
    let mut args = arguments(tx.workspace(), filter);
    args.extend(args![after.priority, after.born, limit]);
    let rows = tx.rows(&READY_AFTER, &args)?;
    rows.into_iter()
        .map(|mut row| {
            let (id, at) = (row.parsed()?, After { priority: row.int()?, born: row.int()? });
            let (task_type, role, lane) = (row.opt_parsed()?, row.opt_parsed()?, row.opt_int()?);
            let scope = codec::json_list(&mut row)?;
            Ok(Waiting { id, at, spec: Spec { task_type, role, lane, scope, ..Spec::titled("") } })
        })
        .collect()
}

/// Announces that [`ready_rows`] will be asked.
pub fn expect_ready(tx: &mut dyn Tx, filter: &Filter, limit: i64) -> Result<()> {
    let question = ready_question(tx.workspace(), filter, limit);
    tx.prefetch(&[question])
}

fn ready_question(workspace: WorkspaceId, filter: &Filter, limit: i64) -> (&'static Sql, Vec<Value<'_>>) {
    if filter.is_absent() {
        return (&READY, args![workspace.0, limit].into());
    }
    let mut args = arguments(workspace, filter);
    args.push(limit.into());
    (&READY_MATCHING, args)
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
    let workspace = tx.workspace();
    let mut passing = |row: &[Value<'_>]| {
        let [id, state, waits, blocker, title] = row else {
            return Err(StoreError::Corrupt("a row of the queue has other columns".into()));
        };
        look(Passing {
            id: text_of(id)?,
            state: codec::word(text_of(state)?, |text| {
                StateName::parse(text).filter(|it| it.name() == text)
            })?,
            waiting: codec::word(int_of(waits)?, |n| (n == 0 || n == 1).then_some(n == 1))?,
            blocker: opt_text_of(blocker)?,
            title: text_of(title)?,
        })
    };
    if filter.is_absent() {
        return tx.visit(&WINDOW, &args![workspace.0, limit], &mut passing);
    }
    let mut args = arguments(workspace, filter);
    args.push(limit.into());
    tx.visit(&WINDOW_MATCHING, &args, &mut passing)
}
