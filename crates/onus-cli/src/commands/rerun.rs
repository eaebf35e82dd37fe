//! `onus rerun`

use super::TaskArg;
use super::claim::show_grant;
use crate::context::World;
use crate::output::Output;
use clap::Args;
use onus_app::rerun::Rerun as Call;
use onus_core::refusal::Refusal;
use std::process::ExitCode;

/// Have a completed task done again under the same conditions: people only
///
/// A new task with the same words, checks and scope, assigned to whoever completed the original, in the same
/// workstation, whose working tree is put on the commit at which the original began. Nothing is lost: a tree with
/// uncommitted changes is refused, and its branch stays where it is.
#[derive(Debug, Args)]
pub(crate) struct Rerun {
    #[command(flatten)]
    task: TaskArg,

    /// Why; becomes a note of the new task
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Rerun {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let request = world.request()?;
        let call = Call {
            request: &request,
            actor: world.actor.as_ref(),
            task: &self.task.task,
            reason: self.reason.as_deref(),
        };
        let receipt = store.rerun(&call)?;
        show_grant(world, &mut store, out, &receipt)
    }
}
