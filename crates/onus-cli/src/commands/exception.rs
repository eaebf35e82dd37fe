//! `onus exception`

use super::{TaskArg, show_change, task_id, word};
use crate::context::World;
use crate::output::Output;
use crate::render;
use clap::{Args, Subcommand};
use onus_app::exception::{ExceptionAsked, Grounds};
use onus_app::submit::ReceiptKind;
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use std::process::ExitCode;

/// Dependencies that are not waited for, by a person's word
#[derive(Debug, Args)]
pub(crate) struct Exception {
    #[command(subcommand)]
    verb: ExceptionVerb,
}

#[derive(Debug, Subcommand)]
enum ExceptionVerb {
    Request(Request),
    /// Approve an exception: people only. The task may then start; it still merges after its dependency
    Approve(Approve),
    List(ListExceptions),
}

/// Ask that TASK may start before a dependency is complete; writes a decision record
///
/// Nothing changes until a person approves it. The record is a short file in the main checkout, to be committed and
/// reviewed like code; a file that is there is never overwritten.
#[derive(Debug, Args)]
struct Request {
    #[command(flatten)]
    task: TaskArg,

    /// The dependency that is not waited for
    #[arg(long, value_name = "DEPENDENCY", value_parser = task_id)]
    on: TaskId,

    /// Why it cannot wait
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// How to go back if it turns out wrong
    #[arg(long, value_name = "TEXT")]
    rollback: Option<String>,

    /// The decision record, below the repository's root; default: docs/adr/exception-TASK-on-DEPENDENCY.md
    #[arg(long, value_name = "PATH")]
    adr: Option<String>,
}

#[derive(Debug, Args)]
struct Approve {
    /// The task, e.g. API-12, or both as API-12/API-7
    #[arg(value_name = "TASK[/DEPENDENCY]", value_parser = pair)]
    task: Pair,

    /// The dependency that is not waited for
    #[arg(long, value_name = "DEPENDENCY", value_parser = task_id)]
    on: Option<TaskId>,
}

#[derive(Debug, Clone)]
struct Pair(TaskId, Option<TaskId>);

/// Every exception, asked for or approved
#[derive(Debug, Args)]
struct ListExceptions {
    /// Only those of this task
    #[arg(value_name = "TASK", value_parser = task_id)]
    task: Option<TaskId>,

    /// proposed or approved; default: both
    #[arg(long, value_name = "STATE", value_parser = |t: &str| word("a state of an exception", t, state, "proposed, approved"))]
    state: Option<&'static str>,

    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    limit: usize,

    /// Only those of the tasks after this one: where an earlier list ended
    #[arg(long, value_name = "TASK", value_parser = task_id)]
    after: Option<TaskId>,
}

fn state(text: &str) -> Option<&'static str> {
    ["proposed", "approved"].into_iter().find(|known| *known == text)
}

fn pair(text: &str) -> Result<Pair, String> {
    match text.split_once('/') {
        Some((task, on)) => Ok(Pair(task.parse()?, Some(on.parse()?))),
        None => Ok(Pair(text.parse()?, None)),
    }
}

impl Exception {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        match &self.verb {
            ExceptionVerb::Request(verb) => verb.run(world, out),
            ExceptionVerb::Approve(verb) => verb.run(world, out),
            ExceptionVerb::List(verb) => verb.run(world, out),
        }
    }
}

impl Request {
    fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let (task, on) = (&self.task.task, &self.on);
        let request = world.request()?;
        let asked = ExceptionAsked { request: &request, actor: world.actor.as_ref(), task, on };
        let grounds = Grounds {
            reason: self.reason.as_deref(),
            rollback: self.rollback.as_deref(),
            adr: self.adr.as_deref(),
        };
        let receipt = world.open()?.request_exception(&asked, &grounds)?;
        let said = match receipt.kind {
            ReceiptKind::Existing => format!("need not wait for {on}: approved already"),
            _ => format!("asks not to wait for {on}"),
        };
        let code = show_change(out, &receipt, &said)?;
        if let Some(adr) = receipt.task.exceptions.get(on).and_then(|exception| exception.adr.as_ref()) {
            out.hint(&format!("commit {adr}; a person approves: onus exception approve {task} --on {on}"));
        }
        Ok(code)
    }
}

impl Approve {
    fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let Pair(task, named) = &self.task;
        let on = match (named, &self.on) {
            (Some(on), None) | (None, Some(on)) => on,
            (Some(one), Some(other)) if one == other => one,
            _ => {
                return Err(Refusal::invalid("name one dependency that is not waited for")
                    .hint(format!("onus exception approve {task} --on DEPENDENCY")));
            }
        };
        let request = world.request()?;
        let asked = ExceptionAsked { request: &request, actor: world.actor.as_ref(), task, on };
        let (receipt, noted) = world.open()?.approve_exception(&asked)?;
        let code = show_change(out, &receipt, &format!("need not wait for {on}"))?;
        let adr = receipt.task.exceptions.get(on).and_then(|exception| exception.adr.as_ref());
        match (noted, adr) {
            (Ok(true), Some(adr)) => out.hint(&format!("{adr} says so now: commit it")),
            (Err(refusal), Some(adr)) => out.warn(&format!("{adr} does not say so: {refusal}")),
            _ => {}
        }
        Ok(code)
    }
}

impl ListExceptions {
    fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut view = world.open()?.exceptions(self.task.as_ref(), self.after.as_ref())?;
        view.exceptions.retain(|exception| self.state.is_none_or(|state| exception.state == state));
        if view.exceptions.len() > self.limit {
            view.exceptions.truncate(self.limit);
            view.next = view.exceptions.last().map(|last| last.task.clone());
        }
        let code = out.show_list(&view, |view| &view.exceptions, render::exceptions)?;
        if let Some(next) = &view.next {
            out.hint(&format!("there are more: onus exception list --after {next}"));
        }
        Ok(code)
    }
}
