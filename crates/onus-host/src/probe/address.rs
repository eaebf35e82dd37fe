//! From a name to the addresses that may be probed.
//!
//! A name is resolved once, and what was checked is what is connected to: a second answer of the name server could
//! be another one.

use super::Seen;
use onus_core::id::shown;
use onus_core::probe::Endpoint;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

/// Where Amazon's machines serve their credentials over IPv6; over IPv4 it is a link-local address.
const METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254);

/// How many addresses of one name are tried.
const ADDRESSES_MAX: usize = 16;

pub(super) fn resolve(endpoint: &Endpoint) -> Result<Vec<SocketAddr>, Seen> {
    let host = endpoint.host();
    let resolved = (host, endpoint.port()).to_socket_addrs();
    let addresses: Vec<SocketAddr> = resolved
        .map_err(|e| Seen::failed(format!("{} has no address: {e}", shown(host))))?
        .take(ADDRESSES_MAX)
        .collect();
    // One of several is enough to refuse: which one answers is the other side's choice.
    if let Some(refused) = addresses.iter().find(|address| is_refused(address.ip())) {
        let address = refused.ip();
        return Err(Seen::could_not_run(format!("{address} is link-local, and no probe's target")));
    }
    if addresses.is_empty() {
        return Err(Seen::failed(format!("{} has no address", shown(host))));
    }
    Ok(addresses)
}

fn is_refused(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => {
            address.is_unicast_link_local()
                || address == METADATA
                || embedded(address).is_some_and(|address| address.is_link_local())
        }
    }
}

/// The IPv4 address that a network would make of this one: as it was written once, through a translator (NAT64), or through
/// a tunnel (6to4).
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let quad = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(quad(high, low)),
        [0x64, 0xff9b, 1, .., high, low] => Some(quad(high, low)),
        [0x2002, high, low, ..] => Some(quad(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_local_addresses_are_refused_in_every_dress() {
        for (host, refused) in [
            ("169.254.169.254", true),
            ("169.254.0.1", true),
            ("[fe80::1]", true),
            ("[febf::1]", true),
            ("[fd00:ec2::254]", true),
            ("[::ffff:169.254.169.254]", true),
            ("[::169.254.169.254]", true),
            ("[64:ff9b::169.254.169.254]", true),
            ("[64:ff9b:1::169.254.169.254]", true),
            ("[2002:a9fe:a9fe::1]", true),
            ("[64:ff9b::10.0.0.1]", false),
            // The resolver reads numbers as addresses, too.
            ("2852039166", true),
            ("0xa9fea9fe", true),
            ("127.0.0.1", false),
            ("[::1]", false),
            ("10.0.0.1", false),
            ("169.253.255.255", false),
            ("[fd00:ec2::253]", false),
        ] {
            let endpoint: Endpoint = format!("{host}:80").parse().unwrap();
            assert_eq!(resolve(&endpoint).is_err(), refused, "{host}");
        }
    }
}
