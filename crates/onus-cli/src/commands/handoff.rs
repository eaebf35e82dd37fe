//! `onus handoff`

use super::{LeaseArg, TaskArg, show_change, submit_as_holder, text_argument};
use crate::context::World;
use crate::output::{Format, Output};
use crate::render;
use clap::Args;
use onus_app::input::{self, VerbInput};
use onus_core::refusal::Refusal;
use std::process::ExitCode;

/// Write down what the next holder should know, and go on; or show the last handoff
///
/// Commits, files, dependencies, checks and the place are filled in; add what only you know.
#[derive(Debug, Args)]
pub(crate) struct WriteHandoff {
    #[command(flatten)]
    task: TaskArg,

    #[command(flatten)]
    words: HandoffArgs,

    /// Print the last handoff and write nothing
    #[arg(long, conflicts_with_all = ["summary", "risk", "next"])]
    show: bool,

    /// As Markdown, which is the default for people
    #[arg(long, conflicts_with = "json")]
    md: bool,

    #[command(flatten)]
    lease: LeaseArg,
}

/// What only the holder can say.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct HandoffArgs {
    /// What the next holder should know; `-` reads standard input
    #[arg(long, visible_alias = "note", value_name = "TEXT|-")]
    pub(crate) summary: Option<String>,

    /// What may go wrong; repeat it for each
    #[arg(long, value_name = "TEXT")]
    pub(crate) risk: Vec<String>,

    /// The next slice of the work
    #[arg(long, value_name = "TEXT")]
    pub(crate) next: Option<String>,
}

impl HandoffArgs {
    pub(super) fn summary(&self) -> Result<Option<String>, Refusal> {
        self.summary.as_deref().map(|given| text_argument("the note", given)).transpose()
    }
}

impl WriteHandoff {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let task = &self.task.task;
        if !self.show {
            let input = input::HandoffInput {
                summary: self.words.summary()?,
                risks: self.words.risk.clone(),
                next: self.words.next.clone(),
                lease: None,
            };
            let command = input.order(&mut store, Some(task))?.command;
            let receipt = submit_as_holder(world, &mut store, task, &self.lease, command)?;
            if !self.md && out.format == Format::Human {
                return show_change(out, &receipt, "handed off");
            }
        }
        out.show(&store.handoff_of(task)?, render::handoff)
    }
}
