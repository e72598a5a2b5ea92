//! One whole IP packet in a buffer with room to grow at the front, as links and the engine hand it to one another.
//!
//! A frame may be a GSO packet: one set of headers for many TCP or UDP segments, which the kernel (or a network card)
//! cuts or joins. Its transport checksum may be unfinished, holding only the sum of the pseudo-header.

use crate::drop_reason::DropReason;
use crate::verdict::Verdict;
use core::ops::Range;
use sixway_wire::protocol::{TCP, UDP};
use sixway_wire::{TCP_HEADER, UDP_HEADER};

/// Octets kept free in front of a received packet: translation and encapsulation grow headers (20 octets from IPv4 to
/// IPv6, 8 for a Fragment header, 40 for an outer IPv6 header), and a link may put its own header there.
pub const HEADROOM: usize = 128;

/// The largest packet: an IPv6 header with a full 16-bit Payload Length.
pub const MAX_PACKET: usize = 40 + 65_535;

/// Which transport protocol's segments a GSO packet holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// TCP segmentation offload (TSO, GRO).
    Tcp,
    /// TCP whose CWR flag is set on the first segment only (the virtio ECN bit).
    TcpEcn,
    /// UDP segmentation offload (USO).
    Udp,
}

impl SegmentKind {
    /// Whether packets of that protocol are segmented this way.
    #[inline]
    pub const fn is_of(self, protocol: u8) -> bool {
        match self {
            Self::Tcp | Self::TcpEcn => protocol == TCP,
            Self::Udp => protocol == UDP,
        }
    }

    /// Octets of the transport header at the start of `data`; `None` where it is cut short.
    #[inline]
    pub fn header_length(self, data: &[u8]) -> Option<usize> {
        let length = match self {
            Self::Udp => UDP_HEADER,
            Self::Tcp | Self::TcpEcn => {
                Some(usize::from(data.get(12)? >> 4) * 4).filter(|length| *length >= TCP_HEADER)?
            }
        };
        (length <= data.len()).then_some(length)
    }
}

/// How a GSO packet is segmented: payload octets of a segment, and the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// Payload octets in each segment but the last; never zero.
    pub size: u16,
    /// What is segmented.
    pub kind: SegmentKind,
}

/// The state of the transport checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// The checksum is complete.
    #[default]
    Complete,
    /// The field holds the folded sum of the pseudo-header; the device that sends the packet on a wire finishes it
    /// (Linux: CHECKSUM_PARTIAL). Only for TCP and UDP; a link finishes every other kind itself.
    Partial,
}

/// What a link knows about a frame in addition to its octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// The state of the transport checksum.
    pub checksum: Checksum,
    /// `Some` for a GSO packet.
    pub segments: Option<Segments>,
    /// Octets from the start of the packet to its transport header. The engine sets it on what it forwards, so that a
    /// link can tell the kernel where to finish the checksum; links need not set it on what they receive.
    pub transport: u16,
}

/// Number of a realm: an address space with a device of its own; 0 is the gateway's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Realm(pub u16);

/// Where a frame came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ingress {
    /// The TUN device of a realm, by its routes or because a hook steered it there.
    Device(Realm),
    /// A raw socket at one of this host's addresses.
    Socket,
}

impl Default for Ingress {
    fn default() -> Self {
        Self::Device(Realm(0))
    }
}

/// A packet in its buffer.
pub struct Frame {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// Segmentation and checksum state.
    pub offload: Offload,
    /// The verdict; the engine writes it.
    pub verdict: Verdict,
    /// How many mechanisms it has passed; not zero for a frame that another worker handed over on the way.
    pub passes: u8,
    /// Which frames of the outbox it became, to be sent at its place among the others; the engine writes it.
    pub pieces: Range<u16>,
    /// Where it came in; the link writes it, and it stays until the next packet. A translator that takes the packet from one device to another
    /// writes where it leaves.
    pub ingress: Ingress,
    /// Whether it is a datagram that a tunnel of this host wrote, so that it leaves by the UDP socket of its source, if there is one; the engine writes
    /// it. No other packet does, whatever source it claims.
    pub by_socket: bool,
}

impl Frame {
    /// The realm whose device it came from or leaves by.
    #[inline(always)]
    pub const fn realm(&self) -> Realm {
        match self.ingress {
            Ingress::Device(realm) => realm,
            Ingress::Socket => Realm(0),
        }
    }

