//! Short simulations on both databases; long ones with `ONUS_SOAK=1`. A simulation that finds nothing proves nothing
//! by itself: every planted bug must be found, by the promise that it breaks.

use onus_sim::seeds;
use onus_sim::sim::{Kind, Plan, SeededBug};
use std::ops::Range;

/// How many steps a run has.
fn steps(short: usize, long: usize) -> usize {
    if std::env::var_os("ONUS_SOAK").is_some() { long } else { short }
}

fn hold(kind: &Kind, runs: Range<u64>, steps: usize) {
    for seed in runs.clone() {
        let plan = Plan { kind: kind.clone(), seed, steps, plant: SeededBug::None };
        if let Err(failure) = plan.run() {
            panic!("{failure}");
        }
        if seed.is_multiple_of(100) {
            eprintln!("seed {seed} of {runs:?} on {}", kind.name());
        }
    }
    eprintln!("{}: seeds {runs:?} played, {steps} steps each", kind.name());
}

#[test]
fn every_promise_is_kept_on_sqlite() {
    hold(&Kind::Sqlite, seeds(12, 500), steps(250, 1_000));
}

#[test]
fn every_promise_is_kept_on_postgres() {
    if let Some(kind) = Kind::named("postgres") {
        hold(&kind, seeds(4, 100), steps(150, 500));
    }
}

/// The promises that a bug may break; a run may come upon any of them first.
fn broken_by(plant: SeededBug) -> &'static [&'static str] {
    match plant {
        SeededBug::None => &[],
        SeededBug::ForgetsCommits => &["acknowledged"],
        SeededBug::ForgetsRequests => &["once"],
        SeededBug::KeepsHalf => &["acknowledged", "fold-gives-row", "once", "one-holder", "sessions"],
        SeededBug::LosesSessions => &["sessions", "refusal"],
        SeededBug::IgnoresLanes => &["lane"],
        SeededBug::IgnoresScopes => &["scope"],
        SeededBug::TakesAllForPeople => &["people-only-force", "expiry-permits"],
        SeededBug::HurriesTime => &["expiry-permits"],
        SeededBug::TrustsAnyToken => &["fence", "once"],
    }
}

#[test]
fn every_planted_bug_is_found_and_made_small() {
    for plant in SeededBug::ALL {
        let found =
            (1..=20).find_map(|seed| Plan { kind: Kind::Sqlite, seed, steps: 300, plant }.run().err());
        let Some(failure) = found else { panic!("{plant:?} was not found") };
        let promise = failure.violation.promise;
        assert!(broken_by(plant).contains(&promise), "{plant:?}: {failure}");
        // A handful of calls shows any of these; a long story would hide it.
        assert!(failure.shortest.len() <= 25, "{plant:?}: {failure}");
        // The same seed brings it back.
        let again = Plan { kind: Kind::Sqlite, seed: failure.seed, steps: failure.steps, plant }.violation();
        assert_eq!(again.map(|violation| violation.promise), Some(promise), "{plant:?}");
    }
}
