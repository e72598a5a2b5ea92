//! Cuts a finished packet into fragments that fit a link (RFC 791 §3.2, RFC 8200 §4.5). What is a fragment already is cut further:
//! its offset and its More flag carry over.
//!
//! The transport checksum must be finished before, since no fragment holds all that it covers. GSO packets are not cut here: they are
//! segments, not fragments.

use crate::drop_reason::DropReason;
use crate::frame::Frame;
use crate::outbox::Outbox;
use crate::parse::{FRAGMENT_HEADER, Fragment, IPV4_HEADER, IPV6_HEADER, Packet, parse};
use crate::translate::header::fragment_header;
use sixway_wire::{FragmentHeader, Ipv4Header, protocol};

/// Fragments' data is a multiple of this, but for the last one's (RFC 791 §3.1, RFC 8200 §4.5).
const UNIT: usize = 8;

/// Cuts an IPv4 packet into fragments of at most `mtu` octets at the end of `out`, and says how many. A packet that fits is copied as it is.
///
/// Fails, leaving `out` as it was, with [`DropReason::PacketTooBig`] when DF is set or `mtu` cannot hold 8 octets of data,
/// [`DropReason::BadGso`], [`DropReason::BadFragment`] when the packet is a fragment that ends beyond what a packet can hold,
/// [`DropReason::OutboxFull`], and as [`parse`] does.
pub fn fragment4(frame: &Frame, mtu: u16, out: &mut Outbox) -> Result<u32, DropReason> {
    let (packet, octets) = whole(frame)?;
    if octets.len() <= usize::from(mtu) {
        return copy(octets, out);
    }
    if packet.dont_fragment {
        return Err(DropReason::PacketTooBig);
    }
    let (header, data) = octets.split_at(packet.transport_at.into());
    let mut later_header = [0; 60];
    let later_header = copied_options(header, &mut later_header);
    let place = packet.fragment.unwrap_or(WHOLE);
    let value = Ipv4Header::read(header).map_err(|_| DropReason::Truncated)?;
    all_or_nothing(out, |out| {
        let mut cut = Cut::new(place, data.len())?;
        while let Some((at, length, fragment)) =
            cut.next(if cut.at == 0 { header.len() } else { later_header.len() }, mtu)?
        {
            let header = if at == 0 { header } else { &*later_header };
            let piece = out.push(header.len() + length)?;
            piece.offload.transport = header.len() as u16;
            let octets = piece.bytes_mut();
            octets[..header.len()].copy_from_slice(header);
            octets[header.len()..].copy_from_slice(&data[at..at + length]);
            let value = Ipv4Header {
                length: octets.len() as u16,
                more_fragments: fragment.more,
                offset: fragment.offset,
                ..value
            };
            let header = &mut octets[..header.len()];
            value.write_with_options(header).map_err(|_| DropReason::BadIpv4Length)?;
        }
        Ok(cut.made)
    })
}

/// Cuts an IPv6 packet into fragments of at most `mtu` octets at the end of `out`, and says how many. A packet that fits is copied as it is.
/// `identification` is for the Fragment headers, unless the packet has one already, whose identification stays.
///
/// Fails as [`fragment4`] does, but knows no DF: whether the packet may be cut is the caller's to judge.
pub fn fragment6(frame: &Frame, identification: u32, mtu: u16, out: &mut Outbox) -> Result<u32, DropReason> {
    let (packet, octets) = whole(frame)?;
    if octets.len() <= usize::from(mtu) {
        return copy(octets, out);
    }
    let Divided { front, next_header_at, next_header, data, place } =
        divide6(&packet, octets, identification)?;
    let overhead = front.len() + FRAGMENT_HEADER;
    all_or_nothing(out, |out| {
        let mut cut = Cut::new(place, data.len())?;
        while let Some((at, length, fragment)) = cut.next(overhead, mtu)? {
            let piece = out.push(overhead + length)?;
            piece.offload.transport = overhead as u16;
            let octets = piece.bytes_mut();
            octets[..front.len()].copy_from_slice(front);
            octets[4..6].copy_from_slice(&((overhead - IPV6_HEADER + length) as u16).to_be_bytes());
            octets[next_header_at] = protocol::FRAGMENT;
            octets[front.len()..overhead].copy_from_slice(&fragment_header(next_header, fragment));
            octets[overhead..].copy_from_slice(&data[at..at + length]);
        }
        Ok(cut.made)
    })
}

/// The fragment fields of a whole packet.
const WHOLE: Fragment = Fragment { offset: 0, more: false, identification: 0 };

/// The packet without padding; fails for a GSO packet.
fn whole(frame: &Frame) -> Result<(Packet, &[u8]), DropReason> {
    if frame.offload.segments.is_some() {
        return Err(DropReason::BadGso);
    }
    let packet = parse(frame.bytes())?;
    let octets = frame.bytes().get(..packet.length as usize).ok_or(DropReason::Truncated)?;
    Ok((packet, octets))
}

