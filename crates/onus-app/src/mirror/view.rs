//! What is told about mirrors.

use onus_core::id::{MirrorName, TaskId};
use onus_core::mirror::drift::Drift;
use onus_core::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The answer to `mirror status`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct MirrorsView {
    pub mirrors: Vec<MirrorView>,
}

/// How a mirror stands.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MirrorView {
    pub name: MirrorName,
    pub kind: String,
    pub url: String,
    /// Tasks of which it has not been told everything.
    pub pending: i64,
    /// Those of them that wait for a person.
    pub stuck: i64,
    /// For how long the oldest of it has waited.
    pub lag_ms: i64,
    pub last_error: Option<String>,
    /// Whether somebody sends to it now.
    pub is_sending: bool,
    /// How often in a row it failed, and when it is tried again.
    pub failures: i64,
    pub next_attempt_at: Option<Timestamp>,
    pub polled_at: Option<Timestamp>,
    /// What waits for a person, and why; the oldest first.
    pub stuck_tasks: Vec<StuckDelivery>,
    /// What somebody changed there and Onus owns, as far as it was seen.
    pub drift: Vec<Drift>,
}

impl MirrorView {
    /// Whether somebody has to look: a delivery waits for a person, or the far end has failed for a while.
    pub fn is_stuck(&self) -> bool {
        self.stuck > 0 || (self.failures >= 3 && self.last_error.is_some())
    }
}

/// A delivery that waits for a person.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct StuckDelivery {
    pub task: Option<TaskId>,
    pub far_id: Option<String>,
    pub since: Timestamp,
    pub attempts: i64,
    pub error: String,
    /// What to do about it.
    pub hint: String,
}

/// The answer to `mirror check`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CheckedView {
    pub name: MirrorName,
    pub ok: bool,
    pub tried: Vec<TriedView>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TriedView {
    pub what: String,
    pub ok: bool,
    pub detail: String,
}

/// The answer to `mirror diff`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct DiffView {
    /// Counterparts that were looked at.
    pub looked_at: i64,
    pub drift: Vec<Drift>,
    /// Tasks whose counterpart is gone.
    pub gone: Vec<TaskId>,
}
