//! What happened to the workspace itself: who there is, where work goes, what was agreed.

use super::is_false;
use crate::hash::Digest;
use crate::id::{
    BranchName, CloneId, CommitId, Handle, MilestoneName, ProjectKey, Role, TokenId, WorkstationName,
};
use crate::milestone::Selection;
use crate::probe::{Probe, ProbeResult};
use crate::saved_view::ViewQuery;
use crate::text::Text;
use crate::time::{Date, Timestamp};
use crate::token::TokenKind;
use crate::worker::Kind;
use crate::workstation::{Lifecycle, WorkstationKind};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

data! {
    WorkspaceCreated { uid: Uuid, public_key: String }
    ProjectAdded { key: ProjectKey }

    WorkerAdded {
        handle: Handle,
        kind: Kind,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tier: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<Role>,
        tz: String,
    }

    WorkstationAdded {
        name: WorkstationName,
        kind: WorkstationKind,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        lifecycle: Lifecycle,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<BranchName>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        probes: Vec<Probe>,
        /// Whose work goes there, and in which of its slots.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<Role>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lane: Option<i64>,
    }

    WorkerPaused { handle: Handle, reason: String }
    WorkerResumed { handle: Handle }
    WorkstationReady { name: WorkstationName }
    WorkstationNotReady { name: WorkstationName, failed: Vec<ProbeResult> }
    WorkstationQuarantined { name: WorkstationName, reason: String }
    WorkstationRestored {
        name: WorkstationName,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }
    WorkstationRetired {
        name: WorkstationName,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Its directory was removed.
        #[serde(default, skip_serializing_if = "is_false")]
        removed: bool,
    }

    TokenIssued {
        id: TokenId,
        /// The digest of what the store keeps of it: a row that was swapped shows, and the record opens nothing.
        seal: Digest,
        kind: TokenKind,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worker: Option<Handle>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workstation: Option<WorkstationName>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<Timestamp>,
    }

    TokenRevoked {
        id: TokenId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }

    /// A person declared every earlier lease token dead, after a restore or a lossy failover.
    GenerationRaised { generation: i64, reason: String }

    Imported {
        created: i64,
        existing: i64,
        digest: Text,
        /// How many of the existing ones the file changed.
        #[serde(default, skip_serializing_if = "is_zero")]
        changed: i64,
    }

    TimesheetApproved {
        worker: Handle,
        /// The first and the last day, in the worker's own zone.
        from: Date,
        to: Date,
        /// Of the sessions and usages that were approved.
        fingerprint: Digest,
    }

    MilestoneAdded {
        name: MilestoneName,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        selection: Selection,
        /// The day by which it is meant to be reached.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<Date>,
    }

    /// What it is called and when it is meant to be reached, from here on. Its tasks stay those that it named.
    MilestoneEdited {
        name: MilestoneName,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<Date>,
    }

    /// Filters of the board under a name that everybody sees; without a query there is no such view any more.
    ViewSaved {
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query: Option<ViewQuery>,
    }

    MilestoneClosed {
        name: MilestoneName,
        /// Of what was verified.
        fingerprint: Digest,
    }

    CloneJoined {
        id: CloneId,
        /// The machine, by its own id.
        host: String,
        /// Its git directory.
        path: String,
    }

    MainOfRecordNamed {
        /// The remote as the clones call it.
        remote: String,
        branch: BranchName,
        /// Where it is, as whoever named it calls it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        url: Option<String>,
        /// Onus answers for it: pushes show a lease there.
        #[serde(default, skip_serializing_if = "is_false")]
        guarded: bool,
    }

    PushedByPerson {
        /// The token that was shown.
        token: TokenId,
        moves: Vec<ReferenceMoved>,
        /// How many more there were.
        #[serde(default, skip_serializing_if = "is_zero")]
        more: i64,
    }

    ReferenceMoved {
        refname: String,
        /// None where it was made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        old: Option<CommitId>,
        /// None where it was deleted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        new: Option<CommitId>,
    }
}

fn is_zero(count: &i64) -> bool {
    *count == 0
}
