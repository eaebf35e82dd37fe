//! How notifications, and commands that run after a change, are set up in `onus.yaml`.

use super::{QuietHours, Recipient, TimeOfDay};
use crate::code::Code;
use crate::event::Event;
use crate::id::{Handle, MirrorName};
use crate::refusal::Finding;
use crate::settings::Settings;
use crate::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

words!(
    /// What somebody is told of.
    Occasion {
        /// A task waits for this person; told to a channel: for any person.
        BlockedOnMe = "blocked_on_me",
        /// A holder waits for another worker's word.
        ReviewAsked = "review_asked",
        /// A limit refused or stopped work.
        Budget = "budget",
        /// A delivery to an outside system waits for a person.
        Stuck = "stuck",
        /// A milestone was set up or closed.
        Milestone = "milestone",
        /// Somebody's lease was taken: by a takeover, or by force.
        LeaseLost = "lease_lost",
        Completed = "completed",
    }
);

/// One rule: on this occasion, tell them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotifyRule {
    pub when: Occasion,
    /// A person (`@ada`) of `people`, or a channel of `channels`.
    pub to: Recipient,
}

words!(
    /// What a channel speaks.
    ChannelKind {
        /// JSON, signed as Standard Webhooks has it.
        Webhook = "webhook",
        /// Slack's incoming webhooks, which Mattermost understands as well.
        Slack = "slack",
        /// Microsoft Teams: an adaptive card.
        Teams = "teams",
        Ntfy = "ntfy",
        /// Mail.
        Smtp = "smtp",
        /// A command line of this machine.
        Command = "command",
        /// The desktop of whoever runs the sender.
        Desktop = "desktop",
    }
);

/// One channel of `onus.yaml`. Secrets are named, never held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotifyChannel {
    pub kind: ChannelKind,
    /// Where it is: `https://…`; for mail `smtps://HOST:465`, or `smtp://HOST:587` with STARTTLS. No redirect is followed.
    #[serde(default)]
    pub url: Option<String>,
    /// The environment variable that has the address, where the address itself is the secret, as Slack's is.
    #[serde(default)]
    pub url_env: Option<String>,
    /// A file that has it, instead.
    #[serde(default)]
    pub url_file: Option<String>,
    /// The environment variable that has the secret: a webhook's signing key, ntfy's token, the mail server's password.
    #[serde(default)]
    pub secret_env: Option<String>,
    /// A file that has it, instead.
    #[serde(default)]
    pub secret_file: Option<String>,
    /// It may travel in the clear beyond this machine, e.g. through a private tunnel.
    #[serde(default)]
    pub insecure: bool,
    /// ntfy: the topic. Mail: the address that it goes to. A person's own `address` comes first.
    #[serde(default)]
    pub to: Option<String>,
    /// Mail: whom it comes from.
    #[serde(default)]
    pub from: Option<String>,
    /// Mail: who logs in.
    #[serde(default)]
    pub user: Option<String>,
    /// Command: the line for `/bin/sh`; what happened is in its environment (`ONUS_EVENT` is JSON).
    #[serde(default)]
    pub command: Option<String>,
}

/// How a person wants to be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PersonSettings {
    /// By which channel.
    pub channel: MirrorName,
    /// Their address there: of mail, or a topic of ntfy's.
    #[serde(default)]
    pub address: Option<String>,
    /// When they are not told anything, in their own time zone: `22:00-07:00`. It waits until the end.
    #[serde(default)]
    pub quiet: Option<QuietHours>,
    /// Everything at once at these times of their day, instead of each by itself.
    #[serde(default)]
    pub digest: Vec<TimeOfDay>,
}

/// After which change commands run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Transition {
    Added,
    Claimed,
    TakenOver,
    Blocked,
    Unblocked,
    Released,
    Completed,
    Reopened,
    Dropped,
    Reviewed,
    Merged,
}

