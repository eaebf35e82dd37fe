//! `onus show`

use crate::context::World;
use crate::output::Output;
use crate::render;
use clap::Args;
use onus_app::show::StoryPart;
use onus_core::refusal::Refusal;
use std::process::ExitCode;

/// The story of a task: assignment, lease, notes, sessions, ledger
///
/// Of a long one its end; --before tells what came earlier.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The task, e.g. API-12, or what it is called in the tool that it came from, e.g. PF-001
    #[arg(value_name = "TASK")]
    task: String,

    /// What came before this entry of the ledger
    #[arg(long, value_name = "SEQ", value_parser = clap::value_parser!(i64).range(1..))]
    before: Option<i64>,

    /// At most so many entries of the ledger, and the notes that they wrote
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=1_000))]
    limit: Option<i64>,

    /// Also what programs go by: epochs, and the last handoff as its document
    #[arg(short, long)]
    verbose: bool,
}

impl Show {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        let part = StoryPart { before: self.before, limit: self.limit };
        let telling = if self.verbose { render::Telling::InFull } else { render::Telling::Plain };
        let code = out.show(&store.show_named(&self.task, part)?, |view| render::story(view, telling))?;
        store.store.leave();
        Ok(code)
    }
}
