//! One packet that is not complete: its fragments in order. Gaps are allowed, overlaps are not.

use crate::drop_reason::DropReason;
use crate::frame::{Frame, Offload};
use crate::parse::{Addresses, FRAGMENT_HEADER, Fragment, Packet, TCP_HEADER, UDP_HEADER};
use sixway_wire::checksum::Sum;
use sixway_wire::protocol;

/// Memory for a held fragment in addition to its octets.
const PIECE_COST: usize = 64;

/// Congestion Experienced, the ECN field's both bits (RFC 3168 §5).
const CE: u8 = 3;

/// A reassembled packet.
#[derive(Debug)]
pub struct Whole {
    /// The packet. An IPv4 one has DF clear and no options lost; an IPv6 one keeps a Fragment header with offset 0 and no more
    /// to come, so that its translation may be fragmented again and bears its identification (RFC 7915 §5.1.1).
    pub frame: Frame,
    /// Number of received frames in it, the last one included.
    pub fragments: u32,
}

/// A fragment's octets behind the IP headers, and where they belong.
pub(super) struct Piece {
    offset: usize,
    more: bool,
    data: Box<[u8]>,
    /// The IP headers, of the first fragment alone.
    header: Option<Box<[u8]>>,
    traffic_class: u8,
}

impl Piece {
    /// Takes a fragment out of its frame. Fails with [`DropReason::BadFragment`] when no packet can have it: empty, not a multiple of 8
    /// octets before the last, beyond 65,535 octets; a first one too short for its transport header, or one that starts
    /// within TCP's (RFC 1858 §3, RFC 3128 §2).
    pub(super) fn of(frame: &Frame, packet: &Packet, place: Fragment) -> Result<Self, DropReason> {
        let (data_at, most) = match packet.addresses {
            Addresses::V4 { .. } => (usize::from(packet.transport_at), 0xffff - 20),
            Addresses::V6 { .. } => {
                (usize::from(packet.fragment_header) + FRAGMENT_HEADER, 0xffff - FRAGMENT_HEADER)
            }
        };
        let Some((header, data)) =
            frame.bytes().get(..packet.length as usize).and_then(|octets| octets.split_at_checked(data_at))
        else {
            return Err(DropReason::BadFragment);
        };
        let offset = usize::from(place.offset);
        let too_short = place.is_first() && data.len() < transport_header(packet.protocol);
        let within_tcp = offset == 8 && packet.protocol == protocol::TCP;
        let misaligned = place.more && !data.len().is_multiple_of(8);
        if data.is_empty() || misaligned || offset + data.len() > most || too_short || within_tcp {
            return Err(DropReason::BadFragment);
        }
        Ok(Self {
            offset,
            more: place.more,
            data: data.into(),
            header: place.is_first().then(|| header.into()),
            traffic_class: packet.traffic_class,
        })
    }

    /// Memory for holding it, in octets.
    pub(super) fn cost(&self) -> usize {
        PIECE_COST + self.data.len() + self.header.as_ref().map_or(0, |header| header.len())
    }

    const fn end(&self) -> usize {
        self.offset + self.data.len()
    }
}

/// What a first fragment must contain, so that nothing is guessed (RFC 1858 §3.1, RFC 7112 §5).
const fn transport_header(protocol: u8) -> usize {
    match protocol {
        protocol::TCP => TCP_HEADER,
        protocol::UDP | protocol::ICMPV4 | protocol::ICMPV6 => UDP_HEADER,
        _ => 0,
    }
}

/// The fragments of one packet.
#[derive(Default)]
pub(super) struct Held {
    /// By offset; they do not overlap.
    pieces: Vec<Piece>,
    /// Octets of data in them.
    octets: usize,
    /// Octets of data in the whole packet; known when the last fragment has arrived.
    total: Option<usize>,
    /// A fragment met congestion.
    congested: bool,
}

impl Held {
    /// Number of fragments held.
    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Memory that they take, in octets.
    pub(super) fn cost(&self) -> usize {
        self.pieces.iter().map(Piece::cost).sum()
    }

