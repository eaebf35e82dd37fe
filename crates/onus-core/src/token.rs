//! Tokens: who calls over a network, and what such a caller may do (mission B7; threats 4 and 5 of the rules).
//!
//! The *kind* of a token decides: an agent's or a service's can never carry force, approval or administration, whatever
//! else the store says about its worker.

mod permits;
mod text;

pub use permits::{administers, judges, permits, reports, speaks, works};
pub use text::{Random, TokenText};

use crate::code::Code;
use crate::command::{Command, Envelope};
use crate::hash::Digest;
use crate::id::{Handle, TokenId, WorkstationName};
use crate::refusal::Refusal;
use crate::time::Timestamp;
use crate::words;
use crate::worker::{Kind, Worker};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words!(
    /// Who is behind a token.
    TokenKind {
        /// One person, with a person's powers.
        Person = "person",
        /// One agent: it works, and decides nothing that takes a person.
        Agent = "agent",
        /// A program that asks and reads, such as a form or a board.
        Service = "service",
    }
);

impl TokenKind {
    /// What a worker's token is, unless something else is asked for.
    pub const fn of(kind: Kind) -> TokenKind {
        match kind {
            Kind::Human => TokenKind::Person,
            Kind::Agent => TokenKind::Agent,
        }
    }

    /// Whether such a token can be this worker's. No service speaks with a person's voice.
    pub const fn fits(self, worker: Kind) -> bool {
        matches!(
            (self, worker),
            (TokenKind::Person, Kind::Human) | (TokenKind::Agent | TokenKind::Service, Kind::Agent)
        )
    }
}

/// What the record says about a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessToken {
    pub id: TokenId,
    /// See [`seal`].
    pub seal: Digest,
    pub kind: TokenKind,
    /// In whose name it speaks; none for a service that only reads.
    pub worker: Option<Handle>,
    /// Where alone it may be given work.
    pub workstation: Option<WorkstationName>,
    pub label: Option<String>,
    pub created_by: Handle,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

/// What the ledger knows of a token: the digest of the hash that the store keeps.
pub fn seal(hash: &Digest) -> Digest {
    Digest::of(&hash.0)
}

words!(
    /// Whether a token still opens anything.
    TokenState { Active = "active", Expired = "expired", Revoked = "revoked" }
);

impl AccessToken {
    pub fn state(&self, now: Timestamp) -> TokenState {
        match (self.revoked_at, self.expires_at) {
            (Some(_), _) => TokenState::Revoked,
            (None, Some(end)) if now >= end => TokenState::Expired,
            _ => TokenState::Active,
        }
    }

    /// Who calls with it, if it is good: `hash` is what the store keeps of it, `worker` the row of whom it names.
    pub fn admit(
        &self,
        presented: &TokenText,
        hash: &Digest,
        worker: Option<&Worker>,
        now: Timestamp,
    ) -> Result<Principal, Refusal> {
        if presented.hash() != *hash || presented.kind() != self.kind {
            return Err(unknown());
        }
        match self.state(now) {
            TokenState::Active => {}
            TokenState::Expired => return Err(refused(format!("the token {} has expired", self.id))),
            TokenState::Revoked => return Err(refused(format!("the token {} was revoked", self.id))),
        }
        // A row that somebody changed behind the rules must not lend an agent's token a person's powers.
        let fits = match (&self.worker, worker) {
            (None, _) => self.kind == TokenKind::Service,
            (Some(handle), Some(found)) => found.handle == *handle && self.kind.fits(found.kind),
            (Some(_), None) => false,
        };
        if !fits {
            return Err(refused(format!("the token {} does not fit its worker", self.id)));
        }
        Ok(Principal {
            token_id: self.id.clone(),
            kind: self.kind,
            worker: self.worker.clone(),
            workstation: self.workstation.clone(),
            label: self.label.clone(),
        })
    }
}

/// There is no such token, or its text is another: which of the two is nobody's business.
pub fn unknown() -> Refusal {
    refused("the token is not one of this store".to_owned())
}

fn refused(detail: String) -> Refusal {
    Refusal::new(Code::Unauthenticated, detail).hint("a person issues a new one: onus worker token add @you")
}

/// A caller whose token was found good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Principal {
    pub token_id: TokenId,
    pub kind: TokenKind,
    pub worker: Option<Handle>,
    pub workstation: Option<WorkstationName>,
    pub label: Option<String>,
}

impl Principal {
    /// A call in this caller's name: what it leaves open (who, and where) is the token's to say, and then it must be
    /// permitted.
    pub fn carry(&self, envelope: Envelope) -> Result<Envelope, Refusal> {
        let command = match envelope.command {
            Command::Claim { workstation: None, here, assignee, ttl, warrant, constraints } => {
                Command::Claim {
                    workstation: self.workstation.clone(),
                    here,
                    assignee,
                    ttl,
                    warrant,
                    constraints,
                }
            }
            Command::Takeover { workstation: None, here, ttl, reason, warrant } => {
                Command::Takeover { workstation: self.workstation.clone(), here, ttl, reason, warrant }
            }
            command => command,
        };
        let actor = envelope.actor.or_else(|| self.worker.clone());
        let envelope = Envelope { actor, command, ..envelope };
        permits(self, &envelope)?;
        Ok(envelope)
    }
}
