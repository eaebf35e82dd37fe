//! Compares the record with the rows without keeping either: what the record says is added, what a row says is taken
//! off, and zero is left when both say the same, in whatever order they came.
//!
//! The numbers are keyed hashes. The key is drawn anew for each run, so that nobody can prepare rows that cancel out.

use onus_core::hash::Digest;
use onus_core::id::Seq;
use onus_core::task::{Assignment, Spec, State, Task};
use onus_core::time::Timestamp;
use onus_store::read::story::Session;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// A sum of facts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Balance(u64);

impl Balance {
    pub(super) fn add(&mut self, fact: Fact) {
        self.0 = self.0.wrapping_add(fact.0);
    }

    pub(super) fn take(&mut self, fact: Fact) {
        self.0 = self.0.wrapping_sub(fact.0);
    }

    pub(super) fn is_even(self) -> bool {
        self.0 == 0
    }
}

/// One statement, as a number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Fact(u64);

/// Turns statements into numbers.
#[derive(Debug, Clone, Default)]
pub(super) struct Scale {
    key: RandomState,
    bytes: Vec<u8>,
}

impl Scale {
    /// What was asked for. It never changes, so that a fold need not carry it.
    pub(super) fn spec(&mut self, spec: &Spec) -> Fact {
        self.begin("spec");
        // Through serde, so that a field that is added later is compared too.
        if serde_json::to_writer(&mut self.bytes, spec).is_err() {
            self.bytes.push(0);
        }
        self.end()
    }

    /// The task's row, with what was said of its spec in the spec's place.
    pub(super) fn task(&mut self, task: &Task, spec: Fact) -> Fact {
        let Task {
            id,
            uid,
            spec: _,
            depends_on,
            state,
            epoch,
            version,
            archived,
            born,
            created_by,
            created_at,
            updated_at,
        } = task;
        self.begin("task");
        self.field(&spec.0.to_le_bytes()).field(id.project.as_str().as_bytes()).int(id.number);
        self.field(uid.as_bytes()).int(*epoch).int(*version).int(i64::from(*archived)).int(*born);
        self.field(created_by.as_str().as_bytes()).int(created_at.0).int(updated_at.0);
        self.int(depends_on.len() as i64);
        for on in depends_on {
            self.field(on.project.as_str().as_bytes()).int(on.number);
        }
        self.field(state.name().name().as_bytes());
        match state {
            State::Open | State::InProgress(_) => {}
            State::Blocked { on, .. } => {
                self.field(on.to_string().as_bytes());
            }
            State::Complete(closing) | State::Dropped(closing) => {
                self.field(closing.by.as_str().as_bytes()).int(closing.at.0).int(i64::from(closing.forced));
            }
        }
        if let Some(held) = task.assignment() {
            self.held(held);
        }
        self.end()
    }

    pub(super) fn assignment(
        &mut self,
        task: &str,
        held: &Assignment,
        ended_at: Option<Timestamp>,
        end_reason: Option<&str>,
    ) -> Fact {
        self.begin("assignment").field(task.as_bytes()).held(held).ending(ended_at, end_reason);
        self.end()
    }

    pub(super) fn session(&mut self, task: &str, session: &Session) -> Fact {
        let Session { id, epoch, worker, workstation, started_at, ended_at, end_reason } = session;
        self.begin("session").field(task.as_bytes()).int(*id).int(*epoch);
        self.field(worker.as_str().as_bytes()).field(workstation.as_bytes()).int(started_at.0);
        self.ending(*ended_at, end_reason.as_deref());
        self.end()
    }

    pub(super) fn note(&mut self, task: &str, seq: Seq, kind: &str, text: &Digest) -> Fact {
        self.begin("note").field(task.as_bytes()).int(seq).field(kind.as_bytes()).field(&text.0);
        self.end()
    }

    fn held(&mut self, held: &Assignment) -> &mut Self {
        let Assignment {
            assignee,
            tier,
            workstation,
            epoch,
            assigned_at,
            lease,
            handoff_reason,
            forced,
            route,
        } = held;
        self.field(assignee.as_str().as_bytes())
            .optional(tier.as_deref())
            .field(workstation.as_str().as_bytes());
        self.int(*epoch).int(assigned_at.0).optional(handoff_reason.as_deref()).int(i64::from(*forced));
        self.int(lease.ttl.0).int(lease.renewed_at.0).int(lease.renewals);
        self.field(lease.tick.host.as_bytes()).field(lease.tick.boot.as_bytes()).int(lease.tick.millis);
        let sealed = serde_json::to_writer(&mut self.bytes, &(&lease.id, route));
        self.int(i64::from(sealed.is_ok()))
    }

    fn ending(&mut self, at: Option<Timestamp>, reason: Option<&str>) -> &mut Self {
        self.optional(at.map(|at| at.0.to_string()).as_deref()).optional(reason)
    }

    fn begin(&mut self, what: &str) -> &mut Self {
        self.bytes.clear();
        self.field(what.as_bytes())
    }

    fn end(&mut self) -> Fact {
        let mut hasher = self.key.build_hasher();
        hasher.write(&self.bytes);
        Fact(hasher.finish())
    }

    fn field(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(&bytes.len().to_le_bytes());
        self.bytes.extend_from_slice(bytes);
        self
    }

    fn optional(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.int(1).field(text.as_bytes()),
            None => self.int(0),
        }
    }

    fn int(&mut self, n: i64) -> &mut Self {
        self.bytes.extend_from_slice(&n.to_le_bytes());
        self
    }
}
