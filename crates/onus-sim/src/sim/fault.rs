//! A store that fails on demand, in front of a real one.

use super::clock::Clock;
use super::seeded_bugs::SeededBug;
use onus_core::hash::Digest;
use onus_core::id::{Seq, WorkspaceId};
use onus_core::time::Now;
use onus_store::error::{Result, StoreError};
use onus_store::port::{Backend, Driver, Ending, Look, Row, Tx};
use onus_store::statement::Statement;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What goes wrong in one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Another process is writing for too long: nothing is tried.
    Busy,
    /// The statement of this number fails. Nothing of its transaction may stay.
    Statement(u32),
    /// The process ends at the statement of this number.
    Death(u32),
    /// The process ends, or the line breaks, before the commit takes effect.
    LostCommit,
    /// The same, right after it took effect.
    LostAnswer,
}

impl Fault {
    /// Whether the caller cannot know what became of its call.
    pub const fn is_silent(self) -> bool {
        matches!(self, Fault::Death(_) | Fault::LostCommit | Fault::LostAnswer)
    }
}

/// The fault that comes next and the one that came last, shared with whoever plays the process.
#[derive(Debug, Clone, Default)]
pub(super) struct Faults(Arc<Mutex<Planned>>);

#[derive(Debug, Default)]
struct Planned {
    /// For the next transaction that writes.
    next: Option<Fault>,
    /// The last fault, if its moment came.
    struck: Option<Fault>,
}

impl Faults {
    fn planned(&self) -> MutexGuard<'_, Planned> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn plan(&self, fault: Option<Fault>) {
        self.planned().next = fault;
    }

    /// What struck since it was asked last; what did not strike is forgotten.
    pub(super) fn take_struck(&self) -> Option<Fault> {
        let mut planned = self.planned();
        planned.next = None;
        planned.struck.take()
    }
}

/// A store with a clock and a fault of the simulation's choice.
#[derive(Debug)]
pub(super) struct Faulty {
    inner: Box<dyn Driver>,
    clock: Clock,
    bug: SeededBug,
    faults: Faults,
    commits: u32,
}

impl Faulty {
    pub(super) fn new(inner: Box<dyn Driver>, clock: Clock, bug: SeededBug, faults: Faults) -> Faulty {
        Faulty { inner, clock, bug, faults, commits: 0 }
    }
}

impl Driver for Faulty {
    fn shown(&self) -> String {
        self.inner.shown()
    }

    fn backend(&mut self) -> Backend<'_> {
        self.inner.backend()
    }

    fn view(&mut self, work: &mut dyn FnMut(&mut dyn Tx) -> Result<()>) -> Result<()> {
        let (clock, bug) = (&self.clock, self.bug);
        self.inner.view(&mut |tx| work(&mut FaultyTx { inner: tx, clock, bug, aim: Aim::default() }))
    }

    fn change(&mut self, work: &mut dyn FnMut(&mut dyn Tx) -> Ending) -> Result<()> {
        let fault = {
            let mut planned = self.faults.planned();
            planned.struck = None;
            planned.next.take()
        };
        if fault == Some(Fault::Busy) {
            self.faults.planned().struck = fault;
            return Err(StoreError::Busy("another process is writing".into()));
        }
        self.commits += 1;
        let (clock, bug, commits) = (&self.clock, self.bug, self.commits);
        let (mut struck, mut is_dead) = (None, false);
        let answered = self.inner.change(&mut |tx| {
            let mut faulty = FaultyTx { inner: tx, clock, bug, aim: Aim::at(fault) };
            let ending = work(&mut faulty);
            struck = faulty.aim.struck;
            is_dead = faulty.aim.is_dead;
            match ending {
                _ if is_dead => Ending::Failed,
                Ending::Failed if bug == SeededBug::KeepsHalf => Ending::Commit,
                Ending::Commit if fault == Some(Fault::LostCommit) => Ending::Rollback,
                Ending::Commit if bug.forgets_commit(commits) => Ending::Rollback,
                ending => ending,
            }
        });
        let struck = struck.or(fault.filter(|fault| matches!(fault, Fault::LostCommit | Fault::LostAnswer)));
        self.faults.planned().struck = struck;
        match struck {
            _ if is_dead => Err(StoreError::Unknown("the process has ended".into())),
            Some(Fault::LostCommit | Fault::LostAnswer) => {
                answered.and(Err(StoreError::Unknown("the answer was lost".into())))
            }
            _ => answered,
        }
    }
}

/// When a fault strikes.
#[derive(Debug, Default)]
struct Aim {
    fault: Option<Fault>,
    statements: u32,
    struck: Option<Fault>,
    is_dead: bool,
}

impl Aim {
    fn at(fault: Option<Fault>) -> Aim {
        Aim { fault, ..Aim::default() }
    }

    /// Asked before every statement.
    fn allow(&mut self) -> Result<()> {
        if self.is_dead {
            return Err(StoreError::unavailable("the process has ended"));
        }
        self.statements += 1;
        match self.fault {
            Some(Fault::Statement(at)) if at == self.statements => {
                self.struck = self.fault;
                Err(StoreError::unavailable("the disk reports an error"))
            }
            Some(Fault::Death(at)) if at == self.statements => {
                (self.struck, self.is_dead) = (self.fault, true);
                Err(StoreError::unavailable("the process has ended"))
            }
            _ => Ok(()),
        }
    }
}

struct FaultyTx<'a> {
    inner: &'a mut dyn Tx,
    clock: &'a Clock,
    bug: SeededBug,
    aim: Aim,
}

impl Tx for FaultyTx<'_> {
    fn workspace(&self) -> WorkspaceId {
        self.inner.workspace()
    }

    fn now(&mut self) -> Result<Now> {
        Ok(self.bug.shifted(self.clock.now()))
    }

    fn rows(&mut self, statement: &dyn Statement) -> Result<Vec<Row>> {
        self.aim.allow()?;
        self.bug.edited(statement.sql(), self.inner.rows(statement)?)
    }

    fn each(&mut self, statement: &dyn Statement, row: &mut dyn FnMut(Row) -> Result<()>) -> Result<()> {
        self.aim.allow()?;
        self.inner.each(statement, row)
    }

    fn visit(&mut self, statement: &dyn Statement, look: Look<'_>) -> Result<()> {
        self.aim.allow()?;
        self.inner.visit(statement, look)
    }

    fn run(&mut self, statement: &dyn Statement) -> Result<u64> {
        self.aim.allow()?;
        self.inner.run(statement)
    }

    fn run_one(&mut self, statement: &dyn Statement) -> Result<()> {
        self.aim.allow()?;
        if self.bug.swallows(statement.sql()) {
            return Ok(());
        }
        self.inner.run_one(statement)
    }

    fn savepoint(&mut self) -> Result<()> {
        self.aim.allow()?;
        self.inner.savepoint()
    }

    fn release(&mut self) -> Result<()> {
        self.aim.allow()?;
        self.inner.release()
    }

    fn rollback_to(&mut self) -> Result<()> {
        self.aim.allow()?;
        self.inner.rollback_to()
    }

    fn decided(&mut self) {
        self.inner.decided();
    }

    fn prefetch(&mut self, questions: &[Box<dyn Statement + '_>]) -> Result<()> {
        self.inner.prefetch(questions)
    }

    fn announce(&mut self, seq: Seq, hash: &Digest) {
        self.inner.announce(seq, hash);
    }

    fn lost(&self) -> Option<Seq> {
        self.inner.lost()
    }

    fn give_up_lost(&mut self) {
        self.inner.give_up_lost();
    }
}
