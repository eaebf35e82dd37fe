//! `onus prime`

use super::task_id;
use crate::context::World;
use crate::output::{Format, Output};
use clap::Args;
use onus_app::prime::text;
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use onus_core::worker::Kind;
use std::process::ExitCode;

/// What an agent needs to know now: who it is, what it holds, what it may do, what is ready
///
/// Under 1,500 tokens, for the beginning of a session.
#[derive(Debug, Args)]
pub(crate) struct Prime {
    /// Only this one of the tasks that you hold
    #[arg(value_name = "TASK", value_parser = task_id)]
    task: Option<TaskId>,
}

impl Prime {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let view = store.prime(world.actor.as_ref(), self.task.as_ref())?;
        let code = match out.format {
            Format::Human => out.show(&view, text),
            Format::Json | Format::JsonLines => out.show(&view.in_short(), text),
        }?;
        if view.kind == Kind::Agent {
            store.mark_read(world.actor.as_ref(), &view.messages)?;
        }
        Ok(code)
    }
}
