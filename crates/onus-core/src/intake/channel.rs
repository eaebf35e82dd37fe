//! Channels: how asks arrive from other systems (mission A2). What a delivery says is believed once its signature is
//! good, and then it is data: a title to read, and the key by which the ask is known there (threats 1 and 13).

use crate::code::Code;
use crate::hash::{Digest, Fields as Hashed, decode_hex};
use crate::id::{ChannelName, Handle, ProjectKey, RequestId, TaskType, shown};
use crate::refusal::Refusal;
use crate::task::{Check, CheckKind, CheckState, Priority, Spec};
use crate::text::{TITLE_MAX, is_unprintable, shortened};
use crate::unique_json::UniqueJson;
use crate::words;
use crate::worker::Worker;
use hmac::{Hmac, KeyInit, Mac};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::Sha256;

words!(
    /// Who sends, and so how a delivery is signed, named and laid out.
    Preset {
        /// `Onus-Signature`, `Onus-Delivery`, and a document with `title` and `key`.
        Generic = "generic",
        /// GitHub's issues.
        Github = "github",
    }
);

/// The kind of an ask of which nobody said one.
pub const KIND: &str = "feature";

/// One channel of `onus.yaml`. Without a secret it takes nothing in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Channel {
    #[serde(default = "generic")]
    pub preset: Preset,
    /// The environment variable that has the secret of its signatures, where `onus serve` runs.
    #[serde(default)]
    pub secret_env: Option<String>,
    /// A file that has it, instead.
    #[serde(default)]
    pub secret_file: Option<String>,
    /// The registered agent in whose name its asks are made.
    #[serde(default)]
    pub worker: Option<Handle>,
    #[serde(default)]
    pub project: Option<ProjectKey>,
    /// The type of its tasks, where a delivery does not say one.
    #[serde(default, rename = "type")]
    pub task_type: Option<TaskType>,
    /// feature, defect, chore, …
    #[serde(default)]
    pub kind: Option<String>,
    /// The priority of its tasks, where a delivery does not say one.
    #[serde(default)]
    pub priority: Option<Priority>,
    /// Where in a delivery things are, where that is not as the preset has it.
    #[serde(default)]
    pub fields: Fields,
    /// Where an ask can be read; `{key}` stands for its key: `https://tracker.example/{key}`
    #[serde(default)]
    pub url: Option<String>,
}

fn generic() -> Preset {
    Preset::Generic
}

/// Texts in which `{a.b}` stands for what a delivery has there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Fields {
    pub title: Option<String>,
    /// By what the ask is known in its own system: the same key is the same task.
    pub key: Option<String>,
    #[serde(rename = "type")]
    pub task_type: Option<String>,
    pub priority: Option<String>,
}

/// What arrived, as it arrived. Nothing of it is read before its signature was found good.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    pub signature: Option<&'a str>,
    /// The sender's own name for this delivery.
    pub id: Option<&'a str>,
    /// What it is about, where the sender says so beside the body.
    pub event: Option<&'a str>,
    pub body: &'a [u8],
}

/// What a delivery asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    Ask(Box<Spec>),
    /// It is about something else.
    Nothing(&'static str),
}

/// The names of the headers, in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers {
    pub signature: &'static str,
    pub delivery: &'static str,
    pub event: Option<&'static str>,
}

impl Preset {
    pub const fn headers(self) -> Headers {
        match self {
            Preset::Generic => {
                Headers { signature: "onus-signature", delivery: "onus-delivery", event: None }
            }
            Preset::Github => Headers {
                signature: "x-hub-signature-256",
                delivery: "x-github-delivery",
                event: Some("x-github-event"),
            },
        }
    }

    /// Title, key, type and priority.
    const fn fields(self) -> [&'static str; 4] {
        match self {
            Preset::Generic => ["{title}", "{key}", "{type}", "{priority}"],
            Preset::Github => ["{issue.title}", "{repository.full_name}#{issue.number}", "", ""],
        }
    }

