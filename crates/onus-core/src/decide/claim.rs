//! `claim`: an open task gets its one holder, in a named workstation (mission A5, B1, B2).

use super::{Context, Decision};
use crate::boundary;
use crate::code::Code;
use crate::command::Warrant;
use crate::constraint::{self, Constraint};
use crate::contract_request;
use crate::event::{Claimed, Event, Grant};
use crate::facts::{Builder, Caller, Fresh};
use crate::gate;
use crate::id::{Handle, WorkstationName};
use crate::identity_map::{self, Policy};
use crate::lane;
use crate::lease::LeaseId;
use crate::limits::{self, Moment};
use crate::queue;
use crate::refusal::{Finding, Refusal};
use crate::scope;
use crate::task::{Assignment, Route, State};
use crate::text::LIST_MAX;
use crate::time::Millis;
use crate::worker::WorkerState;

pub(super) fn decide(
    context: &Context<'_>,
    assignee: Option<&Handle>,
    ttl: Option<Millis>,
    warrant: &Warrant,
    asked: &[Constraint],
    fresh: &Fresh,
) -> Result<Decision, Refusal> {
    if let Some(assignee) = assignee {
        assignable(context, assignee)?;
    }
    if !context.caller.is_human() && asked.iter().any(|one| matches!(one, Constraint::Workstation(_))) {
        return Err(context.human_required("open another workstation to a holder"));
    }
    let reason = context.force(warrant, "a claim")?;
    claimable(context, reason.is_some())?;
    let mut findings = Vec::new();
    if asked.len() > LIST_MAX {
        let detail = format!("{} constraints; the limit is {LIST_MAX}", asked.len());
        findings.push(Finding::new(Code::InvalidInput, detail));
    }
    if reason.is_none() {
        findings.extend(queue::findings(&context.facts.dependencies));
    }
    let (grant, workstation) = grant(context, ttl, findings, reason.is_some(), asked, fresh)?;
    let mut events = lifted_by_force(context, reason.is_some());
    events.push(Claimed { grant, reason }.into());
    Ok(Decision::Change { events, workstation: Some(workstation) })
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
    let vital = context.facts.vital;
    let hint = if let Some(death) = held.lease.death(context.now, vital) {
        format!("{death}: onus takeover {id} --reason TEXT, or take other work: onus ready")
    } else if held.lease.may_be_taken_over(context.now, grace, vital) {
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
    asked: &[Constraint],
    fresh: &Fresh,
) -> Result<(Grant, WorkstationName), Refusal> {
    if context.facts.behind_anchor {
        return Err(super::behind());
    }
    let ttl = context.lease_length(ttl)?;
    let grantee = context.grantee();
    let route = route(context, forced, &mut findings);
    if grantee.state == WorkerState::Paused {
        findings.push(
            Finding::new(Code::NotPermitted, format!("{} is paused", grantee.handle))
                .hint(format!("a person runs: onus worker resume {}", grantee.handle)),
        );
    }
    // The grant ends the present assignment, so its workstation counts as free.
    let vacated = context.task.assignment().map(|held| &held.workstation);
    findings.extend(gate::findings(&context.facts.place, &context.task.id, vacated));
    let mut lane = None;
    if !forced {
        let (facts, spec) = (context.facts, &context.task.spec);
        match lane::lane(facts.policy, spec, &facts.occupied, facts.place.found.as_ref()) {
            Ok(free) => lane = free,
            Err(full) => findings.extend(full),
        }
        findings.extend(boundary::scope_findings(facts.policy, spec));
        findings.extend(scope::findings(&spec.scope, &facts.live_scopes));
        findings.extend(context.limits_reached(Moment::Grant));
    }
    match (Refusal::from_findings(findings), &context.facts.place.found) {
        (Some(refusal), _) => Err(refusal),
        (None, None) => Err(Refusal::new(Code::WorkstationUnknown, "no workstation was named")),
        (None, Some(workstation)) => Ok((
            Grant {
                lease: LeaseId::new(fresh.lease),
                ttl_ms: ttl.0,
                tick: context.now.tick.clone(),
                tier: grantee.tier.clone(),
                route,
                forced,
                assignee: (grantee.handle != context.caller.handle).then(|| grantee.handle.clone()),
                lane,
                base: context.facts.base.clone(),
                constraints: constraint::of_grant(context.facts.policy, &context.task.spec, asked),
            },
            workstation.name.clone(),
        )),
    }
}

/// A grant by force is no good if the work is stopped at once: the person's word counts for the limits, too.
pub(super) fn lifted_by_force(context: &Context<'_>, forced: bool) -> Vec<Event> {
    let reached = if forced { context.limits_reached(Moment::Grant) } else { Vec::new() };
    limits::lifted(reached)
}

/// Only people, and the dispatcher in a person's name, give work to somebody else.
fn assignable(context: &Context<'_>, assignee: &Handle) -> Result<(), Refusal> {
    if *assignee != context.caller.handle && !context.caller.is_human() {
        return Err(context.human_required("assign a task to somebody else"));
    }
    match &context.facts.mentioned {
        Some(Caller::Registered(_)) => Ok(()),
        _ => Err(Refusal::new(Code::UnknownWorker, format!("{assignee} is not registered"))
            .hint(format!("onus worker add {assignee} --kind agent"))),
    }
}

/// The identity map comes before the gate. What stands against the grant is put in front of the other findings.
fn route(context: &Context<'_>, forced: bool, findings: &mut Vec<Finding>) -> Option<Route> {
    let (facts, spec) = (context.facts, &context.task.spec);
    let asked = facts.place.asked.as_ref();
    let (route, mut against) =
        match identity_map::route(facts.policy, spec, context.grantee(), asked, &facts.signals) {
            Ok(route) => (route, Vec::new()),
            Err(against) => (None, against),
        };
    against.extend(contract_request::findings(facts.policy, spec));
    let found = facts.place.found.as_ref();
    against.extend(found.into_iter().flat_map(|found| identity_map::place_findings(facts.policy, found)));
    if identity_map::needs_independence(facts.policy, spec) {
        against.extend(dependent_verifier(context));
    }
    // Force steps over the map only where the map is against it.
    if forced && !against.is_empty() {
        return over(facts.policy);
    }
    findings.splice(0..0, against);
    route
}

/// What a grant against the map says of it: which one it was.
fn over(policy: &Policy) -> Option<Route> {
    match policy {
        Policy::Absent => None,
        Policy::InForce(map) => Some(Route {
            rule: Route::FORCED.into(),
            map_commit: map.commit.clone(),
            map_hash: map.hash.clone(),
        }),
        Policy::Invalid(map) => Some(Route {
            rule: Route::FORCED_OVER_INVALID.into(),
            map_commit: map.commit.clone(),
            map_hash: map.hash.clone().unwrap_or_default(),
        }),
    }
}

/// Nobody verifies what they built, and nothing is verified where it was built (mission C12).
fn dependent_verifier(context: &Context<'_>) -> Vec<Finding> {
    let (grantee, place) = (&context.grantee().handle, context.facts.place.asked.as_ref());
    let built = |builder: &&Builder| builder.worker == *grantee || Some(&builder.workstation) == place;
    let finding = |Builder { task, worker, workstation }: &Builder| {
        Finding::new(
            Code::SelfReview,
            format!("{task} was built by {worker} in {workstation}: another one must verify it, elsewhere"),
        )
        .hint(format!("onus route explain {}", context.task.id))
    };
    context.facts.builders.iter().filter(built).map(finding).collect()
}
