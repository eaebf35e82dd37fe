//! Text for people: short, aligned, coloured where the terminal allows it.

mod diff;
mod dispatch;
mod effort;
mod fleet;
mod inbox;
mod milestone;
mod mirror;
mod preflight;
mod refusal;
mod report;
mod route;
mod story;
mod table;
mod token;
mod view;

pub(crate) use diff::diff;
pub(crate) use dispatch::{change_line, dispatch};
pub(crate) use effort::{approved, day, sessions, timesheet, usage};
pub(crate) use fleet::{fleet, fleet_page};
pub(crate) use inbox::inbox;
pub(crate) use milestone::{milestone, milestones};
pub(crate) use mirror::{mirror_check, mirror_diff, mirrors};
pub(crate) use preflight::preflight;
pub(crate) use refusal::error_text;
pub(crate) use report::{anomalies, audit, incident, limit_of, limits, now, sprint};
pub(crate) use route::{explain, history, route};
pub(crate) use story::{Telling, story};
pub(crate) use token::{issued, tokens};
pub(crate) use view::views;

use anstyle::{AnsiColor, Style};
use onus_app::doctor::DoctorView;
use onus_app::exception::{ExceptionView, ExceptionsView};
use onus_app::handoff::HandoffView;
use onus_app::view::ChecksView;
use onus_app::view::{
    AddView, ChangeView, ClaimView, EntryView, HeldView, LedgerView, ListView, ReadyView, StaleView,
    StatusView, TaskView, WorkersView, WorkstationsView,
};
use onus_core::code::Code;
use onus_core::id::Handle;
use onus_core::report::plain_words::{blocker, by_type, plainly, refused, words};
use onus_core::task::CheckState;
use onus_core::task::{Priority, StateName};
use onus_core::text::counted;
use onus_core::time::{Millis, Timestamp};
use onus_host::{clock, zone};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use table::Table;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
const RED: Style = AnsiColor::Red.on_default();
const GREEN: Style = AnsiColor::Green.on_default();
const YELLOW: Style = AnsiColor::Yellow.on_default();
const BLUE: Style = AnsiColor::Blue.on_default();

pub(crate) fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

fn state_style(state: StateName) -> Style {
    match state {
        StateName::Open => Style::new(),
        StateName::InProgress => BLUE,
        StateName::Blocked => YELLOW,
        StateName::Complete => GREEN,
        StateName::Dropped => DIM,
    }
}

/// `in progress`, not the name of a field.
fn state_words(state: StateName) -> String {
    paint(state_style(state), words(state.name()))
}

fn priority_style(priority: Priority) -> Style {
    match priority {
        Priority::P0 => RED,
        Priority::P1 => YELLOW,
        _ => Style::new(),
    }
}

/// Whether times are told in UTC.
static UTC: AtomicBool = AtomicBool::new(false);

/// From now on times are told in UTC, to the second.
pub(crate) fn tell_utc() {
    UTC.store(true, Ordering::Relaxed);
}

/// A moment as people write it: in this machine's own zone, unless they asked for UTC.
pub(crate) fn when(at: Timestamp) -> String {
    let local = (!UTC.load(Ordering::Relaxed)).then(|| zone::local(at, clock::now().wall)).flatten();
    local.unwrap_or_else(|| {
        let text = at.to_string();
        text.get(..19).map(|head| format!("{}Z", head.replace('T', " "))).unwrap_or(text)
    })
}

/// What is left of a lease, and when it ends: `14 min left (22:08)`.
pub(crate) fn lease_end(expires_at: Timestamp) -> String {
    if UTC.load(Ordering::Relaxed) {
        return format!("until {}", when(expires_at));
    }
    let left = expires_at.since(clock::now().wall).0;
    let words = to_the_nearest(left.abs()).in_words();
    let words = if left > 0 { format!("{words} left") } else { format!("expired {words} ago") };
    format!("{words} ({})", when(expires_at))
}

