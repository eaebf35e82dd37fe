//! `onus handoff`

use super::{LeaseArg, TaskArg, show_change, submit_as_holder, text_argument};
use crate::context::World;
use crate::output::{Format, Output};
use crate::render;
use clap::Args;
use onus_core::command::Command;
use onus_core::handoff::{Standing, Words};
use onus_core::refusal::Refusal;
use onus_core::text::Text;
use std::process::ExitCode;

/// Write down what the next holder should know, and go on; or show the last handoff
///
/// Commits, files, dependencies, checks and the place are filled in; add what only you know.
#[derive(Debug, Args)]
pub(crate) struct Handoff {
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
    pub(super) fn words(&self) -> Result<Words, Refusal> {
        let summary = self.summary.as_deref().map(|given| text_argument("the note", given)).transpose()?;
        let words = Words { summary, risks: self.risk.clone(), next_slice: self.next.clone() };
        words.checked().map_err(Refusal::invalid)
    }
}

impl Handoff {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let task = &self.task.task;
        if !self.show {
            let words = self.words.words()?;
            let document = store.compose_handoff(task, Standing::InProgress, None, &words)?;
            // Where nobody holds the task there is nothing to compose, and the rules say why it is refused.
            let document = document.unwrap_or_else(|| Text::new(String::new()));
            let command = Command::Handoff { note: words.said(), document };
            let receipt = submit_as_holder(world, &mut store, task, &self.lease, command)?;
            if !self.md && out.format == Format::Human {
                return show_change(out, &receipt, "handed off");
            }
        }
        out.show(&store.handoff_of(task)?, render::handoff)
    }
}
