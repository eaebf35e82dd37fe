//! Measures Onus against the goals of its design, each beside a bare program on the same machine in the same run.

mod cli;
mod drain;
mod effort;
mod git;
mod listen;
mod machine;
mod mcp;
mod measure;
mod peers;
mod place;
mod serve;
mod store;
mod table;
mod team;
mod worker;

use measure::Outcome;
use place::Programs;
use std::io::Write as _;
use table::Table;

const USAGE: &str =
    "usage: ./bench [--quick|--full] [--peers] [--write] [cli|store|git|effort|serve|team|mcp]...";

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

const PARTS: &[&str] = &["cli", "store", "git", "effort", "serve", "team", "mcp"];

fn parse(words: Vec<String>) -> Option<Asked> {
    let mut asked =
        Asked { extent: Extent { size: Size::Usual, peers: false }, parts: Vec::new(), write: false };
    for word in words {
        match word.as_str() {
            "--quick" => asked.extent.size = Size::Quick,
            "--full" => asked.extent.size = Size::Full,
            "--peers" => asked.extent.peers = true,
            "--write" => asked.write = true,
            part if PARTS.contains(&part) => asked.parts.push(word),
            _ => return None,
        }
    }
    if asked.parts.is_empty() {
        asked.parts = PARTS.iter().map(|part| (*part).to_owned()).collect();
    }
    Some(asked)
}

fn measure(asked: &Asked) -> Outcome<Vec<Table>> {
    let programs = Programs::find()?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = machine::load();
    if load > cores as f64 / 2.0 {
        let warning = "the machine is busy: trust CPU more than wall";
        writeln!(std::io::stderr(), "bench: load {load:.1} on {cores} cores: {warning}")?;
    }
    let mut tables = Vec::new();
    for part in &asked.parts {
        let found = match part.as_str() {
            "cli" => cli::run(&programs, &asked.extent)?,
            "git" => git::run(&programs, &asked.extent)?,
            "effort" => effort::run(&programs, &asked.extent)?,
            "mcp" => mcp::run(&programs, &asked.extent)?,
            "team" => team::run(&programs, &asked.extent)?,
            "serve" => serve::run(&programs, &asked.extent)?,
            _ => store::run(&programs, &asked.extent)?,
        };
        for table in found {
            writeln!(std::io::stdout(), "{table}")?;
            tables.push(table);
        }
    }
    Ok(tables)
}

/// The documentation's page, whole.
fn page(tables: &[Table]) -> String {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--write").collect();
    let command = format!("./bench {}", words.join(" "));
    let mut page = format!(
        "# Benchmarks\n\nMedians of interleaved repeats, each figure beside a bare one-shot program (`benches/src/raw`) with the \
         same durability and indexes, measured in the same run. `raw` is the physical limit: it does only the statement.\n\n\
         - command: `{}`\n- date: {}\n- machine: {}\n- load: {:.1} at the end\n\n",
        command.trim_end(),
        jiff::Timestamp::now().strftime("%F"),
        machine::describe(&std::env::temp_dir()),
        machine::load(),
    );
    for table in tables {
        page.push_str(&table.to_string());
        page.push('\n');
    }
    page
}

fn run(asked: &Asked) -> Outcome<()> {
    let tables = measure(asked)?;
    let missed: usize = tables.iter().map(Table::missed).sum();
    writeln!(std::io::stdout(), "{missed} goals missed")?;
    if asked.write {
        std::fs::write("docs/benchmarks.md", page(&tables))?;
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
