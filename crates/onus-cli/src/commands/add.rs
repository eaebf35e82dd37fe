//! `onus add`

use super::{task_id, text_argument, word};
use crate::context::World;
use crate::output::Output;
use crate::render;
use clap::Args;
use onus_app::input;
use onus_app::view::AddView;
use onus_core::command::Envelope;
use onus_core::id::{OriginRef, ProjectKey, Role, TaskId, TaskType};
use onus_core::refusal::Refusal;
use onus_core::task::{Priority, Risk};
use std::process::ExitCode;

/// Ask for something: one ask, one task
///
/// The same --origin twice gives the same task and says `existing`.
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// What is to be done, in one line
    title: String,

    /// What the identity map routes by, e.g. backend_feature
    #[arg(long = "type", value_name = "TYPE", value_parser = |t: &str| t.parse::<TaskType>())]
    task_type: Option<TaskType>,

    /// feature, defect, chore, docs, …
    #[arg(long, default_value = "feature")]
    kind: String,

    /// P0 (drop everything) to P4 (some day)
    #[arg(long, default_value = "P2", value_parser = |t: &str| t.parse::<Priority>())]
    priority: Priority,

    /// Where the ask lives: CHANNEL:KEY, e.g. github:acme/api#12
    #[arg(long, value_name = "CHANNEL:KEY", value_parser = |t: &str| t.parse::<OriginRef>())]
    origin: Option<OriginRef>,

    /// A task that must be complete first; may be repeated
    #[arg(long, value_name = "TASK", value_parser = task_id)]
    depends_on: Vec<TaskId>,

    /// Paths that the work may touch, as a glob; may be repeated
    #[arg(long, value_name = "GLOB")]
    scope: Vec<String>,

    /// A command that proves the work; may be repeated
    #[arg(long, value_name = "COMMAND")]
    check: Vec<String>,

    /// The role that the work is for, e.g. A-backend
    #[arg(long, value_parser = |t: &str| t.parse::<Role>())]
    role: Option<Role>,

    /// The role's lane
    #[arg(long, value_name = "N")]
    lane: Option<i64>,

    /// The task that this is a slice of
    #[arg(long, value_name = "TASK", value_parser = task_id)]
    parent: Option<TaskId>,

    /// The slice's place in the parent's merge order
    #[arg(long, value_name = "N")]
    merge_order: Option<i64>,

    /// low, normal or high; high needs more evidence
    #[arg(long, default_value = "normal", value_parser = |t: &str| word("a risk", t, Risk::parse, "low, normal, high"))]
    risk: Risk,

    /// The sprint that it is planned for
    #[arg(long)]
    sprint: Option<String>,

    /// May be repeated
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,

    /// What no command can prove, for another worker to tick off; may be repeated
    #[arg(long, value_name = "TEXT")]
    criterion: Vec<String>,

    /// More words; `-` reads standard input
    #[arg(long, value_name = "TEXT|-")]
    body: Option<String>,

    /// The project; default: the one in onus.yaml, else the store's first
    #[arg(long, value_name = "KEY", value_parser = |t: &str| t.parse::<ProjectKey>())]
    project: Option<ProjectKey>,
}

impl Add {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let order = self.input()?.asks();
        let envelope = Envelope { project: order.project, ..world.envelope(None, None, order.command)? };
        let mut store = world.open()?;
        let receipt = store.submit(&envelope, &order.target)?;
        let code = out.show(&AddView::from(&receipt), render::added)?;
        store.store.leave();
        Ok(code)
    }

    fn input(&self) -> Result<input::AddInput, Refusal> {
        Ok(input::AddInput {
            title: self.title.clone(),
            body: self.body.as_deref().map(|given| text_argument("the body", given)).transpose()?,
            task_type: self.task_type.clone(),
            kind: Some(self.kind.clone()),
            priority: Some(self.priority),
            risk: Some(self.risk),
            role: self.role.clone(),
            lane: self.lane,
            sprint: self.sprint.clone(),
            tags: self.tag.clone(),
            scope: self.scope.clone(),
            depends_on: self.depends_on.clone(),
            parent: self.parent.clone(),
            merge_order: self.merge_order,
            origin_ask_ref: self.origin.clone(),
            checks: self.check.clone(),
            criteria: self.criterion.clone(),
            extra: None,
            project: self.project.clone(),
        })
    }
}
