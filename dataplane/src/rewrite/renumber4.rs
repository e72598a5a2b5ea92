//! An IPv4 packet gets other addresses and ports, as by a NAT (RFC 3022, RFC 5508 §4). IPv4 options are carried as
//! they are.

use super::job::{Job, segment_payload};
use super::mss;
use super::rewriter::HeaderWriter;
use super::segments::Family;
use super::transport::{self, Change};
use super::work::Executed;
use crate::drop_reason::DropReason;
use crate::frame::Checksum;
use crate::parse::{Addresses, ICMP_HEADER, SYN, Transport};
use crate::translate::{Policy, icmp};
use crate::verdict::Quoted;
use core::net::Ipv4Addr;
use sixway_wire::checksum::{self, Sum};

/// Where the identification is, TTL and Protocol, the header checksum, and the two addresses (RFC 791 §3.1).
const IDENTIFICATION: core::ops::Range<usize> = 4..6;
const HOPS: usize = 8;
const CHECKSUM: usize = 10;
const ADDRESSES: core::ops::Range<usize> = 12..20;

impl HeaderWriter {
    /// Writes new addresses, and new ports or a new identifier; `None`: they stay. Of an ICMP error the packet that it quotes is rewritten too, as
    /// the decision says. A packet without DF that is too large for the next link is cut.
    #[inline(always)]
    pub(super) fn renumber_4(
        &mut self,
        (source, destination): (Ipv4Addr, Ipv4Addr),
        ports: Option<(u16, u16)>,
        policy: &Policy,
        job: Job<'_>,
    ) -> Result<Executed, DropReason> {
        let Job { frame, packet, quoted, limits, hops, last, reassembled, out, counters } = job;
        let Addresses::V4 { source: old_source, destination: old_destination } = packet.addresses else {
            return Err(DropReason::ProtocolUntranslatable);
        };
        let transport_at = usize::from(packet.transport_at);
        let segment = transport_at + segment_payload(frame, packet, packet.length as usize - transport_at)?;
        let is_too_big = last && segment > usize::from(limits.mtu4);
        if is_too_big && packet.dont_fragment && !reassembled {
            self.too_big_for = Some(limits.mtu4);
            return Err(DropReason::PacketTooBig);
        }
        if let Transport::IcmpError { .. } = packet.transport {
            error(frame.bytes_mut().get_mut(transport_at..).ok_or(DropReason::Truncated)?, quoted)?;
        }
        // Several hosts share the new source now: what may be fragmented gets an identification that is not under way (RFC 6864 §5.3.1).
        let is_shared = source != old_source && !packet.dont_fragment && packet.fragment.is_none();
        let identification = is_shared.then(|| {
            let payload = packet.length as usize - transport_at;
            self.identifications.reserve(destination, frame.segment_count(transport_at, payload))
        });
        let checksum = frame.offload.checksum;
        frame.offload.transport = packet.transport_at;
        let octets = frame.bytes_mut();
        let (header, data) = octets.split_at_mut_checked(transport_at).ok_or(DropReason::Truncated)?;
        let change = Change {
            old: Sum::ZERO.ipv4(old_source).ipv4(old_destination),
            new: Sum::ZERO.ipv4(source).ipv4(destination),
            ports,
            checksum,
        };
        match packet.transport {
            Transport::Ports { tcp_flags, .. } => {
                transport::ports(data, packet.protocol, change)?;
                if tcp_flags & SYN != 0 && policy.clamp_mss {
                    mss::clamp(data, limits.mss4(), checksum == Checksum::Partial);
                }
            }
            Transport::IcmpQuery { kind, code, .. } => transport::identifier(data, (kind, code), ports)?,
            Transport::IcmpError { .. } | Transport::Opaque => {}
        }
        write(header, (source, destination), (hops, identification), change)?;
        if !is_too_big {
            return Ok(Executed::InPlace);
        }
        self.cut(frame, Family::V4, limits.mtu4, out, counters)
    }
}

/// Addresses, TTL and, where there is a new one, identification of the header, whose checksum follows (RFC 1624).
#[inline(always)]
fn write(
    header: &mut [u8],
    (source, destination): (Ipv4Addr, Ipv4Addr),
    (hops, identification): (u8, Option<u16>),
    Change { old, new, .. }: Change,
) -> Result<(), DropReason> {
    let header = header.first_chunk_mut::<20>().ok_or(DropReason::Truncated)?;
    // The new words are not read from where they were just written, octet by octet: that stalls the CPU.
    let old = old.bytes(&header[HOPS..HOPS + 2]);
    let new = new.word(u16::from_be_bytes([hops, header[HOPS + 1]]));
    let (old, new) = match identification {
        None => (old, new),
        Some(identification) => {
            let before = old.bytes(&header[IDENTIFICATION]);
            header[IDENTIFICATION].copy_from_slice(&identification.to_be_bytes());
            (before, new.word(identification))
        }
    };
    let before = u16::from_be_bytes([header[CHECKSUM], header[CHECKSUM + 1]]);
    header[HOPS] = hops;
    header[CHECKSUM..CHECKSUM + 2].copy_from_slice(&checksum::update(before, old, new).to_be_bytes());
    let (first, second) = header[ADDRESSES].split_at_mut(4);
    first.copy_from_slice(&source.octets());
    second.copy_from_slice(&destination.octets());
    Ok(())
}

/// The packet that an ICMP error quotes gets its own new addresses, and the error's checksum follows (RFC 5508 §4.2).
fn error(message: &mut [u8], quoted: Option<Quoted>) -> Result<(), DropReason> {
    let Some(Quoted::V4 { source, destination, keep_ports }) = quoted else {
        return Err(DropReason::QuoteUnusable);
    };
    let (head, quote) = message.split_at_mut_checked(ICMP_HEADER).ok_or(DropReason::TransportTruncated)?;
    let old = Sum::ZERO.bytes(quote);
    icmp::renumber_quoted4(quote, (source, destination, keep_ports))?;
    let new = Sum::ZERO.bytes(quote);
    let after = checksum::update(u16::from_be_bytes([head[2], head[3]]), old, new);
    head[2..4].copy_from_slice(&after.to_be_bytes());
    Ok(())
}

#[cfg(test)]
mod tests;
