//! `onus intake`

use crate::context::World;
use crate::output::Output;
use crate::render;
use clap::{Args, Subcommand};
use onus_app::intake::email;
use onus_app::submit::Target;
use onus_app::view::AddView;
use onus_core::command::{Command, Envelope};
use onus_core::id::{ChannelName, ProjectKey};
use onus_core::refusal::Refusal;
use std::collections::BTreeSet;
use std::io::Read;
use std::process::ExitCode;

/// A message with its attachments may be long; only its headers are read.
const MESSAGE_MAX: u64 = 32 * 1024 * 1024;

/// Asks from other systems
#[derive(Debug, Args)]
pub(crate) struct Intake {
    #[command(subcommand)]
    verb: IntakeVerb,
}

#[derive(Debug, Subcommand)]
enum IntakeVerb {
    Email(Email),
}

/// Ask for what a message on standard input is about; its subject becomes the title
///
/// For a mail server's pipe. A thread is one ask: a reply, or the same message again, is the existing task. Nothing of the
/// text is kept.
#[derive(Debug, Args)]
struct Email {
    /// What the task's origin begins with; its type, priority and project may be set in onus.yaml
    #[arg(long, value_name = "NAME", default_value = "mail", value_parser = |t: &str| t.parse::<ChannelName>())]
    channel: ChannelName,

    /// Default: that of the channel, then the one of onus.yaml
    #[arg(long, value_name = "KEY", value_parser = |t: &str| t.parse::<ProjectKey>())]
    project: Option<ProjectKey>,
}

impl Intake {
    pub(super) fn run(&self, world: &World, out: &Output) -> Result<ExitCode, Refusal> {
        let IntakeVerb::Email(verb) = &self.verb;
        let mut store = world.open()?;
        let channel = store.settings.intake.channels.get(&verb.channel);
        let spec = Box::new(email(&verb.channel, channel, &message()?)?);
        let project = verb.project.clone().or_else(|| channel.and_then(|channel| channel.project.clone()));
        let command = Command::Add { spec, depends_on: BTreeSet::new(), archived: None, arrival: None };
        let envelope = Envelope { project, ..world.envelope(None, None, command)? };
        let receipt = store.submit(&envelope, &Target::Named)?;
        out.show(&AddView::from(&receipt), render::added)
    }
}

fn message() -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(MESSAGE_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| Refusal::invalid(format!("cannot read the message from standard input: {error}")))?;
    if bytes.len() as u64 > MESSAGE_MAX {
        return Err(Refusal::invalid(format!("the message has more than {MESSAGE_MAX} bytes")));
    }
    Ok(bytes)
}
