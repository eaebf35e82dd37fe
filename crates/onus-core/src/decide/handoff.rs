//! `handoff`: what the next holder should know, written down by the present one (mission D10).

use super::{Context, Decision};
use crate::event::Noted;
use crate::handoff::Handoff;
use crate::refusal::Refusal;
use crate::text::{BODY_MAX, Text, lines};

pub(super) fn decide(context: &Context<'_>, document: &Text) -> Result<Decision, Refusal> {
    // Whoever gives the work of one to another tells it in their own name, and keeps nobody's lease alive by that.
    if context.facts.token.is_none() && context.caller.is_human() && context.task.assignment().is_some() {
        let text = words(context, None, Some(document))?.unwrap_or_else(|| document.clone());
        return Ok(Decision::one(Noted { text, renewal: None, handoff: true, said: None }, None));
    }
    let held = context.holder()?;
    let text = words(context, None, Some(document))?.unwrap_or_else(|| document.clone());
    // A suspended holder may still say what it knows, but does not keep its lease alive by that.
    let renewal = (!context.facts.suspended).then(|| context.renewal(held, None));
    Ok(Decision::one(Noted { text, renewal, handoff: true, said: None }, Some(held.workstation.clone())))
}

/// What is kept of an end: the whole document, or plain words where nobody composed one.
pub(super) fn words(
    context: &Context<'_>,
    note: Option<&Text>,
    document: Option<&Text>,
) -> Result<Option<Text>, Refusal> {
    if let Some(content) = document.and_then(Text::content) {
        let read = Handoff::parse(content).map_err(Refusal::invalid)?;
        if read.task != context.task.id {
            return Err(Refusal::invalid(format!("the handoff is about {}", read.task)));
        }
    }
    let kept = document.or(note);
    if let Some(content) = kept.and_then(Text::content) {
        lines("the note", content, BODY_MAX).map_err(Refusal::invalid)?;
    }
    Ok(kept.cloned())
}
