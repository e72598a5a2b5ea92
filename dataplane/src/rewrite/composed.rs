//! Actions of more than one step: a packet leaves a tunnel, is edited and enters another one, in one pass. What it is between two steps
//! follows from the step before, so that it is not parsed again.

use super::decap::traffic_class;
use super::ip_in_ip::IpInIpRoom;
use super::job::segment_payload;
use super::rewriter::Rewriter;
use super::work::{Editing, Executed, Work};
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::frame::Frame;
use crate::limits::Limits;
use crate::outbox::Outbox;
use crate::parse::{self, Addresses, IPV4_HEADER, IPV6_HEADER, Packet, Transport};
use crate::translate::header::{next_header_of, protocol_of};
use crate::tunnel::{OuterFragments, TunnelPolicy};
use crate::verdict::{Action, Edit, Encap, Next, Outer};

impl Rewriter {
    /// Executes an action of several steps. The whole counts as one hop.
    #[inline(never)]
    pub(super) fn execute_composed(
        &mut self,
        work: &Work<'_>,
        frame: &mut Frame,
        out: &mut Outbox,
        effects: &mut Effects,
    ) -> Result<Executed, DropReason> {
        let Action { decap, edit, policy, encap } = work.decision.action;
        let mut packet = *work.packet;
        if let Some(policy) = decap {
            let inner = work.inner.ok_or(DropReason::InnerNotIpv6)?;
            if encap.is_none() && work.decision.next == Next::Leave && !work.pass.reassembled {
                self.refuse_too_big(inner)?;
            }
            self.decap(frame, (work.packet, inner), policy, &mut effects.counters)?;
            packet = *inner;
            packet.traffic_class = traffic_class(frame.bytes());
        }
        let mut executed = Executed::InPlace;
        let before = out.len();
        if let Some(edit) = edit {
            let limits = self.room_behind(encap, (&packet, frame), effects)?;
            let edited = Work { packet: &packet, inner: None, ..*work };
            executed = self.edit::<Editing>((edit, policy), &edited, limits, frame, (out, effects))?;
            if executed == Executed::InPlace && encap.is_some() {
                packet = image(edit, &packet, frame)?;
            }
        }
        match (encap, executed) {
            (None, _) => Ok(executed),
            (Some(encap), Executed::InPlace) => self.encap(encap, &packet, frame, out, effects),
            (Some(encap), Executed::InPieces) => self.encap_pieces(encap, before, out, effects),
        }
    }

    /// Refuses what leaves a tunnel, may not be fragmented and is too large for the next link, before an octet is changed.
    #[inline(always)]
    pub(super) fn refuse_too_big(&mut self, inner: &Packet) -> Result<(), DropReason> {
        let mtu4 = self.writer.limits.mtu4;
        let is_v4 = matches!(inner.addresses, Addresses::V4 { .. });
        if is_v4 && inner.dont_fragment && inner.length > mtu4.into() {
            self.writer.too_big_for = Some(mtu4);
            return Err(DropReason::PacketTooBig);
        }
        Ok(())
    }

    /// What may leave an edit: what the links carry, or where an outer header follows what its tunnel carries.
    fn room_behind(
        &self,
        encap: Option<Encap>,
        (packet, frame): (&Packet, &Frame),
        effects: &Effects,
    ) -> Result<Limits, DropReason> {
        let Some(encap) = encap else { return Ok(self.writer.limits) };
        let outer = effects.outer_at(encap.outer).ok_or(DropReason::NoMechanism)?;
        let (mtu4, mtu6) = match *outer {
            Outer::V4 { destination, .. } => {
                let mtu4 = self.tunnel_mtu_ip_in_ip(encap.policy, outer, true);
                (mtu4, self.tunnel_mtu(encap.policy, destination))
            }
            // RFC 2473 §7.2, RFC 6333 §6.3: an IPv4 packet that may be fragmented is not; its tunnel packet is.
            Outer::V6 { .. } if !packet.dont_fragment => {
                let index = usize::from(encap.policy.0);
                let policy = self.tunnels.get(index).ok_or(DropReason::NoMechanism)?;
                let room = self.writer.room_ip_in_ip(policy, outer, true);
                self.refuse_outer_fragments(policy, room, (packet, frame))?;
                (Some(u16::MAX), Some(u16::MAX))
            }
            Outer::V6 { .. } | Outer::Udp4 { .. } => {
                let mtu = |is_v4| self.tunnel_mtu_ip_in_ip(encap.policy, outer, is_v4);
                (mtu(true), mtu(false))
            }
        };
        let mtu = |mtu: Option<u16>| mtu.ok_or(DropReason::NoMechanism);
        Ok(Limits { mtu4: mtu(mtu4)?, mtu6: mtu(mtu6)? })
    }

