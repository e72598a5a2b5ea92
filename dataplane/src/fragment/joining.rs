//! Joins decapsulated packets: consecutive TCP segments of one flow, or UDP datagrams, become one GSO packet (what Linux calls
//! GRO, and a network card cannot do behind an outer header). The kernel that routes the result handles one packet instead of forty, and
//! cuts it again into the same octets.
//!
//! Two are joined if they differ in nothing that the cut does not restore: sequence number, lengths, checksums, PSH on the last, and of IPv4 the
//! Identification, which the cut counts up. With DF set it means nothing (RFC 6864 §4.1).
//! Each checksum is verified before, since the cut writes a new one. Packets of a flow stay in order: whatever of a flow
//! cannot be joined ends its GSO packet.

use crate::counters::Counters;
use crate::frame::{Checksum, Frame, Offload, SegmentKind, Segments};
use crate::parse::{ACK, IPV4_HEADER, IPV6_HEADER, TCP_HEADER, UDP_HEADER};
use crate::verdict::Verdict;
use sixway_wire::checksum::Sum;
use sixway_wire::protocol::{ICMPV4, ICMPV6, TCP, UDP};

/// Maximum number of frames that are joined together.
pub const STRIDE: usize = 64;
/// Slots for open GSO packets, by a hash of their flow. Two flows in one slot end each other's GSO packets.
const PLACES: usize = 256;
/// What the length field of an IP header counts, at most: the octets behind it (RFC 8200 §3), of IPv4 with it (RFC 791 §3.1).
const LONGEST: usize = 0xffff;
const PSH: u8 = 0x08;
const ECE: u8 = 0x40;

/// Joins the frames of a stride.
#[derive(Debug)]
pub struct Joining {
    places: [OpenPacket; PLACES],
    /// Places of other strides are empty.
    stride: u32,
}

/// An open GSO packet: the frame that holds its first segment and what was joined to it. Until a second frame of its flow comes
/// it is not examined.
#[derive(Clone, Copy, Debug)]
struct OpenPacket {
    stride: u32,
    /// Position of the frame in the stride.
    frame: u8,
    state: State,
    /// Payload octets of the first segment.
    size: u16,
    /// The next sequence number of the flow.
    next: u32,
}

/// The known data about an open GSO packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its flow, perhaps.
    Fresh,
    /// Its size and sequence number: it may be joined to.
    Read,
    /// Its checksum was right.
    Verified,
}

const EMPTY: OpenPacket = OpenPacket { stride: 0, frame: 0, state: State::Fresh, size: 0, next: 0 };

/// The flow in which the packet's order matters.
enum Flow {
    /// This place's.
    Of(usize),
    /// Any flow's between its addresses.
    Unknown,
    /// Neither TCP's nor UDP's.
    Apart,
}

/// A packet that may be joined.
#[derive(Clone, Copy)]
struct Segment {
    is_udp: bool,
    /// Octets of its IP header.
    ip: usize,
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
    /// Joins those frames of a stride whose bit is set in `candidates`: all are packets that are to be forwarded. What was
    /// joined to another gets [`Verdict::Merged`].
    pub fn join(&mut self, stride: &mut [Frame], candidates: u64, counters: &mut Counters) {
        if candidates & candidates.wrapping_sub(1) == 0 {
            return; // one has nothing to be joined to
        }
        self.end_all();
        let mut joined = 0;
        let mut sizes = [0; STRIDE];
        let mut rest = candidates;
        while rest != 0 {
            let at = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let place = match Flow::of(stride[at].bytes()) {
                Flow::Of(place) => place,
                Flow::Unknown => {
                    self.end_all();
                    continue;
                }
                Flow::Apart => continue,
            };
            let open = &mut self.places[place];
            if open.stride != self.stride {
                (open.stride, open.frame, open.state) = (self.stride, at as u8, State::Fresh);
                continue;
            }
            let Some((before, [frame, ..])) = stride.split_at_mut_checked(at) else { break };
            if let Some(headers) = self.add(place, before, frame, at) {
                let head = usize::from(self.places[place].frame);
                joined |= 1_u64 << head;
                sizes[head] = self.places[place].size;
                counters.forwarded -= 1;
                counters.merged += 1;
                counters.gso_joined += 1;
                counters.octets -= headers as u64;
            }
        }
        while joined != 0 {
            let at = joined.trailing_zeros() as usize;
            joined &= joined - 1;
            finish(&mut stride[at], sizes[at]);
        }
    }

