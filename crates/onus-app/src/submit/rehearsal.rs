//! Claims that are decided by the real rules and then rolled back, to tell what would happen.

use super::{Call, Common, Outside, SubmitAnswer, Target, fresh, unexpected};
use crate::Onus;
use onus_core::command::{Command, Envelope, Warrant};
use onus_core::decide::{Decision, decide};
use onus_core::event::Event;
use onus_core::id::{Handle, RequestId, TaskId, WorkstationName};
use onus_core::identity_map::Policy;
use onus_core::refusal::{Finding, Refusal};
use onus_core::task::Route;
use onus_store::load;
use onus_store::port::{Outcome, Store, Tx};

/// A claim that nobody repeats: each has a name of its own.
pub(crate) fn claim(
    actor: Option<&Handle>,
    task: &TaskId,
    assignee: Option<&Handle>,
    workstation: Option<&WorkstationName>,
) -> Result<Envelope, Refusal> {
    Ok(Envelope {
        request: request()?,
        actor: actor.cloned(),
        token: None,
        task: Some(task.clone()),
        project: None,
        base: None,
        command: Command::Claim {
            workstation: workstation.cloned(),
            here: None,
            assignee: assignee.cloned(),
            ttl: None,
            warrant: Warrant::Ordinary,
            constraints: Vec::new(),
        },
    })
}

pub(crate) fn request() -> Result<RequestId, Refusal> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(unexpected)?;
    uuid::Builder::from_random_bytes(random).into_uuid().to_string().parse().map_err(unexpected)
}

/// A transaction that is rolled back at its end; until then its claims see each other.
pub(crate) struct Rehearsal<'a> {
    pub(crate) tx: &'a mut dyn Tx,
    outside: Outside<'a>,
    /// Read once: whoever plays the claims for good reads it anew.
    policy: &'a Policy,
}

impl Onus {
    pub(crate) fn rehearse<T>(
        &mut self,
        policy: &Policy,
        play: impl FnOnce(&mut Rehearsal<'_>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let (outside, store) = self.parts();
        store.write(|tx| play(&mut Rehearsal { tx, outside, policy }).map(Outcome::Rollback))
    }

    /// Answers a question about claims on one consistent view; nothing is locked.
    pub(crate) fn judge<T>(
        &mut self,
        policy: &Policy,
        question: impl FnOnce(&mut Judge<'_>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let (outside, store) = self.parts();
        store.read(|tx| Ok(question(&mut Judge { tx, outside, policy })))?
    }
}

impl Rehearsal<'_> {
    /// Carries the command out, as far as this transaction goes.
    pub(crate) fn submit(&mut self, envelope: &Envelope) -> Result<SubmitAnswer, Refusal> {
        let mut common = Common::load(self.tx, [(envelope, &Target::Named)].into_iter(), std::iter::empty())?;
        let mut call =
            Call::begin(self.tx, self.outside, self.policy, envelope, &Target::Named, &mut common)?;
        match call.carry_out(self.tx)? {
            Outcome::Commit(answer) | Outcome::Rollback(answer) => Ok(answer),
        }
    }
}

/// Tells what would become of single commands.
pub(crate) struct Judge<'a> {
    pub(crate) tx: &'a mut dyn Tx,
    outside: Outside<'a>,
    policy: &'a Policy,
}

impl Judge<'_> {
    /// The rule that would send the task there, or everything that stands against it.
    pub(crate) fn claim(
        &mut self,
        envelope: &Envelope,
    ) -> Result<Result<Option<Route>, Vec<Finding>>, Refusal> {
        Ok(match self.decide(envelope)? {
            Ok(Decision::Change { events, .. }) => Ok(events.into_iter().find_map(route)),
            Ok(Decision::Existing(_)) => Ok(None),
            Err(refusal) => Err(findings(refusal)),
        })
    }

    /// What the rules say to any command.
    pub(crate) fn decide(&mut self, envelope: &Envelope) -> Result<Result<Decision, Refusal>, Refusal> {
        let mut common = Common::load(self.tx, [(envelope, &Target::Named)].into_iter(), std::iter::empty())?;
        let mut call =
            Call::begin(self.tx, self.outside, self.policy, envelope, &Target::Named, &mut common)?;
        let (now, at_work) = (call.now.wall, &mut call.common.at_work);
        let loaded = load::facts(self.tx, envelope, self.policy, now, at_work)?;
        let facts = call.facts(self.tx, envelope, loaded)?;
        Ok(decide(&facts, &envelope.command, &call.now, &fresh(&call.now)?))
    }
}

fn route(event: Event) -> Option<Route> {
    match event {
        Event::Claimed(claimed) => claimed.grant.route,
        _ => None,
    }
}

/// A refusal without findings is one itself.
pub(crate) fn findings(refusal: Refusal) -> Vec<Finding> {
    if refusal.findings.is_empty() {
        vec![Finding::new(refusal.code, refusal.detail).hinted(refusal.hint)]
    } else {
        refusal.findings
    }
}
