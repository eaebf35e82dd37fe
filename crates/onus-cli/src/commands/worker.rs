//! `onus worker`

use super::word;
use crate::cli::handle;
use crate::output::Output;
use crate::render;
use crate::world::World;
use clap::{Args, Subcommand};
use onus_app::view::WorkersView;
use onus_core::id::{Handle, Role};
use onus_core::refusal::Refusal;
use onus_core::registry::Registration;
use onus_core::worker::{Kind, Worker as Registered, WorkerState};
use serde::Serialize;
use std::process::ExitCode;

/// People and agents
#[derive(Debug, Args)]
pub(crate) struct Worker {
    #[command(subcommand)]
    verb: WorkerVerb,
}

#[derive(Debug, Subcommand)]
enum WorkerVerb {
    Add(Add),
    /// Everybody, and what they hold
    List,
    /// One worker
    Show {
        #[arg(value_name = "@HANDLE", value_parser = handle)]
        handle: Handle,
    },
}

/// Register a person or an agent: people only
#[derive(Debug, Args)]
struct Add {
    #[arg(value_name = "@HANDLE", value_parser = handle)]
    handle: Handle,

    /// human or agent
    #[arg(long, value_parser = |t: &str| word("a kind", t, Kind::parse, "human, agent"))]
    kind: Kind,

    /// The agent's model or class, e.g. opus
    #[arg(long)]
    tier: Option<String>,

    #[arg(long, value_parser = |t: &str| t.parse::<Role>())]
    role: Option<Role>,

    /// The zone of the worker's days, e.g. Europe/Berlin
    #[arg(long, value_name = "ZONE", default_value = "UTC", value_parser = onus_host::zone::known)]
    tz: String,
}

#[derive(Debug, Serialize)]
struct WorkerAddedView {
    outcome: &'static str,
    worker: Registered,
}

impl Worker {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let human = |view: &WorkersView| render::workers(view);
        match &self.verb {
            WorkerVerb::List => out.show_list(&store.workers(None)?, |view| &view.workers, human),
            WorkerVerb::Show { handle } => {
                out.show_list(&store.workers(Some(handle))?, |view| &view.workers, human)
            }
            WorkerVerb::Add(add) => {
                let worker = Registered {
                    handle: add.handle.clone(),
                    kind: add.kind,
                    tier: add.tier.clone(),
                    role: add.role.clone(),
                    state: WorkerState::Active,
                    tz: add.tz.clone(),
                };
                let registration = store.add_worker(world.actor.as_ref(), &worker)?;
                out.show(&WorkerAddedView { outcome: outcome(registration), worker }, |view| {
                    format!("{} is registered as {}\n", view.worker.handle, view.worker.kind.name())
                })
            }
        }
    }
}

pub(super) fn outcome(registration: Registration) -> &'static str {
    match registration {
        Registration::Created => "created",
        Registration::Existing => "existing",
    }
}
