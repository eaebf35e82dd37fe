//! Milestones. Their checks run where the working trees are (`onus milestone verify`), never on a server.

use super::body::Nothing;
use crate::route::{Asked, Rendered, Route, administration, get};
use crate::store::Store;
use axum::http::Method;
use onus_app::milestone::{MilestoneAddedView, MilestoneView, MilestonesView};
use onus_app::remote::CallName;
use onus_core::event::MilestoneAdded;
use onus_core::id::{MilestoneName, TaskId};
use onus_core::milestone::{MilestoneEdit, Selection};
use onus_core::refusal::Refusal;
use onus_core::time::Date;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeSet;

pub(super) fn routes() -> Vec<Route> {
    vec![
        get("/v1/milestones", "milestones", "Every milestone, the oldest first", milestones),
        get(
            "/v1/milestones/{name}",
            "milestone",
            "One milestone: its tasks, and exactly what it lacks",
            milestone,
        ),
        administration(
            "/v1/milestones",
            CallName::AddMilestone,
            "Name tasks that are to be verified together: people only",
            add,
        ),
        Route {
            method: Method::PATCH,
            ..administration(
                "/v1/milestones/{name}",
                CallName::EditMilestone,
                "Call it otherwise, or move its target date: people only, until it is closed",
                edit,
            )
        },
        administration(
            "/v1/milestones/{name}/close",
            CallName::CloseMilestone,
            "Close it, if nothing is missing: people and verifiers only",
            close,
        ),
    ]
}

fn milestones(store: &mut Store, _: &Asked, _: Nothing) -> Result<MilestonesView, Refusal> {
    store.milestones()
}

fn milestone(store: &mut Store, asked: &Asked, _: Nothing) -> Result<MilestoneView, Refusal> {
    store.milestone(&asked.name()?)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MilestoneBody {
    name: MilestoneName,
    title: Option<String>,
    /// Tasks, one by one
    #[serde(default)]
    tasks: BTreeSet<TaskId>,
    /// All tasks of this sprint
    sprint: Option<String>,
    /// All tasks with this tag
    tag: Option<String>,
    /// This task and its slices
    parent: Option<TaskId>,
    /// The day by which it is meant to be reached, such as 2026-11-30
    target: Option<Date>,
}

fn add(store: &mut Store, asked: &Asked, body: MilestoneBody) -> Result<MilestoneAddedView, Refusal> {
    let MilestoneBody { name, title, tasks, sprint, tag, parent, target } = body;
    let selection = Selection { tasks, sprint, tag, parent };
    let wanted = MilestoneAdded { name, title, selection, target };
    store.add_milestone(asked.asker(), &wanted)
}

fn edit(store: &mut Store, asked: &Asked, body: MilestoneEdit) -> Result<MilestoneView, Refusal> {
    store.edit_milestone(asked.asker(), &asked.name()?, &body)
}

fn close(store: &mut Store, asked: &Asked, _: Nothing) -> Result<MilestoneView, Refusal> {
    store.close_milestone(asked.asker(), &asked.name()?)
}

impl Rendered for MilestonesView {}
impl Rendered for MilestoneView {}
impl Rendered for MilestoneAddedView {}
