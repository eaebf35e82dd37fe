//! Part `effort`: a month of very many sessions, and one worker's day in it.

use crate::Extent;
use crate::cli::grouped;
use crate::measure::{Contender, Outcome, interleaved, millis, output, ratio};
use crate::place::{Place, Programs, Shape};
use crate::table::{Table, Verdict};
use std::time::Duration;

/// So many that a worker's day looks like one: some seventy sessions on four tasks.
const WORKERS: i64 = 500;
const TASKS: usize = 20_000;

/// 1 October 2026 in UTC, in milliseconds; and the month's length.
const FROM: i64 = 1_790_812_800_000;
const MONTH: i64 = 31 * 86_400_000;

const FILL_WORKERS: &str = "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1)
    INSERT INTO worker (workspace, handle, kind, state, tz) SELECT 1, '@w' || i, 'agent', 'active',
        CASE i % 3 WHEN 0 THEN 'UTC' WHEN 1 THEN 'Europe/Berlin' ELSE 'America/New_York' END FROM n";
const FILL_SESSIONS: &str = "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1)
    INSERT INTO session (id, workspace, task, epoch, worker, workstation, started_at, ended_at, end_reason)
    SELECT i + 1000000, 1, 'B-' || ((i % ?2 * 40 + i / ?2 / 17) % ?3 + 1), 1, '@w' || (i % ?2), 'ws-' || (i % ?2),
        ?4 + i * ?5 / ?1 / 1000 * 1000, ?4 + i * ?5 / ?1 / 1000 * 1000 + 600000 + i % 60 * 1000, 'released'
    FROM n";

/// Fills a store with sessions that nobody worked: only reading is measured.
fn filled(programs: &Programs, sessions: usize) -> Outcome<Place> {
    let mut place = Place::empty(programs, 0)?;
    place.write_tasks(TASKS, Shape::SomeWait)?;
    output(&mut place.import())?;
    let store = rusqlite::Connection::open(place.store())?;
    store.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF; BEGIN")?;
    store.execute(FILL_WORKERS, [WORKERS])?;
    let (sessions, tasks) = (i64::try_from(sessions)?, i64::try_from(TASKS)?);
    store.execute(FILL_SESSIONS, [sessions, WORKERS, tasks, FROM, MONTH])?;
    store.execute_batch("COMMIT")?;
    drop(store);
    place.settled_bytes()?;
    Ok(place)
}

pub(crate) fn run(programs: &Programs, extent: &Extent) -> Outcome<Vec<Table>> {
    let sessions = extent.pick(100_000, 1_000_000, 1_000_000);
    let place = filled(programs, sessions)?;
    let repeats = extent.pick(3, 5, 9);
    let (from, to) = (FROM.to_string(), (FROM + MONTH).to_string());
    let month = Contender::new(|_| place.onus(&["timesheet", "--month", "2026-10", "--json"]));
    let aggregate = Contender::new(|_| place.raw_on_store(&["timesheet", &from, &to]));
    let costs = interleaved(&mut [month, aggregate], repeats)?;
    let (mine, bare) = (costs[0], costs[1]);
    let mut table = Table::new("Effort");
    let figure = format!(
        "{:.0} ms to {:.0} ms; CPU {:.0} ms to {:.0} ms: {:.2}x",
        millis(mine.wall),
        millis(bare.wall),
        millis(mine.cpu),
        millis(bare.cpu),
        ratio(mine.cpu, bare.cpu)
    );
    let what = format!("timesheet of a month, {} sessions, to raw", grouped(sessions));
    table.at_most(what, 3.0, ratio(mine.wall, bare.wall), &figure);
    let day = Contender::new(|_| place.onus(&["worker", "day", "@w1", "--date", "2026-10-15", "--json"]));
    let day = interleaved(&mut [day], repeats.max(9))?[0];
    let met = Verdict::of(day.wall < Duration::from_millis(10));
    let figure = format!("{:.1} ms, CPU {:.1} ms", millis(day.wall), millis(day.cpu));
    table.row("worker day, in the same store", "< 10 ms", figure, met);
    Ok(vec![table])
}
