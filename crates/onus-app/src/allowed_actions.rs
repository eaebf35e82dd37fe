//! What a caller may do with a task now, and why not the rest: each command is rehearsed in a transaction that is rolled
//! back, so that the rules themselves answer.

use crate::Onus;
use crate::show::unknown_task;
use crate::submit::{Judge, request};
use onus_core::command::{Command, Envelope, Opinion, Warrant, WhileBlocked};
use onus_core::evidence::{Classification, Proof, ReviewVerdict};
use onus_core::id::{TaskId, WorkstationName};
use onus_core::identity_map::Policy;
use onus_core::lease::Token;
use onus_core::refusal::Refusal;
use onus_core::task::{Blocker, Task};
use onus_core::text::Text;
use onus_core::token::Principal;
use onus_core::workstation::WorkstationState;
use onus_store::port::Tx;
use onus_store::{load, registry};

/// One thing that could be done.
#[derive(Debug, Clone)]
pub struct Choice {
    pub verb: &'static str,
    /// Why not.
    pub refusal: Option<Refusal>,
}

/// A place to work, tried.
#[derive(Debug, Clone)]
pub struct PlaceChoice {
    pub workstation: WorkstationName,
    /// Why not there.
    pub refusal: Option<Refusal>,
}

/// How a task comes to a new holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taking {
    Claim,
    Takeover,
}

/// So many places are tried for one look.
const PLACES: usize = 20;

/// Stands for a text (a note, a reason) that the caller has not written yet; only the permission is asked for.
const SAID: &str = "…";

impl Onus {
    /// What the bearer of a token may do with a task. Whoever holds it is asked as if it showed its lease and completed it
    /// at the commit that was checked last; and for a place to work one that is free is tried.
    pub fn choices(&mut self, principal: &Principal, task: &TaskId) -> Result<Vec<Choice>, Refusal> {
        let tried = self.check_runs(task, 1)?.into_iter().next();
        let proof = self.stated_proof(task, tried.and_then(|run| run.evidence.ground.commit))?;
        // A map that cannot be read is the claim's trouble, and is told by it.
        let policy = self.policy().unwrap_or(Policy::Absent);
        self.judge(&policy, |judge| {
            let found = load::task(judge.tx, task)?.ok_or_else(|| unknown_task(task))?.task;
            let token = lease(judge.tx, principal, &found)?;
            let place = free_place(judge.tx)?;
            let commands = commands(place.as_ref(), &proof);
            commands
                .into_iter()
                .map(|command| choice(judge, principal, &found, token.as_ref(), command))
                .collect()
        })
    }
}

impl Onus {
    /// Where the bearer of a token could take a task: each place that is free is tried, and with a takeover first the one
    /// where the work lies.
    pub fn places_for(
        &mut self,
        principal: &Principal,
        task: &TaskId,
        taking: Taking,
    ) -> Result<Vec<PlaceChoice>, Refusal> {
        let policy = self.policy().unwrap_or(Policy::Absent);
        self.judge(&policy, |judge| {
            let found = load::task(judge.tx, task)?.ok_or_else(|| unknown_task(task))?.task;
            let left = found.assignment().filter(|_| taking == Taking::Takeover);
            let mut places: Vec<WorkstationName> =
                left.map(|held| held.workstation.clone()).into_iter().collect();
            let rows = registry::workstations(judge.tx)?.into_iter();
            let free =
                rows.filter(|row| row.holds.is_none() && row.workstation.state == WorkstationState::Ready);
            places.extend(free.map(|row| row.workstation.name).take(PLACES));
            let tried = places.into_iter().map(|workstation| {
                let command = taking.command(Some(workstation.clone()));
                let Choice { refusal, .. } = choice(judge, principal, &found, None, command)?;
                Ok(PlaceChoice { workstation, refusal })
            });
            tried.collect()
        })
    }
}

impl Taking {
    fn command(self, workstation: Option<WorkstationName>) -> Command {
        let (here, ttl, warrant) = (None, None, Warrant::Ordinary);
        match self {
            Taking::Claim => {
                Command::Claim { workstation, here, assignee: None, ttl, warrant, constraints: Vec::new() }
            }
            Taking::Takeover => {
                Command::Takeover { workstation, here, ttl, reason: Some(SAID.to_owned()), warrant }
            }
        }
    }
}

fn choice(
    judge: &mut Judge<'_>,
    principal: &Principal,
    task: &Task,
    token: Option<&Token>,
    command: Command,
) -> Result<Choice, Refusal> {
    let verb = command.name();
    let envelope = Envelope {
        request: request()?,
        actor: principal.worker.clone(),
        token: token.cloned(),
        task: Some(task.id.clone()),
        project: None,
        base: None,
        command,
    };
    let refusal = match principal.carry(envelope) {
        Ok(envelope) => judge.decide(&envelope)?.err(),
        Err(refusal) => Some(refusal),
    };
    Ok(Choice { verb, refusal })
}

/// The token of the present grant, where it is this caller's.
fn lease(tx: &mut dyn Tx, principal: &Principal, task: &Task) -> Result<Option<Token>, Refusal> {
    let own = task.assignment().filter(|held| Some(&held.assignee) == principal.worker.as_ref());
    let Some(held) = own else { return Ok(None) };
    let generation = load::workspace(tx)?.generation;
    let secret = load::granted_lease(tx, &task.id, held.epoch)?;
    Ok(secret.map(|(lease, _)| Token { generation, epoch: held.epoch, lease }))
}

fn free_place(tx: &mut dyn Tx) -> Result<Option<WorkstationName>, Refusal> {
    let mut places = registry::workstations(tx)?.into_iter();
    let free = places.find(|row| row.holds.is_none() && row.workstation.state == WorkstationState::Ready);
    Ok(free.map(|row| row.workstation.name))
}

fn commands(place: Option<&WorkstationName>, proof: &Proof) -> Vec<Command> {
    let said = || Text::new(SAID.to_owned());
    let why = || Some(SAID.to_owned());
    let opinion = Opinion {
        verdict: ReviewVerdict::Approved,
        classification: Classification::Implemented,
        commit: proof.ground.commit.clone(),
        workstation: None,
        note: None,
        comments: Vec::new(),
    };
    vec![
        Taking::Claim.command(place.cloned()),
        Taking::Takeover.command(place.cloned()),
        Command::Renew { ttl: None, process: None },
        Command::Note { text: said() },
        Command::Say { to: None, text: said() },
        Command::Block {
            on: Blocker::External(SAID.to_owned()),
            lease: WhileBlocked::KeepLease,
            note: None,
            handoff: None,
        },
        Command::Unblock,
        Command::Release { note: None, handoff: None, warrant: Warrant::Ordinary },
        Command::Complete {
            resolution: Some(said()),
            root_cause: None,
            warrant: Warrant::Ordinary,
            proof: proof.clone(),
        },
        Command::Review { opinion: Box::new(opinion) },
        Command::Reopen { reason: why() },
        Command::Drop { reason: why() },
    ]
}
