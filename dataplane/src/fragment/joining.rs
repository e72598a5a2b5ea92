//! Joins what came out of tunnels: consecutive TCP segments of one flow, or UDP datagrams, become one super-frame (what Linux calls
//! GRO, and a network card cannot do behind an outer header). The kernel that routes the result handles one packet instead of forty, and
//! cuts it again into the same octets.
//!
//! Two are joined if they differ in nothing that the cut does not restore: sequence number, lengths, checksum, and PSH on the last.
//! Each checksum is verified before, since the cut writes a new one. Packets of a flow stay in order: whatever of a flow
//! cannot be joined ends its super-frame.

use crate::counters::Counters;
use crate::frame::{Checksum, Frame, Offload, SegmentKind, Segments};
use crate::parse::{ACK, IPV6_HEADER, TCP_HEADER, UDP_HEADER};
use crate::verdict::Verdict;
use sixway_wire::checksum::Sum;
use sixway_wire::protocol::{ICMPV6, TCP, UDP};

/// Frames that are looked at together, at most.
pub const STRIDE: usize = 64;
/// Places for open super-frames, by a hash of their flow; two flows that meet in one cut one another short.
const PLACES: usize = 64;
/// Octets behind the IPv6 header, at most (RFC 8200 §3).
const LONGEST: usize = 0xffff;
const PSH: u8 = 0x08;
const ECE: u8 = 0x40;

/// Joins the frames of a stride.
#[derive(Debug)]
pub struct Joining {
    places: [Place; PLACES],
    /// Places of other strides are empty.
    stride: u32,
}

/// An open super-frame: the frame that holds its first segment and what was joined to it.
#[derive(Clone, Copy, Debug)]
struct Place {
    stride: u32,
    /// Position of the frame in the stride.
    frame: u8,
    /// The first segment's checksum was verified.
    verified: bool,
    /// Payload octets of the first segment.
    size: u16,
    /// The sequence number that goes on.
    next: u32,
}

const EMPTY: Place = Place { stride: 0, frame: 0, verified: false, size: 0, next: 0 };

/// What a packet is to a flow.
enum Kind {
    /// Its place is known, and it may be joined.
    Segment(Segment),
    /// It belongs to a flow, and ends what is open of it.
    Ends { place: usize },
    /// It may belong to any flow between its addresses.
    Unknown,
    /// Its order to TCP and UDP is nobody's business.
    Apart,
}

/// A packet that may be joined.
#[derive(Clone, Copy)]
struct Segment {
    place: usize,
    kind: SegmentKind,
    /// Octets in front of its payload.
    headers: usize,
    payload: usize,
    sequence: u32,
    /// Nothing is joined behind it.
    is_last: bool,
}

impl Default for Joining {
    fn default() -> Self {
        Self { places: [EMPTY; PLACES], stride: 0 }
    }
}

impl Joining {
    /// Joins those frames of a stride whose bit is set in `candidates`: all are IPv6 packets that are to be forwarded. What was
    /// joined to another gets [`Verdict::Merged`].
    pub fn join(&mut self, stride: &mut [Frame], candidates: u64, counters: &mut Counters) {
        if candidates & candidates.wrapping_sub(1) == 0 {
            return; // one has nobody to be joined to
        }
        self.end_all();
        let mut joined = 0;
        let mut sizes = [0; STRIDE];
        let mut rest = candidates;
        while rest != 0 {
            let at = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let Some((before, [frame, ..])) = stride.split_at_mut_checked(at) else { break };
            match Kind::of(frame) {
                Kind::Segment(segment) => {
                    if let Some(head) = self.add(before, frame, at, segment) {
                        joined |= 1_u64 << head;
                        sizes[head] = self.places[segment.place].size;
                        counters.forwarded -= 1;
                        counters.merged += 1;
                        counters.super_frames_joined += 1;
                        counters.octets -= segment.headers as u64;
                    }
                }
                Kind::Ends { place } => self.end(place),
                Kind::Unknown => self.end_all(),
                Kind::Apart => {}
            }
        }
        while joined != 0 {
            let at = joined.trailing_zeros() as usize;
            joined &= joined - 1;
            finish(&mut stride[at], sizes[at]);
        }
    }

    /// Joins a segment to the open super-frame of its flow, whose position is given back, or opens one with it.
    #[inline]
    fn add(&mut self, before: &mut [Frame], frame: &mut Frame, at: usize, segment: Segment) -> Option<usize> {
        let Segment { place, payload, sequence, is_last, .. } = segment;
        let next = sequence.wrapping_add(payload as u32);
        let open = self.places[place];
        let mut verified = false;
        if open.stride == self.stride {
            let head = usize::from(open.frame);
            let first = &mut before[head];
            let fits = payload <= usize::from(open.size)
                && (segment.kind == SegmentKind::Udp || open.next == sequence)
                && first.len() - IPV6_HEADER + payload <= LONGEST;
            if fits && continues(first.bytes(), frame.bytes(), segment) {
                verified = is_sound(frame);
                if !verified {
                    self.end(place);
                    return None;
                }
                if (open.verified || is_sound(first)) && first.extend(&frame.bytes()[segment.headers..]) {
                    frame.verdict = Verdict::Merged;
                    if is_last {
                        first.bytes_mut()[IPV6_HEADER + 13] |= PSH;
                    }
                    let goes_on = !is_last && payload == usize::from(open.size);
                    let stride = if goes_on { self.stride } else { 0 };
                    self.places[place] = Place { stride, verified, next, ..open };
                    return Some(head);
                }
            }
        }
        let stride = if is_last { 0 } else { self.stride };
        self.places[place] = Place { stride, frame: at as u8, verified, size: payload as u16, next };
        None
    }

