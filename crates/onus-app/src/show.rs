//! `show`: everything that is known about one task.

use crate::Onus;
use crate::handoff::{self, HandoffView};
use crate::limits::LimitView;
use crate::remote::calls;
use crate::session::{self, SessionView};
use crate::view::{AssignmentView, EntryView, LandedView, LedgerView, NoteView, ReviewView, TaskView};
use onus_core::code::Code;
use onus_core::event::Event;
use onus_core::evidence::RootCause;
use onus_core::id::{Seq, TaskId};
use onus_core::intake::CHANNELS;
use onus_core::ledger::Entry;
use onus_core::process::Death;
use onus_core::refusal::Refusal;
use onus_core::task::{StateName, Task};
use onus_host::process_liveness;
use onus_store::error::Result as StoreResult;
use onus_store::load;
use onus_store::port::Tx;
use onus_store::read::effort;
use onus_store::read::ledger::{self, LedgerPart};
use onus_store::read::show::{self, KeptReview, Note};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// So many entries of a story are told at once, unless fewer or more are asked for.
const ENTRIES: i64 = 200;
const ENTRIES_MAX: i64 = 1_000;

/// So many assignments and sessions.
const ASSIGNMENTS: i64 = 50;
const SESSIONS: i64 = 100;

/// So many bytes of notes and entries; one of them is told, however long it is.
const BYTES: usize = 256 * 1024;

/// The story of one task, or a part of it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct StoryView {
    pub task: TaskView,
    /// The proof that the present holder is dead: it may be taken over at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead: Option<Death>,
    pub dependencies: Vec<DependencyView>,
    pub dependents: Vec<TaskId>,
    pub assignments: Vec<AssignmentView>,
    pub sessions: Vec<SessionView>,
    pub notes: Vec<NoteView>,
    /// The last handoff, where the task has changed hands since or waits for the next ones.
    pub handoff: Option<HandoffView>,
    /// What others said about the work, the first one first.
    #[serde(default)]
    pub reviews: Vec<ReviewView>,
    /// Why the defect happened.
    #[serde(default)]
    pub root_cause: Option<RootCause>,
    /// What of it is in the main of record.
    #[serde(default)]
    pub landed: Option<LandedView>,
    /// What was used of the limits that it is under.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitView>,
    pub ledger: Vec<EntryView>,
    /// There is more: ask for what came before this entry.
    #[serde(default)]
    pub earlier: Option<Seq>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DependencyView {
    pub task: TaskId,
    pub state: Option<StateName>,
}

/// Which part of a task's story: its end, or what came before an entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoryPart {
    #[serde(default)]
    pub before: Option<Seq>,
    /// At most so many entries.
    #[serde(default)]
    pub limit: Option<i64>,
}

impl Onus {
    /// The end of a task's story.
    pub fn show(&mut self, id: &TaskId) -> Result<StoryView, Refusal> {
        self.show_part(id, StoryPart::default())
    }

    /// A part of a task's story: as much as fits into one answer, however long the story is.
    pub fn show_part(&mut self, id: &TaskId, part: StoryPart) -> Result<StoryView, Refusal> {
        if let Some(answer) = self.remote(|| calls::Show { task: id.clone(), part })? {
            return Ok(answer);
        }
        let found = self.ask(|tx| {
            let Some(stored) = load::task(tx, id)? else {
                return Ok(None);
            };
            let task = stored.task;
            let before = part.before.unwrap_or(Seq::MAX);
            let Passage { entries, notes, reviews, earlier } = told(tx, &task, before, part.limit)?;
            // What nobody has held has no assignments: most tasks are shown once before they are claimed, and each
            // question has to be prepared anew by every call.
            let was_held = task.epoch > 0;
            let epoch =
                entries.last().filter(|_| part.before.is_some()).map_or(task.epoch, |last| last.epoch);
            let assignments =
                if was_held { show::last_assignments(tx, id, epoch, ASSIGNMENTS)? } else { Vec::new() };
            let now = tx.now()?;
            let (root_cause, landed) = ended(&entries);
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
                sessions: if was_held { sessions(tx, id, before)? } else { Vec::new() },
                handoff: handed_on(tx, &task)?,
                notes: notes.iter().map(|note| placed(note, &entries)).collect(),
                reviews: reviews.into_iter().map(ReviewView::from).collect(),
                root_cause,
                landed,
                limits: Vec::new(),
                ledger: entries.iter().map(EntryView::from).collect(),
                task: TaskView::from(&task),
                earlier,
            }))
        })?;
        let story = found.ok_or_else(|| unknown_task(id))?;
        let limits = match story.task.state.is_terminal() {
            true => Vec::new(),
            false => self.limits(Some(id))?.limits,
        };
        Ok(StoryView { limits, ..story })
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
                (Some(id), after) => LedgerPart::Task(id, after.unwrap_or(0)),
                (None, Some(seq)) => LedgerPart::After(seq),
                (None, None) => LedgerPart::Latest,
            };
            ledger::log_bounded(tx, &part, limit).map(Some)
        })?;
        match (entries, task) {
            (Some(entries), _) => Ok(LedgerView { entries: entries.iter().map(EntryView::from).collect() }),
            (None, Some(id)) => Err(unknown_task(id)),
            (None, None) => Ok(LedgerView { entries: Vec::new() }),
        }
    }
}

