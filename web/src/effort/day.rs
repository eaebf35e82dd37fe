//! One day of one worker: sessions on a line of hours, and what came of them.

use super::{clock, count, money};
use crate::chart::{self, Stretch};
use crate::html::Html;
use crate::layout::rendered;
use crate::{Drawn, Page, PageRequest};
use askama::Template;
use onus_app::Onus;
use onus_app::session::{ActView, DayTaskView, DayView, SessionView, ShownView};
use onus_core::handoff::Handoff;
use onus_core::id::Handle;
use onus_core::refusal::Refusal;
use onus_core::time::{Date, Timestamp};
use onus_core::timesheet::neighbours;
use onus_core::worker::Kind;
use onus_host::zone;

pub(crate) fn page() -> Page {
    Page { path: "/effort/day", name: "Day", key: None, ask }
}

#[derive(Debug, Template)]
#[template(path = "day.html")]
struct DayPage {
    worker: String,
    day: String,
    tz: String,
    before: String,
    after: String,
    workers: Vec<(String, bool)>,
    tiles: Vec<(String, &'static str)>,
    line: Html,
    sessions: Vec<Stint>,
    tasks: Vec<DayPart>,
    left_out: i64,
}

#[derive(Debug)]
struct Stint {
    from: String,
    to: String,
    task: String,
    place: String,
    time: String,
    end: String,
    corrected: bool,
}

/// What came of the day on one task.
#[derive(Debug)]
struct DayPart {
    task: String,
    title: String,
    time: String,
    acts: Vec<DayAct>,
}

#[derive(Debug)]
struct DayAct {
    at: String,
    verb: String,
    by: Option<String>,
    shown: String,
    text: String,
}

fn ask(onus: &mut Onus, seen: &PageRequest) -> Result<Drawn, Refusal> {
    let own = seen.viewer.handle().cloned();
    let worker: Handle = match seen.read("worker")?.or(own) {
        Some(worker) => worker,
        None => return Err(Refusal::invalid("whose day?").hint("choose a worker on the page Effort")),
    };
    let day: Date = match seen.read("day")? {
        Some(day) => day,
        None => onus.today(Some(&worker))?,
    };
    let view = onus.day(&worker, day)?;
    let days = zone::days(&view.tz, day, day).map_err(Refusal::invalid)?;
    let (begin, minutes) = (days.begin(), days.end().since(days.begin()).0 / 60_000);
    let (before, after) = neighbours((day, day));
    let workers = onus.workers(None)?.workers;
    let is_person = workers.iter().any(|one| one.handle == worker && one.kind == Kind::Human);
    let whose = if is_person { "people" } else { "agents" };
    let page = DayPage {
        before: seen.with("day", Some(&before)),
        after: seen.with("day", Some(&after)),
        workers: workers.iter().map(|one| (one.handle.to_string(), one.handle == worker)).collect(),
        tiles: vec![
            (clock(view.total_seconds), "worked"),
            (clock(view.total_billable_seconds), "billable"),
            (view.sessions.len().to_string(), "sessions"),
            (count(view.total_tokens), "tokens"),
            (money(view.total_cost, &view.currency), "cost"),
        ],
        line: line(&view, whose, begin, minutes, seen.now),
        sessions: view.sessions.iter().map(|one| Stint::new(one, &view.tz)).collect(),
        tasks: view.tasks.iter().map(|task| DayPart::new(task, &view.tz)).collect(),
        worker: worker.to_string(),
        day: day.to_string(),
        tz: view.tz.clone(),
        left_out: view.left_out,
    };
    Ok(Drawn { title: format!("{worker} on {day}"), main: rendered(&page)? })
}

fn line(view: &DayView, whose: &'static str, begin: Timestamp, minutes: i64, now: Timestamp) -> Html {
    let mut rows: Vec<String> = Vec::new();
    let mut stretches = Vec::new();
    for session in &view.sessions {
        let name = session.task.to_string();
        let row = rows.iter().position(|known| *known == name).unwrap_or_else(|| {
            rows.push(name.clone());
            rows.len() - 1
        });
        let from = session.started_at.since(begin).0 / 60_000;
        let to = from + session.seconds / 60;
        let words = format!("{name}: {} in {}", clock(session.seconds), session.workstation);
        stretches.push(Stretch { row, from, to, words, whose, running: session.running });
    }
    let label = format!("{} worked {} on {}", view.worker, clock(view.total_seconds), view.day);
    chart::day(&label, &rows, minutes, &stretches, Some(now.since(begin).0 / 60_000))
}

fn time(tz: &str, at: Timestamp) -> String {
    zone::time_of_day(tz, at).unwrap_or_default()
}

impl Stint {
    fn new(session: &SessionView, tz: &str) -> Stint {
        Stint {
            from: time(tz, session.started_at),
            to: session.ended_at.map_or_else(|| "now".to_owned(), |at| time(tz, at)),
            task: session.task.to_string(),
            place: session.workstation.clone(),
            time: clock(session.seconds),
            end: session.end_reason.as_deref().unwrap_or("running").replace('_', " "),
            corrected: session.correction.is_some(),
        }
    }
}

impl DayPart {
    fn new(task: &DayTaskView, tz: &str) -> DayPart {
        DayPart {
            task: task.row.task.as_ref().map(ToString::to_string).unwrap_or_default(),
            title: task.title.clone(),
            time: clock(task.row.seconds),
            acts: task.acts.iter().map(|act| DayAct::new(act, tz)).collect(),
        }
    }
}

impl DayAct {
    fn new(act: &ActView, tz: &str) -> DayAct {
        DayAct {
            at: time(tz, act.at),
            verb: crate::html::verb(&act.verb),
            by: act.by.as_ref().map(ToString::to_string),
            shown: act.evidence.as_ref().map(shown).unwrap_or_default(),
            text: act.text.as_deref().map(words).unwrap_or_default(),
        }
    }
}

/// A handoff is a document for the next holder: a day tells what its writer said of it.
fn words(text: &str) -> String {
    let Ok(handoff) = Handoff::parse(text) else { return text.to_owned() };
    let said = handoff.summary.into_iter().chain(handoff.risks);
    let next = handoff.next_slice.map(|next| format!("Next: {next}"));
    said.chain(next).collect::<Vec<_>>().join("\n")
}

/// What was shown, on what.
fn shown(evidence: &ShownView) -> String {
    let mut facts: Vec<String> = evidence.verdict.iter().map(|verdict| verdict.replace('_', " ")).collect();
    facts.extend(evidence.command.clone());
    facts.extend(evidence.commit.as_ref().map(|commit| commit.as_str().chars().take(8).collect::<String>()));
    facts.extend(evidence.stated.then(|| "stated: Onus did not run it".to_owned()));
    facts.join(", ")
}
