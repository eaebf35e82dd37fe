//! `onus inbox`

use crate::context::World;
use crate::output::Output;
use crate::render;
use clap::{Args, Subcommand};
use onus_core::refusal::Refusal;
use std::process::ExitCode;

/// What waits for you: questions, messages, reviews, checks and exceptions to approve, stuck work
///
/// Each line ends with the command that deals with it. A message stays until `onus inbox read`, or until its task's holder has
/// been told by `onus prime`, a client's hook or a tool.
#[derive(Debug, Args)]
pub(crate) struct Inbox {
    #[command(subcommand)]
    verb: Option<InboxVerb>,
}

#[derive(Debug, Subcommand)]
enum InboxVerb {
    /// Mark every message as read
    Read,
}

impl Inbox {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let mut store = world.open()?;
        if let Some(InboxVerb::Read) = &self.verb {
            let messages = store.messages(world.actor.as_ref(), None)?.messages;
            store.mark_read(world.actor.as_ref(), &messages)?;
        }
        out.show(&store.inbox(world.actor.as_ref())?, render::inbox)
    }
}
