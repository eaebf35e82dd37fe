//! The table of tools. Names, words and schemas are fixed here and nowhere else: no task, worker or setting can change
//! what a model is told a tool does (threat 7 of the rules).

use onus_core::refusal::Refusal;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, transform::transform_subschemas};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// Which tools are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tools {
    /// What a worker needs to do one task after another.
    #[default]
    Few,
    All,
}

impl Tools {
    pub fn parse(text: &str) -> Option<Tools> {
        match text {
            "few" => Some(Tools::Few),
            "all" => Some(Tools::All),
            _ => None,
        }
    }

    /// What a client is told.
    pub fn list(self) -> Vec<Tool> {
        TABLE.iter().filter(|line| self.offers(line)).map(Line::tool).collect()
    }

    pub(crate) fn find(self, name: &str) -> Option<&'static Line> {
        TABLE.iter().find(|line| line.name == name && self.offers(line))
    }

    fn offers(self, line: &Line) -> bool {
        self == Tools::All || line.offer == Tools::Few
    }
}

/// What a tool does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Reads,
    /// Adds to the record.
    Adds,
    /// Gives something up: a lease ends.
    Ends,
}

/// One line of the table.
pub(crate) struct Line {
    name: &'static str,
    about: &'static str,
    offer: Tools,
    effect: Effect,
    schema: fn() -> JsonObject,
    parse: fn(Value) -> Result<Call, serde_json::Error>,
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Line {
    pub(crate) fn call(&self, arguments: Option<JsonObject>) -> Result<Call, Refusal> {
        (self.parse)(Value::Object(arguments.unwrap_or_default()))
            .map_err(|error| Refusal::invalid(format!("{}: {error}", self.name)))
    }

    fn tool(&self) -> Tool {
        let annotations = ToolAnnotations::new().open_world(false);
        let annotations = match self.effect {
            Effect::Reads => annotations.read_only(true),
            Effect::Adds => annotations.read_only(false).destructive(false).idempotent(false),
            Effect::Ends => annotations.read_only(false).destructive(true).idempotent(false),
        };
        Tool::new(self.name, self.about, Arc::new((self.schema)())).with_annotations(annotations)
    }
}

macro_rules! tools {
    ($($variant:ident $name:literal $offer:ident $effect:ident $about:literal)+) => {
        /// A call, understood.
        #[derive(Debug)]
        pub(crate) enum Call { $($variant($variant)),+ }

        const TABLE: &[Line] = &[$(Line {
            name: $name,
            about: $about,
            offer: Tools::$offer,
            effect: Effect::$effect,
            schema: schema::<$variant>,
            parse: |arguments| serde_json::from_value(arguments).map(Call::$variant),
        }),+];
    };
}

tools! {
    Ready "ready" Few Reads
        "Tasks you could claim now, the most important first, and why others cannot be claimed."
    Claim "claim" Few Adds
        "Take a task: `task`, or the most important ready one if left out. The answer's `lease.token` proves that you \
         hold it: pass it as `lease` in later calls. Work only in its scope and workstation."
    Show "show" Few Reads
        "One task: body, checks, dependencies, holder, last handoff and notes."
    Note "note" Few Adds
        "Write down progress; by the holder it also renews the lease. Do it at least every 5 minutes. On a task of \
         somebody else it is a comment."
    Check "check" Few Adds
        "Run the task's approved checks where the work is, and record what they show. Commit first: only clean \
         commits prove anything."
    Handoff "handoff" Few Adds
        "Write down what the next holder must know, and go on. Commits, files and checks are filled in."
    Block "block" Few Adds
        "Say what the work waits for. You keep the task unless `release_lease`."
    Complete "complete" Few Ends
        "Finish a task that you hold. Needs passed checks at this commit and merged work where the policy says so."
    Release "release" Few Ends
        "Give the task back to the queue, with what the next holder must know."
    Ask "ask" Few Adds
        "Ask for new work. The same `origin` twice is one task. Your checks wait for a person's approval."
    Renew "renew" All Adds "Keep a lease alive without saying anything."
    Unblock "unblock" All Adds "What the work waited for is there: go on."
    Takeover "takeover" All Adds "Take a task whose holder's lease has expired (see `stale`)."
    List "list" All Reads "Tasks by state, type, role and holder, page by page."
    Stale "stale" All Reads "Tasks whose lease has expired, and what a takeover would find."
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ready {
    pub(crate) limit: Option<u32>,
    pub(crate) r#type: Option<String>,
    pub(crate) role: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    /// e.g. API-12
    pub(crate) task: Option<String>,
    pub(crate) r#type: Option<String>,
    pub(crate) role: Option<String>,
    /// Where you will work; default: what the policy says, else where you are
    pub(crate) workstation: Option<String>,
    /// e.g. 15m
    pub(crate) ttl: Option<String>,
    /// Choose one before the first try: a repeat with the same id gives the same answer
    pub(crate) request_id: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Show {
    pub(crate) task: String,
    /// `earlier` of the last answer
    pub(crate) before: Option<i64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Note {
    pub(crate) task: String,
    pub(crate) text: String,
    /// From claim
    pub(crate) lease: Option<String>,
    pub(crate) request_id: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Check {
    pub(crate) task: String,
    /// Tell the last runs and run nothing
    #[serde(default)]
    pub(crate) list: bool,
    pub(crate) lease: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Handoff {
    pub(crate) task: String,
    pub(crate) summary: Option<String>,
    #[serde(default)]
    pub(crate) risks: Vec<String>,
    /// The next slice of the work
    pub(crate) next: Option<String>,
    pub(crate) lease: Option<String>,
    pub(crate) request_id: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Block {
    pub(crate) task: String,
    /// task:ID, person:@x, external:TEXT or exception:ID
    pub(crate) on: String,
    #[serde(default)]
    pub(crate) release_lease: bool,
    pub(crate) summary: Option<String>,
    pub(crate) lease: Option<String>,
    pub(crate) request_id: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Complete {
    pub(crate) task: String,
    /// What was done
    // A rule asks for it, with a code of its own: leaving it out is not a typing error.
    #[schemars(required)]
    pub(crate) resolution: Option<String>,
    /// Of a defect: why it happened, in one sentence
    pub(crate) root_cause: Option<String>,
    /// Of a defect: the file or layer of the cause
    pub(crate) cause_owner: Option<String>,
    /// Over HTTP: the commit that the work is at
    pub(crate) commit: Option<String>,
    pub(crate) lease: Option<String>,
    pub(crate) request_id: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Release {
    pub(crate) task: String,
    // What the command line calls it.
    #[serde(alias = "note")]
    pub(crate) summary: Option<String>,
    #[serde(default)]
    pub(crate) risks: Vec<String>,
    pub(crate) next: Option<String>,
    pub(crate) lease: Option<String>,
    pub(crate) request_id: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ask {
    pub(crate) title: String,
    pub(crate) body: Option<String>,
    pub(crate) r#type: Option<String>,
    /// feature, defect, chore, …
    pub(crate) kind: Option<String>,
    /// P0..P4
    pub(crate) priority: Option<String>,
    /// Where the ask lives: CHANNEL:KEY
    pub(crate) origin: Option<String>,
    #[serde(default)]
    pub(crate) depends_on: Vec<String>,
    /// Globs of the paths it may touch
    #[serde(default)]
    pub(crate) scope: Vec<String>,
    /// Commands that prove it
    #[serde(default)]
    pub(crate) checks: Vec<String>,
    pub(crate) role: Option<String>,
    pub(crate) parent: Option<String>,
    pub(crate) request_id: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Renew {
    pub(crate) task: String,
    pub(crate) ttl: Option<String>,
    pub(crate) lease: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Unblock {
    pub(crate) task: String,
    pub(crate) lease: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Takeover {
    pub(crate) task: String,
    /// Goes into the ledger and to the old holder
    #[schemars(required)]
    pub(crate) reason: Option<String>,
    pub(crate) workstation: Option<String>,
    pub(crate) request_id: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// open, in_progress, blocked, complete, dropped or all; default: what is left to do
    pub(crate) state: Option<String>,
    pub(crate) r#type: Option<String>,
    pub(crate) role: Option<String>,
    pub(crate) assignee: Option<String>,
    pub(crate) limit: Option<u32>,
    /// `next` of the page before
    pub(crate) cursor: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stale {}

/// The schema of a tool's arguments, in as few words as it takes: every client pays for them in every session.
fn schema<T: JsonSchema>() -> JsonObject {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    shorten(&mut schema);
    match schema.to_value() {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

fn shorten(schema: &mut schemars::Schema) {
    for word in ["title", "format", "minimum", "default"] {
        schema.remove(word);
    }
    // What is not required may be left out; that it may be null as well goes without saying.
    let only = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().find(|kind| **kind != "null").cloned(),
        _ => None,
    };
    if let Some(kind) = only {
        schema.insert("type".to_owned(), kind);
    }
    transform_subschemas(&mut shorten, schema);
}
