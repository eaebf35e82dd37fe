//! `session start | stop | correct | usage`: work time beside the lifecycle, and what is said about it afterwards
//! (mission A3, A4, E4). A correction is a new fact with a reason; the session itself never changes.

use super::{Context, Decision, required_reason};
use crate::code::Code;
use crate::event::{OutputClosed, SessionCorrected, SessionStarted, SessionStopped, SessionUsed};
use crate::id::Seq;
use crate::refusal::{Finding, Refusal};
use crate::session::{OutputState, Proposal, Recorded, Usage};
use crate::task::{Assignment, State};
use crate::time::Timestamp;

pub(super) fn start(context: &Context<'_>) -> Result<Decision, Refusal> {
    let held = in_progress(context, "worked on")?;
    if !held.resting {
        return Ok(Decision::Existing(context.task.id.clone()));
    }
    let renewal = context.renewal(held, None);
    Ok(Decision::one(SessionStarted { renewal }, Some(held.workstation.clone())))
}

pub(super) fn stop(context: &Context<'_>) -> Result<Decision, Refusal> {
    let held = in_progress(context, "rested from")?;
    if held.resting {
        return Ok(Decision::Existing(context.task.id.clone()));
    }
    let renewal = context.renewal(held, None);
    Ok(Decision::one(SessionStopped { renewal }, Some(held.workstation.clone())))
}

fn in_progress<'a>(context: &'a Context<'_>, verb: &str) -> Result<&'a Assignment, Refusal> {
    let held = context.working_holder()?;
    match context.task.state {
        State::InProgress(_) => Ok(held),
        _ => Err(context.wrong_state(verb)),
    }
}

pub(super) fn correct(
    context: &Context<'_>,
    started_at: Timestamp,
    ended_at: Timestamp,
    reason: Option<&str>,
) -> Result<Decision, Refusal> {
    if !context.caller.is_human() {
        return Err(context.human_required("correct a session"));
    }
    let session = recorded(context)?;
    let (id, started_at, ended_at) = (session.id, started_at.whole_second(), ended_at.whole_second());
    let Some(ended) = session.ended_at else {
        return Err(Refusal::new(Code::WrongState, format!("the session {id} still runs"))
            .hint(format!("onus session stop {}, or end it otherwise, then correct it", context.task.id)));
    };
    let reason = required_reason(reason)?;
    if (session.started_at, ended) == (started_at, ended_at) {
        return Ok(Decision::Existing(context.task.id.clone()));
    }
    let mut findings = Vec::new();
    let mut wrong = |is_wrong: bool, detail: String| {
        if is_wrong {
            findings.push(Finding::new(Code::InvalidInput, detail));
        }
    };
    wrong(ended_at < started_at, format!("{ended_at} is before {started_at}"));
    wrong(ended_at > context.now.wall, format!("{ended_at} has not come yet"));
    // Sessions of one worker in one workstation follow each other: a correction neither overlaps nor overtakes.
    if let Some(before) = session.before {
        wrong(started_at < before, format!("{} was still busy until {before}", session.worker));
    }
    if let Some(after) = session.after {
        wrong(ended_at > after, format!("{} was busy with the next session from {after}", session.worker));
    }
    if let Some(refusal) = Refusal::from_findings(findings) {
        return Err(refusal.hint(format!("onus session list --worker {}", session.worker)));
    }
    let held_to = session.held_to.unwrap_or(context.now.wall);
    let is_outside = started_at < session.held_from.whole_second() || ended_at > held_to;
    let approves = if is_outside { agreed(context, session, started_at, ended_at)? } else { None };
    let proposed = is_outside && approves.is_none();
    let said = SessionCorrected { session: id, started_at, ended_at, reason, proposed, approves };
    Ok(Decision::one(said, None))
}

/// Hours beside the assignment are nobody's word alone: the entry of another person who said the same.
fn agreed(
    context: &Context<'_>,
    session: &Recorded,
    started_at: Timestamp,
    ended_at: Timestamp,
) -> Result<Option<Seq>, Refusal> {
    let same = |said: &&Proposal| (said.started_at, said.ended_at) == (started_at, ended_at);
    match session.proposal.as_ref().filter(same) {
        Some(said) if said.by == context.caller.handle => {
            let detail = format!(
                "{} said so already; {started_at} to {ended_at} goes beyond the assignment: another person must agree",
                said.by
            );
            Err(Refusal::new(Code::NotPermitted, detail).hint("another person types the same correction"))
        }
        said => Ok(said.map(|said| said.seq)),
    }
}

pub(super) fn record_usage(context: &Context<'_>, usage: &Usage) -> Result<Decision, Refusal> {
    let session = recorded(context)?;
    let caller = context.caller;
    if session.worker != caller.handle && !caller.is_human() {
        return Err(session.not_of(&caller.handle).hint("an agent records what it used itself"));
    }
    let usage = usage.checked().map_err(Refusal::invalid)?;
    match &session.usage {
        Some(known) if known.counts == usage.counts && known.model == usage.model => {
            Ok(Decision::Existing(context.task.id.clone()))
        }
        Some(known) if !usage.covers(known) => Err(Refusal::invalid(format!(
            "the record {} has {} tokens already, more than these",
            crate::id::shown(&usage.key),
            known.counts.tokens()
        ))
        .hint("a record only grows; name another one: --key TEXT")),
        _ => Ok(Decision::one(SessionUsed { session: session.id, usage }, None)),
    }
}

pub(super) fn close_output(context: &Context<'_>) -> Result<Decision, Refusal> {
    let session = recorded(context)?;
    session.is_printed_by(&context.caller.handle)?;
    match &session.output {
        OutputState::None | OutputState::Closed => Ok(Decision::Existing(context.task.id.clone())),
        OutputState::Open(kept) => {
            Ok(Decision::one(OutputClosed { session: session.id, output: kept.clone() }, None))
        }
    }
}

fn recorded<'a>(context: &'a Context<'_>) -> Result<&'a Recorded, Refusal> {
    let id = &context.task.id;
    context.facts.session.as_ref().filter(|session| session.task == *id).ok_or_else(|| {
        Refusal::new(Code::UnknownName, format!("{id} has no such session"))
            .hint(format!("onus session list --task {id}"))
    })
}
