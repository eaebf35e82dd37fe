//! `export`: the tasks, in the shape that `import` reads; or the whole store as an archive (mission A7, D14).

mod archive;
pub mod format;
mod pages;

use crate::Onus;
use crate::progress::Progress;
use crate::remote::calls;
use crate::submit::unexpected;
use onus_core::refusal::Refusal;
use onus_store::bulk;
use onus_store::error::StoreError;
use onus_store::port::Store;
use onus_store::read::queue::Which;
use serde::Serialize;
use std::io::{self, Write};

pub(crate) use archive::{FORMAT, Header, Trailer};
pub(crate) use pages::{ExportPosition, TasksPart};

/// So many bytes of an export are sent at once, and a task more. Tests have no millions of bytes to export.
pub(crate) const PART: usize = if cfg!(test) { 16 * 1024 } else { 4 * 1024 * 1024 };

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

impl Onus {
    /// Writes one JSON object per task, in the order in which they were asked for, and says how many. A part of the
    /// queue may refer to tasks that are not in it. Through a server it comes in parts, so that nobody has all of it in memory:
    /// each of them is of one moment.
    pub fn export_tasks(
        &mut self,
        which: Which,
        writer: &mut dyn Write,
        progress: &mut dyn Progress,
    ) -> Result<u64, ExportError> {
        let (mut lines, mut position) = (0, None);
        while let Some(part) = self.next_part(|| calls::ExportTasks { which, position })? {
            writer.write_all(part.text.as_bytes()).map_err(ExportError::Writing)?;
            lines += part.lines;
            position = part.next;
            if position.is_none() {
                writer.flush().map_err(ExportError::Writing)?;
                return Ok(lines);
            }
        }
        let mut sheet = LineWriter::new(writer);
        let read = self.store.read(|tx| {
            progress.begin("exporting", u64::try_from(bulk::count_tasks(tx)?).ok());
            let mut position = ExportPosition::default();
            while let Some(next) = pages::write(tx, which, position, &mut sheet, usize::MAX)? {
                position = next;
                progress.at(sheet.lines);
            }
            Ok(())
        });
        progress.end();
        sheet.finish(read)
    }

    /// The part of the tasks from `position` on that is sent at once.
    pub(crate) fn export_part(
        &mut self,
        which: Which,
        position: Option<ExportPosition>,
    ) -> Result<TasksPart, Refusal> {
        let mut text = Vec::new();
        let mut sheet = LineWriter::new(&mut text);
        let mut next = Some(position.unwrap_or_default());
        let read = self.store.read(|tx| {
            while let Some(position) = next
                && sheet.bytes < PART
            {
                next = pages::write(tx, which, position, &mut sheet, PART)?;
            }
            Ok(())
        });
        let lines = sheet.finish(read).map_err(|error| match error {
            ExportError::Refused(refusal) => refusal,
            ExportError::Writing(error) => unexpected(error),
        })?;
        Ok(TasksPart { lines, text: String::from_utf8(text).map_err(unexpected)?, next })
    }
}

/// Writes lines out of a running query. A failure to write ends the query; it is no failure of the store.
struct LineWriter<'w> {
    writer: &'w mut dyn Write,
    failed: Option<io::Error>,
    lines: u64,
    bytes: usize,
    buffer: Vec<u8>,
}

impl LineWriter<'_> {
    fn new(writer: &mut dyn Write) -> LineWriter<'_> {
        LineWriter { writer, failed: None, lines: 0, bytes: 0, buffer: Vec::new() }
    }

    fn line(&mut self, document: &impl Serialize) -> onus_store::error::Result<()> {
        self.buffer.clear();
        let made = serde_json::to_writer(&mut self.buffer, document).map_err(io::Error::from);
        self.buffer.push(b'\n');
        self.lines += 1;
        self.write(made)
    }

    /// Writes what is in the buffer, if it could be made.
    fn write(&mut self, made: io::Result<()>) -> onus_store::error::Result<()> {
        self.bytes = self.bytes.saturating_add(self.buffer.len());
        made.and_then(|()| self.writer.write_all(&self.buffer)).map_err(|error| {
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
