//! Writes what was decided: new tasks with what was said about them elsewhere, then their dependencies, which may point in
//! any direction.

use crate::progress::Progress;
use crate::submit::unexpected;
use onus_core::effect::effects;
use onus_core::event::{Event, Noted, Said, Stamped};
use onus_core::hash::Digest;
use onus_core::id::{Handle, ProjectKey, Seq, TaskId};
use onus_core::ledger::Entry;
use onus_core::refusal::Refusal;
use onus_core::task::{Task, evolve};
use onus_core::text::Text;
use onus_core::time::{Now, Timestamp};
use onus_store::apply::{self, Change};
use onus_store::load::{self, Workspace};
use onus_store::port::Tx;
use std::collections::{BTreeMap, BTreeSet};

/// How many tasks pass between two words about progress.
const STRIDE: usize = 1_000;

/// A new task, decided but not written, and what was said about it elsewhere.
pub(super) struct Step {
    pub(super) id: TaskId,
    pub(super) event: Event,
    pub(super) notes: Vec<(Text, Said)>,
}

/// A task that is there and that its own system has changed.
pub(super) struct Refresh {
    pub(super) task: Task,
    pub(super) head: Digest,
    pub(super) events: Vec<Event>,
}

/// What is to be written.
pub(super) struct Steps {
    pub(super) decided: Vec<Step>,
    pub(super) refreshed: Vec<Refresh>,
    pub(super) numbers: BTreeMap<ProjectKey, i64>,
    pub(super) now: Now,
}

impl Steps {
    pub(super) fn none(now: Now) -> Steps {
        Steps { decided: Vec::new(), refreshed: Vec::new(), numbers: BTreeMap::new(), now }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.decided.is_empty() && self.refreshed.is_empty()
    }

    /// Gives the number of the last entry.
    pub(super) fn write(
        self,
        tx: &mut dyn Tx,
        actor: &Handle,
        progress: &mut dyn Progress,
    ) -> Result<Seq, Refusal> {
        let workspace: Workspace = load::workspace(tx)?;
        let born_after = workspace.last_seq;
        let mut pen = Pen { workspace: workspace.uid, seq: born_after, actor, wall: self.now.wall };
        progress.begin("importing", Some((self.decided.len() + self.refreshed.len()) as u64));
        let mut edges: Vec<(TaskId, BTreeSet<TaskId>)> = Vec::new();
        for (index, step) in self.decided.into_iter().enumerate() {
            let (mut task, mut head, depends_on) = pen.begin(tx, step.id, step.event)?;
            for (text, said) in step.notes {
                let noted = Noted { text, renewal: None, handoff: false, said: Some(said) };
                (task, head) = pen.go_on(tx, task, head, noted.into())?;
            }
            if !depends_on.is_empty() {
                edges.push((task.id, depends_on));
            }
            if index % STRIDE == 0 {
                progress.at(index as u64);
            }
        }
        for Refresh { mut task, mut head, events } in self.refreshed {
            for event in events {
                (task, head) = pen.go_on(tx, task, head, event)?;
            }
        }
        for (task, depends_on) in &edges {
            for on in depends_on {
                onus_store::bulk::depend(tx, task, on)?;
            }
        }
        apply::refresh_younger(tx, born_after)?;
        for (project, number) in self.numbers {
            apply::reserve(tx, &TaskId { project, number })?;
        }
        progress.end();
        Ok(pen.seq)
    }
}

/// Writes entries, one behind the other.
struct Pen<'a> {
    workspace: String,
    seq: Seq,
    actor: &'a Handle,
    wall: Timestamp,
}

impl Pen<'_> {
    /// A task's first entry; its dependencies are left for later.
    fn begin(
        &mut self,
        tx: &mut dyn Tx,
        id: TaskId,
        event: Event,
    ) -> Result<(Task, Digest, BTreeSet<TaskId>), Refusal> {
        let stamped = self.stamped(None, id, event);
        let mut after = evolve(None, &stamped).map_err(unexpected)?;
        let entry = Entry::seal(&self.workspace, &stamped, Digest::ZERO).map_err(unexpected)?;
        let effects = effects(None, &stamped, &after);
        let depends_on = std::mem::take(&mut after.depends_on);
        apply::change(tx, &Change { before: None, after: &after, entry: &entry, effects: &effects })?;
        Ok((after, entry.hash, depends_on))
    }

    fn go_on(
        &mut self,
        tx: &mut dyn Tx,
        before: Task,
        head: Digest,
        event: Event,
    ) -> Result<(Task, Digest), Refusal> {
        let stamped = self.stamped(Some(&before), before.id.clone(), event);
        let after = evolve(Some(before.clone()), &stamped).map_err(unexpected)?;
        let entry = Entry::seal(&self.workspace, &stamped, head).map_err(unexpected)?;
        let effects = effects(Some(&before), &stamped, &after);
        let change = Change { before: Some(&before), after: &after, entry: &entry, effects: &effects };
        apply::change(tx, &change)?;
        Ok((after, entry.hash))
    }

    fn stamped(&mut self, before: Option<&Task>, id: TaskId, event: Event) -> Stamped {
        self.seq += 1;
        Stamped::following(before, self.seq, id, self.wall, self.actor.clone(), None, event)
    }
}
