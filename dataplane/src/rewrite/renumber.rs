//! An IPv6 packet gets other addresses (RFC 6296). Extension headers are carried as they are.

use super::job::{Job, segment_payload};
use super::rewriter::HeaderWriter;
use super::transport::{self, Change};
use super::work::Executed;
use crate::drop_reason::DropReason;
use crate::parse::{Addresses, ICMP_HEADER, Transport};
use crate::verdict::Quoted;
use core::net::Ipv6Addr;
use sixway_wire::checksum::{self, Sum};

/// Where the Hop Limit is (RFC 8200 §3).
const HOP_LIMIT: usize = 7;
/// Where the two addresses stand.
const ADDRESSES: core::ops::Range<usize> = 8..40;

impl HeaderWriter {
    /// Writes new addresses; those of the packet that an ICMP error quotes too, if the decision has them. `neutral`: no sum changes, so no
    /// checksum does, be it complete or not.
    #[inline(always)]
    pub(super) fn renumber_6(
        &mut self,
        (source, destination): (Ipv6Addr, Ipv6Addr),
        neutral: bool,
        job: Job<'_>,
    ) -> Result<Executed, DropReason> {
        let Job { frame, packet, quoted, limits, hops, last, .. } = job;
        let Addresses::V6 { source: old_source, destination: old_destination } = packet.addresses else {
            return Err(DropReason::ProtocolUntranslatable);
        };
        let transport_at = usize::from(packet.transport_at);
        let segment = transport_at + segment_payload(frame, packet, packet.length as usize - transport_at)?;
        // No router cuts IPv6 packets (RFC 8200 §5).
        if last && segment > usize::from(limits.mtu6) {
            self.too_big_for = Some(limits.mtu6);
            return Err(DropReason::PacketTooBig);
        }
        let mut old = Sum::ZERO.ipv6(old_source).ipv6(old_destination);
        let mut new = Sum::ZERO.ipv6(source).ipv6(destination);
        let checksum = frame.offload.checksum;
        frame.offload.transport = packet.transport_at;
        let octets = frame.bytes_mut();
        if let Transport::IcmpError { .. } = packet.transport
            && let Some(Quoted::V6 { source, destination, .. }) = quoted
        {
            let quote = octets.get_mut(transport_at + ICMP_HEADER..).ok_or(DropReason::QuoteUnusable)?;
            let field = quote.get_mut(ADDRESSES).ok_or(DropReason::QuoteUnusable)?;
            old = old.bytes(field);
            new = new.ipv6(source.address).ipv6(destination.address);
            write(field, source.address, destination.address);
        }
        *octets.get_mut(HOP_LIMIT).ok_or(DropReason::Truncated)? = hops;
        write(octets.get_mut(ADDRESSES).ok_or(DropReason::Truncated)?, source, destination);
        if !neutral {
            let data = octets.get_mut(transport_at..).ok_or(DropReason::Truncated)?;
            match packet.transport {
                Transport::Ports { .. } => {
                    transport::ports(data, packet.protocol, Change { old, new, ports: None, checksum })?;
                }
                Transport::IcmpQuery { .. } | Transport::IcmpError { .. } => icmp(data, old, new)?,
                Transport::Opaque => {}
            }
        }
        Ok(Executed::InPlace)
    }
}

fn write(field: &mut [u8], source: Ipv6Addr, destination: Ipv6Addr) {
    let (first, second) = field.split_at_mut(field.len() / 2);
    first.copy_from_slice(&source.octets());
    second.copy_from_slice(&destination.octets());
}

