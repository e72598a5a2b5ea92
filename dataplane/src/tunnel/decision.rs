//! The addresses by which tunnels decide.

use super::address::isatap::LINK_LOCAL;
use super::neighbour_discovery::is_group_of_link;
use crate::drop_reason::DropReason;
use crate::parse::{Addresses, Packet};
use core::net::{Ipv4Addr, Ipv6Addr};

/// The addresses of a packet that came through a tunnel, less the outer destination, by which the tunnel was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Outer source: the sender, if it is not spoofed.
    pub from: Ipv4Addr,
    /// Inner source.
    pub source: Ipv6Addr,
    /// Inner destination.
    pub destination: Ipv6Addr,
}

impl Arrived {
    /// Of the outer and the inner packet. Fails with [`DropReason::InnerNotIpv6`].
    #[inline(always)]
    pub const fn of(outer: &Packet, inner: &Packet) -> Result<Self, DropReason> {
        match (outer.addresses, inner.addresses) {
            (Addresses::V4 { source: from, .. }, Addresses::V6 { source, destination }) => {
                Ok(Self { from, source, destination })
            }
            (Addresses::V4 { .. } | Addresses::V6 { .. }, _) => Err(DropReason::InnerNotIpv6),
        }
    }

    /// Refuses inner addresses that may not pass a tunnel, in addition to martians: ::/96 and
    /// ::ffff:0:0/96, which contain an IPv4 address without a prefix (RFC 4213 §3.6, RFC 3964 §5.3.2).
    #[inline(always)]
    pub const fn sane(self) -> Result<Self, DropReason> {
        match refuse_bare_ipv4(self.source, self.destination) {
            Ok(()) => Ok(self),
            Err(reason) => Err(reason),
        }
    }

    /// Whether both inner addresses are of the link alone.
    pub fn is_link_local(self) -> bool {
        LINK_LOCAL.contains(self.source)
            && (LINK_LOCAL.contains(self.destination) || is_group_of_link(self.destination))
    }
}

/// Refuses inner addresses which contain an IPv4 address without a prefix, as [`Arrived::sane`] does.
#[inline(always)]
pub const fn refuse_bare_ipv4(source: Ipv6Addr, destination: Ipv6Addr) -> Result<(), DropReason> {
    if is_bare_ipv4(source) {
        return Err(DropReason::MartianSource);
    }
    if is_bare_ipv4(destination) {
        return Err(DropReason::MartianDestination);
    }
    Ok(())
}

/// IPv4-compatible and IPv4-mapped addresses (RFC 4291 §2.5.5).
#[inline(always)]
const fn is_bare_ipv4(address: Ipv6Addr) -> bool {
    matches!(address.to_bits() >> 32, 0 | 0xffff)
}

/// Source and destination of an IPv6 packet that is routed into a tunnel. Fails with [`DropReason::InnerNotIpv6`].
#[inline(always)]
pub const fn routed(packet: &Packet) -> Result<(Ipv6Addr, Ipv6Addr), DropReason> {
    match packet.addresses {
        Addresses::V6 { source, destination } => Ok((source, destination)),
        Addresses::V4 { .. } => Err(DropReason::InnerNotIpv6),
    }
}
