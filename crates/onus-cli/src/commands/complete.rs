//! `onus complete`

use super::{ForceArgs, LeaseArg, TaskArg, show_change, submit_as_holder, text, text_argument};
use crate::context::World;
use crate::output::Output;
use clap::Args;
use onus_core::command::Command;
use onus_core::evidence::RootCause;
use onus_core::refusal::Refusal;
use std::process::ExitCode;

/// Finish a task that you hold
#[derive(Debug, Args)]
pub(crate) struct Complete {
    #[command(flatten)]
    task: TaskArg,

    /// What was done; `-` reads standard input
    #[arg(long, value_name = "TEXT|-")]
    resolution: Option<String>,

    /// Why a defect happened, in one sentence
    #[arg(long, value_name = "SENTENCE", requires = "owner")]
    root_cause: Option<String>,

    /// The layer or file in which the cause was
    #[arg(long, value_name = "FILE", requires = "root_cause")]
    owner: Option<String>,

    #[command(flatten)]
    lease: LeaseArg,

    #[command(flatten)]
    force: ForceArgs,
}

impl Complete {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let words =
            self.resolution.as_deref().map(|given| text_argument("the resolution", given)).transpose()?;
        let mut store = world.open()?;
        let task = &self.task.task;
        let directory =
            world.actor.as_ref().map(|by| store.holding_directory(task, by)).transpose()?.flatten();
        // By force it may be another one's: its working tree must not go on showing a lease that is over.
        let holder = match self.force.force {
            true => store.task(task)?.assignment().map(|held| held.workstation.clone()),
            false => None,
        };
        let root_cause = self.root_cause.clone().zip(self.owner.clone());
        let command = Command::Complete {
            resolution: words.as_deref().map(text),
            root_cause: root_cause.map(|(statement, owner)| RootCause { statement, owner }),
            warrant: self.force.warrant(),
            // A person's force steps over what is missing; what the work was is on record all the same.
            proof: store.proof(task)?,
        };
        let receipt = submit_as_holder(world, &mut store, task, &self.lease, command)?;
        world.forget_lease(task, directory.as_deref());
        if let Some(place) = holder {
            world.show_no_token(store.directory_of(&place)?.as_deref());
        }
        show_change(out, &receipt, "complete")
    }
}
