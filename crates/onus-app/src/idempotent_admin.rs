//! Changes of the workspace itself: who asks for one, and that a request id has one effect (invariant **once**).
//!
//! The answer to a command is told again from its task's entries ([`crate::replay`]). An answer given here is about what
//! there was then, of several kinds together, so the answer itself is kept beside the request (ADR 20).

use crate::remote::call::Call;
use crate::token::{self, Shown};
use crate::{Onus, replay, submit::unexpected};
use onus_core::facts::Caller;
use onus_core::hash::{Digest, Fields};
use onus_core::id::{Handle, RequestId};
use onus_core::refusal::Refusal;
use onus_store::port::{Driver, Outcome, Store, Tx};
use onus_store::{apply, load};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;

/// Who asks for a change of the workspace.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asker<'a> {
    pub actor: Option<&'a Handle>,
    /// The name under which the call may be repeated.
    pub request: Option<&'a RequestId>,
    /// What was shown for it: judged once more in the transaction that carries it out.
    pub shown: Option<&'a Shown>,
}

impl<'a> From<Option<&'a Handle>> for Asker<'a> {
    fn from(actor: Option<&'a Handle>) -> Asker<'a> {
        Asker { actor, ..Asker::default() }
    }
}

/// One change that somebody asks for.
pub(crate) struct Asked<'a, C> {
    pub(crate) asker: Asker<'a>,
    pub(crate) arguments: String,
    call: PhantomData<C>,
}

impl<'a> Asker<'a> {
    pub(crate) fn asks<C: Call>(self, call: &C) -> Result<Asked<'a, C>, Refusal> {
        let arguments = serde_json::to_string(call).map_err(unexpected)?;
        Ok(Asked { asker: self, arguments, call: PhantomData })
    }
}

impl<C: Call> Asked<'_, C> {
    /// What distinguishes this change from another one under the same request id.
    fn fingerprint(&self) -> Digest {
        let mut fields = Fields::new("onus-change-1");
        fields.text(self.asker.actor.map_or("", Handle::as_str)).text(C::NAME.name()).text(&self.arguments);
        fields.digest()
    }

    /// A refusal says which call it answers.
    fn named(&self, refusal: Refusal) -> Refusal {
        let request_id = refusal.request_id.or_else(|| self.asker.request.map(ToString::to_string));
        Refusal { request_id, ..refusal }
    }
}

impl Onus {
    /// Has a change carried out by whoever has the store.
    pub(crate) fn administer<'a, C: Call>(
        &mut self,
        asker: impl Into<Asker<'a>>,
        call: &C,
        act: impl FnOnce(&mut dyn Tx, &Caller) -> Result<Outcome<C::Answer>, Refusal>,
    ) -> Result<C::Answer, Refusal> {
        let (bearer, asker) = (self.bearer.clone(), asker.into());
        let asked = Asker { shown: asker.shown.or(bearer.as_ref()), ..asker }.asks(call)?;
        match self.remote_once(&asked)? {
            Some(answer) => Ok(answer),
            None => once(self.store.as_mut(), &asked, act),
        }
    }

    /// Asks whoever has the store; none where that is this very process.
    pub(crate) fn remote_once<C: Call>(
        &mut self,
        asked: &Asked<'_, C>,
    ) -> Result<Option<C::Answer>, Refusal> {
        self.send::<C>(asked.asker.request, || Ok(asked.arguments.clone()))
    }
}

/// Carries a change out in one transaction, or tells what came of it the first time.
pub(crate) fn once<C: Call, T: Serialize + DeserializeOwned>(
    store: &mut dyn Driver,
    asked: &Asked<'_, C>,
    act: impl FnOnce(&mut dyn Tx, &Caller) -> Result<Outcome<T>, Refusal>,
) -> Result<T, Refusal> {
    let done = store.write(|tx| {
        asked.asker.shown.map(|shown| token::judge(tx, shown)).transpose()?;
        let Some(request) = asked.asker.request else {
            let caller = load::caller(tx, asked.asker.actor)?;
            return act(tx, &caller);
        };
        let fingerprint = asked.fingerprint();
        if replay::earlier(tx, request, &fingerprint)?.is_some() {
            let kept = load::answer(tx, request)?.ok_or_else(|| unexpected("a change without its answer"))?;
            return Ok(Outcome::Rollback(serde_json::from_str(&kept).map_err(unexpected)?));
        }
        let caller = load::caller(tx, asked.asker.actor)?;
        match act(tx, &caller)? {
            Outcome::Commit(answer) => {
                let seq = load::workspace(tx)?.last_seq;
                let kept = serde_json::to_string(&answer).map_err(unexpected)?;
                apply::answered(tx, request, &fingerprint, seq, &kept)?;
                Ok(Outcome::Commit(answer))
            }
            unchanged @ Outcome::Rollback(_) => Ok(unchanged),
        }
    });
    done.map_err(|refusal| asked.named(refusal))
}
