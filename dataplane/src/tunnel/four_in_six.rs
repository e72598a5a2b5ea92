//! What ends of tunnels of IPv4 in IPv6 have in common (RFC 2473, RFC 6333, RFC 7040): what may come out of one, compared by words.

use crate::drop_reason::DropReason;
use crate::parse::{Addresses, Packet};
use crate::source_check::is_martian4;
use core::net::{Ipv4Addr, Ipv6Addr};

/// Source and destination of an IPv4 packet that came out of a tunnel. ICMP errors have to have a host's address too, which a translator would not
/// demand.
///
/// # Errors
/// It has addresses that no host may have, or is IPv6.
#[inline(always)]
pub const fn came_out(inner: &Packet) -> Result<(Ipv4Addr, Ipv4Addr), DropReason> {
    let Addresses::V4 { source, destination } = inner.addresses else { return Err(DropReason::NoTunnel) };
    if is_martian4(source) {
        return Err(DropReason::MartianSource);
    }
    if is_martian4(destination) {
        return Err(DropReason::MartianDestination);
    }
    Ok((source, destination))
}

/// Whether a tunnel packet came from this end.
#[inline(always)]
pub const fn came_from(outer: &Packet, end: Ipv6Addr) -> bool {
    matches!(outer.addresses, Addresses::V6 { source, .. } if source.to_bits() == end.to_bits())
}
