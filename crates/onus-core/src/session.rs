//! What is known about a session beside its own row: corrections, and what an agent used up (mission A3, E4).

use crate::code::Code;
use crate::id::{Handle, Seq, TaskId};
use crate::output::KeptOutput;
use crate::price::is_priced;
use crate::refusal::Refusal;
use crate::text::{LABEL_MAX, REASON_MAX, line};
use crate::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// More tokens than any session has. A larger number is a typing error, and sums must not overflow.
const COUNT_MAX: i64 = 1_000_000_000_000;

/// What an agent used up in a session. A later usage under the same key is the same record, grown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Names the record that the numbers come from, e.g. a transcript and a model.
    pub key: String,
    /// Who says so: `claude-transcript`, `otel`, `reported`.
    pub source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub counts: Counts,
}

/// Tokens, and what they cost in millionths of the currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    #[serde(default, skip_serializing_if = "is_zero")]
    pub input_tokens: i64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub output_tokens: i64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_read_tokens: i64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_creation_tokens: i64,
    /// Absent where the records do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<i64>,
    /// Answers of the model, where the records tell them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub turns: i64,
}

fn is_zero(n: &i64) -> bool {
    *n == 0
}

impl Counts {
    pub fn tokens(&self) -> i64 {
        self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_creation_tokens
    }

    pub fn add(&mut self, other: &Counts) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cache_read_tokens += other.cache_read_tokens;
        self.cache_creation_tokens += other.cache_creation_tokens;
        if let Some(cost) = other.cost_micros {
            *self.cost_micros.get_or_insert(0) += cost;
        }
        self.turns += other.turns;
    }

    /// What is left of it when an earlier count of the same work is taken away. Turns are counted anew by each run.
    pub fn beyond(&self, earlier: &Counts) -> Counts {
        let left = |now: i64, then: i64| (now - then).max(0);
        Counts {
            input_tokens: left(self.input_tokens, earlier.input_tokens),
            output_tokens: left(self.output_tokens, earlier.output_tokens),
            cache_read_tokens: left(self.cache_read_tokens, earlier.cache_read_tokens),
            cache_creation_tokens: left(self.cache_creation_tokens, earlier.cache_creation_tokens),
            cost_micros: self.cost_micros.map(|cost| left(cost, earlier.cost_micros.unwrap_or(0))),
            turns: self.turns,
        }
    }

    fn each(&self) -> [i64; 6] {
        let cost = self.cost_micros.unwrap_or(0);
        let [read, kept] = [self.cache_read_tokens, self.cache_creation_tokens];
        [self.input_tokens, self.output_tokens, read, kept, cost, self.turns]
    }
}

impl Usage {
    /// Whether nothing is less than in `earlier`: a record of the same work only grows. A cost that came from the table
    /// of prices may fall with them.
    pub(crate) fn covers(&self, earlier: &Usage) -> bool {
        let told = |usage: &Usage| match is_priced(earlier) {
            true => Counts { cost_micros: None, ..usage.counts }.each(),
            false => usage.counts.each(),
        };
        told(self).iter().zip(told(earlier)).all(|(now, then)| *now >= then)
    }

    pub(crate) fn checked(&self) -> Result<Usage, String> {
        let wrong = self.counts.each().into_iter().find(|count| !(0..=COUNT_MAX).contains(count));
        if let Some(count) = wrong {
            return Err(format!("{count} is not a number of tokens or a cost"));
        }
        if self.counts.each().iter().all(|count| *count == 0) {
            return Err("a usage of nothing".into());
        }
        Ok(Usage {
            key: line("the key", &self.key, REASON_MAX)?,
            source: line("the source", &self.source, LABEL_MAX)?,
            model: self.model.as_deref().map(|model| line("the model", model, LABEL_MAX * 2)).transpose()?,
            counts: self.counts,
        })
    }
}

/// When a session was, as one person says, and nobody else has yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    pub seq: Seq,
    pub by: Handle,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
}

/// A session on record, with what limits a correction of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    pub id: Seq,
    pub task: TaskId,
    pub worker: Handle,
    /// As it counts now: by the last correction, if there is one.
    pub started_at: Timestamp,
    /// `None` while it runs.
    pub ended_at: Option<Timestamp>,
    /// When the session before it, of the same worker in the same workstation, ended.
    pub before: Option<Timestamp>,
    /// When the session after it began.
    pub after: Option<Timestamp>,
    /// When its assignment began and ended; no end while it is in force.
    pub held_from: Timestamp,
    pub held_to: Option<Timestamp>,
    /// The last correction that waits for another person.
    pub proposal: Option<Proposal>,
    /// The last usage under the same key.
    pub usage: Option<Usage>,
    pub output: OutputState,
}

impl Recorded {
    /// What is printed in a session is its worker's alone to tell.
    pub fn is_printed_by(&self, caller: &Handle) -> Result<(), Refusal> {
        match self.worker == *caller {
            true => Ok(()),
            false => Err(self.not_of(caller).hint("only the worker of a session tells what it printed")),
        }
    }

    pub(crate) fn not_of(&self, caller: &Handle) -> Refusal {
        let detail = format!("the session {} is {}'s, not {caller}'s", self.id, self.worker);
        Refusal::new(Code::NotPermitted, detail)
    }
}

/// What is known of what a session printed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum OutputState {
    /// Nothing is kept, or nobody asked.
    #[default]
    None,
    Open(KeptOutput),
    /// It is on record: nothing comes behind it.
    Closed,
}
