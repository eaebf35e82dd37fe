//! Where a network probe goes. Narrower than RFC 3986: what two readers could take for two different hosts is refused.

use crate::id::shown;
use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// DNS names have 253 characters at most.
const HOST_MAX: usize = 253;

/// `HOST:PORT`; an IPv6 address is written in brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    host: String,
    port: u16,
}

impl Endpoint {
    /// A name or an address, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    fn read(text: &str, default_port: Option<u16>) -> Result<Endpoint, String> {
        let bad = || format!("{} is not HOST:PORT", shown(text));
        let (host, rest) = match text.strip_prefix('[') {
            Some(inner) => {
                let (address, rest) = inner.split_once(']').ok_or_else(bad)?;
                address.parse::<Ipv6Addr>().map_err(|_| bad())?;
                (address, rest)
            }
            None => {
                let (host, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
                let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
                if !(1..=HOST_MAX).contains(&host.len())
                    || host.starts_with('-')
                    || !host.bytes().all(is_name)
                {
                    return Err(bad());
                }
                (host, rest)
            }
        };
        let port = match (rest.strip_prefix(':'), default_port) {
            (Some(digits), _) if digits.bytes().all(|b| b.is_ascii_digit()) => {
                digits.parse().map_err(|_| bad())?
            }
            (None, Some(port)) if rest.is_empty() => port,
            _ => return Err(bad()),
        };
        if port == 0 {
            return Err(bad());
        }
        Ok(Endpoint { host: host.to_owned(), port })
    }
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Endpoint, String> {
        Endpoint::read(text, None)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// An `http` or `https` address without credentials and without a fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    text: String,
    endpoint: Endpoint,
}

impl Url {
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Whether there is a query. A path can be put behind a URL only if there is none.
    pub fn has_query(&self) -> bool {
        self.text.contains('?')
    }
}

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Url, String> {
        let bad = |why: &str| format!("{} is not a URL: {why}", shown(text));
        let (rest, port) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
            (Some(rest), _) => (rest, 80),
            (_, Some(rest)) => (rest, 443),
            _ => return Err(bad("it must begin with http:// or https://")),
        };
        // Readers disagree about backslashes; blanks and quotes must be written as %20 and the like.
        let is_plain = |b: u8| b.is_ascii_graphic() && !b"\"#<>\\^`{|}".contains(&b);
        if !rest.bytes().all(is_plain) {
            return Err(bad("a character in it must be percent-encoded"));
        }
        let authority = &rest[..rest.find(['/', '?']).unwrap_or(rest.len())];
        if authority.contains('@') {
            // Not shown: it would put the password into a terminal and a log.
            return Err("a probe's URL has no user name or password: specs are readable by everybody".into());
        }
        let endpoint = Endpoint::read(authority, Some(port)).map_err(|why| bad(&why))?;
        Ok(Url { text: text.to_owned(), endpoint })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints() {
        for (text, host, port) in [
            ("localhost:5432", "localhost", 5432),
            ("10.0.0.7:1", "10.0.0.7", 1),
            ("[::1]:65535", "::1", 65535),
            ("db_1.example.:80", "db_1.example.", 80),
        ] {
            let endpoint: Endpoint = text.parse().unwrap();
            assert_eq!((endpoint.host(), endpoint.port()), (host, port));
            assert_eq!(endpoint.to_string(), text);
        }
        for bad in
            ["", "h", ":80", "h:", "h:0", "h:65536", "h:+1", "::1:80", "[::1]", "[h]:80", "a b:80", "-h:80"]
        {
            assert!(bad.parse::<Endpoint>().is_err(), "{bad}");
        }
    }

    #[test]
    fn urls() {
        for (text, host, port) in [
            ("http://localhost", "localhost", 80),
            ("https://example.org/a?b=c", "example.org", 443),
            ("http://[::1]:8080/x", "::1", 8080),
            ("http://h?a@b", "h", 80),
        ] {
            let url: Url = text.parse().unwrap();
            assert_eq!((url.endpoint().host(), url.endpoint().port()), (host, port));
            assert_eq!(url.to_string(), text);
        }
        for bad in [
            "",
            "localhost",
            "ftp://h",
            "file:///etc/passwd",
            "HTTP://h",
            "http://",
            "http:///a",
            "http://h:0",
            "http://h\\@evil",
            "http://h/a b",
            "http://h/é",
            "http://h#f",
            "http://h:80:90/",
        ] {
            assert!(bad.parse::<Url>().is_err(), "{bad}");
        }
    }

    #[test]
    fn credentials_are_refused_and_not_repeated() {
        let refused = "https://me:secret@example.org/".parse::<Url>().unwrap_err();
        assert!(refused.contains("password") && !refused.contains("secret"), "{refused}");
    }
}
