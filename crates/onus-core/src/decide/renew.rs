//! `renew`: the holder shows itself.

use super::{Context, Decision};
use crate::event::Renewed;
use crate::refusal::Refusal;
use crate::time::Millis;

pub(super) fn decide(context: &Context<'_>, ttl: Option<Millis>) -> Result<Decision, Refusal> {
    let held = context.working_holder()?;
    let ttl = ttl.map(|ttl| context.lease_length(Some(ttl))).transpose()?;
    let renewal = context.renewal(held, ttl);
    Ok(Decision::one(Renewed { renewal }, Some(held.workstation.clone())))
}
