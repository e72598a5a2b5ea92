//! Neighbour discovery that comes through a tunnel (RFC 4861 §4), which control answers: RFC 4213 §3.8, RFC 5214 §8.

use crate::parse::{Packet, Transport};
use core::net::Ipv6Addr;
use sixway_wire::protocol::ICMPV6;

/// RFC 4861: the hop limit of neighbour discovery, which shows that no router has forwarded it.
const ON_LINK_HOP_LIMIT: u8 = 255;

/// The messages, by their ICMPv6 types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discovery {
    /// 133, 135, 136: any node on the link may send them.
    Anyones,
    /// 134, 137: only a router sends advertisements and redirects.
    Routers,
}

impl Discovery {
    /// What a packet is; `None` if it is not neighbour discovery, or was forwarded by a router.
    pub const fn of(packet: &Packet) -> Option<Self> {
        if packet.protocol != ICMPV6 || packet.hops != ON_LINK_HOP_LIMIT {
            return None;
        }
        match packet.transport {
            Transport::IcmpQuery { kind: 133 | 135 | 136, .. } => Some(Self::Anyones),
            Transport::IcmpQuery { kind: 134 | 137, .. } => Some(Self::Routers),
            Transport::IcmpQuery { .. }
            | Transport::IcmpError { .. }
            | Transport::Ports { .. }
            | Transport::Opaque => None,
        }
    }
}

/// All nodes, all routers, and solicited nodes' groups, link-local (RFC 4291 §2.7.1).
pub const fn is_group_of_link(address: Ipv6Addr) -> bool {
    let bits = address.to_bits();
    let group = bits & 0xffff_ffff_ffff_ffff;
    let is_link_scope = bits >> 64 == 0xff02_0000_0000_0000;
    is_link_scope && (group == 1 || group == 2 || group >> 24 == 0x01_ff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_the_link_are_told_from_others() {
        for group in ["ff02::1", "ff02::2", "ff02::1:ff00:1", "ff02::1:ffff:ffff"] {
            assert!(is_group_of_link(group.parse().unwrap()), "{group}");
        }
        for other in ["ff02::16", "ff02::fb", "ff05::2", "ff02::2:ff00:1", "ff02::1:fe00:1", "fe80::1"] {
            assert!(!is_group_of_link(other.parse().unwrap()), "{other}");
        }
    }
}
