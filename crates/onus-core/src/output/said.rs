//! What whoever works or reviews writes down, without what nobody may see (threat 19). What was asked for stays as it is: its words belong to
//! the system that it comes from.

use super::Redactor;
use crate::command::Envelope;
use crate::text::Text;

/// The call without the secrets in its words: the caller's own lease, values that are known where it is made, and what looks like a
/// key. None where there are none, as a rule.
pub fn without_secrets(envelope: &Envelope, known: impl FnOnce() -> Vec<String>) -> Option<Envelope> {
    if envelope.command.says_what_is_asked_for() || envelope.command.texts().is_empty() {
        return None;
    }
    let lease = envelope.token.as_ref().map(ToString::to_string);
    let lease = lease.as_deref().and_then(|token| token.rsplit('.').next());
    let known: Vec<String> = known().into_iter().chain(lease.map(str::to_owned)).collect();
    let mut clean = envelope.clone();
    let mut is_changed = false;
    for text in clean.command.texts_mut() {
        let Some(said) = text.content() else { continue };
        let mut redactor = Redactor::new(known.iter().cloned());
        let shown = redactor.push(said) + &redactor.finish();
        if shown != said {
            *text = Text::new(shown);
            is_changed = true;
        }
    }
    is_changed.then_some(clean)
}
