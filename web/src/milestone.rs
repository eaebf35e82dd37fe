//! Milestones: which tasks are verified together, how far they are, and exactly what is missing (mission C10).

use crate::chart;
use crate::html::{Html, when};
use crate::layout::rendered;
use crate::task::short;
use crate::{Drawn, Page, PageRequest};
use askama::Template;
use onus_app::Onus;
use onus_app::milestone::{MemberView, MilestoneLine, MilestoneView};
use onus_core::code::Code;
use onus_core::id::{MilestoneName, TaskId};
use onus_core::milestone::{Selection, days_left, due_in_words};
use onus_core::refusal::{Finding, Refusal};
use onus_core::task::StateName;
use onus_core::time::{Date, Timestamp};

/// The most milestones, tasks, and findings that are drawn.
const ROWS: usize = 500;

pub(crate) fn page() -> Page {
    Page { path: "/milestones", name: "Milestones", key: Some('m'), ask: list }
}

/// One of them.
pub(crate) fn one() -> Page {
    Page { path: "/milestones/{name}", name: "Milestone", key: None, ask }
}

#[derive(Debug, Template)]
#[template(path = "milestones.html")]
struct MilestonesPage {
    rows: Vec<MilestoneRow>,
    left_out: usize,
    person: bool,
}

/// A milestone in a few words.
#[derive(Debug)]
struct MilestoneRow {
    name: String,
    title: String,
    state: String,
    about: String,
    added: (String, Html),
    closed: Option<(String, Html)>,
    /// Complete, and all that were not dropped.
    progress: Option<(usize, usize)>,
    target: Option<TargetDay>,
    is_open: bool,
}

/// The day that it is meant for, and how that stands to today while it is open.
#[derive(Debug)]
struct TargetDay {
    day: String,
    /// The class that gives the colour, and the words.
    due: Option<(&'static str, String)>,
}

impl TargetDay {
    fn new(line: &MilestoneLine, today: Date) -> Option<TargetDay> {
        let day = line.target?;
        let class = match days_left(day, today) {
            ..0 => "bad",
            0..=2 => "warn",
            _ => "",
        };
        let due = line.closed_at.is_none().then(|| (class, due_in_words(day, today)));
        Some(TargetDay { day: day.to_string(), due })
    }
}

/// So many of the newest are counted.
const COUNTED: usize = 30;

/// How many of the tasks are complete, of those that were not dropped.
fn progress(tasks: &[MemberView]) -> (usize, usize) {
    let of = |state: StateName| tasks.iter().filter(|task| task.state == state).count();
    (of(StateName::Complete), tasks.len() - of(StateName::Dropped))
}

impl MilestoneRow {
    fn new(line: &MilestoneLine, now: Timestamp, today: Date) -> MilestoneRow {
        MilestoneRow {
            name: line.name.to_string(),
            title: line.title.clone().unwrap_or_default(),
            state: line.state.clone(),
            about: words(&line.selection),
            added: (line.created_by.to_string(), when(line.created_at, now)),
            closed: line
                .closed_by
                .as_ref()
                .map(ToString::to_string)
                .zip(line.closed_at.map(|at| when(at, now))),
            progress: None,
            target: TargetDay::new(line, today),
            is_open: line.closed_at.is_none(),
        }
    }
}

fn percent(done: &usize, all: &usize) -> usize {
    done * 100 / (*all).max(1)
}

/// A finding beside the task that it is about need not name it again.
fn plain(finding: &Finding) -> Finding {
    let own = finding.task.as_deref().map(|task| format!("{task} "));
    let detail = own.and_then(|own| finding.detail.strip_prefix(&own)).unwrap_or(&finding.detail);
    Finding {
        detail: detail.replace(" on external:", " on ").replace(" on person:", " on "),
        ..finding.clone()
    }
}

/// What keeps a milestone from closing, of one kind.
#[derive(Debug)]
struct MissingPart {
    what: &'static str,
    /// With the title of the task that each is about.
    lines: Vec<(Finding, String)>,
}

/// So many different hints of one kind are told.
const TYPED: usize = 20;

impl MissingPart {
    /// For whoever types: each code and hint once.
    fn typed(&self) -> Vec<(&'static str, &str)> {
        let mut all = Vec::new();
        for (finding, _) in &self.lines {
            let one = (finding.code.name(), finding.hint.as_deref().unwrap_or_default());
            if !all.contains(&one) {
                all.push(one);
            }
        }
        all.truncate(TYPED);
        all
    }
}

const fn kind_of(code: Code) -> &'static str {
    match code {
        Code::WrongState => "Not done yet",
        Code::ChecksMissing => "Not proven by a check",
        Code::ChecksFailed => "A check failed",
        Code::CheckUnapproved => "A check waits for a person's approval",
        Code::EvidenceMissing => "Not on record",
        Code::GateBypassed => "Done against the rules",
        other => other.title(),
    }
}

