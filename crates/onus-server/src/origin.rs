//! Which names the server answers to. A web page that makes a browser call a local server under another name (DNS
//! rebinding), or from another site, is turned away before anything else is looked at (threat 8).

use crate::config::Config;
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, Uri};
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

    pub(crate) fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Refusal> {
        let header = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        let host = header(HOST).or_else(|| uri.authority().map(|authority| authority.as_str()));
        match host {
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
            let headers = pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
            origins.check(&headers, &"/".parse().unwrap()).is_ok()
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
        assert!(check(&[(HOST, "localhost"), (ORIGIN, "http://localhost:8080")]));
        for origin in ["http://evil.example", "null", "https://localhost.evil.example", "file://localhost"] {
            assert!(!check(&[(HOST, "localhost"), (ORIGIN, origin)]), "{origin}");
        }
    }
}
