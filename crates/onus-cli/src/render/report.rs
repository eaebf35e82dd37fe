//! Reports for people: short tables under headings.

use super::table::Table;
use super::{BOLD, DIM, GREEN, RED, YELLOW, paint, when};
use onus_app::limits::{LimitView, LimitsView};
use onus_app::report::{
    AnomaliesView, AuditView, CompletedView, GrantView, IncidentView, MomentView, NowView, SprintView,
};
use onus_core::limits::LimitScope;
use onus_core::report::plain_words::{plainly, rule, words as plain};
use onus_core::report::{Compliance, DayFlow, Group};
use onus_core::text::counted;
use std::fmt::Write as _;

fn heading(text: &mut String, title: &str) {
    let _ = writeln!(text, "\n{}", paint(BOLD, title));
}

pub(crate) fn now(view: &NowView) -> String {
    let mut text = format!("since {}\n", paint(BOLD, when(view.since)));
    let counts: Vec<String> = view.counts.iter().map(|(state, n)| format!("{n} {}", plain(state))).collect();
    let _ = writeln!(text, "{}", paint(DIM, counts.join(" · ")));
    heading(&mut text, "needs a person");
    if view.wants.is_empty() {
        text.push_str("nothing\n");
    }
    for want in &view.wants {
        let whom = want.whom.as_ref().map(|whom| format!(" ({whom})")).unwrap_or_default();
        let kind = plain(want.kind.name());
        let _ =
            writeln!(text, "  {} {}{whom}: {}", paint(YELLOW, kind), paint(BOLD, &want.about), want.detail);
        let _ = writeln!(text, "    {}", paint(DIM, &want.command));
    }
    and_more(&mut text, view.more_wants);
    heading(&mut text, "stuck");
    if view.stuck.is_empty() {
        text.push_str("nothing\n");
    }
    for stuck in &view.stuck {
        let kind = plain(stuck.kind.name());
        let _ = writeln!(text, "  {} {} {}", paint(BOLD, &stuck.task), paint(RED, kind), stuck.title);
        let _ = writeln!(text, "    {}; {}", stuck.detail, paint(DIM, &stuck.hint));
    }
    and_more(&mut text, view.more_stuck);
    heading(&mut text, "completed");
    if view.completed.is_empty() {
        text.push_str("nothing\n");
    } else {
        text.push_str(&completed(&view.completed));
    }
    if view.more_completed {
        let _ = writeln!(text, "{}", paint(DIM, "and earlier ones: onus list --state complete"));
    }
    heading(&mut text, "the last days");
    text.push_str(&flow(&view.flow));
    let _ = writeln!(text, "{} lost since {}", counted(view.leases_lost, "lease"), when(view.since));
    text
}

fn and_more(text: &mut String, more: usize) {
    if more > 0 {
        let _ = writeln!(text, "  {}", paint(DIM, format!("and {more} more")));
    }
}

fn completed(list: &[CompletedView]) -> String {
    let mut table = Table::new(["TASK", "BY", "AT", "CHECKS", "TITLE"]);
    for one in list {
        let stated = if one.stated > 0 { format!(", {} stated", one.stated) } else { String::new() };
        let shown = format!("{}/{}{stated}", one.passed, one.checks);
        let shown = match (one.forced, one.checks) {
            (true, _) => paint(RED, format!("{shown} FORCED")),
            (false, 0) => paint(YELLOW, "none"),
            (false, _) => paint(GREEN, shown),
        };
        table.row([paint(BOLD, &one.task), one.by.to_string(), when(one.at), shown, one.title.clone()]);
    }
    table.to_string()
}

