//! `onus claim`

use super::list::FilterArgs;
use super::takeover::secure;
use super::{ForceArgs, task_id};
use crate::confirm;
use crate::context::{Store, World};
use crate::output::Output;
use crate::render;
use clap::Args;
use onus_app::clean_start::{Begins, Earlier, Started};
use onus_app::submit::{Receipt, Target};
use onus_app::view::ClaimView;
use onus_core::command::Command;
use onus_core::constraint::Constraint;
use onus_core::id::{Handle, RequestId, TaskId, WorkstationName};
use onus_core::refusal::Refusal;
use onus_core::text::counted;
use onus_core::time::Millis;
use std::process::ExitCode;

/// Take a task: from now on you, and only you, may work on it
#[derive(Debug, Args)]
pub(crate) struct Claim {
    /// The task, e.g. API-12
    #[arg(value_name = "TASK", value_parser = task_id, conflicts_with = "next")]
    task: Option<TaskId>,

    /// The most important ready task, picked and taken in one step
    #[arg(long)]
    next: bool,

    #[command(flatten)]
    filter: FilterArgs,

    #[command(flatten)]
    place: PlaceArgs,

    /// Give it to this worker instead of taking it: people only
    #[arg(long = "for", value_name = "@HANDLE", value_parser = crate::cli::handle)]
    assignee: Option<Handle>,

    /// What the holder is held to: path:GLOB, verb:NAME, command:WORDS or network:none; may be repeated
    #[arg(long = "constraint", value_name = "CONSTRAINT", value_parser = |t: &str| t.parse::<Constraint>())]
    constraints: Vec<Constraint>,

    #[command(flatten)]
    adopt: AdoptArg,

    #[command(flatten)]
    force: ForceArgs,
}

/// Whether an earlier holder's work is brought along.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct AdoptArg {
    /// Bring along what an earlier holder of the task left: its commits, with their authors, and its changed files
    #[arg(long)]
    adopt: bool,
}

impl AdoptArg {
    pub(super) fn earlier(self) -> Earlier {
        if self.adopt { Earlier::Adopt } else { Earlier::Leave }
    }
}

/// Where and for how long.
#[derive(Debug, Clone, Args)]
pub(crate) struct PlaceArgs {
    /// Where you will work; default: the one that the identity map names, else the one whose directory you are in
    #[arg(long, env = "ONUS_WORKSTATION", value_name = "WORKSTATION", value_parser = |t: &str| t.parse::<WorkstationName>())]
    pub(crate) workstation: Option<WorkstationName>,

    /// How long the lease lasts unless renewed, e.g. 15m
    #[arg(long, value_name = "DURATION", value_parser = Millis::parse)]
    pub(crate) ttl: Option<Millis>,
}

impl PlaceArgs {
    /// Where the caller stands, if it matters.
    pub(super) fn here(&self, world: &World, store: &mut Store) -> Result<Option<WorkstationName>, Refusal> {
        if self.workstation.is_some() { Ok(None) } else { world.here(store) }
    }
}

impl Claim {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let command = Command::Claim {
            workstation: self.place.workstation.clone(),
            here: self.place.here(world, &mut store)?,
            assignee: self.assignee.clone(),
            ttl: self.place.ttl,
            warrant: self.force.warrant(),
            constraints: self.constraints.clone(),
        };
        let task = match (&self.task, self.next) {
            (None, false) => Some(offered(&mut store, &self.filter)?),
            (task, _) => task.clone(),
        };
        let target = if self.next { Target::Next(self.filter.filter()) } else { Target::Named };
        let envelope = world.envelope(task, None, command)?;
        store.probe_before(&envelope)?;
        let receipt = store.submit(&envelope, &target)?;
        if self.force.force {
            secure(world, &mut store, out, &receipt)?;
        }
        begin(world, &mut store, out, &receipt, self.adopt.earlier())?;
        let code = show_grant(world, &mut store, out, &receipt)?;
        store.store.leave();
        Ok(code)
    }
}

