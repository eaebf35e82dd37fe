//! Time and cost for people: tables with bars.

use super::table::Table;
use super::{BOLD, DIM, GREEN, RED, YELLOW, paint, when};
use onus_app::session::{ActView, DayView, SessionView, SessionsView, ShownView};
use onus_app::timesheet::{ApprovalView, ApprovedView, TimesheetView, csv};
use onus_app::usage::UsageView;
use onus_core::handoff::Handoff;
use onus_core::id::CommitId;
use onus_core::text::counted;
use onus_core::time::Timestamp;
use onus_core::timesheet::Difference;
use onus_host::zone;
use std::fmt::Write as _;

/// The longest bar, in characters.
const BAR: i64 = 24;

/// Hours, minutes and seconds: sums are exact, and can be checked by hand.
fn clock(seconds: i64) -> String {
    format!("{}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// A part of the longest one, to an eighth of a character.
fn bar(part: i64, longest: i64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if part <= 0 || longest <= 0 {
        return String::new();
    }
    let eighths = (i128::from(part) * i128::from(BAR * 8) / i128::from(longest)).max(1) as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

fn money(cost: Option<f64>, currency: &str) -> String {
    // Small amounts are what a session costs.
    let shown = |cost: f64| if cost < 1.0 { format!("{cost:.4}") } else { format!("{cost:.2}") };
    cost.map(|cost| format!("{} {currency}", shown(cost))).unwrap_or_default()
}

fn tokens(count: i64) -> String {
    match count {
        0 => String::new(),
        1..10_000 => count.to_string(),
        10_000..10_000_000 => format!("{}k", count / 1_000),
        _ => format!("{}M", count / 1_000_000),
    }
}

pub(crate) fn timesheet(view: &TimesheetView) -> String {
    let mut text = format!("{} to {}\n", paint(BOLD, view.from), view.to);
    if view.rows.is_empty() {
        text.push_str("no time\n");
    } else {
        text.push_str(&rows(view));
    }
    let mut sums = vec![format!("total {}", clock(view.total_seconds))];
    sums.push(format!("billable {}", clock(view.total_billable_seconds)));
    if view.total_tokens > 0 {
        sums.push(format!("{} tokens", tokens(view.total_tokens)));
    }
    sums.extend(view.total_cost.map(|cost| money(Some(cost), &view.currency)));
    let _ = writeln!(text, "{}", paint(BOLD, sums.join(" · ")));
    if view.running > 0 {
        let line =
            format!("{} still open, counted up to the last sign of life", counted(view.running, "session"));
        let _ = writeln!(text, "{}", paint(DIM, line));
    }
    view.approvals.iter().for_each(|approval| text.push_str(&approval_lines(approval)));
    text
}

fn rows(view: &TimesheetView) -> String {
    let longest = view.rows.iter().map(|row| row.seconds).max().unwrap_or(0);
    let mut titles: Vec<String> = view.by.iter().map(|dimension| dimension.to_uppercase()).collect();
    titles.extend(["SESSIONS", "TIME", "BILLABLE", "TOKENS", "COST", ""].map(str::to_owned));
    let mut table = Table::titled(titles);
    for row in &view.rows {
        let mut cells: Vec<String> = view.by.iter().map(|dimension| csv::key(row, dimension)).collect();
        if let Some(first) = cells.first_mut() {
            *first = paint(BOLD, &first);
        }
        cells.extend([
            match row.corrected {
                0 => row.sessions.to_string(),
                corrected => format!("{} ({corrected} corrected)", row.sessions),
            },
            clock(row.seconds),
            clock(row.billable_seconds),
            tokens(row.tokens),
            money(row.cost, &view.currency),
            bar(row.seconds, longest),
        ]);
        table.cells(cells);
    }
    table.to_string()
}

fn approval_lines(approval: &ApprovalView) -> String {
    let mut text = format!(
        "{} to {} was approved by {} at {}",
        approval.from,
        approval.to,
        approval.by,
        when(approval.at)
    );
    if !approval.intact {
        let _ = write!(text, "; {}", paint(RED, "the record is not what was approved: onus ledger verify"));
    } else if approval.differences.is_empty() {
        let _ = write!(text, "; {}", paint(GREEN, "nothing has changed since"));
    } else {
        let _ = write!(text, "; {}", paint(YELLOW, "changed since"));
    }
    text.push('\n');
    text.push_str(&differences(&approval.differences));
    text
}

fn differences(list: &[Difference]) -> String {
    let mut text = String::new();
    for one in list {
        let task = one.task.as_ref().map(ToString::to_string).unwrap_or_default();
        let day = one.day.map(|day| day.to_string()).unwrap_or_default();
        let (was, is) = (clock(one.approved_seconds), clock(one.seconds));
        let _ = write!(text, "  {task} on {day}: {was} -> {is}");
        if one.approved_tokens != one.tokens {
            let _ = write!(text, ", {} -> {} tokens", one.approved_tokens, one.tokens);
        }
        text.push('\n');
    }
    text
}

pub(crate) fn approved(view: &ApprovedView) -> String {
    let word = if view.outcome == "existing" { "was approved already" } else { "approved" };
    let print: String = view.fingerprint.chars().take(12).collect();
    let line = format!("{} to {} {word}: {}", view.from, view.to, clock(view.total_seconds));
    let mut text = format!("{} {line} {}\n", paint(BOLD, &view.worker), paint(DIM, print));
    if !view.differences.is_empty() {
        text.push_str("since the approval before:\n");
        text.push_str(&differences(&view.differences));
    }
    text
}

pub(crate) fn sessions(view: &SessionsView) -> String {
    if view.sessions.is_empty() {
        return "no sessions\n".into();
    }
    let mut table = Table::new(["SESSION", "TASK", "WORKER", "WORKSTATION", "FROM", "TIME", "TOKENS", "END"]);
    for session in &view.sessions {
        table.row([
            paint(BOLD, session.id),
            session.task.to_string(),
            session.worker.to_string(),
            session.workstation.clone(),
            when(session.started_at),
            clock(session.seconds),
            tokens(session.tokens),
            ending(session),
        ]);
    }
    table.to_string()
}

fn ending(session: &SessionView) -> String {
    let end = session.end_reason.as_deref().unwrap_or("running").replace('_', " ");
    let end = match &session.correction {
        Some(_) => format!("{end}, corrected"),
        None => end,
    };
    match &session.proposal {
        Some(said) => {
            format!("{end}; {} to {} waits for another person", when(said.started_at), when(said.ended_at))
        }
        None => end,
    }
}

pub(crate) fn usage(view: &UsageView) -> String {
    let mut text = String::new();
    for one in &view.recorded {
        let model = one.model.as_deref().unwrap_or("tokens");
        let known = if one.outcome == "existing" { " (on record already)" } else { "" };
        let _ = writeln!(text, "{} session {}: {} {model}{known}", view.task, one.session, one.tokens);
    }
    if view.recorded.is_empty() {
        text.push_str("nothing of this record lies in your sessions on this task\n");
    } else if view.outside > 0 {
        let line = format!("{} samples lie outside your sessions on {}", view.outside, view.task);
        let _ = writeln!(text, "{}", paint(DIM, line));
    }
    text
}

/// One view of a day: when, what, what came of it, and what it cost.
pub(crate) fn day(view: &DayView) -> String {
    let mut text = format!("{}  {} ({})\n", paint(BOLD, &view.worker), paint(BOLD, view.day), view.tz);
    if view.sessions.is_empty() {
        text.push_str("no sessions\n");
        return text;
    }
    let time = |at: Timestamp| zone::time_of_day(&view.tz, at).unwrap_or_default();
    let longest = view.sessions.iter().map(|session| session.seconds).max().unwrap_or(0);
    let mut table = Table::new(["FROM", "TO", "TASK", "WORKSTATION", "TIME", "END", ""]);
    for session in &view.sessions {
        table.row([
            time(session.started_at),
            session.ended_at.map_or_else(|| "…".to_owned(), time),
            paint(BOLD, &session.task),
            session.workstation.clone(),
            clock(session.seconds),
            ending(session),
            bar(session.seconds, longest),
        ]);
    }
    text.push_str(&table.to_string());
    for task in &view.tasks {
        let id = task.row.task.as_ref().map(ToString::to_string).unwrap_or_default();
        let mut facts = vec![clock(task.row.seconds)];
        if task.row.tokens > 0 {
            facts.push(format!("{} tokens", tokens(task.row.tokens)));
        }
        facts.extend(task.row.cost.map(|cost| money(Some(cost), &view.currency)));
        let facts = paint(DIM, facts.join(" · "));
        let _ = writeln!(text, "\n{}  {}  {facts}", paint(BOLD, id), task.title);
        task.acts.iter().for_each(|act| text.push_str(&act_lines(act, &time(act.at))));
    }
    if view.left_out > 0 {
        let more = format!("and {} more acts and sessions: onus show TASK", view.left_out);
        let _ = writeln!(text, "{}", paint(DIM, more));
    }
    let mut sums = vec![format!("total {}", clock(view.total_seconds))];
    sums.push(format!("billable {}", clock(view.total_billable_seconds)));
    if view.total_tokens > 0 {
        sums.push(format!("{} tokens", tokens(view.total_tokens)));
    }
    sums.extend(view.total_cost.map(|cost| money(Some(cost), &view.currency)));
    let _ = writeln!(text, "\n{}", paint(BOLD, sums.join(" · ")));
    text
}

/// What was shown, on what: `: passed, make test, at 3f9c2d1e`.
fn shown(evidence: &ShownView) -> String {
    let mut facts: Vec<String> = evidence.verdict.iter().map(|verdict| verdict.replace('_', " ")).collect();
    facts.extend(evidence.classification.map(|found| found.name().to_owned()));
    let check = evidence.check.as_ref().map(ToString::to_string);
    facts.extend(evidence.command.clone().or(check));
    let brief = |commit: &CommitId| format!("at {}", &commit.as_str()[..8]);
    facts.extend(evidence.commit.as_ref().map(brief));
    if evidence.dirty {
        facts.push("uncommitted changes".into());
    }
    if evidence.stated {
        facts.push("stated".into());
    }
    format!(": {}", facts.join(", "))
}

fn act_lines(act: &ActView, time: &str) -> String {
    // A handoff is a document for the next holder: a day tells what its writer said of it.
    let handoff = act.text.as_deref().and_then(|words| Handoff::parse(words).ok());
    let verb = if handoff.is_some() { "handed off".to_owned() } else { act.verb.replace('_', " ") };
    let mut text = format!("  {} {verb}", paint(DIM, time));
    if let Some(by) = &act.by {
        let _ = write!(text, " by {by}");
    }
    if let Some(evidence) = &act.evidence {
        text.push_str(&shown(evidence));
    }
    text.push('\n');
    let words = match &handoff {
        Some(handoff) => handoff.summary.as_ref(),
        None => act.text.as_ref(),
    };
    for line in words.into_iter().flat_map(|words| words.lines()) {
        let _ = writeln!(text, "        {line}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_share() {
        assert_eq!(bar(100, 100), "█".repeat(24));
        assert_eq!(bar(50, 100), "█".repeat(12));
        assert_eq!(bar(1, 1_000_000), "▏");
        assert_eq!(bar(0, 100), "");
        assert_eq!(bar(0, 0), "");
    }

    #[test]
    fn sums_are_shown_to_the_second() {
        assert_eq!(clock(0), "0:00:00");
        assert_eq!(clock(3_725), "1:02:05");
        assert_eq!(clock(360_000), "100:00:00");
    }
}