    const fn end(&mut self, place: usize) {
        self.places[place].stride = 0;
    }

    /// Nothing is joined to what came so far. Zero is the number of no stride.
    fn end_all(&mut self) {
        self.stride = self.stride.checked_add(1).unwrap_or_else(|| {
            self.places = [EMPTY; PLACES];
            1
        });
    }
}

impl Kind {
    #[inline]
    fn of(frame: &Frame) -> Self {
        let octets = frame.bytes();
        let Some(head) = octets.first_chunk::<{ IPV6_HEADER + UDP_HEADER }>() else { return Self::Apart };
        let kind = match head[6] {
            TCP => SegmentKind::Tcp,
            UDP => SegmentKind::Udp,
            ICMPV6 => return Self::Apart,
            _ => return Self::Unknown,
        };
        let word = |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        // The ports, and the ends of the addresses.
        let mixed = (word(40) ^ word(20).rotate_left(7) ^ word(36).rotate_left(13)).wrapping_mul(0x9e37_79b1);
        let place = (mixed >> 26) as usize % PLACES;
        let behind = octets.len() - IPV6_HEADER;
        let is_whole =
            usize::from(u16::from_be_bytes([head[4], head[5]])) == behind && frame.offload.segments.is_none();
        let segment = match kind {
            _ if !is_whole => None,
            SegmentKind::Udp => udp_segment(head, place, behind),
            SegmentKind::Tcp | SegmentKind::TcpEcn => tcp_segment(octets, place),
        };
        segment.map_or(Self::Ends { place }, Self::Segment)
    }
}

#[inline]
fn udp_segment(head: &[u8; IPV6_HEADER + UDP_HEADER], place: usize, behind: usize) -> Option<Segment> {
    let [.., high, low, first, second] = *head;
    let payload = behind - UDP_HEADER;
    let is_plain = usize::from(u16::from_be_bytes([high, low])) == behind && [first, second] != [0, 0];
    let headers = IPV6_HEADER + UDP_HEADER;
    (is_plain && payload > 0).then_some(Segment {
        place,
        kind: SegmentKind::Udp,
        headers,
        payload,
        sequence: 0,
        is_last: false,
    })
}

/// A segment with data and no flags but ACK, PSH and ECE.
#[inline]
fn tcp_segment(octets: &[u8], place: usize) -> Option<Segment> {
    let header = octets[IPV6_HEADER..].first_chunk::<TCP_HEADER>()?;
    let headers = IPV6_HEADER + usize::from(header[12] >> 4) * 4;
    let payload = octets.len().checked_sub(headers).filter(|payload| *payload > 0)?;
    let flags = header[13];
    (flags & !(PSH | ECE) == ACK).then_some(Segment {
        place,
        kind: SegmentKind::Tcp,
        headers,
        payload,
        sequence: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
        is_last: flags & PSH != 0,
    })
}

/// Whether a segment has the headers of the open super-frame, but for what the cut restores. Both are as long as `segment` says.
#[inline]
fn continues(first: &[u8], octets: &[u8], segment: Segment) -> bool {
    // Version, Traffic Class with ECN, Flow Label; Next Header, Hop Limit, addresses, ports.
    if first[..4] != octets[..4] || first[6..44] != octets[6..44] {
        return false;
    }
    if segment.kind == SegmentKind::Udp {
        return true;
    }
    // Acknowledgment number, data offset; flags; window; urgent pointer, options.
    first[48..53] == octets[48..53]
        && first[53] == octets[53] & !PSH
        && first[54..56] == octets[54..56]
        && first[58..segment.headers] == octets[58..segment.headers]
}

/// Whether a cut would write the checksum that the packet has.
fn is_sound(frame: &Frame) -> bool {
    match frame.offload.checksum {
        Checksum::Partial => true,
        Checksum::Complete => is_right(frame.bytes()),
    }
}

/// Whether the checksum is the very one that a cut would write: of zero's two forms TCP has the one, UDP the other.
fn is_right(octets: &[u8]) -> bool {
    let (header, behind) = octets.split_at(IPV6_HEADER);
    let field = if header[6] == UDP { 6 } else { 16 };
    let is_other_zero = header[6] == TCP && behind[field..field + 2] == [0xff, 0xff];
    let sum = Sum::ZERO.bytes(&header[8..]).word(header[6].into()).long(behind.len() as u32).bytes(behind);
    sum.fold() == 0xffff && !is_other_zero
}

/// Writes the lengths of a super-frame whose segments have `size` octets, and its unfinished checksum.
fn finish(frame: &mut Frame, size: u16) {
    let behind = frame.len() - IPV6_HEADER;
    let (header, transport) = frame.bytes_mut().split_at_mut(IPV6_HEADER);
    header[4..6].copy_from_slice(&(behind as u16).to_be_bytes());
    let sum = Sum::ZERO.bytes(&header[8..]).word(header[6].into()).long(behind as u32).fold().to_be_bytes();
    let kind = if header[6] == UDP {
        transport[4..6].copy_from_slice(&(behind as u16).to_be_bytes());
        transport[6..8].copy_from_slice(&sum);
        SegmentKind::Udp
    } else {
        transport[16..18].copy_from_slice(&sum);
        SegmentKind::Tcp
    };
    frame.offload = Offload {
        checksum: Checksum::Partial,
        segments: Some(Segments { size, kind }),
        transport: IPV6_HEADER as u16,
    };
}
