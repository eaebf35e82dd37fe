//! `onus route`

use super::task_id;
use crate::context::World;
use crate::output::Output;
use crate::render;
use clap::{Args, Subcommand};
use onus_app::route::{self, Subject};
use onus_core::id::{TaskId, TaskType};
use onus_core::refusal::Refusal;
use onus_core::task::Priority;
use onus_host::settings;
use std::path::PathBuf;
use std::process::ExitCode;

/// Which worker, in which workstation, gets which type of task
#[derive(Debug, Args)]
pub(crate) struct RouteCommand {
    #[command(subcommand)]
    verb: RouteVerb,
}

#[derive(Debug, Subcommand)]
enum RouteVerb {
    /// The identity map in force: its commit, rules, roles with who is in their lanes, boundaries
    Show(TypeArg),
    Check(CheckMap),
    Explain(Explain),
    /// Since when, and by which commit, a type of task goes to whom
    History(TypeArg),
}

#[derive(Debug, Args)]
struct TypeArg {
    /// Only this type of task
    #[arg(value_name = "TYPE", value_parser = |t: &str| t.parse::<TaskType>())]
    task_type: Option<TaskType>,
}

/// Whether the identity map can be followed, with everything that is wrong at once. Fit for CI
///
/// Checks the map in force, or the main checkout's file where that is edited, and compares it with the store's workers,
/// workstations and open tasks where there is a store.
#[derive(Debug, Args)]
struct CheckMap {
    /// Check this file instead
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Who would be given a task, and why: every candidate and what speaks for or against it
///
/// With --as it also tells what you would be told.
#[derive(Debug, Args)]
struct Explain {
    /// The task, e.g. API-12
    #[arg(value_name = "TASK", value_parser = task_id, required_unless_present = "task_type")]
    task: Option<TaskId>,

    /// Without a task: one of this type
    #[arg(long = "type", value_name = "TYPE", conflicts_with = "task", value_parser = |t: &str| t.parse::<TaskType>())]
    task_type: Option<TaskType>,

    /// Without a task: one of this priority
    #[arg(long, value_name = "P0..P4", requires = "task_type", value_parser = |t: &str| t.parse::<Priority>())]
    priority: Option<Priority>,
}

impl RouteCommand {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        match &self.verb {
            RouteVerb::Show(TypeArg { task_type }) => {
                let view = world.open()?.route(task_type.as_ref())?;
                out.show_list(&view, |view| &view.rules, render::route)
            }
            RouteVerb::Check(check) => check.run(world, out),
            RouteVerb::Explain(explain) => explain.run(world, out),
            RouteVerb::History(TypeArg { task_type }) => {
                let view = world.open()?.route_history(task_type.as_ref())?;
                out.show_list(&view, |view| &view.types, render::history)
            }
        }
    }
}

impl CheckMap {
    fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let settings = settings::load(&world.place.settings_file())?;
        let file = self.file.as_ref().map(|file| world.place.cwd.join(file));
        let mut checked = route::check(&world.place, &settings, file.as_deref())?;
        // A fresh clone has no store: then the map is checked by itself.
        let has_store = world.has_store();
        if has_store {
            checked.compare(&mut world.open()?)?;
        }
        let view = checked.view(has_store)?;
        for warning in &view.warnings {
            out.warn(&warning.detail);
        }
        out.show(&view, |view| {
            let with = if view.compared { "" } else { "; there is no store to compare it with" };
            format!("{} rules and {} roles can be followed{with}\n", view.rules, view.roles)
        })
    }
}

impl Explain {
    fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let subject = match &self.task {
            Some(task) => Subject::Task(task.clone()),
            None => Subject::Kind {
                task_type: self.task_type.clone(),
                priority: self.priority.unwrap_or_default(),
            },
        };
        let mut store = world.open()?;
        let here = world.here(&mut store)?;
        out.show(&store.explain(&subject, world.actor.as_ref(), here.as_ref())?, render::explain)
    }
}
