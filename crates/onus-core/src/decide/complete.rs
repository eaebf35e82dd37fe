//! `complete`: the work is done and proven (mission A1, D7).

use super::{Context, Decision, handoff};
use crate::code::Code;
use crate::command::Warrant;
use crate::event::{Completed, Event, Noted};
use crate::evidence::{self, Case, Proof, RootCause};
use crate::order;
use crate::refusal::{Finding, Refusal};
use crate::settings::MergePolicy;
use crate::task::State;
use crate::text::{BODY_MAX, REASON_MAX, Text, line, lines};

pub(super) fn decide(
    context: &Context<'_>,
    resolution: Option<&Text>,
    root_cause: Option<&RootCause>,
    warrant: &Warrant,
    proof: &Proof,
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
    let root_cause = said(root_cause)?;
    if forced.is_none()
        && let Some(refusal) = Refusal::from_findings(unproven(context, root_cause.as_ref(), proof))
    {
        return Err(refusal);
    }
    let workstation = held.or_else(|| context.task.assignment()).map(|held| held.workstation.clone());
    let late_by_ms = held.and_then(|held| context.late_by_ms(held));
    let mut events: Vec<Event> = Vec::new();
    if let (Some(held), Some(document)) = (held, &proof.handoff) {
        let text = handoff::words(context, None, Some(document))?.unwrap_or_else(|| document.clone());
        events.push(
            Noted { text, renewal: Some(context.renewal(held, None)), handoff: true, said: None }.into(),
        );
    }
    let completed = Completed {
        resolution,
        forced: forced.is_some(),
        reason: forced,
        late_by_ms,
        commit: proof.ground.commit.clone(),
        root_cause,
        landed: proof.landed.clone(),
    };
    events.push(completed.into());
    Ok(Decision::Change { events, workstation })
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

/// No evidence, no completion: a task that asks for checks is never done on somebody's word alone. Asked before a merge as
/// well: nothing unproven reaches the main branch by the front door.
pub(super) fn unproven(context: &Context<'_>, root_cause: Option<&RootCause>, proof: &Proof) -> Vec<Finding> {
    let facts = context.facts;
    let proof = match facts.settings.complete.merged {
        MergePolicy::Required => proof.clone(),
        MergePolicy::Off => Proof { unmerged: 0, rivals: Vec::new(), ..proof.clone() },
    };
    let mut found =
        order::findings(context.task.spec.merge_order, &facts.dependencies, &facts.slices, &facts.parts);
    found.extend(evidence::findings(&Case {
        spec: &context.task.spec,
        policy: facts.policy,
        review: facts.settings.complete.review,
        trust: facts.settings.complete.evidence,
        proof: &proof,
        evidence: &facts.evidence,
        reviews: &facts.reviews,
        root_cause,
    }));
    let id = context.task.id.to_string();
    let named = found.into_iter().map(|finding| {
        let hint = finding.hint.as_ref().map(|hint| hint.replace("TASK", &id));
        finding.hinted(hint)
    });
    named.collect()
}

pub(super) fn said(root_cause: Option<&RootCause>) -> Result<Option<RootCause>, Refusal> {
    let lines = root_cause.map(|RootCause { statement, owner }| {
        Ok::<_, String>(RootCause {
            statement: line("the root cause", statement, REASON_MAX)?,
            owner: line("the owner", owner, REASON_MAX)?,
        })
    });
    lines.transpose().map_err(Refusal::invalid)
}
