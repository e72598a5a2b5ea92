//! Packets of one batch are looked up before the first of them is decided on: what they found may have ended meanwhile.

use super::*;
use sixway_dataplane::nat::Softwires;
use sixway_dataplane::{DropReason, Frame, Outbox, Verdict};
use std::time::Duration;

/// The server's answer to this endpoint goes into the softwire of this B4.
#[track_caller]
fn is_answered(gateway: &mut Gateway, (outside, port): &(String, u16), b4: &str) {
    gateway.receives(v4(SERVER, outside).udp(53, *port, b"answer"));
    gateway.sends(down(b4, v4(SERVER, HOST).hops(63).udp(53, 4_001, b"answer")));
}

/// Packets that come together; what is sent for each, in order.
#[track_caller]
fn together<const N: usize>(gateway: &mut Gateway, packets: [Build; N]) -> [(Verdict, Vec<u8>); N] {
    let mut frames = packets.map(|packet| Frame::holding(&packet.octets()));
    gateway.engine.process(&mut frames, gateway.now, &mut Outbox::new(16));
    frames.map(|frame| (frame.verdict, frame.bytes().to_vec()))
}

fn softwires(gateway: &mut Gateway) -> &Softwires {
    gateway.engine.ds_lite()[0].softwires()
}

/// Sessions of UDP end after five minutes, those of TCP that are not established after four; until the next tick they are still in the table.
fn is_over(gateway: &mut Gateway) {
    gateway.now = gateway.now + Duration::from_secs(301);
}

#[test]
fn a_softwire_whose_last_session_ends_with_its_next_packet_stays_in_the_table() {
    let mut gateway = gateway(|_| {});
    opened(&mut gateway, B4);
    is_over(&mut gateway);
    let first = opened(&mut gateway, B4);
    assert_eq!(softwires(&mut gateway).len(), 1);
    let second = opened(&mut gateway, NEIGHBOUR);
    assert_ne!(first, second);
    assert_eq!(softwires(&mut gateway).len(), 2);
    is_answered(&mut gateway, &first, B4);
    is_answered(&mut gateway, &second, NEIGHBOUR);
}

/// A batch after the end of the only session of a B4: its first packet ends the session and opens none, its last one opens another, and in
/// between is one of the neighbour.
#[track_caller]
fn reopened(gateway: &mut Gateway) -> [(Verdict, Vec<u8>); 2] {
    assert!(gateway.passes(up(B4, v4(HOST, SERVER).tcp(4_001, 443, SYN, b""))));
    gateway.counted_before();
    is_over(gateway);
    let question = || v4(HOST, SERVER).udp(4_001, 53, b"question");
    let ending = v4(HOST, SERVER).tcp(4_001, 443, ACK, b"");
    let [ended, of_neighbour, of_b4] =
        together(gateway, [up(B4, ending), up(NEIGHBOUR, question()), up(B4, question())]);
    assert_eq!(ended.0, Verdict::Dropped(DropReason::NoSession));
    [of_neighbour, of_b4]
}

#[test]
fn a_softwire_that_ends_and_begins_in_one_batch_shares_no_number_with_another_one() {
    let mut gateway = gateway(|_| {});
    let [of_neighbour, of_b4] = reopened(&mut gateway);
    assert_eq!((of_neighbour.0, of_b4.0), (Verdict::Forward, Verdict::Forward));
    let (of_neighbour, of_b4) = (source(&of_neighbour.1), source(&of_b4.1));
    assert_ne!(of_neighbour, of_b4, "each has its own endpoint");
    assert_eq!(softwires(&mut gateway).len(), 2);
    is_answered(&mut gateway, &of_b4, B4);
    is_answered(&mut gateway, &of_neighbour, NEIGHBOUR);
}

#[test]
fn a_number_that_another_softwire_has_since_the_look_up_is_not_used() {
    let mut gateway = gateway(|aftr| aftr.max_softwires = 1);
    // The neighbour gets the only number, by which the B4's last packet was looked up.
    let [of_neighbour, of_b4] = reopened(&mut gateway);
    assert_eq!(of_neighbour.0, Verdict::Forward);
    assert_eq!(of_b4.0, Verdict::Dropped(DropReason::SoftwireTableFull));
    is_answered(&mut gateway, &source(&of_neighbour.1), NEIGHBOUR);
}
