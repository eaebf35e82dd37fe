//! How a server is run.

use onus_core::code::Code;
use onus_core::refusal::Refusal;
use onus_store::postgres::Address;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Config {
    pub listen: SocketAddr,
    pub tls: Option<Tls>,
    /// Listen beyond this machine without TLS: somebody else, such as a proxy, sees to that.
    pub insecure: bool,
    /// Names under which the server is known, beside those of this machine.
    pub hosts: Vec<String>,
    /// Requests per second and token.
    pub rate: u32,
    /// How long a caller may take to send its headers, and as long again for its body.
    pub patience: Duration,
    /// In all. One token has a quarter of them at most, and streams of events on an eighth.
    pub connections: usize,
    pub body_limit: usize,
    pub readers: usize,
    /// The database that tells of other servers' commits; a store in a file is looked at instead.
    pub database: Option<Address>,
    /// The OTLP/HTTP collector that traces go to.
    pub traces: Option<String>,
}

#[derive(Debug, Clone)]
pub struct Tls {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Config {
    pub fn new(listen: SocketAddr) -> Config {
        Config {
            listen,
            tls: None,
            insecure: false,
            hosts: Vec::new(),
            rate: 1_000,
            patience: Duration::from_secs(30),
            connections: 4_096,
            body_limit: 1024 * 1024,
            readers: 4,
            database: None,
            traces: None,
        }
    }

    /// A token that crosses a network in the clear is anybody's.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if self.listen.ip().is_loopback() || self.tls.is_some() || self.insecure {
            return Ok(());
        }
        Err(Refusal::new(
            Code::NotPermitted,
            format!("{} is not this machine alone, and there is no TLS", self.listen),
        )
        .hint("pass --tls-cert and --tls-key, or --insecure where a proxy in front has TLS"))
    }
}
