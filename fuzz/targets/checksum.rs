//! Transport checksums the slow and obvious way, to judge those that were kept true piece by piece.
#![allow(dead_code, reason = "each target uses its part")]

use sixway_dataplane::parse::{Addresses, Packet};
use sixway_wire::protocol;

/// What a packet's transport checksum is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Right,
    Wrong,
    /// UDP over IPv4 without checksum (RFC 768).
    Absent,
    /// A fragment, a protocol without checksum, or one whose length does not fit.
    Unknown,
}

/// The offset of a whole packet's checksum in its transport octets, how many of them it covers, and the sum of its pseudo-header.
struct Cover {
    field: usize,
    covered: usize,
    pseudo: u64,
}

impl Cover {
    fn of(packet: &Packet, transport: &[u8]) -> Option<Self> {
        let v4 = matches!(packet.addresses, Addresses::V4 { .. });
        let length = transport.len();
        let word =
            |at: usize| Some(usize::from(u16::from_be_bytes([*transport.get(at)?, *transport.get(at + 1)?])));
        let (field, covered) = match packet.protocol {
            protocol::TCP => (16, length),
            protocol::UDP if word(4)? == length => (6, length),
            protocol::UDP_LITE if word(4)? == 0 => (6, length),
            protocol::UDP_LITE if (8..=length).contains(&word(4)?) => (6, word(4)?),
            protocol::DCCP if transport.get(5)? & 15 == 0 => (6, length),
            protocol::ICMPV4 if v4 => (2, length),
            protocol::ICMPV6 if !v4 => (2, length),
            _ => return None,
        };
        (packet.fragment.is_none() && field + 2 <= covered).then(|| Self {
            field,
            covered,
            pseudo: pseudo_header(packet, length),
        })
    }
}

fn pseudo_header(packet: &Packet, length: usize) -> u64 {
    match packet.addresses {
        Addresses::V4 { .. } if packet.protocol == protocol::ICMPV4 => 0,
        Addresses::V4 { source, destination } => {
            sum(&source.octets()) + sum(&destination.octets()) + length as u64 + u64::from(packet.protocol)
        }
        Addresses::V6 { source, destination } => {
            sum(&source.octets()) + sum(&destination.octets()) + length as u64 + u64::from(packet.protocol)
        }
    }
}

fn sum(octets: &[u8]) -> u64 {
    octets.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0))).sum()
}

fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn transport<'a>(octets: &'a [u8], packet: &Packet) -> &'a [u8] {
    &octets[usize::from(packet.transport_at)..packet.length as usize]
}

/// The state of a finished checksum.
pub fn complete(octets: &[u8], packet: &Packet) -> State {
    let transport = transport(octets, packet);
    let Some(cover) = Cover::of(packet, transport) else { return State::Unknown };
    if packet.protocol == protocol::UDP && transport[6..8] == [0, 0] {
        return if matches!(packet.addresses, Addresses::V4 { .. }) { State::Absent } else { State::Wrong };
    }
    let right = folded(cover.pseudo + sum(&transport[..cover.covered])) == 0xffff;
    if right { State::Right } else { State::Wrong }
}

/// The state of an unfinished one, which holds the sum of the pseudo-header alone.
pub fn partial(octets: &[u8], packet: &Packet) -> State {
    let transport = transport(octets, packet);
    let Some(cover) = Cover::of(packet, transport) else { return State::Unknown };
    let field = folded(sum(&transport[cover.field..cover.field + 2]));
    // 0 and 0xffff are the same number.
    let right = field % 0xffff == folded(cover.pseudo) % 0xffff;
    if right { State::Right } else { State::Wrong }
}

/// Writes the IPv4 header checksum, so that a changed packet is still read.
pub fn seal_header(octets: &mut [u8]) {
    let header = usize::from(octets.first().map_or(0, |octet| octet & 15)) * 4;
    if octets.first().is_some_and(|octet| octet >> 4 == 4) && (20..=octets.len()).contains(&header) {
        octets[10..12].fill(0);
        let checksum = !folded(sum(&octets[..header]));
        octets[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// Writes the transport checksum, finished or not.
pub fn seal_transport(octets: &mut [u8], packet: &Packet, finished: bool) {
    let from = usize::from(packet.transport_at);
    let Some(cover) = Cover::of(packet, transport(octets, packet)) else { return };
    let field = from + cover.field;
    octets[field..field + 2].fill(0);
    let checksum = if finished {
        match !folded(cover.pseudo + sum(&octets[from..from + cover.covered])) {
            0 => 0xffff,
            other => other,
        }
    } else {
        folded(cover.pseudo)
    };
    octets[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
}
