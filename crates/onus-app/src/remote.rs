//! A workspace behind a server: the calls of this crate that can travel, and how they do.
//!
//! A travelling call asks [`Onus::remote`] first; where the store is elsewhere, the server answers it with [`answer`], under
//! the identity that it knows the caller by. The table of them all is in `remote/calls.rs`. Whatever needs git or the file system stays where the working tree is and
//! is made of travelling calls. A call that does not travel is refused by the store itself.

pub(crate) mod call;
pub(crate) mod calls;

pub use call::{Class, permits};
pub use calls::{CallName, answer};

use crate::Onus;
use crate::idempotent_admin::Asker;
use crate::submit::{Receipt, ReceiptKind, Target, base_of, unexpected};
use call::Call;
use onus_core::code::Code;
use onus_core::command::{Command, Envelope};
use onus_core::id::{CommitId, Handle, ProjectKey, RequestId, TaskId, shown};
use onus_core::lease::Token;
use onus_core::refusal::Refusal;
use onus_core::task::Task;
use onus_core::text::Text;
use onus_store::port::{CallEffect, RemoteCall, Store};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How often a part of something long is asked for that the server will not give yet, and how long it is let rest in between.
const PART_ATTEMPTS: usize = 20;
const PART_REST: Duration = Duration::from_millis(200);

impl Onus {
    /// Asks whoever has the store; none where that is this very process.
    pub(crate) fn remote<C: Call>(&mut self, call: impl FnOnce() -> C) -> Result<Option<C::Answer>, Refusal> {
        self.remote_under(None, call)
    }

    /// One of many parts: a server that is told to give them too fast says so, and that is a reason to wait only.
    pub(crate) fn next_part<C: Call>(&mut self, call: impl Fn() -> C) -> Result<Option<C::Answer>, Refusal> {
        for _ in 0..PART_ATTEMPTS {
            match self.remote(&call) {
                Err(refusal) if refusal.code == Code::TooManyRequests => std::thread::sleep(PART_REST),
                answer => return answer,
            }
        }
        self.remote(call)
    }

    /// The same under a request id: it may be asked again when nobody knows whether it was heard.
    pub(crate) fn remote_under<C: Call>(
        &mut self,
        request: Option<&RequestId>,
        call: impl FnOnce() -> C,
    ) -> Result<Option<C::Answer>, Refusal> {
        self.send::<C>(request, || serde_json::to_string(&call()).map_err(unexpected))
    }

    /// The same with the arguments as they travel.
    pub(crate) fn send<C: Call>(
        &mut self,
        request: Option<&RequestId>,
        arguments: impl FnOnce() -> Result<String, Refusal>,
    ) -> Result<Option<C::Answer>, Refusal> {
        let Some(far) = self.store.remote() else {
            return Ok(None);
        };
        let named = |refusal: Refusal| Refusal {
            request_id: refusal.request_id.or_else(|| request.map(ToString::to_string)),
            ..refusal
        };
        let effect = if C::NAME.class().is_write() { CallEffect::Changes } else { CallEffect::Reads };
        let call = RemoteCall { name: C::NAME.name(), effect, arguments: arguments()?, request };
        let answer = far.call(call).map_err(named)?;
        serde_json::from_str(&answer).map(Some).map_err(|error| {
            unexpected(error).hint("the server is of another version: update onus on both sides")
        })
    }
}

impl Onus {
    /// A grant on its way to a server, with the commit that the working tree stands at: the server does not see it.
    pub(crate) fn seen(&mut self, envelope: &Envelope) -> Result<Envelope, Refusal> {
        let (Command::Claim { workstation, here, .. } | Command::Takeover { workstation, here, .. }) =
            &envelope.command
        else {
            return Ok(envelope.clone());
        };
        let place = workstation.as_ref().or(here.as_ref()).filter(|_| self.place.repo.is_some());
        let directory = place.map(|name| self.directory_of(name)).transpose()?.flatten();
        let base = directory.and_then(|directory| base_of(&directory));
        Ok(Envelope { base, ..envelope.clone() })
    }
}

/// A command on its way. Who asks is not said: the server knows that from the caller's credentials.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sent {
    request: RequestId,
    token: Option<String>,
    task: Option<TaskId>,
    project: Option<ProjectKey>,
    #[serde(default)]
    base: Option<CommitId>,
    command: Command,
    /// The command names its texts by their digests; here they are, in its order.
    texts: Vec<Option<String>>,
}

