//! Milestones: what they are about, and what they lack.

use super::table::Table;
use super::{BOLD, DIM, GREEN, RED, YELLOW, paint, state_words, when};
use onus_app::milestone::{MilestoneLine, MilestoneView, MilestonesView};
use onus_core::milestone::{days_left, due_in_words};
use onus_host::{clock, zone};
use std::fmt::Write as _;

pub(crate) fn milestones(view: &MilestonesView) -> String {
    if view.milestones.is_empty() {
        return "no milestones\n".into();
    }
    let mut table = Table::new(["NAME", "STATE", "TARGET", "CLOSED", "TASKS", "TITLE"]);
    for line in &view.milestones {
        table.row([
            paint(BOLD, &line.name),
            line.state.clone(),
            target(line).unwrap_or_default(),
            line.closed_at.map(when).unwrap_or_default(),
            about(line),
            line.title.clone().unwrap_or_default(),
        ]);
    }
    table.to_string()
}

/// The day that it is meant for; while it is open, how that stands to today.
fn target(line: &MilestoneLine) -> Option<String> {
    let day = line.target?;
    let today = zone::today(clock::now().wall).filter(|_| line.closed_at.is_none());
    Some(match today {
        None => day.to_string(),
        Some(today) => {
            let words = format!("{day}, {}", due_in_words(day, today));
            if days_left(day, today) < 0 { paint(RED, words) } else { words }
        }
    })
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
    if let Some(target) = target(line) {
        let _ = writeln!(text, "target {target}");
    }
    if !view.tasks.is_empty() {
        let mut table = Table::new(["ID", "STATE", "WORKER", "WORKSTATION", "TITLE"]);
        for task in &view.tasks {
            table.row([
                paint(BOLD, &task.id),
                state_words(task.state),
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
        let _ = writeln!(text, "{}: {}", paint(YELLOW, "missing"), finding.detail);
        if let Some(hint) = &finding.hint {
            let _ = writeln!(text, "  {}", paint(DIM, hint));
        }
    }
    if view.missing.is_empty() && view.closed.is_none() {
        let _ = writeln!(text, "nothing is missing: onus milestone close {}", line.name);
    }
    text
}
