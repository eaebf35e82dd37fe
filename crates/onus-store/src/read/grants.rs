//! Every assignment and every task in a few words, for whoever compares them with something outside the store.

use crate::error::Result;
use crate::port::Tx;
use crate::{codec, sql};
use onus_core::id::{Epoch, Handle, TaskId, WorkstationName};
use onus_core::task::StateName;
use serde::{Deserialize, Serialize};

sql! {
    GRANTS = "SELECT task, epoch, assignee, workstation, CASE WHEN ended_at IS NULL THEN 1 ELSE 0 END FROM assignment \
        WHERE workspace = :workspace ORDER BY assigned_at";
    STATES = "SELECT id, state, archived FROM task WHERE workspace = :workspace";
}

/// Who was given a task, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub task: TaskId,
    pub epoch: Epoch,
    pub assignee: Handle,
    pub workstation: WorkstationName,
    pub is_live: bool,
}

/// Streams every assignment, the earliest first.
pub fn grants(tx: &mut dyn Tx, each: &mut dyn FnMut(Grant) -> Result<()>) -> Result<()> {
    tx.each(&GRANTS {}, &mut |mut row| {
        each(Grant {
            task: row.parsed()?,
            epoch: row.int()?,
            assignee: row.parsed()?,
            workstation: row.parsed()?,
            is_live: row.flag()?,
        })
    })
}

/// How far a task is, and whether its history is from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskStanding {
    pub task: TaskId,
    pub state: StateName,
    pub archived: bool,
}

/// Streams every task.
pub fn states(tx: &mut dyn Tx, each: &mut dyn FnMut(TaskStanding) -> Result<()>) -> Result<()> {
    tx.each(&STATES {}, &mut |mut row| {
        each(TaskStanding {
            task: row.parsed()?,
            state: codec::word(row.text()?.as_str(), StateName::parse)?,
            archived: row.flag()?,
        })
    })
}
