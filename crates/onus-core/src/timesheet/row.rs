//! One line of a timesheet.

use crate::id::{Handle, ProjectKey, TaskId};
use crate::session::Counts;
use crate::time::Date;

/// A sum; what it was not grouped by is not there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    pub worker: Option<Handle>,
    pub task: Option<TaskId>,
    pub project: Option<ProjectKey>,
    pub sprint: Option<String>,
    pub task_type: Option<String>,
    pub day: Option<Date>,
    /// An ISO week: `2026-W46`.
    pub week: Option<String>,
    /// Sessions that have a part in it.
    pub sessions: i64,
    /// How many of them a person corrected.
    pub corrected: i64,
    pub seconds: i64,
    pub billable_seconds: i64,
    pub counts: Counts,
}
