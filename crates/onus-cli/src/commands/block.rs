//! `onus block` and `onus unblock`

use super::handoff::HandoffArgs;
use super::{LeaseArg, TaskArg, show_change, submit_as_holder};
use crate::context::World;
use crate::output::Output;
use clap::Args;
use onus_app::input::{self, VerbInput};
use onus_core::command::Command;
use onus_core::refusal::Refusal;
use onus_core::task::Blocker;
use std::process::ExitCode;

/// Say what the work waits for
#[derive(Debug, Args)]
pub(crate) struct Block {
    #[command(flatten)]
    task: TaskArg,

    /// task:ID, person:@x, external:TEXT or exception:ID
    #[arg(long, value_name = "BLOCKER", value_parser = |t: &str| t.parse::<Blocker>())]
    on: Blocker,

    /// Give the lease back meanwhile; default: keep it, for longer
    #[arg(long)]
    release_lease: bool,

    #[command(flatten)]
    words: HandoffArgs,

    #[command(flatten)]
    lease: LeaseArg,
}

impl Block {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let task = &self.task.task;
        let input = input::BlockInput {
            on: self.on.clone(),
            release_lease: self.release_lease,
            summary: self.words.summary()?,
            risks: self.words.risk.clone(),
            next: self.words.next.clone(),
            lease: None,
        };
        let command = input.order(&mut store, Some(task))?.command;
        let directory =
            world.actor.as_ref().map(|by| store.holding_directory(task, by)).transpose()?.flatten();
        let receipt = submit_as_holder(world, &mut store, task, &self.lease, command)?;
        if receipt.task.assignment().is_none() {
            world.forget_lease(task, directory.as_deref());
        }
        show_change(out, &receipt, "blocked")
    }
}

/// Go on: what the work waited for is there
#[derive(Debug, Args)]
pub(crate) struct Unblock {
    #[command(flatten)]
    task: TaskArg,

    #[command(flatten)]
    lease: LeaseArg,
}

impl Unblock {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let receipt = submit_as_holder(world, &mut store, &self.task.task, &self.lease, Command::Unblock)?;
        show_change(out, &receipt, "unblocked")
    }
}
