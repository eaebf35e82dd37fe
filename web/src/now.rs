//! Now: what was done, what is stuck and why, and what needs the viewer.

use crate::chart::{self, Axis, Bar};
use crate::html::{Html, blocker, when};
use crate::layout::rendered;
use crate::{Drawn, Page, PageRequest};
use askama::Template;
use onus_app::Onus;
use onus_app::mirror::MirrorView;
use onus_app::report::{CompletedView, NowView, StuckKind, StuckView, WantKind, WantView, When};
use onus_app::view::HeldView;
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use onus_core::report::DayFlow;
use onus_core::time::{Date, Millis, Timestamp};
use onus_host::zone;
use onus_store::load;
use onus_store::port::Store;
use onus_store::read::report::{self, Span};
use onus_store::read::show;
use std::collections::BTreeMap;

/// A resolution is shown up to here.
const WORDS: usize = 240;

/// What was completed in so long a time, up to so many tasks, says how long work takes.
const WEEK_MS: i64 = 7 * 86_400_000;
const MEASURED: i64 = 200;
/// A week touches so many days.
const PACE_DAYS: usize = 8;

const SINCE: [(&str, &str); 4] =
    [("14h", "yesterday evening"), ("1d", "a day ago"), ("3d", "three days ago"), ("7d", "a week ago")];

pub(crate) fn page() -> Page {
    Page { path: "/now", name: "Now", key: Some('n'), ask }
}

#[derive(Debug, Template)]
#[template(path = "now.html")]
struct NowPage {
    since: Vec<NowChoice>,
    tiles: Vec<Tile>,
    /// How long work takes.
    pace: Vec<Tile>,
    wants: Vec<Want>,
    stuck: Vec<Stuck>,
    mirrors: Vec<Untold>,
    completed: Vec<Done>,
    more_completed: bool,
    more_wants: usize,
    more_stuck: usize,
    held: Vec<WorkerNow>,
    throughput: Html,
    burn_up: Html,
    /// How long work took, of each day: from the claim, and from the ask.
    cycle: Html,
    lead: Html,
    person: bool,
}

#[derive(Debug)]
struct NowChoice {
    value: &'static str,
    label: &'static str,
    chosen: bool,
}

#[derive(Debug)]
struct Tile {
    count: String,
    label: &'static str,
    class: &'static str,
}

#[derive(Debug)]
struct Want {
    kind: &'static str,
    about: String,
    href: Option<String>,
    detail: String,
    whom: Option<String>,
    command: String,
    /// The word on the button, and the call that it makes: path and body.
    act: &'static str,
    /// What is said when it is done.
    done: &'static str,
    call: Option<(String, String)>,
    /// A form of the task, where one call is not enough: its verb, and the word on its button.
    form: Option<(&'static str, &'static str)>,
}

#[derive(Debug)]
struct Stuck {
    task: String,
    title: String,
    kind: &'static str,
    detail: String,
    since: Html,
    /// What a person does about it: the verb of a form, and the word on its button.
    act: Option<(&'static str, &'static str)>,
    /// Or the call that its button makes, where nothing has to be asked: the change, and what is said then.
    change: Option<(String, String)>,
    /// The rest of the explanation, for whoever looks it up.
    hint: String,
}

/// What an outside system was not told.
#[derive(Debug)]
struct Untold {
    mirror: String,
    task: Option<String>,
    detail: String,
    since: Html,
    hint: String,
}

#[derive(Debug)]
struct Done {
    task: String,
    title: String,
    by: String,
    place: String,
    at: Html,
    shown: String,
    class: &'static str,
    commit: String,
    approved: String,
    resolution: String,
}

#[derive(Debug)]
struct WorkerNow {
    task: String,
    title: String,
    who: String,
    place: String,
    until: Html,
    late: bool,
    /// For how long, in words and in hundredths of the oldest.
    age: String,
    share: i64,
}

