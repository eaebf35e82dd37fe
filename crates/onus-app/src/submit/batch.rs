//! Many commands, one commit: what a server saves is the wait for the disk.

use super::{Answer, Call, Common, Outside, Receipt, Target, named};
use crate::Onus;
use crate::memory::Memory;
use onus_core::command::Envelope;
use onus_core::identity_map::Policy;
use onus_core::refusal::Refusal;
use onus_store::error::StoreError;
use onus_store::port::{Outcome, Store, Tx};

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

impl<S: Store> Onus<S> {
    /// Carries commands out one after the other and commits them together. A refused one undoes only itself; where the
    /// commit fails, each of them is told so, and its request id tells what became of it.
    pub fn submit_many(&mut self, calls: &[(Envelope, Target)]) -> Vec<Result<Receipt, Refusal>> {
        self.submit_remembering(calls, &mut Memory::default())
    }

    /// The same for a process that stays, with its memory of all that it has submitted.
    pub fn submit_remembering(
        &mut self,
        calls: &[(Envelope, Target)],
        memory: &mut Memory,
    ) -> Vec<Result<Receipt, Refusal>> {
        if let [(envelope, target)] = calls {
            return vec![self.transact(envelope, target, memory, |outcome| outcome)];
        }
        let (outside, store) = self.parts();
        let mut kept = *memory;
        let answered = store.write(|tx| {
            let common = Common::load(tx, calls.iter().map(|(envelope, target)| (envelope, target)))?;
            let common = Common { memory: *memory, ..common };
            let mut batch = Batch { outside, policy: None, common, has_changed: false };
            let answers =
                calls.iter().map(|call| batch.carry_out(tx, call)).collect::<Result<Vec<_>, _>>()?;
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
            Err(Failed::Store(StoreError::Guard(_))) => {
                let mut alone = |envelope, target| self.transact(envelope, target, memory, |outcome| outcome);
                return calls.iter().map(|(envelope, target)| alone(envelope, target)).collect();
            }
            Err(Failed::Store(error)) => error.into(),
            Err(Failed::Refused(refusal)) => refusal,
        };
        calls.iter().map(|(envelope, _)| Err(named(Refusal::clone(&failed), envelope))).collect()
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
    /// The answer to one command; an error concerns them all.
    fn carry_out(&mut self, tx: &mut dyn Tx, call: &(Envelope, Target)) -> Result<Answer, StoreError> {
        let (envelope, target) = call;
        let (workspace, memory) = (self.common.workspace.clone(), self.common.memory);
        tx.mark()?;
        let decided = self.decide(tx, envelope, target);
        let answer = match decided {
            Ok(Outcome::Commit(answer)) => match tx.keep() {
                Ok(()) => {
                    self.has_changed = true;
                    let granted = answer.as_ref().ok().map(|receipt| &receipt.task.id);
                    self.common.ready.changed(&envelope.command, granted);
                    return Ok(answer.map_err(|refusal| named(refusal, envelope)));
                }
                // A database on another machine may say only now that a guard did not hold.
                Err(failed) => Err(failed.into()),
            },
            Ok(Outcome::Rollback(answer)) => answer,
            Err(refusal) => Err(refusal),
        };
        tx.undo()?;
        (self.common.workspace, self.common.memory) = (workspace, memory);
        Ok(answer.map_err(|refusal| named(refusal, envelope)))
    }

    fn decide(
        &mut self,
        tx: &mut dyn Tx,
        envelope: &Envelope,
        target: &Target,
    ) -> Result<Outcome<Answer>, Refusal> {
        let absent = Policy::Absent;
        let policy = match &mut self.policy {
            _ if !envelope.command.needs_policy() => &absent,
            Some(policy) => policy,
            none => none.insert(self.outside.policy(envelope)?),
        };
        Call::begin(tx, self.outside, policy, envelope, target, &mut self.common)?.carry_out(tx)
    }
}
