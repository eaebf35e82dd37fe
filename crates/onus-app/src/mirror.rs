//! The outbox and the intake of mirrors (mission C8): what happened is told to outside systems, and what they ask for arrives.
//!
//! The ledger is the outbox. A [`Sender`] has a lease on each mirror; it sorts new entries by task ([`sender`]), tells each
//! task's story in its order ([`story`]), and keeps after every entry how far it came. A sender that dies leaves at most one
//! entry of which nobody knows whether it was told, and the far end knows a repeat.

mod admin;
mod intake;
mod required;
mod sender;
mod story;
mod view;

pub use sender::{Round, Sender};
pub use view::{CheckedView, DiffView, MirrorView, MirrorsView, StuckDelivery, TriedView};

use crate::Onus;
use onus_core::code::Code;
use onus_core::id::{MirrorName, shown};
use onus_core::mirror::setting::Mirror;
use onus_core::refusal::Refusal;
use onus_host::mirror::FarEnd;
use onus_store::load;
use std::path::PathBuf;

impl Onus {
    /// The mirror of this name in the settings.
    fn mirror(&self, name: &MirrorName) -> Result<&Mirror, Refusal> {
        self.settings.mirrors.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.settings.mirrors.keys().map(MirrorName::as_str).collect();
            let hint = match known.is_empty() {
                true => "set one up in onus.yaml: mirrors.NAME".to_owned(),
                false => format!("there is {}", known.join(", ")),
            };
            Refusal::new(Code::UnknownName, format!("there is no mirror {}", shown(name.as_str()))).hint(hint)
        })
    }

    /// Where files lie that the settings name.
    fn settings_root(&self) -> PathBuf {
        let root = self.place.repo.as_ref().and_then(|repo| repo.root.clone());
        root.unwrap_or_else(|| self.place.cwd.clone())
    }

    fn far_end(&mut self, name: &MirrorName) -> Result<Box<dyn FarEnd>, Refusal> {
        let workspace = self.ask(|tx| load::workspace(tx))?.uid;
        onus_host::mirror::open(name, self.mirror(name)?, &workspace, &self.settings_root())
    }
}
