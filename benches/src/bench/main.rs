//! Measures Onus against the goals of its design, each beside a bare program on the same machine in the same run.

mod board;
mod calls;
mod cli;
mod desk;
mod drain;
mod effort;
mod fleet;
mod git;
mod hostile;
mod listen;
mod machine;
mod mcp;
mod measure;
mod mirror;
mod page;
mod peers;
mod place;
mod plot;
mod queues;
mod road;
mod serve;
mod server;
mod spent;
mod store;
mod table;
mod team;
mod worker;

use measure::Outcome;
use place::Programs;
use std::io::Write as _;
use table::Table;

const USAGE: &str = "usage: ./bench [--quick|--full] [--peers] [--write] [cli|store|git|road|effort|serve|hostile|team|mcp|mirror|fleet|board]...\n       ./bench [--write] calls\n--write does not go with --quick";

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    Quick,
    Usual,
    Full,
}

#[derive(Debug)]
struct Extent {
    size: Size,
    /// Install and measure peers that are not there.
    peers: bool,
}

impl Extent {
    fn pick<T>(&self, quick: T, usual: T, full: T) -> T {
        match self.size {
            Size::Quick => quick,
            Size::Usual => usual,
            Size::Full => full,
        }
    }
}

#[derive(Debug)]
struct Asked {
    extent: Extent,
    parts: Vec<String>,
    write: bool,
}

/// Compared with a snapshot of its own instead of a goal, and not part of a full run.
const CALLS: &str = "calls";

const PARTS: &[&str] =
    &["cli", "store", "git", "road", "effort", "serve", "hostile", "team", "mcp", "mirror", "fleet", "board"];

fn parse(words: Vec<String>) -> Option<Asked> {
    let mut asked =
        Asked { extent: Extent { size: Size::Usual, peers: false }, parts: Vec::new(), write: false };
    for word in words {
        match word.as_str() {
            "--quick" => asked.extent.size = Size::Quick,
            "--full" => asked.extent.size = Size::Full,
            "--peers" => asked.extent.peers = true,
            "--write" => asked.write = true,
            part if PARTS.contains(&part) || part == CALLS => asked.parts.push(word),
            _ => return None,
        }
    }
    if asked.parts.iter().any(|part| part == CALLS) && asked.parts.len() > 1 {
        return None;
    }
    // What one glances at is not what one publishes.
    if asked.write && asked.extent.size == Size::Quick {
        return None;
    }
    if asked.parts.is_empty() {
        asked.parts = PARTS.iter().map(|part| (*part).to_owned()).collect();
    }
    Some(asked)
}

fn measure(asked: &Asked) -> Outcome<Vec<(String, Vec<Table>)>> {
    let programs = Programs::find()?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = machine::load();
    if load > cores as f64 / 2.0 {
        let warning = "the machine is busy: trust CPU more than wall";
        writeln!(std::io::stderr(), "bench: load {load:.1} on {cores} cores: {warning}")?;
    }
    let mut parts = Vec::new();
    for part in &asked.parts {
        let tables = match part.as_str() {
            "board" => board::run(&programs, &asked.extent)?,
            "cli" => cli::run(&programs, &asked.extent)?,
            "fleet" => fleet::run(&programs, &asked.extent)?,
            "git" => git::run(&programs, &asked.extent)?,
            "road" => road::run(&programs, &asked.extent)?,
            "effort" => effort::run(&programs, &asked.extent)?,
            "mirror" => mirror::run(&programs, &asked.extent)?,
            "mcp" => mcp::run(&programs, &asked.extent)?,
            "team" => team::run(&programs, &asked.extent)?,
            "hostile" => hostile::run(&programs, &asked.extent)?,
            "serve" => serve::run(&programs, &asked.extent)?,
            _ => store::run(&programs, &asked.extent)?,
        };
        for table in &tables {
            writeln!(std::io::stdout(), "{table}")?;
        }
        parts.push((part.clone(), tables));
    }
    Ok(parts)
}

fn run(asked: &Asked) -> Outcome<()> {
    if asked.parts == [CALLS] {
        for table in calls::run(&Programs::find()?, asked.write)? {
            writeln!(std::io::stdout(), "{table}")?;
        }
        return Ok(());
    }
    let parts = measure(asked)?;
    let missed: usize = parts.iter().flat_map(|(_, tables)| tables).map(Table::missed).sum();
    writeln!(std::io::stdout(), "{missed} goals missed")?;
    if asked.write {
        let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--write").collect();
        page::write(format!("./bench {}", words.join(" ")).trim_end(), &parts)?;
    }
    Ok(())
}

fn main() -> std::process::ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let ended = match words.split_first() {
        Some((word, rest)) if word == worker::WORD => worker::run(rest),
        _ => match parse(words) {
            Some(asked) => run(&asked),
            None => {
                drop(writeln!(std::io::stderr(), "{USAGE}"));
                return 2.into();
            }
        },
    };
    match ended {
        Ok(()) => 0.into(),
        Err(error) => {
            drop(writeln!(std::io::stderr(), "bench: {error}"));
            1.into()
        }
    }
}
