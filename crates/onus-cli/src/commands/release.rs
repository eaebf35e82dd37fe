//! `onus release`

use super::handoff::HandoffArgs;
use super::takeover::secure;
use super::{ForceArgs, LeaseArg, TaskArg, show_change, submit_as_holder};
use crate::context::World;
use crate::output::Output;
use clap::Args;
use onus_app::input::{self, VerbInput};
use onus_core::refusal::Refusal;
use std::process::ExitCode;

/// Give a task back to the queue, with a handoff for whoever takes it next
#[derive(Debug, Args)]
pub(crate) struct Release {
    #[command(flatten)]
    task: TaskArg,

    #[command(flatten)]
    words: HandoffArgs,

    #[command(flatten)]
    lease: LeaseArg,

    #[command(flatten)]
    force: ForceArgs,
}

impl Release {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let summary = self.words.summary()?;
        let mut store = world.open()?;
        let task = &self.task.task;
        let directory =
            world.actor.as_ref().map(|by| store.holding_directory(task, by)).transpose()?.flatten();
        let input = input::ReleaseInput {
            summary,
            risks: self.words.risk.clone(),
            next: self.words.next.clone(),
            force: self.force.force,
            reason: self.force.reason.clone(),
            lease: None,
        };
        let command = input.order(&mut store, Some(task))?.command;
        let receipt = submit_as_holder(world, &mut store, task, &self.lease, command)?;
        if self.force.force {
            secure(world, &mut store, out, &receipt)?;
        }
        world.forget_lease(task, directory.as_deref());
        show_change(out, &receipt, "released")
    }
}
