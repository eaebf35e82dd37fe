//! `onus workstation`

use super::{file_error, word};
use crate::commands::worker::outcome;
use crate::output::Output;
use crate::render;
use crate::world::World;
use clap::{Args, Subcommand};
use onus_core::event::WorkstationAdded;
use onus_core::id::WorkstationName;
use onus_core::refusal::Refusal;
use onus_core::workstation::{Lifecycle, Workstation as Registered, WorkstationKind};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// Named places where work happens
#[derive(Debug, Args)]
pub(crate) struct Workstation {
    #[command(subcommand)]
    verb: WorkstationVerb,
}

#[derive(Debug, Subcommand)]
enum WorkstationVerb {
    Add(Add),
    /// Every workstation and what it holds
    List,
    /// One workstation
    Show {
        #[arg(value_parser = |t: &str| t.parse::<WorkstationName>())]
        name: WorkstationName,
    },
}

/// Register a workstation: people only. One workstation holds one live assignment
#[derive(Debug, Args)]
struct Add {
    /// Scope and domain, e.g. ws-backend-01
    #[arg(value_parser = |t: &str| t.parse::<WorkstationName>())]
    name: WorkstationName,

    /// logical (a name only) or checkout (a directory)
    #[arg(long, default_value = "logical", value_parser = kind)]
    kind: WorkstationKind,

    /// Its directory
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,

    /// reusable, or single-task and retired afterwards
    #[arg(long, default_value = "reusable", value_parser = |t: &str| word("a lifecycle", t, Lifecycle::parse, "reusable, single-task"))]
    lifecycle: Lifecycle,
}

#[derive(Debug, Serialize)]
struct WorkstationAddedView {
    outcome: &'static str,
    workstation: Registered,
}

impl Workstation {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        match &self.verb {
            WorkstationVerb::List => {
                out.show_list(&store.workstations(None)?, |view| &view.workstations, render::workstations)
            }
            WorkstationVerb::Show { name } => out.show_list(
                &store.workstations(Some(name))?,
                |view| &view.workstations,
                render::workstations,
            ),
            WorkstationVerb::Add(add) => {
                let wanted = add.registration(world)?;
                let (registration, workstation) = store.add_workstation(world.actor.as_ref(), &wanted)?;
                let view = WorkstationAddedView { outcome: outcome(registration), workstation };
                out.show(&view, |view| {
                    let at = view
                        .workstation
                        .path
                        .as_deref()
                        .map(|path| format!(" at {path}"))
                        .unwrap_or_default();
                    format!(
                        "{} is registered as {}{at}\n",
                        view.workstation.name,
                        view.workstation.kind.name()
                    )
                })
            }
        }
    }
}

impl Add {
    fn registration(&self, world: &World) -> Result<WorkstationAdded, Refusal> {
        let path = match &self.path {
            None => None,
            Some(path) => {
                let path = world.place.cwd.join(path);
                let path = path.canonicalize().map_err(|error| file_error(&path, &error))?;
                if !path.is_dir() {
                    return Err(Refusal::invalid(format!("{} is not a directory", path.display())));
                }
                Some(path.to_str().ok_or_else(|| Refusal::invalid("the path is not UTF-8"))?.to_owned())
            }
        };
        Ok(WorkstationAdded {
            name: self.name.clone(),
            kind: self.kind,
            path,
            lifecycle: self.lifecycle,
            branch: None,
            probes: Vec::new(),
        })
    }
}

fn kind(text: &str) -> Result<WorkstationKind, String> {
    let registrable =
        |text: &str| WorkstationKind::parse(text).filter(|kind| *kind != WorkstationKind::Worktree);
    word("a kind that can be registered", text, registrable, "logical, checkout")
}
