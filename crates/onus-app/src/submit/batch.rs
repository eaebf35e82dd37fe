//! Many commands, one commit: what a server saves is the wait for the disk.

use super::{Call, Common, Outside, Receipt, SubmitAnswer, Target, named};
use crate::Onus;
use crate::last_commit::Memory;
use crate::token::{self, Shown};
use onus_core::command::Envelope;
use onus_core::identity_map::Policy;
use onus_core::refusal::Refusal;
use onus_store::error::StoreError;
use onus_store::port::{Outcome, Store, Tx};
use std::cell::LazyCell;

/// What one caller asks for in one go, and the token that it showed for it, if it came over a network.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    pub calls: &'a [(Envelope, Target)],
    pub shown: Option<&'a Shown>,
}

/// Why nothing of a batch was carried out.
enum Failed {
    Store(StoreError),
    Refused(Refusal),
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Failed {
        Failed::Store(error)
    }
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Failed {
        Failed::Refused(refusal)
    }
}

impl Onus {
    /// Carries commands out one after the other and commits them together. A refused one undoes only itself; where the
    /// commit fails, each of them is told so, and its request id tells what became of it.
    pub fn submit_many(&mut self, calls: &[(Envelope, Target)]) -> Vec<Result<Receipt, Refusal>> {
        match calls {
            [(envelope, target)] => vec![self.submit(envelope, target)],
            _ => {
                let bearer = self.bearer.clone();
                let order = Order { calls, shown: bearer.as_ref() };
                self.submit_orders(|| vec![order], &mut Memory::default())
            }
        }
    }

    /// The same for several callers, by a process that stays and has a memory of all that it has submitted; one answer for
    /// each command, in their order. They are gathered when the writers' turn has come: whoever had to wait for it has
    /// more to do then.
    pub fn submit_orders<'o>(
        &mut self,
        gather: impl FnOnce() -> Vec<Order<'o>>,
        memory: &mut Memory,
    ) -> Vec<Result<Receipt, Refusal>> {
        let orders = LazyCell::new(gather);
        let (outside, store) = self.parts();
        let mut kept = *memory;
        let answered = store.write(|tx| {
            let calls =
                orders.iter().flat_map(|order| order.calls).map(|(envelope, target)| (envelope, target));
            let common = Common::load(tx, calls, orders.iter().filter_map(|order| order.shown))?;
            let common = Common { memory: *memory, ..common };
            let mut batch = Batch { outside, policy: None, common, has_changed: false };
            let mut answers = Vec::new();
            for order in orders.iter() {
                batch.carry_out_all(tx, order, &mut answers)?;
            }
            if !batch.has_changed {
                return Ok(Outcome::Rollback(answers));
            }
            kept = batch.common.memory;
            Ok(Outcome::Commit(answers))
        });
        let failed = match answered {
            Ok(answers) => {
                *memory = kept;
                return answers;
            }
            // A guard did not hold, and a database on another machine said so when it could not be told whose it was.
            Err(Failed::Store(StoreError::Guard(_) | StoreError::Constraint(_))) => {
                return self.one_by_one(&orders, memory);
            }
            Err(Failed::Store(error)) => error.into(),
            Err(Failed::Refused(refusal)) => refusal,
        };
        let envelopes = orders.iter().flat_map(|order| order.calls).map(|(envelope, _)| envelope);
        envelopes.map(|envelope| Err(named(Refusal::clone(&failed), envelope))).collect()
    }

    fn one_by_one(&mut self, orders: &[Order<'_>], memory: &mut Memory) -> Vec<Result<Receipt, Refusal>> {
        let calls = orders.iter().flat_map(|order| order.calls.iter().map(|call| (call, order.shown)));
        calls
            .map(|((envelope, target), shown)| {
                self.transact(envelope, target, shown, memory, |outcome| outcome)
            })
            .collect()
    }
}

/// The commands of one transaction.
struct Batch<'a> {
    outside: Outside<'a>,
    /// Read once, after the transaction has begun: nobody can commit between its commands.
    policy: Option<Policy>,
    common: Common,
    has_changed: bool,
}

impl Batch<'_> {
    /// The answers to one caller's commands, if its token is good.
    fn carry_out_all(
        &mut self,
        tx: &mut dyn Tx,
        order: &Order<'_>,
        answers: &mut Vec<SubmitAnswer>,
    ) -> Result<(), StoreError> {
        match order.shown.map(|shown| token::judge(tx, shown)).transpose() {
            Ok(noted) => self.has_changed |= noted.unwrap_or_default(),
            Err(refusal) => {
                answers.extend(order.calls.iter().map(|(envelope, _)| Err(named(refusal.clone(), envelope))));
                return Ok(());
            }
        }
        for call in order.calls {
            answers.push(self.carry_out(tx, call, order.shown)?);
        }
        Ok(())
    }

    /// The answer to one command; an error concerns them all.
    fn carry_out(
        &mut self,
        tx: &mut dyn Tx,
        call: &(Envelope, Target),
        shown: Option<&Shown>,
    ) -> Result<SubmitAnswer, StoreError> {
        let (envelope, target) = call;
        let (workspace, memory) = (self.common.workspace.clone(), self.common.memory);
        tx.savepoint()?;
        let decided = self.decide(tx, envelope, target, shown);
        let answer = match decided {
            Ok(Outcome::Commit(answer)) => match tx.release() {
                Ok(()) => {
                    self.has_changed = true;
                    let task = answer.as_ref().ok().map(|receipt| &receipt.task);
                    task.into_iter().for_each(|task| self.common.at_work.changed(task));
                    self.common.ready.changed(tx, &envelope.command, task.map(|task| &task.id))?;
                    return Ok(answer.map_err(|refusal| named(refusal, envelope)));
                }
                // A database on another machine may say only now that a guard did not hold.
                Err(failed) => Err(failed.into()),
            },
            Ok(Outcome::Rollback(answer)) => answer,
            Err(refusal) => Err(refusal),
        };
        tx.rollback_to()?;
        (self.common.workspace, self.common.memory) = (workspace, memory);
        Ok(answer.map_err(|refusal| named(refusal, envelope)))
    }

    fn decide(
        &mut self,
        tx: &mut dyn Tx,
        envelope: &Envelope,
        target: &Target,
        shown: Option<&Shown>,
    ) -> Result<Outcome<SubmitAnswer>, Refusal> {
        let absent = Policy::Absent;
        let policy = match &mut self.policy {
            _ if !envelope.command.needs_policy() => &absent,
            Some(policy) => policy,
            none => none.insert(self.outside.policy(envelope)?),
        };
        let call = Call::begin(tx, self.outside, policy, envelope, target, &mut self.common)?;
        call.sent_by(shown).carry_out(tx)
    }
}
