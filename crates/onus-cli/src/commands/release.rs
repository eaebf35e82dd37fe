//! `onus release`

use super::takeover::secure;
use super::{ForceArgs, LeaseArg, TaskArg, show_change, submit_as_holder, text, text_argument};
use crate::output::Output;
use crate::world::World;
use clap::Args;
use onus_core::command::Command;
use onus_core::refusal::Refusal;
use std::process::ExitCode;

/// Give a task back to the queue
#[derive(Debug, Args)]
pub(crate) struct Release {
    #[command(flatten)]
    task: TaskArg,

    /// What the next holder should know; `-` reads standard input
    #[arg(long, value_name = "TEXT|-")]
    note: Option<String>,

    #[command(flatten)]
    lease: LeaseArg,

    #[command(flatten)]
    force: ForceArgs,
}

impl Release {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let note = self.note.as_deref().map(|given| text_argument("the note", given)).transpose()?;
        let mut store = world.open()?;
        let task = &self.task.task;
        let directory =
            world.actor.as_ref().map(|by| store.holding_directory(task, by)).transpose()?.flatten();
        let command = Command::Release { note: note.as_deref().map(text), warrant: self.force.warrant() };
        let receipt = submit_as_holder(world, &mut store, task, &self.lease, command)?;
        if self.force.force {
            secure(world, &mut store, out, &receipt)?;
        }
        world.forget_lease(task, directory.as_deref());
        show_change(out, &receipt, "released")
    }
}
