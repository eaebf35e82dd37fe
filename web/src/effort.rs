//! Effort: who worked how long on what, people beside agents, and whether a person has approved it (mission A4, A6).

mod cost;
mod day;
mod grid;

use crate::chart::{self, Axis, Bar};
use crate::html::Html;
use crate::layout::rendered;
use crate::limits::{self, LimitRow};
use crate::{Download, Drawn, Page, PageRequest};
use askama::Template;
use onus_app::Onus;
use onus_app::timesheet::{ApprovalView, Ask, RowView, TimesheetView, csv, ics, xlsx};
use onus_app::view::WorkerView;
use onus_core::code::Code;
use onus_core::id::Handle;
use onus_core::refusal::Refusal;
use onus_core::time::Date;
use onus_core::timesheet::{Dimension, month_of, neighbours, period, week_name};
use onus_core::worker::Kind;
use std::collections::BTreeMap;

pub(crate) use day::page as day;

/// The most workers whose approvals are looked up, and the most tasks that are listed.
const WORKERS: usize = 60;
const TASKS: usize = 25;

pub(crate) fn page() -> Page {
    Page { path: "/effort", name: "Effort", key: Some('e'), ask }
}

pub(crate) fn downloads() -> [Download; 3] {
    let sheet = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
    [
        Download { path: "/download/timesheet.csv", kind: "text/csv; charset=utf-8", ask: csv_file },
        Download { path: "/download/timesheet.xlsx", kind: sheet, ask: xlsx_file },
        Download { path: "/download/timesheet.ics", kind: "text/calendar; charset=utf-8", ask: ics_file },
    ]
}

