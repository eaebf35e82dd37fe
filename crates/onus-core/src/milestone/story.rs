//! What the record says about one task of a milestone, since the task was last reopened.

use super::Milestone;
use crate::event::{Event, Stamped};
use crate::evidence::{CheckVerdict, Ground};
use crate::hash::{Digest, Fields};
use crate::id::{CheckId, CommitId, Handle, Seq, TaskId, WorkstationName};
use crate::mirror::concerns;
use crate::report::{forced, grant};
use crate::task::StateName;
use std::collections::{BTreeMap, BTreeSet};

/// The last run of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    pub seq: Seq,
    pub verdict: CheckVerdict,
    pub ground: Ground,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    pub seq: Seq,
    pub hash: Digest,
    pub state: StateName,
    pub commit: Option<CommitId>,
}

/// A task's chain, read from its beginning with [`Story::tell`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Story {
    pub ended: Option<Completion>,
    /// History from elsewhere, which nobody here has seen.
    pub archived: bool,
    /// Who had it last, and where.
    pub worker: Option<(Handle, WorkstationName)>,
    /// Everywhere that it was worked on.
    pub places: BTreeSet<WorkstationName>,
    /// Each act by force: what, by whom, and why.
    pub bypassed: Vec<(&'static str, Handle, String)>,
    pub runs: BTreeMap<CheckId, Ran>,
    /// The last entry that mirrors are told of.
    pub newest: Seq,
}

impl Story {
    /// Takes the next entry of the chain in. Reopening begins anew: what is then done goes through every gate again.
    pub fn tell(&mut self, entry: &Stamped, hash: Digest) {
        let end = |state, commit| Some(Completion { seq: entry.seq, hash, state, commit });
        // A release by force lets others through the gate again: nothing is built by it.
        if let Some(reason) = forced(&entry.event)
            && !matches!(entry.event, Event::Released(_))
        {
            self.bypassed.push((entry.event.verb(), entry.actor.clone(), reason.to_owned()));
        }
        if let (Some((_, worker)), Some(place)) = (grant(entry), &entry.workstation) {
            self.worker = Some((worker.clone(), place.clone()));
            self.places.insert(place.clone());
        }
        match &entry.event {
            Event::Added(added) => {
                self.archived = added.archived.is_some();
                self.ended = added.archived.as_ref().and_then(|archived| end(archived.state, None));
            }
            Event::Followed(followed) => {
                self.archived = followed.archived.is_some();
                self.ended = followed.archived.as_ref().and_then(|archived| end(archived.state, None));
            }
            Event::Completed(completed) => {
                self.ended = end(StateName::Complete, completed.commit.clone());
            }
            Event::Dropped(_) => self.ended = end(StateName::Dropped, None),
            Event::Reopened(_) => *self = Story::default(),
            Event::CheckRun(run) => {
                let ran = Ran { seq: entry.seq, verdict: run.verdict, ground: run.ground.clone() };
                self.runs.insert(run.check.clone(), ran);
            }
            _ => {}
        }
        if concerns(&entry.event) {
            self.newest = entry.seq;
        }
    }
}

/// What is verified: which tasks, how each of them ended, and which run of each check proves it. An entry's hash stands
/// for everything before it.
pub fn fingerprint<'a>(
    milestone: &Milestone,
    members: impl IntoIterator<Item = (&'a TaskId, &'a Story)>,
) -> Digest {
    let mut fields = Fields::new("onus-milestone-1");
    fields.text(milestone.name.as_str());
    for (task, story) in members {
        fields.text(&task.to_string());
        match &story.ended {
            Some(ended) => fields.text(ended.state.name()).text(&ended.hash.to_string()),
            None => fields.text(""),
        };
        fields.int(i64::try_from(story.runs.len()).unwrap_or(i64::MAX));
        for (check, ran) in &story.runs {
            fields.text(check.as_str()).int(ran.seq);
        }
    }
    fields.digest()
}
