//! Part `store`: many processes on one store, bulk work, the ledger's cost in time and space.

use crate::Extent;
use crate::cli::grouped;
use crate::drain::{self, Drain};
use crate::measure::{Contender, Cost, Outcome, interleaved, millis, ratio};
use crate::place::{Place, Programs, Shape, agent, id, workstation};
use crate::table::{Table, Verdict};
use std::fs;
use std::time::Duration;

const WORKERS: usize = 64;

/// A way to empty a place with many workers.
type Emptying = fn(&Place, usize) -> Outcome<Drain>;

/// Two ways side by side, in turns on fresh places: the disk's mood changes within minutes. Everybody is served,
/// nobody waits long, and the sum is near the bare one.
fn judge(
    table: &mut Table,
    programs: &Programs,
    how: &str,
    (mine, bare): (Emptying, Emptying),
    (rounds, tasks): (usize, usize),
) -> Outcome<()> {
    let mut pairs = Vec::new();
    for _ in 0..rounds {
        let place = Place::with_tasks(programs, WORKERS, tasks)?;
        pairs.push((mine(&place, WORKERS)?, bare(&place, WORKERS)?));
    }
    pairs.sort_by(|one, other| pace(one).total_cmp(&pace(other)));
    let middle = &pairs[pairs.len() / 2];
    let figure = format!("{:.0}/s to {:.0}/s", middle.0.per_second(), middle.1.per_second());
    table.at_least(format!("{how}: tasks/s to raw"), 0.5, pace(middle), &figure);

    let longest = |waits: &mut dyn Iterator<Item = Duration>| waits.max().unwrap_or_default();
    let wait = longest(&mut pairs.iter().map(|pair| pair.0.longest_wait));
    let met = Verdict::of(wait < Duration::from_secs(2));
    table.row(
        format!("{how}: longest wait for a claim"),
        "< 2 s",
        format!("{:.2} s", wait.as_secs_f64()),
        met,
    );
    let least = pairs.iter().map(|pair| pair.0.served()).min().unwrap_or_default();
    let served = format!("{least} of {WORKERS}; {}", middle.0.shares());
    table.row(format!("{how}: workers served"), "all", served, Verdict::of(least == WORKERS));
    let all = pairs.iter().all(|pair| pair.0.claims() == tasks as u64);
    let figure = format!("{} in each of {rounds} rounds", middle.0.claims());
    table.row(format!("{how}: tasks completed"), &grouped(tasks), figure, Verdict::of(all));

    let wait = longest(&mut pairs.iter().map(|pair| pair.1.longest_wait)).as_secs_f64();
    let (served, shares) = (middle.1.served(), middle.1.shares());
    let figure = format!("{served} of {WORKERS} served; {shares}; longest wait {wait:.2} s");
    table.row(format!("{how}: raw"), "-", figure, Verdict::Shown);
    Ok(())
}

fn pace(pair: &(Drain, Drain)) -> f64 {
    pair.0.per_second() / pair.1.per_second()
}

fn contention(programs: &Programs, extent: &Extent) -> Outcome<Table> {
    let mut table = Table::new(format!("{WORKERS} processes on one store, claim --next and complete"));
    let rounds = extent.pick(1, 5, 9);
    let stay: (Emptying, Emptying) = (drain::onus_loops, drain::raw_loops);
    let size = (rounds, extent.pick(640, 1_280, 2_560));
    judge(&mut table, programs, "processes that stay", stay, size)?;
    let one_shot: (Emptying, Emptying) = (drain::onus, drain::raw);
    let size = (rounds, extent.pick(320, 640, 1_280));
    judge(&mut table, programs, "one-shot calls", one_shot, size)?;
    Ok(table)
}

fn side_by_side(table: &mut Table, what: &str, mine: Cost, bare: Cost) {
    let wall = format!("{:.0} ms to {:.0} ms", millis(mine.wall), millis(bare.wall));
    let cpu = format!("CPU {:.0} ms to {:.0} ms", millis(mine.cpu), millis(bare.cpu));
    let (wall_ratio, cpu_ratio) = (ratio(mine.wall, bare.wall), ratio(mine.cpu, bare.cpu));
    table.at_most(format!("{what}, to raw"), 3.0, wall_ratio, &format!("{wall}; {cpu}: {cpu_ratio:.2}x"));
}

