//! Many commands, one commit: what a server saves is the wait for the disk.

use super::{Answer, Call, Outside, Receipt, Target, named};
use crate::Onus;
use onus_core::command::Envelope;
use onus_core::identity_map::Policy;
use onus_core::refusal::Refusal;
use onus_store::port::{Outcome, Store, Tx};

impl<S: Store> Onus<S> {
    /// Carries commands out one after the other and commits them together. A refused one undoes only itself; where the
    /// commit fails, each of them is told so, and its request id tells what became of it.
    pub fn submit_many(&mut self, calls: &[(Envelope, Target)]) -> Vec<Result<Receipt, Refusal>> {
        if let [(envelope, target)] = calls {
            return vec![self.submit(envelope, target)];
        }
        let (outside, store) = self.parts();
        let answered = store.write(|tx| {
            let mut batch = Batch { outside, policy: None, has_changed: false };
            let answers =
                calls.iter().map(|call| batch.carry_out(tx, call)).collect::<Result<Vec<_>, _>>()?;
            Ok(if batch.has_changed { Outcome::Commit(answers) } else { Outcome::Rollback(answers) })
        });
        match answered {
            Ok(answers) => answers,
            Err(failed) => {
                calls.iter().map(|(envelope, _)| Err(named(Refusal::clone(&failed), envelope))).collect()
            }
        }
    }
}

/// The commands of one transaction.
struct Batch<'a> {
    outside: Outside<'a>,
    /// Read once, after the transaction has begun: nobody can commit between its commands.
    policy: Option<Policy>,
    has_changed: bool,
}

impl Batch<'_> {
    /// The answer to one command; an error concerns them all.
    fn carry_out(
        &mut self,
        tx: &mut dyn Tx,
        (envelope, target): &(Envelope, Target),
    ) -> Result<Answer, Refusal> {
        tx.mark()?;
        match self.decide(tx, envelope, target) {
            Ok(Outcome::Commit(answer)) => {
                // A database on another machine may say only now that a guard did not hold.
                if let Err(failed) = tx.keep() {
                    tx.undo()?;
                    return Ok(Err(named(failed.into(), envelope)));
                }
                self.has_changed = true;
                Ok(answer.map_err(|refusal| named(refusal, envelope)))
            }
            Ok(Outcome::Rollback(answer)) => {
                tx.undo()?;
                Ok(answer.map_err(|refusal| named(refusal, envelope)))
            }
            Err(refusal) => {
                tx.undo()?;
                Ok(Err(named(refusal, envelope)))
            }
        }
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
        Call::begin(tx, self.outside, policy, envelope, target)?.carry_out(tx)
    }
}
