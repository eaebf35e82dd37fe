//! `onus import`

use super::{file_error, word};
use crate::context::World;
use crate::output::Output;
use crate::progress::Bar;
use clap::Args;
use onus_app::import::{Import as Job, ImportView, Run};
use onus_core::code::Code;
use onus_core::id::ProjectKey;
use onus_core::refusal::Refusal;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The largest file that is read at once.
const INPUT_MAX: u64 = 1 << 30;

/// Bring tasks in, or restore an archive into an empty store
///
/// All lines or none. A line whose `origin_ask_ref` is known is `existing`; repeating an import is harmless.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// What to read; `-` is standard input
    #[arg(value_name = "FILE|-")]
    file: PathBuf,

    /// jsonl (one task per line) or onus (an archive of a whole store)
    #[arg(long, default_value = "jsonl", value_parser = |t: &str| word("a format", t, ImportFormat::parse, "jsonl, onus"))]
    format: ImportFormat,

    /// The project for tasks without an id of this store's projects
    #[arg(long, value_name = "KEY", value_parser = |t: &str| t.parse::<ProjectKey>())]
    project: Option<ProjectKey>,

    /// Only say what would happen
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ImportFormat {
    Tasks,
    Archive,
}

impl ImportFormat {
    fn parse(text: &str) -> Option<ImportFormat> {
        match text {
            "jsonl" => Some(ImportFormat::Tasks),
            "onus" => Some(ImportFormat::Archive),
            _ => None,
        }
    }
}

impl Import {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        match self.format {
            ImportFormat::Tasks => self.tasks(world, out),
            ImportFormat::Archive => self.archive(world, out),
        }
    }

    fn tasks(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let input = self.text()?;
        let job = Job {
            request: &world.request()?,
            actor: world.actor.as_ref(),
            project: self.project.as_ref(),
            input: &input,
            run: if self.dry_run { Run::Dry } else { Run::Real },
        };
        let view = store.import_jsonl(&job, &mut Bar::new(out))?;
        out.show(&view, text)
    }

    fn archive(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        if self.dry_run || self.project.is_some() {
            return Err(Refusal::invalid(
                "an archive is restored whole: --dry-run and --project do not apply",
            ));
        }
        let mut reader = self.reader()?;
        let view = world.create()?.import_archive(&mut reader, &mut Bar::new(out))?;
        out.show(&view, |view| {
            format!(
                "{} tasks and {} ledger entries restored ({} rows)\n",
                view.tasks, view.ledger_entries, view.rows
            )
        })
    }

    fn reader(&self) -> Result<Box<dyn BufRead>, Refusal> {
        if self.file.as_os_str() == "-" {
            return Ok(Box::new(BufReader::new(io::stdin())));
        }
        let file = File::open(&self.file).map_err(|error| file_error(&self.file, &error))?;
        Ok(Box::new(BufReader::new(file)))
    }

    fn text(&self) -> Result<String, Refusal> {
        let mut bytes = Vec::new();
        self.reader()?
            .take(INPUT_MAX + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| file_error(self.shown(), &error))?;
        if bytes.len() as u64 > INPUT_MAX {
            return Err(Refusal::invalid(format!("{} is larger than 1 GiB", self.shown().display()))
                .hint("split the file"));
        }
        String::from_utf8(bytes).map_err(|error| {
            let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()]
                .iter()
                .filter(|b| **b == b'\n')
                .count();
            Refusal::new(Code::InvalidInput, format!("line {line} is not UTF-8"))
        })
    }

    fn shown(&self) -> &Path {
        if self.file.as_os_str() == "-" { Path::new("standard input") } else { &self.file }
    }
}

fn text(view: &ImportView) -> String {
    let mood = if view.dry_run { "would be " } else { "" };
    let mut text = format!("{} tasks {mood}created, {} existing\n", view.created, view.existing);
    for renamed in view.renamed.iter().take(20) {
        text.push_str(&format!("  {} is {} here\n", renamed.from, renamed.to));
    }
    if view.renamed.len() > 20 {
        text.push_str(&format!("  and {} more\n", view.renamed.len() - 20));
    }
    text
}
