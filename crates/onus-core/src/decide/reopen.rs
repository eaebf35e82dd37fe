//! `reopen` and `drop`: a person changes their mind about a task. Both outdate every token given before.

use super::{Context, Decision, required_reason};
use crate::code::Code;
use crate::event::{Dropped, Reopened};
use crate::refusal::Refusal;
use crate::task::State;

pub(super) fn reopen(context: &Context<'_>, reason: Option<&str>) -> Result<Decision, Refusal> {
    if !context.caller.is_human() && !context.caller.is_verifier() {
        return Err(context.human_required("reopen a task (a verifier may, too)"));
    }
    let reason = required_reason(reason)?;
    match &context.task.state {
        State::Complete(_) if context.task.archived => {
            Err(Refusal::new(Code::NotClaimable, format!("{} is archived history", context.task.id))
                .hint("add a new task that refers to it"))
        }
        State::Complete(_) => Ok(Decision::one(Reopened { reason }, None)),
        _ => Err(context.wrong_state("reopened")),
    }
}

pub(super) fn drop(context: &Context<'_>, reason: Option<&str>) -> Result<Decision, Refusal> {
    if !context.caller.is_human() {
        return Err(context.human_required("drop a task"));
    }
    let reason = required_reason(reason)?;
    match &context.task.state {
        State::Dropped(_) => Err(context.wrong_state("dropped")),
        // What depends on finished history would wait for ever.
        _ if context.task.archived => Err(context.wrong_state("dropped")),
        _ => Ok(Decision::one(Dropped { reason }, None)),
    }
}
