//! `tcp:HOST:PORT`: somebody accepts a connection.

use super::{Clock, Seen, address};
use onus_core::probe::Endpoint;
use std::io;
use std::net::TcpStream;

pub(super) fn see(endpoint: &Endpoint, clock: &Clock) -> Result<Seen, Seen> {
    let addresses = address::resolve(endpoint)?;
    let mut refused = Vec::new();
    for (position, address) in addresses.iter().enumerate() {
        // An address that swallows everything must leave time for the others.
        let share = clock.left() / u32::try_from(addresses.len() - position).unwrap_or(u32::MAX);
        if share.is_zero() {
            break;
        }
        match TcpStream::connect_timeout(address, share) {
            Ok(_) => return Ok(Seen::passed(format!("connected to {address}"))),
            Err(e) if e.kind() == io::ErrorKind::TimedOut => {}
            Err(e) => refused.push(format!("{address}: {e}")),
        }
    }
    if refused.is_empty() {
        return Err(clock.timed_out(&format!("no connection to {endpoint}")));
    }
    Err(Seen::failed(format!("no connection: {}", refused.join("; "))))
}
