//! `onus diff`

use super::TaskArg;
use crate::context::World;
use crate::output::Output;
use crate::render;
use clap::Args;
use onus_app::diff::DiffPart;
use onus_core::refusal::Refusal;
use std::process::ExitCode;

/// What a task's work changes against the main of record, with what was said about its lines
///
/// The branch of the workstation that holds it; else what has landed of it; else what is kept of a former holder. Files with
/// very much in them are folded: name one to see it.
#[derive(Debug, Args)]
pub(crate) struct Diff {
    #[command(flatten)]
    task: TaskArg,

    /// Only this file, however much has changed in it
    #[arg(value_name = "PATH", conflicts_with = "stat")]
    path: Option<String>,

    /// Only the names of the files, and how much has changed
    #[arg(long)]
    stat: bool,
}

impl Diff {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let part = match (&self.path, self.stat) {
            (Some(path), _) => DiffPart::File(path.clone()),
            (None, true) => DiffPart::Stat,
            (None, false) => DiffPart::Lines,
        };
        out.show(&world.open()?.diff(&self.task.task, &part)?, render::diff)
    }
}
