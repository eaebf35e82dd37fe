//! What each verb takes: one type, wherever it is said. HTTP bodies, tools of agents' clients, forms of the board and flags
//! of the command line are these types, and the schemas of OpenAPI and MCP are made from them.
//!
//! One file per verb. An input only says which command it stands for ([`VerbInput::order`]); the rules are in `onus-core`.

mod add;
mod block;
mod check;
mod claim;
mod complete;
mod edit;
mod exception;
mod handoff;
mod merge;
mod note;
mod release;
mod renew;
mod reopen;
mod review;
mod say;
mod session;
mod takeover;

pub use add::AddInput;
pub use block::{BlockInput, UnblockInput};
pub use check::{CheckInput, Record};
pub use claim::{CLAIMS_MAX, ClaimInput, ClaimNextInput};
pub use complete::CompleteInput;
pub use edit::EditInput;
pub use exception::{ExceptionAction, ExceptionInput};
pub use handoff::HandoffInput;
pub use merge::MergeInput;
pub use note::NoteInput;
pub use release::ReleaseInput;
pub use renew::RenewInput;
pub use reopen::{DropInput, ReopenInput};
pub use review::{CommentInput, ReviewInput};
pub use say::SayInput;
pub use session::{SessionAction, SessionInput};
pub use takeover::TakeoverInput;

use crate::Onus;
use crate::submit::Target;
use onus_core::command::{Command, Warrant};
use onus_core::handoff::Words;
use onus_core::id::{ProjectKey, TaskId};
use onus_core::lease::Token;
use onus_core::refusal::Refusal;
use onus_core::text::Text;
use onus_core::time::Millis;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;

/// What a verb takes beside the task it is about.
pub trait VerbInput: DeserializeOwned + JsonSchema + Send + 'static {
    /// The command it stands for. The store is asked where the command tells more than its caller says: what git knows
    /// for a handoff, what has landed for a completion.
    fn order(self, store: &mut Onus, task: Option<&TaskId>) -> Result<Order, Refusal>;
}

/// A command with what it needs beside who asks for it.
#[derive(Debug)]
pub struct Order {
    pub command: Command,
    /// The task that the input itself names, where it does.
    pub task: Option<TaskId>,
    pub lease: Option<Token>,
    pub project: Option<ProjectKey>,
    pub target: Target,
}

impl Order {
    pub fn new(command: Command) -> Order {
        Order { command, task: None, lease: None, project: None, target: Target::Named }
    }

    /// With the holder's token.
    pub fn held(command: Command, lease: Option<Lease>) -> Order {
        Order { lease: lease.map(|lease| lease.0), ..Order::new(command) }
    }
}

/// Every input by its verb, with its schema: what the board's forms are compared with.
pub fn schemas() -> Vec<(&'static str, Schema)> {
    fn of<T: VerbInput>(verb: &'static str) -> (&'static str, Schema) {
        let inlined = schemars::generate::SchemaSettings::draft2020_12()
            .with(|settings| settings.inline_subschemas = true);
        (verb, inlined.into_generator().into_root_schema_for::<T>())
    }
    vec![
        of::<AddInput>("add"),
        of::<EditInput>("edit"),
        of::<ClaimInput>("claim"),
        of::<TakeoverInput>("takeover"),
        of::<RenewInput>("renew"),
        of::<ReleaseInput>("release"),
        of::<BlockInput>("block"),
        of::<UnblockInput>("unblock"),
        of::<NoteInput>("note"),
        of::<SayInput>("say"),
        of::<HandoffInput>("handoff"),
        of::<CheckInput>("check"),
        of::<ReviewInput>("review"),
        of::<CompleteInput>("complete"),
        of::<ReopenInput>("reopen"),
        of::<DropInput>("drop"),
        of::<ExceptionInput>("exception"),
        of::<SessionInput>("session"),
    ]
}

/// The holder's token, as a claim gave it.
#[derive(Debug, Clone)]
pub struct Lease(pub Token);

impl<'de> Deserialize<'de> for Lease {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Lease).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Lease {
    fn schema_name() -> Cow<'static, str> {
        "Lease".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "The token that the claim gave",
            "pattern": "^[0-9]{1,18}\\.[0-9]{1,18}\\.[0-9a-f]{32}$"
        })
    }
}

/// A duration as people write it, `15m`, or as documents tell it, in milliseconds.
fn ttl(words: Option<Millis>, ms: Option<i64>) -> Result<Option<Millis>, Refusal> {
    match (words, ms) {
        (Some(_), Some(_)) => Err(Refusal::invalid("ttl and ttl_ms: give one of them")),
        (words, None) => Ok(words),
        (None, Some(ms)) if (1..=Millis::MAX.0).contains(&ms) => Ok(Some(Millis(ms))),
        (None, Some(ms)) => {
            Err(Refusal::invalid(format!("ttl_ms: {ms} is not between 1 and {}", Millis::MAX.0)))
        }
    }
}

fn warrant(force: bool, reason: Option<String>) -> Warrant {
    if force { Warrant::Forced { reason } } else { Warrant::Ordinary }
}

fn text(content: &str) -> Text {
    Text::new(content.trim_end().to_owned())
}

fn words(summary: Option<String>, risks: Vec<String>, next_slice: Option<String>) -> Result<Words, Refusal> {
    Words { summary, risks, next_slice }.checked().map_err(Refusal::invalid)
}

/// The task that a verb is about.
fn named(task: Option<&TaskId>) -> Result<&TaskId, Refusal> {
    task.ok_or_else(|| Refusal::invalid("which task?"))
}
