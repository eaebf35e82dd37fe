//! `check`

use super::{Lease, Order, VerbInput};
use crate::Onus;
use onus_core::command::{Command, Run};
use onus_core::evidence::{Ground, RunPlace};
use onus_core::hash::{Digest, encode_hex};
use onus_core::id::{CheckId, CommitId, TaskId};
use onus_core::refusal::Refusal;
use onus_core::task::{CheckKind, CheckState};
use onus_core::text::Text;
use schemars::JsonSchema;
use serde::Deserialize;

/// What to do with a task's checks. The server runs none: whoever ran one says what it showed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub enum CheckInput {
    /// A command whose exit code tells; an agent's waits for a person's approval.
    Add {
        command: String,
        #[serde(default)]
        kind: CheckKind,
        lease: Option<Lease>,
    },
    /// Let it run, exactly as it is written: people only.
    Approve { check: CheckId },
    /// People only.
    Remove { check: CheckId, reason: Option<String>, lease: Option<Lease> },
    /// What a run of it showed.
    Record(Record),
}

/// What a run of a check showed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Record {
    lease: Option<Lease>,
    check: CheckId,
    /// The exit code; none where a signal ended it
    exit: Option<i32>,
    signal: Option<i32>,
    #[serde(default)]
    timed_out: bool,
    #[serde(default)]
    took_ms: u32,
    /// What it ran on
    commit: Option<CommitId>,
    /// The tree had changes that no commit has
    #[serde(default)]
    dirty: bool,
    #[serde(default)]
    output: String,
    /// What it saw of its surroundings, by digest
    environment: Option<String>,
    /// Not kept: a run that comes this way is stated, and nobody saw its sandbox
    sandbox: Option<RunPlace>,
}

impl VerbInput for CheckInput {
    fn order(self, _: &mut Onus, _: Option<&TaskId>) -> Result<Order, Refusal> {
        Ok(match self {
            CheckInput::Add { command, kind, lease } => {
                let command = command.trim().to_owned();
                let check = onus_core::task::Check { command, state: CheckState::Proposed, kind };
                Order::held(Command::AddCheck { check }, lease)
            }
            CheckInput::Approve { check } => Order::new(Command::ApproveCheck { check }),
            CheckInput::Remove { check, reason, lease } => {
                Order::held(Command::RemoveCheck { check, reason }, lease)
            }
            CheckInput::Record(record) => {
                let (lease, run) = record.run();
                Order::held(Command::RecordCheck { run: Box::new(run) }, lease)
            }
        })
    }
}

impl Record {
    fn run(self) -> (Option<Lease>, Run) {
        let _ = self.sandbox;
        let run = Run {
            check: self.check,
            exit: self.exit,
            signal: self.signal,
            timed_out: self.timed_out,
            took_ms: i64::from(self.took_ms),
            ground: Ground { commit: self.commit, dirty: self.dirty },
            output_length: i64::try_from(self.output.len()).unwrap_or(i64::MAX),
            output_sha256: encode_hex(&Digest::of(self.output.as_bytes()).0),
            output: Text::new(self.output),
            environment: self.environment.unwrap_or_default(),
            sandbox: RunPlace::Stated.name().to_owned(),
        };
        (self.lease, run)
    }
}
