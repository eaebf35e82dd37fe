//! What else becomes true with an event: the rows that refer to the task (mission A3: they refer, they never copy).

use crate::event::{CheckRun, Event, OutputClosed, Reviewed, Said, SessionCorrected, SessionUsed, Stamped};
use crate::id::{CommitId, Epoch, Seq};
use crate::output::KeptOutput;
use crate::session::Usage;
use crate::task::{Assignment, State, Task};
use crate::text::Text;
use crate::time::Timestamp;

/// A change to a row beside the task's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    AssignmentStarted(Assignment),
    AssignmentRenewed(Assignment),
    AssignmentConstrained(Assignment),
    AssignmentEnded {
        epoch: Epoch,
        at: Timestamp,
        reason: EndReason,
    },
    SessionStarted {
        assignment: Assignment,
        at: Timestamp,
    },
    SessionStopped {
        epoch: Epoch,
        at: Timestamp,
        reason: EndReason,
    },
    SessionCorrected {
        session: Seq,
        started_at: Timestamp,
        ended_at: Timestamp,
        /// Nobody else has agreed yet: nothing counts by it.
        proposed: bool,
    },
    SessionUsed {
        session: Seq,
        usage: Usage,
    },
    OutputClosed {
        session: Seq,
        output: KeptOutput,
    },
    NoteWritten {
        kind: NoteKind,
        text: Text,
        /// Where it was said, if not here.
        said: Option<Said>,
    },
    CheckRan(Box<CheckRun>),
    ReviewWritten(Box<Reviewed>),
    /// Commits of the main of record that are the task's.
    Landed {
        epoch: Epoch,
        commits: Vec<CommitId>,
    },
}

/// Why an assignment or a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    Completed,
    Released,
    Blocked,
    Stopped,
    TakenOver,
    Forced,
    Dropped,
}

