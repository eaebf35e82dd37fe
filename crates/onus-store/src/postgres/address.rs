//! `postgres://user@host/database?workspace=NAME`: which database, which workspace in it, and how to get there.

use onus_core::id::shown;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// The workspace of an address that names none.
const MAIN: &str = "main";

/// Where Debian and most others put the server's socket.
const SOCKETS: &str = "/var/run/postgresql";

/// A database, and the workspace in it. Neither its words nor its `Debug` tell the password.
#[derive(Clone)]
pub struct Address {
    pub(super) config: Config,
    pub(super) workspace: String,
    pub(super) security: Security,
    url: String,
}

/// Who can read what goes over the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Security {
    /// The same machine, or a network that somebody said is trusted.
    Clear,
    /// TLS; the certificate is judged as the machine judges them, or by these roots.
    Verified { roots: Option<PathBuf> },
}

impl Address {
    /// Understands what libpq understands of such an address, and `workspace`.
    pub fn parse(url: &str) -> Result<Address, String> {
        let bad = |why: String| format!("{} is no database's address: {why}", shown(&without_password(url)));
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut rest = Vec::new();
        let (mut workspace, mut mode, mut roots) = (MAIN.to_owned(), None, None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("workspace", name)) => workspace = name.to_owned(),
                Some(("sslmode", value)) => mode = Some(value.to_owned()),
                Some(("sslrootcert", path)) => roots = Some(PathBuf::from(path)),
                _ => rest.push(pair),
            }
        }
        if !is_name(&workspace) {
            let why = "a workspace's name is made of lower-case letters, digits and dashes";
            return Err(bad(why.into()));
        }
        let plain = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
        let mut config: Config = plain.parse().map_err(|error| bad(cause(&error)))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            config.host_path(SOCKETS);
        }
        if config.get_dbname().is_none() {
            return Err(bad("it names no database".into()));
        }
        let security = security(&config, mode.as_deref(), roots).map_err(bad)?;
        config.ssl_mode(match security {
            Security::Clear => SslMode::Disable,
            Security::Verified { .. } => SslMode::Require,
        });
        patient(&mut config);
        Ok(Address { config, workspace, security, url: url.to_owned() })
    }

    /// As it was given: it may contain a password.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The same database and workspace, reached in the same way; the password comes from elsewhere.
    pub fn public_url(&self) -> String {
        let is_public = |pair: &&str| !pair.starts_with("password=");
        let query = self.url.split_once('?').map_or("", |(_, query)| query);
        let query: Vec<&str> = query.split('&').filter(|pair| !pair.is_empty()).filter(is_public).collect();
        let base = without_password(self.url.split('?').next().unwrap_or_default());
        if query.is_empty() { base } else { format!("{base}?{}", query.join("&")) }
    }

    pub fn workspace(&self) -> &str {
        &self.workspace
    }

    pub(super) fn database(&self) -> &str {
        self.config.get_dbname().unwrap_or_default()
    }

    /// The server's names, for messages.
    pub(super) fn hosts(&self) -> String {
        let ports = self.config.get_ports();
        let hosts = self.config.get_hosts().iter().enumerate().map(|(n, host)| {
            let port = ports.get(n).or(ports.first()).copied().unwrap_or(5432);
            match host {
                Host::Tcp(name) => format!("{name}:{port}"),
                Host::Unix(path) => format!("{} (port {port})", path.display()),
            }
        });
        hosts.collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Address {
    /// What people may see.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_password(&self.url))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_password(&self.url))
    }
}

/// A server that is cut off must not keep anybody waiting for the operating system's own patience.
fn patient(config: &mut Config) {
    config.application_name("onus");
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_secs(10));
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(Duration::from_secs(20));
    }
    config.keepalives_idle(Duration::from_secs(20));
    config.keepalives_interval(Duration::from_secs(5));
    config.keepalives_retries(3);
}