fn ask(onus: &mut Onus, seen: &PageRequest) -> Result<Drawn, Refusal> {
    let since = seen.word("since").unwrap_or(SINCE[0].0);
    let asked = When { since: Some(since.to_owned()), until: None };
    let view = onus.report_now(seen.viewer.handle(), &asked)?;
    let now = seen.now;
    let pace = Pace::measure(onus, &view, seen.viewer.tz(), now)?;
    let page = NowPage {
        since: SINCE
            .iter()
            .map(|(value, label)| NowChoice { value, label, chosen: *value == since })
            .collect(),
        tiles: tiles(&view),
        wants: view.wants.iter().map(Want::new).collect(),
        stuck: view.stuck.iter().map(|one| Stuck::new(one, now)).collect(),
        mirrors: view.mirrors.iter().flat_map(|mirror| untold(mirror, now)).collect(),
        completed: view.completed.iter().map(|one| Done::new(one, now)).collect(),
        more_completed: view.more_completed,
        more_wants: view.more_wants,
        more_stuck: view.more_stuck,
        held: view.held.iter().map(|one| WorkerNow::new(one, &pace.age, now)).collect(),
        throughput: throughput(&view.flow),
        burn_up: chart::burn_up(&view.flow, None),
        cycle: took("From claim to end", &view.flow, &pace.cycle),
        lead: took("From ask to end", &view.flow, &pace.lead),
        pace: pace.tiles(),
        person: seen.viewer.is_person(),
    };
    Ok(Drawn { title: "Now".to_owned(), main: rendered(&page)? })
}

fn untold(mirror: &MirrorView, now: Timestamp) -> Vec<Untold> {
    let name = mirror.name.to_string();
    if mirror.stuck_tasks.is_empty() {
        return vec![Untold {
            task: None,
            detail: mirror.last_error.clone().unwrap_or_default(),
            since: when(now.plus(Millis(-mirror.lag_ms)), now),
            hint: format!("onus mirror check {name}"),
            mirror: name,
        }];
    }
    let stuck = mirror.stuck_tasks.iter().map(|one| Untold {
        mirror: name.clone(),
        task: one.task.as_ref().map(ToString::to_string),
        detail: one.error.clone(),
        since: when(one.since, now),
        hint: one.hint.clone(),
    });
    stuck.collect()
}

fn tiles(view: &NowView) -> Vec<Tile> {
    let count = |state: &str| view.counts.get(state).copied().unwrap_or(0).to_string();
    let loud = |n: usize, class: &'static str| if n > 0 { class } else { "" };
    let more = if view.more_completed { "+" } else { "" };
    vec![
        Tile {
            count: (view.wants.len() + view.more_wants).to_string(),
            label: "need a person",
            class: loud(view.wants.len(), "warn"),
        },
        Tile {
            count: (view.stuck.len() + view.more_stuck + view.mirrors.len()).to_string(),
            label: "stuck",
            class: loud(view.stuck.len() + view.mirrors.len(), "bad"),
        },
        Tile {
            count: format!("{}{more}", view.completed.len()),
            label: "completed since then",
            class: "good",
        },
        Tile { count: count("in_progress"), label: "in progress", class: "" },
        Tile { count: count("open"), label: "open", class: "" },
        Tile {
            count: view.leases_lost.to_string(),
            label: "leases lost",
            class: loud(usize::from(view.leases_lost > 0), "warn"),
        },
    ]
}

/// How long work takes: from the ask and from the first claim to the end, by the day on which it ended; and how old the work is that
/// goes on.
#[derive(Debug, Default)]
struct Pace {
    lead: Vec<(Date, Millis)>,
    cycle: Vec<(Date, Millis)>,
    age: BTreeMap<TaskId, Millis>,
}

impl Pace {
    /// Of what was completed in the last week, and of what is held now.
    fn measure(onus: &mut Onus, view: &NowView, tz: &str, now: Timestamp) -> Result<Pace, Refusal> {
        let week = Span { from: now.plus(Millis(-WEEK_MS)), to: now.plus(Millis(1)) };
        Ok(onus.store.read(|tx| {
            let mut pace = Pace::default();
            for entry in report::happened(tx, "completed", week, MEASURED)? {
                let (Some(id), Ok(day)) = (entry.task.as_deref(), zone::date(tz, entry.at)) else { continue };
                let Ok(id) = id.parse::<TaskId>() else { continue };
                let begun = show::assignments(tx, &id)?;
                let begun = begun.first().map(|first| first.assignment.assigned_at);
                pace.cycle.extend(begun.map(|begun| (day, entry.at.since(begun))));
                let asked = load::task(tx, &id)?;
                pace.lead.extend(asked.map(|stored| (day, entry.at.since(stored.task.created_at))));
            }
            for held in &view.held {
                let task = load::task(tx, &held.task)?.map(|stored| stored.task);
                let since = task.as_ref().and_then(|task| task.assignment()).map(|held| held.assigned_at);
                pace.age.extend(since.map(|since| (held.task.clone(), now.since(since))));
            }
            Ok(pace)
        })?)
    }