#[derive(Debug, Template)]
#[template(path = "effort.html")]
struct EffortPage {
    period: String,
    from: String,
    to: String,
    before: String,
    after: String,
    spans: Vec<(&'static str, String, bool)>,
    workers: Vec<(String, bool)>,
    tiles: Vec<(String, &'static str)>,
    chart: Html,
    rows: Vec<WorkerRow>,
    tasks: Vec<SumRow>,
    types: Vec<SumRow>,
    running: i64,
    grid: Option<grid::Grid>,
    /// Nothing where no record says what anything cost.
    cost: Option<cost::CostTrend>,
    /// One day of everybody, in place of bars of which there would be one.
    lines: Option<Html>,
    files: Vec<(&'static str, String)>,
    limits: Vec<LimitRow>,
    person: bool,
}

/// One worker's part of the period.
#[derive(Debug)]
struct WorkerRow {
    worker: String,
    kind: &'static str,
    sums: SumRow,
    approval: (&'static str, String),
    /// What a person would approve.
    body: Option<String>,
    /// The address of its last day of work.
    day: String,
}

#[derive(Debug)]
struct SumRow {
    name: String,
    /// Of a task.
    title: String,
    href: Option<String>,
    time: String,
    billable: String,
    sessions: i64,
    /// How many of them a person corrected.
    corrected: i64,
    tokens: String,
    cost: String,
    /// Of the longest one, in hundredths.
    share: i64,
}

/// The question in the address.
struct EffortQuery {
    name: String,
    days: (Date, Date),
    worker: Option<Handle>,
}

impl EffortQuery {
    fn read(onus: &mut Onus, seen: &PageRequest) -> Result<EffortQuery, Refusal> {
        let worker: Option<Handle> = seen.read("worker")?;
        let (name, days) = match seen.word("period") {
            Some(text) => (text.to_owned(), period(text).map_err(Refusal::invalid)?),
            None => {
                let today = onus.today(worker.as_ref().or(seen.viewer.handle()))?;
                (today.to_string().chars().take("2026-11".len()).collect(), month_of(today))
            }
        };
        Ok(EffortQuery { name, days, worker })
    }

    fn ask(&self, by: &[Dimension]) -> Ask {
        Ask { from: self.days.0, to: self.days.1, worker: self.worker.clone(), by: by.to_vec() }
    }
}

fn ask(onus: &mut Onus, seen: &PageRequest) -> Result<Drawn, Refusal> {
    let asked = EffortQuery::read(onus, seen)?;
    let workers = onus.workers(None)?.workers;
    let kinds: BTreeMap<String, Kind> =
        workers.iter().map(|one| (one.handle.to_string(), one.kind)).collect();
    let daily = onus.timesheet(&asked.ask(&[Dimension::Worker, Dimension::Day]))?;
    let by_worker = onus.timesheet(&asked.ask(&[Dimension::Worker]))?;
    let by_task = onus.timesheet(&asked.ask(&[Dimension::Task]))?;
    let by_type = onus.timesheet(&asked.ask(&[Dimension::Type]))?;
    let today = onus.today(asked.worker.as_ref().or(seen.viewer.handle()))?;
    let mut rows = Vec::new();
    let longest = longest(&by_worker);
    for row in &by_worker.rows {
        let Some(worker) = &row.worker else { continue };
        let approvals = if rows.len() < WORKERS {
            onus.approvals_of(worker, asked.days.0, asked.days.1)?
        } else {
            Vec::new()
        };
        let sums = SumRow::new(row, worker.to_string(), None, &by_worker.currency, longest);
        let own = daily.rows.iter().filter(|other| other.worker.as_ref() == Some(worker));
        let last = own.filter_map(|other| other.day).max();
        let mut told = worker_row(&asked, row, sums, kinds.get(worker.as_str()).copied(), last, &approvals);
        // What still goes on cannot be agreed to.
        if asked.days.1 >= today {
            told.body = None;
        }
        rows.push(told);
    }
    let worker = asked.worker.as_ref().map(ToString::to_string).unwrap_or_default();
    let (before, after) = neighbours(asked.days);
    let at_work: Vec<Handle> = by_worker.rows.iter().filter_map(|row| row.worker.clone()).collect();
    let lines = match asked.days {
        (from, to) if from == to => grid::lines(onus, &at_work, &kinds, from, seen.viewer.tz(), seen.now)?,
        _ => None,
    };
    let mut tasks = sums(&by_task, |row| row.task.as_ref().map(ToString::to_string), TASKS);
    cost::entitle(onus, &mut tasks)?;
    let limits = onus.limits(None)?.limits;
    let cost = cost::trend(onus, &asked, &daily, &limits, today)?;
    let page = EffortPage {
        from: asked.days.0.to_string(),
        to: asked.days.1.to_string(),
        before: seen.with("period", Some(&before)),
        after: seen.with("period", Some(&after)),
        spans: spans(&asked, today, seen),
        workers: workers.iter().map(|one| (one.handle.to_string(), one.handle.as_str() == worker)).collect(),
        tiles: tiles(&by_worker, &workers),
        chart: hours(&daily, &kinds, asked.days),
        rows,
        tasks,
        types: sums(&by_type, |row| row.task_type.clone(), TASKS),
        running: by_worker.running,
        cost,
        grid: grid::grid(&daily, asked.days, today, |day| seen.with("period", Some(&day.to_string()))),
        lines,
        files: files(seen, &asked),
        limits: limits::rows(&limits),
        person: seen.viewer.is_person(),
        period: asked.name,
    };
    Ok(Drawn { title: "Effort".to_owned(), main: rendered(&page)? })
}

/// The day, the week and the month around today, where it is within the period; else around the first day.
fn spans(asked: &EffortQuery, today: Date, seen: &PageRequest) -> Vec<(&'static str, String, bool)> {
    let (from, to) = asked.days;
    let about = if from <= today && today <= to { today } else { from };
    let month: String = about.to_string().chars().take("2026-11".len()).collect();
    let kinds = [("Day", about.to_string()), ("Week", week_name(about)), ("Month", month)];
    let is_here = |name: &str| period(name).is_ok_and(|days| days == (from, to));
    let span =
        |(label, name): (&'static str, String)| (label, seen.with("period", Some(&name)), is_here(&name));
    kinds.into_iter().map(span).collect()
}

fn files(seen: &PageRequest, asked: &EffortQuery) -> Vec<(&'static str, String)> {
    let query = seen.with("period", Some(&asked.name));
    let query = query.split_once('?').map_or("", |(_, query)| query);
    let file = |label, ending| (label, format!("/download/timesheet.{ending}?{query}"));
    vec![file("CSV", "csv"), file("Excel", "xlsx"), file("Calendar", "ics")]
}

fn tiles(sheet: &TimesheetView, workers: &[WorkerView]) -> Vec<(String, &'static str)> {
    let of = |kind: Kind| {
        let own = |row: &&RowView| {
            let whose = workers.iter().find(|one| Some(&one.handle) == row.worker.as_ref());
            whose.is_some_and(|one| one.kind == kind)
        };
        sheet.rows.iter().filter(own).map(|row| row.seconds).sum::<i64>()
    };
    vec![
        (clock(of(Kind::Human)), "people"),
        (clock(of(Kind::Agent)), "agents"),
        (clock(sheet.total_billable_seconds), "billable"),
        (count(sheet.total_tokens), "tokens"),
        (money(sheet.total_cost, &sheet.currency), "cost"),
    ]
}

/// Hours of each day, people and agents on each other.
fn hours(sheet: &TimesheetView, kinds: &BTreeMap<String, Kind>, (from, to): (Date, Date)) -> Html {
    let mut days: BTreeMap<Date, (i64, i64)> = grid::every_day((from, to)).map(|day| (day, (0, 0))).collect();
    for row in &sheet.rows {
        let (Some(worker), Some(day)) = (&row.worker, row.day) else { continue };
        let sums = days.entry(day).or_default();
        match kinds.get(worker.as_str()) {
            Some(Kind::Human) => sums.0 += row.seconds,
            _ => sums.1 += row.seconds,
        }
    }
    let bar = |(day, (people, agents)): (&Date, &(i64, i64))| Bar {
        label: chart::short(&day.to_string()),
        parts: vec![
            ("people", *people, format!("people {}", clock(*people))),
            ("agents", *agents, format!("agents {}", clock(*agents))),
        ],
    };
    let bars: Vec<Bar> = days.iter().map(bar).collect();
    let label = format!("{} of work between {from} and {to}", clock(sheet.total_seconds));
    chart::bars(&label, &bars, Axis::Hours, None)
}

fn worker_row(
    asked: &EffortQuery,
    row: &RowView,
    sums: SumRow,
    kind: Option<Kind>,
    last: Option<Date>,
    approvals: &[ApprovalView],
) -> WorkerRow {
    let worker = row.worker.as_ref().map(ToString::to_string).unwrap_or_default();
    let (from, to) = asked.days;
    let whole = approvals.iter().rfind(|one| one.from <= from && one.to >= to);
    let approval = match whole {
        Some(one) if !one.intact => ("bad", "the record is not what was approved".to_owned()),
        Some(one) if !one.differences.is_empty() => ("warn", format!("changed since {} approved it", one.by)),
        Some(one) => ("good", format!("approved by {}", one.by)),
        None => ("", "not approved".to_owned()),
    };
    let is_settled = approval.0 == "good";
    let body = format!("{{\"worker\":\"{worker}\",\"from\":\"{from}\",\"to\":\"{to}\"}}");
    WorkerRow {
        kind: if kind == Some(Kind::Human) { "person" } else { "agent" },
        sums,
        approval,
        body: (!is_settled).then_some(body),
        day: format!("/effort/day?worker={worker}&day={}", last.unwrap_or(to)),
        worker,
    }
}

fn longest(sheet: &TimesheetView) -> i64 {
    sheet.rows.iter().map(|row| row.seconds).max().unwrap_or(0)
}

/// What cost most first, then the longest.
fn sums(sheet: &TimesheetView, name: impl Fn(&RowView) -> Option<String>, most: usize) -> Vec<SumRow> {
    let mut rows: Vec<&RowView> = sheet.rows.iter().collect();
    rows.sort_by(|one, other| {
        let cost = |row: &RowView| row.cost.unwrap_or(0.0);
        cost(other).total_cmp(&cost(one)).then(other.seconds.cmp(&one.seconds))
    });
    let longest = longest(sheet);
    let told = rows.into_iter().take(most).map(|row| {
        let href = row.task.as_ref().map(|task| format!("/tasks/{task}"));
        SumRow::new(
            row,
            name(row).unwrap_or_else(|| "without a type".to_owned()),
            href,
            &sheet.currency,
            longest,
        )
    });
    told.collect()
}

impl SumRow {
    fn new(row: &RowView, name: String, href: Option<String>, currency: &str, longest: i64) -> SumRow {
        SumRow {
            name,
            title: String::new(),
            href,
            time: clock(row.seconds),
            billable: clock(row.billable_seconds),
            sessions: row.sessions,
            corrected: row.corrected,
            tokens: count(row.tokens),
            cost: money(row.cost, currency),
            share: if longest > 0 { row.seconds * 100 / longest } else { 0 },
        }
    }
}

/// Hours and minutes.
fn clock(seconds: i64) -> String {
    format!("{}:{:02}", seconds / 3_600, seconds / 60 % 60)
}

fn count(tokens: i64) -> String {
    match tokens {
        0 => "–".to_owned(),
        1..10_000 => tokens.to_string(),
        10_000..1_000_000 => format!("{}k", tokens / 1_000),
        _ => format!("{}.{}M", tokens / 1_000_000, tokens / 100_000 % 10),
    }
}

fn money(cost: Option<f64>, currency: &str) -> String {
    cost.map_or_else(|| "–".to_owned(), |cost| format!("{cost:.2} {currency}"))
}

const ROWS: [Dimension; 3] = [Dimension::Worker, Dimension::Task, Dimension::Day];

fn csv_file(onus: &mut Onus, seen: &PageRequest) -> Result<Vec<u8>, Refusal> {
    let asked = EffortQuery::read(onus, seen)?;
    csv::write(&onus.timesheet(&asked.ask(&ROWS))?).map_err(internal)
}

fn xlsx_file(onus: &mut Onus, seen: &PageRequest) -> Result<Vec<u8>, Refusal> {
    let asked = EffortQuery::read(onus, seen)?;
    xlsx::write(&onus.timesheet(&asked.ask(&ROWS))?)
}

fn ics_file(onus: &mut Onus, seen: &PageRequest) -> Result<Vec<u8>, Refusal> {
    let asked = EffortQuery::read(onus, seen)?;
    Ok(ics::write(&onus.calendar(&asked.ask(&ROWS))?).into_bytes())
}

fn internal(error: String) -> Refusal {
    Refusal::new(Code::Internal, error)
}
