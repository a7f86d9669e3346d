//! A test for addresses of the public internet, and a resolver that returns no others.

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::io::{Error, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A resolver that returns only the addresses of a host that may be connected to. The connection is made to
/// exactly these: what a name server says a moment later does not matter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resolver {
    /// Whether addresses of this machine or of a private network may be returned.
    pub(super) private: bool,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let private = self.private;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let may_be_reached = |at: &SocketAddr| private || is_public(at.ip());
            let addresses: Vec<_> = found.filter(may_be_reached).collect();
            if addresses.is_empty() {
                let host = name.as_str();
                let why = format!("{host} has no address on the public internet");
                return Err(Error::new(ErrorKind::PermissionDenied, why).into());
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// Returns whether an address belongs to the public internet, and not to the user's machine, a private
/// network, or an internal service of a cloud.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// The address of Azure's internal services, reachable from each of its machines, within a public range.
const AZURE: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

/// Checks against the special-purpose blocks of RFC 6890 and its registry.
fn is_public_v4(address: Ipv4Addr) -> bool {
    if address == AZURE {
        return false;
    }
    let [a, b, c, _] = address.octets();
    // Loopback, private or link-local; carrier-grade NAT; protocols, documentation and benchmarks;
    // multicast or reserved.
    !matches!(
        (a, b, c),
        (0 | 10 | 127 | 224.., ..)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 168, _)
            | (100, 64..=127, _)
            | (192, 0, 0 | 2)
            | (192, 31, 196)
            | (192, 52, 193)
            | (192, 88, 99)
            | (192, 175, 48)
            | (198, 18..=19, _)
            | (198, 51, 100)
            | (203, 0, 113)
    )
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = address.to_ipv4_mapped() {
        return is_public_v4(inner);
    }
    let [a, b, ..] = address.segments();
    let [.., e, f] = address.segments();
    match (a, b) {
        // Addresses that a gateway translates to IPv4.
        (0x64, 0xFF9B) if address.segments()[2..6] == [0; 4] => {
            let [e, f] = [e.to_be_bytes(), f.to_be_bytes()];
            is_public_v4(Ipv4Addr::new(e[0], e[1], f[0], f[1]))
        }
        // Protocol assignments with Teredo; documentation; 6to4; documentation.
        (0x2001, 0..=0x1FF | 0xDB8) | (0x2002, _) | (0x3FFF, 0..=0xFFF) => false,
        (0x2000..=0x3FFF, _) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn s13_addresses_of_this_machine_and_of_private_networks_are_known() {
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.8.8.8",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "::ffff:168.63.129.16",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.0.1",
            "168.63.129.17",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.169.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2001:4860:4860::8888",
            "2606:4700::1111",
            "2a00:1450::1",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }
}