/// A lease of fifteen minutes that has just begun has fifteen left, not fourteen.
fn to_the_nearest(ms: i64) -> Millis {
    const MINUTE: i64 = 60_000;
    Millis(match ms {
        ..MINUTE => ms,
        _ if ms < 60 * MINUTE => ms + MINUTE / 2,
        _ => ms + 30 * MINUTE,
    })
}

fn task_cells(task: &TaskView) -> [String; 5] {
    let holder = task.assignment.as_ref().map(|held| held.assignee.to_string()).unwrap_or_default();
    [
        paint(BOLD, &task.id),
        paint(priority_style(task.priority), task.priority),
        state_words(task.state),
        holder,
        task.title.clone(),
    ]
}

fn task_table(tasks: &[TaskView]) -> String {
    // What people know it by elsewhere, where any of them came from there.
    if tasks.iter().all(|task| task.known_as().is_none()) {
        let mut table = Table::new(["ID", "PRI", "STATE", "HOLDER", "TITLE"]);
        tasks.iter().for_each(|task| table.row(task_cells(task)));
        return table.to_string();
    }
    let mut table = Table::new(["ID", "PRI", "STATE", "HOLDER", "FROM", "TITLE"]);
    for task in tasks {
        let [id, priority, state, holder, title] = task_cells(task);
        table.row([id, priority, state, holder, task.known_as().unwrap_or_default().to_owned(), title]);
    }
    table.to_string()
}

pub(crate) fn added(view: &AddView) -> String {
    let word = if view.outcome == "existing" { "existing" } else { "added" };
    let mut text = format!("{} {word}: {}\n", paint(BOLD, &view.task.id), view.task.title);
    if let Some(detail) = &view.detail {
        let _ = writeln!(text, "{detail}");
    }
    text
}

pub(crate) fn change(view: &ChangeView, said: &str) -> String {
    let task = &view.task;
    let mut text = format!("{} {said}", paint(BOLD, &task.id));
    match (&task.assignment, &task.blocked_on) {
        (Some(held), Some(on)) => {
            let _ = write!(
                text,
                "; it waits for {}; {} keeps it, {}",
                blocker(on),
                held.assignee,
                lease_end(held.lease_expires_at)
            );
        }
        (Some(held), None) => {
            let _ = write!(text, "; {} holds it, {}", held.assignee, lease_end(held.lease_expires_at));
        }
        (None, Some(on)) => {
            let _ = write!(text, "; it waits for {}", blocker(on));
        }
        (None, None) if said == task.state.name() => {}
        (None, None) => {
            let _ = write!(text, "; it is {}", state_words(task.state));
        }
    }
    text.push('\n');
    text
}

/// A grant, told to whoever made it: to its holder, or to the person who gave it away.
pub(crate) fn claim(view: &ClaimView, caller: Option<&Handle>) -> String {
    let task = &view.task;
    let Some(held) = &task.assignment else {
        return format!("{} {}\n", task.id, task.state);
    };
    let id = paint(BOLD, &task.id);
    let whose = match caller {
        Some(caller) if *caller != held.assignee => format!("{} has {id} now", held.assignee),
        _ => format!("{id} is yours, {}", held.assignee),
    };
    let end = lease_end(held.lease_expires_at);
    let mut text = format!("{whose}, in {}, {end}\n{}\n", held.workstation, task.title);
    if !task.scope.is_empty() {
        let _ = writeln!(text, "scope: {}", task.scope.join(" "));
    }
    if !held.constraints.is_empty() {
        let _ = writeln!(text, "only: {}", held.constraints.join(" · "));
    }
    if let Some(body) = &task.body {
        let _ = writeln!(text, "\n{body}");
    }
    text
}

pub(crate) fn handoff(view: &HandoffView) -> String {
    match (&view.handoff, &view.text) {
        (Some(handoff), _) => handoff.markdown(),
        (None, text) => format!("{}\n", text.as_deref().unwrap_or_default()),
    }
}

