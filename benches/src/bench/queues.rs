//! Queues that teams use today, drained on the same durable server. They are installed into a temporary folder.

use crate::Extent;
use crate::measure::{Outcome, median_of as median, output};
use crate::place::{Place, Programs};
use crate::server::{Server, drain};
use crate::table::{Table, Verdict};
use crate::team::{furnished, tokens};
use onus_testkit::Cluster;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// How many work at once.
const WORKERS: usize = 16;

/// The programs that drain them: each prints jobs per second.
const SCRIPTS: [(&str, &str); 4] = [
    ("graphile-worker.mjs", include_str!("../../peers/graphile-worker.mjs")),
    ("pg-boss.mjs", include_str!("../../peers/pg-boss.mjs")),
    ("drain_procrastinate.py", include_str!("../../peers/drain_procrastinate.py")),
    ("drain_pgqueuer.py", include_str!("../../peers/drain_pgqueuer.py")),
];

struct Queue {
    name: &'static str,
    script: &'static str,
    /// What the script is told after the database and the number of jobs.
    words: &'static [&'static str],
    /// One job at a time: comparable, and to be reached.
    is_goal: bool,
}

const QUEUES: [Queue; 6] = [
    Queue { name: "graphile-worker", script: "graphile-worker.mjs", words: &["16", "0"], is_goal: true },
    Queue { name: "pg-boss", script: "pg-boss.mjs", words: &["16"], is_goal: true },
    Queue { name: "procrastinate", script: "drain_procrastinate.py", words: &["16"], is_goal: true },
    Queue {
        name: "graphile-worker, 500 fetched at a time",
        script: "graphile-worker.mjs",
        words: &["16", "500"],
        is_goal: false,
    },
    Queue { name: "pgqueuer, in tens", script: "drain_pgqueuer.py", words: &["10"], is_goal: false },
    Queue { name: "pgqueuer, in hundreds", script: "drain_pgqueuer.py", words: &["100"], is_goal: false },
];

pub(crate) fn run(cluster: &Cluster, programs: &Programs, extent: &Extent) -> Outcome<Table> {
    let peers = install()?;
    let (turns, jobs) = (extent.pick(1, 3, 5), extent.pick(2_000, 5_000, 20_000));
    let share = jobs / WORKERS;
    let place = Place::sized(programs, WORKERS, turns * jobs * 10 / 9 + 100)?;
    let url = furnished(cluster, &place)?;
    let tokens = tokens(&place, &url, WORKERS)?;
    let server = Server::start(&place, Some(&url))?;
    let mut own = Vec::new();
    let mut theirs = vec![Vec::new(); QUEUES.len()];
    for _ in 0..turns {
        own.push(drain(&[&server], &tokens, share)?.tasks_per_second());
        for (queue, rates) in QUEUES.iter().zip(&mut theirs) {
            rates.push(queue.drain(peers.path(), &cluster.database(), jobs)?);
        }
    }
    let own = median(own);
    let mut table = Table::new("Tasks drained, beside queues on the same server, 16 workers");
    table.row("onus, through HTTP, one at a time", "-", format!("{own:.0}/s"), Verdict::Shown);
    for (queue, rates) in QUEUES.iter().zip(theirs) {
        let rate = median(rates);
        let figure = format!("{own:.0}/s to {rate:.0}/s");
        match queue.is_goal {
            true => table.at_least(format!("to {}", queue.name), 1.0, own / rate, &figure),
            false => {
                let figure = format!("{:.2}x ({figure})", own / rate);
                table.row(format!("to {}", queue.name), "-", figure, Verdict::Shown);
            }
        }
    }
    Ok(table)
}

impl Queue {
    /// Jobs per second.
    fn drain(&self, peers: &Path, database: &str, jobs: usize) -> Outcome<f64> {
        let program = match self.script.ends_with(".py") {
            true => peers.join("venv/bin/python"),
            false => "node".into(),
        };
        let mut command = Command::new(program);
        command.arg(peers.join(self.script)).args([database, &jobs.to_string()]).args(self.words);
        let said = output(&mut command)?;
        Ok(said.trim().parse().map_err(|_| format!("{} told no rate: {said}", self.name))?)
    }
}

fn install() -> Outcome<TempDir> {
    let dir = tempfile::Builder::new().prefix("onus-bench-").tempdir()?;
    for (name, text) in SCRIPTS {
        std::fs::write(dir.path().join(name), text)?;
    }
    std::fs::write(dir.path().join("package.json"), "{\"private\":true}")?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--no-audit", "--no-fund", "graphile-worker", "pg-boss", "pg"]);
    output(npm.current_dir(dir.path()))?;
    let venv = dir.path().join("venv");
    output(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    let mut pip = Command::new(venv.join("bin/pip"));
    pip.args(["install", "--quiet", "procrastinate", "pgqueuer[asyncpg]", "psycopg[binary,pool]"]);
    output(&mut pip)?;
    Ok(dir)
}
