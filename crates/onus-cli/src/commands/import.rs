//! `onus import`

use super::{file_error, word};
use crate::context::{Store, World};
use crate::output::Output;
use crate::progress::Bar;
use clap::Args;
use onus_app::import::format::{self, Converted, Format, SourceFile, Statuses};
use onus_app::import::{Import as Job, ImportView, Run, SkippedView, UnresolvedView};
use onus_core::code::Code;
use onus_core::id::ProjectKey;
use onus_core::refusal::{Finding, Refusal};
use onus_core::task::StateName;
use onus_core::text::counted;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The most that is read at once.
const INPUT_MAX: u64 = 1 << 30;
/// The most files of a directory, and how deep it may be.
const FILES_MAX: usize = 20_000;
const DEPTH_MAX: usize = 8;
/// Of so many files that are no text all are told.
const FILES_SHOWN: usize = 50;

/// The formats, for the help and for mistakes.
const FORMATS: &str = "onus, jsonl, csv, beads, backlog, kano, taskmaster, queue, github, redmine";

/// Bring tasks in from a file of Onus or of another tool, or restore an archive into an empty store
///
/// What the file is, its content tells. All of it comes in, or nothing. What is known by its `origin_ask_ref` is `existing`;
/// repeating an import is harmless, and a newer file of another tool brings what changed there.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// What to read: a file, a directory of Backlog.md, kano or beads, or `-` for standard input
    #[arg(value_name = "FILE|DIR|-")]
    file: PathBuf,

    /// onus (an archive), jsonl, csv, beads, backlog, kano, taskmaster, queue, github or redmine; default: by its content
    #[arg(long, value_parser = |t: &str| word("a format", t, Format::parse, FORMATS))]
    format: Option<Format>,

    /// The project for tasks without an id of this store's projects
    #[arg(long, value_name = "KEY", value_parser = |t: &str| t.parse::<ProjectKey>())]
    project: Option<ProjectKey>,

    /// What a status of your own means: open, blocked, complete or dropped; may be repeated
    #[arg(long, value_name = "WORD=STATE", value_parser = status)]
    status: Vec<(String, StateName)>,

    /// Only say what would happen
    #[arg(long)]
    dry_run: bool,
}

fn status(text: &str) -> Result<(String, StateName), String> {
    let (word, state) = text.rsplit_once('=').ok_or("a status and what it means, e.g. `in review=open`")?;
    let state =
        StateName::parse(state).ok_or_else(|| format!("{} is not a state", onus_core::id::shown(state)))?;
    Ok((word.trim().to_lowercase(), state))
}

