//! What several bodies have in common.

use crate::store::Store;
use onus_app::queue::LIMIT_MAX;
use onus_app::submit::Receipt;
use onus_core::command::Warrant;
use onus_core::handoff::Words;
use onus_core::id::{ProjectKey, Role, TaskType};
use onus_core::lease::Token;
use onus_core::refusal::Refusal;
use onus_core::text::Text;
use onus_core::time::Millis;
use onus_store::read::queue::Filter;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;

/// A question or a command without words.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// The holder's token, as a claim gave it.
#[derive(Debug)]
pub(super) struct Lease(Token);

pub(super) fn token(lease: Option<Lease>) -> Option<Token> {
    lease.map(|lease| lease.0)
}

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
            "description": "The token that the claim gave: generation.epoch.lease_id",
            "pattern": "^[0-9]{1,18}\\.[0-9]{1,18}\\.[0-9a-f]{32}$"
        })
    }
}

/// A duration as people write it, `15m`, or as documents tell it, in milliseconds.
pub(super) fn ttl(words: Option<Millis>, ms: Option<i64>) -> Result<Option<Millis>, Refusal> {
    match (words, ms) {
        (Some(_), Some(_)) => Err(Refusal::invalid("ttl and ttl_ms: give one of them")),
        (words, None) => Ok(words),
        (None, Some(ms)) if (1..=Millis::MAX.0).contains(&ms) => Ok(Some(Millis(ms))),
        (None, Some(ms)) => {
            Err(Refusal::invalid(format!("ttl_ms: {ms} is not between 1 and {}", Millis::MAX.0)))
        }
    }
}

pub(super) fn warrant(force: bool, reason: Option<String>) -> Warrant {
    if force { Warrant::Forced { reason } } else { Warrant::Ordinary }
}

pub(super) fn text(content: &str) -> Text {
    Text::new(content.trim_end().to_owned())
}

pub(super) fn words(
    summary: Option<String>,
    risks: Vec<String>,
    next_slice: Option<String>,
) -> Result<Words, Refusal> {
    Words { summary, risks, next_slice }.checked().map_err(Refusal::invalid)
}

/// At most so many; the settings say how many where the caller does not.
pub(super) fn limit(store: &Store, asked: Option<i64>) -> Result<i64, Refusal> {
    match asked {
        None => Ok(i64::from(store.settings.queue.limit).clamp(1, LIMIT_MAX)),
        Some(limit) if (1..=LIMIT_MAX).contains(&limit) => Ok(limit),
        Some(limit) => Err(Refusal::invalid(format!("limit: {limit} is not between 1 and {LIMIT_MAX}"))),
    }
}

/// Which tasks; what is left out matches all.
pub(super) fn filter(
    project: Option<ProjectKey>,
    task_type: Option<TaskType>,
    role: Option<Role>,
    lane: Option<i64>,
    sprint: Option<String>,
) -> Filter {
    Filter { project, task_type, role, lane, sprint, ..Filter::default() }
}

/// After somebody lost a task against their will: nothing of theirs lands any more in the repository that the server
/// looks after. Whoever gains by it hears of it only then.
pub(super) fn bar(store: &mut Store, receipt: &Receipt) -> Result<(), Refusal> {
    let Some(evicted) = store.evicted(receipt)? else {
        return Ok(());
    };
    store.bar(&evicted).map_err(|refusal| {
        refusal.hint("once git's lock is gone, repeat the call with the same Idempotency-Key")
    })
}
