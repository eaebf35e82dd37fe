//! What people use today, measured by the same calls: taskwarrior where it is installed, and on request the Rust
//! edition of beads, where it is not on the path installed into a temporary folder.

use crate::Extent;
use crate::cli::Call;
use crate::measure::{Contender, Cost, Outcome, cost, interleaved, millis, output, ratio};
use crate::table::{Table, Verdict};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A peer with 100 tasks in it.
struct Peer {
    name: &'static str,
    /// How much faster Onus must be.
    goal: f64,
    program: PathBuf,
    dir: TempDir,
    /// The tasks' own ids.
    tasks: Vec<String>,
    words: fn(Call, &str) -> Option<Vec<String>>,
    undo: fn(&str) -> Vec<String>,
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn command(program: &Path, dir: &Path, words: &[String]) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", dir);
    command.env("TASKRC", "/dev/null").env("TASKDATA", dir).current_dir(dir).args(words);
    command
}

impl Peer {
    fn contender(&self, call: Call) -> Option<Contender<'_>> {
        (self.words)(call, "")?;
        let task = |turn: usize| self.tasks[turn % self.tasks.len()].as_str();
        let contender = Contender::new(move |turn| {
            command(&self.program, self.dir.path(), &(self.words)(call, task(turn)).unwrap_or_default())
        });
        Some(match call {
            Call::Claim => contender
                .undone_by(move |turn| command(&self.program, self.dir.path(), &(self.undo)(task(turn)))),
            _ => contender,
        })
    }
}

fn taskwarrior() -> Outcome<Option<Peer>> {
    let program = PathBuf::from("task");
    let dir = tempfile::Builder::new().prefix("onus-bench-").tempdir()?;
    if command(&program, dir.path(), &owned(&["--version"])).output().is_err() {
        return Ok(None);
    }
    let tasks =
        (1..=100).map(|n| format!("{{\"description\":\"task number {n}\",\"status\":\"pending\"}}\n"));
    std::fs::write(dir.path().join("tasks.json"), tasks.collect::<String>())?;
    output(&mut command(&program, dir.path(), &owned(&["rc.confirmation=off", "import", "tasks.json"])))?;
    Ok(Some(Peer {
        name: "taskwarrior",
        goal: 1.0,
        program,
        dir,
        tasks: (1..=100).map(|n: usize| n.to_string()).collect(),
        words: |call, task| match call {
            Call::Version => Some(owned(&["--version"])),
            Call::Ready => Some(owned(&["ready"])),
            Call::List => Some(owned(&["list"])),
            Call::Show => Some(owned(&[task, "info"])),
            Call::Claim => Some(owned(&["rc.confirmation=off", task, "start"])),
            Call::Add => Some(owned(&["add", "added"])),
            Call::ClaimNext => None,
        },
        undo: |task| owned(&["rc.confirmation=off", task, "stop"]),
    }))
}

/// The one on the path, else one of our own: building it takes minutes.
fn beads_program(dir: &Path) -> Outcome<PathBuf> {
    let installed = PathBuf::from("br");
    if command(&installed, dir, &owned(&["--version"])).output().is_ok() {
        return Ok(installed);
    }
    let mut install = Command::new("cargo");
    install.args(["install", "--quiet", "--locked", "beads_rust", "--root"]).arg(dir);
    install.env("CARGO_TARGET_DIR", dir.join("target"));
    output(&mut install)?;
    Ok(dir.join("bin/br"))
}

fn beads() -> Outcome<Peer> {
    let dir = tempfile::Builder::new().prefix("onus-bench-").tempdir()?;
    let program = beads_program(dir.path())?;
    output(Command::new("git").args(["init", "--quiet"]).current_dir(dir.path()))?;
    output(&mut command(&program, dir.path(), &owned(&["init"])))?;
    for n in 1..=100 {
        cost(&mut command(&program, dir.path(), &owned(&["create", &format!("task number {n}")])))?;
    }
    let listed: Value = serde_json::from_str(&output(&mut command(
        &program,
        dir.path(),
        &owned(&["list", "--json", "--limit", "100"]),
    ))?)?;
    let rows = listed.as_array().or_else(|| listed["issues"].as_array()).ok_or("br lists no issues")?;
    let tasks = rows.iter().filter_map(|row| row["id"].as_str()).map(str::to_owned).collect();
    Ok(Peer {
        name: "br",
        goal: 15.0,
        program,
        dir,
        tasks,
        words: |call, task| match call {
            Call::Version => Some(owned(&["--version"])),
            Call::Ready => Some(owned(&["ready"])),
            Call::List => Some(owned(&["list"])),
            Call::Show => Some(owned(&["show", task])),
            Call::Claim => Some(owned(&["update", task, "--status", "in_progress"])),
            Call::Add => Some(owned(&["create", "added"])),
            Call::ClaimNext => None,
        },
        undo: |task| owned(&["update", task, "--status", "open"]),
    })
}

/// Peers at 100 tasks, beside the figures just measured.
pub(crate) fn compare(mine: &[(Call, Cost)], extent: &Extent) -> Outcome<Vec<Table>> {
    let mut peers: Vec<Peer> = taskwarrior()?.into_iter().collect();
    if extent.peers {
        peers.push(beads()?);
    }
    let mut tables = Vec::new();
    for peer in &peers {
        let mut table = Table::new(format!("One-shot calls against {}, 100 tasks", peer.name));
        for (call, own) in mine {
            let Some(contender) = peer.contender(*call) else { continue };
            let theirs = interleaved(&mut [contender], extent.pick(5, 15, 30))?[0];
            let faster = ratio(theirs.cpu, own.cpu);
            let figure = format!("{:.2} ms to {:.2} ms", millis(theirs.cpu), millis(own.cpu));
            // Starting up is the language's business more than the peer's: shown, not judged.
            match call {
                Call::Version => {
                    table.row("--version, CPU", "-", format!("{faster:.1}x ({figure})"), Verdict::Shown);
                }
                _ => table.at_least(format!("{}, CPU", call.name()), peer.goal, faster, &figure),
            }
        }
        tables.push(table);
    }
    Ok(tables)
}
