//! What the record says of a task's way into the main of record.

use crate::Onus;
use crate::remote::calls;
use crate::show;
use crate::view::LandedView;
use onus_core::event::{Event, Merged};
use onus_core::evidence::RootCause;
use onus_core::id::{CommitId, Epoch, TaskId};
use onus_core::refusal::Refusal;
use onus_core::task::Task;
use onus_store::evidence;
use onus_store::landed::{self, LandedCommit};
use onus_store::read::ledger;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Arrived {
    /// Every merge on record, with the epoch of its holder, the first one first.
    pub(crate) merges: Vec<(Epoch, Merged)>,
    /// Which holder went on with whose work: its own epoch, the earlier one.
    pub(crate) adopted: Vec<(Epoch, Epoch)>,
    pub(crate) landed: Vec<LandedCommit>,
    /// Which commits another worker was asked to look at.
    pub(crate) requested: Vec<Option<CommitId>>,
}

impl Arrived {
    /// The earlier epochs whose work the holder of this one went on with.
    pub(crate) fn adopted_epochs(&self, holder: Epoch) -> Vec<Epoch> {
        self.adopted.iter().filter(|(by, _)| *by == holder).map(|(_, of)| *of).collect()
    }

    /// The last merge of this holder.
    pub(crate) fn last_merge(&self, holder: Epoch) -> Option<&Merged> {
        self.merges.iter().rev().find(|(epoch, _)| *epoch == holder).map(|(_, merged)| merged)
    }

    /// Why the defect happened, as this holder said before a merge.
    pub(crate) fn root_cause(&self, holder: Epoch) -> Option<RootCause> {
        self.last_merge(holder)?.root_cause.clone()
    }
}

impl Onus {
    /// Why the defect happened, as its present or last holder said with a merge.
    pub(crate) fn root_cause_of_merge(&mut self, task: &Task) -> Result<Option<RootCause>, Refusal> {
        Ok(self.landing_of(&task.id)?.root_cause(task.epoch))
    }

    /// What the record says of a task's way into the main of record.
    pub(crate) fn landing_of(&mut self, task: &TaskId) -> Result<Arrived, Refusal> {
        if let Some(answer) = self.remote(|| calls::LandingOf { task: task.clone() })? {
            return Ok(answer);
        }
        self.ask(|tx| {
            let mut arrived = Arrived { landed: landed::of_task(tx, task)?, ..Arrived::default() };
            let speaks = |verb: &str| matches!(verb, "merged" | "adopted" | "review_requested");
            ledger::chain(tx, Some(&task.to_string()), &mut |_, entry| {
                let entry = entry?;
                let told =
                    Some(&entry).filter(|entry| speaks(&entry.verb)).and_then(|entry| entry.open().ok());
                match told.map(|stamped| stamped.event) {
                    Some(Event::Merged(merged)) => arrived.merges.push((entry.epoch, merged)),
                    Some(Event::Adopted(adopted)) => arrived.adopted.push((entry.epoch, adopted.of)),
                    Some(Event::ReviewRequested(requested)) => arrived.requested.push(requested.commit),
                    _ => {}
                }
                Ok(())
            })?;
            Ok(arrived)
        })
    }

    /// What of a task is in the main of record, as people are told.
    pub(crate) fn landed_view_of(&mut self, task: &TaskId) -> Result<Option<LandedView>, Refusal> {
        if let Some(answer) = self.remote(|| calls::LandedViewOf { task: task.clone() })? {
            return Ok(answer);
        }
        let entries = self.ask(|tx| {
            let mut ends = Vec::new();
            ledger::chain(tx, Some(&task.to_string()), &mut |_, entry| {
                ends.extend(Some(entry?).filter(show::is_end));
                Ok(())
            })?;
            Ok(ends)
        })?;
        Ok(show::ended(&entries).1)
    }

    /// Which of some commits have landed, and whose they are.
    pub(crate) fn landed_by(&mut self, commits: &[CommitId]) -> Result<Vec<LandedCommit>, Refusal> {
        if let Some(answer) = self.remote(|| calls::LandedBy { commits: commits.to_vec() })? {
            return Ok(answer);
        }
        self.ask(|tx| {
            let mut found = Vec::new();
            for commit in commits {
                found.extend(landed::by_commit(tx, commit)?);
            }
            Ok(found)
        })
    }

    /// The commits that reviewers of a task saw.
    pub(crate) fn reviewed_commits(&mut self, task: &TaskId) -> Result<Vec<CommitId>, Refusal> {
        if let Some(answer) = self.remote(|| calls::ReviewsOf { task: task.clone() })? {
            return Ok(answer);
        }
        let reviews = self.ask(|tx| evidence::reviews(tx, task))?;
        Ok(reviews.into_iter().filter_map(|review| review.commit).collect())
    }
}
