//! `onus say`

use super::{LeaseArg, show_change, submit, text, text_argument};
use crate::context::World;
use crate::output::Output;
use clap::Args;
use onus_core::command::Command;
use onus_core::id::{Handle, TaskId};
use onus_core::refusal::Refusal;
use std::process::ExitCode;

/// Say something to whoever holds a task, or answer what it waits for
///
/// The holder is told at its next step. From the person whom a blocked task waits for it is the answer: the work goes on.
/// By the holder it is for whoever asked for the work.
#[derive(Debug, Args)]
pub(crate) struct Say {
    /// The task, or a worker: then it is about the task that it holds
    #[arg(value_name = "TASK|@WORKER", value_parser = addressee)]
    about: Addressee,

    /// The words; `-` reads standard input
    #[arg(value_name = "TEXT|-")]
    text: String,

    /// To whom, if not to the holder
    #[arg(long, value_name = "@WORKER", value_parser = |t: &str| t.parse::<Handle>())]
    to: Option<Handle>,

    #[command(flatten)]
    lease: LeaseArg,
}

#[derive(Debug, Clone)]
enum Addressee {
    Task(TaskId),
    Worker(Handle),
}

fn addressee(text: &str) -> Result<Addressee, String> {
    match text.starts_with('@') {
        true => text.parse().map(Addressee::Worker),
        false => text.parse().map(Addressee::Task),
    }
}

impl Say {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let words = text_argument("the message", &self.text)?;
        let mut store = world.open()?;
        let (task, to) = match (&self.about, &self.to) {
            (Addressee::Task(task), to) => (task.clone(), to.clone()),
            (Addressee::Worker(worker), None) => {
                (store.subject_with(world.actor.as_ref(), worker)?, Some(worker.clone()))
            }
            (Addressee::Worker(worker), Some(_)) => {
                return Err(Refusal::invalid(format!("{worker} is whom it is for: --to names another one"))
                    .hint("onus say TASK TEXT --to @WORKER"));
            }
        };
        // A token that only lies here is somebody else's: it says nothing about who speaks.
        let holder = store.task(&task)?.assignment().map(|held| held.assignee.clone());
        let is_holder = holder.is_some() && holder.as_ref() == world.actor.as_ref();
        let token = match is_holder || self.lease.lease.is_some() {
            true => world.token(&mut store, &task, self.lease.lease.as_deref())?,
            false => None,
        };
        let was_blocked = store.task(&task)?.state.name().name() == "blocked";
        let command = Command::Say { to, text: text(&words) };
        let receipt = submit(world, &mut store, &task, token, command)?;
        let answered = was_blocked && receipt.task.state.name().name() != "blocked";
        show_change(out, &receipt, if answered { "answered" } else { "told" })
    }
}
