//! `onus reopen` and `onus drop`

use super::takeover::secure;
use super::{TaskArg, show_change, submit};
use crate::context::World;
use crate::output::Output;
use clap::Args;
use onus_core::command::Command;
use onus_core::refusal::Refusal;
use std::process::ExitCode;

/// Open a complete task again: a person, or a verifier
#[derive(Debug, Args)]
pub(crate) struct Reopen {
    #[command(flatten)]
    task: TaskArg,

    /// Why; goes into the ledger
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Reopen {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let command = Command::Reopen { reason: self.reason.clone() };
        let receipt = submit(world, &mut world.open()?, &self.task.task, None, command)?;
        show_change(out, &receipt, "reopened")
    }
}

/// Give a task up for good: people only
#[derive(Debug, Args)]
pub(crate) struct Drop {
    #[command(flatten)]
    task: TaskArg,

    /// Why; goes into the ledger
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Drop {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let command = Command::Drop { reason: self.reason.clone() };
        let mut store = world.open()?;
        let receipt = submit(world, &mut store, &self.task.task, None, command)?;
        secure(world, &mut store, out, &receipt)?;
        show_change(out, &receipt, "dropped")
    }
}
