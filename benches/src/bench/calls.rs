//! Instructions of the frequent one-shot calls, counted by valgrind: a busy machine does not change them, so a
//! regression shows in a diff.

use crate::cli::{Call, onus};
use crate::measure::{Outcome, output};
use crate::place::{Place, Programs};
use crate::table::{Table, Verdict};
use std::collections::BTreeMap;
use std::process::Command;

const SNAPSHOT: &str = "benches/calls.txt";

/// Random ids and hash seeds move the counts a little.
const TOLERANCE: f64 = 1.03;

/// Each call is counted so often; the least is its own work.
const REPEATS: usize = 3;

/// Counts the calls, compares them with the snapshot, or makes it anew.
pub(crate) fn run(programs: &Programs, write: bool) -> Outcome<Vec<Table>> {
    let place = Place::with_tasks(programs, 1, 100)?;
    let before = snapshot(&std::fs::read_to_string(SNAPSHOT).unwrap_or_default());
    let mut table = Table::new("Instructions of one-shot calls, 100 tasks");
    let mut text =
        String::from("# Instructions of one-shot calls, release build; made by ./bench --write calls\n");
    for &call in Call::ALL {
        let mut contender = onus(&place, call);
        let mut least = u64::MAX;
        for turn in 0..REPEATS {
            least = least.min(counted(&(contender.call)(turn))?);
            if let Some(after) = &mut contender.after {
                output(&mut after(turn))?;
            }
        }
        text.push_str(&format!("{}\t{least}\n", call.name()));
        let millions = |count: u64| format!("{:.2} M", count as f64 / 1e6);
        match before.get(call.name()) {
            Some(&known) if !write => {
                let ratio = least as f64 / known as f64;
                table.at_most(
                    call.name(),
                    TOLERANCE,
                    ratio,
                    &format!("{} to {}", millions(least), millions(known)),
                );
            }
            _ => table.row(call.name(), "-", millions(least), Verdict::Shown),
        }
    }
    if write {
        std::fs::write(SNAPSHOT, text)?;
    }
    Ok(vec![table])
}

/// How many instructions a command takes.
fn counted(command: &Command) -> Outcome<u64> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    valgrind.arg(command.get_program()).args(command.get_args()).env_clear();
    let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    valgrind.envs(set);
    if let Some(dir) = command.get_current_dir() {
        valgrind.current_dir(dir);
    }
    let ended = valgrind.output().map_err(|error| format!("valgrind: {error}"))?;
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    let count =
        said.lines().find_map(|line| line.split_once("Collected : ")).map(|(_, count)| count.trim().parse());
    match count {
        Some(count) if ended.status.success() => Ok(count?),
        _ => Err(format!("{command:?}: {said}").into()),
    }
}

fn snapshot(text: &str) -> BTreeMap<String, u64> {
    let line = |line: &str| {
        let (name, count) = line.split_once('\t')?;
        Some((name.to_owned(), count.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}
