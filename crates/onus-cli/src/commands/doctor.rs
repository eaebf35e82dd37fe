//! `onus doctor`

use crate::context::World;
use crate::output::Output;
use crate::progress::Bar;
use crate::render;
use clap::Args;
use onus_core::refusal::Refusal;
use std::process::ExitCode;

/// Examine the store and its surroundings; changes nothing
#[derive(Debug, Args)]
pub(crate) struct Doctor {}

impl Doctor {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let view = world.open()?.doctor(&mut Bar::new(out))?;
        match view.refusal() {
            None => out.show(&view, render::doctor),
            Some(refusal) => {
                out.hint(&render::doctor(&view));
                Err(refusal)
            }
        }
    }
}
