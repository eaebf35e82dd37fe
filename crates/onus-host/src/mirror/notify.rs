//! Channels: far ends that only hear (mirror.md). One recipient is one of them, so that a repeat for one is none for another.

mod mail;

use super::hooks::run;
use super::rest::{FarServer, KeyHeader, Rest};
use super::{FarEnd, TriedSetting};
use crate::process::Environment;
use crate::{clock, secret, zone};
use onus_core::event::Event;
use onus_core::id::MirrorName;
use onus_core::mirror::{Counterpart, Tidings, Undelivered};
use onus_core::notify::message::Message;
use onus_core::notify::setting::{ChannelKind, NotifyChannel, NotifyRule, Occasion, PersonSettings};
use onus_core::notify::signature::signature;
use onus_core::notify::{Recipient, occasion};
use onus_core::refusal::Refusal;
use onus_core::time::Timestamp;
use serde_json::Value as Json;
use std::path::PathBuf;
use ureq::http::Method;

/// What a desktop's notifier needs to find the desktop.
const DESKTOP: &[&str] = &["DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"];

/// One recipient of notifications.
#[derive(Debug)]
pub struct Notifier {
    pub to: Recipient,
    pub rules: Vec<NotifyRule>,
    pub name: MirrorName,
    pub channel: NotifyChannel,
    pub person: Option<PersonSettings>,
    /// The person's own.
    pub zone: String,
    pub workspace: String,
    pub root: PathBuf,
    /// Why the last delivery failed.
    pub failed: Option<Undelivered>,
}

impl Notifier {
    /// Where it goes at the far end: an address of mail, a topic.
    fn address(&self) -> Result<&str, Undelivered> {
        let own = self.person.as_ref().and_then(|person| person.address.as_deref());
        own.or(self.channel.to.as_deref()).ok_or_else(|| {
            Undelivered::Refused(format!(
                "nobody says where in {} {} is told: set an address",
                self.name, self.to
            ))
        })
    }

    /// The address of the server, read anew: it may be the secret.
    fn url(&self) -> Result<String, Undelivered> {
        if let Some(url) = &self.channel.url {
            return Ok(url.clone());
        }
        let (variable, file) = (self.channel.url_env.as_deref(), self.channel.url_file.as_deref());
        let read = secret::read_any(&format!("the address of {}", self.name), variable, file, &self.root);
        let read = read.map_err(|refusal| Undelivered::Away(refusal.detail))?;
        Ok(String::from_utf8_lossy(read.reveal()).into_owned())
    }

    fn secret(&self) -> Result<secret::Secret, Undelivered> {
        let (variable, file) = (self.channel.secret_env.as_deref(), self.channel.secret_file.as_deref());
        let read = secret::read_any(&format!("the channel {}", self.name), variable, file, &self.root);
        read.map_err(|refusal| Undelivered::Away(refusal.detail))
    }

    fn post(&self, headers: &[(&str, String)], body: String, is_keyed: bool) -> Result<(), Undelivered> {
        let url = self.url()?;
        let key = |key: &Option<String>| key.clone().filter(|_| is_keyed);
        let server = FarServer {
            what: format!("the channel {}", self.name),
            setting: format!("channels.{}", self.name),
            url: &url,
            insecure: self.channel.insecure,
            key_env: key(&self.channel.secret_env),
            key_file: key(&self.channel.secret_file),
            root: &self.root,
        };
        let away = |refusal: Refusal| Undelivered::Away(refusal.detail);
        let mut rest = Rest::new(server, KeyHeader::Bearer).map_err(away)?;
        rest.call_with(&Method::POST, "", headers, Some(body))?.good("told").map(drop)
    }