impl EndReason {
    pub const fn name(self) -> &'static str {
        match self {
            EndReason::Completed => "completed",
            EndReason::Released => "released",
            EndReason::Blocked => "blocked",
            EndReason::Stopped => "stopped",
            EndReason::TakenOver => "taken_over",
            EndReason::Forced => "forced",
            EndReason::Dropped => "dropped",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteKind {
    Progress,
    Comment,
    Handoff,
    Resolution,
    /// What the body was before it was edited.
    EarlierBody,
    /// Something for somebody.
    Message,
    LineComment,
}

impl NoteKind {
    pub const fn name(self) -> &'static str {
        match self {
            NoteKind::Progress => "progress",
            NoteKind::Comment => "comment",
            NoteKind::Handoff => "handoff",
            NoteKind::Resolution => "resolution",
            NoteKind::EarlierBody => "earlier_body",
            NoteKind::Message => "message",
            NoteKind::LineComment => "line_comment",
        }
    }
}

/// The effects of one entry, given the task before and after it.
///
/// A session lasts whole seconds, so that every sum of sessions is exact in every grouping.
pub fn effects(before: Option<&Task>, entry: &Stamped, after: &Task) -> Vec<Effect> {
    let mut effects = Vec::new();
    let was = before.and_then(Task::assignment);
    let is = after.assignment();
    if let Some(old) = was
        && is.is_none_or(|new| new.epoch != old.epoch)
    {
        let (at, reason) = end(entry, old);
        effects.push(Effect::AssignmentEnded { epoch: old.epoch, at, reason });
    }
    if let Some(new) = is {
        match was.filter(|old| old.epoch == new.epoch) {
            None => effects.push(Effect::AssignmentStarted(new.clone())),
            Some(old) if old.lease != new.lease || old.resting != new.resting => {
                effects.push(Effect::AssignmentRenewed(new.clone()));
            }
            Some(old) if old.constraints != new.constraints => {
                effects.push(Effect::AssignmentConstrained(new.clone()));
            }
            Some(_) => {}
        }
    }
    let working = |task: Option<&Task>| match task.map(|task| &task.state) {
        Some(State::InProgress(held)) if !held.resting => Some(held.clone()),
        _ => None,
    };
    let (worked, works) = (working(before), working(Some(after)));
    if worked.as_ref().map(|held| held.epoch) != works.as_ref().map(|held| held.epoch) {
        if let Some(old) = worked {
            let (at, reason) = end(entry, &old);
            effects.push(Effect::SessionStopped { epoch: old.epoch, at: at.whole_second(), reason });
        }
        if let Some(assignment) = works {
            effects.push(Effect::SessionStarted { assignment, at: entry.at.whole_second() });
        }
    }
    match &entry.event {
        Event::CheckRun(run) => effects.push(Effect::CheckRan(Box::new(run.clone()))),
        Event::Reviewed(review) => effects.push(Effect::ReviewWritten(Box::new(review.clone()))),
        _ => {}
    }
    effects.extend(landed(entry));
    effects.extend(fact(&entry.event));
    let said = match &entry.event {
        Event::Noted(noted) => noted.said.clone(),
        _ => None,
    };
    effects.extend(note(&entry.event).map(|(kind, text)| Effect::NoteWritten {
        kind,
        text: text.clone(),
        said,
    }));
    effects
}

/// When the work under `old` ended. Only the holder's own act counts as work up to that moment; when somebody else
/// ends it, the holder was last seen at its last renewal, and nobody is paid for hours that nobody worked.
fn end(entry: &Stamped, old: &Assignment) -> (Timestamp, EndReason) {
    let seen = old.lease.renewed_at;
    let own_act = if entry.actor == old.assignee { entry.at } else { seen };
    match &entry.event {
        Event::Completed(completed) if completed.forced => (own_act, EndReason::Forced),
        Event::Released(released) if released.forced => (own_act, EndReason::Forced),
        // A grant to the same name is another process: the old one was last seen at its last renewal.
        Event::Claimed(_) => (seen, EndReason::Forced),
        Event::TakenOver(taken) if taken.grant.forced => (seen, EndReason::Forced),
        Event::TakenOver(_) => (seen, EndReason::TakenOver),
        Event::Dropped(_) => (own_act, EndReason::Dropped),
        Event::Completed(_) => (entry.at, EndReason::Completed),
        Event::Blocked(_) => (entry.at, EndReason::Blocked),
        Event::SessionStopped(_) => (entry.at, EndReason::Stopped),
        _ => (entry.at, EndReason::Released),
    }
}

/// What an entry says has arrived in the main of record. One that an older version wrote names the last commit only.
fn landed(entry: &Stamped) -> Option<Effect> {
    let commits = match &entry.event {
        Event::Merged(merged) => match &merged.landed {
            Some(landed) if !landed.commits.is_empty() => landed.commits.clone(),
            _ => vec![merged.commit.clone()],
        },
        Event::Completed(completed) => completed.landed.as_ref()?.commits.clone(),
        _ => return None,
    };
    let mut seen = std::collections::BTreeSet::new();
    let commits: Vec<CommitId> = commits.into_iter().filter(|commit| seen.insert(commit.clone())).collect();
    (!commits.is_empty()).then_some(Effect::Landed { epoch: entry.epoch, commits })
}

/// What is said about a session afterwards.
fn fact(event: &Event) -> Option<Effect> {
    match event {
        Event::SessionCorrected(said) => {
            let SessionCorrected { session, started_at, ended_at, proposed, .. } = *said;
            Some(Effect::SessionCorrected { session, started_at, ended_at, proposed })
        }
        Event::SessionUsed(SessionUsed { session, usage }) => {
            Some(Effect::SessionUsed { session: *session, usage: usage.clone() })
        }
        Event::OutputClosed(OutputClosed { session, output }) => {
            Some(Effect::OutputClosed { session: *session, output: output.clone() })
        }
        _ => None,
    }
}

fn note(event: &Event) -> Option<(NoteKind, &Text)> {
    match event {
        Event::Noted(noted) if noted.handoff => Some((NoteKind::Handoff, &noted.text)),
        Event::Noted(noted) if noted.renewal.is_some() => Some((NoteKind::Progress, &noted.text)),
        Event::Noted(noted) => Some((NoteKind::Comment, &noted.text)),
        Event::Messaged(said) => Some((NoteKind::Message, &said.text)),
        Event::LineCommented(comment) => Some((NoteKind::LineComment, &comment.text)),
        Event::Released(released) => released.note.as_ref().map(|text| (NoteKind::Handoff, text)),
        Event::Blocked(blocked) => blocked.handoff.as_ref().map(|text| (NoteKind::Handoff, text)),
        Event::Completed(completed) => Some((NoteKind::Resolution, &completed.resolution)),
        Event::Edited(edited) if edited.before.body != edited.after.body => {
            edited.before.body.as_ref().map(|text| (NoteKind::EarlierBody, text))
        }
        Event::Added(added) => {
            added.archived.as_ref()?.resolution.as_ref().map(|text| (NoteKind::Resolution, text))
        }
        Event::Followed(followed) => {
            followed.archived.as_ref()?.resolution.as_ref().map(|text| (NoteKind::Resolution, text))
        }
        _ => None,
    }
}