    /// Joins a segment to an open GSO packet and returns how many octets of headers were removed, or opens another one with it.
    #[inline]
    fn add(&mut self, place: usize, before: &mut [Frame], frame: &mut Frame, at: usize) -> Option<usize> {
        let Some(segment) = Segment::of(frame) else {
            self.end(place);
            return None;
        };
        let next = segment.sequence.wrapping_add(segment.payload as u32);
        let mut state = State::Read;
        let mut open = self.places[place];
        let first = &mut before[usize::from(open.frame)];
        if open.is_read(first) && open.goes_on(first, frame, segment) {
            if !is_sound(frame) {
                self.end(place);
                return None;
            }
            state = State::Verified;
            let is_first_sound = open.state == State::Verified || is_sound(first);
            if is_first_sound && first.extend(&frame.bytes()[segment.headers..]) {
                frame.verdict = Verdict::Merged;
                if segment.is_last {
                    first.bytes_mut()[segment.ip + 13] |= PSH;
                }
                let ends = segment.is_last || segment.payload < usize::from(open.size);
                self.places[place] =
                    OpenPacket { stride: if ends { 0 } else { self.stride }, state, next, ..open };
                return Some(segment.headers);
            }
        }
        let stride = if segment.is_last { 0 } else { self.stride };
        self.places[place] =
            OpenPacket { stride, frame: at as u8, state, size: segment.payload as u16, next };
        None
    }

    const fn end(&mut self, place: usize) {
        self.places[place].stride = 0;
    }

    /// Nothing is joined to earlier frames. No stride has the number zero.
    fn end_all(&mut self) {
        self.stride = self.stride.checked_add(1).unwrap_or_else(|| {
            self.places = [EMPTY; PLACES];
            1
        });
    }
}

impl OpenPacket {
    /// Whether the first segment can be joined to. It is read now if it was not before.
    #[inline]
    fn is_read(&mut self, first: &Frame) -> bool {
        if self.state != State::Fresh {
            return true;
        }
        let Some(segment) = Segment::of(first).filter(|segment| !segment.is_last) else { return false };
        self.size = segment.payload as u16;
        self.next = segment.sequence.wrapping_add(segment.payload as u32);
        self.state = State::Read;
        true
    }

    #[inline]
    fn goes_on(&self, first: &Frame, frame: &Frame, segment: Segment) -> bool {
        segment.payload <= usize::from(self.size)
            && (segment.is_udp || self.next == segment.sequence)
            && counted(segment.ip, first.len()) + segment.payload <= LONGEST
            && continues(first.bytes(), frame.bytes(), segment)
            && (segment.ip == IPV6_HEADER || self.is_counted(first, frame, segment))
    }
}

/// Octets of the IP header in front of a packet, if it has no options.
#[inline(always)]
const fn ip_header(first: u8) -> Option<usize> {
    match first {
        0x45 => Some(IPV4_HEADER),
        0x60..=0x6f => Some(IPV6_HEADER),
        _ => None,
    }
}

/// What the length field of an IP header of this length counts, of a packet.
#[inline(always)]
const fn counted(ip: usize, length: usize) -> usize {
    if ip == IPV6_HEADER { length - IPV6_HEADER } else { length }
}

impl OpenPacket {
    /// Whether the cut of an IPv4 packet without DF writes the Identification that this segment has.
    #[inline]
    fn is_counted(&self, first: &Frame, frame: &Frame, segment: Segment) -> bool {
        let (one, other) = (first.bytes(), frame.bytes());
        if one[6] & 0x40 != 0 {
            return true;
        }
        let segments = (first.len() - segment.headers) / usize::from(self.size).max(1);
        let id = |octets: &[u8]| u16::from_be_bytes([octets[4], octets[5]]);
        id(one).wrapping_add(segments as u16) == id(other)
    }
}

impl Flow {
    #[inline]
    fn of(octets: &[u8]) -> Self {
        let word = |at: usize| match octets.get(at..).and_then(|rest| rest.first_chunk()) {
            Some(word) => u32::from_ne_bytes(*word),
            None => 0,
        };
        // The ports, and the ends of the addresses.
        let mixed = match *octets {
            [0x60..=0x6f, _, _, _, _, _, next, ..] if octets.len() >= IPV6_HEADER + UDP_HEADER => {
                match next {
                    TCP | UDP => {}
                    ICMPV6 => return Self::Apart,
                    _ => return Self::Unknown,
                }
                word(40) ^ word(20).rotate_left(7) ^ word(36).rotate_left(13)
            }
            [0x60..=0x6f, ..] => return Self::Apart,
            // A fragment has no ports.
            [0x45, _, _, _, _, _, flags, offset, _, TCP | UDP, ..]
                if flags & 0x3f | offset == 0 && octets.len() >= IPV4_HEADER + UDP_HEADER =>
            {
                word(20) ^ word(12).rotate_left(7) ^ word(16).rotate_left(13)
            }
            [_, _, _, _, _, _, _, _, _, ICMPV4, ..] => return Self::Apart,
            [..] => return Self::Unknown,
        };
        Self::Of((mixed.wrapping_mul(0x9e37_79b1) >> 24) as usize % PLACES)
    }
}

impl Segment {
    #[inline]
    fn of(frame: &Frame) -> Option<Self> {
        let octets = frame.bytes();
        let head = octets.first_chunk::<{ IPV4_HEADER + UDP_HEADER }>()?;
        if frame.offload.segments.is_some() {
            return None;
        }
        let ip = ip_header(head[0])?;
        if octets.len() < ip + UDP_HEADER {
            return None;
        }
        let (length, protocol) =
            if ip == IPV6_HEADER { ([head[4], head[5]], head[6]) } else { ([head[2], head[3]], head[9]) };
        if usize::from(u16::from_be_bytes(length)) != counted(ip, octets.len()) {
            return None;
        }
        if protocol == UDP { Self::udp(octets, ip) } else { Self::tcp(octets, ip) }
    }

