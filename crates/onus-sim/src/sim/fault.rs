//! A store that fails on demand, in front of a real one.

use super::clock::Clock;
use super::plant::Plant;
use onus_core::id::{Seq, WorkspaceId};
use onus_core::time::Now;
use onus_store::error::{Result, StoreError};
use onus_store::port::{Look, Outcome, Row, Sql, Store, Tx, Value};

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

/// A store with a clock and a fault of the simulation's choice.
#[derive(Debug)]
pub(super) struct Faulty<S> {
    pub inner: S,
    pub clock: Clock,
    pub plant: Plant,
    /// For the next transaction that writes.
    pub next: Option<Fault>,
    /// The last fault, if its moment came.
    pub struck: Option<Fault>,
    commits: u32,
}

impl<S> Faulty<S> {
    pub(super) fn new(inner: S, clock: Clock, plant: Plant) -> Faulty<S> {
        Faulty { inner, clock, plant, next: None, struck: None, commits: 0 }
    }
}

impl<S: Store> Store for Faulty<S> {
    fn shown(&self) -> String {
        self.inner.shown()
    }

    fn read<T>(&mut self, work: impl FnOnce(&mut dyn Tx) -> Result<T>) -> Result<T> {
        let (clock, plant) = (&self.clock, self.plant);
        self.inner.read(|tx| work(&mut FaultyTx { inner: tx, clock, plant, aim: Aim::default() }))
    }

    fn write<T, E: From<StoreError>>(
        &mut self,
        work: impl FnOnce(&mut dyn Tx) -> std::result::Result<Outcome<T>, E>,
    ) -> std::result::Result<T, E> {
        let fault = self.next.take();
        self.struck = None;
        if fault == Some(Fault::Busy) {
            self.struck = fault;
            return Err(StoreError::Busy("another process is writing".into()).into());
        }
        self.commits += 1;
        let (clock, plant, commits) = (&self.clock, self.plant, self.commits);
        let mut struck = None;
        let answered = self.inner.write(|tx| {
            let mut faulty = FaultyTx { inner: tx, clock, plant, aim: Aim::at(fault) };
            let worked = work(&mut faulty);
            struck = faulty.aim.struck;
            if faulty.aim.is_dead {
                return Err(StoreError::Unknown("the process has ended".into()).into());
            }
            let outcome = match worked {
                Ok(outcome) => outcome,
                Err(error) if plant == Plant::KeepsHalf => return Ok(Outcome::Commit(Err(error))),
                Err(error) => return Err(error),
            };
            Ok(match outcome {
                Outcome::Commit(value) if fault == Some(Fault::LostCommit) => Outcome::Rollback(Ok(value)),
                Outcome::Commit(value) if plant.forgets_commit(commits) => Outcome::Rollback(Ok(value)),
                Outcome::Commit(value) => Outcome::Commit(Ok(value)),
                Outcome::Rollback(value) => Outcome::Rollback(Ok(value)),
            })
        });
        self.struck = struck.or(fault.filter(|fault| matches!(fault, Fault::LostCommit | Fault::LostAnswer)));
        match self.struck {
            Some(Fault::LostCommit | Fault::LostAnswer) => {
                answered?.and(Err(StoreError::Unknown("the answer was lost".into()).into()))
            }
            _ => answered?,
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
    plant: Plant,
    aim: Aim,
}

impl Tx for FaultyTx<'_> {
    fn workspace(&self) -> WorkspaceId {
        self.inner.workspace()
    }

    fn now(&mut self) -> Result<Now> {
        Ok(self.plant.shifted(self.clock.now()))
    }

    fn rows(&mut self, sql: &Sql, args: &[Value<'_>]) -> Result<Vec<Row>> {
        self.aim.allow()?;
        self.plant.edited(sql, self.inner.rows(sql, args)?)
    }

    fn each(&mut self, sql: &Sql, args: &[Value<'_>], row: &mut dyn FnMut(Row) -> Result<()>) -> Result<()> {
        self.aim.allow()?;
        self.inner.each(sql, args, row)
    }

    fn visit(&mut self, sql: &Sql, args: &[Value<'_>], look: Look<'_>) -> Result<()> {
        self.aim.allow()?;
        self.inner.visit(sql, args, look)
    }

    fn run(&mut self, sql: &Sql, args: &[Value<'_>]) -> Result<u64> {
        self.aim.allow()?;
        self.inner.run(sql, args)
    }

    fn run_one(&mut self, sql: &Sql, args: &[Value<'_>]) -> Result<()> {
        self.aim.allow()?;
        if self.plant.swallows(sql) {
            return Ok(());
        }
        self.inner.run_one(sql, args)
    }

    fn mark(&mut self) -> Result<()> {
        self.aim.allow()?;
        self.inner.mark()
    }

    fn keep(&mut self) -> Result<()> {
        self.aim.allow()?;
        self.inner.keep()
    }

    fn undo(&mut self) -> Result<()> {
        self.aim.allow()?;
        self.inner.undo()
    }

    fn decided(&mut self) {
        self.inner.decided();
    }

    fn expect(&mut self, questions: &[(&Sql, Vec<Value<'_>>)]) -> Result<()> {
        self.inner.expect(questions)
    }

    fn announce(&mut self, entry: Seq) {
        self.inner.announce(entry);
    }
}
