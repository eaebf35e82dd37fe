//! The fleet: who works, where, and by which map work finds them (mission A6, C3, C5, D2).

mod map;
mod past;

use crate::html::{Html, ring, when};
use crate::layout::rendered;
use crate::{Drawn, Page, PageRequest};
use askama::Template;
use map::{MapPart, RolePart};
use onus_app::Onus;
use onus_app::fleet::AgentView;
use onus_app::timesheet::{Ask, RowView};
use onus_app::view::{ProbeView, WorkerView, WorkstationView};
use onus_core::code::Code;
use onus_core::id::{Handle, TaskId};
use onus_core::probe::Verdict;
use onus_core::refusal::Refusal;
use onus_core::task::Task;
use onus_core::text::counted;
use onus_core::time::{Date, Timestamp};
use onus_core::timesheet::Dimension;
use onus_core::worker::WorkerState;
use onus_core::workstation::WorkstationState;
use onus_host::zone;
use onus_store::load;
use onus_store::port::Store;
use past::Past;
use std::collections::BTreeMap;

/// The most workers, and the most workstations, that are drawn.
const ROWS: usize = 500;

pub(crate) fn page() -> Page {
    Page { path: "/fleet", name: "Fleet", key: Some('f'), ask }
}

#[derive(Debug, Template)]
#[template(path = "fleet.html")]
struct FleetPage {
    workers: Vec<WorkerRow>,
    places: Vec<PlaceRow>,
    roles: Vec<RolePart>,
    map: Option<MapPart>,
    /// Why there is none to be drawn.
    no_map: Option<Refusal>,
    counts: Vec<(usize, &'static str)>,
    person: bool,
}

#[derive(Debug)]
struct WorkerRow {
    handle: String,
    kind: &'static str,
    tier: String,
    role: String,
    tz: String,
    paused: bool,
    holds: Vec<HeldRow>,
    /// Its stretch of work, where it is an agent's and goes on.
    run: Option<RunRow>,
    /// What it worked today, and what that cost.
    today: String,
    /// Hundredths of its day so far in which it worked.
    busy: Option<i64>,
    /// The last renewal of what it holds.
    sign: Option<Html>,
    /// What it has used today of what it may: whether that is all of it.
    limits: Vec<(String, bool)>,
}

#[derive(Debug)]
struct RunRow {
    since: Option<Html>,
    last_output: Option<Html>,
    /// Tokens, and what they cost where somebody knows.
    used: String,
}

#[derive(Debug)]
struct HeldRow {
    task: String,
    title: String,
    workstation: String,
    ring: Html,
}

#[derive(Debug)]
struct PlaceRow {
    name: String,
    kind: &'static str,
    state: &'static str,
    quarantined: bool,
    /// A probe says that it is not what it should be.
    failing: bool,
    over: bool,
    path: String,
    reason: Option<String>,
    held: Option<HeldRow>,
    worker: String,
    probes: Vec<ProbeRow>,
    past: Past,
}

#[derive(Debug)]
struct ProbeRow {
    probe: String,
    class: &'static str,
    words: String,
    at: Option<Html>,
    detail: String,
}

fn ask(onus: &mut Onus, seen: &PageRequest) -> Result<Drawn, Refusal> {
    let mut workers = onus.workers(None)?.workers;
    workers.truncate(ROWS);
    let mut places = onus.workstations(None)?.workstations;
    places.truncate(ROWS);
    let ids: Vec<TaskId> = workers.iter().flat_map(|worker| worker.holds.iter().cloned()).collect();
    let (tasks, mut past) = onus.store.read(|tx| {
        let mut tasks = BTreeMap::new();
        for id in ids.into_iter().take(ROWS) {
            if let Some(stored) = load::task(tx, &id)? {
                tasks.insert(id, stored.task);
            }
        }
        Ok((tasks, past::load(tx, seen.now)?))
    })?;
    let (map, roles, no_map) = match onus.route(None) {
        Ok(view) => {
            let history = onus.route_history(None)?;
            let (map, roles) = map::draw(view, &history, seen.now)?;
            (Some(map), roles, None)
        }
        Err(refusal) if matches!(refusal.code, Code::MapInvalid | Code::UnknownName) => {
            (None, Vec::new(), Some(refusal))
        }
        Err(refusal) => return Err(refusal),
    };
    let limits = onus.limits(None)?.limits;
    let at_work: Vec<Handle> = workers
        .iter()
        .filter(|worker| !worker.holds.is_empty())
        .map(|worker| worker.handle.clone())
        .collect();
    let runs = if at_work.is_empty() { Vec::new() } else { onus.fleet_status(&at_work)?.agents };
    let today_of = onus.today(seen.viewer.handle())?;
    let by = vec![Dimension::Worker];
    let sheet = onus.timesheet(&Ask { from: today_of, to: today_of, worker: None, by })?;
    let page = FleetPage {
        counts: counts(&workers, &places),
        workers: workers
            .iter()
            .map(|worker| {
                let row = sheet.rows.iter().find(|row| row.worker.as_ref() == Some(&worker.handle));
                let today = row.map(|row| worked(row, &sheet.currency)).unwrap_or_default();
                let busy = row.and_then(|row| utilisation(row, &worker.tz, today_of, seen.now));
                let own = limits.iter().filter(|one| one.of == worker.handle.as_str());
                let limits = own.map(|one| (one.text.clone(), one.reached)).collect();
                let run = runs.iter().find(|run| run.worker == worker.handle);
                let run = run.map(|run| run_row(run, &sheet.currency, seen));
                WorkerRow { run, today, busy, limits, ..worker_row(worker, &tasks, seen) }
            })
            .collect(),
        places: places
            .into_iter()
            .map(|place| {
                let past = past.remove(&place.name).unwrap_or_default();
                place_row(place, past, &tasks, seen)
            })
            .collect(),
        roles,
        map,
        no_map,
        person: seen.viewer.is_person(),
    };
    Ok(Drawn { title: "Fleet".to_owned(), main: rendered(&page)? })
}

fn counts(workers: &[WorkerView], places: &[WorkstationView]) -> Vec<(usize, &'static str)> {
    let of = |wanted| places.iter().filter(|place| place.state == wanted).count();
    vec![
        (workers.iter().filter(|worker| !worker.holds.is_empty()).count(), "at work"),
        (workers.iter().filter(|worker| worker.holds.is_empty()).count(), "free"),
        (of(WorkstationState::Ready), "places ready"),
        (of(WorkstationState::Registered), "not ready"),
        (of(WorkstationState::Quarantined), "quarantined"),
        (places.iter().filter(|place| is_failing(place)).count(), "failing"),
    ]
}

fn worker_row(worker: &WorkerView, tasks: &BTreeMap<TaskId, Task>, seen: &PageRequest) -> WorkerRow {
    WorkerRow {
        handle: worker.handle.to_string(),
        kind: worker.kind.name(),
        tier: worker.tier.clone().unwrap_or_default(),
        role: worker.role.as_ref().map(ToString::to_string).unwrap_or_default(),
        tz: worker.tz.clone(),
        paused: worker.state == WorkerState::Paused,
        holds: worker.holds.iter().filter_map(|id| held_row(tasks.get(id)?, seen)).collect(),
        run: None,
        today: String::new(),
        busy: None,
        limits: Vec::new(),
        sign: worker
            .holds
            .iter()
            .filter_map(|id| Some(tasks.get(id)?.assignment()?.lease.renewed_at))
            .max()
            .map(|at| when(at, seen.now)),
    }
}

fn run_row(run: &AgentView, currency: &str, seen: &PageRequest) -> RunRow {
    let cost = run.cost.map(|cost| format!(", {cost:.2} {currency}")).unwrap_or_default();
    RunRow {
        since: run.since.map(|at| when(at, seen.now)),
        last_output: run.last_output_at.map(|at| when(at, seen.now)),
        used: format!("{}{cost}", counted(run.tokens, "token")),
    }
}

/// How much of its day so far a worker worked, in hundredths.
fn utilisation(row: &RowView, tz: &str, day: Date, now: Timestamp) -> Option<i64> {
    let begin = zone::days(tz, day, day).ok()?.begin();
    let so_far = now.since(begin).0 / 1_000;
    (so_far > 0).then(|| (row.seconds * 100 / so_far).clamp(0, 100))
}

/// Hours and minutes of a day, and its cost where it has one.
fn worked(row: &RowView, currency: &str) -> String {
    let time = format!("{}:{:02}", row.seconds / 3_600, row.seconds / 60 % 60);
    match row.cost {
        Some(cost) => format!("{time} · {cost:.2} {currency}"),
        None => time,
    }
}

fn held_row(task: &Task, seen: &PageRequest) -> Option<HeldRow> {
    let held = task.assignment()?;
    Some(HeldRow {
        task: task.id.to_string(),
        title: task.spec.title.clone(),
        workstation: held.workstation.to_string(),
        ring: ring(held, seen.now),
    })
}

fn place_row(
    place: WorkstationView,
    past: Past,
    tasks: &BTreeMap<TaskId, Task>,
    seen: &PageRequest,
) -> PlaceRow {
    let worker = |handle: &Handle| handle.to_string();
    PlaceRow {
        name: place.name.to_string(),
        kind: place.kind.name(),
        state: place.state.name(),
        quarantined: place.state == WorkstationState::Quarantined,
        failing: is_failing(&place),
        over: place.state == WorkstationState::Retired,
        path: place.path.unwrap_or_default(),
        reason: place.reason,
        worker: place.held_by.as_ref().map(|held| worker(&held.worker)).unwrap_or_default(),
        held: place.held_by.and_then(|held| held_row(tasks.get(&held.task)?, seen)),
        probes: place.probes.into_iter().map(|probe| probe_row(probe, seen)).collect(),
        past,
    }
}

fn is_failing(place: &WorkstationView) -> bool {
    place.probes.iter().any(|probe| matches!(probe.verdict, Some(verdict) if verdict != Verdict::Passed))
}

fn probe_row(probe: ProbeView, seen: &PageRequest) -> ProbeRow {
    let (class, words) = match probe.verdict {
        Some(Verdict::Passed) => ("good", "passed"),
        Some(_) => ("bad", "failed"),
        None => ("", "never run"),
    };
    ProbeRow {
        probe: probe.probe,
        class,
        words: match probe.took_ms {
            Some(took) => format!("{words} in {took} ms"),
            None => words.to_owned(),
        },
        at: probe.at.map(|at| when(at, seen.now)),
        detail: probe.detail.unwrap_or_default(),
    }
}
