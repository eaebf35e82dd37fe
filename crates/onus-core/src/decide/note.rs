//! `note`: the holder's progress, or anybody's comment.

use super::{Context, Decision};
use crate::event::Noted;
use crate::refusal::Refusal;
use crate::text::{BODY_MAX, Text, lines};

pub(super) fn decide(context: &Context<'_>, text: &Text) -> Result<Decision, Refusal> {
    if let Some(content) = text.content() {
        lines("the note", content, BODY_MAX).map_err(Refusal::invalid)?;
    }
    // Without a token it is a comment. With one the caller claims to be the holder, and must be.
    let held = context.facts.token.is_some().then(|| context.holder()).transpose()?;
    // A suspended holder may still say what it knows, but does not keep its lease alive by that.
    let renewing = held.filter(|_| !context.facts.suspended);
    let renewal = renewing.map(|held| context.renewal(held, None));
    let noted = Noted { text: text.clone(), renewal, handoff: false, said: None };
    Ok(Decision::one(noted, held.map(|held| held.workstation.clone())))
}
