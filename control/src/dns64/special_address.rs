//! IPv4 addresses that synthesis treats specially.

use sixway_wire::Prefix4;
use std::net::Ipv4Addr;

/// RFC 7050 §8.2: the well-known IPv4 addresses; they are embedded in every prefix, although they are not global.
pub(super) const WELL_KNOWN: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 0, 170), Ipv4Addr::new(192, 0, 0, 171)];

/// No host on the Internet has such an address: "this network", loopback, multicast, reserved (RFC 6890 §2.2.2, RFC 5771 §3). An AAAA record for one
/// would lead packets for the client itself, or for a group, to the translator.
const NO_HOST: [Prefix4; 4] = [
    Prefix4::holding(Ipv4Addr::new(0, 0, 0, 0), 8),
    Prefix4::holding(Ipv4Addr::new(127, 0, 0, 0), 8),
    Prefix4::holding(Ipv4Addr::new(224, 0, 0, 0), 4),
    Prefix4::holding(Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// Whether no AAAA record is ever synthesised from this address, whatever the prefix; reserved ones (240.0.0.0/4, without the broadcast
/// address) count as hosts' if so configured.
pub(super) fn is_no_host(address: Ipv4Addr, reserved_are_hosts: bool) -> bool {
    let is_reserved = address.octets()[0] >= 240 && address != Ipv4Addr::BROADCAST;
    !(reserved_are_hosts && is_reserved) && NO_HOST.iter().any(|block| block.contains(address))
}