/// One exception, for whoever reads about its task.
fn exception_line(exception: &ExceptionView) -> String {
    let state = match &exception.approved_by {
        Some(by) => format!("approved by {by}"),
        None => format!("proposed by {}", exception.requested_by),
    };
    let adr = exception.adr.as_deref().map(|adr| format!(" ({adr})")).unwrap_or_default();
    format!("not waiting for {}, {state}: {}{adr}", exception.on, exception.reason)
}

pub(crate) fn exceptions(view: &ExceptionsView) -> String {
    let mut table = Table::new(["TASK", "NOT WAITING FOR", "STATE", "ASKED BY", "REASON"]);
    for exception in &view.exceptions {
        table.row([
            paint(BOLD, &exception.task),
            exception.on.to_string(),
            exception.state.to_owned(),
            exception.requested_by.to_string(),
            exception.reason.clone(),
        ]);
    }
    table.to_string()
}

pub(crate) fn list(view: &ListView) -> String {
    if view.tasks.is_empty() {
        return "no tasks\n".into();
    }
    let mut text = task_table(&view.tasks);
    if let Some(next) = &view.next {
        let _ = writeln!(text, "{}", paint(DIM, format!("more: --cursor {next}")));
    }
    text
}

/// Why a task cannot be taken now, in a word or two.
fn reason(code: &str) -> &str {
    match Code::parse(code) {
        Some(Code::LeaseHeld) => "held",
        Some(Code::NotClaimable) => "blocked",
        Some(Code::DependencyIncomplete) => "waits",
        Some(Code::RoutingDenied) => "not in the map",
        Some(Code::LaneFull) => "lane full",
        Some(Code::ScopeOverlap) => "scope taken",
        Some(Code::ScopeViolation) => "outside the role",
        Some(Code::SelfReview) => "own work",
        Some(code) => code.title(),
        None => code,
    }
}

pub(crate) fn ready(view: &ReadyView) -> String {
    let counts = &view.counts;
    let is_new = counts.ready + counts.waiting + counts.in_progress + counts.blocked == 0;
    let mut text = match view.tasks.is_empty() {
        true if is_new => "nothing is ready; ask for something: onus add \"What is to be done\"\n".to_owned(),
        true => "nothing is ready\n".to_owned(),
        false => task_table(&view.tasks),
    };
    for (title, why, others) in
        [("not ready", "WAITS FOR", &view.not_ready), ("not for you", "BECAUSE", &view.not_for_caller)]
    {
        if others.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n{}", paint(BOLD, title));
        let mut table = Table::new(["ID", "WHY", why, "TITLE"]);
        for other in others {
            let waits = other.waits_for.join(" ");
            let reasons: Vec<&str> = other.reasons.iter().map(|code| reason(code)).collect();
            table.row([other.task.to_string(), reasons.join(", "), waits, other.title.clone()]);
        }
        text.push_str(&table.to_string());
    }
    let some = if counts.more { format!("among the first {}: ", counts.examined) } else { String::new() };
    let line = format!(
        "{some}{} ready, {} waiting, {} in progress, {} blocked",
        counts.ready, counts.waiting, counts.in_progress, counts.blocked
    );
    let _ = writeln!(text, "{}", paint(DIM, line));
    text
}

pub(crate) fn workers(view: &WorkersView) -> String {
    let mut table = Table::new(["HANDLE", "KIND", "TIER", "ROLE", "STATE", "HOLDS"]);
    for worker in &view.workers {
        let holds: Vec<String> = worker.holds.iter().map(ToString::to_string).collect();
        table.row([
            paint(BOLD, &worker.handle),
            worker.kind.name().to_owned(),
            worker.tier.clone().unwrap_or_default(),
            worker.role.as_ref().map(ToString::to_string).unwrap_or_default(),
            worker.state.name().to_owned(),
            holds.join(" "),
        ]);
    }
    table.to_string()
}

