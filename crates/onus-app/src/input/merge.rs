//! `merge`

use super::{CompleteInput, Lease, text};
use crate::landing::{LandingEnd, LandingOrder};
use onus_core::evidence::RootCause;
use onus_core::id::{CommitId, RequestId, TaskId};
use schemars::JsonSchema;
use serde::Deserialize;

/// Whose commits land beside the holder's own.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MergeInput {
    /// Commits made under another assignment that the holder answers for
    #[serde(default)]
    pub adopt: Vec<CommitId>,
    /// Of a defect: why it happened
    pub root_cause: Option<RootCause>,
    pub lease: Option<Lease>,
}

impl MergeInput {
    /// The landing that it stands for.
    pub fn landing(self, task: TaskId, request: RequestId, version: Option<i64>) -> LandingOrder {
        let (lease, root_cause) = (self.lease.map(|lease| lease.0), self.root_cause);
        LandingOrder {
            task,
            request,
            version,
            lease,
            root_cause,
            end: LandingEnd::Merge { adopt: self.adopt },
        }
    }
}

impl CompleteInput {
    /// The landing that it stands for, where the work lies here; force only states.
    pub fn landing(self, task: TaskId, request: RequestId, version: Option<i64>) -> LandingOrder {
        let (lease, root_cause) = (self.lease.map(|lease| lease.0), self.root_cause);
        let end =
            LandingEnd::Complete { resolution: self.resolution.as_deref().map(text), commit: self.commit };
        LandingOrder { task, request, version, lease, root_cause, end }
    }
}
