//! `onus review`

use super::{TaskArg, show_change, submit, text, text_argument};
use crate::context::World;
use crate::output::Output;
use clap::Args;
use onus_core::command::{Command, Opinion};
use onus_core::evidence::{Classification, ReviewVerdict};
use onus_core::id::{CommitId, WorkstationName};
use onus_core::refusal::Refusal;
use std::process::ExitCode;

/// Say what somebody else's work is: another identity, in another workstation
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("verdict").required(true).args(["approve", "reject"]))]
#[command(group = clap::ArgGroup::new("classification").required(true).args(["as_implemented", "as_design_only"]))]
pub(crate) struct Review {
    #[command(flatten)]
    task: TaskArg,

    /// The work may be completed
    #[arg(long)]
    approve: bool,

    /// It may not
    #[arg(long)]
    reject: bool,

    /// The path that was asked for is there and runs
    #[arg(long)]
    as_implemented: bool,

    /// There are words or specifications, and nothing that runs
    #[arg(long)]
    as_design_only: bool,

    /// The commit that was looked at; default: the one that the work is at
    #[arg(long, value_name = "COMMIT", value_parser = |t: &str| t.parse::<CommitId>())]
    commit: Option<CommitId>,

    /// Where you reviewed it; default: the workstation whose directory you are in
    #[arg(long, env = "ONUS_WORKSTATION", value_name = "NAME", value_parser = |t: &str| t.parse::<WorkstationName>())]
    workstation: Option<WorkstationName>,

    /// What you saw; `-` reads standard input
    #[arg(long, value_name = "TEXT|-")]
    note: Option<String>,
}

impl Review {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let note = self.note.as_deref().map(|given| text_argument("the note", given)).transpose()?;
        let mut store = world.open()?;
        let task = &self.task.task;
        let workstation = match &self.workstation {
            Some(name) => Some(name.clone()),
            None => world.here(&mut store)?,
        };
        let commit = match &self.commit {
            Some(commit) => Some(commit.clone()),
            None => store.proof(task)?.ground.commit,
        };
        let opinion = Opinion {
            verdict: if self.approve { ReviewVerdict::Approved } else { ReviewVerdict::Rejected },
            classification: match self.as_implemented {
                true => Classification::Implemented,
                false => Classification::DesignOnly,
            },
            commit,
            workstation,
            note: note.as_deref().map(text),
        };
        let receipt = submit(world, &mut store, task, None, Command::Review { opinion: Box::new(opinion) })?;
        show_change(out, &receipt, "reviewed")
    }
}
