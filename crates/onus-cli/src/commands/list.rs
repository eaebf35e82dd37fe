//! `onus list`

use super::{task_id, word};
use crate::cli::handle;
use crate::context::World;
use crate::output::Output;
use crate::render;
use clap::Args;
use onus_app::queue::LIMIT_MAX;
use onus_core::id::{Handle, ProjectKey, Role, TaskId, TaskType};
use onus_core::refusal::Refusal;
use onus_core::task::StateName;
use onus_store::read::queue::{Filter, Which};
use std::process::ExitCode;

/// List tasks, the most important first
#[derive(Debug, Args)]
pub(crate) struct List {
    /// open, in_progress, blocked, complete, dropped or all; default: what somebody still has to do
    #[arg(long, value_parser = which)]
    state: Option<Which>,

    #[command(flatten)]
    filter: FilterArgs,

    /// Held by this worker now
    #[arg(long, value_name = "@HANDLE", value_parser = handle)]
    assignee: Option<Handle>,

    /// Only slices of this task
    #[arg(long, value_name = "TASK", value_parser = task_id)]
    parent: Option<TaskId>,

    #[command(flatten)]
    limit: LimitArg,

    /// Only tasks with all of these words in title, labels, body, origin or notes; in any state unless --state is given
    #[arg(long, value_name = "WORDS", conflicts_with = "cursor")]
    search: Option<String>,

    /// Go on behind an earlier page
    #[arg(long)]
    cursor: Option<String>,
}

/// Which tasks.
#[derive(Debug, Clone, Args)]
pub(crate) struct FilterArgs {
    /// Only tasks of this project, e.g. API
    #[arg(long, value_name = "KEY", value_parser = |t: &str| t.parse::<ProjectKey>())]
    project: Option<ProjectKey>,

    /// Only tasks of this type, as the identity map names it
    #[arg(long = "type", value_name = "TYPE", value_parser = |t: &str| t.parse::<TaskType>())]
    task_type: Option<TaskType>,

    /// Only tasks for this role
    #[arg(long, value_parser = |t: &str| t.parse::<Role>())]
    role: Option<Role>,

    /// Only tasks of this lane of the role
    #[arg(long, value_name = "N")]
    lane: Option<i64>,

    /// Only tasks of this sprint
    #[arg(long)]
    sprint: Option<String>,
}

impl FilterArgs {
    pub(crate) fn filter(&self) -> Filter {
        Filter {
            project: self.project.clone(),
            task_type: self.task_type.clone(),
            role: self.role.clone(),
            lane: self.lane,
            sprint: self.sprint.clone(),
            ..Filter::default()
        }
    }
}

#[derive(Debug, Clone, Args)]
pub(crate) struct LimitArg {
    /// At most so many; default: queue.limit of onus.yaml, else 20
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=LIMIT_MAX))]
    limit: Option<i64>,
}

impl LimitArg {
    pub(crate) fn or(&self, default: u32) -> i64 {
        self.limit.unwrap_or_else(|| i64::from(default).clamp(1, LIMIT_MAX))
    }
}

impl List {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let filter =
            Filter { assignee: self.assignee.clone(), parent: self.parent.clone(), ..self.filter.filter() };
        let limit = self.limit.or(store.settings.queue.limit);
        let view = match &self.search {
            Some(text) => store.find(text, self.state.unwrap_or(Which::All), &filter, limit)?,
            None => {
                store.list(self.state.unwrap_or(Which::Active), &filter, self.cursor.as_deref(), limit)?
            }
        };
        let code = out.show_list(&view, |view| &view.tasks, render::list)?;
        store.store.leave();
        Ok(code)
    }
}

pub(super) fn which(text: &str) -> Result<Which, String> {
    if text == "all" {
        return Ok(Which::All);
    }
    word("a state", text, StateName::parse, "open, in_progress, blocked, complete, dropped, all")
        .map(Which::Only)
}
