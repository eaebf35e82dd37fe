//! What a dispatcher did.

use super::table::Table;
use super::{BOLD, DIM, GREEN, RED, YELLOW, paint};
use onus_app::dispatch::{DispatchView, PlacedView, ProbedView, UnplacedView};
use onus_core::workstation::WorkstationState;
use std::fmt::Write as _;

pub(crate) fn dispatch(view: &DispatchView) -> String {
    let mut text = String::new();
    for probed in &view.workstations {
        if probed.before != probed.state || !probed.failed.is_empty() {
            text.push_str(&probed_line(probed));
        }
    }
    if !view.placed.is_empty() {
        let mut table = Table::new(["ID", "TO", "IN", "LANE", "TITLE"]);
        for placed in &view.placed {
            table.row([
                paint(BOLD, &placed.task),
                placed.assignee.to_string(),
                placed.workstation.to_string(),
                placed.lane.map(|lane| lane.to_string()).unwrap_or_default(),
                placed.title.clone(),
            ]);
        }
        text.push_str(&table.to_string());
    }
    for unplaced in &view.unplaced {
        text.push_str(&unplaced_lines(unplaced));
    }
    let word = if view.dry_run { "would be placed" } else { "placed" };
    let more = if view.more { ", more are ready" } else { "" };
    let counts = format!("{} {word}, {} not{more}", view.placed.len(), view.unplaced.len());
    let _ = writeln!(text, "{}", paint(DIM, counts));
    text
}

/// One line for each change.
pub(crate) fn change_line(view: &DispatchView) -> String {
    let mut text = String::new();
    for probed in &view.workstations {
        text.push_str(&probed_line(probed));
    }
    for placed in &view.placed {
        text.push_str(&placed_line(placed));
    }
    for unplaced in &view.unplaced {
        let reasons: Vec<String> =
            unplaced.findings.iter().map(|finding| format!("{}: {}", finding.code, finding.detail)).collect();
        let _ = writeln!(text, "{} {}: {}", paint(YELLOW, "waits"), unplaced.task, reasons.join("; "));
    }
    text
}

fn placed_line(placed: &PlacedView) -> String {
    let PlacedView { task, assignee, workstation, title, .. } = placed;
    format!("{} {task} to {assignee} in {workstation}: {title}\n", paint(GREEN, "placed"))
}

fn probed_line(probed: &ProbedView) -> String {
    let ProbedView { name, state, failed, .. } = probed;
    if *state == WorkstationState::Ready {
        return format!("{} {name}\n", paint(GREEN, "ready"));
    }
    let reasons: Vec<String> =
        failed.iter().map(|result| format!("`{}`: {}", result.probe, result.detail)).collect();
    format!("{} {name}: {}\n", paint(RED, "not ready"), reasons.join("; "))
}

fn unplaced_lines(unplaced: &UnplacedView) -> String {
    let mut text = format!("{} {} {}\n", paint(YELLOW, "waits"), paint(BOLD, &unplaced.task), unplaced.title);
    for finding in &unplaced.findings {
        let _ = writeln!(text, "  - {}: {}", finding.code, finding.detail);
        if let Some(hint) = &finding.hint {
            let _ = writeln!(text, "    {}", paint(DIM, hint));
        }
    }
    text
}
