//! `onus merge`

use super::complete::CauseArgs;
use super::{LeaseArg, TaskArg};
use crate::context::World;
use crate::output::Output;
use crate::progress::Bar;
use clap::Args;
use onus_app::merge::{BehindView, Merge as Call, MergeView};
use onus_core::refusal::Refusal;
use std::fmt::Write as _;
use std::process::ExitCode;

/// Bring the commits of a task you hold into the main branch
///
/// Fetches, rebases the workstation's branch, looks whose commits these are and what they change, runs every check of the task
/// there, and moves the main of record forward: the local main branch, or the shared one that a person named. Refused while
/// anything is missing that completion would ask for.
#[derive(Debug, Args)]
pub(crate) struct Merge {
    #[command(flatten)]
    task: TaskArg,

    /// Land this commit as well, though it was made under another assignment; may be given several times
    #[arg(long, value_name = "COMMIT")]
    adopt: Vec<String>,

    #[command(flatten)]
    cause: CauseArgs,

    #[command(flatten)]
    lease: LeaseArg,
}

impl Merge {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let task = &self.task.task;
        let token = world.token(&mut store, task, self.lease.lease.as_deref())?;
        let request = world.request()?;
        let root_cause = self.cause.root_cause();
        let call = Call {
            request: &request,
            actor: world.actor.as_ref(),
            token: token.as_ref(),
            task,
            adopt: &self.adopt,
            root_cause: root_cause.as_ref(),
        };
        let view = store.merge(&call, &mut Bar::new(out))?;
        let code = out.show(&view, text)?;
        tell_behind(out, &view.behind);
        out.hint(&format!("next: onus complete {task} --resolution TEXT"));
        Ok(code)
    }
}

/// Checkouts that stay where they were.
pub(super) fn tell_behind(out: &Output, behind: &[BehindView]) {
    for checkout in behind {
        out.warn(&format!("{} did not follow: {}", checkout.path, checkout.detail));
    }
}

fn text(view: &MergeView) -> String {
    let mut text = format!("{} is merged: {} on {}\n", view.task, view.commit, view.onto);
    for check in &view.checks {
        let _ = writeln!(text, "  passed: {}", check.command);
    }
    if view.attempts > 1 {
        let _ = writeln!(text, "  others were quicker: it took {} attempts", view.attempts);
    }
    text
}
