//! `onus renew`

use super::{LeaseArg, TaskArg, show_change, submit_as_holder};
use crate::context::World;
use crate::output::Output;
use clap::Args;
use onus_core::command::Command;
use onus_core::refusal::Refusal;
use onus_core::time::Millis;
use std::process::ExitCode;

/// Show that you are still at it: the lease runs anew
#[derive(Debug, Args)]
pub(crate) struct Renew {
    #[command(flatten)]
    task: TaskArg,

    /// Another length from now on, e.g. 1h
    #[arg(long, value_name = "DURATION", value_parser = Millis::parse)]
    ttl: Option<Millis>,

    #[command(flatten)]
    lease: LeaseArg,
}

impl Renew {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let command = Command::Renew { ttl: self.ttl, process: None };
        let receipt = submit_as_holder(world, &mut store, &self.task.task, &self.lease, command)?;
        show_change(out, &receipt, "renewed")
    }
}
