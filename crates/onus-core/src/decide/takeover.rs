//! `takeover`: expiry permits it and never forces it (mission B3, B6).

use super::{Context, Decision, claim, required_reason};
use crate::code::Code;
use crate::command::Warrant;
use crate::constraint;
use crate::event::TakenOver;
use crate::facts::Fresh;
use crate::lease::Standing;
use crate::refusal::Refusal;
use crate::task::{Assignment, State};
use crate::time::Millis;
use crate::worker::Kind;

pub(super) fn decide(
    context: &Context<'_>,
    ttl: Option<Millis>,
    reason: Option<&str>,
    warrant: &Warrant,
    fresh: &Fresh,
) -> Result<Decision, Refusal> {
    // One reason serves both: why it is taken over, and why against the rules.
    let warrant = match warrant {
        Warrant::Forced { reason: None } => &Warrant::Forced { reason: reason.map(str::to_owned) },
        other => other,
    };
    let forced = context.force(warrant, "a takeover")?;
    let reason = required_reason(forced.as_deref().or(reason))?;
    let id = &context.task.id;
    let held = match &context.task.state {
        State::InProgress(held) | State::Blocked { held: Some(held), .. } => held,
        State::Blocked { on, held: None } => {
            return Err(Refusal::new(
                Code::NotClaimable,
                format!("{id} is blocked on {on}: nobody holds it"),
            )
            .hint(format!("onus unblock {id} once that is resolved")));
        }
        State::Open => {
            return Err(Refusal::new(Code::NotClaimable, format!("{id} is open: nobody holds it"))
                .hint(format!("onus claim {id}")));
        }
        State::Complete(_) | State::Dropped(_) => {
            return Err(Refusal::new(Code::NotClaimable, format!("{id} is {}", context.task.state.name()))
                .hint("take other work: onus ready"));
        }
    };
    if forced.is_none() {
        permitted(context, held)?;
    }
    let (grant, workstation) = claim::grant(
        context,
        ttl,
        Vec::new(),
        forced.is_some(),
        &constraint::kept(&held.constraints),
        fresh,
    )?;
    let from = held.assignee.clone();
    let dead = held.lease.death(context.now, context.facts.vital);
    let mut events = claim::lifted_by_force(context, forced.is_some());
    events.push(TakenOver { grant, reason, from, dead }.into());
    Ok(Decision::Change { events, workstation: Some(workstation) })
}

fn permitted(context: &Context<'_>, held: &Assignment) -> Result<(), Refusal> {
    let id = &context.task.id;
    let grace = context.facts.settings.lease.grace(context.task_type());
    // A suspended holder cannot go on, so there is nothing to wait for.
    if !context.facts.suspended && !held.lease.may_be_taken_over(context.now, grace, context.facts.vital) {
        let wait = match held.lease.standing(context.now) {
            Standing::Live { left } => Millis(left.0.saturating_add(grace.0)),
            Standing::Expired { by } => Millis(grace.0.saturating_sub(by.0)),
            Standing::HolderRebooted => Millis(0),
        };
        let detail = format!("{} holds {id}; it may be taken over in {wait}", held.assignee);
        return Err(Refusal::new(Code::NotExpired, detail).hint("take other work: onus ready"));
    }
    let from_a_person = context.facts.holder != Some(Kind::Agent);
    if from_a_person && !context.caller.is_human() {
        return Err(context.human_required("take over from a person"));
    }
    Ok(())
}
