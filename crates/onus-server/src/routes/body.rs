//! What several bodies have in common.

use crate::store::Store;
use onus_app::queue::LIMIT_MAX;
use onus_app::submit::Receipt;
use onus_core::id::{ProjectKey, Role, TaskType};
use onus_core::refusal::Refusal;
use onus_store::read::queue::Filter;
use schemars::JsonSchema;
use serde::Deserialize;

/// A question or a command without words.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// At most so many; the settings say how many where the caller does not.
pub(super) fn limit(store: &Store, asked: Option<i64>) -> Result<i64, Refusal> {
    match asked {
        None => Ok(i64::from(store.settings.queue.limit).clamp(1, LIMIT_MAX)),
        Some(limit) if (1..=LIMIT_MAX).contains(&limit) => Ok(limit),
        Some(limit) => Err(Refusal::invalid(format!("limit: {limit} is not between 1 and {LIMIT_MAX}"))),
    }
}

/// Which tasks; what is left out matches all.
pub(super) fn filter(
    project: Option<ProjectKey>,
    task_type: Option<TaskType>,
    role: Option<Role>,
    lane: Option<i64>,
    sprint: Option<String>,
) -> Filter {
    Filter { project, task_type, role, lane, sprint, ..Filter::default() }
}

/// After somebody lost a task against their will: nothing of theirs lands any more in the repository that the server
/// looks after. Whoever gains by it hears of it only then.
pub(super) fn bar(store: &mut Store, receipt: &Receipt) -> Result<(), Refusal> {
    let Some(evicted) = store.evicted(receipt)? else {
        return Ok(());
    };
    store.bar(&evicted).map_err(|refusal| {
        refusal.hint("once git's lock is gone, repeat the call with the same Idempotency-Key")
    })
}
