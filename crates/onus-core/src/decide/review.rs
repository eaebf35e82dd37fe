//! `review`: another identity, in another place, says what the work is (mission C12, D12).

use super::{Context, Decision};
use crate::code::Code;
use crate::command::Opinion;
use crate::event::Reviewed;
use crate::refusal::{Finding, Refusal};
use crate::task::StateName;
use crate::text::{BODY_MAX, lines};

pub(super) fn decide(context: &Context<'_>, opinion: &Opinion) -> Result<Decision, Refusal> {
    let Opinion { verdict, classification, commit, workstation, note } = opinion;
    if let Some(content) = note.as_ref().and_then(|note| note.content()) {
        lines("the note", content, BODY_MAX).map_err(Refusal::invalid)?;
    }
    if !matches!(context.task.state.name(), StateName::InProgress | StateName::Blocked) {
        return Err(context.wrong_state("reviewed"));
    }
    let caller = &context.caller.handle;
    let built = context.facts.builders.iter().filter(|builder| {
        builder.worker == *caller || workstation.as_ref().is_some_and(|own| builder.workstation == *own)
    });
    let findings = built.map(|builder| {
        let (worker, place) = (&builder.worker, &builder.workstation);
        Finding::new(Code::SelfReview, format!("{worker} worked on it in {place}"))
            .hint("another worker reviews it, in another workstation")
    });
    if let Some(refusal) = Refusal::from_findings(findings.collect()) {
        return Err(refusal);
    }
    let reviewed = Reviewed {
        verdict: *verdict,
        classification: *classification,
        commit: commit.clone(),
        note: note.clone(),
    };
    Ok(Decision::one(reviewed, workstation.clone()))
}
