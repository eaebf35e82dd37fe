//! Many rows at once: what an import looks up and writes, what an export and `validate` read.

use crate::apply::INSERT_DEPENDENCY;
use crate::codec::{self, StoredTask, TASK_COLUMNS, TASK_FROM};
use crate::error::{Result, StoreError};
use crate::port::{Row, Tx};
use crate::read::show::{self, Note};
use crate::sql;
use onus_core::id::{ProjectKey, Seq, TaskId};
use onus_core::task::StateName;
use onus_core::validate::{Fence, QueuedTask};
use uuid::Uuid;

sql! {
    COUNTERS = "SELECT key, last_number FROM project WHERE workspace = :workspace ORDER BY born";
    UID(task) = "SELECT uid FROM task WHERE workspace = :workspace AND id = :task";
    SOME_TASK = "SELECT id FROM task WHERE workspace = :workspace LIMIT 1";
    COUNT_TASKS = "SELECT count(*) FROM task WHERE workspace = :workspace";
    /// Tasks in the order in which they were asked for, each with what was said last when it ended.
    RESOLVED_TASKS(from, limit) = "SELECT CASE WHEN t.state IN ('complete', 'dropped') THEN (SELECT n.text FROM note n \
        WHERE n.workspace = t.workspace AND n.task = t.id AND n.kind = 'resolution' ORDER BY n.seq DESC LIMIT 1) END, ",
        TASK_COLUMNS, TASK_FROM, "WHERE t.workspace = :workspace AND t.born >= :from ORDER BY t.born LIMIT :limit";
    STANDINGS = "SELECT id, state, epoch, CASE WHEN lease_id IS NULL THEN 0 ELSE 1 END, parent, checks, role, lane FROM task \
        WHERE workspace = :workspace ORDER BY born";
    EDGES = "SELECT task, depends_on FROM dependency WHERE workspace = :workspace";
    /// What was said about tasks by holders and others; a key where it is from elsewhere. Of the first task only what was said
    /// behind an entry.
    COMMENTS(from, to, behind, limit) = "SELECT n.task, n.seq, n.kind, n.text, l.actor, l.at, n.said_by, n.said_at, n.said_key \
        FROM task t CROSS JOIN note n CROSS JOIN ledger l WHERE t.workspace = :workspace AND t.born BETWEEN :from AND :to \
        AND n.workspace = t.workspace AND n.task = t.id AND n.kind IN ('comment', 'progress') \
        AND (t.born > :from OR n.seq > :behind) AND l.workspace = n.workspace AND l.seq = n.seq \
        ORDER BY t.born, n.seq LIMIT :limit";
    LIVE = "SELECT task, epoch FROM assignment WHERE workspace = :workspace AND ended_at IS NULL";
}

/// Every project, the oldest first, with the last number it gave away.
pub fn counters(tx: &mut dyn Tx) -> Result<Vec<(ProjectKey, i64)>> {
    tx.rows(&COUNTERS {})?.into_iter().map(|mut row| Ok((row.parsed()?, row.int()?))).collect()
}

/// The uid of the task that has this id.
pub fn uid(tx: &mut dyn Tx, id: &TaskId) -> Result<Option<Uuid>> {
    let Some(mut row) = tx.row(&UID { task: id })? else {
        return Ok(None);
    };
    row.text()?.parse().map(Some).map_err(|_| StoreError::Corrupt(format!("{id}: its uid is none")))
}

/// Whether there is any task: an empty store need not be asked about each line of a file.
pub fn is_empty(tx: &mut dyn Tx) -> Result<bool> {
    Ok(tx.row(&SOME_TASK {})?.is_none())
}

pub fn count_tasks(tx: &mut dyn Tx) -> Result<i64> {
    tx.row(&COUNT_TASKS {})?.map_or(Ok(0), |mut row| row.int())
}

/// Writes one dependency down. Both tasks must be there: within one file they may refer to each other in any order.
pub fn depend(tx: &mut dyn Tx, task: &TaskId, on: &TaskId) -> Result<()> {
    tx.run_one(&INSERT_DEPENDENCY { task, depends_on: on })
}

/// Tasks from an entry on with the resolution of those that have ended, in the order in which they were asked for: parents before
/// their children.
pub fn resolved_tasks(tx: &mut dyn Tx, from: Seq, limit: i64) -> Result<Vec<(StoredTask, Option<String>)>> {
    let mut found = Vec::new();
    tx.each(&RESOLVED_TASKS { from, limit }, &mut |mut row| {
        let resolution = row.opt_text()?;
        found.push((codec::task(&mut row)?, resolution));
        Ok(())
    })?;
    Ok(found)
}

/// Streams every task as far as its place in the queue matters.
pub fn standings(tx: &mut dyn Tx, each: &mut dyn FnMut(QueuedTask) -> Result<()>) -> Result<()> {
    tx.each(&STANDINGS {}, &mut |mut row| each(standing(&mut row)?))
}

fn standing(row: &mut Row) -> Result<QueuedTask> {
    let id: TaskId = row.parsed()?;
    let state = row.text()?;
    Ok(QueuedTask {
        state: StateName::parse(&state)
            .ok_or_else(|| StoreError::Corrupt(format!("{id}: unknown state `{state}`")))?,
        id,
        epoch: row.int()?,
        fence: if row.flag()? { Fence::Up } else { Fence::Down },
        parent: row.opt_parsed()?,
        checks: codec::json_list(row.opt_text()?)?,
        role: row.opt_parsed()?,
        lane: row.opt_int()?,
    })
}

/// Every `(task, depends_on)`, whether or not there are such tasks.
pub fn edges(tx: &mut dyn Tx) -> Result<Vec<(TaskId, TaskId)>> {
    let mut found = Vec::new();
    tx.each(&EDGES {}, &mut |mut row| {
        found.push((row.parsed()?, row.parsed()?));
        Ok(())
    })?;
    Ok(found)
}

/// What was said about the tasks that were asked for from one entry to another, without handoffs and resolutions; of the first one
/// only what was said behind an entry.
pub fn comments(
    tx: &mut dyn Tx,
    (from, to): (Seq, Seq),
    behind: Seq,
    limit: i64,
) -> Result<Vec<(TaskId, Note)>> {
    let mut found = Vec::new();
    tx.each(&COMMENTS { from, to, behind, limit }, &mut |mut row| {
        found.push((row.parsed()?, show::note_of(&mut row)?));
        Ok(())
    })?;
    Ok(found)
}

/// Every assignment that has not ended.
pub fn live(tx: &mut dyn Tx) -> Result<Vec<(TaskId, i64)>> {
    tx.rows(&LIVE {})?.into_iter().map(|mut row| Ok((row.parsed()?, row.int()?))).collect()
}
