//! Who may issue and revoke tokens: people (threats 4 and 5 of the rules). An agent that could mint could become anybody.

use super::person;
use crate::code::Code;
use crate::event::{Event, Stamped, TokenIssued, TokenRevoked};
use crate::facts::Caller;
use crate::id::{Handle, TokenId, WorkstationName};
use crate::refusal::{Finding, Refusal};
use crate::task::Inconsistent;
use crate::text::{LABEL_MAX, REASON_MAX, line};
use crate::time::{Millis, Timestamp};
use crate::token::{AccessToken, Principal, Random, TokenKind, TokenText, seal};
use crate::worker::{Kind, Worker};
use crate::workstation::{Workstation, WorkstationState};
use serde::{Deserialize, Serialize};

/// What an entry makes of a token. Folding the workspace's own chain with it gives the row.
pub fn evolve(before: Option<AccessToken>, entry: &Stamped) -> Result<AccessToken, Inconsistent> {
    match (&entry.event, before) {
        (Event::TokenIssued(issued), None) => Ok(AccessToken {
            id: issued.id.clone(),
            seal: issued.seal,
            kind: issued.kind,
            worker: issued.worker.clone(),
            workstation: issued.workstation.clone(),
            label: issued.label.clone(),
            created_by: entry.actor.clone(),
            created_at: entry.at,
            expires_at: issued.expires_at,
            revoked_at: None,
        }),
        (Event::TokenRevoked(_), Some(old)) if old.revoked_at.is_none() => {
            Ok(AccessToken { revoked_at: Some(entry.at), ..old })
        }
        (event, _) => Err(Inconsistent(format!("`{}` cannot follow what came before it", event.verb()))),
    }
}

/// Which row an event changes.
pub fn changed(event: &Event) -> Option<&TokenId> {
    match event {
        Event::TokenIssued(TokenIssued { id, .. }) | Event::TokenRevoked(TokenRevoked { id, .. }) => Some(id),
        _ => None,
    }
}

/// A token that somebody asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenOrder {
    /// Default: what the worker is.
    pub kind: Option<TokenKind>,
    pub worker: Option<Handle>,
    pub workstation: Option<WorkstationName>,
    pub label: Option<String>,
    /// From now on; none for a token without an end.
    pub expires_in: Option<Millis>,
}

/// The label of a token that is good for one sign-in to the board, and for nothing else.
pub const LINK: &str = "one-time link";

/// The label of the token that a browser gets for it.
pub const BOARD: &str = "board";

/// The label of a token that a person pushes with: good for that, and for no call.
pub const PUSH: &str = "push";

/// A link is followed at once, or by the person whom it was sent to within minutes.
const LINK_LASTS: Millis = Millis::minutes(10);

/// One working day.
const BOARD_LASTS: Millis = Millis::hours(12);

impl TokenOrder {
    /// A link for one sign-in of this person.
    pub fn link(worker: Handle) -> TokenOrder {
        TokenOrder {
            kind: Some(TokenKind::Person),
            worker: Some(worker),
            workstation: None,
            label: Some(LINK.to_owned()),
            expires_in: Some(LINK_LASTS),
        }
    }

    /// What a person shows to a shared repository. It stays in their clone, so it opens nothing else.
    pub fn push(worker: Handle) -> TokenOrder {
        TokenOrder {
            kind: Some(TokenKind::Person),
            worker: Some(worker),
            workstation: None,
            label: Some(PUSH.to_owned()),
            expires_in: None,
        }
    }
}

/// What an order names, as far as it is registered.
#[derive(Debug, Clone, Copy, Default)]
pub struct Named<'a> {
    pub worker: Option<&'a Worker>,
    pub workstation: Option<&'a Workstation>,
}

/// Issues a token: who did, what is recorded, and the text that is shown once.
pub fn issue(
    caller: &Caller,
    order: &TokenOrder,
    named: Named<'_>,
    now: Timestamp,
    random: &Random,
) -> Result<(Handle, TokenIssued, TokenText), Refusal> {
    let by = person(caller)?;
    if let Some(refusal) = Refusal::from_findings(findings(order, named)) {
        return Err(refusal);
    }
    let kind = kind(order, named.worker).map_err(Refusal::invalid)?;
    // Whoever could issue another person's token could become that person.
    if kind == TokenKind::Person && order.worker.as_ref() != Some(by) {
        return Err(Refusal::new(Code::NotPermitted, "people issue their own tokens, and nobody else's")
            .hint("have that person run it, or issue an agent's or a service's token"));
    }
    let text = TokenText::new(kind, random);
    let issued = TokenIssued {
        id: text.id().clone(),
        seal: seal(&text.hash()),
        kind,
        worker: order.worker.clone(),
        workstation: order.workstation.clone(),
        label: order.label.as_deref().map(str::trim).map(str::to_owned),
        expires_at: order.expires_in.map(|span| now.plus(span)),
    };
    Ok((by.clone(), issued, text))
}

