//! `onus stale`

use crate::context::World;
use crate::output::Output;
use crate::render;
use clap::Args;
use onus_core::refusal::Refusal;
use std::process::ExitCode;

/// Held tasks whose lease has run out: what may be taken over
#[derive(Debug, Args)]
pub(crate) struct Stale {}

impl Stale {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let view = world.open()?.stale()?;
        out.show_list(&view, |view| &view.stale, render::stale)
    }
}