pub(crate) fn workstations(view: &WorkstationsView) -> String {
    if view.workstations.is_empty() {
        return "no workstations\n".into();
    }
    let mut table = Table::new(["NAME", "KIND", "STATE", "HOLDS", "PATH"]);
    for workstation in &view.workstations {
        let held = workstation.held_by.as_ref().map(|held| format!("{} for {}", held.task, held.worker));
        table.row([
            paint(BOLD, &workstation.name),
            workstation.kind.name().to_owned(),
            workstation.state.name().to_owned(),
            held.unwrap_or_default(),
            workstation.path.clone().unwrap_or_default(),
        ]);
    }
    table.to_string()
}

/// One block per workstation: everything about it, and what its probes said last.
pub(crate) fn workstation_details(view: &WorkstationsView) -> String {
    let mut text = String::new();
    for one in &view.workstations {
        let line = format!("{} {} {}", paint(BOLD, &one.name), one.kind.name(), one.state.name());
        text.push_str(&line);
        if let Some(reason) = &one.reason {
            text.push_str(&format!(" ({reason})"));
        }
        if let Some(held) = &one.held_by {
            text.push_str(&format!(", holds {} for {}", held.task, held.worker));
        }
        text.push('\n');
        let about = [("path", one.path.clone()), ("branch", one.branch.as_ref().map(ToString::to_string))];
        for (name, value) in about.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            text.push_str(&format!("  {name}: {value}\n"));
        }
        text.push_str(&format!("  lifecycle: {}, version {}\n", one.lifecycle.name(), one.version));
        for probe in &one.probes {
            let verdict = probe.verdict.map_or("not run yet", |verdict| verdict.name());
            let at = probe.at.map(|at| format!(" at {}", when(at))).unwrap_or_default();
            let detail = probe.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
            text.push_str(&format!("  probe {}: {}{at}{detail}\n", probe.probe, verdict.replace('_', " ")));
        }
    }
    text
}

pub(crate) fn checks(view: &ChecksView) -> String {
    if view.checks.is_empty() {
        return format!("{} has no checks\n", view.task);
    }
    let mut table = Table::new(["ID", "KIND", "STATE", "LAST RUN", "COMMAND"]);
    for check in &view.checks {
        let state = match check.state {
            CheckState::Approved => "approved",
            CheckState::Proposed => "proposed",
        };
        let last = check.run.as_ref().map_or("-".to_owned(), |run| {
            let commit = run.commit.as_ref().map(|commit| format!(" at {}", &commit.as_str()[..7]));
            let dirty = if run.dirty { ", dirty" } else { "" };
            let stated = if run.stated { ", stated" } else { "" };
            format!("{}{}{dirty}{stated}", run.verdict.name().replace('_', " "), commit.unwrap_or_default())
        });
        table.row([
            check.id.to_string(),
            check.kind.name().to_owned(),
            state.to_owned(),
            last,
            check.command.clone(),
        ]);
    }
    table.to_string()
}

pub(crate) fn stale(view: &StaleView) -> String {
    if view.stale.is_empty() {
        return "nothing is stale\n".into();
    }
    let mut text = held_table(&view.stale);
    for (held, left) in view.stale.iter().filter_map(|held| Some((held, held.left.as_ref()?))) {
        let what = format!(
            "{}, {} that main has not",
            counted(left.dirty_files, "uncommitted file"),
            counted(left.commits_not_in_main, "commit")
        );
        let there = match (&left.directory, left.directory_exists) {
            (None, _) => "nothing here to look at: its workstation has no directory".to_owned(),
            (Some(path), true) if left.dirty_files == 0 && left.commits_not_in_main == 0 => {
                format!("nothing left behind in {path}")
            }
            (Some(path), true) => format!("{what} in {path}"),
            (Some(path), false) => format!("{path} is gone; {what}"),
        };
        let _ = write!(text, "{}: {there}", held.task);
        if !left.salvage_refs.is_empty() {
            let _ = write!(text, "; kept earlier: {}", left.salvage_refs.join(" "));
        }
        text.push('\n');
    }
    text
}

