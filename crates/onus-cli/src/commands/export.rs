//! `onus export`

use super::{file_error, list, word};
use crate::context::World;
use crate::output::Output;
use crate::progress::Bar;
use clap::Args;
use onus_app::export::{ExportError, format};
use onus_app::import::format::Format;
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use onus_store::read::queue::Which;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write tasks, or the whole store, to a file
///
/// `onus import` reads the tasks again. `onus` is an archive of everything, ledger and leases included: keep it as secret
/// as the store. `consistency` is what `onus consistency --queue` asks where there is no store; no lease is in it.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Where to; default: standard output
    #[arg(value_name = "FILE|-", default_value = "-")]
    file: PathBuf,

    /// jsonl, csv, queue (YAML) or beads (tasks), onus (everything) or consistency (who held what, and what has landed)
    #[arg(long, default_value = "jsonl",
          value_parser = |t: &str| word("a format", t, ExportFormat::parse, "jsonl, csv, queue, beads, onus, consistency"))]
    format: ExportFormat,

    /// For tasks: only those in this state; default: all
    #[arg(long, value_parser = list::which)]
    state: Option<Which>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExportFormat {
    Tasks,
    As(Format),
    Archive,
    Consistency,
}

impl ExportFormat {
    fn parse(text: &str) -> Option<ExportFormat> {
        match text {
            "jsonl" => Some(ExportFormat::Tasks),
            "onus" => Some(ExportFormat::Archive),
            "csv" | "queue" | "beads" => Format::parse(text).map(ExportFormat::As),
            "consistency" => Some(ExportFormat::Consistency),
            _ => None,
        }
    }
}

impl Export {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let which = self.state.unwrap_or(Which::All);
        let mut bar = Bar::new(out);
        let lines = Target::new(&self.file).write(|writer| {
            let written = match self.format {
                ExportFormat::Tasks => store.export_tasks(which, writer, &mut bar),
                ExportFormat::As(format) => {
                    let mut lines = Vec::new();
                    store.export_tasks(which, &mut lines, &mut bar).and_then(|count| {
                        let text = format::convert(format, &String::from_utf8_lossy(&lines))?;
                        writer.write_all(text.as_bytes()).map_err(ExportError::Writing)?;
                        Ok(count)
                    })
                }
                ExportFormat::Archive => store.export_archive(writer, &mut bar),
                ExportFormat::Consistency => {
                    let text = store.export_queue()?;
                    writeln!(writer, "{text}").map(|()| 1).map_err(ExportError::Writing)
                }
            };
            written.map_err(|error| match error {
                ExportError::Refused(refusal) => refusal,
                ExportError::Writing(error) => file_error(&self.file, &error),
            })
        })?;
        let word = if self.format == ExportFormat::Archive { "lines" } else { "tasks" };
        out.hint(&format!("{lines} {word}"));
        Ok(ExitCode::SUCCESS)
    }
}

/// A file that appears whole or not at all, or standard output.
#[derive(Debug)]
pub(super) enum Target {
    Stdout,
    File { path: PathBuf, partial: PathBuf },
}

impl Target {
    pub(super) fn new(path: &Path) -> Target {
        if path.as_os_str() == "-" {
            return Target::Stdout;
        }
        let mut partial = path.as_os_str().to_owned();
        partial.push(".part");
        Target::File { path: path.to_owned(), partial: partial.into() }
    }

    pub(super) fn write<T>(
        &self,
        work: impl FnOnce(&mut dyn Write) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        match self {
            Target::Stdout => {
                let mut writer = BufWriter::new(Quiet(io::stdout().lock()));
                let done = work(&mut writer)?;
                writer.flush().map_err(|error| file_error(Path::new("standard output"), &error))?;
                Ok(done)
            }
            Target::File { path, partial } => {
                let written = create(partial).and_then(|file| {
                    let mut writer = BufWriter::new(file);
                    let done = work(&mut writer)?;
                    let file = writer.into_inner().map_err(|error| file_error(partial, error.error()))?;
                    file.sync_all().map_err(|error| file_error(partial, &error))?;
                    std::fs::rename(partial, path).map_err(|error| file_error(path, &error))?;
                    Ok(done)
                });
                if written.is_err() {
                    drop(std::fs::remove_file(partial));
                }
                written
            }
        }
    }
}

fn create(path: &Path) -> Result<File, Refusal> {
    let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    opened.map_err(|error| {
        Refusal::new(Code::InvalidInput, format!("{}: {error}", path.display())).hint("choose another file")
    })
}

/// A reader that closed the pipe has seen enough.
struct Quiet<W>(W);

impl<W: Write> Write for Quiet<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
            other => other,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
