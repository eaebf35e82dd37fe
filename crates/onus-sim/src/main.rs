//! `cargo run -p onus-sim --release -- --seed 1 --steps 2000 --store sqlite --runs 100`

use clap::{Parser, ValueEnum};
use onus_sim::hostile::corpus;
use onus_sim::sim::{Counts, Kind, Plan, SeededBug};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Plays seeded simulations against a real store until they are done or one breaks a promise.
#[derive(Debug, Parser)]
struct Arguments {
    /// The first run's seed; the next run takes the next number.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Steps of each run.
    #[arg(long, default_value_t = 1_000)]
    steps: usize,
    #[arg(long, value_enum, default_value_t = Store::Sqlite)]
    store: Store,
    #[arg(long, default_value_t = 1)]
    runs: u64,
    /// Plays nothing, and writes the examples of the hostile tests there, for the fuzzers to begin with.
    #[arg(long, value_name = "DIR")]
    corpus: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Store {
    Sqlite,
    Postgres,
}

/// How many kinds of things happened, most frequent first.
fn told(counts: &Counts) -> String {
    let mut sorted: Vec<_> = counts.iter().collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let parts: Vec<String> = sorted.into_iter().map(|(what, count)| format!("{count} {what}")).collect();
    parts.join(", ")
}

fn main() -> std::io::Result<ExitCode> {
    let Arguments { seed, steps, store, runs, corpus: into } = Arguments::parse();
    if let Some(into) = into {
        return corpus::write(&into).map(|()| ExitCode::SUCCESS);
    }
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr().lock());
    let kind = match store {
        Store::Sqlite => Kind::named("sqlite"),
        Store::Postgres => Kind::named("postgres"),
    };
    let Some(kind) = kind else { return Ok(ExitCode::from(2)) };
    let mut total = Counts::new();
    for run in 0..runs {
        let plan = Plan { kind: kind.clone(), seed: seed.wrapping_add(run), steps, plant: SeededBug::None };
        match plan.run() {
            Ok(counts) => {
                for (what, count) in counts {
                    *total.entry(what).or_default() += count;
                }
            }
            Err(failure) => {
                writeln!(err)?;
                writeln!(out, "{failure}")?;
                return Ok(ExitCode::FAILURE);
            }
        }
        write!(err, "\r{} of {runs} runs", run + 1)?;
        err.flush()?;
    }
    writeln!(err)?;
    let last = seed.wrapping_add(runs.saturating_sub(1));
    writeln!(out, "seeds {seed} to {last}, {steps} steps each, {}: every promise was kept", kind.name())?;
    writeln!(out, "{}", told(&total))?;
    Ok(ExitCode::SUCCESS)
}
