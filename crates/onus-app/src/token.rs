//! `worker token`: issuing and revoking tokens, and judging the token that a call over a network shows.

use crate::idempotent_admin::{Asker, once};
use crate::registry::record;
use crate::remote::calls;
use crate::{Onus, submit::unexpected};
use onus_core::code::Code;
use onus_core::event::Stamped;
use onus_core::id::{Handle, TokenId, WorkstationName};
use onus_core::process::Process;
use onus_core::refusal::Refusal;
use onus_core::registry::token::{self as rules, Named, TokenOrder};
use onus_core::time::{Millis, Timestamp};
use onus_core::token::{AccessToken, Principal, Random, TokenKind, TokenState, TokenText, unknown};
use onus_store::load;
use onus_store::port::{Outcome, Store, Tx};
use onus_store::token::{self, Bearer, StoredToken};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How old the noted last use may be: noting each one would be a write for every read.
const USE_NOTED_EVERY: Millis = Millis::minutes(1);

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TokensView {
    pub tokens: Vec<TokenView>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TokenView {
    pub id: TokenId,
    pub kind: TokenKind,
    pub worker: Option<Handle>,
    pub workstation: Option<WorkstationName>,
    pub label: Option<String>,
    pub state: TokenState,
    pub created_by: Handle,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    /// To the minute.
    pub used_at: Option<Timestamp>,
}

/// A new token, with its secret: nothing tells it a second time.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct IssuedView {
    pub token: TokenView,
    pub secret: String,
}

impl std::fmt::Debug for IssuedView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IssuedView").field("token", &self.token).finish_non_exhaustive()
    }
}

/// A token that somebody shows for commands, and whom it was good for when it was last looked at.
///
/// The commands are made for that caller, and the token is judged again in the transaction that carries them out: what was
/// revoked or has expired by then changes nothing.
#[derive(Debug, Clone)]
pub struct Shown {
    pub text: TokenText,
    pub principal: Principal,
    /// The process that sent the commands, where it says so.
    pub sender: Option<Process>,
}

impl TokenView {
    fn of(token: &AccessToken, used_at: Option<Timestamp>, now: Timestamp) -> TokenView {
        TokenView {
            id: token.id.clone(),
            kind: token.kind,
            worker: token.worker.clone(),
            workstation: token.workstation.clone(),
            label: token.label.clone(),
            state: token.state(now),
            created_by: token.created_by.clone(),
            created_at: token.created_at,
            expires_at: token.expires_at,
            revoked_at: token.revoked_at,
            used_at,
        }
    }
}

impl Onus {
    /// Issues a token. Its text is in the answer and nowhere else, so a repeat of the call cannot tell it again.
    pub fn issue_token<'a>(
        &mut self,
        asker: impl Into<Asker<'a>>,
        order: &TokenOrder,
    ) -> Result<IssuedView, Refusal> {
        let asked = asker.into().asks(&calls::IssueToken { order: order.clone() })?;
        if let Some(answer) = self.remote_once(&asked)? {
            return Ok(answer);
        }
        let (random, mut secret) = (random()?, None);
        let token = once(self.store.as_mut(), &asked, |tx, caller| {
            let worker = order.worker.as_ref().map(|handle| load::worker(tx, handle)).transpose()?.flatten();
            let place = order.workstation.as_ref().map(|name| load::workstation(tx, name)).transpose()?;
            let place = place.flatten().map(|(workstation, _)| workstation);
            let named = Named { worker: worker.as_ref(), workstation: place.as_ref() };
            let now = tx.now()?.wall;
            let (by, issued, text) = rules::issue(caller, order, named, now, &random)?;
            let entry = record(tx, &by, issued)?;
            let token = rules::evolve(None, &entry).map_err(unexpected)?;
            token::insert(tx, &token, &text.hash())?;
            secret = Some(text.reveal().to_owned());
            Ok(Outcome::Commit(TokenView::of(&token, None, now)))
        })?;
        match secret {
            Some(secret) => Ok(IssuedView { token, secret }),
            None => Err(told_once(&token.id)),
        }
    }

    /// A browser's token for a one-time link, which ends with it. Followed a second time, the link is refused.
    pub fn redeem_link(&mut self, presented: &str) -> Result<IssuedView, Refusal> {
        let text = parse(presented)?;
        let random = random()?;
        self.store.write(|tx| {
            let (holder, _, now) = admit(tx, &text)?;
            let (by, revoked, issued, fresh) = rules::redeem(&holder, now, &random)?;
            let ended = record(tx, &by, revoked)?;
            token::revoke(tx, &holder.token_id, ended.at)?;
            let token = rules::evolve(None, &record(tx, &by, issued)?).map_err(unexpected)?;
            token::insert(tx, &token, &fresh.hash())?;
            let view = TokenView::of(&token, None, now);
            Ok(Outcome::Commit(IssuedView { token: view, secret: fresh.reveal().to_owned() }))
        })
    }

    /// Ends a token that was made for a browser. Any other one is its owner's to revoke.
    pub fn sign_out(&mut self, presented: &str) -> Result<(), Refusal> {
        let principal = self.authenticate(presented)?;
        if principal.label.as_deref() == Some(rules::BOARD) {
            self.revoke_token(principal.worker.as_ref(), &principal.token_id, Some("signed out"))?;
        }
        Ok(())
    }

    /// Revokes a token; the next call with it is refused.
    pub fn revoke_token<'a>(
        &mut self,
        asker: impl Into<Asker<'a>>,
        id: &TokenId,
        reason: Option<&str>,
    ) -> Result<TokenView, Refusal> {
        let call = calls::RevokeToken { id: id.clone(), reason: reason.map(str::to_owned) };
        self.administer(asker, &call, |tx, caller| {
            let found = token::find(tx, id)?.ok_or_else(|| no_token(id))?;
            let (by, revoked) = rules::revoke(caller, &found.token, reason)?;
            let entry: Stamped = record(tx, &by, revoked)?;
            let token = rules::evolve(Some(found.token), &entry).map_err(unexpected)?;
            token::revoke(tx, id, entry.at)?;
            Ok(Outcome::Commit(TokenView::of(&token, found.used_at, entry.at)))
        })
    }

    /// The tokens that were issued, the oldest first: all of them, or a worker's.
    pub fn tokens(&mut self, only: Option<&Handle>) -> Result<TokensView, Refusal> {
        if let Some(answer) = self.remote(|| calls::Tokens { only: only.cloned() })? {
            return Ok(answer);
        }
        self.ask(|tx| {
            let now = tx.now()?.wall;
            let rows = token::every(tx)?.into_iter();
            let tokens = rows.filter(|row| only.is_none() || row.token.worker.as_ref() == only);
            Ok(TokensView { tokens: tokens.map(|row| TokenView::of(&row.token, row.used_at, now)).collect() })
        })
    }

    /// Who calls with this text. Every question asks anew: what was revoked is refused at once.
    pub fn authenticate(&mut self, presented: &str) -> Result<Principal, Refusal> {
        let (principal, used_at, now) = self.bearer(&parse(presented)?)?;
        if is_worth_noting(used_at, now) {
            let noted = self.store.write(|tx| -> Result<_, Refusal> {
                token::used(tx, &principal.token_id, now)?;
                Ok(Outcome::Commit(()))
            });
            // An observation: nobody is locked out because it could not be kept.
            drop(noted);
        }
        Ok(principal)
    }

    /// Whom a token is good for that is shown for commands. Its use is noted with them.
    pub fn recognise(&mut self, text: &TokenText) -> Result<Principal, Refusal> {
        self.bearer(text).map(|(principal, ..)| principal)
    }

    /// How long the token is good for from now on, if it is; none means for ever. Nothing is noted.
    pub fn recognise_until(&mut self, text: &TokenText) -> Result<Option<Millis>, Refusal> {
        let found = self.store.read_latest(|tx| Ok(presented(tx, text)))??;
        rules::calls(&found.0)?;
        Ok(found.1)
    }

    fn bearer(&mut self, text: &TokenText) -> Result<Admitted, Refusal> {
        let admitted = self.store.read_latest(|tx| Ok(admit(tx, text)))??;
        rules::calls(&admitted.0)?;
        Ok(admitted)
    }
}

