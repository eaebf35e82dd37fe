//! `show`: everything that is known about one task.

use crate::Onus;
use crate::handoff::{self, HandoffView};
use crate::remote::calls;
use crate::session::{self, SessionView};
use crate::view::{AssignmentView, DependencyView, EntryView, LedgerView, NoteView, StoryView, TaskView};
use onus_core::code::Code;
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use onus_core::task::Task;
use onus_host::process_liveness;
use onus_store::error::Result as StoreResult;
use onus_store::load;
use onus_store::port::Tx;
use onus_store::read::effort;
use onus_store::read::ledger::{self, Part};
use onus_store::read::show::{self, Note};

impl Onus {
    pub fn show(&mut self, id: &TaskId) -> Result<StoryView, Refusal> {
        if let Some(answer) = self.remote(|| calls::Show { task: id.clone() })? {
            return Ok(answer);
        }
        let found = self.ask(|tx| {
            let Some(stored) = load::task(tx, id)? else {
                return Ok(None);
            };
            let task = stored.task;
            // What nobody has held has no assignments, and what has one entry has no notes: most tasks are shown once
            // before they are claimed, and each question has to be prepared anew by every call.
            let was_held = task.epoch > 0;
            let notes = if task.version > 1 { show::notes(tx, id)? } else { Vec::new() };
            let assignments = if was_held { show::assignments(tx, id)? } else { Vec::new() };
            let now = tx.now()?;
            Ok(Some(StoryView {
                dead: task
                    .assignment()
                    .and_then(|held| held.lease.death(&now, process_liveness::of(&held.lease))),
                dependencies: load::dependencies_of(tx, &task)?
                    .into_iter()
                    .map(|dependency| DependencyView { task: dependency.id, state: dependency.state })
                    .collect(),
                dependents: show::dependents(tx, id)?,
                assignments: assignments.iter().map(|past| AssignmentView::past(&task, past)).collect(),
                sessions: if was_held { sessions(tx, id)? } else { Vec::new() },
                handoff: handed_on(&task, &notes),
                notes: notes.iter().map(NoteView::from).collect(),
                ledger: ledger::log(tx, &Part::Task(id, 0), i64::MAX)?.iter().map(EntryView::from).collect(),
                task: TaskView::from(&task),
            }))
        })?;
        found.ok_or_else(|| unknown_task(id))
    }

    /// The record: of one task, or the latest entries of all.
    pub fn log(
        &mut self,
        task: Option<&TaskId>,
        after: Option<i64>,
        limit: i64,
    ) -> Result<LedgerView, Refusal> {
        if let Some(answer) = self.remote(|| calls::Log { task: task.cloned(), after, limit })? {
            return Ok(answer);
        }
        let entries = self.ask(|tx| {
            if let Some(id) = task
                && load::state(tx, id)?.is_none()
            {
                return Ok(None);
            }
            let part = match (task, after) {
                (Some(id), after) => Part::Task(id, after.unwrap_or(0)),
                (None, Some(seq)) => Part::After(seq),
                (None, None) => Part::Latest,
            };
            ledger::log(tx, &part, limit).map(Some)
        })?;
        match (entries, task) {
            (Some(entries), _) => Ok(LedgerView { entries: entries.iter().map(EntryView::from).collect() }),
            (None, Some(id)) => Err(unknown_task(id)),
            (None, None) => Ok(LedgerView { entries: Vec::new() }),
        }
    }
}

/// The last handoff, unless it is the present holder's own or the work has ended.
fn handed_on(task: &Task, notes: &[Note]) -> Option<HandoffView> {
    let last = notes.iter().rfind(|note| note.kind == "handoff")?;
    let view = handoff::view(&task.id, &last.text);
    let own =
        view.handoff.as_ref().zip(task.assignment()).is_some_and(|(last, held)| last.epoch == held.epoch);
    (!own && !task.state.name().is_terminal()).then_some(view)
}

/// A task's sessions as they count, the first one first.
fn sessions(tx: &mut dyn Tx, id: &TaskId) -> StoreResult<Vec<SessionView>> {
    let mut found = effort::list(tx, effort::Which::OfTask(id), i64::MAX)?;
    found.reverse();
    session::views(tx, &found)
}

pub(crate) fn unknown_task(id: &TaskId) -> Refusal {
    Refusal::new(Code::UnknownTask, format!("there is no task {id}")).task(id).hint("onus list --state all")
}
