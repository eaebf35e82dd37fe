//! `onus show`

use super::TaskArg;
use crate::context::World;
use crate::output::Output;
use crate::render;
use clap::Args;
use onus_core::refusal::Refusal;
use std::process::ExitCode;

/// The whole story of a task: assignment, lease, notes, sessions, ledger
#[derive(Debug, Args)]
pub(crate) struct Show {
    #[command(flatten)]
    task: TaskArg,
}

impl Show {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let code = out.show(&store.show(&self.task.task)?, render::story)?;
        store.store.leave();
        Ok(code)
    }
}
