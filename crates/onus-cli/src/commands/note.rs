//! `onus note`

use super::{LeaseArg, TaskArg, show_change, submit, text, text_argument};
use crate::context::{World, environment_token};
use crate::output::Output;
use clap::Args;
use onus_core::code::Code;
use onus_core::command::Command;
use onus_core::refusal::Refusal;
use std::process::ExitCode;

/// Write down progress, or comment on somebody else's task
///
/// The holder's own note renews the lease.
#[derive(Debug, Args)]
pub(crate) struct WriteNote {
    #[command(flatten)]
    task: TaskArg,

    /// The words; `-` reads standard input
    #[arg(value_name = "TEXT|-")]
    text: String,

    #[command(flatten)]
    lease: LeaseArg,
}

impl WriteNote {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let words = text_argument("the note", &self.text)?;
        let mut store = world.open()?;
        let (task, note) = (&self.task.task, || Command::Note { text: text(&words) });
        let token = world.token(&mut store, task, self.lease.lease.as_deref())?;
        // A token that only lay here says nothing about who its reader wants to be.
        let is_found = token.is_some() && self.lease.lease.is_none() && environment_token()?.is_none();
        let receipt = match submit(world, &mut store, task, token, note()) {
            Err(refusal)
                if refusal.code == Code::Fenced
                    && is_found
                    && store.task(task)?.assignment().map(|held| &held.assignee) != world.actor.as_ref() =>
            {
                let receipt = submit(world, &mut store, task, None, note())?;
                out.hint(&format!("you do not hold {task} any more: it was kept as a comment"));
                receipt
            }
            other => other?,
        };
        show_change(out, &receipt, "noted")
    }
}
