//! `complete`: the work is done and proven (mission A1, D7).

use super::{Context, Decision};
use crate::code::Code;
use crate::command::Warrant;
use crate::event::Completed;
use crate::refusal::{Finding, Refusal};
use crate::task::{CheckState, State};
use crate::text::{BODY_MAX, Text, lines};

pub(super) fn decide(
    context: &Context<'_>,
    resolution: Option<&Text>,
    warrant: &Warrant,
) -> Result<Decision, Refusal> {
    let forced = context.force(warrant, "a completion")?;
    let held = match (&forced, &context.task.state) {
        (Some(_), State::Complete(_) | State::Dropped(_)) => return Err(context.wrong_state("completed")),
        (Some(_), _) => None,
        (None, _) => {
            let held = context.working_holder()?;
            if !matches!(context.task.state, State::InProgress(_)) {
                return Err(context
                    .wrong_state("completed")
                    .hint(format!("onus unblock {} first", context.task.id)));
            }
            Some(held)
        }
    };
    let resolution = required_resolution(resolution)?;
    if forced.is_none()
        && let Some(refusal) = Refusal::from_findings(unproven(context))
    {
        return Err(refusal);
    }
    let workstation = held.or_else(|| context.task.assignment()).map(|held| held.workstation.clone());
    let late_by_ms = held.and_then(|held| context.late_by_ms(held));
    Ok(Decision::one(
        Completed { resolution, forced: forced.is_some(), reason: forced, late_by_ms },
        workstation,
    ))
}

fn required_resolution(resolution: Option<&Text>) -> Result<Text, Refusal> {
    match resolution {
        Some(text) if text.content().is_some_and(|content| !content.trim().is_empty()) => {
            lines("the resolution", text.content().unwrap_or_default(), BODY_MAX)
                .map_err(Refusal::invalid)?;
            Ok(text.clone())
        }
        _ => Err(Refusal::new(Code::ResolutionRequired, "say what was done; the note stays with the task")
            .hint("--resolution TEXT")),
    }
}

/// No evidence, no completion: a task that asks for checks is never done on somebody's word alone.
fn unproven(context: &Context<'_>) -> Vec<Finding> {
    let finding = |command: &str, state| match state {
        CheckState::Approved => {
            Finding::new(Code::ChecksMissing, format!("the check `{command}` has not been run"))
        }
        CheckState::Proposed => {
            Finding::new(Code::CheckUnapproved, format!("the check `{command}` awaits a person's approval"))
        }
    };
    context.task.spec.checks.iter().map(|check| finding(&check.command, check.state)).collect()
}
