//! `onus merge`

use super::{LeaseArg, TaskArg};
use crate::context::World;
use crate::output::Output;
use crate::progress::Bar;
use clap::Args;
use onus_app::merge::{Merge as Call, MergeView};
use onus_core::refusal::Refusal;
use onus_host::refs;
use std::fmt::Write as _;
use std::process::ExitCode;

/// Bring the commits of a task you hold into the main branch
///
/// Rebases the workstation's branch, looks at the changed paths, runs every check of the task there, and moves the main
/// branch forward. Refused while a dependency or an earlier slice of the same parent is not complete. Nothing is pushed.
#[derive(Debug, Args)]
pub(crate) struct Merge {
    #[command(flatten)]
    task: TaskArg,

    #[command(flatten)]
    lease: LeaseArg,
}

impl Merge {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let task = &self.task.task;
        let token = world.token(&mut store, task, self.lease.lease.as_deref())?;
        let request = world.request()?;
        let call = Call { request: &request, actor: world.actor.as_ref(), token: token.as_ref(), task };
        let view = store.merge(&call, &mut Bar::new(out))?;
        let code = out.show(&view, text)?;
        for checkout in &view.behind {
            out.warn(&format!(
                "the files in {} did not follow, somebody is editing them: {}",
                checkout.path, checkout.detail
            ));
        }
        let (repo, main) = store.main_of_repository()?;
        let main = main.trim_start_matches("refs/heads/");
        if let Some(remote) = refs::remotes(&repo)?.first() {
            out.hint(&format!("for the others: git push {remote} {main}"));
        }
        out.hint(&format!("next: onus complete {task} --resolution TEXT"));
        Ok(code)
    }
}

fn text(view: &MergeView) -> String {
    let mut text = format!("{} is merged: {} on {}\n", view.task, view.commit, view.onto);
    for check in &view.checks {
        let _ = writeln!(text, "  passed: {}", check.command);
    }
    text
}
