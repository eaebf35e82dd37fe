//! Milestones: what they are about, and what they lack.

use super::table::Table;
use super::{BOLD, DIM, GREEN, YELLOW, paint, state_style, when};
use onus_app::milestone::{MilestoneLine, MilestoneView, MilestonesView};
use std::fmt::Write as _;

pub(crate) fn milestones(view: &MilestonesView) -> String {
    if view.milestones.is_empty() {
        return "no milestones\n".into();
    }
    let mut table = Table::new(["NAME", "STATE", "CLOSED", "TASKS", "TITLE"]);
    for line in &view.milestones {
        table.row([
            paint(BOLD, &line.name),
            line.state.clone(),
            line.closed_at.map(when).unwrap_or_default(),
            about(line),
            line.title.clone().unwrap_or_default(),
        ]);
    }
    table.to_string()
}

/// Which tasks a milestone names, in the words of the command line.
fn about(line: &MilestoneLine) -> String {
    let selection = &line.selection;
    let mut words: Vec<String> = selection.tasks.iter().map(ToString::to_string).collect();
    words.extend(selection.sprint.as_ref().map(|sprint| format!("sprint {sprint}")));
    words.extend(selection.tag.as_ref().map(|tag| format!("tag {tag}")));
    words.extend(selection.parent.as_ref().map(|parent| format!("slices of {parent}")));
    words.join(", ")
}

pub(crate) fn milestone(view: &MilestoneView) -> String {
    let line = &view.line;
    let title = line.title.as_ref().map(|title| format!("  {title}")).unwrap_or_default();
    let mut text = format!("{}{title}\n{}\n", paint(BOLD, &line.name), paint(DIM, about(line)));
    if !view.tasks.is_empty() {
        let mut table = Table::new(["ID", "STATE", "WORKER", "WORKSTATION", "TITLE"]);
        for task in &view.tasks {
            table.row([
                paint(BOLD, &task.id),
                paint(state_style(task.state), task.state),
                task.assignee.as_ref().map(ToString::to_string).unwrap_or_default(),
                task.workstation.as_ref().map(ToString::to_string).unwrap_or_default(),
                task.title.clone(),
            ]);
        }
        let _ = write!(text, "\n{table}\n");
    }
    if let (Some(closed), Some(by), Some(at)) = (&view.closed, &line.closed_by, line.closed_at) {
        let kept = if closed.intact { "" } else { "; the record has changed since: onus ledger verify" };
        let _ = writeln!(
            text,
            "{} by {by}, {}, fingerprint {}{kept}",
            paint(GREEN, "closed"),
            when(at),
            closed.fingerprint
        );
    }
    for finding in &view.missing {
        let _ = writeln!(text, "{}: {}: {}", paint(YELLOW, "missing"), finding.code, finding.detail);
        if let Some(hint) = &finding.hint {
            let _ = writeln!(text, "  {}", paint(DIM, hint));
        }
    }
    if view.missing.is_empty() && view.closed.is_none() {
        let _ = writeln!(text, "nothing is missing: onus milestone close {}", line.name);
    }
    text
}
