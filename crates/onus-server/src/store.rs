//! Which store the server works on: the one place that names it.

use onus_app::Onus;
use onus_app::followed_settings::FollowedSettings;
use onus_core::refusal::Refusal;
use std::sync::Arc;

pub type Store = Onus;

/// Opens the store once more: each thread has a connection of its own.
pub type Open = Arc<dyn Fn() -> Result<Store, Refusal> + Send + Sync>;

/// Whether a connection is worth keeping after what it has just answered.
pub(crate) fn is_lost<T>(answer: &Result<T, Refusal>) -> bool {
    matches!(answer, Err(refusal) if refusal.code == onus_core::code::Code::StoreUnavailable)
}

/// A connection that failed is replaced; where that fails too, the next call will be told so by the old one.
pub(crate) fn reopen(store: &mut Store, open: &Open) {
    if let Ok(fresh) = open() {
        *store = fresh;
    }
}

/// What was changed in `onus.yaml` counts from the next call on.
pub(crate) fn follow(settings: &mut FollowedSettings, store: &mut Store) {
    if let Err(refusal) = settings.follow(store) {
        tracing::warn!(error = %refusal, "the settings stay as they were");
    }
}
