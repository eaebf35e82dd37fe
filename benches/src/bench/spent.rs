//! Whose processor time a run takes. Where the database, the servers and their callers share one machine, that is what
//! limits them all.

use crate::measure::Outcome;
use crate::server::Server;
use onus_testkit::Cluster;
use std::fs;
use std::time::Instant;

/// What the kernel counts in.
const TICKS_PER_SECOND: f64 = 100.0;

/// Seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spent {
    database: f64,
    servers: f64,
    callers: f64,
    wall: f64,
}

impl Spent {
    /// What the database, the servers and this process spend while they work.
    pub(crate) fn during<T>(
        cluster: &Cluster,
        servers: &[&Server],
        work: impl FnOnce() -> Outcome<T>,
    ) -> Outcome<(T, Spent)> {
        let first = fs::read_to_string(cluster.directory().join("data/postmaster.pid"))?;
        let postmaster: u32 = first.lines().next().unwrap_or_default().trim().parse()?;
        let now = || Spent {
            database: of_family(postmaster),
            servers: servers.iter().map(|server| of_process(server.pid())).sum(),
            callers: of_process(std::process::id()),
            wall: 0.0,
        };
        let (before, began) = (now(), Instant::now());
        let done = work()?;
        let (wall, after) = (began.elapsed().as_secs_f64(), now());
        let spent = Spent {
            database: after.database - before.database,
            servers: after.servers - before.servers,
            callers: after.callers - before.callers,
            wall,
        };
        Ok((done, spent))
    }

    /// How much of all processors that was.
    pub(crate) fn share(&self) -> f64 {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        (self.database + self.servers + self.callers) / (self.wall * cores as f64)
    }

    pub(crate) fn for_each_of(&self, commands: usize) -> String {
        let millis = |seconds: f64| seconds * 1e3 / commands.max(1) as f64;
        format!(
            "database {:.2} ms, server {:.2} ms, callers {:.2} ms; {:.0}% of all processors",
            millis(self.database),
            millis(self.servers),
            millis(self.callers),
            self.share() * 100.0
        )
    }
}

/// What a process has spent, in the order of the kernel's line: itself, and the children that it has seen end.
fn spent(pid: u32) -> Option<(u32, f64, f64)> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name comes first, and may contain anything.
    let words: Vec<&str> = line.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |n: usize| words.get(n).and_then(|word| word.parse::<f64>().ok()).unwrap_or_default();
    let parent = words.get(1)?.parse().ok()?;
    Some((parent, (ticks(11) + ticks(12)) / TICKS_PER_SECOND, (ticks(13) + ticks(14)) / TICKS_PER_SECOND))
}

fn of_process(pid: u32) -> f64 {
    spent(pid).map_or(0.0, |(_, own, _)| own)
}

/// A server that has a process for each connection: those that live, and those that have ended.
fn of_family(pid: u32) -> f64 {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let living = pids.filter_map(spent).filter(|(parent, ..)| *parent == pid).map(|(_, own, _)| own);
    spent(pid).map_or(0.0, |(_, own, ended)| own + ended) + living.sum::<f64>()
}
