//! Milestones as documents.

use super::MilestoneFacts;
use onus_core::id::{CommitId, Handle, MilestoneName, TaskId, WorkstationName};
use onus_core::milestone::{Member, Selection};
use onus_core::refusal::Finding;
use onus_core::registry::Registration;
use onus_core::task::StateName;
use onus_core::time::{Date, Timestamp};
use onus_store::milestone::StoredMilestone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MilestonesView {
    pub milestones: Vec<MilestoneLine>,
}

/// A milestone in a few words.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MilestoneLine {
    pub name: MilestoneName,
    pub title: Option<String>,
    /// `open` or `closed`.
    pub state: String,
    /// Which tasks it is about.
    pub selection: Selection,
    /// The day by which it is meant to be reached.
    pub target: Option<Date>,
    pub created_by: Handle,
    pub created_at: Timestamp,
    pub closed_by: Option<Handle>,
    pub closed_at: Option<Timestamp>,
}

/// The answer to `milestone add`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MilestoneAddedView {
    pub outcome: Registration,
    pub milestone: MilestoneView,
}

/// A milestone, its tasks, and exactly what it lacks.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MilestoneView {
    #[serde(flatten)]
    pub line: MilestoneLine,
    /// Its tasks, the oldest first.
    pub tasks: Vec<MemberView>,
    /// Empty where it may close, or where what was verified still holds.
    pub missing: Vec<Finding>,
    pub closed: Option<ClosedView>,
}

/// One of its tasks, as far as it matters here.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MemberView {
    pub id: TaskId,
    pub title: String,
    pub state: StateName,
    /// Who had it last.
    pub assignee: Option<Handle>,
    pub workstation: Option<WorkstationName>,
    /// What it was completed with.
    pub commit: Option<CommitId>,
}

/// What was verified.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ClosedView {
    /// The ledger entry.
    pub seq: i64,
    pub fingerprint: String,
    /// Whether the record still has what was verified. If not, it was tampered with: `ledger verify` tells where.
    pub intact: bool,
}

impl From<&StoredMilestone> for MilestoneLine {
    fn from(stored: &StoredMilestone) -> MilestoneLine {
        let milestone = &stored.milestone;
        let (created_by, created_at) = stored.added.clone();
        let (closed_by, closed_at) = stored.closed.clone().unzip();
        MilestoneLine {
            name: milestone.name.clone(),
            title: milestone.title.clone(),
            state: if milestone.closed.is_some() { "closed" } else { "open" }.to_owned(),
            selection: milestone.selection.clone(),
            target: milestone.target,
            created_by,
            created_at,
            closed_by,
            closed_at,
        }
    }
}

impl From<&Member> for MemberView {
    fn from(Member { task, story, .. }: &Member) -> MemberView {
        let (assignee, workstation) = story.worker.clone().unzip();
        MemberView {
            id: task.id.clone(),
            title: task.spec.title.clone(),
            state: task.state.name(),
            assignee,
            workstation,
            commit: story.ended.as_ref().and_then(|ended| ended.commit.clone()),
        }
    }
}

impl From<&MilestoneFacts> for MilestoneView {
    fn from(seen: &MilestoneFacts) -> MilestoneView {
        let closed = seen.stored.milestone.closed.zip(seen.intact);
        MilestoneView {
            line: MilestoneLine::from(&seen.stored),
            tasks: seen.members.iter().map(MemberView::from).collect(),
            missing: seen.missing.clone(),
            closed: closed.map(|(closed, intact)| ClosedView {
                seq: closed.seq,
                fingerprint: closed.fingerprint.to_string(),
                intact,
            }),
        }
    }
}
