//! Milestones as rows: which tasks they name, and the entries that added and closed them.

use crate::codec::{self, StoredTask, task_columns, task_from};
use crate::error::{Result, StoreError};
use crate::port::{Row, Tx};
use crate::{args, sql};
use onus_core::hash::Digest;
use onus_core::id::{Handle, MilestoneName, TaskId};
use onus_core::milestone::{Closed, MEMBERS_MAX, Milestone, Selection};
use onus_core::task::Task;
use onus_core::time::Timestamp;

macro_rules! milestones {
    () => {
        "SELECT m.name, m.title, m.sprint, m.tag, m.parent, m.born, m.closed, m.fingerprint, \
         (SELECT string_agg(k.task, ' ') FROM milestone_task k \
            WHERE k.workspace = m.workspace AND k.milestone = m.name), \
         b.actor, b.at, c.actor, c.at FROM milestone m \
         JOIN ledger b ON b.workspace = m.workspace AND b.seq = m.born \
         LEFT JOIN ledger c ON c.workspace = m.workspace AND c.seq = m.closed WHERE m.workspace = ?1 "
    };
}

sql! {
    INSERT_MILESTONE = "INSERT INTO milestone (workspace, name, title, sprint, tag, parent, born) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    INSERT_MILESTONE_TASK = "INSERT INTO milestone_task (workspace, milestone, task) VALUES (?1, ?2, ?3)";
    CLOSE_MILESTONE = "UPDATE milestone SET closed = ?3, fingerprint = ?4 \
        WHERE workspace = ?1 AND name = ?2 AND closed IS NULL";
    MILESTONE = milestones!(), "AND m.name = ?2";
    MILESTONES = milestones!(), "ORDER BY m.born";
    /// A tag is looked for as it is written in the list, at the beginning of one of its words: within a word the quote has
    /// a backslash before it. What is not asked for is NULL, and matches nothing.
    MEMBERS = "SELECT ", task_columns!(), task_from!(), "WHERE t.workspace = ?1 AND (t.id IN \
        (SELECT k.task FROM milestone_task k WHERE k.workspace = ?1 AND k.milestone = ?2) \
        OR t.sprint = ?3 OR t.parent = ?4 OR t.id = ?4 OR replace(t.tags, '[' || ?5, '') <> t.tags \
        OR replace(t.tags, ',' || ?5, '') <> t.tags) ORDER BY t.born LIMIT ?6";
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
    let tasks = row.opt_text()?.unwrap_or_default();
    let tasks = tasks.split_whitespace().map(str::parse).collect::<std::result::Result<_, _>>();
    let selection = Selection { tasks: tasks.map_err(StoreError::Corrupt)?, sprint, tag, parent };
    let added = (row.parsed()?, Timestamp(row.int()?));
    let by: Option<Handle> = row.opt_parsed()?;
    let at = row.opt_int()?.map(Timestamp);
    Ok(StoredMilestone {
        milestone: Milestone { name, title, selection, born, closed },
        added,
        closed: by.zip(at),
    })
}

pub fn insert(tx: &mut dyn Tx, milestone: &Milestone) -> Result<()> {
    let workspace = tx.workspace();
    let Milestone { name, title, selection, born, .. } = milestone;
    let Selection { tasks, sprint, tag, parent } = selection;
    let parent = parent.as_ref().map(ToString::to_string);
    tx.run_one(
        &INSERT_MILESTONE,
        &args![
            workspace.0,
            name.as_str(),
            title.as_deref(),
            sprint.as_deref(),
            tag.as_deref(),
            parent,
            *born
        ],
    )?;
    for task in tasks {
        tx.run_one(&INSERT_MILESTONE_TASK, &args![workspace.0, name.as_str(), task.to_string()])?;
    }
    Ok(())
}

pub fn close(tx: &mut dyn Tx, name: &MilestoneName, closed: &Closed) -> Result<()> {
    let workspace = tx.workspace();
    tx.run_one(&CLOSE_MILESTONE, &args![workspace.0, name.as_str(), closed.seq, &closed.fingerprint])
}

pub fn find(tx: &mut dyn Tx, name: &MilestoneName) -> Result<Option<StoredMilestone>> {
    let workspace = tx.workspace();
    tx.row(&MILESTONE, &args![workspace.0, name.as_str()])?.map(|mut row| stored(&mut row)).transpose()
}

/// Every milestone, the oldest first.
pub fn every(tx: &mut dyn Tx) -> Result<Vec<StoredMilestone>> {
    let workspace = tx.workspace();
    tx.rows(&MILESTONES, &args![workspace.0])?.into_iter().map(|mut row| stored(&mut row)).collect()
}

/// The milestones that are about a task, the oldest first.
pub fn about(tx: &mut dyn Tx, task: &Task) -> Result<Vec<StoredMilestone>> {
    let mut found = every(tx)?;
    found.retain(|row| row.milestone.selection.has(task));
    Ok(found)
}

/// The tasks that a milestone is about now, the oldest first: one more than it may have tells that there are more.
pub fn members(tx: &mut dyn Tx, milestone: &Milestone) -> Result<Vec<StoredTask>> {
    let workspace = tx.workspace();
    let Selection { sprint, tag, parent, .. } = &milestone.selection;
    let tag = tag.as_ref().map(codec::json_text).transpose()?;
    let parent = parent.as_ref().map(TaskId::to_string);
    let limit = i64::try_from(MEMBERS_MAX).unwrap_or(i64::MAX) + 1;
    let args = args![workspace.0, milestone.name.as_str(), sprint.as_deref(), parent, tag, limit];
    tx.rows(&MEMBERS, &args)?.into_iter().map(|mut row| codec::task(&mut row)).collect()
}
