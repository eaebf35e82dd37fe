//! `onus ready`

use super::list::{FilterArgs, LimitArg};
use crate::context::World;
use crate::output::Output;
use crate::render;
use clap::Args;
use onus_core::refusal::Refusal;
use std::process::ExitCode;

/// Tasks that can be claimed now, and why the rest cannot
#[derive(Debug, Args)]
pub(crate) struct Ready {
    #[command(flatten)]
    filter: FilterArgs,

    #[command(flatten)]
    limit: LimitArg,
}

impl Ready {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let limit = self.limit.or(store.settings.queue.limit);
        let view = store.ready_for(world.actor.as_ref(), &self.filter.filter(), limit)?;
        let code = out.show_list(&view, |view| &view.tasks, render::ready)?;
        store.store.leave();
        Ok(code)
    }
}
