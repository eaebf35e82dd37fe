//! A task that somebody gave to this very worker: its lease was left in the workstation, and nobody works under it.

use super::lease::GrantedLease;
use crate::commands::claim::{PlaceArgs, begin};
use crate::commands::takeover::secure;
use crate::context::{Store, World};
use crate::output::Output;
use onus_app::clean_start::Earlier;
use onus_app::submit::{Receipt, ReceiptKind, Target};
use onus_core::agents::PROMPT;
use onus_core::command::{Command, Warrant};
use onus_core::id::TaskId;
use onus_core::process::Vital;
use onus_core::refusal::Refusal;
use onus_core::text::shortened;
use onus_host::process_liveness;
use std::ffi::OsString;

/// The lease of a task that the caller holds and does not work on. None: whoever wants it claims it.
pub(super) fn picked_up(
    world: &World,
    store: &mut Store,
    out: &Output,
    task: &TaskId,
    place: &PlaceArgs,
) -> Result<Option<GrantedLease>, Refusal> {
    let Some(row) = store.find_task(task)? else { return Ok(None) };
    let (Some(held), Some(actor)) = (row.assignment(), world.actor.as_ref()) else { return Ok(None) };
    if held.assignee != *actor {
        return Ok(None);
    }
    match process_liveness::of(&held.lease) {
        // Two processes of one worker are two: the second one is told who holds it.
        Vital::Lives => Ok(None),
        Vital::Gone => taken_up(world, store, out, task, place).map(Some),
        Vital::Unknown if held.lease.process.is_some() => Ok(None),
        Vital::Unknown => {
            let Some(token) = world.token(store, task, None)? else { return Ok(None) };
            let receipt = Receipt { kind: ReceiptKind::Existing, task: row.clone(), token: Some(token) };
            let granted = GrantedLease::new(store, &receipt)?;
            // Whether it is still the one in force is the store's to say.
            granted.submit(world, store, Command::Renew { ttl: None, process: None })?;
            out.hint(&format!("{task}: {} in {}, as it was given", row.spec.title, granted.workstation));
            Ok(Some(granted))
        }
    }
}

/// What ran before is proven dead: the same worker goes on with what it left.
fn taken_up(
    world: &World,
    store: &mut Store,
    out: &Output,
    task: &TaskId,
    place: &PlaceArgs,
) -> Result<GrantedLease, Refusal> {
    let command = Command::Takeover {
        workstation: place.workstation.clone(),
        here: place.here(world, store)?,
        ttl: place.ttl,
        reason: Some("its run ended without a word".into()),
        warrant: Warrant::Ordinary,
    };
    let envelope = world.envelope(Some(task.clone()), None, command)?;
    store.probe_before(&envelope)?;
    let receipt = store.submit(&envelope, &Target::Named)?;
    let granted = GrantedLease::new(store, &receipt)?;
    secure(world, store, out, &receipt)?;
    begin(world, store, out, &receipt, Earlier::Adopt)?;
    if let Err(refusal) = world.keep_lease(store, &receipt.task, &granted.token, granted.directory.as_deref())
    {
        out.warn(&refusal.to_string());
    }
    out.hint(&format!("{task}: taken up again in {}", granted.workstation));
    Ok(granted)
}

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
    if let Some(last) = story.handoff.as_ref().and_then(|last| last.handoff.as_ref()) {
        words.push_str(&format!("\nWhat the last holder left:\n{}\n", last.markdown()));
    }
    let words = OsString::from(shortened(&words, WORDS_MAX));
    Ok(command.iter().map(|word| if word == PROMPT { words.clone() } else { word.clone() }).collect())
}
