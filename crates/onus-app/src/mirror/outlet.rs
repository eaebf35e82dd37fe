//! Everybody who is told from the outbox: mirrors, the people and rooms that `notify` names, and the commands of `on`.

use crate::Onus;
use onus_core::code::Code;
use onus_core::event::Event;
use onus_core::id::{MirrorName, shown};
use onus_core::mirror::concerns_there;
use onus_core::mirror::setting::Mirror;
use onus_core::notify::setting::{HOOKS, NotifyRule, Transition};
use onus_core::notify::{Recipient, occasion};
use onus_core::refusal::Refusal;
use onus_core::settings::Settings;
use onus_host::mirror::{FarEnd, Hooks, Notifier};
use onus_store::load;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// One of them, as far as the settings describe it.
#[derive(Debug, Clone)]
pub(super) struct Outlet {
    pub(super) name: MirrorName,
    pub(super) kind: String,
    /// Of a channel the host alone: the rest of its address may be the secret. Empty where there is none.
    pub(super) url: String,
    wants: Wanted,
}

#[derive(Debug, Clone)]
enum Wanted {
    /// Each task's whole story.
    Story,
    Rules(Vec<NotifyRule>, Recipient),
    Changes(BTreeSet<Transition>),
}

/// Where an address leads, without what only its owner knows: a chat's address opens it for whoever has it.
fn host_of(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    if scheme.is_empty() { host.to_owned() } else { format!("{scheme}://{host}") }
}

impl Outlet {
    pub(super) fn wants(&self, event: &Event) -> bool {
        match &self.wants {
            Wanted::Story => concerns_there(&self.kind, event),
            Wanted::Rules(rules, to) => occasion(rules, to, event).is_some(),
            Wanted::Changes(changes) => Transition::of(event).is_some_and(|change| changes.contains(&change)),
        }
    }

    /// Whether it is told what happened before anybody sent to it.
    pub(super) fn hears_the_past(&self) -> bool {
        matches!(self.wants, Wanted::Story)
    }

    fn of_mirror(name: &MirrorName, mirror: &Mirror) -> Outlet {
        let kind = mirror.channel(name).unwrap_or("unknown").to_owned();
        Outlet { name: name.clone(), kind, url: mirror.url.clone(), wants: Wanted::Story }
    }

    fn of_recipient(settings: &Settings, to: &Recipient) -> Option<Outlet> {
        let (_, channel, _) = settings.channel_of(to)?;
        Some(Outlet {
            name: to.outlet().ok()?,
            kind: channel.kind.name().to_owned(),
            url: channel.url.as_deref().map(host_of).unwrap_or_default(),
            wants: Wanted::Rules(settings.notify.clone(), to.clone()),
        })
    }

    fn of_hooks(settings: &Settings) -> Option<Outlet> {
        let changes: BTreeSet<Transition> = settings.on.keys().copied().collect();
        let name = HOOKS.parse().ok()?;
        (!changes.is_empty()).then(|| Outlet {
            name,
            kind: "hooks".into(),
            url: String::new(),
            wants: Wanted::Changes(changes),
        })
    }
}

impl Onus {
    /// Everybody who is told, mirrors first.
    pub(super) fn outlets(&self) -> Vec<Outlet> {
        let settings = &self.settings;
        let mirrors = settings.mirrors.iter().map(|(name, mirror)| Outlet::of_mirror(name, mirror));
        let people = settings.recipients().into_iter().filter_map(|to| Outlet::of_recipient(settings, to));
        mirrors.chain(people).chain(Outlet::of_hooks(settings)).collect()
    }

    /// Whether there is anybody to tell.
    pub fn has_outlets(&self) -> bool {
        !self.outlets().is_empty()
    }

    pub fn outlet_names(&self) -> Vec<MirrorName> {
        self.outlets().into_iter().map(|outlet| outlet.name).collect()
    }

    /// The one of this name.
    pub(super) fn outlet(&self, name: &MirrorName) -> Result<Outlet, Refusal> {
        let mut all = self.outlets();
        let Some(at) = all.iter().position(|outlet| outlet.name == *name) else {
            // A channel that no rule names yet can be tried all the same.
            let to: Option<Recipient> = name.as_str().parse().ok();
            let unused = to.and_then(|to| Outlet::of_recipient(&self.settings, &to));
            return unused.ok_or_else(|| {
                let known: Vec<&str> = all.iter().map(|outlet| outlet.name.as_str()).collect();
                let hint = match known.is_empty() {
                    true => "set one up in onus.yaml: mirrors.NAME".to_owned(),
                    false => format!("there is {}", known.join(", ")),
                };
                let detail = format!("there is no mirror {}", shown(name.as_str()));
                Refusal::new(Code::UnknownName, detail).hint(hint)
            });
        };
        Ok(all.swap_remove(at))
    }

    /// Where files lie that the settings name.
    pub(crate) fn settings_root(&self) -> PathBuf {
        let root = self.place.repo.as_ref().and_then(|repo| repo.root.clone());
        root.unwrap_or_else(|| self.place.cwd.clone())
    }

    pub(super) fn far_end(&mut self, name: &MirrorName) -> Result<Box<dyn FarEnd>, Refusal> {
        let outlet = self.outlet(name)?;
        let workspace = self.ask(|tx| load::workspace(tx))?.uid;
        let root = self.settings_root();
        if let Some(mirror) = self.settings.mirrors.get(name) {
            return onus_host::mirror::open(name, mirror, &workspace, &root);
        }
        let Wanted::Rules(rules, to) = outlet.wants else {
            return Ok(Box::new(Hooks::new(self.settings.on.clone(), root)));
        };
        let worker = match &to {
            Recipient::Person(person) => self.ask(|tx| load::worker(tx, person))?,
            Recipient::Channel(_) => None,
        };
        let unset = || Refusal::invalid(format!("nobody says how {to} is told"));
        let (channel_name, channel, person) = self.settings.channel_of(&to).ok_or_else(unset)?;
        Ok(Box::new(Notifier {
            rules,
            name: channel_name.clone(),
            channel: channel.clone(),
            person: person.cloned(),
            zone: worker.map_or_else(|| "UTC".to_owned(), |worker| worker.tz),
            workspace,
            root,
            failed: None,
            to,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_part_of_an_address_is_told_to_nobody() {
        for (url, told) in [
            ("https://hooks.slack.com/services/T0/B0/secret", "https://hooks.slack.com"),
            ("https://me:secret@ntfy.example:8443/alarms?auth=secret", "https://ntfy.example:8443"),
            ("smtps://mail.example", "smtps://mail.example"),
        ] {
            assert_eq!(host_of(url), told);
        }
    }
}
