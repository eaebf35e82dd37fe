//! JSON over HTTP to an address of the settings (threat 10): no redirect is followed, no proxy is used, no link-local address
//! is spoken to, and answers are bounded. The key is read anew for every call, so that a new one counts at once.

use crate::probe;
use crate::secret::{self, Secret};
use onus_core::id::{MirrorName, shown};
use onus_core::mirror::Undelivered;
use onus_core::mirror::setting::Mirror;
use onus_core::probe::Url;
use onus_core::refusal::Refusal;
use serde_json::Value as Json;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use ureq::http::{Method, Request, header};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::unversioned::transport::DefaultConnector;
use ureq::{Agent, Error};

/// An issue with a long history is large.
const ANSWER_MAX: u64 = 32 * 1024 * 1024;
const HEADERS_MAX: usize = 65_536;
/// A far end that takes longer is silent.
const PATIENCE: Duration = Duration::from_secs(30);
const CONNECT: Duration = Duration::from_secs(5);

/// How a far end wants to be shown the key.
#[derive(Debug, Clone, Copy)]
pub(super) enum KeyHeader {
    Redmine,
    /// `PRIVATE-TOKEN`.
    Gitlab,
    /// `Authorization: Bearer`, where there is a key at all.
    Bearer,
}

/// A server that the settings name.
#[derive(Debug)]
pub(super) struct FarServer<'a> {
    /// For people: `the mirror redmine`.
    pub(super) what: String,
    /// Where it is set up: `mirrors.redmine`.
    pub(super) setting: String,
    pub(super) url: &'a str,
    pub(super) insecure: bool,
    pub(super) key_env: Option<String>,
    pub(super) key_file: Option<String>,
    pub(super) root: &'a Path,
}

impl<'a> FarServer<'a> {
    pub(super) fn of_mirror(
        name: &MirrorName,
        mirror: &'a Mirror,
        root: &'a Path,
    ) -> Result<FarServer<'a>, Refusal> {
        if mirror.url.contains('?') {
            return Err(Refusal::invalid(format!("mirrors.{name}.url has a query")).hint("leave it out"));
        }
        if mirror.key_env.is_none() && mirror.key_file.is_none() {
            return Err(Refusal::invalid(format!("the mirror {name} has no key"))
                .hint(format!("set mirrors.{name}.key_env or key_file in onus.yaml")));
        }
        Ok(FarServer {
            what: format!("the mirror {name}"),
            setting: format!("mirrors.{name}"),
            url: mirror.url.trim_end_matches('/'),
            insecure: mirror.insecure,
            key_env: mirror.key_env.clone(),
            key_file: mirror.key_file.clone(),
            root,
        })
    }
}