    fn send(&self, message: &Message) -> Result<(), Undelivered> {
        let json = |body: Json| body.to_string();
        match self.channel.kind {
            ChannelKind::Webhook => self.send_signed(message),
            ChannelKind::Slack => self.post(&[], json(message.slack()), false),
            ChannelKind::Teams => self.post(&[], json(message.teams()), false),
            ChannelKind::Ntfy => self.post(&[], json(message.ntfy(self.address()?)), true),
            ChannelKind::Smtp => self.mail(message),
            ChannelKind::Command => {
                let line = self.channel.command.as_deref().unwrap_or_default();
                run(line, &self.root, &environment(message).with("ONUS_TO", self.to.to_string()))
            }
            ChannelKind::Desktop => {
                // The body is markup there.
                let text = message.text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                let desktop = DESKTOP.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
                let environment =
                    desktop.fold(environment(message), |all, (name, value)| all.with(name, value));
                let line = r#"exec notify-send --app-name=Onus -- "$ONUS_TITLE" "$ONUS_TEXT""#;
                run(line, &self.root, &environment.with("ONUS_TEXT", text))
            }
        }
    }

    fn send_signed(&self, message: &Message) -> Result<(), Undelivered> {
        let (secret, body) = (self.secret()?, message.webhook().to_string());
        let seconds = clock::now().wall.0 / 1_000;
        let signed =
            signature(secret.reveal(), &message.id, seconds, body.as_bytes()).map_err(Undelivered::Away)?;
        let headers = [
            ("webhook-id", message.id.clone()),
            ("webhook-timestamp", seconds.to_string()),
            ("webhook-signature", signed),
        ];
        self.post(&headers, body, false)
    }

    fn sent(&mut self, message: &Message) -> Result<(), Undelivered> {
        let sent = self.send(message);
        self.failed = sent.clone().err();
        sent
    }

    fn occasion(&self, news: &Tidings) -> Option<Occasion> {
        // Nobody is told what they did themselves.
        let is_own = matches!(&self.to, Recipient::Person(person) if *person == news.actor);
        occasion(&self.rules, &self.to, &news.event).filter(|_| !is_own)
    }
}

fn environment(message: &Message) -> Environment {
    Environment::of_process()
        .with("ONUS_EVENT", message.webhook().to_string())
        .with("ONUS_EVENT_ID", message.id.as_str())
        .with("ONUS_TITLE", message.title.as_str())
        .with("ONUS_TEXT", message.text.as_str())
}

impl FarEnd for Notifier {
    fn wants(&self, event: &Event) -> bool {
        occasion(&self.rules, &self.to, event).is_some()
    }

    fn begins_now(&self) -> bool {
        true
    }

    fn deliver(&mut self, news: &Tidings, _told: &mut Counterpart) -> Result<(), Undelivered> {
        match self.occasion(news) {
            Some(when) => self.sent(&Message::of(news, when)),
            None => Ok(()),
        }
    }

    fn deliver_all(&mut self, id: &str, news: &[Tidings]) -> Result<(), Undelivered> {
        let told: Vec<(&Tidings, Occasion)> =
            news.iter().filter_map(|one| Some((one, self.occasion(one)?))).collect();
        let Some((last, _)) = told.last() else { return Ok(()) };
        let message = Message::digest(id.to_owned(), last.at, &told);
        self.sent(&message)
    }

    fn is_resting(&self, now: Timestamp) -> bool {
        let quiet = self.person.as_ref().and_then(|person| person.quiet);
        let time = zone::time_of_day(&self.zone, now).ok().and_then(|time| time.parse().ok());
        quiet.zip(time).is_some_and(|(quiet, time)| quiet.covers(time))
    }

    fn gathers_until(&self, now: Timestamp) -> Option<Timestamp> {
        let times =
            self.person.as_ref().map(|person| &person.digest[..]).filter(|times| !times.is_empty())?;
        zone::last_of(&self.zone, times, now).ok().flatten()
    }

    /// There is nothing to ask: a server that failed is left alone for a while, a command that failed was that command.
    fn is_well(&mut self) -> Result<(), Undelivered> {
        match self.channel.kind {
            ChannelKind::Command | ChannelKind::Desktop => Ok(()),
            _ => self.failed.clone().map_or(Ok(()), Err),
        }
    }

    fn check(&mut self) -> Vec<TriedSetting> {
        let now = clock::now().wall;
        let message = Message::test(format!("{}:test:{}:{}", self.workspace, self.to, now.0), now);
        let found = self.send(&message).map(|()| "a test was sent".to_owned()).map_err(super::why);
        vec![TriedSetting::new(format!("telling {} by {}", self.to, self.name), found)]
    }
}
