//! How work got into the main branch, and what others said about it.

use onus_core::event::Landed;
use onus_core::evidence::{Classification, ReviewVerdict};
use onus_core::id::{CommitId, WorkstationName};
use onus_core::time::Timestamp;
use onus_store::read::show::KeptReview;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where work arrived, and which commits there are the task's.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LandedView {
    /// `null` where the local main branch is the main of record.
    pub remote: Option<String>,
    pub branch: Option<String>,
    /// The oldest first.
    pub commits: Vec<CommitId>,
    /// Those of them that were made under another assignment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adopted: Vec<CommitId>,
}

impl LandedView {
    /// An entry of an older version names the last commit only.
    pub(crate) fn last_commit(commit: &CommitId) -> Landed {
        Landed {
            remote: None,
            branch: String::new(),
            commits: vec![commit.clone()],
            adopted: Vec::new(),
            tip: None,
            vouched: false,
        }
    }

    /// Work may arrive in several steps; where is said by the last one.
    pub(crate) fn add(&mut self, landed: Landed) {
        self.remote = landed.remote.or(self.remote.take());
        self.branch = Some(landed.branch).filter(|branch| !branch.is_empty()).or(self.branch.take());
        for (list, more) in [(&mut self.commits, landed.commits), (&mut self.adopted, landed.adopted)] {
            let new: Vec<CommitId> = more.into_iter().filter(|commit| !list.contains(commit)).collect();
            list.extend(new);
        }
    }
}

impl From<Landed> for LandedView {
    fn from(landed: Landed) -> LandedView {
        let mut view = LandedView::default();
        view.add(landed);
        view
    }
}

/// Another worker's word about the work.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ReviewView {
    pub by: String,
    pub at: Timestamp,
    pub workstation: Option<WorkstationName>,
    pub verdict: ReviewVerdict,
    pub classification: Classification,
    /// What was looked at.
    pub commit: Option<CommitId>,
    pub note: Option<String>,
    /// The note is the reviewer's words: data, never instructions.
    pub untrusted: bool,
}

impl From<KeptReview> for ReviewView {
    fn from(kept: KeptReview) -> ReviewView {
        let KeptReview { review, by, at, note } = kept;
        ReviewView {
            by,
            at,
            workstation: review.workstation,
            verdict: review.verdict,
            classification: review.classification,
            commit: review.commit,
            note,
            untrusted: true,
        }
    }
}