fn security(config: &Config, mode: Option<&str>, roots: Option<PathBuf>) -> Result<Security, String> {
    let is_near = |host: &Host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => matches!(name.as_str(), "localhost" | "127.0.0.1" | "::1"),
    };
    let all_near =
        config.get_hosts().iter().all(is_near) && config.get_hostaddrs().iter().all(|ip| ip.is_loopback());
    match mode {
        Some("disable") => Ok(Security::Clear),
        Some("require" | "verify-ca" | "verify-full") => Ok(Security::Verified { roots }),
        None if all_near && roots.is_none() => Ok(Security::Clear),
        None => Ok(Security::Verified { roots }),
        // `prefer` and `allow` fall back to clear text when an attacker in between asks for it: they protect from nothing.
        Some(_) => Err("sslmode is verify-full (the default for another machine) or disable".into()),
    }
}

pub(super) fn cause(error: &tokio_postgres::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// `postgres://user:secret@host` without the secret, and without what else may be one.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let (base, query) = rest.split_once('?').unwrap_or((rest, ""));
    let end = base.find('/').unwrap_or(base.len());
    let (authority, path) = base.split_at(end);
    let host = match authority.rsplit_once('@') {
        Some((user, host)) => {
            format!("{}@{host}", user.split_once(':').map_or(user, |(name, _)| name))
        }
        None => authority.to_owned(),
    };
    let kept: Vec<&str> = query.split('&').filter(|pair| pair.starts_with("workspace=")).collect();
    let query = if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) };
    format!("{scheme}://{host}{path}{query}")
}

fn is_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_taken_off() {
        let address =
            Address::parse("postgres://ada@localhost/team?workspace=web&connect_timeout=3").unwrap();
        assert_eq!((address.workspace(), address.database()), ("web", "team"));
        assert_eq!(address.config.get_connect_timeout(), Some(&Duration::from_secs(3)));
        assert_eq!(Address::parse("postgresql:///team").unwrap().workspace(), "main");
    }

    #[test]
    fn nobody_sees_the_password() {
        for url in [
            "postgres://ada:hush@db.example/team?sslmode=disable",
            "postgres://ada:hu%40sh@db.example/team?workspace=web",
            "postgres://ada@db.example/team?password=hush",
        ] {
            let address = Address::parse(url).unwrap();
            for said in [address.to_string(), format!("{address:?}")] {
                assert!(!said.contains("hu") && said.contains("ada@db.example/team"), "{said}");
            }
        }
        let refused = Address::parse("postgres://ada:hush@db.example:x/team").unwrap_err();
        assert!(!refused.contains("hush"), "{refused}");
    }

    #[test]
    fn what_is_kept_of_an_address_has_no_password_and_leads_to_the_same_place() {
        for (url, kept) in [
            (
                "postgres://ada:hush@db.example/team?sslmode=disable&workspace=web",
                "postgres://ada@db.example/team?sslmode=disable&workspace=web",
            ),
            ("postgres://ada@db.example/team?password=hush", "postgres://ada@db.example/team"),
            ("postgres:///team", "postgres:///team"),
        ] {
            assert_eq!(Address::parse(url).unwrap().public_url(), kept);
        }
    }

    #[test]
    fn another_machine_is_spoken_to_in_secret_unless_somebody_says_otherwise() {
        let clear = |url: &str| Address::parse(url).unwrap().security == Security::Clear;
        assert!(clear("postgres://localhost/t") && clear("postgres:///t") && clear("postgres://%2Ftmp/t"));
        assert!(!clear("postgres://db.example/t") && clear("postgres://db.example/t?sslmode=disable"));
        assert!(!clear("postgres://localhost/t?sslmode=require"));
        assert!(Address::parse("postgres://db.example/t?sslmode=prefer").is_err());
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for url in [
            "postgres://localhost",
            "postgres://localhost/t?workspace=Big",
            "postgres://localhost/t?workspace=",
            "postgres://localhost/t?nonsense=1",
        ] {
            assert!(Address::parse(url).is_err(), "{url}");
        }
    }
}