/// A typing error is found without asking the store.
pub fn parse(presented: &str) -> Result<TokenText, Refusal> {
    presented.parse().map_err(|detail: String| Refusal { detail, ..unknown() })
}

/// Judges a token in the transaction of what it is shown for, and notes its use there. Whether something was noted.
pub(crate) fn judge(tx: &mut dyn Tx, shown: &Shown) -> Result<bool, Refusal> {
    let (principal, used_at, now) = admit(tx, &shown.text)?;
    if principal != shown.principal {
        // What a token is good for never changes, so its row was changed behind the rules.
        return Err(unknown());
    }
    rules::calls(&principal)?;
    let noted = is_worth_noting(used_at, now);
    if noted {
        token::used(tx, &principal.token_id, now)?;
    }
    Ok(noted)
}

fn is_worth_noting(used_at: Option<Timestamp>, now: Timestamp) -> bool {
    used_at.is_none_or(|last| now.since(last) >= USE_NOTED_EVERY)
}

pub(crate) type Admitted = (Principal, Option<Timestamp>, Timestamp);

pub(crate) fn admit(tx: &mut dyn Tx, text: &TokenText) -> Result<Admitted, Refusal> {
    let (found, now) = token::presented(tx, text.id())?;
    let Bearer { token: StoredToken { token, hash, used_at }, worker } = found.ok_or_else(unknown)?;
    let principal = token.admit(text, &hash, worker.as_ref(), now)?;
    Ok((principal, used_at, now))
}

/// Whose token it is, and how long it is good for.
fn presented(tx: &mut dyn Tx, text: &TokenText) -> Result<(Principal, Option<Millis>), Refusal> {
    let (found, now) = token::presented(tx, text.id())?;
    let Bearer { token: StoredToken { token, hash, .. }, worker } = found.ok_or_else(unknown)?;
    let principal = token.admit(text, &hash, worker.as_ref(), now)?;
    Ok((principal, token.expires_at.map(|end| end.since(now))))
}

fn random() -> Result<Random, Refusal> {
    let mut random = Random { id: [0; 5], secret: [0; 20] };
    getrandom::fill(&mut random.id).and_then(|()| getrandom::fill(&mut random.secret)).map_err(unexpected)?;
    Ok(random)
}

fn no_token(id: &TokenId) -> Refusal {
    Refusal::new(Code::UnknownName, format!("there is no token {id}")).hint("onus worker token list")
}

fn told_once(id: &TokenId) -> Refusal {
    Refusal::new(
        Code::WrongState,
        format!("this request issued the token {id}; its secret was told once and is kept nowhere"),
    )
    .hint(format!("onus worker token revoke {id}, then issue another one with a new request id"))
}