/// Puts the workstation of a grant on the main of record, and tells what was there before. Where that fails the task is given
/// back: there is no grant without it (invariant clean-start).
pub(super) fn begin(
    world: &World,
    store: &mut Store,
    out: &Output,
    receipt: &Receipt,
    earlier: Earlier,
) -> Result<(), Refusal> {
    made_ready(world, store, out, receipt, earlier).or_else(|refusal| {
        let request = world.another_request()?;
        let begins = begins(world, &request, receipt);
        Err(store.not_begun(&begins, &receipt.task.id, refusal))
    })
}

/// The same for who gives the task back in a way of its own.
pub(super) fn made_ready(
    world: &World,
    store: &mut Store,
    out: &Output,
    receipt: &Receipt,
    earlier: Earlier,
) -> Result<(), Refusal> {
    world.join(store);
    let request = world.another_request()?;
    let started = store.clean_start(&begins(world, &request, receipt), &receipt.task, earlier)?;
    tell(out, &started);
    Ok(())
}

fn begins<'a>(world: &'a World, request: &'a RequestId, receipt: &'a Receipt) -> Begins<'a> {
    Begins { request, actor: world.actor.as_ref(), token: receipt.token.as_ref() }
}

fn tell(out: &Output, started: &Started) {
    if let Some(kept) = &started.kept {
        out.hint(&format!("what lay in the workstation is kept in {} ({})", kept.refname, kept.commit));
        if let Some(words) = &kept.left_out {
            out.warn(&format!("git could not read all of it: {words}"));
        }
    }
    if !started.adopted.is_empty() {
        out.hint(&format!("adopted from the earlier holder: {}", counted(started.adopted.len(), "commit")));
    }
    for warning in &started.warnings {
        out.warn(warning);
    }
}

/// Nobody said which one: at a terminal the next one is offered, anywhere else it is named.
fn offered(store: &mut Store, filter: &FilterArgs) -> Result<TaskId, Refusal> {
    let Some(task) = store.ready(&filter.filter(), 1)?.tasks.into_iter().next() else {
        return Err(Refusal::invalid("which task? Nothing is ready").hint("onus ready"));
    };
    let question = format!("Take {}: {}?", task.id, task.title);
    match confirm::asked(&question) {
        Some(true) => Ok(task.id),
        Some(false) => Err(Refusal::invalid("nothing was taken").hint("onus ready")),
        None => Err(Refusal::invalid(format!("which task? The next one is {}: {}", task.id, task.title))
            .hint("onus claim --next")),
    }
}

/// Leaves the token in the workstation and shows the grant.
pub(super) fn show_grant(
    world: &World,
    store: &mut Store,
    out: &Output,
    receipt: &Receipt,
) -> Result<ExitCode, Refusal> {
    let task = &receipt.task;
    let mut directory = None;
    if let (Some(token), Some(held)) = (&receipt.token, task.assignment()) {
        directory = store.directory_of(&held.workstation)?;
        // The grant is committed; a token that cannot be kept in a file can still be passed by hand.
        if let Err(refusal) = world.keep_lease(store, task, token, directory.as_deref()) {
            out.warn(&format!("{refusal}; pass --lease {token}"));
        }
    }
    let view = ClaimView::from(receipt);
    let code = out.show(&view, |view| render::claim(view, world.actor.as_ref()))?;
    let id = &view.task.id;
    match task.assignment().filter(|held| world.actor.as_ref() == Some(&held.assignee)) {
        Some(held) => {
            let there =
                directory.filter(|_| world.here(store).ok().flatten() != Some(held.workstation.clone()));
            let place = there.map_or_else(|| "here".to_owned(), |path| format!("in {}", path.display()));
            out.hint(&format!(
                "next: commit {place}, then onus complete {id} --resolution TEXT (it checks and merges)"
            ));
        }
        None => out.hint(&format!("next: onus show {id}")),
    }
    Ok(code)
}
