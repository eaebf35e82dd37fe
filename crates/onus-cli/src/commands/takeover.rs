//! `onus takeover`

use super::claim::{AdoptArg, PlaceArgs, begin, show_grant};
use super::{ForceArgs, TaskArg};
use crate::context::{Store, World};
use crate::output::Output;
use clap::Args;
use onus_app::salvage::Evicted;
use onus_app::submit::{Receipt, Target};
use onus_core::command::{Command, Envelope};
use onus_core::id::{TaskId, WorkstationName};
use onus_core::refusal::Refusal;
use std::process::ExitCode;

/// Take over a task whose lease has expired; its notes and history stay
#[derive(Debug, Args)]
pub(crate) struct Takeover {
    #[command(flatten)]
    task: TaskArg,

    #[command(flatten)]
    place: PlaceArgs,

    #[command(flatten)]
    adopt: AdoptArg,

    #[command(flatten)]
    force: ForceArgs,
}

impl Takeover {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let command = Command::Takeover {
            workstation: self.place.workstation.clone(),
            here: self.place.here(world, &mut store)?,
            ttl: self.place.ttl,
            reason: self.force.reason.clone(),
            warrant: self.force.warrant(),
        };
        let envelope = world.envelope(Some(self.task.task.clone()), None, command)?;
        store.probe_before(&envelope)?;
        let receipt = store.submit(&envelope, &Target::Named)?;
        secure(world, &mut store, out, &receipt)?;
        begin(world, &mut store, out, &receipt, self.adopt.earlier())?;
        show_grant(world, &mut store, out, &receipt)
    }
}

/// After somebody lost a task against their will: nothing of theirs lands any more, and nothing of it is lost. The new
/// holder hears of its token only after the barrier.
pub(super) fn secure(
    world: &World,
    store: &mut Store,
    out: &Output,
    receipt: &Receipt,
) -> Result<(), Refusal> {
    let Some(evicted) = store.evicted(receipt)? else {
        return Ok(());
    };
    let again = |refusal: Refusal| {
        refusal.hint(
            "if git was killed there, remove the lock file it names; then run the same command again with the same \
             --request-id",
        )
    };
    store.bar(&evicted).map_err(again)?;
    // The grant stands and the branch is barred; a tree that cannot be read must not undo that.
    let kept = store.salvage(world.actor.as_ref(), world.another_request()?, &evicted);
    match &kept {
        Ok(Some(kept)) => {
            out.hint(&format!(
                "the work of {} is kept in {} ({})",
                evicted.worker, kept.refname, kept.commit
            ));
            if let Some(words) = &kept.left_out {
                out.warn(&format!("git could not read all of it: {words}"));
            }
        }
        Ok(None) => {}
        Err(refusal) => out.warn(&format!("the work of {} was left where it is: {refusal}", evicted.worker)),
    }
    world.show_no_token(evicted.directory());
    let reference = kept.ok().flatten().map(|kept| kept.refname);
    if let Err(refusal) = hand_on(world, store, receipt, &evicted, reference.as_deref()) {
        out.warn(&format!("there is no handoff of the work of {}: {refusal}", evicted.worker));
    }
    Ok(())
}

/// The new holder gets what git shows of the old one's work.
fn hand_on(
    world: &World,
    store: &mut Store,
    receipt: &Receipt,
    evicted: &Evicted,
    salvage: Option<&str>,
) -> Result<(), Refusal> {
    let Some(token) = &receipt.token else {
        return Ok(());
    };
    let Some(document) = store.compose_eviction(evicted, salvage)? else {
        return Ok(());
    };
    // What a person writes down for an agent is the person's word.
    let is_own = receipt.task.assignment().map(|held| &held.assignee) == world.actor.as_ref();
    let envelope = Envelope {
        request: world.another_request()?,
        actor: world.actor.clone(),
        token: Some(token.clone()).filter(|_| is_own),
        task: Some(receipt.task.id.clone()),
        project: None,
        base: None,
        command: Command::Handoff { note: None, document },
    };
    store.submit(&envelope, &Target::Named).map(drop)
}

/// Waits until what the holder of a quarantined workstation had on its way has landed or is refused.
pub(super) fn bar(store: &mut Store, out: &Output, task: &TaskId, name: &WorkstationName) {
    let barred = store.held_in(task, name).and_then(|held| held.map_or(Ok(()), |held| store.bar(&held)));
    if let Err(refusal) = barred {
        out.warn(&format!("a push by the holder may still be on its way: {refusal}"));
    }
}
