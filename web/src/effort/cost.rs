//! What the work cost: day by day, and beside the period before.

use super::{EffortQuery, SumRow, grid, money};
use crate::chart::{self, Axis, Bar};
use crate::html::Html;
use onus_app::Onus;
use onus_app::limits::LimitView;
use onus_app::timesheet::{Ask, TimesheetView};
use onus_core::id::TaskId;
use onus_core::limits::{LimitScope, Measure};
use onus_core::refusal::Refusal;
use onus_core::time::Date;
use onus_core::timesheet::{Dimension, neighbours, period};
use onus_store::port::Store;
use onus_store::read::effort;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct CostTrend {
    pub(super) chart: Html,
    /// How it stands to the period before.
    pub(super) told: String,
    /// What a day may cost, where the chart has a line of it.
    pub(super) line: Option<String>,
}

/// The cost of each day; nothing where no record says what anything cost.
pub(super) fn trend(
    onus: &mut Onus,
    asked: &EffortQuery,
    daily: &TimesheetView,
    limits: &[LimitView],
    today: Date,
) -> Result<Option<CostTrend>, Refusal> {
    let Some(total) = daily.total_cost else { return Ok(None) };
    let before = before(onus, asked)?;
    let currency = &daily.currency;
    let told = match before {
        // A part of a period is no match for a whole one.
        Some(before) if asked.days.1 >= today => {
            format!("so far; {} in the whole period before", money(Some(before), currency))
        }
        Some(before) => {
            format!("{} in the period before: {}", money(Some(before), currency), compared(total, before))
        }
        None => "nothing was recorded in the period before".to_owned(),
    };
    let limit = day_limit(asked, limits);
    let limit = limit.map(|limit| ((limit * 100.0).round() as i64, money(Some(limit), currency)));
    let line = limit.as_ref().map(|(_, words)| words.clone());
    Ok(Some(CostTrend { chart: bars(daily, asked.days, limit), told, line }))
}

/// What a day may cost: of the worker that is looked at, else of everybody.
fn day_limit(asked: &EffortQuery, limits: &[LimitView]) -> Option<f64> {
    let is_asked = |limit: &&LimitView| match &asked.worker {
        Some(worker) => limit.scope == LimitScope::WorkerDay && limit.of == worker.as_str(),
        None => limit.scope == LimitScope::WorkspaceDay,
    };
    let limit = limits.iter().filter(is_asked).find(|limit| limit.measure == Measure::Cost)?;
    Some(limit.limit)
}

/// What the period before this one cost.
fn before(onus: &mut Onus, asked: &EffortQuery) -> Result<Option<f64>, Refusal> {
    let Ok((from, to)) = period(&neighbours(asked.days).0) else { return Ok(None) };
    let ask = Ask { from, to, worker: asked.worker.clone(), by: vec![Dimension::Worker] };
    Ok(onus.timesheet(&ask)?.total_cost)
}

/// In hundredths, as people compare sums.
fn compared(now: f64, before: f64) -> String {
    if before <= 0.0 {
        return "it cost nothing".to_owned();
    }
    match ((now / before - 1.0) * 100.0).round() {
        0.0 => "as much".to_owned(),
        more if more > 0.0 => format!("{more:.0} % more now"),
        less => format!("{:.0} % less now", -less),
    }
}

fn bars(daily: &TimesheetView, days: (Date, Date), limit: Option<(i64, String)>) -> Html {
    let mut cents: BTreeMap<Date, i64> = grid::every_day(days).map(|day| (day, 0)).collect();
    for row in &daily.rows {
        if let (Some(day), Some(cost)) = (row.day, row.cost) {
            *cents.entry(day).or_default() += (cost * 100.0).round() as i64;
        }
    }
    let currency = &daily.currency;
    let words = |cents: i64| money(Some(cents as f64 / 100.0), currency);
    let bar = |(day, cents): (&Date, &i64)| Bar {
        label: chart::short(&day.to_string()),
        parts: vec![("agents", *cents, words(*cents))],
    };
    let bars: Vec<Bar> = cents.iter().map(bar).collect();
    let label = format!("{} between {} and {}", money(daily.total_cost, currency), days.0, days.1);
    chart::bars(&label, &bars, Axis::Cents, limit)
}

/// A number says little without its title.
pub(super) fn entitle(onus: &mut Onus, rows: &mut [SumRow]) -> Result<(), Refusal> {
    let titles = onus.store.read(|tx| {
        let title = |row: &SumRow| match row.name.parse::<TaskId>() {
            Ok(task) => effort::title(tx, &task),
            Err(_) => Ok(String::new()),
        };
        rows.iter().map(title).collect::<onus_store::error::Result<Vec<String>>>()
    })?;
    for (row, title) in rows.iter_mut().zip(titles) {
        row.title = title;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::compared;

    #[test]
    fn a_sum_is_compared_as_people_do() {
        assert_eq!(compared(12.0, 10.0), "20 % more now");
        assert_eq!(compared(5.0, 10.0), "50 % less now");
        assert_eq!(compared(10.01, 10.0), "as much");
        assert_eq!(compared(1.0, 0.0), "it cost nothing");
    }
}
