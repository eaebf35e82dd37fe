//! The line to a server: one question, one answer, repeated while the server comes back.

use crate::process_liveness;
use onus_core::code::Code;
use onus_core::id::shown;
use onus_core::refusal::Refusal;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use ureq::config::Config;
use ureq::http::{StatusCode, Uri};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{ConnectionDetails, Connector, DefaultConnector, NextTimeout, Transport};
use ureq::{Agent, Error};

/// An answer is bounded like everything else.
const ANSWER_MAX: u64 = 64 * 1_024 * 1_024;
/// A server that restarts is back within this time; one that is gone should not be waited for.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(100);

/// Whether a question may be asked again when nobody knows whether it was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// Asking twice is the same as asking once.
    Safe,
    /// Only when it cannot have been heard.
    Unheard,
}

pub struct ServerConnection {
    agent: Agent,
    base: String,
    token: String,
    /// Who the caller believes to be; the server refuses a token of somebody else.
    believes: Option<String>,
    patience: Duration,
}

impl std::fmt::Debug for ServerConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Line").field("base", &self.base).finish_non_exhaustive()
    }
}

enum Unanswered {
    /// The server did not hear it.
    Unheard(String),
    /// It may have.
    Unknown(String),
    /// It did, and cannot serve it now.
    Refused(Refusal),
}

impl ServerConnection {
    /// A line to the server at `url`, for whoever `token` says.
    pub fn new(url: &str, token: &str, believes: Option<&str>) -> Result<ServerConnection, Refusal> {
        let bad = || Refusal::invalid(format!("{} is no server's address", shown(url)));
        let base = url.trim_end_matches('/');
        let uri: Uri = base.parse().map_err(|_| bad())?;
        let host = uri.host().ok_or_else(bad)?;
        let clear = match uri.scheme_str() {
            Some("http") => true,
            Some("https") => false,
            _ => return Err(bad()),
        };
        if clear && !is_loopback(host) && std::env::var_os("ONUS_INSECURE_HTTP").is_none() {
            return Err(Refusal::invalid(format!("a token would travel to {host} for everybody to read"))
                .hint("use https:// (ONUS_INSECURE_HTTP=1 overrides, e.g. behind a private tunnel)"));
        }
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::PlatformVerifier)
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        let config = Agent::config_builder()
            .timeout_connect(Some(Duration::from_secs(5)))
            .timeout_global(Some(Duration::from_secs(60)))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .tls_config(tls)
            .user_agent(concat!("onus/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(ServerConnection {
            agent: Agent::with_parts(
                config,
                Approach(DefaultConnector::default()),
                Approach(DefaultResolver::default()),
            ),
            base: base.to_owned(),
            token: token.to_owned(),
            believes: believes.map(str::to_owned),
            patience: PATIENCE,
        })
    }

    /// Asks one question, under a request id where it has one. A server that is away is waited for, a little.
    pub fn call(
        &mut self,
        name: &str,
        arguments: &str,
        request: Option<&str>,
        repeat: Repeat,
    ) -> Result<String, Refusal> {
        let until = Instant::now() + self.patience;
        loop {
            let unanswered = match self.ask(name, arguments, request) {
                Ok(answer) => return answer,
                Err(unanswered) => unanswered,
            };
            let again = matches!(unanswered, Unanswered::Unheard(_)) || repeat == Repeat::Safe;
            if !again || Instant::now() + PAUSE >= until {
                return Err(self.given_up(unanswered));
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn ask(
        &self,
        name: &str,
        arguments: &str,
        request_id: Option<&str>,
    ) -> Result<Result<String, Refusal>, Unanswered> {
        let request = self
            .agent
            .post(format!("{}/v1/call/{name}", self.base))
            .header("authorization", format!("Bearer {}", self.token))
            .content_type("application/json");
        let request = match &self.believes {
            Some(worker) => request.header("onus-as", worker),
            None => request,
        };
        let request = match request_id {
            Some(id) => request.header("idempotency-key", id),
            None => request,
        };
        let request = match process_liveness::sender().ok().filter(|_| name == "submit") {
            Some(process) => request.header("onus-process", process.to_string()),
            None => request,
        };
        let mut response = request.send(arguments).map_err(|error| unanswered(&error))?;
        let status = response.status();
        let body = response.body_mut().with_config().limit(ANSWER_MAX).read_to_string();
        let body = body.map_err(|error| Unanswered::Unknown(error.to_string()))?;
        if status.is_success() {
            return Ok(Ok(body));
        }
        let refusal = serde_json::from_str(&body).unwrap_or_else(|_| stranger(&self.base, status));
        match status {
            StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
                Err(Unanswered::Refused(refusal))
            }
            _ => Ok(Err(refusal)),
        }
    }

    fn given_up(&self, unanswered: Unanswered) -> Refusal {
        let silent = |detail: String| Refusal::new(Code::StoreUnavailable, detail);
        match unanswered {
            Unanswered::Refused(refusal) => refusal,
            Unanswered::Unheard(why) => silent(format!("{} does not answer: {why}", self.base))
                .hint("check the address, and that `onus serve` runs there"),
            Unanswered::Unknown(why) => silent(format!("the outcome is unknown: {why}")).hint(
                "repeat the call with --request-id and the request id given here: it answers what happened",
            ),
        }
    }
}

/// What answers there is no Onus.
fn stranger(base: &str, status: StatusCode) -> Refusal {
    Refusal::new(Code::StoreUnavailable, format!("{base} answered {status}, and not as Onus does"))
        .hint("check the address")
}

/// Resolving and connecting. A call that fails here never reached the server; the outcome of one that fails later is unknown.
#[derive(Debug)]
struct Approach<T>(T);

impl Resolver for Approach<DefaultResolver> {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        self.0.resolve(uri, config, timeout).map_err(unreached)
    }
}