    /// A datagram with data and a checksum.
    #[inline(always)]
    fn udp(octets: &[u8], ip: usize) -> Option<Self> {
        let [_, _, _, _, high, low, first, second] = *octets.get(ip..)?.first_chunk::<UDP_HEADER>()?;
        let headers = ip + UDP_HEADER;
        let (behind, payload) = (octets.len() - ip, octets.len() - headers);
        let is_plain = usize::from(u16::from_be_bytes([high, low])) == behind && [first, second] != [0, 0];
        (is_plain && payload > 0).then_some(Self {
            is_udp: true,
            ip,
            headers,
            payload,
            sequence: 0,
            is_last: false,
        })
    }

    /// A segment with data and no flags but ACK, PSH and ECE.
    #[inline(always)]
    fn tcp(octets: &[u8], ip: usize) -> Option<Self> {
        let header = octets.get(ip..)?.first_chunk::<TCP_HEADER>()?;
        let headers = ip + usize::from(header[12] >> 4) * 4;
        let payload = octets.len().checked_sub(headers).filter(|payload| *payload > 0)?;
        let flags = header[13];
        (flags & !(PSH | ECE) == ACK && headers >= ip + TCP_HEADER).then_some(Self {
            is_udp: false,
            ip,
            headers,
            payload,
            sequence: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
            is_last: flags & PSH != 0,
        })
    }
}

/// Whether a segment has the headers of the open GSO packet, but for what the cut restores. Both are as long as `segment` says.
#[inline]
fn continues(first: &[u8], octets: &[u8], segment: Segment) -> bool {
    let Segment { ip, headers, .. } = segment;
    let is_same = if ip == IPV6_HEADER {
        // Version, Traffic Class with ECN, Flow Label; Next Header, Hop Limit, addresses, ports.
        first[..4] == octets[..4] && first[6..44] == octets[6..44]
    } else {
        continues4(first, octets)
    };
    if !is_same || segment.is_udp {
        return is_same;
    }
    // The first may have fewer options, and little data.
    let Some(first) = first.get(ip..headers) else { return false };
    let octets = &octets[ip..headers];
    // Acknowledgment number, data offset; flags; window; urgent pointer, options.
    first[8..13] == octets[8..13]
        && first[13] == octets[13] & !PSH
        && first[14..16] == octets[14..16]
        && first[18..] == octets[18..]
}

/// The same of an IPv4 header and the ports.
#[inline(always)]
fn continues4(first: &[u8], octets: &[u8]) -> bool {
    // Version, length, TOS with ECN; flags and offset, TTL, protocol; addresses, ports.
    first[..2] == octets[..2] && first[6..10] == octets[6..10] && first[12..24] == octets[12..24]
}

/// Whether a cut would write the checksum that the packet has.
fn is_sound(frame: &Frame) -> bool {
    match frame.offload.checksum {
        Checksum::Partial => true,
        Checksum::Complete => is_right(frame.bytes()),
    }
}

/// The protocol of a packet, and where its addresses are.
fn pseudo_header(octets: &[u8]) -> (u8, &[u8], usize) {
    if octets[0] >> 4 == 6 {
        (octets[6], &octets[8..IPV6_HEADER], IPV6_HEADER)
    } else {
        (octets[9], &octets[12..IPV4_HEADER], IPV4_HEADER)
    }
}

/// Whether the checksum is the very one that a cut would write: of zero's two forms TCP has the one, UDP the other.
fn is_right(octets: &[u8]) -> bool {
    let (protocol, addresses, ip) = pseudo_header(octets);
    let behind = &octets[ip..];
    let field = if protocol == UDP { 6 } else { 16 };
    let is_other_zero = protocol == TCP && behind[field..field + 2] == [0xff, 0xff];
    let sum = Sum::ZERO.bytes(addresses).word(protocol.into()).long(behind.len() as u32).bytes(behind);
    sum.fold() == 0xffff && !is_other_zero
}

/// Writes the lengths of a GSO packet whose segments have `size` octets, and its unfinished checksum.
fn finish(frame: &mut Frame, size: u16) {
    let length = frame.len();
    let octets = frame.bytes_mut();
    let (protocol, addresses, ip) = pseudo_header(octets);
    let behind = length - ip;
    let sum = Sum::ZERO.bytes(addresses).word(protocol.into()).long(behind as u32).fold().to_be_bytes();
    let (header, transport) = octets.split_at_mut(ip);
    if ip == IPV6_HEADER {
        header[4..6].copy_from_slice(&(behind as u16).to_be_bytes());
    } else {
        header[2..4].copy_from_slice(&(length as u16).to_be_bytes());
        header[10..12].fill(0);
        let checksum = Sum::ZERO.bytes(header).checksum();
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
    let kind = if protocol == UDP {
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
        transport: ip as u16,
    };
}
