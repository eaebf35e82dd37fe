//! The story of one task, in the order in which a reader asks: what, who, why not, what happened.

use super::{BOLD, DIM, YELLOW, paint, when};
use onus_app::view::{EntryView, LandedView, StoryView};
use onus_core::handoff::Handoff;
use onus_core::report::plain_words::words as plain;
use onus_core::task::{CheckState, Criterion};
use onus_core::time::Millis;
use std::fmt::Write as _;

/// How much of a story is told: programs' names, such as epochs and references, are for whoever asks for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Telling {
    Plain,
    InFull,
}

pub(crate) fn story(view: &StoryView, telling: Telling) -> String {
    let task = &view.task;
    let mut text = format!("{}  {}\n", paint(BOLD, &task.id), paint(BOLD, &task.title));
    let mut facts = vec![super::state_words(task.state), task.priority.to_string(), task.kind.clone()];
    facts.extend(task.task_type.as_ref().map(|t| format!("type {t}")));
    facts.extend(task.role.as_ref().map(|role| match task.lane {
        Some(lane) => format!("role {role}:{lane}"),
        None => format!("role {role}"),
    }));
    facts.extend(task.sprint.as_ref().map(|sprint| format!("sprint {sprint}")));
    facts.extend(task.decision.as_ref().map(|word| format!("request {word}")));
    if task.forced {
        facts.push("FORCED".into());
    }
    if task.archived {
        facts.push("archived".into());
    }
    let _ = writeln!(text, "{}", facts.join(" · "));
    let _ = writeln!(text, "asked by {} at {}", task.created_by, when(task.created_at));
    handed_on(&mut text, view, telling);
    line(&mut text, "origin", task.origin_ask_ref.as_ref().map(ToString::to_string));
    line(&mut text, "parent", task.parent.as_ref().map(ToString::to_string));
    line(&mut text, "scope", words(&task.scope));
    let only = task.assignment.as_ref().map(|held| held.constraints.join(" · "));
    line(&mut text, "only", only.filter(|only| !only.is_empty()));
    line(&mut text, "tags", words(&task.tags));
    line(&mut text, "waits for", task.blocked_on.as_deref().map(|on| super::blocker(on).to_owned()));
    let waits: Vec<String> = view
        .dependencies
        .iter()
        .map(|d| format!("{} ({})", d.task, d.state.map_or("missing".into(), super::state_words)))
        .collect();
    line(&mut text, "depends on", words(&waits));
    for exception in &task.exceptions {
        line(&mut text, "exception", Some(super::exception_line(exception)));
    }
    let waiting: Vec<String> = view.dependents.iter().map(ToString::to_string).collect();
    line(&mut text, "needed by", words(&waiting));
    for check in &task.checks {
        let state = match check.state {
            CheckState::Approved => "approved",
            CheckState::Proposed => "proposed: a person approves it first",
        };
        let _ = writeln!(text, "check: {} ({state})", check.command);
    }
    for (place, criterion) in task.criteria.iter().enumerate() {
        let _ = writeln!(text, "{}", criterion_line(place, criterion));
    }
    for limit in &view.limits {
        let of = if limit.of == task.id.to_string() {
            String::new()
        } else {
            format!(" ({})", super::limit_of(limit))
        };
        let used = if limit.reached { paint(YELLOW, &limit.text) } else { limit.text.clone() };
        line(&mut text, "used", Some(format!("{used}{of}")));
    }
    line(&mut text, "landed", view.landed.as_ref().map(landed));
    line(
        &mut text,
        "root cause",
        view.root_cause.as_ref().map(|cause| format!("{} ({})", cause.statement, cause.owner)),
    );
    if let Some(body) = &task.body {
        let _ = writeln!(text, "\n{body}");
    }
    extra(&mut text, view);
    reviews(&mut text, view);
    assignments(&mut text, view, telling);
    sessions(&mut text, view);
    notes(&mut text, view);
    heading(&mut text, "what happened");
    for entry in &view.ledger {
        let _ = writeln!(text, "  {}", entry_line(entry));
    }
    if let Some(before) = view.earlier {
        let _ = writeln!(text, "\nearlier: onus show {} --before {before}", task.id);
    }
    text
}

/// The last handoff, where somebody else is to go on with the work.
fn handed_on(text: &mut String, view: &StoryView, telling: Telling) {
    let Some(view) = &view.handoff else { return };
    let Some(handoff) = view.handoff.as_ref().filter(|_| telling == Telling::Plain) else {
        let _ = writeln!(text, "\n{}", super::handoff(view));
        return;
    };
    heading(text, "last handoff");
    let _ = writeln!(text, "  {} {} ({})", handoff.by, handoff.stands(), when(handoff.at));
    for line in said(handoff).lines() {
        let _ = writeln!(text, "  {line}");
    }
    let _ = writeln!(
        text,
        "{}\n",
        paint(DIM, format!("  the whole of it: onus handoff {} --show", handoff.task))
    );
}

/// What whoever had it said to whoever goes on, one thing on each line.
fn said(handoff: &Handoff) -> String {
    let named = |(what, text): (&str, String)| match what {
        "" => text,
        what => format!("{}: {text}", what.to_lowercase()),
    };
    handoff.said().into_iter().map(named).collect::<Vec<_>>().join("\n")
}

fn line(text: &mut String, name: &str, value: Option<String>) {
    if let Some(value) = value {
        let _ = writeln!(text, "{name}: {value}");
    }
}