    fn tiles(&self) -> Vec<Tile> {
        let words = |span: Option<Millis>| span.map_or_else(|| "–".to_owned(), in_two_units);
        let tile = |span, label| Tile { count: words(span), label, class: "" };
        let of = |spans: &[(Date, Millis)]| median(spans.iter().map(|(_, span)| *span));
        vec![
            tile(of(&self.lead), "from ask to end (median)"),
            tile(of(&self.cycle), "from claim to end (median)"),
            tile(median(self.age.values().copied()), "age of work in progress (median)"),
            tile(self.age.values().max().copied(), "oldest work in progress"),
        ]
    }
}

/// An hour and three quarters are not an hour.
fn in_two_units(span: Millis) -> String {
    match span.0 / 60_000 {
        minutes @ 60..2_880 if minutes % 60 > 0 => format!("{} h {} min", minutes / 60, minutes % 60),
        _ => span.in_words(),
    }
}

fn median(spans: impl Iterator<Item = Millis>) -> Option<Millis> {
    let mut spans: Vec<Millis> = spans.collect();
    spans.sort_unstable();
    spans.get(spans.len() / 2).copied()
}

/// What half of the work of each day took at most.
fn took(name: &str, flow: &[DayFlow], spans: &[(Date, Millis)]) -> Html {
    let days = flow.get(flow.len().saturating_sub(PACE_DAYS)..).unwrap_or_default();
    let bar = |day: &DayFlow| {
        let own: Vec<Millis> =
            spans.iter().filter(|(date, _)| *date == day.day).map(|(_, span)| *span).collect();
        let (count, half) = (own.len(), median(own.into_iter()).unwrap_or(Millis(0)));
        let words = format!("median {} of {count}", in_two_units(half));
        Bar { label: chart::short(&day.day.to_string()), parts: vec![("done", half.0 / 1_000, words)] }
    };
    let bars: Vec<Bar> = days.iter().map(bar).collect();
    let label = format!("{name}: median of {} tasks in {} days", spans.len(), days.len());
    chart::bars(&label, &bars, Axis::Span, None)
}

fn throughput(flow: &[DayFlow]) -> Html {
    let bar = |day: &DayFlow| Bar {
        label: chart::short(&day.day.to_string()),
        parts: vec![
            ("done", day.completed, format!("{} completed, {} added", day.completed, day.added)),
            ("lost", day.leases_lost, format!("{} leases lost", day.leases_lost)),
        ],
    };
    let total: i64 = flow.iter().map(|day| day.completed).sum();
    let bars: Vec<Bar> = flow.iter().map(bar).collect();
    chart::bars(&format!("{total} tasks completed in {} days", flow.len()), &bars, Axis::Count, None)
}

impl Want {
    fn new(want: &WantView) -> Want {
        let kind = match want.kind {
            WantKind::ApproveCheck => "Approve a check",
            WantKind::Review => "Review",
            WantKind::ApproveException => "Approve an exception",
            WantKind::Answer => "Answer",
            WantKind::Budget => "Let it go on",
            WantKind::Restore => "Restore a workstation",
            WantKind::ApproveTimesheet => "Approve a timesheet",
        };
        let href = match (want.kind, &want.task) {
            (_, Some(task)) => Some(format!("/tasks/{task}")),
            (WantKind::ApproveTimesheet, None) => Some(format!("/effort?worker={}", want.about)),
            _ => None,
        };
        Want {
            kind,
            about: want.about.clone(),
            href,
            detail: want.detail.clone(),
            whom: want.whom.as_ref().map(ToString::to_string),
            command: want.command.clone(),
            act: if want.kind == WantKind::Restore { "Restore" } else { "Approve" },
            done: if want.kind == WantKind::Restore { "is back from quarantine" } else { "is approved" },
            form: match (want.kind, &want.task) {
                (WantKind::Review, Some(_)) => Some(("review", "Review")),
                (WantKind::Answer, Some(_)) => Some(("say", "Answer")),
                (WantKind::Budget, Some(_)) => Some(("unblock", "Let it go on")),
                _ => None,
            },
            call: want.call.as_ref().map(|call| (call.path.clone(), call.body.to_string())),
        }
    }
}

