//! `onus preflight`

use crate::context::World;
use crate::output::Output;
use crate::render;
use clap::Args;
use onus_app::preflight::Start;
use onus_core::id::{Role, WorkstationName};
use onus_core::refusal::Refusal;
use std::process::ExitCode;

/// Whether work in a role can begin here: map, workstation, probes, branch, hooks, leases, tasks
///
/// Runs the workstation's probes and keeps what they say. Refused with the first thing that failed; a warning does not
/// keep you from beginning.
#[derive(Debug, Args)]
pub(crate) struct Preflight {
    /// The role, e.g. A-backend
    #[arg(long, value_parser = |t: &str| t.parse::<Role>())]
    role: Role,

    /// Where; default: the workstation whose directory you are in, else the one that the identity map names for you
    #[arg(long, env = "ONUS_WORKSTATION", value_name = "WORKSTATION", value_parser = |t: &str| t.parse::<WorkstationName>())]
    workstation: Option<WorkstationName>,
}

impl Preflight {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let here = world.here(&mut store)?;
        let program = std::env::current_exe().ok();
        let view = store.preflight(&Start {
            actor: world.actor.as_ref(),
            role: &self.role,
            workstation: self.workstation.as_ref(),
            here: here.as_ref(),
            program: program.as_deref(),
        })?;
        match view.refusal() {
            None => out.show(&view, render::preflight),
            Some(refusal) => {
                out.hint(&render::preflight(&view));
                Err(refusal)
            }
        }
    }
}
