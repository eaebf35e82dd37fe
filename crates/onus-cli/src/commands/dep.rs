//! `onus dep`

use super::{LeaseArg, show_change, submit_as_holder, task_id};
use crate::context::World;
use crate::output::Output;
use clap::{Args, Subcommand};
use onus_app::submit::ReceiptKind;
use onus_core::command::Command;
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use std::process::ExitCode;

/// What must be complete before a task may start
#[derive(Debug, Args)]
pub(crate) struct Dep {
    #[command(subcommand)]
    verb: DepVerb,
}

#[derive(Debug, Subcommand)]
enum DepVerb {
    /// TASK waits for DEPENDS_ON; never in a circle
    Add(TaskPair),
    /// TASK no longer waits for DEPENDS_ON: people only
    Remove(TaskPair),
}

#[derive(Debug, Args)]
struct TaskPair {
    /// The task that waits
    #[arg(value_name = "TASK", value_parser = task_id)]
    task: TaskId,

    /// The task that comes first
    #[arg(value_name = "DEPENDS_ON", value_parser = task_id)]
    on: TaskId,
}

impl Dep {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let (pair, command) = match &self.verb {
            DepVerb::Add(pair) => (pair, Command::AddDependency { on: pair.on.clone() }),
            DepVerb::Remove(pair) => (pair, Command::RemoveDependency { on: pair.on.clone() }),
        };
        let mut store = world.open()?;
        let receipt = submit_as_holder(world, &mut store, &pair.task, &LeaseArg { lease: None }, command)?;
        let said = match (&self.verb, receipt.kind) {
            (_, ReceiptKind::Existing) => format!("already depends on {}", pair.on),
            (DepVerb::Add(_), _) => format!("depends on {}", pair.on),
            (DepVerb::Remove(_), _) => format!("no longer depends on {}", pair.on),
        };
        show_change(out, &receipt, &said)
    }
}
