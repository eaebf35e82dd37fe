//! A run from its seed, and the shortest way to the same failure.

use super::judge::Violation;
use super::play::{Counts, Play};
use super::seeded_bugs::SeededBug;
use super::step::{Step, drawn};
use super::store::Kind;
use std::fmt;

/// What a run is made from.
#[derive(Debug, Clone)]
pub struct Plan {
    pub kind: Kind,
    pub seed: u64,
    pub steps: usize,
    pub plant: SeededBug,
}

/// How often a failing run is played again to make it shorter.
const ATTEMPTS: usize = 120;

/// A run that broke a promise.
#[derive(Debug)]
pub struct Failure {
    pub seed: u64,
    pub steps: usize,
    pub store: &'static str,
    pub violation: Violation,
    /// As few steps as were found to lead there.
    pub shortest: Vec<Step>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { seed, steps, store, violation, shortest } = self;
        writeln!(f, "{violation}")?;
        writeln!(f, "seed {seed}; {} of its {steps} steps suffice:", shortest.len())?;
        for step in shortest {
            writeln!(f, "  {step:?}")?;
        }
        write!(f, "again: cargo run -p onus-sim --release -- --seed {seed} --steps {steps} --store {store}")
    }
}

impl Plan {
    /// Plays the seed's steps.
    pub fn run(&self) -> Result<Counts, Box<Failure>> {
        let steps = drawn(self.seed, self.steps);
        match self.play(&steps) {
            Ok(counts) => Ok(counts),
            Err((at, violation)) => {
                let (violation, shortest) = self.shortened(&steps[..at], violation);
                let (seed, steps, store) = (self.seed, self.steps, self.kind.name());
                Err(Box::new(Failure { seed, steps, store, violation, shortest }))
            }
        }
    }

    /// The promise that the seed's steps break, without looking for a shorter way there.
    pub fn violation(&self) -> Option<Violation> {
        self.play(&drawn(self.seed, self.steps)).err().map(|(_, violation)| violation)
    }

    /// Where it fails: behind how many steps, and how.
    fn play(&self, steps: &[Step]) -> Result<Counts, (usize, Violation)> {
        let mut play = Play::new(&self.kind, self.plant).map_err(|violation| (0, violation))?;
        for (at, step) in steps.iter().enumerate() {
            play.step(step).map_err(|violation| (at + 1, violation))?;
        }
        play.finish().map_err(|violation| (steps.len(), violation))?;
        Ok(play.counts)
    }

    /// Leaves steps out, in ever smaller pieces, as long as the same promise is broken (delta debugging).
    fn shortened(&self, steps: &[Step], violation: Violation) -> (Violation, Vec<Step>) {
        let (mut shortest, mut last) = (steps.to_vec(), violation);
        let mut piece = shortest.len().div_ceil(2);
        let mut attempts = 0;
        while piece > 0 && attempts < ATTEMPTS {
            let mut from = 0;
            let mut is_shorter = false;
            while from < shortest.len() && attempts < ATTEMPTS {
                let mut fewer = shortest.clone();
                fewer.drain(from..(from + piece).min(shortest.len()));
                attempts += 1;
                match self.play(&fewer) {
                    Err((at, found)) if found.promise == last.promise => {
                        fewer.truncate(at);
                        (shortest, last, is_shorter) = (fewer, found, true);
                    }
                    _ => from += piece,
                }
            }
            if !is_shorter || piece > shortest.len() {
                piece = if piece == 1 { 0 } else { piece.div_ceil(2).min(shortest.len()) };
            }
        }
        (last, shortest)
    }
}
