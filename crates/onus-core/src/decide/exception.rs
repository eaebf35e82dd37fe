//! `exception request` and `exception approve`: a dependency that is not waited for, by a person's word (mission D1).

use super::{Context, Decision, required_reason};
use crate::code::Code;
use crate::event::{ExceptionApproved, ExceptionRequested};
use crate::id::TaskId;
use crate::refusal::Refusal;
use crate::text::{EXCEPTIONS_MAX, REASON_MAX, line};

pub(super) fn request(
    context: &Context<'_>,
    on: &TaskId,
    reason: Option<&str>,
    rollback: Option<&str>,
    adr: Option<&str>,
) -> Result<Decision, Refusal> {
    let id = &context.task.id;
    if context.task.state.name().is_terminal() {
        return Err(context.wrong_state("given an exception"));
    }
    depends(context, on)?;
    if context.task.exceptions.get(on).is_some_and(|exception| exception.approved_by.is_some()) {
        return Ok(Decision::Existing(id.clone()));
    }
    let reason = required_reason(reason)?;
    let rollback = required_reason(rollback).map_err(|refusal| match refusal.code {
        Code::ReasonRequired => {
            Refusal::new(Code::ReasonRequired, "say how to go back if it turns out wrong")
                .hint("--rollback TEXT")
        }
        _ => refusal,
    })?;
    let adr = adr.map(|path| line("the decision record's path", path, REASON_MAX)).transpose();
    let adr = adr.map_err(Refusal::invalid)?;
    let others = context.task.exceptions.iter().filter(|(known, _)| *known != on);
    let own = reason.len() + rollback.len() + adr.as_ref().map_or(0, String::len);
    let bytes = own + others.map(|(_, exception)| exception.bytes()).sum::<usize>();
    if bytes > EXCEPTIONS_MAX {
        let detail =
            format!("the exceptions of {id} have {bytes} bytes together; the limit is {EXCEPTIONS_MAX}");
        return Err(Refusal::invalid(detail)
            .hint("say it in fewer words, or in one decision record for all: --adr PATH"));
    }
    Ok(Decision::one(ExceptionRequested { on: on.clone(), reason, rollback, adr }, None))
}

pub(super) fn approve(context: &Context<'_>, on: &TaskId) -> Result<Decision, Refusal> {
    let id = &context.task.id;
    if !context.caller.is_human() {
        return Err(context.human_required("approve an exception"));
    }
    if context.task.state.name().is_terminal() {
        return Err(context.wrong_state("given an exception"));
    }
    depends(context, on)?;
    match context.task.exceptions.get(on) {
        None => {
            Err(Refusal::new(Code::UnknownName, format!("nobody asked that {id} should not wait for {on}"))
                .hint(format!("onus exception request {id} --on {on} --reason TEXT --rollback TEXT")))
        }
        Some(exception) if exception.approved_by.is_some() => Ok(Decision::Existing(id.clone())),
        Some(_) => Ok(Decision::one(ExceptionApproved { on: on.clone() }, None)),
    }
}

fn depends(context: &Context<'_>, on: &TaskId) -> Result<(), Refusal> {
    let id = &context.task.id;
    if context.task.depends_on.contains(on) {
        return Ok(());
    }
    Err(Refusal::new(Code::UnknownName, format!("{id} does not depend on {on}"))
        .hint(format!("onus show {id}")))
}
