//! Renumbers the most frequent IPv4 packets in one step: whole TCP segments and UDP datagrams behind a header without options, with
//! finished checksums. All others are renumbered by `renumber4`.

use crate::drop_reason::DropReason;
use crate::frame::{Checksum, Frame};
use crate::parse::{Addresses, IPV4_HEADER, Packet, SYN, Transport};
use core::net::Ipv4Addr;
use sixway_wire::Endpoint4;
use sixway_wire::checksum::{self, Sum};
use sixway_wire::protocol::{TCP, UDP};

/// Where the checksums are.
const UDP_CHECKSUM: usize = 6;
const TCP_CHECKSUM: usize = 16;

/// What is read of a plain packet: its old endpoints, and its old TTL.
#[derive(Clone, Copy)]
pub(super) struct Plain {
    source: Endpoint4,
    destination: Endpoint4,
    is_udp: bool,
    hops: u8,
    /// It may be fragmented: its identification matters.
    pub(super) may_be_cut: bool,
}

impl Plain {
    /// Of a packet that a frame holds; `None`: it is not plain.
    #[inline(always)]
    pub(super) fn of(packet: &Packet, frame: &Frame) -> Option<Self> {
        let Addresses::V4 { source, destination } = packet.addresses else { return None };
        let Transport::Ports { source: from, destination: to, tcp_flags } = packet.transport else {
            return None;
        };
        let is_plain = matches!(packet.protocol, TCP | UDP)
            // A SYN has an MSS.
            && tcp_flags & SYN == 0
            && usize::from(packet.transport_at) == IPV4_HEADER
            && packet.fragment.is_none()
            && frame.offload.segments.is_none()
            && frame.offload.checksum == Checksum::Complete;
        is_plain.then_some(Self {
            source: Endpoint4::new(source, from),
            destination: Endpoint4::new(destination, to),
            is_udp: packet.protocol == UDP,
            hops: packet.hops,
            may_be_cut: !packet.dont_fragment,
        })
    }

    /// Whether the new source is another one.
    #[inline(always)]
    pub(super) fn changes_source(&self, source: Ipv4Addr) -> bool {
        self.source.address.to_bits() != source.to_bits()
    }

    /// Writes new endpoints, TTL, and identification, if there is a new one, into the packet that begins here; its checksums follow (RFC 1624).
    #[inline(always)]
    pub(super) fn renumber(
        self,
        octets: &mut [u8],
        (source, destination): (Endpoint4, Endpoint4),
        (hops, identification): (u8, Option<u16>),
    ) -> Result<(), DropReason> {
        let (header, data) = octets.split_first_chunk_mut::<IPV4_HEADER>().ok_or(DropReason::Truncated)?;
        let old = Sum::ZERO.ipv4(self.source.address).ipv4(self.destination.address);
        let new = Sum::ZERO.ipv4(source.address).ipv4(destination.address);
        let at = if self.is_udp { UDP_CHECKSUM } else { TCP_CHECKSUM };
        let (head, behind) = data.split_first_chunk_mut::<4>().ok_or(DropReason::TransportTruncated)?;
        let field = behind.get_mut(at - 4..).and_then(<[u8]>::first_chunk_mut::<2>);
        let field = field.ok_or(DropReason::TransportTruncated)?;
        let before = u16::from_be_bytes(*field);
        *head = ports(source, destination).to_be_bytes();
        if before != 0 || !self.is_udp {
            let old = old.long(ports(self.source, self.destination));
            let after = checksum::update(before, old, new.long(ports(source, destination)));
            *field = if after == 0 && self.is_udp { [0xff; 2] } else { after.to_be_bytes() };
        }
        let [_, _, _, _, high, low, _, _, ttl, protocol, first, second, addresses @ ..] = header;
        let mut old = old.word(u16::from_be_bytes([self.hops, *protocol]));
        let mut new = new.word(u16::from_be_bytes([hops, *protocol]));
        if let Some(identification) = identification {
            old = old.word(u16::from_be_bytes([*high, *low]));
            new = new.word(identification);
            [*high, *low] = identification.to_be_bytes();
        }
        *ttl = hops;
        [*first, *second] = checksum::update(u16::from_be_bytes([*first, *second]), old, new).to_be_bytes();
        let words = u64::from(source.address.to_bits()) << 32 | u64::from(destination.address.to_bits());
        *addresses = words.to_be_bytes();
        Ok(())
    }
}

/// Both ports, as they are in front of a transport header.
#[inline(always)]
const fn ports(source: Endpoint4, destination: Endpoint4) -> u32 {
    (source.port as u32) << 16 | destination.port as u32
}