/// The checksum of an ICMPv6 message, whose pseudo-header has changed (RFC 4443 §2.3).
fn icmp(data: &mut [u8], old: Sum, new: Sum) -> Result<(), DropReason> {
    let head = data.first_chunk_mut::<4>().ok_or(DropReason::TransportTruncated)?;
    let after = checksum::update(u16::from_be_bytes([head[2], head[3]]), old, new);
    head[2..4].copy_from_slice(&after.to_be_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effects::Effects;
    use crate::frame::{Checksum, Frame, Offload};
    use crate::limits::Limits;
    use crate::outbox::Outbox;
    use crate::parse::parse;
    use crate::rewrite::{Editing, Pass, Rewriter, Work};
    use crate::samples::{icmp, is_sound, seal, tcp, udp, v6};
    use crate::translate::Policy;
    use crate::tunnel::identification::Identifications;
    use crate::verdict::{Decision, Edit, Next, PolicyId, WorkerId};
    use sixway_wire::Endpoint6;
    use sixway_wire::protocol::{ICMPV6, TCP, UDP};

    const OLD: [&str; 2] = ["fd00::1", "2001:db8::9"];
    /// Its sum is another.
    const NEW: [&str; 2] = ["2001:db8:7::8", "2001:db8:5::6"];

    fn renumbered(packet: &[u8], offload: Offload, quoted: Option<Quoted>) -> Vec<u8> {
        let mut rewriter = Rewriter::new(Limits::default(), Identifications::new(WorkerId(0), 1, 7), 7);
        rewriter.set_policies(vec![Policy::default()], Vec::new());
        let [source, destination] = NEW.map(|address| address.parse().unwrap());
        let edit = Edit::Renumber6 { source, destination, neutral: false };
        let mut effects = Effects::default();
        let quoted = quoted.map(|quoted| effects.quoted(quoted));
        let decision = Decision { quoted, ..Decision::edit(edit, PolicyId(0), Next::Leave) };
        let mut frame = Frame::holding(packet);
        frame.offload = offload;
        let packet = parse(packet).unwrap();
        let pass = Pass { decrement: true, reassembled: false };
        let work = Work { decision: &decision, packet: &packet, inner: None, pass };
        let done = rewriter.execute::<Editing>(&work, &mut frame, &mut Outbox::new(1), &mut effects);
        assert_eq!(done, Ok(Executed::InPlace));
        assert_eq!(usize::from(frame.offload.transport), usize::from(packet.transport_at));
        frame.bytes().to_vec()
    }

    #[test]
    fn where_the_sums_differ_every_checksum_follows() {
        for (protocol, body) in
            [(TCP, tcp(1, 2, 33)), (UDP, udp(1, 2, 33)), (ICMPV6, icmp(128, 0, [0, 1, 0, 2], b"ping!"))]
        {
            let before = seal(v6(OLD[0], OLD[1], protocol, &body));
            let after = renumbered(&before, Offload::default(), None);
            assert!(is_sound(&after), "{protocol}");
            let mut expected = seal(v6(NEW[0], NEW[1], protocol, &body));
            expected[7] -= 1;
            assert_eq!(after, expected, "{protocol}");
        }
    }

    #[test]
    fn an_unfinished_checksum_stays_the_sum_of_the_pseudo_header() {
        let unfinished = |addresses: [&str; 2]| {
            let mut packet = v6(addresses[0], addresses[1], TCP, &tcp(1, 2, 33));
            let [source, destination] = addresses.map(|address| address.parse().unwrap());
            let sum = checksum::pseudo6(source, destination, TCP, packet.len() as u32 - 40).fold();
            packet[56..58].copy_from_slice(&sum.to_be_bytes());
            packet
        };
        let offload = Offload { checksum: Checksum::Partial, ..Offload::default() };
        let mut expected = unfinished(NEW);
        expected[7] -= 1;
        assert_eq!(renumbered(&unfinished(OLD), offload, None), expected);
    }

    #[test]
    fn the_checksum_of_an_error_takes_in_what_it_quotes() {
        let quote = |addresses: [&str; 2]| v6(addresses[1], addresses[0], UDP, &udp(3, 4, 10));
        let error = |addresses: [&str; 2]| {
            seal(v6(addresses[0], addresses[1], ICMPV6, &icmp(1, 4, [0; 4], &quote(addresses))))
        };
        let [destination, source] = NEW.map(|address| Endpoint6::new(address.parse().unwrap(), 0));
        let quoted = Quoted::V6 { source, destination, keep_ports: true };
        let mut expected = error(NEW);
        expected[7] -= 1;
        assert_eq!(renumbered(&error(OLD), Offload::default(), Some(quoted)), expected);
    }
}
