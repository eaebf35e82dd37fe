//! The tasks with their notes, a page at a time: whoever exports has a few of them in memory, and never all.

use super::LineWriter;
use crate::view::TaskView;
use onus_core::id::Seq;
use onus_core::task::Task;
use onus_core::time::Timestamp;
use onus_store::bulk;
use onus_store::error::Result;
use onus_store::port::Tx;
use onus_store::read::queue::Which;
use onus_store::read::show::Note;
use serde::{Deserialize, Serialize};
use std::io;

/// So many tasks and notes are read at once.
const TASKS: usize = 64;
const NOTES: usize = 64;

/// A task with what was said when it ended, without its notes: those come last in its line.
#[derive(Serialize)]
struct TaskLine<'a> {
    #[serde(flatten)]
    task: TaskView,
    #[serde(skip_serializing_if = "Option::is_none")]
    resolution: &'a Option<String>,
}

/// Where an export goes on: one line may be longer than what is sent at once, so that it may be within the notes of a task.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExportPosition {
    /// The entry that added the task.
    task: Seq,
    /// The last note that was told of this task; none where its line has not begun.
    note: Option<Seq>,
}

/// A part of the tasks: a text that may end within a line, how many lines end in it, and where the next part begins.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TasksPart {
    pub(crate) lines: u64,
    pub(crate) text: String,
    pub(crate) next: Option<ExportPosition>,
}

/// A note as `import` takes it.
#[derive(Serialize)]
struct NoteLine<'a> {
    by: &'a str,
    at: Option<Timestamp>,
    key: Option<&'a str>,
    text: &'a str,
}

impl<'a> From<&'a Note> for NoteLine<'a> {
    fn from(note: &'a Note) -> NoteLine<'a> {
        let (by, at, key) = match &note.said {
            Some(said) => (&said.by, said.at, said.key.as_deref()),
            None => (&note.by, Some(note.at), None),
        };
        NoteLine { by, at, key, text: &note.text }
    }
}

/// Writes a page from `position` on, or less of it when `room` bytes are written; where the next one begins, if there is more.
pub(super) fn write(
    tx: &mut dyn Tx,
    which: Which,
    position: ExportPosition,
    sheet: &mut LineWriter<'_>,
    room: usize,
) -> Result<Option<ExportPosition>> {
    let tasks = bulk::resolved_tasks(tx, position.task, TASKS as i64)?;
    let Some((last, _)) = tasks.last() else { return Ok(None) };
    let range = (position.task, last.task.born);
    let notes = bulk::comments(tx, range, position.note.unwrap_or(0), NOTES as i64)?;
    let is_cut = notes.len() == NOTES;
    let mut notes = notes.iter().peekable();
    // The last note of a line that was begun; such a line goes on, whatever has become of its task meanwhile.
    let mut told = position.note;
    for (stored, resolution) in &tasks {
        let task = &stored.task;
        if sheet.bytes >= room {
            return Ok(Some(ExportPosition { task: task.born, note: told }));
        }
        let is_wanted = told.is_some() || matches(which, task);
        if is_wanted && told.is_none() {
            sheet.begin(&TaskLine { task: TaskView::from(task), resolution })?;
        }
        while let Some((_, note)) = notes.next_if(|(of, _)| *of == task.id) {
            if is_wanted {
                sheet.note(&NoteLine::from(note), told.is_none())?;
                told = Some(note.seq);
            }
        }
        // There may be more notes of this task, and of those behind it.
        let is_last = is_cut && notes.peek().is_none();
        if is_last && is_wanted {
            return Ok(Some(ExportPosition { task: task.born, note: told }));
        }
        if is_wanted {
            sheet.end(told.take().is_some())?;
        }
        if is_last {
            return Ok(Some(ExportPosition { task: task.born + 1, note: None }));
        }
    }
    let next = ExportPosition { task: last.task.born + 1, note: None };
    Ok((tasks.len() == TASKS).then_some(next))
}

fn matches(which: Which, task: &Task) -> bool {
    let state = task.state.name();
    match which {
        Which::All => true,
        Which::Active => !state.is_terminal(),
        Which::Only(wanted) => state == wanted,
    }
}

impl LineWriter<'_> {
    /// The line of a task, without its end.
    fn begin(&mut self, line: &TaskLine<'_>) -> Result<()> {
        self.buffer.clear();
        let made = serde_json::to_writer(&mut self.buffer, line).map_err(io::Error::from);
        self.buffer.pop();
        self.write(made)
    }

    fn note(&mut self, note: &NoteLine<'_>, is_first: bool) -> Result<()> {
        self.buffer.clear();
        self.buffer.extend_from_slice(if is_first { b",\"notes\":[" } else { b"," });
        let made = serde_json::to_writer(&mut self.buffer, note).map_err(io::Error::from);
        self.write(made)
    }

    fn end(&mut self, has_notes: bool) -> Result<()> {
        self.buffer.clear();
        self.buffer.extend_from_slice(if has_notes { b"]}\n" } else { b"}\n" });
        self.lines += 1;
        self.write(Ok(()))
    }
}
