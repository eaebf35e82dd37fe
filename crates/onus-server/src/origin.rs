//! Which names the server answers to. A web page that makes a browser call a local server under another name (DNS
//! rebinding), or from another site, is turned away before anything else is looked at (threat 8).

use crate::config::Config;
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderValue, Request};
use onus_core::code::Code;
use onus_core::refusal::Refusal;

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

#[derive(Debug)]
pub(crate) struct Origins {
    hosts: Vec<String>,
}

impl Origins {
    pub(crate) fn new(config: &Config) -> Origins {
        let mut hosts: Vec<String> = LOOPBACK.iter().map(|&host| host.to_owned()).collect();
        let own = config.listen.ip();
        if !own.is_unspecified() {
            hosts.push(if own.is_ipv6() { format!("[{own}]") } else { own.to_string() });
        }
        hosts.extend(config.hosts.iter().map(|host| host.to_ascii_lowercase()));
        Origins { hosts }
    }

    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        for (what, name) in [("Host", &HOST), ("Origin", &ORIGIN)] {
            // Somebody in between may have read the other one.
            if headers.get_all(name).iter().nth(1).is_some() {
                return Err(Refusal::invalid(format!("{what} comes more than once")));
            }
        }
        let header = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        match header(HOST) {
            Some(host) if self.knows(host) => {}
            other => return Err(refused("Host", other.unwrap_or_default())),
        }
        match header(ORIGIN) {
            None => Ok(()),
            Some(origin) => match origin.split_once("://") {
                Some(("http" | "https", host)) if self.knows(host) => Ok(()),
                _ => Err(refused("Origin", origin)),
            },
        }
    }

    fn knows(&self, host: &str) -> bool {
        let name = match host.rfind(':') {
            Some(colon) if !host.ends_with(']') => &host[..colon],
            _ => host,
        };
        self.hosts.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// Puts the name by which the server was called where everybody looks for it: in HTTP/2 it is a part of the address, which also
/// counts where both are there.
pub(crate) fn put_host<B>(request: &mut Request<B>) {
    let authority = request.uri().authority().map(|authority| HeaderValue::from_str(authority.as_str()));
    let is_said_once = request.headers().get_all(HOST).iter().nth(1).is_none();
    if let Some(Ok(host)) = authority.filter(|_| is_said_once) {
        request.headers_mut().insert(HOST, host);
    }
}

fn refused(what: &str, value: &str) -> Refusal {
    let value = onus_core::id::shown(value);
    Refusal::new(Code::NotPermitted, format!("{what} {value} is not a name of this server"))
        .hint("start it with --allow-host NAME for each name that it is known by")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_names_are_answered() {
        let mut config = Config::new(([192, 0, 2, 1], 7420).into());
        config.hosts.push("Onus.Example".into());
        let origins = Origins::new(&config);
        let check = |pairs: &[(axum::http::HeaderName, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(name, value.parse().unwrap());
            }
            origins.check(&headers).is_ok()
        };
        for host in [
            "localhost",
            "localhost:7420",
            "127.0.0.1:1",
            "[::1]:7420",
            "[::1]",
            "192.0.2.1",
            "onus.example:443",
        ] {
            assert!(check(&[(HOST, host)]), "{host}");
        }
        for host in ["", "evil.example", "localhost.evil.example", "127.0.0.2", "evil:localhost"] {
            assert!(!check(&[(HOST, host)]), "{host}");
        }
        assert!(!check(&[]));
        assert!(!check(&[(HOST, "localhost"), (HOST, "localhost")]), "two names are none");
        assert!(!check(&[(HOST, "localhost"), (HOST, "evil.example")]));
        assert!(!check(&[
            (HOST, "localhost"),
            (ORIGIN, "http://localhost"),
            (ORIGIN, "http://evil.example")
        ]));
        assert!(check(&[(HOST, "localhost"), (ORIGIN, "http://localhost:8080")]));
        for origin in ["http://evil.example", "null", "https://localhost.evil.example", "file://localhost"] {
            assert!(!check(&[(HOST, "localhost"), (ORIGIN, origin)]), "{origin}");
        }
    }

    #[test]
    fn the_address_says_the_name_where_it_has_one() {
        let host = |uri: &str, said: Option<&str>| {
            let mut request = Request::builder().uri(uri);
            if let Some(said) = said {
                request = request.header(HOST, said);
            }
            let mut request = request.body(()).unwrap();
            put_host(&mut request);
            request.headers().get(HOST).map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(host("/v1/ready", Some("localhost:1")).as_deref(), Some("localhost:1"));
        assert_eq!(host("https://onus.example/v1/ready", None).as_deref(), Some("onus.example"));
        assert_eq!(host("https://evil.example/", Some("localhost")).as_deref(), Some("evil.example"));
        assert_eq!(host("/v1/ready", None), None);
    }
}
