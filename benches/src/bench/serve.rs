//! The server's writer: commands of many callers in one commit, beside the same commands one by one and beside one bare
//! UPDATE per commit.

use crate::Extent;
use crate::measure::{Outcome, median_of as median, output};
use crate::place::{Place, Programs, agent, workstation};
use crate::table::Table;
use onus_app::submit::{Receipt, Target};
use onus_app::{Onus, Sight};
use onus_core::code::Code;
use onus_core::command::{Command, Envelope, Warrant};
use onus_core::refusal::Refusal;
use onus_core::settings::Settings;
use onus_core::text::Text;
use onus_server::store::{Open, Store};
use onus_server::writer::Writer;
use onus_store::location::Location;
use onus_store::read::queue::Filter;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const CALLERS: usize = 64;

/// Tasks that were claimed and completed: two commands, and alone two commits, each.
struct Drained {
    tasks: usize,
    took: Duration,
    /// How long each claim took.
    waits: Vec<Duration>,
}

impl Drained {
    fn per_second(&self) -> f64 {
        2.0 * self.tasks as f64 / self.took.as_secs_f64()
    }

    fn p99(&self) -> Duration {
        let mut waits = self.waits.clone();
        waits.sort_unstable();
        waits.get(waits.len() * 99 / 100).copied().unwrap_or_default()
    }
}

fn open(path: &Path) -> Result<Store, Refusal> {
    Ok(Onus {
        store: Location::File(path.to_owned()).open_to_stay(onus_host::clock::now)?,
        settings: Settings::default(),
        path: path.to_owned(),
        place: onus_host::repository::find(path.parent().unwrap_or(path))?,
        sight: Sight::Store,
        bearer: None,
    })
}

fn call(caller: usize, count: usize, held: Option<&Receipt>) -> Result<(Envelope, Target), Refusal> {
    let command = match held {
        None => Command::Claim {
            workstation: Some(workstation(caller).parse().map_err(Refusal::invalid)?),
            here: None,
            assignee: None,
            ttl: None,
            warrant: Warrant::Ordinary,
            constraints: Vec::new(),
        },
        Some(_) => Command::Complete {
            resolution: Some(Text::new("done".to_owned())),
            root_cause: None,
            warrant: Warrant::Ordinary,
            proof: onus_core::evidence::Proof::default(),
        },
    };
    let envelope = Envelope {
        request: format!("{caller}-{count}-{}", command.name()).parse().map_err(Refusal::invalid)?,
        actor: Some(agent(caller).parse().map_err(Refusal::invalid)?),
        token: held.and_then(|held| held.token.clone()),
        task: held.map(|held| held.task.id.clone()),
        project: None,
        base: None,
        command,
    };
    Ok((envelope, if held.is_some() { Target::Named } else { Target::Next(Filter::default()) }))
}

/// Callers that wait for their answers, each claiming and completing until nothing is ready.
fn together(path: &Path) -> Outcome<Drained> {
    let own = path.to_owned();
    let opener: Open = Arc::new(move || open(&own));
    let writer = Writer::start(&opener, Box::new(|_| {}))?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let began = Instant::now();
    let writer = &writer;
    let waits = runtime.block_on(async {
        let callers = (1..=CALLERS).map(|caller| drain(writer, caller));
        futures_util::future::try_join_all(callers).await
    })?;
    let took = began.elapsed();
    let waits: Vec<Duration> = waits.into_iter().flatten().collect();
    Ok(Drained { tasks: waits.len(), took, waits })
}

async fn drain(writer: &Writer, caller: usize) -> Result<Vec<Duration>, Refusal> {
    let mut waits = Vec::new();
    loop {
        let asked = Instant::now();
        let claimed = one(writer, call(caller, waits.len(), None)?).await;
        let waited = asked.elapsed();
        match claimed {
            Ok(receipt) => {
                one(writer, call(caller, waits.len(), Some(&receipt))?).await?;
                waits.push(waited);
            }
            Err(refusal) if refusal.code == Code::NothingReady => return Ok(waits),
            Err(refusal) => return Err(refusal),
        }
    }
}

async fn one(writer: &Writer, call: (Envelope, Target)) -> Result<Receipt, Refusal> {
    let answers = writer.submit(vec![call], None).await?;
    answers.into_iter().next().unwrap_or_else(|| Err(Refusal::new(Code::Internal, "no answer")))
}

/// The same commands, each in a commit of its own.
fn one_by_one(path: &Path, tasks: usize) -> Outcome<Drained> {
    let mut store = open(path)?;
    let (began, mut waits) = (Instant::now(), Vec::new());
    for count in 0..tasks {
        let (envelope, target) = call(1, count, None)?;
        let asked = Instant::now();
        let receipt = store.submit(&envelope, &target)?;
        waits.push(asked.elapsed());
        let (envelope, target) = call(1, count, Some(&receipt))?;
        store.submit(&envelope, &target)?;
    }
    Ok(Drained { tasks, took: began.elapsed(), waits })
}

/// One process with the bare statements, two commits for each task.
fn bare(place: &Place) -> Outcome<f64> {
    let began = Instant::now();
    let said = output(&mut place.raw(&["drain"]))?;
    let tasks: u64 = said.split_whitespace().next().unwrap_or_default().parse()?;
    Ok(2.0 * tasks as f64 / began.elapsed().as_secs_f64())
}

pub(crate) fn run(programs: &Programs, extent: &Extent) -> Outcome<Vec<Table>> {
    let (size, repeats) = (extent.pick(1_000, 4_000, 20_000), extent.pick(1, 3, 5));
    let (mut grouped, mut single, mut raw, mut p99) = (vec![], vec![], vec![], vec![]);
    for _ in 0..repeats {
        let place = Place::with_tasks(programs, CALLERS, size)?;
        // What one by one takes is taken from the same store, first: it is the slower the larger the record is.
        single.push(one_by_one(&place.store(), size / 10)?.per_second());
        let drained = together(&place.store())?;
        grouped.push(drained.per_second());
        p99.push(drained.p99().as_secs_f64() * 1_000.0);
        raw.push(bare(&place)?);
    }
    let [grouped, single, raw, p99] = [grouped, single, raw, p99].map(median);
    let mut table =
        Table::new("The server's writer: 64 callers, claims and completions with ledger and session");
    let figure = |other: f64| format!("{grouped:.0}/s to {other:.0}/s");
    table.at_least("commands, to one bare UPDATE per commit", 1.0, grouped / raw, &figure(raw));
    table.at_least("commands, to the same one by one", 5.0, grouped / single, &figure(single));
    table.below("a claim's wait, p99", 25.0, "ms", p99, format!("{p99:.1} ms"));
    Ok(vec![table, crate::listen::run(programs, extent)?])
}