    /// An empty frame with room for a packet of `capacity` octets behind [`HEADROOM`].
    ///
    /// Frames of a batch should not all begin at the same offset of a page, or their headers evict one another from the
    /// cache. With [`MAX_PACKET`] glibc's allocator avoids that.
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            buffer: vec![0; HEADROOM + capacity].into_boxed_slice(),
            start: HEADROOM,
            end: HEADROOM,
            offload: Offload::default(),
            verdict: Verdict::Pending,
            passes: 0,
            pieces: 0..0,
            ingress: Ingress::default(),
            by_socket: false,
        }
    }

    /// A frame that holds a copy of `packet`, with as much room behind it as `packet` is long or 1,500 octets.
    pub fn holding(packet: &[u8]) -> Self {
        let mut frame = Self::with_capacity(packet.len().max(1_500) + 64);
        frame.fill(packet, Offload::default());
        frame
    }

    /// Makes the frame hold a copy of `packet`, cut to the frame's capacity.
    pub fn fill(&mut self, packet: &[u8], offload: Offload) {
        let space = self.space();
        let length = packet.len().min(space.len());
        space[..length].copy_from_slice(&packet[..length]);
        self.received(length, offload);
    }

    /// Where a link reads a packet to: everything behind the headroom. Follow it by [`Frame::received`].
    pub fn space(&mut self) -> &mut [u8] {
        &mut self.buffer[HEADROOM..]
    }

    /// As [`Frame::space`], with the last `front` octets of the headroom before it: for a link whose packets come with a
    /// header of its own. At most [`HEADROOM`].
    #[inline]
    pub fn space_behind(&mut self, front: usize) -> &mut [u8] {
        &mut self.buffer[HEADROOM.saturating_sub(front)..]
    }

    /// The packet with `front` octets of the headroom before it, for a link's own header; `None` when the headroom left is
    /// smaller.
    #[inline]
    pub fn bytes_behind(&mut self, front: usize) -> Option<&mut [u8]> {
        let start = self.start.checked_sub(front)?;
        Some(&mut self.buffer[start..self.end])
    }

    /// A packet of `length` octets was written to [`Frame::space`].
    pub fn received(&mut self, length: usize, offload: Offload) {
        self.start = HEADROOM;
        self.end = (HEADROOM + length).min(self.buffer.len());
        self.offload = offload;
        self.verdict = Verdict::Pending;
        self.passes = 0;
        self.pieces = 0..0;
        self.by_socket = false;
    }

    /// The packet, from its IP header on.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The packet, to be changed in place.
    #[inline(always)]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.start..self.end]
    }

    /// The packet's length in octets.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether the frame holds nothing.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Drops octets at the end until `length` are left (padding behind the packet's own length).
    #[inline]
    pub fn truncate(&mut self, length: usize) {
        self.end = self.end.min(self.start + length);
    }

    /// Keeps `length` octets from `from` on, if there are as many.
    #[inline(always)]
    pub fn narrow(&mut self, from: usize, length: usize) -> Result<(), DropReason> {
        let start = self.start + from;
        if start + length > self.end {
            return Err(DropReason::Truncated);
        }
        (self.start, self.end) = (start, start + length);
        Ok(())
    }

    /// Appends octets, if the buffer has room behind the packet.
    #[inline]
    pub fn extend(&mut self, octets: &[u8]) -> bool {
        let Some(room) = self.buffer.get_mut(self.end..self.end + octets.len()) else { return false };
        room.copy_from_slice(octets);
        self.end += octets.len();
        true
    }

    /// Moves the start so that `old` leading octets become `new`; the octets between are not cleared.
    /// Fails with [`DropReason::NoHeadroom`] when the buffer has no room in front.
    #[inline]
    pub fn resize_front(&mut self, old: usize, new: usize) -> Result<(), DropReason> {
        let start = (self.start + old).checked_sub(new).ok_or(DropReason::NoHeadroom)?;
        if start > self.end {
            return Err(DropReason::Truncated);
        }
        self.start = start;
        Ok(())
    }

    /// Takes another frame's packet. The larger buffer is kept, so that a frame that a link reads into has room for what
    /// comes next.
    pub fn adopt(&mut self, other: Self) {
        if self.buffer.len() < other.buffer.len() || self.space().len() < other.len() {
            *self = other;
            return;
        }
        self.fill(other.bytes(), other.offload);
        (self.verdict, self.passes, self.ingress) = (other.verdict, other.passes, other.ingress);
        self.by_socket = other.by_socket;
    }

    /// Number of packets on the wire: 1, or a GSO packet's segments. `behind` octets from `transport_at` on are its transport
    /// header and its payload.
    #[inline]
    pub fn segment_count(&self, transport_at: usize, behind: usize) -> u32 {
        match self.offload.segments {
            None => 1,
            Some(segments) => {
                let data = self.bytes().get(transport_at..).unwrap_or_default();
                let header = segments.kind.header_length(data).unwrap_or_default();
                let payload = behind.saturating_sub(header);
                payload.div_ceil(usize::from(segments.size).max(1)).max(1) as u32
            }
        }
    }
}

impl core::fmt::Debug for Frame {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Frame({} octets, {:?}, {:?}:", self.len(), self.offload, self.verdict)?;
        self.bytes().iter().take(80).try_for_each(|octet| write!(f, " {octet:02x}"))?;
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adopted_packet_leaves_the_larger_buffer_where_it_is() {
        let mut large = Frame::with_capacity(MAX_PACKET);
        let mut small = Frame::holding(&[7; 100]);
        small.passes = 1;
        large.adopt(small);
        assert_eq!((large.bytes(), large.passes), ([7; 100].as_slice(), 1));
        assert_eq!(large.space().len(), MAX_PACKET);
        let mut small = Frame::holding(&[1]);
        small.adopt(Frame::holding(&[7; 9_000]));
        assert_eq!(small.bytes(), [7; 9_000]);
    }
}
