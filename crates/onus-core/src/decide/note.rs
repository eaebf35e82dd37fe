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
    let noted = Noted { text: text.clone(), renewal: held.map(|held| context.renewal(held, None)) };
    Ok(Decision::one(noted, held.map(|held| held.workstation.clone())))
}
