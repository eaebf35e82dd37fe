//! `onus complete`

use super::merge::tell_behind;
use super::{ForceArgs, LeaseArg, TaskArg, show_change, submit_as_holder, text, text_argument};
use crate::context::{Store, World};
use crate::output::Output;
use crate::progress::Bar;
use clap::Args;
use onus_app::finish::{Finish, FinishView, Landing};
use onus_app::merge::Merge;
use onus_core::command::Command;
use onus_core::evidence::RootCause;
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use onus_core::text::{Text, counted};
use std::fmt::Write as _;
use std::process::ExitCode;

/// Finish a task that you hold: check, merge, complete
///
/// Runs the checks that are missing, merges the commits of the workstation's branch into the main of record, completes the
/// task and leaves a handoff. Repeat it after an interruption: what is done is not done again.
#[derive(Debug, Args)]
pub(crate) struct Complete {
    #[command(flatten)]
    task: TaskArg,

    /// What was done; `-` reads standard input
    #[arg(long, value_name = "TEXT|-")]
    resolution: Option<String>,

    #[command(flatten)]
    cause: CauseArgs,

    /// Only state the completion: nothing is run and nothing is merged
    #[arg(long)]
    no_merge: bool,

    #[command(flatten)]
    lease: LeaseArg,

    #[command(flatten)]
    force: ForceArgs,
}

/// Why a defect happened.
#[derive(Debug, Clone, Args)]
pub(crate) struct CauseArgs {
    /// Why a defect happened, in one sentence
    #[arg(long, value_name = "SENTENCE", requires = "owner")]
    root_cause: Option<String>,

    /// The layer or file in which the cause was
    #[arg(long, value_name = "FILE", requires = "root_cause")]
    owner: Option<String>,
}

impl CauseArgs {
    pub(super) fn root_cause(&self) -> Option<RootCause> {
        let (statement, owner) = self.root_cause.clone().zip(self.owner.clone())?;
        Some(RootCause { statement, owner })
    }
}

impl Complete {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let words =
            self.resolution.as_deref().map(|given| text_argument("the resolution", given)).transpose()?;
        let mut store = world.open()?;
        let task = &self.task.task;
        let directory =
            world.actor.as_ref().map(|by| store.holding_directory(task, by)).transpose()?.flatten();
        let resolution = words.as_deref().map(text);
        let code = match self.force.force {
            true => self.forced(world, &mut store, out, resolution)?,
            false => self.whole(world, &mut store, out, resolution.as_ref())?,
        };
        world.forget_lease(task, directory.as_deref());
        tell_possible(&mut store, out, task);
        Ok(code)
    }

    fn whole(
        &self,
        world: &World,
        store: &mut Store,
        out: &Output,
        resolution: Option<&Text>,
    ) -> Result<ExitCode, Refusal> {
        let task = &self.task.task;
        let token = world.token(store, task, self.lease.lease.as_deref())?;
        let (request, root_cause) = (world.request()?, self.cause.root_cause());
        let merge = Merge {
            request: &request,
            actor: world.actor.as_ref(),
            token: token.as_ref(),
            task,
            adopt: &[],
            root_cause: root_cause.as_ref(),
        };
        let landing = if self.no_merge { Landing::State } else { Landing::Merge };
        let view = store.finish(&Finish { merge, resolution, landing }, &mut Bar::new(out))?;
        let code = out.show(&view, shown)?;
        tell_behind(out, &view.behind);
        Ok(code)
    }

    /// A person's force steps over what is missing; what the work was is on record all the same.
    fn forced(
        &self,
        world: &World,
        store: &mut Store,
        out: &Output,
        resolution: Option<Text>,
    ) -> Result<ExitCode, Refusal> {
        let task = &self.task.task;
        // It may be another one's: its working tree must not go on showing a lease that is over.
        let holder = store.task(task)?.assignment().map(|held| held.workstation.clone());
        let command = Command::Complete {
            resolution,
            root_cause: self.cause.root_cause(),
            warrant: self.force.warrant(),
            proof: store.proof(task)?,
        };
        let receipt = submit_as_holder(world, store, task, &self.lease, command)?;
        if let Some(place) = holder {
            world.show_no_token(store.directory_of(&place)?.as_deref());
        }
        show_change(out, &receipt, "complete")
    }
}

/// What others, or the same worker, can do now. That it cannot be asked is no reason to doubt the completion.
fn tell_possible(store: &mut Store, out: &Output, task: &TaskId) {
    if out.is_silent() {
        return;
    }
    let ready = store.made_ready(task).unwrap_or_default();
    let ids: Vec<String> = ready.iter().map(ToString::to_string).collect();
    match ids.as_slice() {
        [] => out.hint("next: onus claim --next"),
        [one] => out.hint(&format!("{one} is ready now · next: onus claim --next")),
        many => out.hint(&format!("{} are ready now · next: onus claim --next", many.join(", "))),
    }
}

fn shown(view: &FinishView) -> String {
    let mut text = format!("{} complete\n", view.task.id);
    for check in &view.checks {
        let _ = writeln!(text, "  passed: {}", check.command);
    }
    if let Some(landed) = view.landed.as_ref().filter(|landed| !landed.commits.is_empty()) {
        let place = [landed.remote.as_deref(), landed.branch.as_deref()].into_iter().flatten();
        let place = place.collect::<Vec<_>>().join("/");
        let _ = writeln!(text, "  landed in {place}: {}", counted(landed.commits.len(), "commit"));
    }
    if view.attempts > 1 {
        let _ = writeln!(text, "  others were quicker: it took {} attempts", view.attempts);
    }
    text
}
