//! Removes the outer header (RFC 4213 §3.6, RFC 2473 §3.3, RFC 2003 §3.6). The kernel, which routes the result, decrements the hop limit.

use super::encap;
use super::rewriter::Rewriter;
use super::work::Executed;
use crate::counters::Counters;
use crate::drop_reason::DropReason;
use crate::frame::Frame;
use crate::parse::{self, Addresses, Packet, SYN, Transport};
use crate::tunnel::ecn;
use crate::verdict::{Outer, PolicyId};
use sixway_wire::Endpoint4;
use sixway_wire::checksum::{self, Sum};
use sixway_wire::protocol::{IPV4, UDP};

impl Rewriter {
    /// Removes the outer header and propagates its congestion mark (RFC 6040 §4.2), and its DSCP if the tunnel's policy says so: `outer` is
    /// the frame's packet, `inner` what is in it, as [`inner`] parses it.
    #[inline(always)]
    pub fn decap(
        &mut self,
        frame: &mut Frame,
        (outer, inner): (&Packet, &Packet),
        policy: PolicyId,
        counters: &mut Counters,
    ) -> Result<Executed, DropReason> {
        let tunnel = self.tunnels.get(usize::from(policy.0)).ok_or(DropReason::NoMechanism)?;
        let (clamp_mss, copies_dscp) = (tunnel.clamp_mss, tunnel.copies_dscp_out);
        let mut traffic_class = ecn::decap(inner.traffic_class, outer.traffic_class, counters)?;
        if copies_dscp {
            traffic_class = outer.traffic_class & !ecn::ECN | traffic_class & ecn::ECN;
        }
        frame.truncate(usize::from(outer.transport_at) + inner.length as usize);
        frame.resize_front(outer.transport_at.into(), 0)?;
        frame.offload.transport = inner.transport_at;
        if traffic_class != inner.traffic_class {
            set_traffic_class(frame.bytes_mut(), traffic_class);
        }
        if clamp_mss
            && let Transport::Ports { tcp_flags, .. } = inner.transport
            && tcp_flags & SYN != 0
        {
            self.clamp_arrived(frame, (outer, inner), policy);
        }
        Ok(Executed::InPlace)
    }

    /// Lowers the MSS option of a SYN that came out of a tunnel: what the hosts here may send back has to fit too.
    #[cold]
    fn clamp_arrived(&self, frame: &mut Frame, (outer, inner): (&Packet, &Packet), policy: PolicyId) {
        let Some(policy) = self.tunnels.get(usize::from(policy.0)) else { return };
        let mss = match (outer.addresses, inner.addresses) {
            (Addresses::V4 { source, .. }, Addresses::V6 { .. }) if outer.protocol != UDP => {
                self.writer.tunnel_room(policy, source).mtu.saturating_sub(60)
            }
            (_, Addresses::V6 { .. }) => {
                self.writer.room_ip_in_ip(policy, &back(outer), false).uncut.saturating_sub(60)
            }
            (_, Addresses::V4 { .. }) => {
                self.writer.room_ip_in_ip(policy, &back(outer), true).uncut.saturating_sub(40)
            }
        };
        encap::clamp(frame, inner, inner.transport_at.into(), mss);
    }
}

/// The outer header of an answer.
fn back(outer: &Packet) -> Outer {
    match (outer.addresses, outer.transport) {
        (Addresses::V6 { source, destination }, _) => Outer::V6 { source: destination, destination: source },
        (Addresses::V4 { source, destination }, Transport::Ports { source: from, destination: to, .. }) => {
            Outer::Udp4 { source: Endpoint4::new(destination, to), destination: Endpoint4::new(source, from) }
        }
        (Addresses::V4 { source, destination }, _) => Outer::V4 { source: destination, destination: source },
    }
}

/// The Traffic Class or TOS of a packet.
pub(super) fn traffic_class(octets: &[u8]) -> u8 {
    match octets {
        [first, second, ..] if first >> 4 == 6 => first << 4 | second >> 4,
        [_, second, ..] => *second,
        [..] => 0,
    }
}

/// Writes the Traffic Class or TOS of a packet, and IPv4's header checksum.
#[cold]
fn set_traffic_class(octets: &mut [u8], traffic_class: u8) {
    match octets {
        [first, second, ..] if *first >> 4 == 6 => {
            *first = 0x60 | traffic_class >> 4;
            *second = *second & 0x0f | traffic_class << 4;
        }
        [first, second, _, _, _, _, _, _, _, _, high, low, ..] => {
            let word = |tos| Sum::ZERO.word(u16::from_be_bytes([*first, tos]));
            let (old, new) = (word(*second), word(traffic_class));
            let checksum = checksum::update(u16::from_be_bytes([*high, *low]), old, new);
            *second = traffic_class;
            [*high, *low] = checksum.to_be_bytes();
        }
        [..] => {}
    }
}

/// The packet in a tunnel packet: what its protocol says it is. Octets behind its own length are padding.
///
/// Fails with [`DropReason::InnerNotIpv6`] where there is none, and as [`parse::parse`] does.
#[inline(always)]
pub fn inner(frame: &Frame, outer: &Packet, inner: &mut Packet) -> Result<(), DropReason> {
    let octets = frame.bytes().get(usize::from(outer.transport_at)..outer.length as usize);
    let octets = octets.ok_or(DropReason::Truncated)?;
    match octets.first().map(|first| first >> 4) {
        Some(4) if outer.protocol == IPV4 => parse::parse4_into(octets, inner),
        Some(6) if outer.protocol != IPV4 => parse::parse6_into(octets, inner),
        Some(_) | None => Err(DropReason::InnerNotIpv6),
    }
}
