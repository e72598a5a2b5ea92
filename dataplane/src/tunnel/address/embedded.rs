//! Which IPv4 addresses may be a tunnel's remote end, when an IPv6 address is all that names them.
//!
//! The author of that IPv6 address chose where the gateway sends: to a broadcast address, to itself, into a network that is
//! not meant (RFC 3964 §4.1.4, §5.3.1). Documentation addresses (RFC 5737) are not used by any host, and so do no harm.

use crate::drop_reason::DropReason;
use crate::source_check::is_martian4;
use core::net::Ipv4Addr;
use sixway_wire::Prefix4;

/// How far the IPv4 network reaches that a mechanism tunnels through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The Internet: private addresses mean nothing there (6to4).
    Internet,
    /// One provider's or one site's network, whose private addresses are unique within it (6rd, ISATAP).
    Network,
}

/// The rule, with what it must know of the gateway's own place in the network.
#[derive(Clone, Debug)]
pub struct Acceptable {
    scope: Scope,
    /// All-ones and all-zeros host parts (RFC 1812 §5.3.5) of the attached networks.
    broadcasts: Vec<Ipv4Addr>,
}

impl Acceptable {
    /// `subnets`: the IPv4 networks that the gateway is attached to, whose broadcast addresses do not belong to a host.
    pub fn new(scope: Scope, subnets: &[Prefix4]) -> Self {
        // A /31 and a /32 have no broadcast address (RFC 3021).
        let subnets = subnets.iter().filter(|subnet| subnet.length() < 31);
        Self { scope, broadcasts: subnets.flat_map(|subnet| [subnet.last(), subnet.address()]).collect() }
    }

    /// Refuses addresses that are not unicast ([`DropReason::EmbeddedNotUnicast`]), or not in this network
    /// ([`DropReason::EmbeddedNotPublic`]).
    #[inline(always)]
    pub fn check(&self, address: Ipv4Addr) -> Result<(), DropReason> {
        if is_martian4(address) || self.broadcasts.contains(&address) {
            return Err(DropReason::EmbeddedNotUnicast);
        }
        if self.scope == Scope::Internet && !is_public(address) || is_link_local(address) {
            return Err(DropReason::EmbeddedNotPublic);
        }
        Ok(())
    }
}

/// Neither private (RFC 1918) nor shared (RFC 6598) nor link-local (RFC 3927), nor a martian. Documentation addresses pass.
#[inline(always)]
pub const fn is_public(address: Ipv4Addr) -> bool {
    let [a, b, _, _] = address.octets();
    let is_private = a == 10 || (a == 172 && b >> 4 == 1) || (a == 192 && b == 168);
    let is_shared = a == 100 && b >> 6 == 1;
    !(is_private || is_shared || is_link_local(address) || is_martian4(address))
}

const fn is_link_local(address: Ipv4Addr) -> bool {
    matches!(address.octets(), [169, 254, ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn four(text: &str) -> Ipv4Addr {
        text.parse().unwrap()
    }

    fn rule(scope: Scope) -> Acceptable {
        let subnets = ["198.51.100.0/24", "203.0.113.4/31"].map(|subnet| subnet.parse().unwrap());
        Acceptable::new(scope, &subnets)
    }

    /// RFC 3964 §5.3.1, and RFC 6598 after it.
    #[test]
    fn what_is_not_a_public_unicast_address_is_refused_on_the_internet() {
        for text in [
            "0.0.0.0",
            "0.1.2.3",
            "127.0.0.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
        ] {
            assert_eq!(
                rule(Scope::Internet).check(four(text)),
                Err(DropReason::EmbeddedNotUnicast),
                "{text}"
            );
            assert!(!is_public(four(text)), "{text}");
        }
        for text in [
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.254",
            "192.168.1.1",
            "169.254.1.1",
            "100.64.0.1",
            "100.127.255.254",
        ] {
            assert_eq!(rule(Scope::Internet).check(four(text)), Err(DropReason::EmbeddedNotPublic), "{text}");
            assert!(!is_public(four(text)), "{text}");
        }
    }

    #[test]
    fn neighbours_of_private_blocks_and_documentation_addresses_are_accepted() {
        for text in [
            "9.255.255.255",
            "11.0.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "192.169.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "169.253.0.1",
            "192.0.2.8",
            "203.0.113.9",
            "192.88.99.1",
        ] {
            assert_eq!(rule(Scope::Internet).check(four(text)), Ok(()), "{text}");
        }
    }

    #[test]
    fn private_addresses_are_legitimate_within_a_network_but_link_local_ones_are_not() {
        for text in ["10.0.0.1", "192.168.1.1", "100.64.0.1"] {
            assert_eq!(rule(Scope::Network).check(four(text)), Ok(()), "{text}");
        }
        assert_eq!(rule(Scope::Network).check(four("169.254.1.1")), Err(DropReason::EmbeddedNotPublic));
        assert_eq!(rule(Scope::Network).check(four("224.0.0.1")), Err(DropReason::EmbeddedNotUnicast));
    }

    #[test]
    fn broadcast_addresses_of_attached_networks_are_refused() {
        for scope in [Scope::Internet, Scope::Network] {
            assert_eq!(rule(scope).check(four("198.51.100.255")), Err(DropReason::EmbeddedNotUnicast));
            assert_eq!(rule(scope).check(four("198.51.100.0")), Err(DropReason::EmbeddedNotUnicast));
            assert_eq!(rule(scope).check(four("198.51.100.8")), Ok(()));
            // Two hosts at a point-to-point link.
            assert_eq!(rule(scope).check(four("203.0.113.4")), Ok(()));
            assert_eq!(rule(scope).check(four("203.0.113.5")), Ok(()));
        }
    }
}
