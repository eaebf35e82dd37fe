//! `onus worker`

mod token;

pub(crate) use token::link;

use super::word;
use crate::cli::handle;
use crate::context::World;
use crate::output::Output;
use crate::render;
use clap::{Args, Subcommand};
use onus_app::view::{WorkerAddedView, WorkerChangedView, WorkersView};
use onus_core::event::WorkerAdded;
use onus_core::id::{Handle, Role};
use onus_core::refusal::Refusal;
use onus_core::time::Date;
use onus_core::worker::Kind;
use std::process::ExitCode;

/// People and agents
#[derive(Debug, Args)]
pub(crate) struct Worker {
    #[command(subcommand)]
    verb: WorkerVerb,
}

#[derive(Debug, Subcommand)]
enum WorkerVerb {
    Add(WorkerAdd),
    /// Everybody, and what they hold
    List,
    /// Give a worker no new work; what it holds stays its own: people only
    Pause {
        /// Who gets no more work
        #[arg(value_name = "@HANDLE", value_parser = handle)]
        handle: Handle,

        /// Why; goes into the ledger
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Let a paused worker have work again: people only
    Resume {
        /// Who may have work again
        #[arg(value_name = "@HANDLE", value_parser = handle)]
        handle: Handle,
    },
    /// One day of a worker: sessions, notes, outcomes, time and cost
    Day {
        /// Whose day; default: yours
        #[arg(value_name = "@HANDLE", value_parser = handle)]
        handle: Option<Handle>,

        /// Which day, in the worker's own zone; default: today
        #[arg(long, value_name = "DATE", value_parser = |t: &str| t.parse::<Date>())]
        date: Option<Date>,
    },
    /// One worker
    Show {
        /// Who
        #[arg(value_name = "@HANDLE", value_parser = handle)]
        handle: Handle,
    },
    Token(token::Token),
}

/// Register a person or an agent: people only
#[derive(Debug, Args)]
struct WorkerAdd {
    /// The name that goes into the ledger, e.g. @builder-01
    #[arg(value_name = "@HANDLE", value_parser = handle)]
    handle: Handle,

    /// human or agent
    #[arg(long, value_parser = |t: &str| word("a kind", t, Kind::parse, "human, agent"))]
    kind: Kind,

    /// The agent's model or class, e.g. opus
    #[arg(long)]
    tier: Option<String>,

    /// The role whose work it does, e.g. backend
    #[arg(long, value_parser = |t: &str| t.parse::<Role>())]
    role: Option<Role>,

    /// The zone of the worker's days, e.g. Europe/Berlin
    #[arg(long, value_name = "ZONE", default_value = "UTC", value_parser = onus_host::zone::known)]
    tz: String,
}

impl Worker {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let human = |view: &WorkersView| render::workers(view);
        match &self.verb {
            WorkerVerb::Token(token) => token.run(world, &mut store, out),
            WorkerVerb::List => out.show_list(&store.workers(None)?, |view| &view.workers, human),
            WorkerVerb::Show { handle } => {
                out.show_list(&store.workers(Some(handle))?, |view| &view.workers, human)
            }
            WorkerVerb::Day { handle, date } => {
                let handle = match handle {
                    Some(handle) => handle,
                    None => world.identity()?,
                };
                let date = match date {
                    Some(date) => *date,
                    None => store.today(Some(handle))?,
                };
                out.show(&store.day(handle, date)?, render::day)
            }
            WorkerVerb::Pause { handle, reason } => {
                let worker = store.pause_worker(world.asker(&world.request()?), handle, reason.as_deref())?;
                out.show(&WorkerChangedView { worker }, |view| {
                    format!("{} is paused: it gets no new work\n", view.worker.handle)
                })
            }
            WorkerVerb::Resume { handle } => {
                let worker = store.resume_worker(world.asker(&world.request()?), handle)?;
                out.show(&WorkerChangedView { worker }, |view| {
                    format!("{} may have work again\n", view.worker.handle)
                })
            }
            WorkerVerb::Add(add) => {
                let wanted = WorkerAdded {
                    handle: add.handle.clone(),
                    kind: add.kind,
                    tier: add.tier.clone(),
                    role: add.role.clone(),
                    tz: add.tz.clone(),
                };
                let (outcome, worker) = store.add_worker(world.asker(&world.request()?), &wanted)?;
                out.show(&WorkerAddedView { outcome, worker }, |view| {
                    format!("{} is registered as {}\n", view.worker.handle, view.worker.kind.name())
                })
            }
        }
    }
}
