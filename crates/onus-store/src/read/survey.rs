//! The whole store at once: counts, and what `doctor` compares.

use crate::apply::incomplete;
use crate::error::{Result, StoreError};
use crate::port::Tx;
use crate::sql;
use onus_core::id::TaskType;
use onus_core::task::StateName;

sql! {
    STATES = "SELECT state, count(*) FROM task WHERE workspace = :workspace GROUP BY state";
    OPEN_TYPES = "SELECT type, count(*) FROM task WHERE workspace = :workspace AND state = 'open' GROUP BY type ORDER \
        BY type";
    /// More than one live assignment in one workstation; the schema forbids it, damage does not.
    SHARED_WORKSTATIONS = "SELECT workstation, string_agg(task, ' ') FROM assignment \
        WHERE workspace = :workspace AND ended_at IS NULL GROUP BY workstation HAVING count(*) > 1 ORDER BY workstation";
    /// The fence stands in the task's row and in its live assignment's: alike, or in neither.
    SPLIT_LEASES = "SELECT t.id FROM task t LEFT JOIN assignment a \
            ON a.workspace = t.workspace AND a.task = t.id AND a.epoch = t.epoch AND a.ended_at IS NULL \
            WHERE t.workspace = :workspace AND a.lease_id IS DISTINCT FROM t.lease_id \
        UNION SELECT a.task FROM assignment a JOIN task t ON t.workspace = a.workspace AND t.id = a.task \
            WHERE a.workspace = :workspace AND a.ended_at IS NULL AND a.epoch <> t.epoch ORDER BY 1";
    OPEN_SESSIONS = "SELECT s.task, s.epoch FROM session s LEFT JOIN assignment a \
        ON a.workspace = s.workspace AND a.task = s.task AND a.epoch = s.epoch AND a.ended_at IS NULL \
        WHERE s.workspace = :workspace AND s.ended_at IS NULL AND a.task IS NULL";
    MISQUEUED = "SELECT t.id FROM task t WHERE t.workspace = :workspace AND t.waits <> CASE WHEN ", incomplete!("t"),
        "THEN 1 ELSE 0 END \
        ORDER BY t.born LIMIT 20";
}

pub fn states(tx: &mut dyn Tx) -> Result<Vec<(StateName, i64)>> {
    let rows = tx.rows(&STATES {})?;
    rows.into_iter()
        .map(|mut row| {
            let text = row.text()?;
            let state = StateName::parse(&text)
                .ok_or_else(|| StoreError::Corrupt(format!("unknown state `{text}`")))?;
            Ok((state, row.int()?))
        })
        .collect()
}

/// How many open tasks there are of each type; those without a type are one group.
pub fn open_types(tx: &mut dyn Tx) -> Result<Vec<(Option<TaskType>, i64)>> {
    let rows = tx.rows(&OPEN_TYPES {})?;
    rows.into_iter().map(|mut row| Ok((row.opt_parsed()?, row.int()?))).collect()
}

/// Tasks whose place in the queue does not fit their dependencies.
pub fn misqueued(tx: &mut dyn Tx) -> Result<Vec<String>> {
    tx.rows(&MISQUEUED {})?.into_iter().map(|mut row| row.text()).collect()
}

/// Sessions that run although their assignment has ended.
pub fn orphan_sessions(tx: &mut dyn Tx) -> Result<Vec<(String, i64)>> {
    tx.rows(&OPEN_SESSIONS {})?.into_iter().map(|mut row| Ok((row.text()?, row.int()?))).collect()
}

/// Workstations with more than one live assignment, and the tasks.
pub fn shared_workstations(tx: &mut dyn Tx) -> Result<Vec<(String, String)>> {
    tx.rows(&SHARED_WORKSTATIONS {})?.into_iter().map(|mut row| Ok((row.text()?, row.text()?))).collect()
}

/// Tasks whose lease is not their live assignment's.
pub fn split_leases(tx: &mut dyn Tx) -> Result<Vec<String>> {
    tx.rows(&SPLIT_LEASES {})?.into_iter().map(|mut row| row.text()).collect()
}