impl Sent {
    pub(crate) fn new(envelope: &Envelope) -> Sent {
        let mut command = envelope.command.clone();
        let texts = command.texts_mut().into_iter().map(|text| text.content().map(str::to_owned)).collect();
        Sent {
            request: envelope.request.clone(),
            token: envelope.token.as_ref().map(ToString::to_string),
            task: envelope.task.clone(),
            project: envelope.project.clone(),
            base: envelope.base.clone(),
            command,
            texts,
        }
    }

    /// The command in the name of who asks, if its token may carry it.
    pub(crate) fn carried_by(self, asker: Asker<'_>) -> Result<Envelope, Refusal> {
        let envelope = self.open(asker.actor)?;
        match asker.shown {
            Some(shown) => shown.principal.carry(envelope),
            None => Ok(envelope),
        }
    }

    fn open(self, actor: Option<&Handle>) -> Result<Envelope, Refusal> {
        let mut command = self.command;
        let mut slots = command.texts_mut();
        if slots.len() != self.texts.len() {
            return Err(Refusal::invalid("a command arrived without its texts"));
        }
        for (slot, text) in slots.iter_mut().zip(self.texts) {
            let text =
                text.ok_or_else(|| Refusal::invalid("a text came without its words, by its digest only"))?;
            **slot = Text::new(text);
        }
        let token = self.token.map(|text| text.parse::<Token>()).transpose().map_err(Refusal::invalid)?;
        Ok(Envelope {
            request: self.request,
            actor: actor.cloned(),
            token,
            task: self.task,
            project: self.project,
            base: self.base,
            command,
        })
    }
}

/// A task on its way: its lease is sealed, and its body travels beside it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SentTask {
    task: Task,
    body: Option<String>,
}

impl From<Task> for SentTask {
    fn from(task: Task) -> SentTask {
        let body = task.spec.body.as_ref().and_then(|body| body.content()).map(str::to_owned);
        SentTask { task, body }
    }
}

impl From<SentTask> for Task {
    fn from(SentTask { mut task, body }: SentTask) -> Task {
        if let Some(body) = body {
            task.spec.body = Some(Text::new(body));
        }
        task
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SentReceipt {
    kind: ReceiptKind,
    task: SentTask,
    token: Option<String>,
}

impl From<Receipt> for SentReceipt {
    fn from(receipt: Receipt) -> SentReceipt {
        SentReceipt {
            kind: receipt.kind,
            task: receipt.task.into(),
            token: receipt.token.map(|token| token.to_string()),
        }
    }
}

impl TryFrom<SentReceipt> for Receipt {
    type Error = Refusal;

    fn try_from(sent: SentReceipt) -> Result<Receipt, Refusal> {
        let token = sent.token.map(|text| text.parse()).transpose().map_err(unexpected)?;
        Ok(Receipt { kind: sent.kind, task: sent.task.into(), token })
    }
}

/// A command that arrived, with the task it is about.
pub fn arrived(arguments: &str, actor: Option<&Handle>) -> Result<(Envelope, Target), Refusal> {
    let calls::Submit { sent, target } = read(arguments)?;
    Ok((sent.open(actor)?, target))
}

/// The answer to a command that arrived.
pub fn receipt(receipt: Receipt) -> Result<String, Refusal> {
    write(&SentReceipt::from(receipt))
}

/// Reads arguments strictly: what nobody would look at was meant for something else.
fn read<T: DeserializeOwned>(arguments: &str) -> Result<T, Refusal> {
    let senseless = |why: String| Refusal::invalid(format!("the call makes no sense: {why}"));
    let mut deserializer = serde_json::Deserializer::from_str(arguments);
    let mut unknown = None;
    let value = serde_ignored::deserialize(&mut deserializer, |path| {
        unknown.get_or_insert_with(|| path.to_string());
    })
    .map_err(|error| senseless(error.to_string()))?;
    deserializer.end().map_err(|error| senseless(error.to_string()))?;
    match unknown {
        Some(path) => Err(senseless(format!("the field {} is not known", shown(&path)))),
        None => Ok(value),
    }
}

fn write(answer: &impl Serialize) -> Result<String, Refusal> {
    serde_json::to_string(answer).map_err(unexpected)
}
