//! What a kind of token can carry, decided for every command before any rule about the task is asked.

use super::{Principal, TokenKind};
use crate::code::Code;
use crate::command::{Command, Envelope, Warrant};
use crate::refusal::Refusal;

/// What a command takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Power {
    /// To ask for work.
    Ask,
    /// To do it, and to speak about it.
    Work,
    /// A person's word.
    Decide,
}

/// Whether the token may carry this call at all. Called by every networked front end before a command is submitted.
pub fn permits(principal: &Principal, envelope: &Envelope) -> Result<(), Refusal> {
    carried(principal, envelope).map_err(|refusal| match &envelope.task {
        Some(task) => refusal.task(task),
        None => refusal,
    })
}

fn carried(principal: &Principal, envelope: &Envelope) -> Result<(), Refusal> {
    let name = envelope.command.name();
    if envelope.actor != principal.worker {
        let detail = match &principal.worker {
            Some(own) => format!("the token speaks for {own} and nobody else"),
            None => "the token speaks for nobody: it may only read".to_owned(),
        };
        return Err(not_permitted(detail));
    }
    match (principal.kind, power(principal, &envelope.command)) {
        (TokenKind::Person, _) | (TokenKind::Agent, Power::Ask | Power::Work) => {}
        (TokenKind::Service, Power::Ask) => {}
        (TokenKind::Agent | TokenKind::Service, Power::Decide) => {
            let by_force = if is_forced(&envelope.command) { " by force" } else { "" };
            return Err(people_only(principal, &format!("{name}{by_force}")));
        }
        (TokenKind::Service, Power::Work) => return works(principal, name),
    }
    let Some(only) = &principal.workstation else {
        return Ok(());
    };
    match &envelope.command {
        Command::Claim { workstation, .. } | Command::Takeover { workstation, .. }
            if workstation.as_ref() != Some(only) =>
        {
            Err(not_permitted(format!("the token is good for work in {only} only")))
        }
        _ => Ok(()),
    }
}

/// Whether the token may carry what changes the workspace itself: workers, workstations, tokens, approvals, the ledger.
pub fn administers(principal: &Principal) -> Result<(), Refusal> {
    match principal.kind {
        TokenKind::Person => Ok(()),
        TokenKind::Agent | TokenKind::Service => Err(people_only(principal, "administer")),
    }
}

/// Whether the token may carry a judgement about finished work: the rules then say whether its worker is a judge.
pub fn judges(principal: &Principal) -> Result<(), Refusal> {
    match principal.kind {
        TokenKind::Person | TokenKind::Agent => Ok(()),
        TokenKind::Service => Err(people_only(principal, "judge finished work")),
    }
}

/// Whether the token belongs to a worker; a token without one may only read.
pub fn speaks(principal: &Principal) -> Result<(), Refusal> {
    match principal.worker {
        Some(_) => Ok(()),
        None => Err(not_permitted("the token speaks for nobody: it may only read".to_owned())),
    }
}

/// Whether the token may carry work on a task at all: what exactly it takes is asked once the command is read.
pub fn works(principal: &Principal, what: &str) -> Result<(), Refusal> {
    speaks(principal)?;
    match principal.kind {
        TokenKind::Person | TokenKind::Agent => Ok(()),
        TokenKind::Service => Err(not_permitted(format!("a service may ask and read, and not {what}"))),
    }
}

/// Whether the token may tell what it saw of a workstation: the rules then say whether it is its worker's place.
pub fn reports(principal: &Principal) -> Result<(), Refusal> {
    match principal.kind {
        TokenKind::Person | TokenKind::Agent => Ok(()),
        TokenKind::Service => Err(not_permitted(
            "a service may ask and read, and not report on workstations or clones".to_owned(),
        )),
    }
}

fn power(principal: &Principal, command: &Command) -> Power {
    if is_forced(command) {
        return Power::Decide;
    }
    match command {
        Command::Add { archived: None, .. } => Power::Ask,
        Command::Claim { assignee: Some(other), .. } if principal.worker.as_ref() != Some(other) => {
            Power::Decide
        }
        // An agent proposes checks and requests exceptions, and a verifier reopens: the rules about the task have the
        // last word on these.
        Command::Claim { .. }
        | Command::Takeover { .. }
        | Command::Release { .. }
        | Command::Complete { .. }
        | Command::Renew { .. }
        | Command::Block { .. }
        | Command::Unblock
        | Command::Note { .. }
        | Command::Say { .. }
        | Command::Read { .. }
        | Command::Comment { .. }
        | Command::Handoff { .. }
        | Command::AddCheck { .. }
        | Command::RecordCheck { .. }
        | Command::Review { .. }
        | Command::Tick { .. }
        | Command::Reopen { .. }
        | Command::Edit { .. }
        | Command::AddDependency { .. }
        | Command::RequestException { .. }
        | Command::Merge { .. }
        | Command::RequestReview { .. }
        | Command::Adopt { .. }
        | Command::Salvage { .. }
        | Command::StartSession
        | Command::StopSession
        | Command::RecordUsage { .. }
        | Command::CloseOutput { .. } => Power::Work,
        Command::Add { archived: Some(_), .. }
        | Command::ApproveCheck { .. }
        | Command::RemoveCheck { .. }
        | Command::Drop { .. }
        | Command::RemoveDependency { .. }
        | Command::ApproveException { .. }
        | Command::CorrectSession { .. } => Power::Decide,
    }
}

fn is_forced(command: &Command) -> bool {
    matches!(
        command,
        Command::Claim { warrant: Warrant::Forced { .. }, .. }
            | Command::Takeover { warrant: Warrant::Forced { .. }, .. }
            | Command::Release { warrant: Warrant::Forced { .. }, .. }
            | Command::Complete { warrant: Warrant::Forced { .. }, .. }
    )
}

fn people_only(principal: &Principal, what: &str) -> Refusal {
    let kind = principal.kind.name();
    Refusal::new(Code::HumanRequired, format!("a token of kind {kind} can never carry this: {what}"))
        .hint("ask a person")
}

fn not_permitted(detail: String) -> Refusal {
    Refusal::new(Code::NotPermitted, detail).hint("onus worker token list tells what a token is for")
}
