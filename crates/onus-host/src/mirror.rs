//! Far ends: outside systems that are told what happens here (mission C8). One file each; [`open`] has the line that names it.
//!
//! A far end is told one entry of the ledger at a time, in the order of its task's story. It may be told the same entry again,
//! after a crash or an answer that was lost: it reads before it writes, and knows a repeat by [`onus_core::mirror::mark`]
//! or by the id of the news. What Onus asked for is read back: an answer that says yes proves nothing.

mod forge;
mod hooks;
mod notify;
mod pull_request;
mod redmine;
mod rest;

pub use hooks::Hooks;
pub use notify::Notifier;
pub use pull_request::{PullOffer, PullRequest, PullRequests, PullState};

use onus_core::event::Event;
use onus_core::id::MirrorName;
use onus_core::mirror::setting::{Mirror, MirrorKind};
use onus_core::mirror::{Counterpart, Tidings, Undelivered};
use onus_core::refusal::Refusal;
use onus_core::time::Timestamp;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::Path;

/// Under which name the outbox keeps what an issue asks for, among what was read back of it.
pub const ASKED: &str = "asked";

/// An outside system, as the outbox sees it.
pub trait FarEnd: std::fmt::Debug + Send {
    /// Which entries it is told of.
    fn wants(&self, event: &Event) -> bool;

    /// Whether it begins with what happens after it was set up, instead of with the whole story.
    fn begins_now(&self) -> bool {
        false
    }

    /// Tells it one entry, or finds that it was told already. What it is to remember of the task goes into `told`.
    fn deliver(&mut self, news: &Tidings, told: &mut Counterpart) -> Result<(), Undelivered>;

    /// Whether it answers at all, and knows our key. Asked when a delivery failed: is it the delivery, or everything?
    fn is_well(&mut self) -> Result<(), Undelivered>;

    /// Tries everything that the settings name, and reads back what can be read back.
    fn check(&mut self) -> Vec<TriedSetting>;

    /// Whether it wants to be left alone now, e.g. because a person sleeps.
    fn is_resting(&self, _now: Timestamp) -> bool {
        false
    }

    /// The moment up to which everything is told in one message; `None` where each entry is told by itself.
    fn gathers_until(&self, _now: Timestamp) -> Option<Timestamp> {
        None
    }

    /// Tells several entries at once, under one id.
    fn deliver_all(&mut self, _id: &str, _news: &[Tidings]) -> Result<(), Undelivered> {
        Ok(())
    }

    /// Its issues that were new or changed since `from`, a page of them; `None` where it asks for nothing.
    fn poll(&mut self, _from: Option<&str>) -> Result<Option<Polled>, Undelivered> {
        Ok(None)
    }

    /// What it shows now of Onus's own fields; `None` where the counterpart is gone.
    fn look(&mut self, _told: &Counterpart) -> Result<Option<BTreeMap<String, String>>, Undelivered> {
        Ok(None)
    }

    /// Makes it show what it was told last: somebody changed it there.
    fn restore(&mut self, _told: &Counterpart) -> Result<(), Undelivered> {
        Ok(())
    }
}

/// One thing that `mirror check` tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriedSetting {
    pub what: String,
    /// What is there, or what is wrong.
    pub found: Result<String, String>,
}

impl TriedSetting {
    pub fn new(what: impl Into<String>, found: Result<String, String>) -> TriedSetting {
        TriedSetting { what: what.into(), found }
    }
}

/// A page of issues.
#[derive(Debug, Clone, Default)]
pub struct Polled {
    pub issues: Vec<FarIssue>,
    /// Where to go on.
    pub next: String,
    /// Whether there are more right now.
    pub more: bool,
}

/// An issue as the far end has it.
#[derive(Debug, Clone)]
pub struct FarIssue {
    pub id: String,
    pub created: String,
    /// What it asks for, in the far end's own words: what `import` reads.
    pub document: Json,
    /// What it shows of Onus's own fields.
    pub fields: BTreeMap<String, String>,
    /// Nobody asks for it any more.
    pub is_closed: bool,
}

/// What went wrong, in words.
pub(crate) fn why(failure: Undelivered) -> String {
    match failure {
        Undelivered::Away(why) | Undelivered::Silent(why) | Undelivered::Refused(why) => why,
        Undelivered::WentBack => "it has lost what it was told".to_owned(),
    }
}

/// The far end that a mirror's settings name. `workspace` is the store's own name, which its marks carry.
pub fn open(
    name: &MirrorName,
    mirror: &Mirror,
    workspace: &str,
    root: &Path,
) -> Result<Box<dyn FarEnd>, Refusal> {
    match mirror.kind(name)? {
        MirrorKind::Redmine => Ok(Box::new(redmine::Redmine::new(name, mirror, workspace, root)?)),
        kind @ (MirrorKind::Github | MirrorKind::Gitlab) => {
            Ok(Box::new(forge::Forge::new(name, kind, mirror, workspace, root)?))
        }
    }
}
