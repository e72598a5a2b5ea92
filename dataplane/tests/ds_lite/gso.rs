//! GSO packets and unfinished checksums enter a softwire as each of their segments would.

use super::{ACK, B4, HOST, SERVER, SYN, gateway, source, up};
use crate::support::super_frame::{described, on_the_wire, unfinished};
use crate::support::{Gateway, hex, v4};
use sixway_dataplane::{Checksum, Offload, SegmentKind};

/// An AFTR with a session, and the outside endpoint of the host.
fn opened(kind: SegmentKind, clamp_mss: bool) -> (Gateway, (String, u16)) {
    let mut gateway = gateway(|aftr| aftr.policy.clamp_mss = clamp_mss);
    let first = v4(HOST, SERVER);
    let first = match kind {
        SegmentKind::Udp => first.udp(4_001, 80, b"first"),
        SegmentKind::Tcp | SegmentKind::TcpEcn => first.tcp(4_001, 80, SYN, b""),
    };
    gateway.receives(up(B4, first));
    let outside = source(&gateway.sent());
    (gateway, outside)
}

fn sent(gateway: &mut Gateway) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while gateway.waiting() > 0 {
        let (packet, offload) = gateway.sent_with();
        all.extend(on_the_wire(&packet, offload));
    }
    all
}

#[test]
fn a_gso_packet_enters_a_softwire_as_each_of_its_segments_would() {
    for (kind, segments, size) in [
        (SegmentKind::Tcp, 40, 1_408),
        (SegmentKind::Tcp, 3, 1_400),
        (SegmentKind::Udp, 30, 1_200),
        (SegmentKind::Tcp, 1, 500),
    ] {
        let (mut whole, (address, port)) = opened(kind, true);
        let (mut single, same) = opened(kind, true);
        assert_eq!((address.clone(), port), same);
        let data: Vec<u8> = (0..size * segments - 7).map(|at| (at % 251) as u8).collect();
        let packet = match kind {
            SegmentKind::Udp => v4(SERVER, &address).udp(80, port, &data),
            SegmentKind::Tcp | SegmentKind::TcpEcn => v4(SERVER, &address).tcp(80, port, ACK, &data),
        };
        let packet = unfinished(packet);
        let offload = described(kind, size as u16);
        whole.receives_with(packet.clone(), offload);
        for segment in on_the_wire(&packet, offload) {
            single.receives(segment);
        }
        let (left, expected) = (sent(&mut whole), sent(&mut single));
        assert_eq!(left.len(), segments, "{kind:?}");
        for (number, (left, expected)) in left.iter().zip(&expected).enumerate() {
            assert_eq!(hex(left), hex(expected), "{kind:?} {number}");
        }
    }
}

#[test]
fn an_unfinished_checksum_is_finished_where_the_packet_enters_the_softwire() {
    let (mut gateway, (address, port)) = opened(SegmentKind::Tcp, false);
    let packet = v4(SERVER, &address).tcp(80, port, ACK, b"some data");
    let offload = Offload { checksum: Checksum::Partial, ..Offload::default() };
    gateway.receives_with(unfinished(packet), offload);
    let (left, offload) = gateway.sent_with();
    assert_eq!(offload.checksum, Checksum::Complete);
    gateway.counted_before();
    let inner = v4(SERVER, HOST).hops(63).tcp(80, 4_001, ACK, b"some data");
    assert_eq!(hex(&left[40..]), hex(&inner.octets()));
}