impl Import {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        // An archive may be larger than what is read at once.
        if self.format == Some(Format::Onus) {
            return self.archive(world, out, self.reader()?);
        }
        let (files, unread) = self.files()?;
        let format = match self.format.or_else(|| Format::detect(&files)) {
            Some(format) => format,
            None => {
                let (shown, why) = (self.shown().display(), Format::doubt(&files));
                let detail = format!("what {shown} is cannot be told by its content: {why}");
                return Err(Refusal::invalid(detail).hint(format!("--format: one of {FORMATS}")));
            }
        };
        match format {
            Format::Onus => {
                let text = files.into_iter().map(|file| file.text).collect::<String>();
                self.archive(world, out, Box::new(Cursor::new(text)))
            }
            format => self.tasks(world, out, format, files, unread),
        }
    }

    fn tasks(
        &self,
        world: &World,
        out: &Output,
        format: Format,
        files: Vec<SourceFile>,
        unread: Vec<SkippedView>,
    ) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let mut converted = match format {
            Format::Jsonl => None,
            other => Some(format::convert(other, &files, &self.statuses())),
        };
        if let Some(converted) = converted.as_mut().filter(|converted| !converted.is_sound()) {
            return self.refuse(world, out, &mut store, converted);
        }
        let input = match &mut converted {
            Some(converted) => std::mem::take(&mut converted.lines),
            None => files.into_iter().map(|file| file.text).collect(),
        };
        let job = Job {
            request: &world.request()?,
            actor: world.actor.as_ref(),
            project: self.project.as_ref(),
            input: &input,
            run: if self.dry_run { Run::Dry } else { Run::Real },
        };
        let mut view = store.import_jsonl(&job, &mut Bar::new(out))?;
        if let Some(converted) = converted {
            view.unmapped = converted.unmapped.into_iter().collect();
            let skipped = |(name, reason)| SkippedView { name, reason };
            view.skipped = converted.skipped.into_iter().map(skipped).chain(unread).collect();
        }
        out.show(&view, text)?;
        Ok(match view.refused.is_empty() {
            true => ExitCode::SUCCESS,
            false => ExitCode::from(Code::InvalidInput.exit_code()),
        })
    }

    /// Tells all that is wrong with files of another tool: what nobody could read of them, and what the rest of them says that
    /// may not be, such as tasks that wait for each other.
    fn refuse(
        &self,
        world: &World,
        out: &Output,
        store: &mut Store,
        converted: &mut Converted,
    ) -> Result<ExitCode, Refusal> {
        let rest = Job {
            request: &world.request()?,
            actor: world.actor.as_ref(),
            project: self.project.as_ref(),
            input: &converted.lines,
            run: Run::Dry,
        };
        let rehearsed = store.import_jsonl(&rest, &mut Bar::new(out))?;
        converted.complain(rehearsed.refused);
        if !self.dry_run {
            return Err(converted.refusal().unwrap_or_else(|| Refusal::invalid("nothing was imported")));
        }
        let read = i64::try_from(converted.read).unwrap_or(i64::MAX);
        let view = ImportView { read, refused: converted.refused(), dry_run: true, ..ImportView::default() };
        out.show(&view, text)?;
        Ok(ExitCode::from(Code::InvalidInput.exit_code()))
    }

    fn statuses(&self) -> Statuses {
        self.status.iter().cloned().collect()
    }

    fn archive(
        &self,
        world: &World,
        out: &Output,
        mut reader: Box<dyn BufRead>,
    ) -> Result<ExitCode, Refusal> {
        if self.dry_run || self.project.is_some() {
            return Err(Refusal::invalid(
                "an archive is restored whole: --dry-run and --project do not apply",
            ));
        }
        let view = world.create()?.import_archive(&mut reader, &mut Bar::new(out))?;
        out.show(&view, |view| {
            format!(
                "{} and {} restored ({})\n",
                counted(view.tasks, "task"),
                counted(view.ledger_entries, "ledger entry"),
                counted(view.rows, "row")
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

    /// What is read, and what of a directory is not.
    fn files(&self) -> Result<(Vec<SourceFile>, Vec<SkippedView>), Refusal> {
        if self.file.is_dir() {
            let mut walk = Walk::of(&self.file);
            walk.read_directory(&self.file, 0)?;
            walk.wrong.sort_by(|a, b| a.detail.cmp(&b.detail));
            if let Some(refusal) = Refusal::from_findings(walk.wrong) {
                return Err(refusal);
            }
            walk.files.sort_by(|a, b| a.name.cmp(&b.name));
            walk.unread.sort_by(|a, b| a.name.cmp(&b.name));
            return Ok((walk.files, walk.unread));
        }
        let name = self.shown().file_name().map_or_else(|| "-".into(), |name| name.to_string_lossy());
        let name = if self.file.as_os_str() == "-" { "-".to_owned() } else { name.into_owned() };
        let text = text_of(self.reader()?, self.shown(), INPUT_MAX)?;
        Ok((vec![SourceFile { name, text }], Vec::new()))
    }

    fn shown(&self) -> &Path {
        if self.file.as_os_str() == "-" { Path::new("standard input") } else { &self.file }
    }
}

/// The text files of a directory: no links, so that nothing outside it is read.
struct Walk<'a> {
    root: &'a Path,
    files: Vec<SourceFile>,
    unread: Vec<SkippedView>,
    /// Files that are no text.
    wrong: Vec<Finding>,
    bytes: u64,
}

impl<'a> Walk<'a> {
    fn of(root: &'a Path) -> Walk<'a> {
        Walk { root, files: Vec::new(), unread: Vec::new(), wrong: Vec::new(), bytes: 0 }
    }

    fn read_directory(&mut self, directory: &Path, depth: usize) -> Result<(), Refusal> {
        let listed = std::fs::read_dir(directory).map_err(|error| file_error(directory, &error))?;
        for entry in listed {
            let entry = entry.map_err(|error| file_error(directory, &error))?;
            let kind = entry.file_type().map_err(|error| file_error(&entry.path(), &error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let ends = [".md", ".yml", ".yaml", ".json", ".jsonl", ".csv"];
            if kind.is_dir() {
                match (name.as_str(), depth < DEPTH_MAX) {
                    (".git" | "node_modules" | ".cache", _) => {}
                    (_, true) => self.read_directory(&entry.path(), depth + 1)?,
                    (_, false) => self.leave(&entry.path(), "it lies too deep"),
                }
            } else if kind.is_file() && ends.iter().any(|end| name.ends_with(end)) {
                self.take(&entry.path())?;
            } else if kind.is_symlink() {
                self.leave(&entry.path(), "it is a link");
            } else {
                self.leave(&entry.path(), "it is of no kind that holds tasks");
            }
        }
        Ok(())
    }

    fn leave(&mut self, path: &Path, reason: &str) {
        if self.unread.len() < FILES_MAX {
            self.unread.push(SkippedView { name: self.name(path), reason: reason.to_owned() });
        }
    }

    fn name(&self, path: &Path) -> String {
        path.strip_prefix(self.root).unwrap_or(path).to_string_lossy().into_owned()
    }

    fn take(&mut self, path: &Path) -> Result<(), Refusal> {
        if self.files.len() == FILES_MAX {
            return Err(Refusal::invalid(format!("{} has more than {FILES_MAX} files", self.root.display()))
                .hint("name the folder that has the tasks"));
        }
        let file = File::open(path).map_err(|error| file_error(path, &error))?;
        match text_of(Box::new(BufReader::new(file)), path, INPUT_MAX.saturating_sub(self.bytes)) {
            Ok(text) => {
                self.bytes += text.len() as u64;
                self.files.push(SourceFile { name: self.name(path), text });
            }
            // The others may be no text, either: all of them are told.
            Err(refusal) if !refusal.findings.is_empty() && self.wrong.len() < FILES_SHOWN => {
                self.wrong.extend(refusal.findings);
            }
            Err(refusal) => return Err(refusal),
        }
        Ok(())
    }
}

fn text_of(reader: Box<dyn BufRead>, shown: &Path, max: u64) -> Result<String, Refusal> {
    let mut bytes = Vec::new();
    reader.take(max + 1).read_to_end(&mut bytes).map_err(|error| file_error(shown, &error))?;
    if bytes.len() as u64 > max {
        return Err(
            Refusal::invalid(format!("{} is larger than 1 GiB", shown.display())).hint("split the file")
        );
    }
    // Redmine writes its tables in an encoding of its own, unless it is told otherwise.
    let (at, what, encoding) = match (no_text(&bytes), std::str::from_utf8(&bytes)) {
        (Some(at), _) => (at, "is no text: it may be UTF-16", "UTF-16"),
        (None, Err(error)) => (error.valid_up_to(), "is not UTF-8", "ISO-8859-1"),
        (None, Ok(_)) => {
            return String::from_utf8(bytes).map_err(|error| Refusal::invalid(error.to_string()));
        }
    };
    let line = 1 + bytes[..at].iter().filter(|byte| **byte == b'\n').count();
    let file = if shown.is_file() { shown.display().to_string() } else { "FILE".to_owned() };
    let detail = format!("line {line} of {}: it {what}", shown.display());
    let hint = format!("iconv -f {encoding} -t UTF-8 {file} | onus import -");
    let finding = Finding::new(Code::InvalidInput, detail.clone()).hint(hint.clone());
    Err(Refusal::invalid(detail).hint(hint).findings(vec![finding]))
}

/// Where bytes show that they are no text of one byte per letter: UTF-16 by its mark, or a zero.
fn no_text(bytes: &[u8]) -> Option<usize> {
    let is_marked = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    if is_marked { Some(0) } else { bytes.iter().position(|byte| *byte == 0) }
}

/// So many of a list are shown.
const SHOWN: usize = 20;

fn text(view: &ImportView) -> String {
    if view.dry_run {
        return table(view);
    }
    let changed = match view.changed {
        0 => String::new(),
        changed => format!(", {changed} changed"),
    };
    let mut text =
        format!("{} created, {} existing{changed}\n", counted(view.created, "task"), view.existing);
    lists(&mut text, view);
    text
}

/// What a dry run found.
fn table(view: &ImportView) -> String {
    let counts = [
        ("read", view.read),
        ("created", view.created),
        ("existing", view.existing),
        ("changed", view.changed),
        ("refused", view.refused.len() as i64),
        ("unmapped", view.unmapped.len() as i64),
    ];
    let mut text: String = counts.iter().map(|(name, count)| format!("{name:<9} {count:>7}\n")).collect();
    lists(&mut text, view);
    let verdict = match view.refused.is_empty() {
        true => "nothing was written: so many tasks would be created and changed\n",
        false => "nothing would be imported: correct the file first\n",
    };
    text.push_str(verdict);
    text
}

fn lists(text: &mut String, view: &ImportView) {
    let refused = view.refused.iter().map(|one| format!("refused: {} ({})", one.detail, one.code));
    listed(text, refused.collect());
    let renamed = view.renamed.iter().map(|one| format!("{} is {} here", one.from, one.to));
    listed(text, renamed.collect());
    let unresolved = view.unresolved.iter();
    let place = |one: &UnresolvedView| one.file.clone().unwrap_or_else(|| format!("line {}", one.line));
    let unresolved = unresolved.map(|one| format!("{}: there is no {}", place(one), one.reference));
    listed(text, unresolved.collect());
    let drift = view.drift.iter();
    let drift =
        drift.map(|one| format!("{} stays: {} is {}, there {}", one.task, one.field, one.here, one.there));
    listed(text, drift.collect());
    let skipped = view.skipped.iter().map(|one| format!("not a task: {} ({})", one.name, one.reason));
    listed(text, skipped.collect());
    if !view.unmapped.is_empty() {
        text.push_str(&format!("  kept in extra: {}\n", view.unmapped.join(", ")));
    }
}

fn listed(text: &mut String, lines: Vec<String>) {
    let more = lines.len().saturating_sub(SHOWN);
    for line in lines.iter().take(SHOWN) {
        text.push_str(&format!("  {line}\n"));
    }
    if more > 0 {
        text.push_str(&format!("  and {more} more\n"));
    }
}
