//! `claim`: an open task gets its one holder, in a named workstation (mission A5, B1, B2).

use super::{Context, Decision};
use crate::code::Code;
use crate::command::Warrant;
use crate::event::{Claimed, Grant};
use crate::facts::Fresh;
use crate::gate;
use crate::id::WorkstationName;
use crate::lease::LeaseId;
use crate::queue;
use crate::refusal::{Finding, Refusal};
use crate::scope;
use crate::task::{Assignment, State};
use crate::time::Millis;
use crate::worker::WorkerState;

pub(super) fn decide(
    context: &Context<'_>,
    ttl: Option<Millis>,
    warrant: &Warrant,
    fresh: &Fresh,
) -> Result<Decision, Refusal> {
    let reason = context.force(warrant, "a claim")?;
    claimable(context, reason.is_some())?;
    let mut findings = Vec::new();
    if reason.is_none() {
        findings.extend(queue::findings(&context.facts.dependencies));
    }
    let (grant, workstation) = grant(context, ttl, findings, reason.is_some(), fresh)?;
    Ok(Decision::one(Claimed { grant, reason }, Some(workstation)))
}

/// A force may step over a holder, but never revives what has ended.
fn claimable(context: &Context<'_>, forced: bool) -> Result<(), Refusal> {
    let id = &context.task.id;
    match &context.task.state {
        State::Open => Ok(()),
        State::InProgress(_) | State::Blocked { .. } if forced => Ok(()),
        State::InProgress(held) | State::Blocked { held: Some(held), .. } => {
            Err(held_by_other(context, held))
        }
        State::Blocked { on, held: None } => {
            Err(Refusal::new(Code::NotClaimable, format!("{id} is blocked on {on}"))
                .hint(format!("onus unblock {id} once that is resolved, or take other work: onus ready")))
        }
        State::Complete(_) | State::Dropped(_) => {
            Err(Refusal::new(Code::NotClaimable, format!("{id} is {}", context.task.state.name()))
                .hint("take other work: onus ready"))
        }
    }
}

fn held_by_other(context: &Context<'_>, held: &Assignment) -> Refusal {
    let id = &context.task.id;
    let expires = held.lease.expires_at();
    let detail = format!("{id} is held by {} in {} until {expires}", held.assignee, held.workstation);
    let grace = context.facts.settings.lease.grace(context.task_type());
    let hint = if held.lease.may_be_taken_over(context.now, grace) {
        format!("the lease has expired: onus takeover {id} --reason TEXT, or take other work: onus ready")
    } else {
        "take other work: onus ready, or onus claim --next".to_owned()
    };
    Refusal::new(Code::LeaseHeld, detail).hint(hint)
}

/// What claim and takeover share: the caller may have work, and the gate opens. All findings at once.
pub(super) fn grant(
    context: &Context<'_>,
    ttl: Option<Millis>,
    mut findings: Vec<Finding>,
    forced: bool,
    fresh: &Fresh,
) -> Result<(Grant, WorkstationName), Refusal> {
    if context.facts.behind_anchor {
        return Err(Refusal::new(
            Code::StoreBehindAnchor,
            "the store is older than its anchor: it may have been restored",
        )
        .hint("a person runs: onus ledger raise-generation --reason TEXT"));
    }
    let ttl = context.lease_length(ttl)?;
    let caller = context.caller;
    if caller.state == WorkerState::Paused {
        findings.push(
            Finding::new(Code::NotPermitted, format!("{} is paused", caller.handle)).hint("onus worker list"),
        );
    }
    // The grant ends the present assignment, so its workstation counts as free.
    let vacated = context.task.assignment().map(|held| &held.workstation);
    findings.extend(gate::findings(&context.facts.place, &context.task.id, vacated));
    if !forced {
        findings.extend(scope::findings(&context.task.spec.scope, &context.facts.live_scopes));
    }
    match (Refusal::from_findings(findings), &context.facts.place.found) {
        (Some(refusal), _) => Err(refusal),
        (None, None) => Err(Refusal::new(Code::WorkstationUnknown, "no workstation was named")),
        (None, Some(workstation)) => Ok((
            Grant {
                lease: LeaseId::new(fresh.lease),
                ttl_ms: ttl.0,
                tick: context.now.tick.clone(),
                tier: caller.tier.clone(),
                route: None,
                forced,
            },
            workstation.name.clone(),
        )),
    }
}