/// Which tasks a milestone is about.
fn words(selection: &Selection) -> String {
    let Selection { tasks, sprint, tag, parent } = selection;
    let shared = [
        sprint.as_ref().map(|sprint| format!("sprint {sprint}")),
        tag.as_ref().map(|tag| format!("tag {tag}")),
        parent.as_ref().map(|parent| format!("{parent} and its slices")),
        (!tasks.is_empty()).then(|| format!("{} by name", tasks.len())),
    ];
    shared.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn list(onus: &mut Onus, seen: &PageRequest) -> Result<Drawn, Refusal> {
    let today = onus.today(seen.viewer.handle())?;
    let found = onus.milestones()?.milestones;
    // The newest are what people work towards.
    let mut rows: Vec<MilestoneRow> =
        found.iter().rev().take(ROWS).map(|line| MilestoneRow::new(line, seen.now, today)).collect();
    for (row, line) in rows.iter_mut().zip(found.iter().rev()).take(COUNTED) {
        row.progress = Some(progress(&onus.milestone(&line.name)?.tasks));
    }
    let page =
        MilestonesPage { rows, left_out: found.len().saturating_sub(ROWS), person: seen.viewer.is_person() };
    Ok(Drawn { title: "Milestones".to_owned(), main: rendered(&page)? })
}

#[derive(Debug, Template)]
#[template(path = "milestone.html")]
struct MilestonePage {
    row: MilestoneRow,
    tasks: Vec<MemberView>,
    tasks_left_out: usize,
    missing: Vec<MissingPart>,
    missing_left_out: usize,
    facts: Vec<(&'static str, usize)>,
    /// What was asked for and what is complete, by day.
    burn_up: Html,
    /// Complete, in hundredths of all that were not dropped.
    percent: usize,
    /// The entry that closed it, and whether the record still has what was verified.
    seal: Option<(i64, String, bool)>,
    /// People close, and verifiers: the rules say so, if it is tried.
    offers_close: bool,
    person: bool,
}

fn ask(onus: &mut Onus, seen: &PageRequest) -> Result<Drawn, Refusal> {
    let name: MilestoneName = seen.param("name")?;
    let MilestoneView { line, mut tasks, mut missing, closed } = onus.milestone(&name)?;
    let ended = |wanted: StateName| tasks.iter().filter(|task| task.state == wanted).count();
    let (complete, dropped) = (ended(StateName::Complete), ended(StateName::Dropped));
    let (reached, all) = progress(&tasks);
    let percent = percent(&reached, &all);
    let facts = vec![
        ("tasks", tasks.len()),
        ("complete", complete),
        ("to be done", tasks.len() - complete - dropped),
        ("reasons not to close", missing.len()),
    ];
    let members: Vec<TaskId> = tasks.iter().map(|task| task.id.clone()).collect();
    let today = onus.today(seen.viewer.handle())?;
    let burn_up = chart::burn_up(&onus.burn_up(seen.viewer.handle(), &members)?, line.target);
    let cut = |length: usize| length.saturating_sub(ROWS);
    let (tasks_left_out, missing_left_out) = (cut(tasks.len()), cut(missing.len()));
    missing.truncate(ROWS);
    // What is about one task stands together.
    missing.sort_by_cached_key(|one| one.task.as_ref().and_then(|task| task.parse::<TaskId>().ok()));
    let title = |finding: &Finding| {
        let member = tasks.iter().find(|task| Some(task.id.to_string()) == finding.task);
        member.map(|task| task.title.clone()).unwrap_or_default()
    };
    let mut parts: Vec<MissingPart> = Vec::new();
    for finding in &missing {
        let (what, line) = (kind_of(finding.code), (plain(finding), title(finding)));
        match parts.iter_mut().find(|part| part.what == what) {
            Some(part) => part.lines.push(line),
            None => parts.push(MissingPart { what, lines: vec![line] }),
        }
    }
    tasks.truncate(ROWS);
    let page = MilestonePage {
        row: MilestoneRow::new(&line, seen.now, today),
        person: seen.viewer.is_person(),
        tasks,
        tasks_left_out,
        missing: parts,
        missing_left_out,
        facts,
        burn_up,
        percent,
        offers_close: closed.is_none() && seen.viewer.worker.is_some(),
        seal: closed.map(|closed| (closed.seq, short(&closed.fingerprint).to_owned(), closed.intact)),
    };
    Ok(Drawn { title: format!("Milestone {name}"), main: rendered(&page)? })
}
