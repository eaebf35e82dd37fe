//! `export`: the tasks, in the shape that `import` reads; or the whole store as an archive (mission A7, D14).

mod archive;
pub mod format;

use crate::Onus;
use crate::progress::Progress;
use crate::remote::calls;
use crate::view::TaskView;
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use onus_core::task::Task;
use onus_core::time::Timestamp;
use onus_store::bulk;
use onus_store::error::StoreError;
use onus_store::port::{Store, Tx};
use onus_store::read::queue::Which;
use serde::Serialize;
use std::collections::HashMap;
use std::io::{self, Write};

pub(crate) use archive::{FORMAT, Header, Trailer};

/// How many rows pass between two words about progress.
const STRIDE: u64 = 1_000;

/// Why an export ended early.
#[derive(Debug)]
pub enum ExportError {
    Refused(Refusal),
    /// Whoever reads it has gone, or the disk is full.
    Writing(io::Error),
}

impl From<Refusal> for ExportError {
    fn from(refusal: Refusal) -> ExportError {
        ExportError::Refused(refusal)
    }
}

impl std::fmt::Display for ExportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ExportError::Refused(refusal) => refusal.fmt(f),
            ExportError::Writing(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ExportError {}

/// A task with what was said when it ended.
#[derive(Serialize)]
struct TaskLine {
    #[serde(flatten)]
    task: TaskView,
    #[serde(skip_serializing_if = "Option::is_none")]
    resolution: Option<String>,
    /// What was said about it, here or elsewhere.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<NoteLine>,
}

impl Onus {
    /// Writes one JSON object per task, in the order in which they were asked for, and says how many. A part of the
    /// queue may refer to tasks that are not in it.
    pub fn export_tasks(
        &mut self,
        which: Which,
        writer: &mut dyn Write,
        progress: &mut dyn Progress,
    ) -> Result<u64, ExportError> {
        if let Some((lines, text)) = self.remote(|| calls::ExportTasks { which })? {
            writer.write_all(text.as_bytes()).and_then(|()| writer.flush()).map_err(ExportError::Writing)?;
            return Ok(lines);
        }
        let mut sheet = LineWriter::new(writer);
        let read = self.store.read(|tx| {
            progress.begin("exporting", u64::try_from(bulk::count_tasks(tx)?).ok());
            let mut notes = comments(tx)?;
            let mut seen = 0;
            bulk::resolved_tasks(tx, &mut |stored, resolution| {
                seen += 1;
                if seen % STRIDE == 0 {
                    progress.at(seen);
                }
                if !matches(which, &stored.task) {
                    return Ok(());
                }
                let notes = notes.remove(&stored.task.id).unwrap_or_default();
                sheet.line(&TaskLine { task: TaskView::from(&stored.task), resolution, notes })
            })
        });
        progress.end();
        sheet.finish(read)
    }
}

/// What was said about each task, in the order in which it was.
fn comments(tx: &mut dyn Tx) -> onus_store::error::Result<HashMap<TaskId, Vec<NoteLine>>> {
    let mut found: HashMap<TaskId, Vec<NoteLine>> = HashMap::new();
    bulk::comments(tx, &mut |task, note| {
        let (by, at, key) = match note.said {
            Some(said) => (said.by, said.at, said.key),
            None => (note.by, Some(note.at), None),
        };
        found.entry(task).or_default().push(NoteLine { by, at, key, text: note.text });
        Ok(())
    })?;
    Ok(found)
}

/// A note as `import` takes it.
#[derive(Serialize)]
struct NoteLine {
    by: String,
    at: Option<Timestamp>,
    key: Option<String>,
    text: String,
}

fn matches(which: Which, task: &Task) -> bool {
    let state = task.state.name();
    match which {
        Which::All => true,
        Which::Active => !state.is_terminal(),
        Which::Only(wanted) => state == wanted,
    }
}

/// Writes lines out of a running query. A failure to write ends the query; it is no failure of the store.
struct LineWriter<'w> {
    writer: &'w mut dyn Write,
    failed: Option<io::Error>,
    lines: u64,
    buffer: Vec<u8>,
}

impl LineWriter<'_> {
    fn new(writer: &mut dyn Write) -> LineWriter<'_> {
        LineWriter { writer, failed: None, lines: 0, buffer: Vec::new() }
    }

    fn line(&mut self, document: &impl Serialize) -> onus_store::error::Result<()> {
        self.buffer.clear();
        let written =
            serde_json::to_writer(&mut self.buffer, document).map_err(io::Error::from).and_then(|()| {
                self.buffer.push(b'\n');
                self.writer.write_all(&self.buffer)
            });
        self.lines += 1;
        written.map_err(|error| {
            let stopped = StoreError::unavailable(error.to_string());
            self.failed = Some(error);
            stopped
        })
    }

    fn finish(self, read: onus_store::error::Result<()>) -> Result<u64, ExportError> {
        match (self.failed, read) {
            (Some(error), _) => Err(ExportError::Writing(error)),
            (None, Err(error)) => Err(ExportError::Refused(error.into())),
            (None, Ok(())) => {
                self.writer.flush().map_err(ExportError::Writing)?;
                Ok(self.lines)
            }
        }
    }
}