/// Whether a host is this machine.
pub(super) fn is_near(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[derive(Debug)]
pub(super) struct Rest {
    what: String,
    url: Url,
    key_env: Option<String>,
    key_file: Option<String>,
    root: PathBuf,
    header: KeyHeader,
    agent: Option<Agent>,
}

/// What was answered: the status, and the body where it is JSON.
#[derive(Debug)]
pub(super) struct RestAnswer {
    pub(super) status: u16,
    pub(super) body: Json,
}

impl Rest {
    pub(super) fn new(server: FarServer<'_>, header: KeyHeader) -> Result<Rest, Refusal> {
        let FarServer { what, setting, url, insecure, key_env, key_file, root } = server;
        // The text is not shown: an address may be the secret.
        let url: Url = url.parse().map_err(|_: String| {
            Refusal::invalid(format!("{setting}: its address is no URL")).hint("e.g. https://redmine.example")
        })?;
        let host = url.endpoint().host();
        if url.as_str().starts_with("http://") && !is_near(host) && !insecure {
            let detail = format!("the secret of {what} would travel to {host} for everybody to read");
            return Err(Refusal::invalid(detail)
                .hint(format!("use https://, or set {setting}.insecure behind a private tunnel")));
        }
        Ok(Rest { what, url, key_env, key_file, root: root.to_owned(), header, agent: None })
    }

    fn key(&self) -> Result<Option<Secret>, Undelivered> {
        if self.key_env.is_none() && self.key_file.is_none() {
            return Ok(None);
        }
        secret::read(&self.what, self.key_env.as_deref(), self.key_file.as_deref(), &self.root)
            .map(Some)
            .map_err(|refusal| Undelivered::Away(refusal.detail))
    }

    /// The name is resolved once for a connection, and what was checked is what is connected to.
    fn agent(&mut self) -> Result<Agent, Undelivered> {
        if let Some(agent) = &self.agent {
            return Ok(agent.clone());
        }
        let addresses = probe::checked(self.url.endpoint()).map_err(Undelivered::Away)?;
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::PlatformVerifier)
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        let config = Agent::config_builder()
            .timeout_connect(Some(CONNECT))
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_response_header_size(HEADERS_MAX)
            .proxy(None)
            .tls_config(tls)
            .user_agent(concat!("onus/", env!("CARGO_PKG_VERSION")))
            .build();
        let agent = Agent::with_parts(config, DefaultConnector::default(), addresses);
        Ok(self.agent.insert(agent).clone())
    }

    pub(super) fn get(&mut self, path: &str) -> Result<RestAnswer, Undelivered> {
        self.call(&Method::GET, path, None)
    }

    /// Asks, and says what came back; what is no answer at all is told as the reason.
    pub(super) fn call(
        &mut self,
        method: &Method,
        path: &str,
        body: Option<&Json>,
    ) -> Result<RestAnswer, Undelivered> {
        self.call_with(method, path, &[], body.map(ToString::to_string))
    }

    /// The same with more headers, and with a body that is exactly these bytes.
    pub(super) fn call_with(
        &mut self,
        method: &Method,
        path: &str,
        headers: &[(&str, String)],
        body: Option<String>,
    ) -> Result<RestAnswer, Undelivered> {
        let answered = self.asked(method, path, headers, body);
        if answered.is_err() {
            // A connection that failed is not used again, and the name may have another address by now.
            self.agent = None;
        }
        answered
    }

    fn asked(
        &mut self,
        method: &Method,
        path: &str,
        headers: &[(&str, String)],
        body: Option<String>,
    ) -> Result<RestAnswer, Undelivered> {
        let (key, agent) = (self.key()?, self.agent()?);
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(key) = key {
            let key = String::from_utf8_lossy(key.reveal()).into_owned();
            request = match self.header {
                KeyHeader::Redmine => request.header("x-redmine-api-key", key),
                KeyHeader::Gitlab => request.header("private-token", key),
                KeyHeader::Bearer => request.header(header::AUTHORIZATION, format!("Bearer {key}")),
            };
        }
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let unsendable = |_| Undelivered::Away("the key or the address cannot be sent".to_owned());
        let sent = match body {
            Some(text) => agent.run(request.body(text).map_err(unsendable)?),
            None => agent.run(request.body(()).map_err(unsendable)?),
        };
        let mut response = sent.map_err(|error| unanswered(&error))?;
        let status = response.status().as_u16();
        if (300..400).contains(&status) && status != 304 {
            let to =
                response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok()).unwrap_or("");
            return Err(Undelivered::Away(format!("it redirects to {}, which is not followed", shown(to))));
        }
        let bytes = response.body_mut().with_config().limit(ANSWER_MAX).read_to_vec();
        let bytes = bytes.map_err(|error| unanswered(&error))?;
        let body = match bytes.iter().all(u8::is_ascii_whitespace) {
            true => Json::Null,
            false => serde_json::from_slice(&bytes).unwrap_or(Json::Null),
        };
        Ok(RestAnswer { status, body })
    }
}

impl RestAnswer {
    /// The body of a good answer. A refusal of exactly this is told from a far end that is out of order.
    pub(super) fn good(self, what: &str) -> Result<Json, Undelivered> {
        match self.status {
            200..=299 => Ok(self.body),
            401 => Err(Undelivered::Away(format!("{what}: the key is not accepted (401)"))),
            403 | 408 | 425 | 429 | 500.. => {
                Err(Undelivered::Away(format!("{what}: status {}{}", self.status, self.reasons())))
            }
            status => Err(Undelivered::Refused(format!("{what}: status {status}{}", self.reasons()))),
        }
    }

    /// What it says is wrong.
    fn reasons(&self) -> String {
        let mut words: Vec<String> = Vec::new();
        for name in ["errors", "error", "message"] {
            match self.body.get(name) {
                Some(Json::String(text)) => words.push(text.clone()),
                Some(Json::Array(list)) => words.extend(
                    list.iter().map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned)),
                ),
                Some(Json::Null) | None => {}
                Some(other) => words.push(other.to_string()),
            }
        }
        match words.is_empty() {
            true => String::new(),
            false => format!(": {}", onus_core::text::shortened(&words.join("; "), 500)),
        }
    }
}

fn unanswered(error: &Error) -> Undelivered {
    match error {
        Error::Timeout(ureq::Timeout::Resolve | ureq::Timeout::Connect) => {
            Undelivered::Away(format!("no connection: {error}"))
        }
        Error::Timeout(_) => Undelivered::Silent(format!("no answer in {} s", PATIENCE.as_secs())),
        error => Undelivered::Away(format!("no answer: {error}")),
    }
}

/// A text within a query.
pub(super) fn encoded(text: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    text.bytes().map(|b| if is_plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

/// The text at a place of a document; a number is its digits.
pub(super) fn text_at(document: &Json, pointer: &str) -> Option<String> {
    match document.pointer(pointer)? {
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