/// Imports into a fresh store each time; the bare program fills a fresh database beside it.
fn bulk(programs: &Programs, extent: &Extent, table: &mut Table) -> Outcome<()> {
    let size = extent.pick(10_000, 100_000, 100_000);
    let count = size.to_string();
    let places: Vec<Place> = (0..5)
        .map(|_| {
            let mut place = Place::empty(programs, 0)?;
            place.write_tasks(size, Shape::SomeWait)?;
            Ok(place)
        })
        .collect::<Outcome<_>>()?;
    let fresh = |turn: usize| &places[turn % places.len()];
    let import = Contender::new(|turn| fresh(turn).import());
    let insert = Contender::new(|turn| fresh(turn).raw(&["bulk", &count]));
    let costs = interleaved(&mut [import, insert], places.len() - 2)?;
    side_by_side(table, &format!("import of {} tasks", grouped(size)), costs[0], costs[1]);

    let place = &places[0];
    let repeats = extent.pick(3, 5, 9);
    let export = Contender::new(|_| place.onus(&["export"]));
    let select = Contender::new(|_| place.raw(&["export"]));
    let costs = interleaved(&mut [export, select], repeats)?;
    side_by_side(table, &format!("export of {} tasks", grouped(size)), costs[0], costs[1]);

    place.install_hooks()?;
    for verb in ["validate", "consistency"] {
        let cost = interleaved(&mut [Contender::new(|_| place.onus(&[verb]))], repeats)?[0];
        let met = Verdict::of(cost.wall < Duration::from_secs(2));
        let figure = format!("{:.2} s", cost.wall.as_secs_f64());
        table.row(format!("{verb} of {} tasks", grouped(size)), "< 2 s", figure, met);
    }

    let entries = place.ledger_entries()?;
    let verify = interleaved(&mut [Contender::new(|_| place.onus(&["ledger", "verify"]))], repeats)?[0];
    let rate = entries as f64 / verify.wall.as_secs_f64();
    let cpu = entries as f64 / verify.cpu.as_secs_f64();
    let figure =
        format!("{rate:.0}/s; {cpu:.0} per second of CPU ({} entries)", grouped(usize::try_from(entries)?));
    table.row("ledger verify", ">= 200000/s", figure, Verdict::of(rate >= 200_000.0));
    Ok(())
}

/// The bytes that one task costs with its whole story: asked, claimed, noted, completed.
fn story(programs: &Programs, extent: &Extent, table: &mut Table) -> Outcome<()> {
    let tasks = extent.pick(100, 400, 1_000);
    let place = Place::empty(programs, 1)?;
    let before = place.settled_bytes()?;
    let (by, at) = (agent(1), workstation(1));
    for n in 1..=tasks {
        let task = id(n);
        place.by_person(&["add", &format!("task number {n}")])?;
        place.say(&["claim", &task, "--as", &by, "--workstation", &at])?;
        place.say(&["note", &task, "half of it is there, the tests come next", "--as", &by])?;
        place.say(&["complete", &task, "--as", &by, "--resolution", "merged with its tests"])?;
    }
    let bytes = (place.settled_bytes()? - before) / tasks as u64;
    table.row(
        "store, per completed task",
        "<= 1536 bytes",
        format!("{bytes} bytes"),
        Verdict::of(bytes <= 1_536),
    );
    let size = fs::metadata(place.store())?.len();
    table.row(
        format!("store with {} completed tasks", grouped(tasks)),
        "-",
        format!("{} KB", size / 1024),
        Verdict::Shown,
    );
    Ok(())
}

pub(crate) fn run(programs: &Programs, extent: &Extent) -> Outcome<Vec<Table>> {
    let contention = contention(programs, extent)?;
    let mut table = Table::new("Bulk work and the ledger");
    bulk(programs, extent, &mut table)?;
    story(programs, extent, &mut table)?;
    Ok(vec![contention, table])
}
