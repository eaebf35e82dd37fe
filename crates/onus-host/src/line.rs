//! The line to a server: one question, one answer, repeated while the server comes back.

use onus_core::code::Code;
use onus_core::id::shown;
use onus_core::refusal::Refusal;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use ureq::http::{StatusCode, Uri};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Error, Timeout};

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

pub struct Line {
    agent: Agent,
    base: String,
    token: String,
    /// Who the caller believes to be; the server refuses a token of somebody else.
    believes: Option<String>,
    patience: Duration,
}

impl std::fmt::Debug for Line {
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

impl Line {
    /// A line to the server at `url`, for whoever `token` says.
    pub fn new(url: &str, token: &str, believes: Option<&str>) -> Result<Line, Refusal> {
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
        Ok(Line {
            agent: config.into(),
            base: base.to_owned(),
            token: token.to_owned(),
            believes: believes.map(str::to_owned),
            patience: PATIENCE,
        })
    }

    /// Asks one question. A server that is away is waited for, a little.
    pub fn call(&mut self, name: &str, arguments: &str, repeat: Repeat) -> Result<String, Refusal> {
        let until = Instant::now() + self.patience;
        loop {
            let unanswered = match self.ask(name, arguments) {
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

    fn ask(&self, name: &str, arguments: &str) -> Result<Result<String, Refusal>, Unanswered> {
        let request = self
            .agent
            .post(format!("{}/v1/call/{name}", self.base))
            .header("authorization", format!("Bearer {}", self.token))
            .content_type("application/json");
        let request = match &self.believes {
            Some(worker) => request.header("onus-as", worker),
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

fn unanswered(error: &Error) -> Unanswered {
    let why = error.to_string();
    match error {
        Error::HostNotFound
        | Error::ConnectionFailed
        | Error::Tls(_)
        | Error::Rustls(_)
        | Error::Timeout(Timeout::Resolve | Timeout::Connect) => Unanswered::Unheard(why),
        Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => Unanswered::Unheard(why),
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
            assert!(Line::new(near, "t", None).is_ok(), "{near}");
        }
        for open in ["http://onus.example", "http://10.0.0.1:7420", "http://", "nonsense"] {
            assert_eq!(Line::new(open, "t", None).unwrap_err().code, Code::InvalidInput, "{open}");
        }
    }

    #[test]
    fn nobody_there_is_a_store_that_is_unavailable() {
        let mut line = Line::new("http://127.0.0.1:1", "secret", None).unwrap();
        line.patience = Duration::ZERO;
        let refusal = line.call("status", "null", Repeat::Safe).unwrap_err();
        assert_eq!(refusal.code, Code::StoreUnavailable);
        assert!(!format!("{refusal:?}{line:?}").contains("secret"));
    }
}