fn flow(days: &[DayFlow]) -> String {
    let mut table = Table::new(["DAY", "ADDED", "COMPLETED", "DROPPED", "REOPENED", "LOST", "DONE", "OF"]);
    let is_quiet = |day: &&DayFlow| day.added + day.completed + day.dropped + day.reopened + day.scope == 0;
    for day in days.iter().skip_while(is_quiet) {
        let number = |n: i64| if n == 0 { "·".to_owned() } else { n.to_string() };
        table.row([
            day.day.to_string(),
            number(day.added),
            number(day.completed),
            number(day.dropped),
            number(day.reopened),
            number(day.leases_lost),
            day.done.to_string(),
            day.scope.to_string(),
        ]);
    }
    table.to_string()
}

pub(crate) fn sprint(view: &SprintView) -> String {
    let name = view.sprint.as_deref().unwrap_or("all sprints");
    let mut text = format!("{}: {} tasks\n", paint(BOLD, name), view.tasks);
    let states: Vec<String> = view.states.iter().map(|(state, n)| format!("{n} {}", plain(state))).collect();
    let _ = writeln!(text, "{}", states.join(" · "));
    let total = &view.total;
    let _ = writeln!(
        text,
        "{}, {} lost, {} by force, {} outside the policy; {} completed in the last seven days",
        counted(total.grants, "grant"),
        counted(total.leases_lost, "lease"),
        total.forced,
        total.outside_policy,
        view.completed_last_week
    );
    for (title, groups) in [
        ("workers", &view.workers),
        ("workstations", &view.workstations),
        ("types", &view.types),
        ("sprints", &view.sprints),
    ] {
        heading(&mut text, title);
        text.push_str(&grouped(groups));
    }
    heading(&mut text, "by day");
    text.push_str(&flow(&view.flow));
    text
}

fn grouped(groups: &[Group]) -> String {
    let mut table = Table::new(["NAME", "TASKS", "COMPLETED", "LIVE", "GRANTS", "LOST", "FORCED", "OUTSIDE"]);
    for group in groups {
        table.row([
            paint(BOLD, group.name.as_deref().unwrap_or("(none)")),
            group.tasks.to_string(),
            group.completed.to_string(),
            group.live.to_string(),
            group.grants.to_string(),
            group.leases_lost.to_string(),
            group.forced.to_string(),
            group.outside_policy.to_string(),
        ]);
    }
    table.to_string()
}

fn compliance(found: Compliance) -> String {
    match found {
        Compliance::Within => paint(GREEN, "within policy"),
        Compliance::Outside => paint(RED, "OUTSIDE the policy"),
        Compliance::NoPolicy => paint(YELLOW, "no policy was in force"),
    }
}

pub(crate) fn incident(view: &IncidentView) -> String {
    let mut text = format!("{} {} ({})\n", paint(BOLD, &view.task), view.title, plain(view.state.name()));
    let forced = if view.forced { paint(RED, ", FORCED") } else { String::new() };
    let _ = writeln!(text, "{}{forced}", compliance(view.compliance));
    heading(&mut text, "who and where");
    if view.grants.is_empty() {
        text.push_str("nobody had it\n");
    }
    view.grants.iter().for_each(|grant| text.push_str(&grant_lines(grant)));
    for (title, moments) in [("refusals", &view.refusals), ("late acts", &view.late_acts)] {
        if !moments.is_empty() {
            heading(&mut text, title);
            text.push_str(&moments_table(moments));
        }
    }
    heading(&mut text, "time line");
    text.push_str(&moments_table(&view.timeline));
    if view.renewals > 0 {
        let _ = writeln!(text, "{}", paint(DIM, format!("and {} renewals", view.renewals)));
    }
    text
}

