//! Who worked how long on which day, at a glance; and one day of everybody as lines of hours.

use super::clock;
use crate::chart::{self, Stretch};
use crate::html::Html;
use onus_app::Onus;
use onus_app::timesheet::TimesheetView;
use onus_core::id::Handle;
use onus_core::refusal::Refusal;
use onus_core::time::{Date, Timestamp};
use onus_core::timesheet::neighbours;
use onus_core::worker::Kind;
use onus_host::zone;
use std::collections::BTreeMap;

/// The most days that stand side by side.
const DAYS: usize = 31;

const WEEK: usize = 7;

/// The most workers that have a line of hours.
const LINES: usize = 40;

/// Worker by day.
#[derive(Debug)]
pub(super) struct Grid {
    /// The day in short, and its address.
    pub(super) days: Vec<(String, String)>,
    pub(super) rows: Vec<GridRow>,
}

#[derive(Debug)]
pub(super) struct GridRow {
    pub(super) worker: String,
    pub(super) cells: Vec<GridCell>,
    pub(super) total: String,
}

#[derive(Debug)]
pub(super) struct GridCell {
    /// Hours and minutes; empty where there is nothing.
    pub(super) time: String,
    pub(super) href: String,
    /// From 0 to 4: how much of the longest day.
    pub(super) level: i64,
}

/// Every day between two, both included.
pub(super) fn every_day((from, to): (Date, Date)) -> impl Iterator<Item = Date> {
    let next = |day: &Date| neighbours((*day, *day)).1.parse::<Date>().ok().filter(|next| next > day);
    std::iter::successors(Some(from), next).take_while(move |day| *day <= to)
}

/// Nothing for one day, or for more days than fit.
pub(super) fn grid(
    sheet: &TimesheetView,
    (from, to): (Date, Date),
    today: Date,
    address: impl Fn(Date) -> String,
) -> Option<Grid> {
    // What has not come yet says nothing.
    let days: Vec<Date> =
        every_day((from, if from < today { to.min(today) } else { to })).take(DAYS + 1).collect();
    if days.len() < 2 || days.len() > DAYS {
        return None;
    }
    let mut workers: BTreeMap<String, BTreeMap<Date, i64>> = BTreeMap::new();
    for row in &sheet.rows {
        if let (Some(worker), Some(day)) = (&row.worker, row.day) {
            *workers.entry(worker.to_string()).or_default().entry(day).or_default() += row.seconds;
        }
    }
    // A month in which work began late begins there; a week is shown whole.
    let begun = workers.values().filter_map(|own| own.keys().next()).min();
    let days = match days.iter().position(|day| Some(day) == begun) {
        Some(first) if days.len() > WEEK => days[first.min(days.len() - WEEK)..].to_vec(),
        _ => days,
    };
    let longest = workers.values().flat_map(BTreeMap::values).copied().max().unwrap_or(0).max(1);
    let row = |(worker, own): (String, BTreeMap<Date, i64>)| GridRow {
        cells: days
            .iter()
            .map(|day| {
                let seconds = own.get(day).copied().unwrap_or(0);
                GridCell {
                    time: if seconds > 0 { clock(seconds) } else { String::new() },
                    href: format!("/effort/day?worker={worker}&day={day}"),
                    level: (seconds * 4 + longest - 1) / longest,
                }
            })
            .collect(),
        total: clock(own.values().sum()),
        worker,
    };
    let head = |day: &Date| (chart::short(&day.to_string()), address(*day));
    Some(Grid { days: days.iter().map(head).collect(), rows: workers.into_iter().map(row).collect() })
}

/// One day of everybody who worked, with a line where now is.
pub(super) fn lines(
    onus: &mut Onus,
    workers: &[Handle],
    kinds: &BTreeMap<String, Kind>,
    day: Date,
    tz: &str,
    now: Timestamp,
) -> Result<Option<Html>, Refusal> {
    let span = zone::days(tz, day, day).map_err(Refusal::invalid)?;
    let (begin, minutes) = (span.begin(), span.end().since(span.begin()).0 / 60_000);
    let (mut rows, mut stretches) = (Vec::new(), Vec::new());
    for worker in workers.iter().take(LINES) {
        let sessions = onus.day(worker, day)?.sessions;
        if sessions.is_empty() {
            continue;
        }
        let whose = if kinds.get(worker.as_str()) == Some(&Kind::Human) { "people" } else { "agents" };
        for session in &sessions {
            let from = session.started_at.since(begin).0 / 60_000;
            stretches.push(Stretch {
                row: rows.len(),
                from,
                to: from + session.seconds / 60,
                words: format!(
                    "{worker}: {}, {} in {}",
                    session.task,
                    clock(session.seconds),
                    session.workstation
                ),
                whose,
                running: session.running,
            });
        }
        rows.push(worker.to_string());
    }
    let now = now.since(begin).0 / 60_000;
    let label = format!("Who worked when on {day}");
    Ok((!rows.is_empty()).then(|| chart::day(&label, &rows, minutes, &stretches, Some(now))))
}
