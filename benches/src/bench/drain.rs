//! Many processes empty one store: how many claims per second, who waited longest, who got how much.

use crate::measure::{Outcome, output};
use crate::place::{Place, agent, workstation};
use crate::worker;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What the workers of one drain got.
#[derive(Debug, Default)]
pub(crate) struct Drain {
    pub(crate) took: Duration,
    pub(crate) longest_wait: Duration,
    /// Tasks per worker.
    pub(crate) shares: Vec<u64>,
}

impl Drain {
    pub(crate) fn claims(&self) -> u64 {
        self.shares.iter().sum()
    }

    pub(crate) fn per_second(&self) -> f64 {
        self.claims() as f64 / self.took.as_secs_f64()
    }

    pub(crate) fn served(&self) -> usize {
        self.shares.iter().filter(|share| **share > 0).count()
    }

    pub(crate) fn shares(&self) -> String {
        let least = self.shares.iter().min().copied().unwrap_or_default();
        let most = self.shares.iter().max().copied().unwrap_or_default();
        format!("{least} to {most} tasks each")
    }

    fn of(took: Duration, workers: Vec<(u64, Duration)>) -> Drain {
        Drain {
            took,
            longest_wait: workers.iter().map(|(_, wait)| *wait).max().unwrap_or_default(),
            shares: workers.into_iter().map(|(share, _)| share).collect(),
        }
    }
}

/// One worker: one-shot calls until one says that nothing is ready.
fn one_shot(
    mut claim: impl FnMut() -> Command,
    mut complete: impl FnMut(&str) -> Command,
) -> std::io::Result<(u64, Duration)> {
    let (mut share, mut longest) = (0, Duration::ZERO);
    loop {
        let began = Instant::now();
        let claimed = claim().stdin(Stdio::null()).output()?;
        longest = longest.max(began.elapsed());
        let task = String::from_utf8_lossy(&claimed.stdout).trim().to_owned();
        match claimed.status.code() {
            Some(0) if !task.is_empty() => share += 1,
            Some(0 | 6) => return Ok((share, longest)),
            _ => return Err(std::io::Error::other(String::from_utf8_lossy(&claimed.stderr).into_owned())),
        }
        let completed = complete(&task).stdin(Stdio::null()).output()?;
        if !completed.status.success() {
            return Err(std::io::Error::other(String::from_utf8_lossy(&completed.stderr).into_owned()));
        }
    }
}

/// All workers at once, from the first call to the last answer.
fn all<W>(workers: usize, one: W) -> Outcome<Drain>
where
    W: Fn(usize) -> std::io::Result<(u64, Duration)> + Sync,
{
    let began = Instant::now();
    let ends: Vec<std::io::Result<(u64, Duration)>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=workers)
            .map(|n| {
                scope.spawn({
                    let one = &one;
                    move || one(n)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(std::io::Error::other("a worker panicked"))))
            .collect()
    });
    let took = began.elapsed();
    Ok(Drain::of(took, ends.into_iter().collect::<std::io::Result<_>>()?))
}

/// `onus claim --next` and `onus complete`, each a process of its own.
pub(crate) fn onus(place: &Place, workers: usize) -> Outcome<Drain> {
    all(workers, |n| {
        let (by, at) = (agent(n), workstation(n));
        one_shot(
            || place.onus(&["claim", "--next", "--as", &by, "--workstation", &at, "--json"]),
            |answer| {
                let document: serde_json::Value = serde_json::from_str(answer).unwrap_or_default();
                let task = document["task"]["id"].as_str().unwrap_or_default();
                place.onus(&["complete", task, "--as", &by, "--resolution", "done"])
            },
        )
    })
}

/// The same pair of calls, bare.
pub(crate) fn raw(place: &Place, workers: usize) -> Outcome<Drain> {
    all(workers, |_| one_shot(|| place.raw(&["claim-next"]), |task| place.raw(&["complete", task])))
}

/// One process per worker that stays, claiming and completing in a loop through the store's own code.
pub(crate) fn onus_loops(place: &Place, workers: usize) -> Outcome<Drain> {
    let own = std::env::current_exe()?;
    all(workers, |n| {
        let mut stays = Command::new(&own);
        stays.arg(worker::WORD).arg(place.store()).args([agent(n), workstation(n)]);
        counted(&mut stays)
    })
}

/// The same with the bare statements: the most that the database gives, fair or not.
pub(crate) fn raw_loops(place: &Place, workers: usize) -> Outcome<Drain> {
    all(workers, |_| counted(&mut place.raw(&["drain"])))
}

/// Reads what a worker that stays prints: how many, and the longest wait in microseconds.
fn counted(command: &mut Command) -> std::io::Result<(u64, Duration)> {
    let said = output(command).map_err(|error| std::io::Error::other(error.to_string()))?;
    let mut words = said.split_whitespace().map(|word| word.parse::<u64>().unwrap_or_default());
    Ok((words.next().unwrap_or_default(), Duration::from_micros(words.next().unwrap_or_default())))
}
