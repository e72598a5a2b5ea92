//! The outer IPv4 header of an IPv6 packet goes (RFC 4213 §3.6). The hop limit stays: who routes the result counts it down.

use super::{Executed, Rewriter, encap};
use crate::counters::Counters;
use crate::drop_reason::DropReason;
use crate::frame::Frame;
use crate::parse::{self, Addresses, Packet, SYN, Transport};
use crate::tunnel::ecn;
use crate::verdict::PolicyId;

impl Rewriter {
    /// Takes the outer header off and carries its congestion mark on (RFC 6040 §4.2): `outer` is the frame's packet, `inner` what is in
    /// it, as [`inner`] parses it.
    #[inline(always)]
    pub fn decap(
        &mut self,
        frame: &mut Frame,
        (outer, inner): (&Packet, &Packet),
        policy: PolicyId,
        counters: &mut Counters,
    ) -> Result<Executed, DropReason> {
        let policy = self.tunnels.get(usize::from(policy.0)).ok_or(DropReason::NoMechanism)?;
        let traffic_class = ecn::decap(inner.traffic_class, outer.traffic_class, counters)?;
        frame.truncate(usize::from(outer.transport_at) + inner.length as usize);
        frame.resize_front(outer.transport_at.into(), 0)?;
        frame.offload.transport = inner.transport_at;
        if traffic_class != inner.traffic_class
            && let Some([first, second, ..]) = frame.bytes_mut().first_chunk_mut::<2>()
        {
            *first = 0x60 | traffic_class >> 4;
            *second = *second & 0x0f | traffic_class << 4;
        }
        if policy.clamp_mss
            && let Addresses::V4 { source, .. } = outer.addresses
            && let Transport::Ports { tcp_flags, .. } = inner.transport
            && tcp_flags & SYN != 0
        {
            // What the hosts here may send back has to fit too.
            let mtu = self.bench.tunnel_room(policy, source).mtu;
            encap::clamp(frame, inner, inner.transport_at.into(), mtu);
        }
        Ok(Executed::InPlace)
    }
}

/// The IPv6 packet in an IPv4 packet of protocol 41. Octets behind its own length are padding.
///
/// Fails with [`DropReason::InnerNotIpv6`] where there is none, and as [`parse::parse`] does.
#[inline(always)]
pub fn inner(frame: &Frame, outer: &Packet, inner: &mut Packet) -> Result<(), DropReason> {
    let octets = frame.bytes().get(usize::from(outer.transport_at)..outer.length as usize);
    let octets = octets.ok_or(DropReason::Truncated)?;
    if octets.first().is_none_or(|first| first >> 4 != 6) {
        return Err(DropReason::InnerNotIpv6);
    }
    parse::parse_into(octets, inner)
}