/// `criterion 2: [x] the limit is told (@rev, 2026-11-16 12:00)`
fn criterion_line(place: usize, criterion: &Criterion) -> String {
    let number = place + 1;
    let words = criterion.text.replace('\n', " ");
    match &criterion.ticked {
        None => format!("criterion {number}: [ ] {words}"),
        Some(tick) => format!("criterion {number}: [x] {words} ({}, {})", tick.by, when(tick.at)),
    }
}

/// What another system says.
fn extra(text: &mut String, view: &StoryView) {
    let fields = view.task.extra_words();
    if fields.is_empty() {
        return;
    }
    heading(text, "from elsewhere");
    for (name, words) in fields {
        let _ = writeln!(text, "  {name}: {}", words.replace('\n', "\n    "));
    }
}

fn words(list: &[String]) -> Option<String> {
    (!list.is_empty()).then(|| list.join(" "))
}

fn heading(text: &mut String, name: &str) {
    let _ = writeln!(text, "\n{}", paint(BOLD, name));
}

/// `origin/main: 3f2a9c1d0b7e 91c…`
fn landed(landed: &LandedView) -> String {
    let place = [landed.remote.as_deref(), landed.branch.as_deref()].into_iter().flatten();
    let place = place.collect::<Vec<_>>().join("/");
    let commits: Vec<String> = landed.commits.iter().map(|commit| commit.as_str()[..12].to_owned()).collect();
    let place = if place.is_empty() { "the main branch" } else { &place };
    format!("{} in {place}", commits.join(" "))
}

fn reviews(text: &mut String, view: &StoryView) {
    if view.reviews.is_empty() {
        return;
    }
    heading(text, "reviews");
    for review in &view.reviews {
        let of =
            review.commit.as_ref().map_or(String::new(), |commit| format!(" of {}", &commit.as_str()[..12]));
        let (verdict, as_what) = (review.verdict.name(), review.classification.name());
        let _ = writeln!(text, "  {} {verdict}{of} as {as_what} at {}", review.by, when(review.at));
        for line in review.note.iter().flat_map(|note| note.lines()) {
            let _ = writeln!(text, "    {line}");
        }
    }
}

fn assignments(text: &mut String, view: &StoryView, telling: Telling) {
    if view.assignments.is_empty() {
        return;
    }
    heading(text, "who had it");
    for held in &view.assignments {
        let epoch = match telling {
            Telling::InFull => format!("epoch {}: ", held.epoch),
            Telling::Plain => String::new(),
        };
        let _ = write!(text, "  {epoch}{} in {}", held.assignee, held.workstation);
        let _ = write!(text, ", from {}", when(held.assigned_at));
        match (&held.ended_at, &held.end_reason) {
            (Some(at), Some(reason)) => {
                let _ = write!(text, " to {} ({})", when(*at), plain(reason));
            }
            _ => {
                let _ = write!(text, ", {}", super::lease_end(held.lease_expires_at));
                if let Some(death) = view.dead {
                    let _ = write!(text, ", {death}: free to take over");
                }
            }
        }
        if let Some(reason) = &held.handoff_reason {
            let _ = write!(text, ", taken over: {reason}");
        }
        if held.forced {
            text.push_str(", FORCED");
        }
        text.push('\n');
    }
}

fn sessions(text: &mut String, view: &StoryView) {
    if view.sessions.is_empty() {
        return;
    }
    heading(text, "sessions");
    for session in &view.sessions {
        let end = plain(session.end_reason.as_deref().unwrap_or("running"));
        let _ = writeln!(
            text,
            "  {} in {}: {} from {} ({end})",
            session.worker,
            session.workstation,
            seconds(session.seconds),
            when(session.started_at)
        );
    }
}

/// Time worked, to the second.
fn seconds(seconds: i64) -> String {
    if seconds == 0 { "0s".into() } else { Millis(seconds * 1_000).to_string() }
}

fn notes(text: &mut String, view: &StoryView) {
    let mut is_first = true;
    for note in &view.notes {
        // The last handoff is told above in full; the earlier ones by their words, if they have any.
        let handoff = Handoff::parse(&note.text).ok();
        let said_of_it = handoff.as_ref().map(said);
        // The resolution is the last handoff's summary, too.
        let is_told =
            |said: &str| view.notes.iter().any(|one| one.kind != "handoff" && one.text.trim() == said);
        if said_of_it.as_deref().is_some_and(|said| said.is_empty() || is_told(said)) {
            continue;
        }
        if std::mem::take(&mut is_first) {
            heading(text, "notes");
        }
        let place = note.place.as_ref().map(|place| format!(" on {place}")).unwrap_or_default();
        let _ = writeln!(text, "  {}{place} {} at {}", paint(DIM, plain(&note.kind)), note.by, when(note.at));
        if let Some(said) = &note.said {
            let at = said.at.map(|at| format!(" at {}", when(at))).unwrap_or_default();
            let _ = writeln!(text, "    said by {}{at}:", said.by);
        }
        for line in said_of_it.as_deref().unwrap_or(&note.text).lines() {
            let _ = writeln!(text, "    {line}");
        }
    }
}

fn entry_line(entry: &EntryView) -> String {
    let place = entry.workstation.as_deref().map(|name| format!(" in {name}")).unwrap_or_default();
    format!("{} {}{place} {}", when(entry.at), entry.actor, super::what(entry))
}
