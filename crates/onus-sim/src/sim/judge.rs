//! What must hold after every step, worked out from the record anew: no rule of the core is asked, only its words are
//! used. Each promise has the name that ARCHITECTURE.md gives it.

mod entry;
mod rows;

pub(super) use rows::seconds;

use super::snapshot::Seen;
use onus_app::submit::ReceiptKind;
use onus_core::code::Code;
use onus_core::hash::Digest;
use onus_core::id::{Handle, RequestId, Seq, TaskId, WorkstationName};
use onus_core::lease::Token;
use onus_core::ledger::Entry;
use onus_core::task::Task;
use onus_core::time::{Millis, Now};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A promise that was not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub promise: &'static str,
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise, self.detail)
    }
}

pub(super) type Verdict = Result<(), Violation>;

/// One line per promise: it holds, or this is how it does not.
pub(super) fn holds(is_kept: bool, promise: &'static str, detail: impl FnOnce() -> String) -> Verdict {
    if is_kept { Ok(()) } else { Err(Violation { promise, detail: detail() }) }
}

/// What a caller was told.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    Done {
        kind: ReceiptKind,
        task: Box<Task>,
        token: Option<Token>,
    },
    Refused(Code),
    /// Nothing: the caller must ask again.
    Nothing,
}

/// One call of a step, and its answer.
#[derive(Debug, Clone)]
pub(super) struct Told {
    pub request: RequestId,
    pub actor: Handle,
    pub token: Option<Token>,
    /// Whether it asked for whatever comes next: refusals on the way to it are no answer.
    pub is_next: bool,
    pub answer: Answer,
}

/// What a request did, when it did it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Past {
    task: TaskId,
    version: i64,
    refused: Option<Code>,
    token: Option<Token>,
}

/// A sign of life of a task's holder, by the simulation's clock and not by the record's.
#[derive(Debug, Clone)]
struct Sign {
    at: Now,
    ttl: Millis,
}

#[derive(Debug)]
pub(super) struct Judge {
    seq: Seq,
    last: Digest,
    heads: BTreeMap<Option<String>, Digest>,
    /// The tasks as their chains tell them.
    pub tasks: BTreeMap<TaskId, Task>,
    signs: BTreeMap<TaskId, Sign>,
    past: BTreeMap<RequestId, Past>,
    paused: BTreeSet<Handle>,
    quarantined: BTreeSet<WorkstationName>,
    /// Which identity map is in force.
    pub map: usize,
}

impl Default for Judge {
    fn default() -> Judge {
        Judge {
            seq: 0,
            last: Digest::ZERO,
            heads: BTreeMap::new(),
            tasks: BTreeMap::new(),
            signs: BTreeMap::new(),
            past: BTreeMap::new(),
            paused: BTreeSet::new(),
            quarantined: BTreeSet::new(),
            map: 0,
        }
    }
}

/// What one step did to the record.
struct Deeds<'a> {
    now: &'a Now,
    told: &'a [Told],
    /// By the entry's number: the task's version after it.
    versions: BTreeMap<Seq, i64>,
}

impl Judge {
    pub(super) const fn seq(&self) -> Seq {
        self.seq
    }

    /// Looks at the store after a step. `now` is when the step was.
    pub(super) fn judge(&mut self, now: &Now, told: &[Told], seen: &Seen) -> Verdict {
        let known = seen.known.as_ref().map_or(Digest::ZERO, |entry| entry.hash);
        holds(known == self.last, "acknowledged", || format!("entry {} is not what it was", self.seq))?;
        let mut deeds = Deeds { now, told, versions: BTreeMap::new() };
        for entry in &seen.entries {
            self.follow(&seen.uid, entry, &mut deeds)?;
        }
        for (at, told) in told.iter().enumerate() {
            self.answered(told, seen, seen.requests.get(at).copied().flatten(), &deeds)?;
        }
        self.unasked(told, seen)?;
        self.rows(seen)
    }

    /// Whether an answer agrees with the record.
    fn answered(&mut self, told: &Told, seen: &Seen, stored: Option<Seq>, deeds: &Deeds<'_>) -> Verdict {
        if let Some(past) = self.past.get(&told.request) {
            return repeated(past, told);
        }
        let entry_of = |seq: Seq| seen.entries.iter().find(|entry| entry.seq == seq);
        let happened = match &told.answer {
            Answer::Done { kind: ReceiptKind::Existing, .. } => None,
            Answer::Done { task, token, .. } => {
                let landed = seen.entries.iter().any(|entry| {
                    entry.task.as_deref() == Some(&task.id.to_string())
                        && deeds.versions.get(&entry.seq) == Some(&task.version)
                });
                holds(landed, "acknowledged", || {
                    format!("{} was told of a change that is not there", told.actor)
                })?;
                Some(Past {
                    task: task.id.clone(),
                    version: task.version,
                    refused: None,
                    token: token.clone(),
                })
            }
            // A refusal by map or gate is on record, unless it is one on the way to the next task.
            Answer::Refused(code) => {
                stored.and_then(entry_of).and_then(|entry| past(entry, deeds, Some(*code)))
            }
            Answer::Nothing => stored.and_then(entry_of).and_then(|entry| {
                let refused = (entry.verb == "refused").then(|| refused_code(entry)).flatten();
                past(entry, deeds, refused)
            }),
        };
        if let Some(happened) = happened {
            self.past.insert(told.request.clone(), happened);
        }
        Ok(())
    }

    /// Every entry has a caller to whom it was acknowledged, or one who does not know.
    fn unasked(&self, told: &[Told], seen: &Seen) -> Verdict {
        for entry in seen.entries.iter().filter(|entry| entry.task.is_some()) {
            let asked = told.iter().any(|told| {
                let answers = match &told.answer {
                    Answer::Nothing => true,
                    Answer::Done { kind, task, .. } => {
                        let own = entry.task.as_deref() == Some(&task.id.to_string());
                        (own && *kind != ReceiptKind::Existing) || (told.is_next && entry.verb == "refused")
                    }
                    Answer::Refused(_) => entry.verb == "refused",
                };
                answers && told.actor.as_str() == entry.actor
            });
            holds(asked, "once", || format!("nobody asked for entry {}: {}", entry.seq, entry.verb))?;
        }
        Ok(())
    }
}

/// A request that did something once gives the same answer for ever.
fn repeated(past: &Past, told: &Told) -> Verdict {
    let same = match (&told.answer, past.refused) {
        (Answer::Nothing, _) => true,
        (Answer::Refused(Code::StoreBusy | Code::StoreUnavailable | Code::RequestConflict), _) => true,
        (Answer::Refused(code), Some(then)) => *code == then,
        (Answer::Done { task, token, .. }, None) => {
            // An answer that was lost told no token; the first one that arrives does.
            let same_token = past.token.is_none() || past.token == *token;
            task.id == past.task && task.version == past.version && same_token
        }
        _ => false,
    };
    holds(same, "once", || format!("{} did {past:?} and answers {:?}", told.request, told.answer))
}

fn past(entry: &Entry, deeds: &Deeds<'_>, refused: Option<Code>) -> Option<Past> {
    let version = *deeds.versions.get(&entry.seq)?;
    Some(Past { task: entry.task.as_deref()?.parse().ok()?, version, refused, token: None })
}

fn refused_code(entry: &Entry) -> Option<Code> {
    match entry.open().ok()?.event {
        onus_core::event::Event::Refused(refused) => Some(refused.code),
        _ => None,
    }
}
