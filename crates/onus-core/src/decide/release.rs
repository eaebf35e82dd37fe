//! `release`: the holder, or a person by force, gives the task back to the queue.

use super::{Context, Decision};
use crate::command::Warrant;
use crate::event::Released;
use crate::refusal::Refusal;
use crate::task::StateName;
use crate::text::Text;

pub(super) fn decide(
    context: &Context<'_>,
    note: Option<Text>,
    warrant: &Warrant,
) -> Result<Decision, Refusal> {
    if let Some(reason) = context.force(warrant, "a release")? {
        return match context.task.state.name() {
            StateName::InProgress | StateName::Blocked => Ok(Decision::one(
                Released { note, reason: Some(reason), forced: true, late_by_ms: None },
                context.task.assignment().map(|held| held.workstation.clone()),
            )),
            _ => Err(context.wrong_state("released")),
        };
    }
    let held = context.holder()?;
    let released = Released { note, reason: None, forced: false, late_by_ms: context.late_by_ms(held) };
    Ok(Decision::one(released, Some(held.workstation.clone())))
}