/// Whether an entry is about the end of the work.
pub(crate) fn is_end(entry: &Entry) -> bool {
    matches!(entry.verb.as_str(), "merged" | "completed")
}

/// What the record says about the end of the work: why the defect was, and what arrived in the main of record.
pub(crate) fn ended(entries: &[Entry]) -> (Option<RootCause>, Option<LandedView>) {
    let (mut cause, mut landed) = (None, None::<LandedView>);
    for entry in entries.iter().filter(|entry| is_end(entry)) {
        // What cannot be read is `ledger verify`'s to tell.
        let (said, arrived) = match entry.open().map(|stamped| stamped.event) {
            Ok(Event::Merged(merged)) => {
                let arrived = merged.landed.unwrap_or_else(|| LandedView::last_commit(&merged.commit));
                (merged.root_cause, Some(arrived))
            }
            Ok(Event::Completed(completed)) => (completed.root_cause, completed.landed),
            _ => (None, None),
        };
        cause = said.or(cause);
        if let Some(arrived) = arrived {
            landed.get_or_insert_with(LandedView::default).add(arrived);
        }
    }
    (cause, landed)
}

/// Entries with the notes and reviews that they wrote, the first one first, and where what came before them ends.
#[derive(Default)]
struct Passage {
    entries: Vec<Entry>,
    notes: Vec<Note>,
    reviews: Vec<KeptReview>,
    earlier: Option<Seq>,
}

/// So many entries' words are read at once, from the end: of a long story most are not told.
const AT_ONCE: usize = 32;

fn told(tx: &mut dyn Tx, task: &Task, before: Seq, limit: Option<i64>) -> StoreResult<Passage> {
    let limit = limit.unwrap_or(ENTRIES).clamp(1, ENTRIES_MAX);
    let mut entries = ledger::log(tx, &LedgerPart::TaskBefore(&task.id, before), limit + 1)?;
    let most = usize::try_from(limit).unwrap_or(usize::MAX).min(entries.len());
    let (mut passage, mut bytes, mut fits, mut end) = (Passage::default(), 0, 0, before);
    for part in entries[entries.len() - most..].rchunks(AT_ONCE) {
        let first = part.first().map_or(0, |entry| entry.seq);
        // What has one entry has no notes, unless it arrived with its end.
        let notes = match task.version > 1 || task.archived {
            true => show::notes(tx, &task.id, first, end)?,
            false => Vec::new(),
        };
        let reviews = match part.iter().any(|entry| entry.verb == "reviewed") {
            true => show::reviews(tx, &task.id, first, end)?,
            false => Vec::new(),
        };
        let words = |seq: Seq| {
            let note = notes.iter().rfind(|note| note.seq == seq).map(|note| note.text.len());
            let review = reviews.iter().rfind(|kept| kept.review.seq == seq);
            note.unwrap_or(0) + review.and_then(|kept| kept.note.as_ref()).map_or(0, String::len)
        };
        let before_them = fits;
        for entry in part.iter().rev() {
            bytes += entry.data.len() + words(entry.seq);
            if fits > 0 && bytes > BYTES {
                break;
            }
            fits += 1;
        }
        passage.notes.splice(..0, notes);
        passage.reviews.splice(..0, reviews);
        if fits < before_them + part.len() {
            break;
        }
        end = first;
    }
    let cut = entries.len() - fits;
    passage.entries = entries.split_off(cut);
    let first = passage.entries.first().map_or(0, |entry| entry.seq);
    passage.notes.retain(|note| note.seq >= first);
    passage.reviews.retain(|kept| kept.review.seq >= first);
    passage.earlier = (cut > 0).then_some(first);
    Ok(passage)
}

