//! Whether work can begin.

use super::table::Table;
use super::{GREEN, RED, YELLOW, paint};
use onus_app::preflight::{PreflightVerdict, PreflightView};

pub(crate) fn preflight(view: &PreflightView) -> String {
    let mut table = Table::new(["", "WHAT", "FOUND", "NEXT"]);
    for check in &view.checks {
        let mark = match check.verdict {
            PreflightVerdict::Ok => paint(GREEN, "ok"),
            PreflightVerdict::Warning => paint(YELLOW, "warning"),
            PreflightVerdict::Failed => paint(RED, "failed"),
        };
        table.row([
            mark,
            check.name.to_owned(),
            check.detail.clone(),
            check.hint.clone().unwrap_or_default(),
        ]);
    }
    table.to_string()
}