fn copy(octets: &[u8], out: &mut Outbox) -> Result<u32, DropReason> {
    let piece = out.push(octets.len())?;
    piece.bytes_mut().copy_from_slice(octets);
    Ok(1)
}

/// Removes what was pushed before a failure: half a packet is useless.
fn all_or_nothing(
    out: &mut Outbox,
    push: impl FnOnce(&mut Outbox) -> Result<u32, DropReason>,
) -> Result<u32, DropReason> {
    let before = out.len();
    push(out).inspect_err(|_| out.shorten(before))
}

/// Where the next fragment of a packet's data starts.
struct Cut {
    place: Fragment,
    /// Octets of data done, and in all.
    at: usize,
    length: usize,
    made: u32,
}

impl Cut {
    fn new(place: Fragment, length: usize) -> Result<Self, DropReason> {
        if usize::from(place.offset) + length > 0xffff {
            return Err(DropReason::BadFragment);
        }
        Ok(Self { place, at: 0, length, made: 0 })
    }

    /// Start and length of the next fragment's data, and its place in the original packet; `overhead` octets of header go before it.
    fn next(&mut self, overhead: usize, mtu: u16) -> Result<Option<(usize, usize, Fragment)>, DropReason> {
        let left = self.length - self.at;
        if left == 0 {
            return Ok(None);
        }
        let room = usize::from(mtu).saturating_sub(overhead);
        let length = if left <= room { left } else { room / UNIT * UNIT };
        if length == 0 {
            return Err(DropReason::PacketTooBig);
        }
        let fragment = Fragment {
            offset: self.place.offset + self.at as u16,
            more: self.place.more || length < left,
            identification: self.place.identification,
        };
        let at = self.at;
        self.at += length;
        self.made += 1;
        Ok(Some((at, length, fragment)))
    }
}

/// RFC 791 §3.1: the header of every fragment but the first has only the options whose copied flag is set. IHL is still that of `header`.
fn copied_options<'a>(header: &[u8], later: &'a mut [u8; 60]) -> &'a [u8] {
    let (fixed, mut options) = header.split_at(IPV4_HEADER);
    later[..IPV4_HEADER].copy_from_slice(fixed);
    let mut length = IPV4_HEADER;
    while let [kind, rest @ ..] = options {
        let size = match (kind, rest) {
            (0, _) => break,
            (1, _) => 1,
            (_, [size, ..]) if *size >= 2 && usize::from(*size) <= options.len() => usize::from(*size),
            (_, _) => break,
        };
        let (option, behind) = options.split_at(size);
        if kind & 0x80 != 0 {
            later[length..length + size].copy_from_slice(option);
            length += size;
        }
        options = behind;
    }
    // End of Options List, up to a multiple of four octets.
    &later[..length.next_multiple_of(4)]
}

/// An IPv6 packet, divided at the place of its Fragment header (RFC 8200 §4.5).
struct Divided<'a> {
    /// The headers that every fragment starts with.
    front: &'a [u8],
    /// Where in them the last Next Header is.
    next_header_at: usize,
    /// What it says without a Fragment header.
    next_header: u8,
    /// What is cut.
    data: &'a [u8],
    place: Fragment,
}

fn divide6<'a>(packet: &Packet, octets: &'a [u8], identification: u32) -> Result<Divided<'a>, DropReason> {
    // The Per-Fragment headers end with the hop-by-hop options or the routing header, whichever comes last.
    let (mut at, mut field) = (IPV6_HEADER, 6);
    let (mut end, mut next_header_at) = (at, field);
    loop {
        let next = octets[field];
        let known = matches!(
            next,
            protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION_OPTIONS | protocol::FRAGMENT
        );
        let header = octets.get(at..).and_then(<[u8]>::first_chunk::<8>);
        let Some(header) = header.filter(|_| known) else {
            break;
        };
        if next == protocol::FRAGMENT {
            let FragmentHeader { next_header, identification, .. } =
                FragmentHeader::read(header).map_err(|_| DropReason::BadExtensionHeader)?;
            return Ok(Divided {
                front: &octets[..at],
                next_header_at: field,
                next_header,
                data: &octets[at + FRAGMENT_HEADER..],
                place: packet.fragment.unwrap_or(Fragment { identification, ..WHOLE }),
            });
        }
        field = at;
        at += 8 + 8 * usize::from(header[1]);
        if next != protocol::DESTINATION_OPTIONS {
            (end, next_header_at) = (at, field);
        }
    }
    let (front, data) = octets.split_at_checked(end).ok_or(DropReason::BadExtensionHeader)?;
    let place = Fragment { identification, ..WHOLE };
    Ok(Divided { front, next_header_at, next_header: octets[next_header_at], data, place })
}