/// A comment on a line says which.
fn placed(note: &Note, entries: &[Entry]) -> NoteView {
    let entry = entries.iter().find(|entry| entry.seq == note.seq && entry.verb == "line_commented");
    let place = entry.and_then(|entry| match entry.open().ok()?.event {
        Event::LineCommented(said) => Some(format!("{}:{}", said.path, said.line)),
        _ => None,
    });
    NoteView { place, ..NoteView::from(note) }
}

/// The last handoff, unless it is the present holder's own or the work has ended.
fn handed_on(tx: &mut dyn Tx, task: &Task) -> StoreResult<Option<HandoffView>> {
    if task.epoch == 0 || task.state.name().is_terminal() {
        return Ok(None);
    }
    let last = show::last_note(tx, &task.id, "handoff")?.map(|text| handoff::view(&task.id, &text));
    let is_own = |view: &HandoffView| {
        view.handoff.as_ref().zip(task.assignment()).is_some_and(|(last, held)| last.epoch == held.epoch)
    };
    Ok(last.filter(|view| !is_own(view)))
}

/// A task's last sessions before an entry, as they count, the first one first.
fn sessions(tx: &mut dyn Tx, id: &TaskId, before: Seq) -> StoreResult<Vec<SessionView>> {
    let mut found = effort::list(tx, effort::Which::OfTaskBefore(id, before), SESSIONS)?;
    found.reverse();
    session::views(tx, &found)
}

pub(crate) fn unknown_task(id: &TaskId) -> Refusal {
    Refusal::new(Code::UnknownTask, format!("there is no task {id}")).task(id).hint("onus list --state all")
}

impl Onus {
    /// The story of the task that a name means.
    pub fn show_named(&mut self, name: &str, part: StoryPart) -> Result<StoryView, Refusal> {
        match name.parse::<TaskId>().map(|id| self.show_part(&id, part)) {
            Ok(Err(refusal)) if refusal.code != Code::UnknownTask => Err(refusal),
            Ok(Ok(story)) => Ok(story),
            _ => {
                let id = self.named(name)?;
                self.show_part(&id, part)
            }
        }
    }

    /// The task that a name means: its id, its origin, or what it is called in the tool that it came from.
    pub fn named(&mut self, name: &str) -> Result<TaskId, Refusal> {
        let id = name.parse::<TaskId>();
        if let Ok(id) = &id
            && self.find_task(id)?.is_some()
        {
            return Ok(id.clone());
        }
        let mut found = Vec::new();
        let whole = name.contains(':').then(|| name.to_owned());
        let by_key = CHANNELS.iter().map(|channel| format!("{channel}:{name}"));
        for origin in whole.into_iter().chain(by_key) {
            if let Ok(origin) = origin.parse()
                && let Some(task) = self.task_by_origin(&origin)?
            {
                found.push(task.id);
            }
        }
        match (found.as_slice(), id) {
            ([one], _) => Ok(one.clone()),
            ([], Ok(id)) => Err(unknown_task(&id)),
            // Nobody has heard of it, and no task could have that id.
            ([], Err(why)) => {
                let detail = format!("{why}, and nothing came from elsewhere under that name");
                Err(Refusal::invalid(detail).hint("onus list --state all"))
            }
            (several, _) => {
                let names: Vec<String> = several.iter().map(TaskId::to_string).collect();
                let detail = format!("{} is {}", onus_core::id::shown(name), names.join(" and "));
                Err(Refusal::new(Code::UnknownTask, detail).hint(format!("onus show {}", names[0])))
            }
        }
    }
}
