//! Asks that arrive from other systems: believed by their signature, then asked for like any other (mission A2).

mod email;

pub use email::email;

use crate::Onus;
use crate::submit::{Receipt, ReceiptKind};
use crate::view::{TaskView, dropped};
use onus_core::code::Code;
use onus_core::command::{Command, Envelope};
use onus_core::id::{ChannelName, RequestId, shown};
use onus_core::intake::channel::{self, Channel, Delivery, Headers, Reading};
use onus_core::refusal::Refusal;
use onus_core::task::Spec;
use onus_host::secret;
use onus_store::load;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The answer to a delivery.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct IntakeView {
    /// `created`, `existing`, or `ignored` where nothing was asked for.
    pub outcome: String,
    pub task: Option<TaskView>,
    /// Why it was ignored, or what became of the task of an ask that came before.
    pub detail: Option<String>,
}

impl IntakeView {
    fn existing(receipt: &Receipt) -> IntakeView {
        let task = Some(TaskView::from(&receipt.task));
        IntakeView { outcome: "existing".into(), task, detail: dropped(receipt) }
    }
}

impl From<&Receipt> for IntakeView {
    fn from(receipt: &Receipt) -> IntakeView {
        let outcome = if receipt.kind == ReceiptKind::Existing { "existing" } else { "created" };
        let task = Some(TaskView::from(&receipt.task));
        IntakeView { outcome: outcome.into(), task, detail: dropped(receipt) }
    }
}

/// What a delivery leads to.
#[derive(Debug)]
pub enum Arrival {
    /// To be submitted.
    Ask(Box<Envelope>),
    /// Nothing has to be written.
    Told(Box<IntakeView>),
}

impl Onus {
    /// The headers that a channel's deliveries have.
    pub fn headers_of(&self, name: &str) -> Result<Headers, Refusal> {
        self.channel(name).map(|(_, channel)| channel.preset.headers())
    }

    /// Believes a delivery or not, before anything of it is read, and says what it leads to.
    pub fn receive(&mut self, name: &str, delivery: &Delivery<'_>) -> Result<Arrival, Refusal> {
        let (name, channel) = self.channel(name)?;
        let what = format!("the channel {name}");
        let root = self.place.repo.as_ref().and_then(|repo| repo.root.clone());
        let root = root.unwrap_or_else(|| self.place.cwd.clone());
        let (variable, file) = (channel.secret_env.as_deref(), channel.secret_file.as_deref());
        channel::authentic(secret::read(&what, variable, file, &root)?.reveal(), delivery)?;
        let request = channel::request(&name, delivery).map_err(Refusal::invalid)?;
        match channel::read(&name, &channel, delivery)? {
            Reading::Nothing(why) => {
                let (outcome, detail) = ("ignored".to_owned(), Some(why.to_owned()));
                Ok(Arrival::Told(Box::new(IntakeView { outcome, task: None, detail })))
            }
            Reading::Ask(spec) => self.asked(&name, &channel, request, spec),
        }
    }

    fn asked(
        &mut self,
        name: &ChannelName,
        channel: &Channel,
        request: RequestId,
        spec: Box<Spec>,
    ) -> Result<Arrival, Refusal> {
        let handle = channel.worker(name)?;
        let actor = channel.spokesman(name, self.ask(|tx| load::worker(tx, handle))?)?;
        if let Some(Ok(receipt)) = self.replayed(Some(&actor), &request)?
            && receipt.task.spec.origin == spec.origin
        {
            return Ok(Arrival::Told(Box::new(IntakeView::existing(&receipt))));
        }
        Ok(Arrival::Ask(Box::new(Envelope {
            request,
            actor: Some(actor),
            token: None,
            task: None,
            project: channel.project.clone(),
            base: None,
            command: Command::Add { spec, depends_on: BTreeSet::new(), archived: None, arrival: None },
        })))
    }

    fn channel(&self, name: &str) -> Result<(ChannelName, Channel), Refusal> {
        let parsed = name.parse::<ChannelName>().ok();
        let found = parsed.and_then(|name| {
            let channel = self.settings.intake.channels.get(&name).cloned();
            channel.map(|channel| (name, channel))
        });
        found.ok_or_else(|| {
            Refusal::new(Code::UnknownName, format!("there is no channel {}", shown(name)))
                .hint("set it up in onus.yaml: intake.channels.NAME")
        })
    }
}
