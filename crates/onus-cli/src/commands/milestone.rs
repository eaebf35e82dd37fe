//! `onus milestone`

use super::task_id;
use crate::context::World;
use crate::output::Output;
use crate::progress::Bar;
use crate::render;
use clap::{Args, Subcommand};
use onus_core::event::MilestoneAdded;
use onus_core::id::{MilestoneName, TaskId};
use onus_core::milestone::{MilestoneEdit, Selection, TargetDate, incomplete};
use onus_core::refusal::Refusal;
use onus_core::registry::Registration;
use onus_core::time::Date;
use std::process::ExitCode;

/// Tasks that are verified together: closed only when nothing is missing
#[derive(Debug, Args)]
pub(crate) struct Milestone {
    #[command(subcommand)]
    verb: MilestoneVerb,
}

#[derive(Debug, Subcommand)]
enum MilestoneVerb {
    Add(MilestoneAdd),
    Edit(MilestoneEditArgs),
    /// Every milestone, the oldest first
    List,
    /// One milestone: its tasks, and exactly what it lacks
    Show(NameArg),
    /// Run the checks of its tasks on what came of them, and say what it lacks
    ///
    /// In the main checkout, clean and at the tip of the main branch: every approved check of its complete tasks runs
    /// once, and what it shows is kept with them. Where its tasks are in several repositories, run it in each.
    Verify(NameArg),
    /// Close it, if nothing is missing: people and verifiers only
    ///
    /// All its tasks are complete, by assigned workers and without force; every check has passed since; the
    /// workstations' probes are green. What was verified is kept as a fingerprint in the ledger.
    Close(NameArg),
}

/// Name tasks that are to be verified together: people only
///
/// They are named one by one, or by what they share; tasks that come later and share it belong to it, too.
#[derive(Debug, Args)]
struct MilestoneAdd {
    #[command(flatten)]
    name: NameArg,

    /// What it is for
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// A task; may be given several times
    #[arg(long = "task", value_name = "TASK", value_parser = task_id)]
    tasks: Vec<TaskId>,

    /// All tasks of this sprint
    #[arg(long, value_name = "NAME")]
    sprint: Option<String>,

    /// All tasks with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,

    /// This task and its slices
    #[arg(long, value_name = "TASK", value_parser = task_id)]
    parent: Option<TaskId>,

    /// The day by which it is meant to be reached, e.g. 2026-11-30
    #[arg(long, value_name = "DATE", value_parser = |t: &str| t.parse::<Date>())]
    target: Option<Date>,
}

/// Call it otherwise, or move the day by which it is meant to be reached: people only, until it is closed
#[derive(Debug, Args)]
struct MilestoneEditArgs {
    #[command(flatten)]
    name: NameArg,

    /// What it is for
    #[arg(long, value_name = "TEXT", required_unless_present = "target")]
    title: Option<String>,

    /// The day by which it is meant to be reached, e.g. 2026-11-30; none takes it away
    #[arg(long, value_name = "DATE", value_parser = |t: &str| t.parse::<TargetDate>())]
    target: Option<TargetDate>,
}

#[derive(Debug, Clone, Args)]
struct NameArg {
    /// The milestone, e.g. sprint-12
    #[arg(value_name = "NAME", value_parser = |t: &str| t.parse::<MilestoneName>())]
    name: MilestoneName,
}

impl Milestone {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        match &self.verb {
            MilestoneVerb::Add(add) => {
                let view = store.add_milestone(world.asker(&world.request()?), &add.wanted())?;
                let code = out.show(&view, |view| render::milestone(&view.milestone))?;
                if view.outcome == Registration::Existing {
                    out.hint("it was there already");
                }
                Ok(code)
            }
            MilestoneVerb::Edit(MilestoneEditArgs { name, title, target }) => {
                let wanted = MilestoneEdit { title: title.clone(), target: *target };
                let view = store.edit_milestone(world.asker(&world.request()?), &name.name, &wanted)?;
                out.show(&view, render::milestone)
            }
            MilestoneVerb::List => {
                out.show_list(&store.milestones()?, |view| &view.milestones, render::milestones)
            }
            MilestoneVerb::Show(NameArg { name }) => out.show(&store.milestone(name)?, render::milestone),
            MilestoneVerb::Verify(NameArg { name }) => {
                let verified = store.verify_milestone(
                    world.actor.as_ref(),
                    &world.request()?,
                    name,
                    &mut Bar::new(out),
                )?;
                let missing = &verified.milestone.missing;
                if !missing.is_empty() {
                    return Err(incomplete(name, missing.clone()));
                }
                out.show(&verified, |verified| render::milestone(&verified.milestone))
            }
            MilestoneVerb::Close(NameArg { name }) => {
                let view = store.close_milestone(world.asker(&world.request()?), name)?;
                out.show(&view, render::milestone)
            }
        }
    }
}

impl MilestoneAdd {
    fn wanted(&self) -> MilestoneAdded {
        MilestoneAdded {
            name: self.name.name.clone(),
            title: self.title.clone(),
            selection: Selection {
                tasks: self.tasks.iter().cloned().collect(),
                sprint: self.sprint.clone(),
                tag: self.tag.clone(),
                parent: self.parent.clone(),
            },
            target: self.target,
        }
    }
}
