//! Addresses that no forwarded packet may have. Every mechanism checks them.

use crate::drop_reason::DropReason;
use crate::parse::{Addresses, Packet, Transport};
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::protocol::{ICMPV6, IGMP};

/// Not one host's address: networks 0 and 127, multicast, class E, limited broadcast (RFC 1812 §5.3.7).
#[inline(always)]
pub const fn is_martian4(address: Ipv4Addr) -> bool {
    let first = address.octets()[0];
    first.wrapping_sub(1) >= 223 || first == 127
}

/// Unspecified, loopback, multicast or link-local: never forwarded (RFC 4291 §2.5, §2.7).
#[inline(always)]
pub const fn is_martian6(address: Ipv6Addr) -> bool {
    let bits = address.to_bits();
    if bits >> 125 == 1 {
        return false; // 2000::/3, where most hosts are
    }
    bits <= 1 || bits >> 120 == 0xff || bits >> 118 == 0xfe80 >> 6
}

/// Refuses martians. An ICMPv4 error with an illegal source passes: it is translated for the sake of
/// troubleshooting (RFC 7915 §4.1).
#[inline(always)]
pub fn check(packet: &Packet) -> Result<(), DropReason> {
    let (source, destination) = match packet.addresses {
        Addresses::V4 { source, destination } => {
            let is_error = matches!(packet.transport, Transport::IcmpError { .. });
            (is_martian4(source) && !is_error, is_martian4(destination))
        }
        Addresses::V6 { source, destination } => (is_martian6(source), is_martian6(destination)),
    };
    if source {
        return Err(DropReason::MartianSource);
    }
    if destination {
        return Err(DropReason::MartianDestination);
    }
    Ok(())
}

/// Whether this is control traffic of the host itself on our device, as on any device: MLD, neighbour discovery and
/// router solicitations from link-local or unspecified addresses to a multicast group, and IGMP.
pub fn is_host_control(packet: &Packet) -> bool {
    match packet.addresses {
        Addresses::V4 { destination, .. } => packet.protocol == IGMP && destination.is_multicast(),
        Addresses::V6 { source, destination } => {
            packet.protocol == ICMPV6
                && destination.is_multicast()
                && (source.is_unspecified() || source.to_bits() >> 118 == 0xfe80 >> 6)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn martians_are_told_from_hosts() {
        for martian in ["0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"] {
            assert!(is_martian4(martian.parse().unwrap()), "{martian}");
        }
        for host in ["1.1.1.1", "10.0.0.1", "126.255.255.255", "223.255.255.255"] {
            assert!(!is_martian4(host.parse().unwrap()), "{host}");
        }
        for martian in ["::", "::1", "ff02::1", "ff0e::1", "fe80::1", "febf::1"] {
            assert!(is_martian6(martian.parse().unwrap()), "{martian}");
        }
        for host in ["::2", "64:ff9b::1", "2001:db8::1", "fd00::1", "fec0::1"] {
            assert!(!is_martian6(host.parse().unwrap()), "{host}");
        }
    }
}
