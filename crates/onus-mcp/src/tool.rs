//! The table of tools. What a verb takes is its type in `onus_app::input`; names and words are fixed here: no task, worker
//! or setting can change what a model is told a tool does (threat 7 of the rules).

use crate::arguments::{AboutTask, Asking, Claiming, schema};
use onus_app::input;
use onus_core::id::TaskId;
use onus_core::refusal::Refusal;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
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
    /// Fields of the input that agents' clients are not offered: force and what is for people, and second spellings.
    without: &'static [&'static str],
    schema: fn(&[&str]) -> JsonObject,
    parse: fn(Value) -> Result<Call, serde_json::Error>,
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Line {
    pub(crate) fn call(&self, arguments: Option<JsonObject>) -> Result<Call, Refusal> {
        let arguments = arguments.unwrap_or_default();
        if let Some(field) = self.without.iter().find(|field| arguments.contains_key(**field)) {
            return Err(Refusal::invalid(format!("{}: unknown field `{field}`", self.name)));
        }
        (self.parse)(Value::Object(arguments))
            .map_err(|error| Refusal::invalid(format!("{}: {error}", self.name)))
    }

    fn tool(&self) -> Tool {
        let annotations = ToolAnnotations::new().open_world(false);
        let annotations = match self.effect {
            Effect::Reads => annotations.read_only(true),
            Effect::Adds => annotations.read_only(false).destructive(false).idempotent(false),
            Effect::Ends => annotations.read_only(false).destructive(true).idempotent(false),
        };
        Tool::new(self.name, self.about, Arc::new((self.schema)(self.without))).with_annotations(annotations)
    }
}

macro_rules! tools {
    ($($variant:ident($input:ty) $name:literal $offer:ident $effect:ident $(without [$($field:ident)+])? $about:literal)+) => {
        /// A call, understood.
        #[derive(Debug)]
        pub(crate) enum Call { $($variant($input)),+ }

        const TABLE: &[Line] = &[$(Line {
            name: $name,
            about: $about,
            offer: Tools::$offer,
            effect: Effect::$effect,
            without: &[$($(stringify!($field)),+)?],
            schema: schema::<$input>,
            parse: |arguments| serde_json::from_value(arguments).map(Call::$variant),
        }),+];
    };
}

tools! {
    Ready(Ready) "ready" Few Reads
        "Tasks you could claim now, the most important first, and why others cannot be claimed."
    Claim(Claiming) "claim" Few Adds
        without [force reason assignee ttl_ms project lane sprint workstations count constraints]
        "Take a task: `task`, or the most important ready one if left out. The answer's `lease.token` proves that you \
         hold it: pass it as `lease` in later calls. Work only in its scope and workstation."
    Show(Show) "show" Few Reads
        "One task: body, checks, dependencies, holder, last handoff and notes."
    Note(AboutTask<input::NoteInput>) "note" Few Adds
        "Write down progress; by the holder it also renews the lease. Do it at least every 5 minutes. On a task of \
         somebody else it is a comment."
    Check(Check) "check" Few Adds
        "Run the task's approved checks where the work is, and record what they show. Commit first: only clean \
         commits prove anything."
    Handoff(AboutTask<input::HandoffInput>) "handoff" Few Adds
        "Write down what the next holder must know, and go on. Commits, files and checks are filled in."
    Block(AboutTask<input::BlockInput>) "block" Few Adds
        "Say what the work waits for; `person:@x` asks that person, and `summary` is the question. You keep the task unless \
         `release_lease`."
    Complete(AboutTask<input::CompleteInput>) "complete" Few Ends without [force reason]
        "Finish a task that you hold. Needs passed checks at this commit and merged work where the policy says so."
    Release(AboutTask<input::ReleaseInput>) "release" Few Ends without [force reason]
        "Give the task back to the queue, with what the next holder must know."
    Ask(Asking<input::AddInput>) "ask" Few Adds without [extra merge_order] "Ask for new work."
    Say(AboutTask<input::SayInput>) "say" Few Adds without [lease]
        "Say something to a task's holder; by the holder, to who asked. Whoever a blocked task waits for answers with it. \
         What others say to you comes as `messages` of any answer."
    Review(AboutTask<input::ReviewInput>) "review" Few Adds without [tick untick workstation]
        "Judge another's work: a verdict with its classification, comments on lines of the commit, or both."
    Inbox(Inbox) "inbox" All Reads "What waits for you: questions, reviews, messages."
    Renew(AboutTask<input::RenewInput>) "renew" All Adds without [ttl_ms] "Keep a lease alive without saying anything."
    Unblock(AboutTask<input::UnblockInput>) "unblock" All Adds "What the work waited for is there: go on."
    Takeover(AboutTask<input::TakeoverInput>) "takeover" All Adds without [force ttl_ms]
        "Take a task whose holder's lease has expired (see `stale`)."
    Edit(AboutTask<input::EditInput>) "edit" All Adds
        "Put a task that you asked for differently; of one that you only hold, its tags. Lists are replaced; +x and -x add \
         and take away."
    Tick(AboutTask<input::ReviewInput>) "tick" All Adds without [verdict classification commit note comments]
        "Acceptance criteria of somebody else's work that you found met (`tick`), or that are open again (`untick`). Never of your \
         own, nor from a workstation that built it."
    List(List) "list" All Reads "Tasks by state, type, role and holder, page by page."
    Stale(Stale) "stale" All Reads "Tasks whose lease has expired, and what a takeover would find."
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
pub(crate) struct Show {
    pub(crate) task: TaskId,
    /// `earlier` of the last answer
    pub(crate) before: Option<i64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Check {
    pub(crate) task: TaskId,
    /// Tell the last runs and run nothing
    #[serde(default)]
    pub(crate) list: bool,
    pub(crate) lease: Option<input::Lease>,
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

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Inbox {}