fn grant_lines(grant: &GrantView) -> String {
    let tier = grant.tier.as_ref().map(|tier| format!(" ({tier})")).unwrap_or_default();
    let end = match (grant.ended_at, &grant.end_reason) {
        (Some(at), Some(reason)) => format!("{} ({})", when(at), plain(reason)),
        _ => "now".to_owned(),
    };
    let who = paint(BOLD, &grant.assignee);
    let mut text = format!("  {who}{tier} in {} from {} to {end}", grant.workstation, when(grant.at));
    text.extend(grant.by.as_ref().map(|by| format!(", given by {by}")));
    let _ = writeln!(text, "\n    {}", compliance(grant.compliance));
    if let Some(by) = &grant.rule {
        let by =
            rule(by).map_or_else(|| plainly("claimed", by), |(kind, whom)| format!("{kind} goes to {whom}"));
        let map = grant.map_commit.as_deref().or(grant.map_hash.as_deref()).unwrap_or_default();
        let map: String = map.chars().take(12).collect();
        let _ = writeln!(text, "    {by}, by the map of {map}");
    }
    if grant.named_today == Some(false) {
        let _ = writeln!(text, "    {}", paint(YELLOW, "the map in force today would not send it there"));
    }
    text
}

fn moments_table(moments: &[MomentView]) -> String {
    let mut table = Table::new(["SEQ", "AT", "ACTOR", "VERB", ""]);
    for moment in moments {
        table.row([
            moment.seq.to_string(),
            when(moment.at),
            moment.actor.to_string(),
            paint(BOLD, plain(&moment.verb)),
            super::said(&moment.verb, &moment.said),
        ]);
    }
    table.to_string()
}

pub(crate) fn audit(view: &AuditView) -> String {
    let mut text = format!("{} to {}\n", paint(BOLD, when(view.since)), when(view.until));
    let counts = view.counts.iter().filter(|(_, n)| **n > 0);
    let counts: Vec<String> = counts.map(|(kind, n)| counted(*n, &plain(kind))).collect();
    let _ = writeln!(text, "{}", if counts.is_empty() { "nothing".to_owned() } else { counts.join(" · ") });
    let mut table = Table::new(["SEQ", "AT", "KIND", "ACTOR", "TASK", "WORKSTATION", ""]);
    for line in &view.lines {
        let kind = plain(line.kind.name());
        table.row([
            line.seq.to_string(),
            when(line.at),
            if line.forced { paint(RED, kind) } else { kind },
            line.actor.to_string(),
            line.task.as_ref().map(ToString::to_string).unwrap_or_default(),
            line.workstation.as_ref().map(ToString::to_string).unwrap_or_default(),
            super::said(&line.verb, &line.detail),
        ]);
    }
    text.push_str(&table.to_string());
    if view.more {
        let _ = writeln!(text, "{}", paint(YELLOW, "there is more: ask for a shorter stretch of time"));
    }
    text
}

pub(crate) fn anomalies(view: &AnomaliesView) -> String {
    if view.anomalies.is_empty() {
        return format!("nothing unusual in {} entries since {}\n", view.examined, when(view.since));
    }
    let mut table = Table::new(["KIND", "TASK", "WORKER", "ENTRY", ""]);
    for one in &view.anomalies {
        table.row([
            paint(YELLOW, plain(one.kind.name())),
            one.task.as_ref().map(ToString::to_string).unwrap_or_default(),
            one.worker.as_ref().map(ToString::to_string).unwrap_or_default(),
            one.seq.map(|seq| seq.to_string()).unwrap_or_default(),
            one.detail.clone(),
        ]);
    }
    table.to_string()
}

/// Whose a limit is.
pub(crate) fn limit_of(limit: &LimitView) -> String {
    match limit.scope {
        LimitScope::Task => limit.of.clone(),
        LimitScope::WorkerDay => format!("{} today", limit.of),
        LimitScope::Sprint => format!("sprint {}", limit.of),
        LimitScope::WorkspaceDay => "all agents today".to_owned(),
    }
}

pub(crate) fn limits(view: &LimitsView) -> String {
    if view.limits.is_empty() {
        return "no limits of days, sprints or everybody are set (limits in onus.yaml); a task shows its own: onus show TASK\n".to_owned();
    }
    let mut table = Table::new(["WHOSE", "MEASURE", "USED"]);
    for limit in &view.limits {
        let used = if limit.reached { paint(RED, &limit.text) } else { limit.text.clone() };
        table.row([limit_of(limit), limit.measure.name().to_owned(), used]);
    }
    table.to_string()
}