fn held_table(held: &[HeldView]) -> String {
    let mut table = Table::new(["ID", "HOLDER", "WORKSTATION", "LEASE", "TITLE"]);
    for one in held {
        let lease = match (one.dead, one.expired_for_ms) {
            (Some(death), _) => paint(RED, format!("{death}, free to take over")),
            (None, None) => lease_end(one.expires_at),
            (None, Some(late)) if one.may_be_taken_over => {
                paint(RED, format!("expired {} ago, free to take over", Millis(late).in_words()))
            }
            (None, Some(late)) => paint(YELLOW, format!("expired {} ago, in grace", Millis(late).in_words())),
        };
        table.row([
            paint(BOLD, &one.task),
            one.assignee.to_string(),
            one.workstation.to_string(),
            lease,
            one.title.clone(),
        ]);
    }
    table.to_string()
}

pub(crate) fn status(view: &StatusView) -> String {
    let count = |state: StateName| view.counts.get(state.name()).copied().unwrap_or(0);
    let counts: Vec<String> = StateName::ALL
        .iter()
        .map(|state| paint(state_style(*state), format!("{} {}", count(*state), words(state.name()))))
        .collect();
    let mut text = format!("{}\n{}\n", view.store, counts.join(" · "));
    let checkpoint = match view.last_checkpoint {
        Some(seq) => format!("last checkpoint at {seq}"),
        None => "no checkpoint yet: onus ledger checkpoint".into(),
    };
    let _ = writeln!(
        text,
        "projects {} · ledger {}, {checkpoint}",
        view.projects.join(" "),
        counted(view.ledger_entries, "entry")
    );
    for warning in &view.warnings {
        let _ = writeln!(text, "{}: {warning}", paint(YELLOW, "warning"));
    }
    if !view.held.is_empty() {
        text.push('\n');
        text.push_str(&held_table(&view.held));
    }
    text
}

pub(crate) fn doctor(view: &DoctorView) -> String {
    let mut text = String::new();
    for check in &view.checks {
        let mark = if check.ok { paint(GREEN, "ok  ") } else { paint(RED, "FAIL") };
        let _ = writeln!(text, "{mark} {}: {}", check.name, check.detail);
    }
    text
}

pub(crate) fn ledger(view: &LedgerView) -> String {
    if view.entries.is_empty() {
        return "no entries\n".into();
    }
    let mut table = Table::new(["SEQ", "AT", "TASK", "WHO", "WHAT"]);
    for entry in &view.entries {
        let task = entry.task.clone().unwrap_or_else(|| "-".into());
        table.row([entry.seq.to_string(), when(entry.at), task, entry.actor.clone(), what(entry)]);
    }
    table.to_string()
}

/// What an entry says, in words.
fn what(entry: &EntryView) -> String {
    let verb = paint(BOLD, words(&entry.verb));
    if entry.said.is_empty() { verb } else { format!("{verb}: {}", said(&entry.verb, &entry.said)) }
}

/// What an entry says beyond its verb; of a refusal the code as well, at the end.
fn said(verb: &str, said: &str) -> String {
    match refused(verb, said) {
        Some((detail, code)) => format!("{} {}", by_type(detail), paint(DIM, format!("[{code}]"))),
        None => plainly(verb, said),
    }
}

/// The same with everything that the record holds.
pub(crate) fn ledger_in_full(view: &LedgerView) -> String {
    let mut table = Table::new(["SEQ", "AT", "TASK", "WHO", "VERB", "HASH", "DATA"]);
    for entry in &view.entries {
        let task = entry.task.clone().unwrap_or_else(|| "-".into());
        let hash = entry.hash.chars().take(12).collect();
        let (at, who) = (when(entry.at), entry.actor.clone());
        table.row([
            entry.seq.to_string(),
            at,
            task,
            who,
            paint(BOLD, &entry.verb),
            hash,
            entry.data.to_string(),
        ]);
    }
    table.to_string()
}
