//! Who may ask, and how often. A question is answered to whoever the store says is there now. A command is made for the
//! caller that is remembered, and its token is judged in the transaction that carries it out: memory permits nothing, it
//! saves each command a question of its own.

use crate::allowance::Share;
use crate::auth;
use crate::route::{Asked, Next, Route};
use crate::serve::Server;
use crate::store::Store;
use axum::http::HeaderMap;
use onus_app::landing::{LandedAnswer, LandingOrder};
use onus_app::submit::{Receipt, ReceiptKind, Target};
use onus_app::token::{Shown, parse};
use onus_app::weight::Weight;
use onus_core::code::Code;
use onus_core::command::Envelope;
use onus_core::hash::Digest;
use onus_core::id::RequestId;
use onus_core::refusal::Refusal;
use onus_core::token::{Principal, TokenText};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// So many are remembered. A team has fewer; when it has not, they are asked for again.
const REMEMBERED: usize = 4_096;

/// Whom tokens were good for when they were last shown, by the hash of their text, which opens nothing.
#[derive(Debug, Default)]
pub(crate) struct Bearers {
    known: Mutex<HashMap<Digest, Principal>>,
}

impl Bearers {
    /// Whether the token was good when it was last shown.
    pub(crate) fn knows(&self, text: &TokenText) -> bool {
        self.known().contains_key(&text.hash())
    }

    fn recall(&self, text: &TokenText) -> Option<Principal> {
        self.known().get(&text.hash()).cloned()
    }

    fn remember(&self, text: &TokenText, principal: &Principal) {
        let mut known = self.known();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(text.hash(), principal.clone());
    }

    fn forget(&self, text: &TokenText) {
        self.known().remove(&text.hash());
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Digest, Principal>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who asked, and what that leads to.
pub(crate) type Made = (Shown, Result<Next, Refusal>);

impl Server {
    /// The bearer of the token, if it may ask for so much now.
    pub(crate) fn admit(&self, store: &mut Store, presented: &str, weight: Weight) -> Result<Shown, Refusal> {
        let text = parse(presented)?;
        let principal = match store.authenticate(presented) {
            Ok(principal) => principal,
            Err(refusal) => {
                self.bearers.forget(&text);
                return Err(refusal);
            }
        };
        self.bearers.remember(&text, &principal);
        self.pace(&principal, weight)?;
        Ok(Shown { text, principal, sender: None })
    }

    /// Whose share of the server a request takes: that of the bearer of a token that was good before, or of all strangers.
    pub(crate) fn share_of(&self, headers: &HeaderMap) -> Share {
        let presented = auth::presented(headers).ok().or_else(|| auth::kept(headers));
        let text = presented.and_then(|presented| parse(&presented).ok());
        let known = text.filter(|text| self.bearers.knows(text));
        known.map_or(Share::Strangers, |text| Share::Bearer(text.hash()))
    }

    /// The commands that a request leads to. Whoever is remembered need not be asked for, since the commands are judged by
    /// the token once more; where there are none the caller gets its answer here, and must be known for certain.
    pub(crate) fn commanded(
        &self,
        store: &mut Store,
        route: &Route,
        text: TokenText,
        make: impl FnOnce(Shown) -> Asked,
    ) -> Result<Made, Refusal> {
        let remembered = self.bearers.recall(&text);
        let is_certain = remembered.is_none();
        let principal = match remembered {
            Some(principal) => principal,
            None => self.recognise(store, &text)?,
        };
        self.pace(&principal, Weight::Light)?;
        let mut asked = make(Shown { text, principal, sender: None });
        let mut next = (route.act)(store, &asked);
        if !is_certain && !matches!(next, Ok(Next::Submit { .. })) {
            asked.shown.principal = self.recognise(store, &asked.shown.text)?;
            next = (route.act)(store, &asked);
        }
        Ok((asked.shown, next))
    }

    /// Whom a token was good for when it was last shown, or is now. It permits no more than to go on asking.
    pub(crate) async fn bearer(self: &Arc<Self>, text: TokenText) -> Result<Principal, Refusal> {
        match self.bearers.recall(&text) {
            Some(principal) => Ok(principal),
            None => {
                let guard = Arc::clone(self);
                self.readers
                    .ask(&Share::Strangers, Weight::Light, move |store| guard.recognise(store, &text))
                    .await
            }
        }
    }

    /// The bearer of a token that is shown for commands.
    fn recognise(&self, store: &mut Store, text: &TokenText) -> Result<Principal, Refusal> {
        let principal = store.recognise(text)?;
        self.bearers.remember(text, &principal);
        Ok(principal)
    }

    /// Has commands carried out for the bearer of a token.
    pub(crate) async fn submitted(
        &self,
        calls: Vec<(Envelope, Target)>,
        shown: Option<Shown>,
    ) -> Result<Vec<Result<Receipt, Refusal>>, Refusal> {
        let text = shown.as_ref().map(|shown| shown.text.clone());
        let grants: Vec<Option<RequestId>> = match self.has_mirrors() {
            true => {
                calls.iter().map(|(call, _)| call.command.is_grant().then(|| call.request.clone())).collect()
            }
            false => Vec::new(),
        };
        let mut answers = self.writer.submit(calls, shown).await?;
        for (answer, request) in answers.iter_mut().zip(grants) {
            if let (Ok(receipt), Some(request)) = (&*answer, request) {
                *answer = self.told_of_grant(request, receipt.clone()).await;
            }
        }
        let is_denied = |answer: &Result<Receipt, Refusal>| matches!(answer, Err(refusal) if refusal.code == Code::Unauthenticated);
        if let Some(text) = text.filter(|_| answers.iter().any(is_denied)) {
            self.bearers.forget(&text);
        }
        Ok(answers)
    }

    /// Lands for the bearer of a token.
    pub(crate) async fn landed(
        &self,
        order: Box<LandingOrder>,
        shown: Shown,
    ) -> Result<LandedAnswer, Refusal> {
        let text = shown.text.clone();
        let landed = self.landings.land(order, shown).await;
        if matches!(&landed, Err(refusal) if refusal.code == Code::Unauthenticated) {
            self.bearers.forget(&text);
        }
        landed
    }

    /// A grant, once the mirrors were told of it that must be before anybody begins.
    async fn told_of_grant(&self, request: RequestId, receipt: Receipt) -> Result<Receipt, Refusal> {
        if receipt.kind != ReceiptKind::Changed {
            return Ok(receipt);
        }
        self.readers
            .ask(&Share::Strangers, Weight::Heavy, move |store| match store.requires_mirrors() {
                true => store.tell_of_grant(&request, receipt),
                false => Ok(receipt),
            })
            .await
    }

    /// Whether the bearer of a token does not ask too often.
    fn pace(&self, principal: &Principal, weight: Weight) -> Result<(), Refusal> {
        self.paced(
            principal.token_id.as_str(),
            weight,
            "wait, then repeat the call with the same Idempotency-Key",
            || {
                let worker = principal.worker.as_ref().map(ToString::to_string);
                worker.unwrap_or_else(|| principal.token_id.to_string())
            },
        )
    }

    /// Refuses a caller, counted under `key`, that asks too often. `who` is only asked for the refusal's text.
    pub(crate) fn paced(
        &self,
        key: &str,
        weight: Weight,
        hint: &str,
        who: impl FnOnce() -> String,
    ) -> Result<(), Refusal> {
        if self.rate.allows(key, weight, Instant::now()) {
            return Ok(());
        }
        let detail = format!("{} asks more often than {} times a second", who(), self.config.rate);
        Err(Refusal::new(Code::TooManyRequests, detail).hint(hint))
    }
}
