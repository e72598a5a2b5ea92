//! GSO packets as a kernel makes and cuts them, the slow way: every field is written from its definition, and nothing of the
//! core's own segmentation or checksums is used.

use sixway_dataplane::{Checksum, Offload, SegmentKind, Segments};

/// The offload description of a GSO packet whose checksum is unfinished.
pub fn described(kind: SegmentKind, size: u16) -> Offload {
    Offload { checksum: Checksum::Partial, segments: Some(Segments { size, kind }), transport: 0 }
}

/// The packet with its transport checksum unfinished: the sum of its pseudo-header.
pub fn unfinished(packet: impl Into<Vec<u8>>) -> Vec<u8> {
    let mut packet = packet.into();
    let (at, protocol) = transport(&packet);
    let sum = fold(&pseudo_header(&packet, at, protocol));
    let field = at + checksum_field(protocol);
    packet[field..field + 2].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// What a wire carries of what was sent: the segments of a GSO packet, and checksums finished by what their fields hold.
pub fn on_the_wire(packet: &[u8], offload: Offload) -> Vec<Vec<u8>> {
    let Some(Segments { size, kind }) = offload.segments else {
        let mut packet = packet.to_vec();
        if offload.checksum == Checksum::Partial {
            finish(&mut packet);
        }
        return vec![packet];
    };
    assert_eq!(offload.checksum, Checksum::Partial, "a super-frame's checksum is unfinished");
    let (at, protocol) = transport(packet);
    assert_eq!(protocol == 17, kind == SegmentKind::Udp);
    let header = if protocol == 17 { 8 } else { usize::from(packet[at + 12] >> 4) * 4 };
    let (headers, payload) = packet.split_at(at + header);
    let mut pieces: Vec<&[u8]> = payload.chunks(usize::from(size)).collect();
    if pieces.is_empty() {
        pieces.push(&[]);
    }
    let (last, mut sent) = (pieces.len() - 1, 0_u32);
    let mut segments = Vec::new();
    for (number, piece) in pieces.into_iter().enumerate() {
        let mut segment = [headers, piece].concat();
        let behind = (segment.len() - at) as u16;
        // The field holds the pseudo-header's sum with the GSO packet's length; a kernel exchanges the length in it.
        let field = at + checksum_field(protocol);
        let old_length = (packet.len() - at) as u16;
        let sum =
            fold(&[&packet[field..field + 2], &(!old_length).to_be_bytes(), &behind.to_be_bytes()].concat());
        segment[field..field + 2].copy_from_slice(&sum.to_be_bytes());
        if protocol == 17 {
            segment[at + 4..at + 6].copy_from_slice(&behind.to_be_bytes());
        } else {
            let sequence = u32::from_be_bytes(segment[at + 4..at + 8].try_into().unwrap()).wrapping_add(sent);
            segment[at + 4..at + 8].copy_from_slice(&sequence.to_be_bytes());
            // CWR, ECE, URG, ACK, PSH, RST, SYN, FIN.
            segment[at + 13] &= if number == 0 { 0b1111_1111 } else { 0b0111_1111 };
            segment[at + 13] &= if number == last { 0b1111_1111 } else { 0b1111_0110 };
        }
        sent = sent.wrapping_add(piece.len() as u32);
        let whole = segment.len() as u16;
        if segment[0] >> 4 == 4 {
            segment[2..4].copy_from_slice(&whole.to_be_bytes());
            let identification = u16::from_be_bytes([segment[4], segment[5]]).wrapping_add(number as u16);
            segment[4..6].copy_from_slice(&identification.to_be_bytes());
            segment[10..12].copy_from_slice(&[0, 0]);
            let sum = !fold(&segment[..at]);
            segment[10..12].copy_from_slice(&sum.to_be_bytes());
        } else {
            segment[4..6].copy_from_slice(&(whole - 40).to_be_bytes());
        }
        finish(&mut segment);
        segments.push(segment);
    }
    segments
}

/// Where the transport header starts, and its protocol.
fn transport(packet: &[u8]) -> (usize, u8) {
    if packet[0] >> 4 == 4 {
        return (usize::from(packet[0] & 15) * 4, packet[9]);
    }
    let (mut at, mut next) = (40, packet[6]);
    while matches!(next, 0 | 43 | 60) {
        next = packet[at];
        at += 8 + 8 * usize::from(packet[at + 1]);
    }
    (at, next)
}

const fn checksum_field(protocol: u8) -> usize {
    match protocol {
        6 => 16,
        17 => 6,
        _ => panic!("neither TCP nor UDP"),
    }
}

fn pseudo_header(packet: &[u8], at: usize, protocol: u8) -> Vec<u8> {
    let addresses = if packet[0] >> 4 == 4 { &packet[12..20] } else { &packet[8..40] };
    let length = (packet.len() - at) as u32;
    [addresses, &length.to_be_bytes(), &[0, 0, 0, protocol]].concat()
}

/// Sums from the transport header to the end, the unfinished field included.
fn finish(packet: &mut [u8]) {
    let (at, protocol) = transport(packet);
    let field = at + checksum_field(protocol);
    let mut sum = !fold(&packet[at..]);
    if sum == 0 && protocol == 17 {
        sum = 0xffff;
    }
    packet[field..field + 2].copy_from_slice(&sum.to_be_bytes());
}

/// The one's complement sum of 16-bit words.
fn fold(octets: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for pair in octets.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
