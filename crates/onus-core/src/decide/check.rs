//! `check`: commands that prove the work; only a person's word lets one run (mission D7, threat 2).

use super::{Context, Decision, required_reason};
use crate::check::{cannot_fail, looks_like_prose};
use crate::code::Code;
use crate::command::Run;
use crate::event::{CheckAdded, CheckApproved, CheckRemoved, CheckRun};
use crate::evidence::CheckVerdict;
use crate::id::CheckId;
use crate::refusal::Refusal;
use crate::task::{Check, CheckState};
use crate::text::{CHECK_MAX, LIST_MAX, line};

/// What can prove nothing is no check.
pub(super) fn fault(command: &str) -> Option<String> {
    if let Err(detail) = line("the check", command, CHECK_MAX) {
        return Some(detail);
    }
    if looks_like_prose(command) {
        return Some(format!("the check `{command}` is a sentence, not a command"));
    }
    cannot_fail(command).then(|| format!("the check `{command}` cannot fail, so it proves nothing"))
}

pub(super) fn add(context: &Context<'_>, wanted: &Check) -> Result<Decision, Refusal> {
    let task = context.task;
    if task.state.name().is_terminal() {
        return Err(context.wrong_state("given a check"));
    }
    if let Some(detail) = fault(&wanted.command) {
        return Err(Refusal::invalid(detail).hint("a command whose exit code tells, e.g. make test"));
    }
    // Whoever could give any task a check could stall it.
    let own = task.created_by == context.caller.handle || context.holder().is_ok();
    if !context.caller.is_human() && !own {
        let detail = format!("{} neither holds {} nor asked for it", context.caller.handle, task.id);
        return Err(Refusal::new(Code::NotPermitted, detail).hint("leave a note for its holder: onus note"));
    }
    if task.spec.checks.iter().any(|check| check.id() == wanted.id()) {
        return Ok(Decision::Existing(task.id.clone()));
    }
    if task.spec.checks.len() >= LIST_MAX {
        return Err(Refusal::invalid(format!("{} already has {LIST_MAX} checks", task.id)));
    }
    let state = if context.caller.is_human() { CheckState::Approved } else { CheckState::Proposed };
    Ok(Decision::one(CheckAdded { check: Check { state, ..wanted.clone() } }, None))
}

pub(super) fn approve(context: &Context<'_>, id: &CheckId) -> Result<Decision, Refusal> {
    if !context.caller.is_human() {
        return Err(context.human_required("approve a check"));
    }
    if context.task.state.name().is_terminal() {
        return Err(context.wrong_state("given a check"));
    }
    match found(context, id)?.state {
        CheckState::Approved => Ok(Decision::Existing(context.task.id.clone())),
        CheckState::Proposed => Ok(Decision::one(CheckApproved { check: id.clone() }, None)),
    }
}

/// Without its checks a task would be proven by nothing: a person says why.
pub(super) fn remove(context: &Context<'_>, id: &CheckId, reason: Option<&str>) -> Result<Decision, Refusal> {
    if !context.caller.is_human() {
        return Err(context.human_required("remove a check"));
    }
    if context.task.state.name().is_terminal() {
        return Err(context.wrong_state("freed of a check"));
    }
    found(context, id)?;
    let reason = required_reason(reason)?;
    Ok(Decision::one(CheckRemoved { check: id.clone(), reason }, None))
}

/// The holder runs checks, and so may a person.
pub(super) fn record(context: &Context<'_>, run: &Run) -> Result<Decision, Refusal> {
    let check = found(context, &run.check)?;
    if check.state != CheckState::Approved {
        let detail = format!("the check `{}` awaits a person's approval", check.command);
        return Err(Refusal::new(Code::CheckUnapproved, detail)
            .hint(format!("a person runs: onus check {} --approve", context.task.id)));
    }
    let held = match (&context.facts.token, context.caller.is_human()) {
        (None, true) => None,
        _ => Some(context.working_holder()?),
    };
    let run = CheckRun {
        check: run.check.clone(),
        verdict: CheckVerdict::of(run.exit, run.timed_out),
        exit: run.exit,
        signal: run.signal,
        took_ms: run.took_ms,
        ground: run.ground.clone(),
        output: run.output.clone(),
        output_length: run.output_length,
        output_sha256: run.output_sha256.clone(),
        environment: run.environment.clone(),
        sandbox: run.sandbox.clone(),
        renewal: held.map(|held| context.renewal(held, None)),
    };
    Ok(Decision::one(run, held.map(|held| held.workstation.clone())))
}

fn found<'a>(context: &'a Context<'_>, id: &CheckId) -> Result<&'a Check, Refusal> {
    context.task.spec.checks.iter().find(|check| check.id() == *id).ok_or_else(|| {
        Refusal::new(Code::UnknownName, format!("{} has no check {id}", context.task.id))
            .hint(format!("onus check {} --list", context.task.id))
    })
}