    /// Adds a fragment. An exact copy of a held fragment is refused with [`DropReason::FragmentDuplicate`] and does no harm
    /// (RFC 8200 §4.5); one that overlaps another, or contradicts the end, with [`DropReason::FragmentOverlap`]: then the
    /// packet is lost (RFC 5722 §4).
    pub(super) fn insert(&mut self, piece: Piece) -> Result<(), DropReason> {
        let at = self.pieces.partition_point(|other| other.offset < piece.offset);
        let next = self.pieces.get(at);
        if next.is_some_and(|next| {
            next.offset == piece.offset && next.data == piece.data && next.more == piece.more
        }) {
            return Err(DropReason::FragmentDuplicate);
        }
        let overlaps_next = next.is_some_and(|next| next.offset < piece.end());
        let before = at.checked_sub(1).and_then(|before| self.pieces.get(before));
        let overlaps_before = before.is_some_and(|before| before.end() > piece.offset);
        let beyond_end = self.total.is_some_and(|total| piece.end() > total || !piece.more);
        let before_others = !piece.more && next.is_some();
        if overlaps_next || overlaps_before || beyond_end || before_others {
            return Err(DropReason::FragmentOverlap);
        }
        if !piece.more {
            self.total = Some(piece.end());
        }
        self.octets += piece.data.len();
        self.congested |= piece.traffic_class & CE == CE;
        self.pieces.insert(at, piece);
        Ok(())
    }

    /// Whether the packet is complete: the last fragment has arrived, and all octets before its end.
    pub(super) fn is_complete(&self) -> bool {
        self.total == Some(self.octets)
    }

    /// The first fragment as it was received, if it has arrived.
    pub(super) fn first(&self) -> Option<Frame> {
        let piece = self.pieces.first()?;
        let header = piece.header.as_ref()?;
        Some(Frame::holding(&[&header[..], &piece.data[..]].concat()))
    }

    /// The packet, when it is complete. Fails with [`DropReason::BadFragment`] when with its header it is longer than a packet can be.
    pub(super) fn whole(&self) -> Result<Whole, DropReason> {
        let header = self.pieces.first().and_then(|piece| piece.header.as_ref());
        let header = header.ok_or(DropReason::BadFragment)?;
        let length = header.len() + self.octets;
        let v4 = header.first().is_some_and(|octet| octet >> 4 == 4);
        if length > if v4 { 0xffff } else { 40 + 0xffff } {
            return Err(DropReason::BadFragment);
        }
        let mut frame = Frame::with_capacity(length.max(2_048));
        frame.received(length, Offload { transport: header.len() as u16, ..Offload::default() });
        let (front, mut rest) = frame.bytes_mut().split_at_mut(header.len());
        front.copy_from_slice(header);
        for piece in &self.pieces {
            let (here, behind) = rest.split_at_mut(piece.data.len());
            here.copy_from_slice(&piece.data);
            rest = behind;
        }
        relabel(front, length, v4, self.congested);
        Ok(Whole { frame, fragments: self.pieces.len() as u32 })
    }
}

/// Makes the first fragment's headers those of the whole packet. Congestion experienced by a fragment is the packet's (RFC 3168 §5.3).
fn relabel(header: &mut [u8], length: usize, v4: bool, congested: bool) {
    if v4 {
        header[2..4].copy_from_slice(&(length as u16).to_be_bytes());
        header[6..8].fill(0);
        if congested && header[1] & CE != 0 {
            header[1] |= CE;
        }
        header[10..12].fill(0);
        let checksum = Sum::ZERO.bytes(header).checksum();
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        return;
    }
    header[4..6].copy_from_slice(&((length - 40) as u16).to_be_bytes());
    if congested && header[1] >> 4 & CE != 0 {
        header[1] |= CE << 4;
    }
    // The Fragment header is the last of them: offset 0, no more.
    if let Some(header) = header.last_chunk_mut::<FRAGMENT_HEADER>() {
        header[1..4].fill(0);
    }
}
