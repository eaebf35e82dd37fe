//! `onus takeover`

use super::claim::{PlaceArgs, show_grant};
use super::{ForceArgs, TaskArg, submit};
use crate::output::Output;
use crate::world::World;
use clap::Args;
use onus_core::command::Command;
use onus_core::refusal::Refusal;
use std::process::ExitCode;

/// Take over a task whose lease has expired; its notes and history stay
#[derive(Debug, Args)]
pub(crate) struct Takeover {
    #[command(flatten)]
    task: TaskArg,

    #[command(flatten)]
    place: PlaceArgs,

    #[command(flatten)]
    force: ForceArgs,
}

impl Takeover {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let command = Command::Takeover {
            workstation: self.place.workstation.clone(),
            here: self.place.here(world, &mut store)?,
            ttl: self.place.ttl,
            reason: self.force.reason.clone(),
            warrant: self.force.warrant(),
        };
        let receipt = submit(world, &mut store, &self.task.task, None, command)?;
        show_grant(world, &mut store, out, &receipt)
    }
}
