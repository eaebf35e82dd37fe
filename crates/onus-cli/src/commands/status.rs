//! `onus status`

use crate::context::World;
use crate::output::Output;
use crate::render;
use clap::Args;
use onus_core::refusal::Refusal;
use std::process::ExitCode;

/// Where the work stands: counts, who holds what, the ledger
#[derive(Debug, Args)]
pub(crate) struct Status {}

impl Status {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let view = world.open()?.status()?;
        out.show(&view, render::status)
    }
}
