//! `onus review`

use super::{TaskArg, show_change, submit, text, text_argument};
use crate::context::World;
use crate::output::Output;
use clap::Args;
use onus_core::code::Code;
use onus_core::command::{Command, Opinion};
use onus_core::evidence::{Classification, ReviewVerdict};
use onus_core::id::{CommitId, WorkstationName};
use onus_core::line_comment::LineComment;
use onus_core::refusal::{Finding, Refusal};
use std::process::ExitCode;

/// Say what somebody else's work is: another identity, in another workstation
///
/// With `--tick` alone it ticks acceptance criteria; with a verdict as well it does both. Comments on lines go to the holder,
/// with a verdict or alone: `--reject` with comments sends the work back to where it is, and they say what is to be done.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("verdict").args(["approve", "reject"]).requires("classification"))]
#[command(group = clap::ArgGroup::new("classification").args(["as_implemented", "as_design_only"]).requires("verdict"))]
#[command(group = clap::ArgGroup::new("word").required(true).multiple(true).args(["approve", "reject", "tick", "untick", "comment"]))]
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

    /// An acceptance criterion is met: its number in `onus show`, its id, or all; may be repeated
    #[arg(long, value_name = "N|all")]
    tick: Vec<String>,

    /// It is not met any more; may be repeated
    #[arg(long, value_name = "N|all", conflicts_with = "tick")]
    untick: Vec<String>,

    /// The commit that was looked at; default: the one that the work is at
    #[arg(long, value_name = "COMMIT", value_parser = |t: &str| t.parse::<CommitId>())]
    commit: Option<CommitId>,

    /// Where you reviewed it; default: the workstation whose directory you are in
    #[arg(long, env = "ONUS_WORKSTATION", value_name = "WORKSTATION", value_parser = |t: &str| t.parse::<WorkstationName>())]
    workstation: Option<WorkstationName>,

    /// What you saw; `-` reads standard input
    #[arg(long, value_name = "TEXT|-")]
    note: Option<String>,

    /// Words about a line of the commit, such as `--comment src/lib.rs:12 "why?"`; may be repeated
    #[arg(long, num_args = 2, action = clap::ArgAction::Append, value_names = ["PATH:LINE", "TEXT"])]
    comment: Vec<String>,
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
        let (criteria, withdrawn) = match self.tick.is_empty() {
            true => (&self.untick, true),
            false => (&self.tick, false),
        };
        if !criteria.is_empty() {
            let criteria = criteria.clone();
            let command = Command::Tick { criteria, withdrawn, workstation: workstation.clone() };
            let receipt = submit(world, &mut store, task, None, command)?;
            if !self.approve && !self.reject && self.comment.is_empty() {
                return show_change(out, &receipt, if withdrawn { "unticked" } else { "ticked" });
            }
        }
        let comments = self.comments()?;
        let commit = match &self.commit {
            Some(commit) => Some(commit.clone()),
            None => store.proof(task)?.ground.commit,
        };
        store.refuse_missing_lines(Some(task), commit.as_ref(), &comments)?;
        if !self.approve && !self.reject {
            let receipt = submit(world, &mut store, task, None, Command::Comment { commit, comments })?;
            return show_change(out, &receipt, "commented");
        }
        let opinion = Opinion {
            verdict: if self.approve { ReviewVerdict::Approved } else { ReviewVerdict::Rejected },
            classification: match self.as_implemented {
                true => Classification::Implemented,
                false => Classification::DesignOnly,
            },
            commit,
            workstation,
            note: note.as_deref().map(text),
            comments,
        };
        let receipt = submit(world, &mut store, task, None, Command::Review { opinion: Box::new(opinion) })?;
        show_change(out, &receipt, "reviewed")
    }

    /// Every comment that makes no sense is told at once.
    fn comments(&self) -> Result<Vec<LineComment>, Refusal> {
        let mut findings = Vec::new();
        let mut comments = Vec::new();
        for pair in self.comment.chunks_exact(2) {
            match LineComment::place(&pair[0]) {
                Ok((path, line)) => comments.push(LineComment { path, line, text: text(&pair[1]) }),
                Err(detail) => findings.push(Finding::new(Code::InvalidInput, detail)),
            }
        }
        Refusal::from_findings(findings).map_or(Ok(comments), Err)
    }
}