    /// Refuses a packet whose tunnel packet would have to be fragmented and may not be, before an octet is changed: the error quotes it as it was sent.
    #[inline(always)]
    pub(super) fn refuse_outer_fragments(
        &self,
        policy: &TunnelPolicy,
        room: IpInIpRoom,
        (packet, frame): (&Packet, &Frame),
    ) -> Result<(), DropReason> {
        if policy.outer_fragments != OuterFragments::Never {
            return Ok(());
        }
        let transport_at = usize::from(packet.transport_at);
        let payload = packet.length as usize - transport_at;
        let segment = transport_at + segment_payload(frame, packet, payload)?;
        // Without DF only the path counts, not the configured MTU.
        if segment > usize::from(room.whole) { Err(DropReason::OuterTooBig) } else { Ok(()) }
    }

    /// Puts the outer header in front of each piece that an edit made. They were cut to fit.
    #[cold]
    fn encap_pieces(
        &mut self,
        encap: Encap,
        before: usize,
        out: &mut Outbox,
        effects: &mut Effects,
    ) -> Result<Executed, DropReason> {
        let done = out.frames()[before..].iter_mut().try_for_each(|piece| {
            let packet = parse::parse(piece.bytes())?;
            self.encap(encap, &packet, piece, &mut Outbox::new(0), effects)?;
            effects.counters.octets += (piece.len() - packet.length as usize) as u64;
            Ok(())
        });
        // None leaves without its outer header.
        done.inspect_err(|_| out.shorten(before)).map(|()| Executed::InPieces)
    }
}

/// What a packet is after it was edited in place.
fn image(edit: Edit, packet: &Packet, frame: &Frame) -> Result<Packet, DropReason> {
    if let Transport::IcmpError { .. } = packet.transport {
        // Its quote was edited too, and its length may have changed.
        return parse::parse(frame.bytes());
    }
    let (addresses, front, protocol) = match edit {
        Edit::Translate6To4 { source, destination, .. } => {
            let addresses = Addresses::V4 { source: source.address, destination: destination.address };
            (addresses, IPV4_HEADER, protocol_of(packet.protocol))
        }
        Edit::Translate4To6 { source, destination, .. } => {
            let addresses = Addresses::V6 { source: source.address, destination: destination.address };
            let fragment = if packet.fragment.is_some() { parse::FRAGMENT_HEADER } else { 0 };
            (addresses, IPV6_HEADER + fragment, next_header_of(packet.protocol))
        }
        Edit::Renumber4 { source, destination, .. } => {
            let addresses = Addresses::V4 { source: source.address, destination: destination.address };
            return Ok(Packet { addresses, hops: hops(frame), ..*packet });
        }
        Edit::Renumber6 { source, destination, .. } => {
            let addresses = Addresses::V6 { source, destination };
            return Ok(Packet { addresses, hops: hops(frame), ..*packet });
        }
    };
    Ok(Packet {
        addresses,
        protocol,
        traffic_class: traffic_class(frame.bytes()),
        hops: hops(frame),
        transport_at: front as u16,
        length: frame.len() as u32,
        fragment_header: 0,
        dont_fragment: dont_fragment(frame),
        ..*packet
    })
}

/// IPv4's DF; always set for IPv6, as the parser has it.
fn dont_fragment(frame: &Frame) -> bool {
    match frame.bytes() {
        [first, _, _, _, _, _, flags, ..] if first >> 4 == 4 => flags & 0x40 != 0,
        [..] => true,
    }
}

/// The TTL or hop limit of the packet in a frame.
fn hops(frame: &Frame) -> u8 {
    match frame.bytes() {
        [first, _, _, _, _, _, _, hops, _, ..] if first >> 4 == 6 => *hops,
        [_, _, _, _, _, _, _, _, hops, ..] => *hops,
        [..] => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{v4, v6};

    #[test]
    fn what_the_packet_between_two_steps_has_in_its_first_header_is_read_in_either_family() {
        let mut four = v4("10.0.0.1", "10.0.0.2", 17, &[0; 8]);
        (four[1], four[8]) = (0xb9, 33);
        let mut six = v6("2001:db8::1", "2001:db8::2", 17, &[0; 8]);
        (six[0], six[1], six[7], six[8]) = (0x6b, 0x90, 44, 0x20);
        for (octets, ttl) in [(four, 33), (six, 44)] {
            let frame = Frame::holding(&octets);
            assert_eq!((traffic_class(frame.bytes()), hops(&frame)), (0xb9, ttl));
            assert_eq!(dont_fragment(&frame), ttl == 44, "DF is clear in the IPv4 packet");
        }
        let mut four = v4("10.0.0.1", "10.0.0.2", 17, &[0; 8]);
        four[6] = 0x40;
        assert!(dont_fragment(&Frame::holding(&four)));
    }
}
