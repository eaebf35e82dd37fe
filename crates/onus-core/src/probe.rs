//! Probes: what must hold before a workstation is given work (mission C5).
//!
//! A probe is one line of text, its *spec*, in every document and table. Only people write specs. Running them is not
//! done here.

mod spec;
mod url;

pub use url::{Endpoint, Url};

use crate::time::{Millis, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The probes of one workstation, at most.
pub const PROBES_MAX: usize = 16;
/// The bytes of a spec, at most.
pub const SPEC_MAX: usize = 2_048;
/// The characters of a result's detail, at most.
pub const DETAIL_MAX: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    pub kind: ProbeKind,
    /// How long the other end has to answer.
    pub timeout: Millis,
}

impl Probe {
    pub const TIMEOUT_DEFAULT: Millis = Millis::secs(5);
    pub const TIMEOUT_MIN: Millis = Millis(100);
    /// A claim waits for its probes.
    pub const TIMEOUT_MAX: Millis = Millis::secs(60);
}

/// What is probed, and what is expected of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeKind {
    /// A shell command line exits with 0.
    Command { line: String },
    /// Somebody accepts a connection.
    Tcp(Endpoint),
    /// A server answers a GET as expected.
    Http { url: Url, expect: Answer },
    /// LocalStack says that these services work; with none named, that it is up.
    LocalStack { url: Url, services: Vec<String> },
    /// The workstation's directory is a working tree in the expected state.
    Git(Tree),
    /// So many bytes are free for us where the workstation is.
    Disk { bytes: u64 },
}

/// What an HTTP answer must be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// Any of 200 to 299 when not named.
    pub status: Option<u16>,
    pub body: Option<Expected>,
}

/// A place in a JSON body that must be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// RFC 6901, not empty.
    pub pointer: String,
    /// What must stand there: a string's characters, or a number, `true`, `false` or `null` as JSON writes it.
    pub equals: Option<String>,
}

/// What a git working tree must be. Its presence, and the branch it was registered with, are always expected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    pub cleanness: Cleanness,
    /// Another branch than the one the workstation was registered with.
    pub branch: Option<String>,
    /// How many commits of the main branch it may lack.
    pub behind: Option<u32>,
    /// What is checked out: a commit id, or its first seven digits or more.
    pub at: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Cleanness {
    #[default]
    Any,
    /// Nothing changed, nothing untracked that is not ignored.
    Clean,
}

crate::serde_by_display!(Probe);

impl JsonSchema for Probe {
    fn schema_name() -> Cow<'static, str> {
        "Probe".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "maxLength": SPEC_MAX,
            "pattern": "^(command:|tcp:|https?:|localstack:|git|disk:)",
            "examples": ["tcp:localhost:5432", "git:clean,behind=20", "command:make doctor;timeout=30s"]
        })
    }
}

/// How a probe ended. Only `passed` opens the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Passed,
    /// It was seen, and is not as expected.
    Failed,
    /// No answer within the probe's own time.
    TimedOut,
    /// Nothing could be seen, for a reason on this side.
    CouldNotRun,
}

impl Verdict {
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Failed => "failed",
            Verdict::TimedOut => "timed_out",
            Verdict::CouldNotRun => "could_not_run",
        }
    }

    pub fn parse(text: &str) -> Option<Verdict> {
        match text {
            "passed" => Some(Verdict::Passed),
            "failed" => Some(Verdict::Failed),
            "timed_out" => Some(Verdict::TimedOut),
            "could_not_run" => Some(Verdict::CouldNotRun),
            _ => None,
        }
    }
}

/// What one run of one probe saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeResult {
    /// The probe's spec. Text, so that a result outlives the probe it came from.
    pub probe: String,
    /// When the run began.
    pub at: Timestamp,
    pub took_ms: i64,
    pub verdict: Verdict,
    /// One printable line: what was seen and what was expected.
    pub detail: String,
}

impl ProbeResult {
    pub fn passed(&self) -> bool {
        self.verdict == Verdict::Passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_read_back_and_refuse_what_they_do_not_know() {
        let result = ProbeResult {
            probe: "tcp:localhost:5432".into(),
            at: Timestamp(1_792_000_000_123),
            took_ms: 12,
            verdict: Verdict::TimedOut,
            detail: "no answer".into(),
        };
        let json = serde_json::to_string(&result).unwrap();
        assert!(json.contains("\"verdict\":\"timed_out\""), "{json}");
        assert_eq!(serde_json::from_str::<ProbeResult>(&json).unwrap(), result);
        let more = json.replacen('{', "{\"more\":1,", 1);
        assert!(serde_json::from_str::<ProbeResult>(&more).is_err());
    }

    #[test]
    fn a_verdict_has_one_name() {
        for verdict in [Verdict::Passed, Verdict::Failed, Verdict::TimedOut, Verdict::CouldNotRun] {
            assert_eq!(Verdict::parse(verdict.name()), Some(verdict));
            assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.name());
        }
    }
}
