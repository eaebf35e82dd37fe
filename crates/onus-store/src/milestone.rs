//! Milestones as rows: which tasks they name, and the entries that added and closed them.

use crate::codec::{self, StoredTask, TASK_COLUMNS, TASK_FROM};
use crate::error::{Result, StoreError};
use crate::port::{Row, Tx};
use crate::sql;
use onus_core::hash::Digest;
use onus_core::id::{Handle, MilestoneName};
use onus_core::milestone::{Closed, MEMBERS_MAX, Milestone, Selection};
use onus_core::task::Task;
use onus_core::time::Timestamp;

const SELECT: &str = "SELECT m.name, m.title, m.sprint, m.tag, m.parent, m.born, m.closed, m.fingerprint, m.target, \
    (SELECT string_agg(k.task, ' ') FROM milestone_task k WHERE k.workspace = m.workspace AND k.milestone = m.name), \
    b.actor, b.at, c.actor, c.at FROM milestone m \
    JOIN ledger b ON b.workspace = m.workspace AND b.seq = m.born \
    LEFT JOIN ledger c ON c.workspace = m.workspace AND c.seq = m.closed WHERE m.workspace = :workspace ";

sql! {
    INSERT_MILESTONE(name, title, sprint, tag, parent, born, target) = "INSERT INTO milestone (workspace, name, title, \
        sprint, tag, parent, born, target) \
        VALUES (:workspace, :name, :title, :sprint, :tag, :parent, :born, :target)";
    INSERT_MILESTONE_TASK(milestone, task) = "INSERT INTO milestone_task (workspace, milestone, task) VALUES \
        (:workspace, :milestone, :task)";
    EDIT_MILESTONE(name, title, target) = "UPDATE milestone SET title = :title, target = :target \
        WHERE workspace = :workspace AND name = :name AND closed IS NULL";
    CLOSE_MILESTONE(name, closed, fingerprint) = "UPDATE milestone SET closed = :closed, fingerprint = :fingerprint \
        WHERE workspace = :workspace AND name = :name AND closed IS NULL";
    MILESTONE(name) = SELECT, "AND m.name = :name";
    MILESTONES = SELECT, "ORDER BY m.born";
    /// A tag is looked for as it is written in the list, at the beginning of one of its words: within a word the quote has
    /// a backslash before it. What is not asked for is NULL, and matches nothing.
    MEMBERS(milestone, sprint, parent, tag, limit) = "SELECT ", TASK_COLUMNS, TASK_FROM, "WHERE t.workspace = \
        :workspace AND (t.id IN \
        (SELECT k.task FROM milestone_task k WHERE k.workspace = :workspace AND k.milestone = :milestone) \
        OR t.sprint = :sprint OR t.parent = :parent OR t.id = :parent OR replace(t.tags, '[' || :tag, '') <> t.tags \
        OR replace(t.tags, ',' || :tag, '') <> t.tags) ORDER BY t.born LIMIT :limit";
}

/// A milestone with who added and closed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMilestone {
    pub milestone: Milestone,
    pub added: (Handle, Timestamp),
    pub closed: Option<(Handle, Timestamp)>,
}

fn stored(row: &mut Row) -> Result<StoredMilestone> {
    let (name, title) = (row.parsed()?, row.opt_text()?);
    let (sprint, tag, parent) = (row.opt_text()?, row.opt_text()?, row.opt_parsed()?);
    let (born, closed) = (row.int()?, row.opt_int()?);
    let fingerprint = row.opt_blob()?.map(|bytes| Digest::from_slice(&bytes));
    let closed = match (closed, fingerprint) {
        (None, None) => None,
        (Some(seq), Some(Some(fingerprint))) => Some(Closed { seq, fingerprint }),
        _ => return Err(StoreError::Corrupt(format!("the milestone {name} is closed by halves"))),
    };
    let target = row.opt_parsed()?;
    let tasks = row.opt_text()?.unwrap_or_default();
    let tasks = tasks.split_whitespace().map(str::parse).collect::<std::result::Result<_, _>>();
    let selection = Selection { tasks: tasks.map_err(StoreError::Corrupt)?, sprint, tag, parent };
    let added = (row.parsed()?, Timestamp(row.int()?));
    let by: Option<Handle> = row.opt_parsed()?;
    let at = row.opt_int()?.map(Timestamp);
    Ok(StoredMilestone {
        milestone: Milestone { name, title, selection, target, born, closed },
        added,
        closed: by.zip(at),
    })
}

pub fn insert(tx: &mut dyn Tx, milestone: &Milestone) -> Result<()> {
    let Milestone { name, title, selection, born, target, .. } = milestone;
    let Selection { tasks, sprint, tag, parent } = selection;
    let parent = parent.as_ref().map(ToString::to_string);
    let target = target.map(|day| day.to_string());
    tx.run_one(&INSERT_MILESTONE { name, title, sprint, tag, parent, born: *born, target })?;
    for task in tasks {
        tx.run_one(&INSERT_MILESTONE_TASK { milestone: name, task })?;
    }
    Ok(())
}

/// Writes what may change of one that is open.
pub fn edit(tx: &mut dyn Tx, milestone: &Milestone) -> Result<()> {
    let Milestone { name, title, target, .. } = milestone;
    tx.run_one(&EDIT_MILESTONE { name, title, target: target.map(|day| day.to_string()) })
}

pub fn close(tx: &mut dyn Tx, name: &MilestoneName, closed: &Closed) -> Result<()> {
    tx.run_one(&CLOSE_MILESTONE { name, closed: closed.seq, fingerprint: &closed.fingerprint })
}

pub fn find(tx: &mut dyn Tx, name: &MilestoneName) -> Result<Option<StoredMilestone>> {
    tx.row(&MILESTONE { name })?.map(|mut row| stored(&mut row)).transpose()
}

/// Every milestone, the oldest first.
pub fn every(tx: &mut dyn Tx) -> Result<Vec<StoredMilestone>> {
    tx.rows(&MILESTONES {})?.into_iter().map(|mut row| stored(&mut row)).collect()
}

/// The milestones that are about a task, the oldest first.
pub fn about(tx: &mut dyn Tx, task: &Task) -> Result<Vec<StoredMilestone>> {
    let mut found = every(tx)?;
    found.retain(|row| row.milestone.selection.has(task));
    Ok(found)
}

/// The tasks that a milestone is about now, the oldest first: one more than it may have tells that there are more.
pub fn members(tx: &mut dyn Tx, milestone: &Milestone) -> Result<Vec<StoredTask>> {
    let Selection { sprint, tag, parent, .. } = &milestone.selection;
    let tag = tag.as_ref().map(codec::json_text).transpose()?;
    let limit = i64::try_from(MEMBERS_MAX).unwrap_or(i64::MAX) + 1;
    let members = MEMBERS { milestone: &milestone.name, sprint, parent, tag, limit };
    tx.rows(&members)?.into_iter().map(|mut row| codec::task(&mut row)).collect()
}
