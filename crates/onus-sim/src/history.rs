//! A history, and the sequential task that it is held against.

use porcupine_rs::{CheckResult, Model, Operation};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What a client asks of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Act {
    Claim,
    /// By the holder of this epoch, as far as the client knows.
    Renew(i64),
    Release(i64),
    Complete(i64),
    Look,
}

/// What it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Answer {
    Granted(i64),
    Done,
    /// Somebody holds it, or it has ended.
    NotClaimable,
    /// The client is not the holder, or no longer.
    Fenced,
    Seen(Stage),
}

/// How a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Stage {
    #[default]
    Open,
    Held(i64),
    Complete,
}

/// One call about one task, with its answer.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    pub task: u32,
    pub act: Act,
    pub answer: Answer,
}

/// The task as one process alone would see it: where it stands, and how often it was given away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Sequential {
    stage: Stage,
    epoch: i64,
}

impl Sequential {
    /// The task after a call, if that answer is the right one.
    fn after(self, act: Act, answer: Answer) -> Option<Sequential> {
        let by_holder = |epoch: i64, stage: Stage| match (self.stage == Stage::Held(epoch), answer) {
            (true, Answer::Done) => Some(Sequential { stage, ..self }),
            (false, Answer::Fenced) => Some(self),
            _ => None,
        };
        match act {
            Act::Claim => match (self.stage, answer) {
                (Stage::Open, Answer::Granted(epoch)) if epoch == self.epoch + 1 => {
                    Some(Sequential { stage: Stage::Held(epoch), epoch })
                }
                (Stage::Held(_) | Stage::Complete, Answer::NotClaimable) => Some(self),
                _ => None,
            },
            Act::Renew(epoch) => by_holder(epoch, self.stage),
            Act::Release(epoch) => by_holder(epoch, Stage::Open),
            Act::Complete(epoch) => by_holder(epoch, Stage::Complete),
            Act::Look => (answer == Answer::Seen(self.stage)).then_some(self),
        }
    }
}

#[derive(Debug, Clone)]
struct Tasks;

impl Model for Tasks {
    type State = Sequential;
    type Op = Call;
    type Metadata = ();

    /// No call touches two tasks.
    fn partition_operations(history: &[Operation<Self>]) -> Vec<Vec<Operation<Self>>> {
        let mut tasks: BTreeMap<u32, Vec<Operation<Self>>> = BTreeMap::new();
        for operation in history {
            tasks.entry(operation.op.task).or_default().push(operation.clone());
        }
        tasks.into_values().collect()
    }

    fn init() -> Sequential {
        Sequential::default()
    }

    fn step(state: &Sequential, call: &Call) -> (bool, Sequential) {
        state.after(call.act, call.answer).map_or((false, *state), |after| (true, after))
    }
}

/// What became of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// One order explains every answer.
    Linearizable,
    Violated,
    /// The search was not finished in time.
    Undecided,
}

/// Written by many clients at once.
#[derive(Debug)]
pub struct History {
    began: Instant,
    calls: Mutex<Vec<Operation<Tasks>>>,
}

impl Default for History {
    fn default() -> History {
        History { began: Instant::now(), calls: Mutex::default() }
    }
}

impl History {
    /// Makes a call and writes it down. A call whose outcome is unknown is repeated inside `call` until it is known: it
    /// then spans all of its attempts.
    pub fn record(&self, client: u32, task: u32, act: Act, call: impl FnOnce() -> Answer) -> Answer {
        let from = self.now();
        let answer = call();
        self.write(client, (from, self.now()), Call { task, act, answer });
        answer
    }

    /// Writes down a call that was made at these times.
    pub fn write(&self, client: u32, (from, to): (i64, i64), call: Call) {
        let operation =
            Operation { client_id: Some(client), call_time: from, return_time: to, op: call, metadata: None };
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(operation);
    }

    pub fn len(&self) -> usize {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn check(&self, patience: Duration) -> Verdict {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        match porcupine_rs::check_operations_timeout::<Tasks>(&calls, patience) {
            CheckResult::Ok => Verdict::Linearizable,
            CheckResult::Illegal => Verdict::Violated,
            CheckResult::Unknown => Verdict::Undecided,
        }
    }

    fn now(&self) -> i64 {
        i64::try_from(self.began.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }
}
