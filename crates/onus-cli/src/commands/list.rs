//! `onus list`

use super::{task_id, word};
use crate::cli::handle;
use crate::context::World;
use crate::output::Output;
use crate::render;
use clap::Args;
use onus_app::queue::LIMIT_MAX;
use onus_app::saved_view::ViewFilter;
use onus_core::id::{Handle, ProjectKey, Role, TaskId, TaskType};
use onus_core::refusal::Refusal;
use onus_core::saved_view::ViewQuery;
use onus_core::task::{Priority, StateName};
use onus_store::read::queue::{Filter, Which};
use std::process::ExitCode;

/// List tasks, the most important first
#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    wanted: WantedArgs,

    /// As the team keeps it under this name (onus view list); other flags narrow or change it
    #[arg(long, value_name = "NAME")]
    view: Option<String>,

    #[command(flatten)]
    limit: LimitArg,

    /// Go on behind an earlier page
    #[arg(long, conflicts_with = "search")]
    cursor: Option<String>,
}

/// Which tasks `list` shows, and a view keeps.
#[derive(Debug, Clone, Args)]
pub(crate) struct WantedArgs {
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

    /// Only tasks of this priority: P0 (most urgent) to P4
    #[arg(long, value_name = "P", value_parser = |t: &str| t.parse::<Priority>())]
    priority: Option<Priority>,

    /// Only tasks with this label
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,

    /// Only tasks with all of these words in title, labels, body, origin or notes; in any state unless --state is given
    #[arg(long, value_name = "WORDS")]
    search: Option<String>,
}

impl WantedArgs {
    /// What is asked for, over what a view asks for.
    fn over(&self, view: ViewFilter) -> ViewFilter {
        let own = self.filter.filter();
        let base = view.filter;
        ViewFilter {
            which: self.state.or(view.which),
            words: self.search.clone().or(view.words),
            filter: Filter {
                project: own.project.or(base.project),
                task_type: own.task_type.or(base.task_type),
                role: own.role.or(base.role),
                lane: own.lane.or(base.lane),
                sprint: own.sprint.or(base.sprint),
                parent: self.parent.clone().or(base.parent),
                assignee: self.assignee.clone().or(base.assignee),
                priority: self.priority.or(base.priority),
                tag: self.tag.clone().or(base.tag),
            },
        }
    }

    /// As words of the board's address.
    pub(super) fn query(&self) -> ViewQuery {
        fn text<T: ToString>(value: Option<&T>) -> Option<String> {
            value.map(ToString::to_string)
        }
        let FilterArgs { project, task_type, role, lane, sprint } = &self.filter;
        let state = self.state.map(|which| match which {
            Which::Only(state) => state.to_string(),
            Which::All | Which::Active => "all".to_owned(),
        });
        let words = [
            ("state", state),
            ("project", text(project.as_ref())),
            ("type", text(task_type.as_ref())),
            ("role", text(role.as_ref())),
            ("lane", text(lane.as_ref())),
            ("sprint", sprint.clone()),
            ("assignee", text(self.assignee.as_ref())),
            ("parent", text(self.parent.as_ref())),
            ("priority", text(self.priority.as_ref())),
            ("tag", self.tag.clone()),
            ("q", self.search.clone()),
        ];
        let set = words.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        ViewQuery(set.collect())
    }
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
        let view = match &self.view {
            Some(name) => store.view_named(name)?,
            None => ViewFilter::default(),
        };
        let ViewFilter { which, filter, words } = self.wanted.over(view);
        let limit = self.limit.or(store.settings.queue.limit);
        let view = match &words {
            Some(text) => store.find(text, which.unwrap_or(Which::All), &filter, limit)?,
            None => store.list(which.unwrap_or(Which::Active), &filter, self.cursor.as_deref(), limit)?,
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