impl Connector for Approach<DefaultConnector> {
    type Out = Box<dyn Transport>;

    fn connect(&self, to: &ConnectionDetails<'_>, chained: Option<()>) -> Result<Option<Self::Out>, Error> {
        self.0.connect(to, chained).map_err(unreached)
    }
}

#[derive(Debug)]
struct Unreached(Error);

impl std::fmt::Display for Unreached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Unreached {}

fn unreached(error: Error) -> Error {
    Error::Other(Box::new(Unreached(error)))
}

fn unanswered(error: &Error) -> Unanswered {
    if let Error::Other(inner) = error
        && let Some(Unreached(error)) = inner.downcast_ref()
    {
        return Unanswered::Unheard(error.to_string());
    }
    let why = error.to_string();
    match error {
        // Certificates are looked at with the first words, which travel only where they are good.
        Error::Tls(_) | Error::Rustls(_) => Unanswered::Unheard(why),
        _ => Unanswered::Unknown(why),
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_does_not_travel_in_the_clear() {
        for near in
            ["http://127.0.0.1:7420", "http://localhost:7420/", "http://[::1]:7420", "https://onus.example"]
        {
            assert!(ServerConnection::new(near, "t", None).is_ok(), "{near}");
        }
        for open in ["http://onus.example", "http://10.0.0.1:7420", "http://", "nonsense"] {
            assert_eq!(
                ServerConnection::new(open, "t", None).unwrap_err().code,
                Code::InvalidInput,
                "{open}"
            );
        }
    }

    #[test]
    fn nobody_there_is_a_store_that_is_unavailable() {
        let mut line = ServerConnection::new("http://127.0.0.1:1", "secret", None).unwrap();
        line.patience = Duration::ZERO;
        let refusal = line.call("status", "null", None, Repeat::Safe).unwrap_err();
        assert_eq!(refusal.code, Code::StoreUnavailable);
        assert!(!format!("{refusal:?}{line:?}").contains("secret"));
    }

    /// A name that does not resolve and a closed port were never reached, so the outcome is known: nothing happened.
    #[test]
    fn what_was_never_reached_has_heard_nothing() {
        let unresolved = format!("https://{}.example", "a".repeat(64));
        for nobody in [unresolved.as_str(), "http://127.0.0.1:1"] {
            let mut line = ServerConnection::new(nobody, "t", None).unwrap();
            line.patience = Duration::ZERO;
            for repeat in [Repeat::Safe, Repeat::Unheard] {
                let refusal = line.call("add_worker", "null", None, repeat).unwrap_err();
                assert_eq!(refusal.code, Code::StoreUnavailable);
                assert!(refusal.detail.starts_with(&format!("{nobody} does not answer: ")), "{refusal}");
            }
        }
    }

    /// Whoever listened and said nothing may have heard it.
    #[test]
    fn what_was_reached_and_not_answered_is_unknown() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let deaf = std::thread::spawn(move || drop(listener.accept().unwrap()));
        let mut line = ServerConnection::new(&format!("http://{address}"), "t", None).unwrap();
        line.patience = Duration::ZERO;
        let refusal = line.call("add_worker", "null", None, Repeat::Unheard).unwrap_err();
        deaf.join().unwrap();
        assert!(refusal.detail.starts_with("the outcome is unknown: "), "{refusal}");
    }
}
