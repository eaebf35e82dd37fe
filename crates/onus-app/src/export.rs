//! `export`: the tasks, in the shape that `import` reads; or the whole store as an archive (mission A7, D14).

mod archive;

use crate::Onus;
use crate::progress::Progress;
use crate::remote::calls;
use crate::view::TaskView;
use onus_core::refusal::Refusal;
use onus_core::task::Task;
use onus_store::bulk;
use onus_store::error::StoreError;
use onus_store::port::Store;
use onus_store::read::queue::Which;
use serde::Serialize;
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
struct Line {
    #[serde(flatten)]
    task: TaskView,
    #[serde(skip_serializing_if = "Option::is_none")]
    resolution: Option<String>,
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
        let mut sheet = Sheet::new(writer);
        let read = self.store.read(|tx| {
            progress.begin("exporting", u64::try_from(bulk::count_tasks(tx)?).ok());
            let mut seen = 0;
            bulk::resolved_tasks(tx, &mut |stored, resolution| {
                seen += 1;
                if seen % STRIDE == 0 {
                    progress.at(seen);
                }
                if !matches(which, &stored.task) {
                    return Ok(());
                }
                sheet.line(&Line { task: TaskView::from(&stored.task), resolution })
            })
        });
        progress.end();
        sheet.finish(read)
    }
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
struct Sheet<'w> {
    writer: &'w mut dyn Write,
    failed: Option<io::Error>,
    lines: u64,
    buffer: Vec<u8>,
}

impl Sheet<'_> {
    fn new(writer: &mut dyn Write) -> Sheet<'_> {
        Sheet { writer, failed: None, lines: 0, buffer: Vec::new() }
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
