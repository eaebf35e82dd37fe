//! Part `cli`: one-shot calls against the bare program, and their growth with the store.

use crate::measure::{Contender, Cost, Outcome, interleaved, millis, ratio};
use crate::place::{Place, Programs, Shape, agent, workstation};
use crate::table::{Table, Verdict};
use crate::{Extent, peers};

const CPU_LIMIT: f64 = 2.0;
const WALL_LIMIT: f64 = 1.5;
const GROWTH_LIMIT: f64 = 1.5;
const MEMORY_LIMIT: u64 = 20 * 1024 * 1024;

/// A call that both programs know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Version,
    Ready,
    List,
    Show,
    Claim,
    ClaimNext,
    Add,
}

impl Call {
    pub(crate) const ALL: &[Call] =
        &[Call::Version, Call::Ready, Call::List, Call::Show, Call::Claim, Call::ClaimNext, Call::Add];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Call::Version => "--version",
            Call::Ready => "ready",
            Call::List => "list",
            Call::Show => "show",
            Call::Claim => "claim",
            Call::ClaimNext => "claim --next",
            Call::Add => "add",
        }
    }

    /// Calls whose time must not grow with the store.
    const GROWTH: &[Call] = &[Call::Ready, Call::Claim, Call::ClaimNext, Call::Show, Call::Add];
}

pub(crate) fn onus(place: &Place, call: Call) -> Contender<'_> {
    let (by, at) = (agent(1), workstation(1));
    let grant = ["--as", &by, "--workstation", &at].map(str::to_owned);
    let release = move |task: String| place.onus(&["release", &task, "--as", &by]);
    match call {
        Call::Version => Contender::new(|_| place.onus(&["--version"])),
        Call::Ready => Contender::new(|_| place.onus(&["ready"])),
        Call::List => Contender::new(|_| place.onus(&["list"])),
        Call::Show => Contender::new(move |turn| place.onus(&["show", &place.target(turn)])),
        Call::Claim => Contender::new(move |turn| {
            let mut claim = place.onus(&["claim", &place.target(turn)]);
            claim.args(&grant);
            claim
        })
        .undone_by(move |turn| release(place.target(turn))),
        Call::ClaimNext => Contender::new(move |_| {
            let mut claim = place.onus(&["claim", "--next"]);
            claim.args(&grant);
            claim
        })
        .undone_by(move |_| release(place.next())),
        Call::Add => {
            Contender::new(|turn| place.onus(&["add", &format!("added {turn}"), "--as", place.person()]))
        }
    }
}

fn raw(place: &Place, call: Call) -> Contender<'_> {
    match call {
        Call::Version => Contender::new(|_| place.raw_version()),
        Call::Ready => Contender::new(|_| place.raw(&["ready"])),
        Call::List => Contender::new(|_| place.raw(&["list"])),
        Call::Show => Contender::new(move |turn| place.raw(&["show", &place.target(turn)])),
        Call::Claim => Contender::new(move |turn| place.raw(&["claim", &place.target(turn)]))
            .undone_by(move |turn| place.raw(&["release", &place.target(turn)])),
        Call::ClaimNext => Contender::new(|_| place.raw(&["claim-next"]))
            .undone_by(|_| place.raw(&["release", &place.next()])),
        Call::Add => Contender::new(|turn| place.raw(&["add", &format!("added {turn}")])),
    }
}

fn compare(table: &mut Table, call: Call, mine: Cost, bare: Cost) {
    let figure = |mine, bare| format!("{:.2} ms to {:.2} ms", millis(mine), millis(bare));
    let name = call.name();
    table.at_most(
        format!("{name}, CPU to raw"),
        CPU_LIMIT,
        ratio(mine.cpu, bare.cpu),
        &figure(mine.cpu, bare.cpu),
    );
    table.at_most(
        format!("{name}, wall to raw"),
        WALL_LIMIT,
        ratio(mine.wall, bare.wall),
        &figure(mine.wall, bare.wall),
    );
}

fn one_size(programs: &Programs, size: usize, repeats: usize) -> Outcome<(Table, Vec<(Call, Cost)>)> {
    let place = Place::with_tasks(programs, 1, size)?;
    let mut table = Table::new(format!("One-shot calls, {} tasks", grouped(size)));
    let mut costs = Vec::new();
    for &call in Call::ALL {
        let measured = interleaved(&mut [onus(&place, call), raw(&place, call)], repeats)?;
        compare(&mut table, call, measured[0], measured[1]);
        costs.push((call, measured[0]));
    }
    let memory = costs.iter().map(|(_, cost)| cost.memory).max().unwrap_or_default();
    let shown = format!("{:.1} MB", memory as f64 / 1024.0 / 1024.0);
    table.row("largest resident memory", "<= 20 MB", shown, Verdict::of(memory <= MEMORY_LIMIT));
    Ok((table, costs))
}

/// The same calls on a small and a large store of one shape.
fn growth(programs: &Programs, shape: Shape, large: usize, repeats: usize) -> Outcome<Table> {
    const SMALL: usize = 1_000;
    let places = (Place::shaped(programs, SMALL, shape)?, Place::shaped(programs, large, shape)?);
    let (calls, how): (&[Call], _) = match shape {
        Shape::SomeWait => (Call::GROWTH, "a tenth waiting"),
        Shape::HeadWaits => (&[Call::Ready, Call::ClaimNext], "the first nine tenths waiting"),
    };
    let mut table = Table::new(format!("Growth from {} to {} tasks, {how}", grouped(SMALL), grouped(large)));
    for &call in calls {
        let measured = interleaved(&mut [onus(&places.1, call), onus(&places.0, call)], repeats)?;
        let (grown, base) = (measured[0], measured[1]);
        let cpu = ratio(grown.cpu, base.cpu);
        let figure = format!("{:.2} ms to {:.2} ms; CPU {cpu:.2}x", millis(grown.wall), millis(base.wall));
        table.at_most(format!("{}, wall", call.name()), GROWTH_LIMIT, ratio(grown.wall, base.wall), &figure);
    }
    Ok(table)
}

pub(crate) fn run(programs: &Programs, extent: &Extent) -> Outcome<Vec<Table>> {
    let repeats = extent.pick(15, 60, 100);
    let sizes: &[usize] = extent.pick(&[100], &[100, 10_000], &[100, 10_000, 1_000_000]);
    let mut tables = Vec::new();
    for &size in sizes {
        let (table, costs) = one_size(programs, size, repeats)?;
        tables.push(table);
        if size == 100 {
            tables.extend(peers::compare(&costs, extent)?);
        }
    }
    for shape in [Shape::SomeWait, Shape::HeadWaits] {
        tables.push(growth(programs, shape, extent.pick(10_000, 100_000, 1_000_000), repeats)?);
    }
    Ok(tables)
}

/// `1000000` as `1,000,000`.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
