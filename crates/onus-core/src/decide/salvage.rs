//! What a former holder left behind is kept, and the record says where (mission B6).

use super::{Context, Decision};
use crate::event::Salvaged;
use crate::id::{CommitId, Epoch};
use crate::refusal::Refusal;

pub(super) fn decide(
    context: &Context<'_>,
    of: Epoch,
    reference: &str,
    commit: &CommitId,
) -> Result<Decision, Refusal> {
    let task = context.task;
    let is_held = task.assignment().is_some_and(|held| held.epoch == of);
    if of < 1 || of > task.epoch || is_held {
        return Err(Refusal::invalid(format!("epoch {of} of {} has not ended", task.id)));
    }
    if !crate::is_salvage_of(reference, &task.id, of) {
        return Err(Refusal::invalid(format!("{} is not where it is kept", crate::id::shown(reference))));
    }
    Ok(Decision::one(Salvaged { of, reference: reference.to_owned(), commit: commit.clone() }, None))
}