    /// Whether a delivery is about an ask at all.
    fn asks(self, delivery: &Delivery<'_>, document: &Value) -> Result<(), &'static str> {
        match self {
            Preset::Generic => Ok(()),
            Preset::Github if delivery.event != Some("issues") => Err("it is about no issue"),
            // What is closed, deleted or moved there is not asked for.
            Preset::Github => match document["action"].as_str() {
                Some("opened" | "reopened" | "edited" | "labeled" | "assigned") => Ok(()),
                _ => Err("the issue is not asked for by this"),
            },
        }
    }
}

/// Whether whoever sent this knows the channel's secret: HMAC-SHA256 over the raw bytes, compared in constant time.
pub fn authentic(secret: &[u8], delivery: &Delivery<'_>) -> Result<(), Refusal> {
    let unknown = || {
        Refusal::new(Code::Unauthenticated, "the delivery is not signed with this channel's secret")
            .hint("sign the raw body: sha256=HEX of its HMAC-SHA256")
    };
    let mut presented = [0; 32];
    let hex = delivery.signature.and_then(|text| text.strip_prefix("sha256=")).ok_or_else(unknown)?;
    if !decode_hex(hex, &mut presented) {
        return Err(unknown());
    }
    let mac = Hmac::<Sha256>::new_from_slice(secret).map_err(|_| unknown())?;
    mac.chain_update(delivery.body).verify_slice(&presented).map_err(|_| unknown())
}

/// The request that a delivery is: the same one sent again has no second effect. A sender that names its deliveries not
/// is known by what it says.
pub fn request(channel: &ChannelName, delivery: &Delivery<'_>) -> Result<RequestId, String> {
    let mut fields = Hashed::new("onus-intake-1");
    fields.text(channel.as_str());
    match delivery.id {
        Some(id) => fields.text("delivery").text(id),
        None => fields.text("body").text(&Digest::of(delivery.body).to_string()),
    };
    fields.digest().to_string().parse()
}

/// What an authentic delivery asks for. The words of the ask stay where they are: a title and a key are all that is taken.
pub fn read(name: &ChannelName, channel: &Channel, delivery: &Delivery<'_>) -> Result<Reading, Refusal> {
    let UniqueJson(document) = serde_json::from_slice(delivery.body)
        .map_err(|error| Refusal::invalid(format!("the delivery: {error}")))?;
    if let Err(why) = channel.preset.asks(delivery, &document) {
        return Ok(Reading::Nothing(why));
    }
    let [title, key, task_type, priority] = channel.preset.fields();
    let Fields { title: own_title, key: own_key, task_type: own_type, priority: own_priority } =
        &channel.fields;
    let said = |own: &Option<String>, usual: &str| fill(own.as_deref().unwrap_or(usual), &document);
    let required = |what: &str, text: Option<String>| {
        text.ok_or_else(|| {
            Refusal::invalid(format!("the delivery has no {what}")).hint("intake.channels.NAME.fields")
        })
    };
    let title = required("title", said(own_title, title))?;
    let key = required("key", said(own_key, key))?;
    let origin = format!("{name}:{key}").parse().map_err(Refusal::invalid)?;
    let said_type =
        said(own_type, task_type).map(|text| text.parse()).transpose().map_err(Refusal::invalid)?;
    let said_priority = said(own_priority, priority).map(|text| text.parse()).transpose();
    let usual = channel.usual(Spec {
        origin: Some(origin),
        checks: checks(channel.preset, &document)?,
        ..Spec::titled(plain_title(&title))
    });
    Ok(Reading::Ask(Box::new(Spec {
        task_type: said_type.or_else(|| usual.task_type.clone()),
        priority: said_priority.map_err(Refusal::invalid)?.unwrap_or(usual.priority),
        ..usual
    })))
}

/// A title from elsewhere: one line of a length that fits, whatever it was.
pub fn plain_title(text: &str) -> String {
    let line: String = text.chars().map(|c| if is_unprintable(c) { ' ' } else { c }).collect();
    shortened(line.trim(), TITLE_MAX)
}

/// Commands that the sender proposes; a person approves each of them before it runs.
fn checks(preset: Preset, document: &Value) -> Result<Vec<Check>, Refusal> {
    let listed = match (preset, &document["checks"]) {
        (Preset::Github, _) | (Preset::Generic, Value::Null) => return Ok(Vec::new()),
        (Preset::Generic, Value::Array(listed)) => listed,
        (Preset::Generic, _) => return Err(Refusal::invalid("checks: a list of commands belongs here")),
    };
    let check = |command: &Value| match command.as_str() {
        Some(command) => Ok(Check {
            command: command.trim().to_owned(),
            state: CheckState::Proposed,
            kind: CheckKind::default(),
        }),
        None => Err(Refusal::invalid("checks: a list of commands belongs here")),
    };
    listed.iter().map(check).collect()
}

/// A template with every `{a.b}` replaced; none where one of them is not there, or where nothing is left.
fn fill(template: &str, document: &Value) -> Option<String> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (path, behind) = after.split_once('}')?;
        text.push_str(before);
        text.push_str(&found(path, document)?);
        rest = behind;
    }
    text.push_str(rest);
    (!text.trim().is_empty()).then_some(text)
}

