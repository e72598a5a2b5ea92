use super::*;
use crate::effects::Effects;
use crate::frame::{Checksum, Offload, SegmentKind, Segments};
use crate::limits::Limits;
use crate::parse::parse;
use crate::rewrite::segments::finish;
use crate::rewrite::{Editing, Pass, Rewriter, Work, decap};
use crate::samples::{is_sound, seal, tcp, udp, v4, v6};
use crate::tunnel::identification::Identifications;
use crate::verdict::{Decision, PolicyId, WorkerId};
use sixway_wire::Endpoint4;
use sixway_wire::protocol::{TCP, UDP};

/// The outer packet of one that came in UDP, as decapsulation takes it: the UDP header is part of what is removed.
fn of_udp(outer: &Packet) -> Packet {
    Packet { transport_at: outer.transport_at + UDP_HEADER as u16, ..*outer }
}

fn rewriter(mtu4: u16) -> Rewriter {
    let limits = Limits { mtu4, ..Limits::default() };
    let mut rewriter = Rewriter::new(limits, Identifications::new(WorkerId(0), 1, 7), 7);
    let policy = TunnelPolicy { mtu: TunnelMtu::Static(1_400), ..TunnelPolicy::default() };
    rewriter.set_policies(Vec::new(), vec![policy]);
    rewriter
}

/// What becomes of a packet that goes into UDP, from port 3544 of 192.0.2.9 to port 40000 of 198.51.100.7.
fn in_udp(rewriter: &mut Rewriter, octets: &[u8], offload: Offload) -> Result<Vec<Vec<u8>>, DropReason> {
    let mut effects = Effects::default();
    let outer = effects.outer(Outer::Udp4 {
        source: Endpoint4::new([192, 0, 2, 9].into(), 3_544),
        destination: Endpoint4::new([198, 51, 100, 7].into(), 40_000),
    });
    let decision = Decision::encap(outer, PolicyId(0));
    let packet = parse(octets).unwrap();
    let pass = Pass { decrement: false, reassembled: false };
    let work = Work { decision: &decision, packet: &packet, inner: None, pass };
    let (mut frame, mut out) = (Frame::holding(octets), Outbox::new(64));
    frame.offload = offload;
    // As a link sends it, where there is not a socket.
    let sent = |frame: &mut Frame| {
        finish(frame);
        frame.bytes().to_vec()
    };
    Ok(match rewriter.execute::<Editing>(&work, &mut frame, &mut out, &mut effects)? {
        Executed::InPlace => vec![sent(&mut frame)],
        Executed::InPieces => out.frames().iter_mut().map(sent).collect(),
    })
}

/// What is inside such a packet.
fn out_of_udp(octets: &[u8]) -> Vec<u8> {
    let (outer, mut inner) = (of_udp(&parse(octets).unwrap()), Packet::EMPTY);
    let mut frame = Frame::holding(octets);
    decap::inner(&frame, &outer, &mut inner).unwrap();
    let counters = &mut Counters::default();
    rewriter(1_500).decap(&mut frame, (&outer, &inner), PolicyId(0), counters).unwrap();
    assert_eq!(frame.offload.transport, inner.transport_at);
    frame.bytes().to_vec()
}

#[test]
fn a_packet_of_either_family_goes_into_udp_and_comes_out_as_it_was() {
    let six = seal(v6("2001:db8::1", "2001:db8::2", UDP, &udp(1, 2, 33)));
    let four = seal(v4("10.0.0.1", "10.0.0.2", UDP, &udp(1, 2, 33)));
    for inner in [six, four] {
        let sent = in_udp(&mut rewriter(1_500), &inner, Offload::default()).unwrap();
        let [sent] = &sent[..] else { panic!("{} packets", sent.len()) };
        assert!(is_sound(sent));
        assert_eq!((sent.len(), sent[6], sent[9]), (28 + inner.len(), 0, UDP), "DF is clear");
        assert_eq!(sent[20..24], [3_544_u16.to_be_bytes(), 40_000_u16.to_be_bytes()].concat());
        if inner[0] >> 4 == 6 {
            assert_eq!(out_of_udp(sent), inner);
        }
    }
}

#[test]
fn the_segments_of_a_gso_packet_go_into_udp_each_by_itself() {
    let whole = v6("2001:db8::1", "2001:db8::2", TCP, &tcp(1, 2, 3_000));
    let segments = Some(Segments { size: 1_200, kind: SegmentKind::Tcp });
    let mut unfinished = whole.clone();
    unfinished[53] = 0x10;
    let pseudo = sixway_wire::checksum::pseudo6(
        "2001:db8::1".parse().unwrap(),
        "2001:db8::2".parse().unwrap(),
        TCP,
        whole.len() as u32 - 40,
    );
    unfinished[56..58].copy_from_slice(&pseudo.fold().to_be_bytes());
    let offload = Offload { checksum: Checksum::Partial, segments, transport: 40 };
    let sent = in_udp(&mut rewriter(1_500), &unfinished, offload).unwrap();
    assert_eq!(sent.iter().map(Vec::len).collect::<Vec<_>>(), [1_288, 1_288, 688]);
    assert!(sent.iter().all(|packet| is_sound(packet) && is_sound(&out_of_udp(packet))));
    let data: Vec<u8> = sent.iter().flat_map(|packet| out_of_udp(packet)[60..].to_vec()).collect();
    assert_eq!(data, whole[60..]);
    let identifications: Vec<u16> =
        sent.iter().map(|packet| u16::from_be_bytes([packet[4], packet[5]])).collect();
    assert_eq!(identifications[2], identifications[0].wrapping_add(2));
}

#[test]
fn what_the_tunnel_does_not_carry_is_refused_and_what_the_link_does_not_is_cut() {
    let large = |octets: usize| seal(v6("2001:db8::1", "2001:db8::2", UDP, &udp(1, 2, octets - 48)));
    let refused = in_udp(&mut rewriter(1_500), &large(1_401), Offload::default());
    assert_eq!(refused, Err(DropReason::PacketTooBig));
    let cut = in_udp(&mut rewriter(1_300), &large(1_400), Offload::default()).unwrap();
    assert_eq!(cut.len(), 2);
    assert!(cut.iter().all(|piece| piece.len() <= 1_300));
}
