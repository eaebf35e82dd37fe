//! A task that somebody gave to this very worker: its lease was left in the workstation, and nobody works under it.

use super::lease::GrantedLease;
use crate::commands::claim::PlaceArgs;
use crate::commands::takeover::secure;
use crate::context::{Store, World};
use crate::output::Output;
use onus_app::clean_start::Earlier;
use onus_app::finish::REVIEW;
use onus_app::submit::{Receipt, ReceiptKind, Target};
use onus_app::view::EntryView;
use onus_core::command::{Command, Warrant};
use onus_core::id::TaskId;
use onus_core::process::Vital;
use onus_core::refusal::Refusal;
use onus_core::task::{Assignment, Blocker};
use onus_host::process_liveness;

/// What goes on, by which grant, and with what of the work before it.
pub(super) type PickedUp = (GrantedLease, Receipt, Earlier);

/// The lease of a task that the caller holds and does not work on. None: whoever wants it claims it.
pub(super) fn picked_up(
    world: &World,
    store: &mut Store,
    out: &Output,
    task: &TaskId,
    place: &PlaceArgs,
) -> Result<Option<PickedUp>, Refusal> {
    let Some(row) = store.find_task(task)? else { return Ok(None) };
    let (Some(held), Some(actor)) = (row.assignment(), world.actor.as_ref()) else { return Ok(None) };
    if held.assignee != *actor {
        return Ok(None);
    }
    // Killed together with its warden, a wrapper leaves its command behind: that would work on beside the next one.
    process_liveness::end_left_behind(&held.lease);
    match process_liveness::of(&held.lease) {
        // Two processes of one worker are two: the second one is told who holds it.
        Vital::Lives => Ok(None),
        Vital::Gone => taken_up(world, store, out, task, place).map(Some),
        Vital::Unknown if held.lease.process.is_some() => match is_stale(store, task)? {
            true => taken_up(world, store, out, task, place).map(Some),
            false => Ok(None),
        },
        // Who took it works on it, perhaps in a terminal beside this one.
        Vital::Unknown if !was_given(store, task, held)? => Ok(None),
        Vital::Unknown => {
            let Some(token) = world.token(store, task, None)? else { return Ok(None) };
            let receipt = Receipt { kind: ReceiptKind::Existing, task: row.clone(), token: Some(token) };
            let granted = GrantedLease::new(store, &receipt)?;
            // Whether it is still the one in force is the store's to say.
            granted.submit(world, store, Command::Renew { ttl: None, process: None })?;
            out.hint(&format!("{task}: {} in {}, as it was given", row.spec.title, granted.workstation));
            // Whoever gave it may have stood elsewhere: what has begun already is left as it is.
            Ok(Some((granted, receipt, Earlier::Leave)))
        }
    }
}

/// Whether the lease ran out so long ago that anybody may have the task.
fn is_stale(store: &mut Store, task: &TaskId) -> Result<bool, Refusal> {
    Ok(store.held()?.iter().any(|held| held.task == *task && held.may_be_taken_over))
}

/// Whether somebody else than the holder made the grant that is in force, or sent back what its run had waited with.
fn was_given(store: &mut Store, task: &TaskId, held: &Assignment) -> Result<bool, Refusal> {
    let story = store.show(task)?;
    let last = |verbs: &[&str]| {
        let named = story.ledger.iter().filter(|entry| verbs.contains(&entry.verb.as_str()));
        named.max_by_key(|entry| entry.seq)
    };
    let grant = last(&["claimed", "taken_over"]);
    let is_sent_back = |wait: &EntryView| {
        wait.data["on"] == Blocker::External(REVIEW.to_owned()).to_string()
            && last(&["unblocked"]).is_some_and(|end| end.seq > wait.seq)
            && grant.is_some_and(|grant| grant.seq < wait.seq)
    };
    Ok(grant.is_some_and(|grant| grant.actor != held.assignee.as_str())
        || last(&["blocked"]).is_some_and(is_sent_back))
}

/// What ran before is proven dead: the same worker goes on with what it left.
fn taken_up(
    world: &World,
    store: &mut Store,
    out: &Output,
    task: &TaskId,
    place: &PlaceArgs,
) -> Result<PickedUp, Refusal> {
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
    out.hint(&format!("{task}: taken up again in {}", granted.workstation));
    Ok((granted, receipt, Earlier::Adopt))
}