impl Transition {
    pub fn of(event: &Event) -> Option<Transition> {
        Some(match event {
            Event::Added(_) => Transition::Added,
            Event::Claimed(_) => Transition::Claimed,
            Event::TakenOver(_) => Transition::TakenOver,
            Event::Blocked(_) => Transition::Blocked,
            Event::Unblocked(_) => Transition::Unblocked,
            Event::Released(_) => Transition::Released,
            Event::Completed(_) => Transition::Completed,
            Event::Reopened(_) => Transition::Reopened,
            Event::Dropped(_) => Transition::Dropped,
            Event::Reviewed(_) => Transition::Reviewed,
            Event::Merged(_) => Transition::Merged,
            _ => return None,
        })
    }
}

/// What the outbox calls the commands of `on`.
pub const HOOKS: &str = "on";

impl Settings {
    /// Everybody whom a rule tells, each once.
    pub fn recipients(&self) -> BTreeSet<&Recipient> {
        self.notify.iter().map(|rule| &rule.to).collect()
    }

    /// The channel by which a recipient is told.
    pub fn channel_of(
        &self,
        to: &Recipient,
    ) -> Option<(&MirrorName, &NotifyChannel, Option<&PersonSettings>)> {
        let (name, person) = match to {
            Recipient::Channel(name) => (name, None),
            Recipient::Person(handle) => {
                let person = self.people.get(handle)?;
                (&person.channel, Some(person))
            }
        };
        self.channels.get_key_value(name).map(|(name, channel)| (name, channel, person))
    }

    /// What does not fit together, all at once.
    pub fn mistakes(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        let mut say = |detail: String, hint: String| {
            found.push(Finding::new(Code::InvalidInput, detail).hinted(Some(hint)));
        };
        for name in self.mirrors.keys().chain(self.channels.keys()) {
            if name.as_str().starts_with('@') || name.as_str() == HOOKS {
                say(format!("no mirror or channel can be called {name}"), "give it another name".into());
            }
        }
        for name in self.channels.keys().filter(|name| self.mirrors.contains_key(name)) {
            say(format!("{name} is a mirror and a channel"), "give one of them another name".into());
        }
        for rule in &self.notify {
            match &rule.to {
                Recipient::Channel(name) if !self.channels.contains_key(name) => say(
                    format!("notify tells {name}, and there is no such channel"),
                    format!("set it up under channels.{name}, or name a person as @{name}"),
                ),
                Recipient::Person(person) if !self.people.contains_key(person) => say(
                    format!("notify tells {person}, and nobody says how"),
                    format!("people: {{\"{person}\": {{channel: NAME, address: ADDRESS}}}}"),
                ),
                _ => {}
            }
        }
        for (person, settings) in &self.people {
            if !self.channels.contains_key(&settings.channel) {
                let detail =
                    format!("{person} is told by {}, and there is no such channel", settings.channel);
                say(detail, format!("set it up under channels.{}", settings.channel));
            }
        }
        for (name, channel) in &self.channels {
            for (detail, hint) in channel.mistakes(name) {
                say(detail, hint);
            }
        }
        found.extend(self.limits.mistakes(&self.agents));
        found.extend(crate::agents::mistakes(&self.presets));
        found
    }

    /// Whose name a person's part of the outbox has.
    pub fn people_told(&self) -> impl Iterator<Item = &Handle> {
        self.recipients().into_iter().filter_map(|to| match to {
            Recipient::Person(person) => Some(person),
            Recipient::Channel(_) => None,
        })
    }
}

impl NotifyChannel {
    fn mistakes(&self, name: &MirrorName) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut need = |is_missing: bool, what: &str| {
            if is_missing {
                let kind = self.kind.name();
                found
                    .push((format!("channels.{name}: a {kind} channel needs {what}"), format!("set {what}")));
            }
        };
        let urls = [&self.url, &self.url_env, &self.url_file].iter().filter(|url| url.is_some()).count();
        let secrets = [&self.secret_env, &self.secret_file].iter().filter(|one| one.is_some()).count();
        match self.kind {
            ChannelKind::Command => need(self.command.is_none(), "command"),
            ChannelKind::Desktop => {}
            _ => need(urls != 1, "one of url, url_env, url_file"),
        }
        need(secrets > 1, "secret_env or secret_file, not both");
        need(self.kind == ChannelKind::Webhook && secrets == 0, "secret_env or secret_file");
        need(self.kind == ChannelKind::Smtp && self.from.is_none(), "from");
        found
    }
}
