//! Cuts GSO packets into their segments, where the next step cannot.
//!
//! Each segment gets a copy of the headers. IPv4: Total Length, an Identification that counts up, the header checksum. IPv6:
//! Payload Length. TCP: the sequence number; CWR on the first segment only (RFC 3168 §6.1.2), FIN and PSH on the last
//! only. UDP: Length. Checksums are complete.

use crate::drop_reason::DropReason;
use crate::frame::{SegmentKind, Segments};
use crate::parse::{Addresses, IPV6_HEADER, Packet, parse};
use sixway_wire::checksum::{Sum, pseudo4, pseudo6};
use sixway_wire::protocol::UDP;

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// A GSO packet, taken apart.
#[derive(Clone, Copy, Debug)]
pub struct GsoPacket<'a> {
    /// Everything in front of the payload.
    headers: &'a [u8],
    payload: &'a [u8],
    addresses: Addresses,
    protocol: u8,
    transport_at: usize,
    segments: Segments,
}

impl<'a> GsoPacket<'a> {
    /// Reads one; octets behind the packet's own length are left out.
    ///
    /// Fails as [`parse`] and [`GsoPacket::of`] do.
    pub fn read(octets: &'a [u8], segments: Segments) -> Result<Self, DropReason> {
        Self::of(octets, &parse(octets)?, segments)
    }

    /// The same of a packet that was parsed.
    ///
    /// Fails with [`DropReason::BadGso`] when the packet is not what `segments` says: another protocol, a fragment (an
    /// atomic one too, whose Identification would be that of all segments), a header cut short, segments without data.
    pub fn of(octets: &'a [u8], packet: &Packet, segments: Segments) -> Result<Self, DropReason> {
        let is_fragment = packet.fragment.is_some() || packet.fragment_header != 0;
        if segments.size == 0 || is_fragment || !segments.kind.is_of(packet.protocol) {
            return Err(DropReason::BadGso);
        }
        let octets = octets.get(..packet.length as usize).ok_or(DropReason::BadGso)?;
        let transport_at = usize::from(packet.transport_at);
        let header = octets.get(transport_at..).and_then(|data| segments.kind.header_length(data));
        let header = header.ok_or(DropReason::BadGso)?;
        let (headers, payload) = octets.split_at(transport_at + header);
        let (addresses, protocol) = (packet.addresses, packet.protocol);
        Ok(Self { headers, payload, addresses, protocol, transport_at, segments })
    }

    /// How many segments there are; at least one.
    pub fn count(&self) -> usize {
        self.payload.len().div_ceil(usize::from(self.segments.size)).max(1)
    }

    /// Octets from the start of each segment to its transport header.
    pub const fn transport_at(&self) -> usize {
        self.transport_at
    }

    /// The length of segment `number`, from zero: octets of IP packet.
    pub fn length(&self, number: usize) -> usize {
        self.headers.len() + self.data(number).len()
    }

    /// The payload of segment `number`.
    fn data(&self, number: usize) -> &'a [u8] {
        let size = usize::from(self.segments.size);
        let end = self.payload.len();
        &self.payload[end.min(number * size)..end.min((number + 1) * size)]
    }

    /// Writes segment `number` to the start of `space`, and says how long it is.
    ///
    /// Fails with [`DropReason::BadGso`] when `space` is shorter than [`GsoPacket::length`].
    pub fn write(&self, number: usize, space: &mut [u8]) -> Result<usize, DropReason> {
        let data = self.data(number);
        let length = self.headers.len() + data.len();
        let segment = space.get_mut(..length).ok_or(DropReason::BadGso)?;
        segment[..self.headers.len()].copy_from_slice(self.headers);
        segment[self.headers.len()..].copy_from_slice(data);
        let (ip, transport) = segment.split_at_mut(self.transport_at);
        match self.addresses {
            Addresses::V4 { .. } => number_ipv4(ip, length, number),
            Addresses::V6 { .. } => {
                ip[4..6].copy_from_slice(&((length - IPV6_HEADER) as u16).to_be_bytes());
            }
        }
        match self.segments.kind {
            SegmentKind::Udp => {
                let length = transport.len() as u16;
                transport[4..6].copy_from_slice(&length.to_be_bytes());
                self.complete(transport, 6);
            }
            SegmentKind::Tcp | SegmentKind::TcpEcn => {
                let offset = number * usize::from(self.segments.size);
                number_tcp(transport, offset, number == 0, number + 1 == self.count());
                self.complete(transport, 16);
            }
        }
        Ok(length)
    }

    /// Writes the transport checksum from scratch; its field is at `at`.
    fn complete(&self, transport: &mut [u8], at: usize) {
        transport[at..at + 2].fill(0);
        let length = transport.len() as u32;
        let pseudo = match self.addresses {
            Addresses::V4 { source, destination } => pseudo4(source, destination, self.protocol, length),
            Addresses::V6 { source, destination } => pseudo6(source, destination, self.protocol, length),
        };
        let sum = pseudo.bytes(transport);
        let checksum = if self.protocol == UDP { sum.checksum_nonzero() } else { sum.checksum() };
        transport[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// The fields of an IPv4 header, options included, that differ from segment to segment.
fn number_ipv4(header: &mut [u8], length: usize, number: usize) {
    header[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    let identification = u16::from_be_bytes([header[4], header[5]]).wrapping_add(number as u16);
    header[4..6].copy_from_slice(&identification.to_be_bytes());
    header[10..12].fill(0);
    let checksum = Sum::ZERO.bytes(header).checksum();
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// The fields of the TCP header that differ from segment to segment.
fn number_tcp(header: &mut [u8], offset: usize, first: bool, last: bool) {
    let sequence = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
    header[4..8].copy_from_slice(&sequence.wrapping_add(offset as u32).to_be_bytes());
    if !first {
        header[13] &= !CWR;
    }
    if !last {
        header[13] &= !(FIN | PSH);
    }
}

#[cfg(test)]
mod tests;
