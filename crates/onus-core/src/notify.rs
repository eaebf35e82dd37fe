//! Notifications: who is told of what, in which words, and when (mirror.md). A channel is a mirror that only hears: the outbox
//! delivers to it, so nothing is lost, nothing comes twice by its id, and each task's news come in their order.

pub mod message;
pub mod setting;
pub mod signature;
mod time_of_day;

pub use time_of_day::{QuietHours, TimeOfDay};

use crate::code::Code;
use crate::event::Event;
use crate::id::{Handle, MirrorName};
use schemars::JsonSchema;
use setting::{NotifyRule, Occasion};
use std::fmt;
use std::str::FromStr;

/// Whom a rule tells: a person, by the channel that they have, or a channel for everybody who reads it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recipient {
    Person(Handle),
    Channel(MirrorName),
}

impl fmt::Display for Recipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Recipient::Person(person) => person.fmt(f),
            Recipient::Channel(channel) => channel.fmt(f),
        }
    }
}

impl FromStr for Recipient {
    type Err = String;

    fn from_str(text: &str) -> Result<Recipient, String> {
        match text.starts_with('@') {
            true => text.parse().map(Recipient::Person),
            false => text.parse().map(Recipient::Channel),
        }
    }
}

crate::serde_by_display!(Recipient);

impl JsonSchema for Recipient {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Recipient".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "pattern": "^@?[a-z][a-z0-9-]{0,63}$"})
    }
}

impl Recipient {
    /// What the outbox calls it.
    pub fn outlet(&self) -> Result<MirrorName, String> {
        self.to_string().parse()
    }
}

/// The occasion on which a recipient's rules tell of an event; none where they do not.
pub fn occasion(rules: &[NotifyRule], to: &Recipient, event: &Event) -> Option<Occasion> {
    let person = match to {
        Recipient::Person(person) => Some(person),
        Recipient::Channel(_) => None,
    };
    let fits = |rule: &&NotifyRule| rule.to == *to && is_occasion(rule.when, person, event);
    rules.iter().find(fits).map(|rule| rule.when)
}

fn is_occasion(when: Occasion, person: Option<&Handle>, event: &Event) -> bool {
    match (when, event) {
        (Occasion::BlockedOnMe, Event::Blocked(blocked)) => match &blocked.on {
            crate::task::Blocker::Person(on) => person.is_none_or(|person| person == on),
            _ => false,
        },
        (Occasion::ReviewAsked, Event::ReviewRequested(_))
        | (Occasion::Completed, Event::Completed(_))
        | (Occasion::LeaseLost, Event::TakenOver(_))
        | (Occasion::Milestone, Event::MilestoneAdded(_) | Event::MilestoneClosed(_)) => true,
        (Occasion::LeaseLost, Event::Released(released)) => released.forced,
        (Occasion::LeaseLost, Event::Claimed(claimed)) => claimed.grant.forced,
        (Occasion::Budget, Event::Refused(refused)) => refused.code == Code::BudgetExceeded,
        (Occasion::Budget, Event::Blocked(blocked)) => !blocked.limits.is_empty(),
        (Occasion::Stuck, Event::Refused(refused)) => refused.code == Code::MirrorStuck,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Blocked, Dropped};
    use crate::task::Blocker;

    #[test]
    fn a_person_hears_what_waits_for_them_and_a_channel_what_waits_for_anybody() {
        let (ada, bob): (Handle, Handle) = ("@ada".parse().unwrap(), "@bob".parse().unwrap());
        let rule = |to: &str| NotifyRule { when: Occasion::BlockedOnMe, to: to.parse().unwrap() };
        let rules = [rule("@ada"), rule("team")];
        let on = |whom: &Handle| -> Event {
            Blocked {
                on: Blocker::Person(whom.clone()),
                kept: None,
                late_by_ms: None,
                handoff: None,
                limits: Vec::new(),
            }
            .into()
        };
        let told = |to: &str, event: &Event| occasion(&rules, &to.parse().unwrap(), event).is_some();
        assert!(told("@ada", &on(&ada)) && !told("@ada", &on(&bob)) && !told("@bob", &on(&bob)));
        assert!(told("team", &on(&ada)) && told("team", &on(&bob)));
        assert!(!told("team", &Dropped { reason: "no".into() }.into()));
        assert!("Team".parse::<Recipient>().is_err() && "@Ada".parse::<Recipient>().is_err());
    }
}
