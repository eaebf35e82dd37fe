//! The document that scripts rely on.

use super::{ApprovalView, Ask};
use onus_core::id::{Handle, ProjectKey, TaskId};
use onus_core::settings::EffortSettings;
use onus_core::time::Date;
use onus_core::timesheet::Row;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TimesheetView {
    pub from: Date,
    pub to: Date,
    /// By what the rows add up, in their order.
    pub by: Vec<String>,
    pub rows: Vec<RowView>,
    pub total_seconds: i64,
    pub total_billable_seconds: i64,
    pub total_tokens: i64,
    /// In the currency; null where no record says what anything cost.
    pub total_cost: Option<f64>,
    pub currency: String,
    /// Sessions that still run. They count up to their last sign of life.
    pub running: i64,
    /// For one worker: what was approved of these days, and what has changed since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<ApprovalView>,
}

/// A sum; what it was not grouped by is null or absent.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RowView {
    pub worker: Option<Handle>,
    pub task: Option<TaskId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sprint: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub task_type: Option<String>,
    /// In the worker's own zone.
    pub day: Option<Date>,
    /// An ISO week: `2026-W46`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub week: Option<String>,
    /// Sessions that have a part in it.
    pub sessions: i64,
    pub seconds: i64,
    pub billable_seconds: i64,
    /// Of all kinds.
    pub tokens: i64,
    pub input_tokens: i64,
    pub output_tokens: i64,
    pub cache_read_tokens: i64,
    pub cache_creation_tokens: i64,
    /// In the currency; null where no record says what it cost.
    pub cost: Option<f64>,
    /// How many of the sessions a person corrected.
    #[serde(default)]
    pub corrected: i64,
}

impl From<&Row> for RowView {
    fn from(row: &Row) -> RowView {
        RowView {
            worker: row.worker.clone(),
            task: row.task.clone(),
            project: row.project.clone(),
            sprint: row.sprint.clone(),
            task_type: row.task_type.clone(),
            day: row.day,
            week: row.week.clone(),
            sessions: row.sessions,
            seconds: row.seconds,
            billable_seconds: row.billable_seconds,
            tokens: row.counts.tokens(),
            input_tokens: row.counts.input_tokens,
            output_tokens: row.counts.output_tokens,
            cache_read_tokens: row.counts.cache_read_tokens,
            cache_creation_tokens: row.counts.cache_creation_tokens,
            cost: row.counts.cost_micros.map(units),
            corrected: row.corrected,
        }
    }
}

impl TimesheetView {
    pub(super) fn new(ask: &Ask, rows: &[Row], running: i64, effort: &EffortSettings) -> TimesheetView {
        let costs: Vec<i64> = rows.iter().filter_map(|row| row.counts.cost_micros).collect();
        TimesheetView {
            from: ask.from,
            to: ask.to,
            by: ask.by.iter().map(|dimension| dimension.name().to_owned()).collect(),
            rows: rows.iter().map(RowView::from).collect(),
            total_seconds: rows.iter().map(|row| row.seconds).sum(),
            total_billable_seconds: rows.iter().map(|row| row.billable_seconds).sum(),
            total_tokens: rows.iter().map(|row| row.counts.tokens()).sum(),
            total_cost: (!costs.is_empty()).then(|| units(costs.iter().sum())),
            currency: effort.currency.clone(),
            running,
            approvals: Vec::new(),
        }
    }
}

/// Millionths as units of the currency.
pub(crate) fn units(micros: i64) -> f64 {
    micros as f64 / 1_000_000.0
}
