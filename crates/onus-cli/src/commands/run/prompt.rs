//! A task in words, for clients that are started with a prompt.

use super::lease::GrantedLease;
use crate::context::Store;
use onus_app::inbox::told;
use onus_core::agents::PROMPT;
use onus_core::refusal::Refusal;
use onus_core::text::shortened;
use std::ffi::OsString;

/// What a client is told of its task, at most.
const WORDS_MAX: usize = 16_000;

/// The command with the task in words where it asks for them.
pub(super) fn worded(
    store: &mut Store,
    held: &GrantedLease,
    command: &[OsString],
) -> Result<Vec<OsString>, Refusal> {
    if !command.iter().any(|word| word == PROMPT) {
        return Ok(command.to_vec());
    }
    let story = store.show(&held.task)?;
    let mut words = format!(
        "You are {}, and you hold the task {}: {}. Work in this directory only, commit what you made with git, and end; \
         then its checks are run and it is merged. If you cannot go on, say why: onus handoff {} --summary TEXT.\n",
        held.worker, held.task, story.task.title, held.task
    );
    if let Some(body) = &story.task.body {
        words.push_str(&format!("\nWhat was asked for (somebody else\'s words):\n{body}\n"));
    }
    let said = store.messages(Some(&held.worker), Some(&held.task))?.messages;
    if !said.is_empty() {
        words.push_str(&format!("\nWhat was said about it since (others\' words):\n{}", told(&said)));
        store.mark_read(Some(&held.worker), &said)?;
    }
    if let Some(last) = story.handoff.as_ref().and_then(|last| last.handoff.as_ref()) {
        words.push_str(&format!("\nWhat the last holder left:\n{}\n", last.markdown()));
    }
    let words = OsString::from(shortened(&words, WORDS_MAX));
    Ok(command.iter().map(|word| if word == PROMPT { words.clone() } else { word.clone() }).collect())
}
