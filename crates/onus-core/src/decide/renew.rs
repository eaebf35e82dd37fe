//! `renew`: the holder shows itself.

use super::{Context, Decision};
use crate::event::Renewed;
use crate::limits::Moment;
use crate::process::Process;
use crate::refusal::Refusal;
use crate::time::Millis;

pub(super) fn decide(
    context: &Context<'_>,
    ttl: Option<Millis>,
    process: Option<&Process>,
) -> Result<Decision, Refusal> {
    let held = context.working_holder()?;
    // Its lease runs out; notes, handoffs and the completion of what is done are still heard.
    if let Some(refusal) = Refusal::from_findings(context.limits_reached(Moment::Running)) {
        return Err(refusal.hint(format!(
            "stop here; ask for more: onus block {} --on person:{} --release-lease, or complete what is done",
            context.task.id,
            context.whom_to_ask()
        )));
    }
    let ttl = ttl.map(|ttl| context.lease_length(Some(ttl))).transpose()?;
    let mut renewal = context.renewal(held, ttl);
    if let Some(process) = process {
        // Its own last words, if it is gone by now: nobody goes on without it.
        renewal.alone = false;
        renewal.process =
            Some(process.clone()).filter(|process| held.lease.process.as_ref() != Some(process));
    }
    Ok(Decision::one(Renewed { renewal }, Some(held.workstation.clone())))
}
