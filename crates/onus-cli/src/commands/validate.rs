//! `onus validate`

use crate::context::World;
use crate::output::Output;
use crate::progress::Bar;
use clap::Args;
use onus_core::refusal::Refusal;
use onus_core::text::counted;
use std::process::ExitCode;

/// Check the queue: cycles, dependencies that can never be met, checks that prove nothing. Fit for CI
#[derive(Debug, Args)]
pub(crate) struct Validate {}

impl Validate {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let view = world.open()?.validate(&mut Bar::new(out))?;
        if let Some(refusal) = view.refusal() {
            return Err(refusal);
        }
        out.show(&view, |view| {
            format!(
                "{} and {}: sound\n",
                counted(view.counts.tasks, "task"),
                counted(view.counts.dependencies, "dependency")
            )
        })
    }
}
