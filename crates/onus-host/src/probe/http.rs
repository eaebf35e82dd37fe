//! `http:URL`: a server answers a GET as expected.
//!
//! No redirect is followed and no proxy is used: both would reach an address that nobody has checked.

use super::{Clock, Seen, address};
use onus_core::id::shown;
use onus_core::probe::{Answer, Expected, Url};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use ureq::config::Config;
use ureq::http::{Response, Uri, header};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Body, Error};

/// The bytes of a body, at most.
const BODY_MAX: u64 = 1_000_000;
/// The bytes of all headers together, at most.
const HEADERS_MAX: usize = 65_536;

pub(super) fn see(url: &Url, expect: &Answer, clock: &Clock) -> Result<Seen, Seen> {
    let mut response = get(url, url.as_str(), clock)?;
    let status = response.status().as_u16();
    let is_expected = expect.status.map_or_else(|| (200..300).contains(&status), |wanted| wanted == status);
    if !is_expected {
        let wanted = expect.status.map_or_else(|| "200 to 299".to_owned(), |wanted| wanted.to_string());
        let target = response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
        let redirect = target.map(|to| format!(" (to {}, not followed)", shown(to))).unwrap_or_default();
        return Err(Seen::failed(format!("status {status}{redirect}, expected {wanted}")));
    }
    match &expect.body {
        None => Ok(Seen::passed(format!("status {status}"))),
        Some(expected) => {
            let found = compare(&json(&mut response, clock)?, expected)?;
            Ok(Seen::passed(format!("status {status}, {} is {found}", expected.pointer)))
        }
    }
}

/// One GET, of `address` at the server of `url`.
pub(super) fn get(url: &Url, address: &str, clock: &Clock) -> Result<Response<Body>, Seen> {
    let checked = Checked(address::resolve(url.endpoint())?);
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::PlatformVerifier)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    let config = Agent::config_builder()
        .timeout_global(Some(clock.left()))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .max_idle_connections(0)
        .max_response_header_size(HEADERS_MAX)
        .proxy(None)
        .tls_config(tls)
        .build();
    let agent = Agent::with_parts(config, DefaultConnector::default(), checked);
    agent.get(address).call().map_err(|e| unanswered(&e, clock))
}

/// The body, which must be JSON.
pub(super) fn json(response: &mut Response<Body>, clock: &Clock) -> Result<Value, Seen> {
    let bytes = response.body_mut().with_config().limit(BODY_MAX).read_to_vec().map_err(|e| match e {
        Error::BodyExceedsLimit(_) => Seen::failed(format!("the body is longer than {BODY_MAX} bytes")),
        e => unanswered(&e, clock),
    })?;
    serde_json::from_slice(&bytes).map_err(|e| {
        let beginning = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]);
        Seen::failed(format!("the body is not JSON ({e}): {}", shown(&beginning)))
    })
}

fn unanswered(error: &Error, clock: &Clock) -> Seen {
    match error {
        Error::Timeout(_) => clock.timed_out("no whole answer"),
        Error::BadUri(why) => Seen::could_not_run(why.clone()),
        e => Seen::failed(format!("no answer: {e}")),
    }
}

/// What stands at the pointer, if it is what was expected.
fn compare(body: &Value, expected: &Expected) -> Result<String, Seen> {
    let Expected { pointer, equals } = expected;
    let wanted = || equals.as_ref().map_or_else(|| "something".to_owned(), |text| shown(text));
    let Some(value) = body.pointer(pointer) else {
        return Err(Seen::failed(format!("there is no {pointer} in the body, expected {}", wanted())));
    };
    let found = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match equals {
        Some(text) if *text != found => {
            Err(Seen::failed(format!("{pointer} is {}, expected {}", shown(&found), wanted())))
        }
        _ => Ok(shown(&found)),
    }
}

/// The addresses that were checked, whatever is asked for.
#[derive(Debug)]
pub(crate) struct Checked(pub(super) Vec<SocketAddr>);

impl Resolver for Checked {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let mut addresses = self.empty();
        for address in &self.0 {
            addresses.push(*address);
        }
        Ok(addresses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_finds_strings_numbers_and_words() {
        let body = serde_json::json!({"a": {"b": ["x", 3, true, null]}, "c/d": 1.5});
        for (pointer, equals, found) in [
            ("/a/b/0", Some("x"), Ok("`x`")),
            ("/a/b/1", Some("3"), Ok("`3`")),
            ("/a/b/2", Some("true"), Ok("`true`")),
            ("/a/b/3", Some("null"), Ok("`null`")),
            ("/c~1d", Some("1.5"), Ok("`1.5`")),
            ("/a/b/0", None, Ok("`x`")),
            ("/a/b/0", Some("y"), Err("/a/b/0 is `x`, expected `y`")),
            ("/a/b/0", Some(""), Err("/a/b/0 is `x`, expected ``")),
            ("/a/z", None, Err("there is no /a/z in the body, expected something")),
            ("/a/z", Some("x"), Err("there is no /a/z in the body, expected `x`")),
        ] {
            let expected = Expected { pointer: pointer.into(), equals: equals.map(str::to_owned) };
            let seen = compare(&body, &expected).map_err(|seen| seen.detail);
            assert_eq!(seen.as_deref().map_err(|e| e.as_str()), found, "{pointer}");
        }
    }
}
