//! `onus note`

use super::{LeaseArg, TaskArg, show_change, submit_as_holder, text, text_argument};
use crate::context::World;
use crate::output::Output;
use clap::Args;
use onus_core::command::Command;
use onus_core::refusal::Refusal;
use std::process::ExitCode;

/// Write down progress, or comment on somebody else's task
///
/// The holder's own note renews the lease.
#[derive(Debug, Args)]
pub(crate) struct Note {
    #[command(flatten)]
    task: TaskArg,

    /// The words; `-` reads standard input
    #[arg(value_name = "TEXT|-")]
    text: String,

    #[command(flatten)]
    lease: LeaseArg,
}

impl Note {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let words = text_argument("the note", &self.text)?;
        let mut store = world.open()?;
        let command = Command::Note { text: text(&words) };
        let receipt = submit_as_holder(world, &mut store, &self.task.task, &self.lease, command)?;
        show_change(out, &receipt, "noted")
    }
}