fn found(path: &str, document: &Value) -> Option<String> {
    let value = path.split('.').try_fold(document, |value, name| match value {
        Value::Array(list) => list.get(name.parse::<usize>().ok()?),
        other => other.get(name),
    })?;
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

impl Channel {
    /// An ask with what the channel says about all of its asks.
    pub fn usual(&self, spec: Spec) -> Spec {
        Spec {
            task_type: self.task_type.clone(),
            kind: self.kind.clone().unwrap_or_else(|| KIND.to_owned()),
            priority: self.priority.unwrap_or_default(),
            ..spec
        }
    }

    /// Where an ask of this channel can be read. Only the web: whatever else a template says is no address for a browser.
    pub fn link(&self, key: &str) -> Option<String> {
        let url =
            self.url.as_deref().filter(|url| url.starts_with("https://") || url.starts_with("http://"))?;
        Some(url.replace("{key}", &escaped(key)))
    }

    /// What keeps the channel from taking anything in.
    pub fn worker(&self, name: &ChannelName) -> Result<&Handle, Refusal> {
        self.worker.as_ref().ok_or_else(|| {
            Refusal::new(
                Code::NotPermitted,
                format!("the channel {} asks in nobody's name", shown(name.as_str())),
            )
            .hint(format!("set intake.channels.{name}.worker to a registered agent"))
        })
    }

    /// In whose name the channel asks, of what was found under its worker's handle: an agent. What a machine sends has no
    /// person's powers.
    pub fn spokesman(&self, name: &ChannelName, found: Option<Worker>) -> Result<Handle, Refusal> {
        let handle = self.worker(name)?;
        match found {
            Some(worker) if !worker.is_human() => Ok(worker.handle),
            Some(_) => Err(Refusal::new(
                Code::NotPermitted,
                format!("{handle} is a person: the channel {name} does not speak in their name"),
            )
            .hint("name an agent in onus.yaml")),
            None => Err(Refusal::new(Code::UnknownWorker, format!("{handle} is not registered"))
                .hint(format!("onus worker add {handle} --kind agent"))),
        }
    }
}

/// A key as a part of an address: it may have slashes and a fragment, as `acme/api#12` has, but brings no markup along.
fn escaped(key: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~/#:@!+,;=".contains(c);
    let mut text = String::with_capacity(key.len());
    for c in key.chars() {
        if plain(c) {
            text.push(c);
        } else {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                text.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    text
}