impl Stuck {
    fn new(stuck: &StuckView, now: Timestamp) -> Stuck {
        let kind = match stuck.kind {
            StuckKind::LeaseExpired => "lease expired",
            StuckKind::Blocked => "blocked",
            StuckKind::Unroutable => "nobody for it",
            StuckKind::NeverReady => "waits for ever",
        };
        Stuck {
            task: stuck.task.to_string(),
            title: stuck.title.clone(),
            kind,
            act: match stuck.kind {
                StuckKind::LeaseExpired => Some(("takeover", "Take over")),
                StuckKind::Blocked => Some(("unblock", "Unblock")),
                StuckKind::Unroutable => Some(("claim", "Who could take it?")),
                StuckKind::NeverReady => None,
            },
            change: stuck.on.as_ref().map(|on| {
                (format!("{{\"depends_on\":[\"-{on}\"]}}"), format!("{} waits for {on} no more", stuck.task))
            }),
            detail: match stuck.detail.strip_prefix("waits for ") {
                Some(on) => format!("waits for {}", blocker(on)),
                None => stuck.detail.clone(),
            },
            // How long a lease is over is in the detail already.
            since: match stuck.kind {
                StuckKind::LeaseExpired => Html::default(),
                _ => stuck.since.map(|since| when(since, now)).unwrap_or_default(),
            },
            hint: stuck.hint.clone(),
        }
    }
}

impl Done {
    fn new(done: &CompletedView, now: Timestamp) -> Done {
        let (shown, class) = match (done.forced, done.checks) {
            (true, _) => ("by force".to_owned(), "bad"),
            (false, 0) => ("no checks".to_owned(), "warn"),
            (false, all) if done.passed < all => (format!("{} of {all} checks passed", done.passed), "warn"),
            (false, all) if done.stated > 0 => {
                (format!("{all} checks passed, {} only stated", done.stated), "warn")
            }
            (false, 1) => ("its check passed".to_owned(), "good"),
            (false, all) => (format!("{all} checks passed"), "good"),
        };
        let approved: Vec<String> = done.approved_by.iter().map(ToString::to_string).collect();
        let resolution = done.resolution.as_deref().unwrap_or_default();
        let cut = resolution.char_indices().nth(WORDS).map(|(at, _)| at);
        Done {
            task: done.task.to_string(),
            title: done.title.clone(),
            by: done.by.to_string(),
            place: done.workstation.as_ref().map(ToString::to_string).unwrap_or_default(),
            at: when(done.at, now),
            shown,
            class,
            commit: done
                .commit
                .as_ref()
                .map(|commit| commit.as_str().chars().take(8).collect())
                .unwrap_or_default(),
            approved: approved.join(", "),
            resolution: cut.map_or(resolution.to_owned(), |at| format!("{}…", &resolution[..at])),
        }
    }
}

impl WorkerNow {
    fn new(held: &HeldView, ages: &BTreeMap<TaskId, Millis>, now: Timestamp) -> WorkerNow {
        let age = ages.get(&held.task).copied().unwrap_or(Millis(0));
        let oldest = ages.values().max().map_or(1, |oldest| oldest.0.max(1));
        WorkerNow {
            task: held.task.to_string(),
            title: held.title.clone(),
            who: held.assignee.to_string(),
            place: held.workstation.to_string(),
            until: when(held.expires_at, now),
            late: held.expires_at <= now,
            age: in_two_units(age),
            share: age.0 * 100 / oldest,
        }
    }
}
