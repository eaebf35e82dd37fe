//! `block` and `unblock`: the work waits for a named thing.

use super::{Context, Decision};
use crate::command::WhileBlocked;
use crate::event::{Blocked, Unblocked};
use crate::refusal::Refusal;
use crate::task::{Blocker, State};

pub(super) fn block(context: &Context<'_>, on: &Blocker, lease: WhileBlocked) -> Result<Decision, Refusal> {
    let held = context.holder()?;
    if !matches!(context.task.state, State::InProgress(_)) {
        return Err(context.wrong_state("blocked"));
    }
    if let Blocker::Task(other) = on
        && *other == context.task.id
    {
        return Err(Refusal::invalid(format!("{other} cannot wait for itself")));
    }
    let kept = match lease {
        WhileBlocked::ReleaseLease => None,
        WhileBlocked::KeepLease => {
            // Never shorter than what the holder already has.
            let ttl = context.facts.settings.lease.blocked_ttl(context.task_type()).max(held.lease.ttl);
            Some(context.renewal(held, Some(ttl)))
        }
    };
    Ok(Decision::one(Blocked { on: on.clone(), kept }, Some(held.workstation.clone())))
}

pub(super) fn unblock(context: &Context<'_>) -> Result<Decision, Refusal> {
    match &context.task.state {
        State::Blocked { held: Some(_), .. } => {
            let held = context.holder()?;
            let ttl = context.facts.settings.lease.ttl(context.caller.kind, context.task_type());
            let renewal = Some(context.renewal(held, Some(ttl)));
            Ok(Decision::one(Unblocked { renewal }, Some(held.workstation.clone())))
        }
        // Nobody holds it: whoever learns that the way is free may say so, and the task is open again.
        State::Blocked { held: None, .. } => Ok(Decision::one(Unblocked { renewal: None }, None)),
        _ => Err(context.holder().err().unwrap_or_else(|| context.wrong_state("unblocked"))),
    }
}