/// A link for a browser's token: what ends the one and begins the other, in one step, so that it is followed once.
/// `holder` is who was found to show it.
pub fn redeem(
    holder: &Principal,
    now: Timestamp,
    random: &Random,
) -> Result<(Handle, TokenRevoked, TokenIssued, TokenText), Refusal> {
    let (Some(worker), true) = (&holder.worker, is_link(holder)) else {
        return Err(Refusal::new(
            Code::Unauthenticated,
            format!("{} is not a one-time link", holder.token_id),
        )
        .hint("paste a token on its own, or get a link: onus worker token link @you"));
    };
    let text = TokenText::new(holder.kind, random);
    let issued = TokenIssued {
        id: text.id().clone(),
        seal: seal(&text.hash()),
        kind: holder.kind,
        worker: Some(worker.clone()),
        workstation: None,
        label: Some(BOARD.to_owned()),
        expires_at: Some(now.plus(BOARD_LASTS)),
    };
    let revoked = TokenRevoked { id: holder.token_id.clone(), reason: Some("redeemed".to_owned()) };
    Ok((worker.clone(), revoked, issued, text))
}

fn is_link(holder: &Principal) -> bool {
    holder.label.as_deref() == Some(LINK)
}

/// A link makes no calls: whoever finds one in a message or a history must redeem it, which shows.
pub fn calls(holder: &Principal) -> Result<(), Refusal> {
    if holder.label.as_deref() == Some(PUSH) {
        let detail = format!("{} is good for pushing and makes no calls", holder.token_id);
        return Err(
            Refusal::new(Code::Unauthenticated, detail).hint("issue a token: onus worker token add @you")
        );
    }
    if !is_link(holder) {
        return Ok(());
    }
    Err(Refusal::new(
        Code::Unauthenticated,
        format!("{} is a one-time link, good for one sign-in", holder.token_id),
    )
    .hint("open it in a browser, or issue a token: onus worker token add @you"))
}

fn kind(order: &TokenOrder, worker: Option<&Worker>) -> Result<TokenKind, String> {
    let kind = match (order.kind, worker) {
        (Some(kind), _) => kind,
        (None, Some(worker)) => TokenKind::of(worker.kind),
        (None, None) => return Err("whose token is it?".into()),
    };
    match worker {
        None if kind == TokenKind::Service => Ok(kind),
        None => Err(format!("a token of kind {} needs its worker", kind.name())),
        Some(worker) if kind.fits(worker.kind) => Ok(kind),
        Some(Worker { handle, kind: Kind::Human, .. }) => {
            Err(format!("{handle} is a person: no {} speaks in their name", kind.name()))
        }
        Some(worker) => Err(format!("{} is an agent: its token is no person's", worker.handle)),
    }
}

fn findings(order: &TokenOrder, named: Named<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    if let (Some(handle), None) = (&order.worker, named.worker) {
        found.push(
            Finding::new(Code::UnknownName, format!("{handle} is not registered")).hint("onus worker list"),
        );
    } else if let Err(detail) = kind(order, named.worker) {
        let hint = match order.label.as_deref() {
            Some(LINK) => "a link is a person's own: onus worker token link @you",
            _ => "--kind person, agent or service",
        };
        found.push(Finding::new(Code::InvalidInput, detail).hint(hint));
    }
    if let Some(name) = &order.workstation {
        let is_there = named.workstation.is_some_and(|found| found.state != WorkstationState::Retired);
        if !is_there {
            let detail = format!("{name} is not registered");
            found.push(Finding::new(Code::UnknownName, detail).hint("onus workstation list"));
        }
        if order.kind == Some(TokenKind::Service) {
            found.push(Finding::new(Code::InvalidInput, "a service works nowhere: it has no workstation"));
        }
    }
    if let Some(Err(detail)) = order.label.as_deref().map(|label| line("the label", label, LABEL_MAX)) {
        found.push(Finding::new(Code::InvalidInput, detail));
    }
    if order.expires_in.is_some_and(|span| span.0 <= 0) {
        found.push(Finding::new(Code::InvalidInput, "the token would have expired already"));
    }
    found
}

/// Who pushes with a token: a person, in their own name. A link is none that could be shown twice.
pub fn pushes(holder: &Principal) -> Result<Handle, Refusal> {
    match (&holder.worker, holder.kind) {
        (Some(worker), TokenKind::Person) if !is_link(holder) => Ok(worker.clone()),
        _ => Err(Refusal::new(
            Code::NotPermitted,
            format!("{} is no person's token: agents push with their lease", holder.token_id),
        )
        .hint("push from the workstation where you hold the task")),
    }
}

/// Any person may revoke any token: a leak is everybody's business.
pub fn revoke(
    caller: &Caller,
    token: &AccessToken,
    reason: Option<&str>,
) -> Result<(Handle, TokenRevoked), Refusal> {
    let by = person(caller)?.clone();
    let reason = reason.map(|text| line("the reason", text, REASON_MAX)).transpose();
    let reason = reason.map_err(Refusal::invalid)?;
    match token.revoked_at {
        None => Ok((by, TokenRevoked { id: token.id.clone(), reason })),
        Some(at) => {
            Err(Refusal::new(Code::WrongState, format!("the token {} was revoked at {at}", token.id))
                .hint("onus worker token list"))
        }
    }
}
