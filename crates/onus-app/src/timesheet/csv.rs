//! Comma-separated values: one line per row, a header, nothing else.

use super::{RowView, TimesheetView};
use onus_core::id::Handle;

/// The columns of one export: those that it is grouped by, then the sums.
pub(super) const SUMS: [&str; 7] =
    ["sessions", "seconds", "billable_seconds", "hours", "tokens", "cost", "corrected"];

pub fn write(view: &TimesheetView) -> Result<Vec<u8>, String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let header = view.by.iter().map(String::as_str).chain(SUMS);
    writer.write_record(header).map_err(|error| error.to_string())?;
    for row in &view.rows {
        let keys = view.by.iter().map(|dimension| harmless(key(row, dimension)));
        writer.write_record(keys.chain(sums(row))).map_err(|error| error.to_string())?;
    }
    writer.into_inner().map_err(|error| error.to_string())
}

/// What a row says about a dimension.
pub fn key(row: &RowView, dimension: &str) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let word = |value: Option<String>| value.unwrap_or_default();
    match dimension {
        "worker" => word(row.worker.as_ref().map(ToString::to_string)),
        "task" => word(row.task.as_ref().map(ToString::to_string)),
        "project" => word(row.project.as_ref().map(ToString::to_string)),
        "day" => word(row.day.as_ref().map(ToString::to_string)),
        "sprint" => text(&row.sprint),
        "type" => text(&row.task_type),
        "week" => text(&row.week),
        _ => String::new(),
    }
}

fn sums(row: &RowView) -> [String; 7] {
    [
        row.sessions.to_string(),
        row.seconds.to_string(),
        row.billable_seconds.to_string(),
        format!("{:.4}", row.seconds as f64 / 3_600.0),
        row.tokens.to_string(),
        row.cost.map(|cost| format!("{cost:.6}")).unwrap_or_default(),
        row.corrected.to_string(),
    ]
}

/// A sprint's name comes from anybody: a spreadsheet must not take it for a formula. A handle is none, though it begins like
/// one.
pub(crate) fn harmless(text: String) -> String {
    let is_call = text.starts_with('@') && text.parse::<Handle>().is_err();
    if is_call || text.starts_with(['=', '+', '-', '\t', '\r']) { format!("'{text}") } else { text }
}
