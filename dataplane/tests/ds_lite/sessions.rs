//! Sessions of hosts behind softwires.

use super::*;
use sixway_dataplane::{DropReason, Verdict};
use std::time::Duration;

#[test]
fn a_connection_goes_out_of_its_softwire_and_comes_back_into_it() {
    let mut gateway = gateway(|_| {});
    gateway.receives(up(B4, v4(HOST, SERVER).tcp(4_001, 443, SYN, b"")));
    let sent = gateway.sent();
    let (outside, port) = source(&sent);
    assert!("192.0.2.0/30".parse::<sixway_wire::Prefix4>().unwrap().contains(outside.parse().unwrap()));
    assert_eq!(sent, v4(&outside, SERVER).hops(63).tcp(port, 443, SYN, b"").octets());
    for (flags, is_out) in
        [(SYN | ACK, false), (ACK, true), (ACK, false), (FIN | ACK, true), (FIN | ACK, false), (ACK, true)]
    {
        if is_out {
            gateway.receives(up(B4, v4(HOST, SERVER).tcp(4_001, 443, flags, b"data")));
            gateway.sends(v4(&outside, SERVER).hops(63).tcp(port, 443, flags, b"data"));
        } else {
            gateway.receives(v4(SERVER, &outside).tcp(443, port, flags, b"data"));
            gateway.sends(down(B4, v4(SERVER, HOST).hops(63).tcp(443, 4_001, flags, b"data")));
        }
    }
    gateway.counted([
        ("ds_lite.to_outside", 4),
        ("ds_lite.to_inside", 3),
        ("nat.bindings.made", 1),
        ("nat.sessions.made", 1),
    ]);
}

#[test]
fn hosts_with_one_address_behind_two_softwires_have_sessions_of_their_own() {
    // RFC 6333 §6.6.
    let mut gateway = gateway(|_| {});
    let [one, other] = [B4, NEIGHBOUR].map(|b4| opened(&mut gateway, b4));
    assert_ne!(one, other);
    for (b4, (outside, port)) in [(B4, one), (NEIGHBOUR, other)] {
        gateway.receives(v4(SERVER, &outside).udp(53, port, b"answer"));
        gateway.sends(down(b4, v4(SERVER, HOST).hops(63).udp(53, 4_001, b"answer")));
    }
}

#[test]
fn an_echo_request_goes_out_and_its_reply_comes_back() {
    let mut gateway = gateway(|_| {});
    gateway.receives(up(B4, v4(HOST, SERVER).echo(7, 1, b"ping")));
    let (outside, identifier) = source(&gateway.sent());
    gateway.receives(v4(SERVER, &outside).echo_reply(identifier, 1, b"ping"));
    gateway.sends(down(B4, v4(SERVER, HOST).hops(63).echo_reply(7, 1, b"ping")));
}

#[test]
fn answers_come_from_the_address_of_the_aftr_that_the_b4_uses() {
    let mut gateway = gateway(|_| {});
    let (outside, port) = opened(&mut gateway, B4);
    for address in [OTHER_AFTR, AFTR] {
        gateway.receives(softwire(B4, address, v4(HOST, SERVER).udp(4_001, 53, b"again")));
        gateway.sends(v4(&outside, SERVER).hops(63).udp(port, 53, b"again"));
        gateway.receives(v4(SERVER, &outside).udp(53, port, b"answer"));
        gateway.sends(softwire(address, B4, v4(SERVER, HOST).hops(63).udp(53, 4_001, b"answer")));
    }
}

#[test]
fn a_packet_that_is_refused_does_not_change_the_address_that_answers_come_from() {
    let mut gateway = gateway(|aftr| aftr.excluded = vec!["198.51.100.0/24".parse().unwrap()]);
    let (outside, port) = opened(&mut gateway, B4);
    for refused in [v4(HOST, "198.51.100.1").udp(4_001, 53, b""), v4(HOST, SERVER).tcp(9, 80, ACK, b"")] {
        gateway.receives(softwire(B4, OTHER_AFTR, refused));
        assert!(matches!(gateway.last, Verdict::Dropped(_)), "{:?}", gateway.last);
        while gateway.waiting() > 0 {
            let _error = gateway.sent();
        }
        gateway.receives(v4(SERVER, &outside).udp(53, port, b"answer"));
        gateway.sends(down(B4, v4(SERVER, HOST).hops(63).udp(53, 4_001, b"answer")));
    }
}

#[test]
fn a_host_reaches_another_one_behind_another_softwire_by_its_outside_address() {
    // RFC 4787 REQ-9, between softwires.
    let mut gateway = gateway(|_| {});
    let (door, port) = opened(&mut gateway, NEIGHBOUR);
    gateway.receives(up(B4, v4(HOST, &door).udp(4_002, port, b"hello")));
    let sent = gateway.sent();
    let (outside, from) = source(&sent[40..]);
    assert_eq!(sent, down(NEIGHBOUR, v4(&outside, HOST).hops(63).udp(from, 4_001, b"hello")).octets());
    gateway.receives(up(NEIGHBOUR, v4(HOST, &outside).udp(4_001, from, b"hello too")));
    gateway.sends(down(B4, v4(&door, HOST).hops(63).udp(port, 4_002, b"hello too")));
    gateway.counted([
        ("ds_lite.to_outside", 2),
        ("ds_lite.to_inside", 2),
        ("nat.bindings.made", 1),
        ("nat.sessions.made", 2),
    ]);
    // And itself.
    let (own, port) = opened(&mut gateway, B4);
    gateway.receives(up(B4, v4(HOST, &own).udp(4_005, port, b"myself")));
    let sent = gateway.sent();
    assert_eq!(&sent[24..40], &B4.parse::<std::net::Ipv6Addr>().unwrap().octets());
}

#[test]
fn a_softwire_is_known_as_long_as_it_has_bindings() {
    let mut gateway = gateway(|_| {});
    let (outside, port) = opened(&mut gateway, B4);
    gateway.waits(Duration::from_secs(299));
    gateway.receives(v4(SERVER, &outside).udp(53, port, b"answer"));
    assert_eq!(gateway.last, Verdict::Forward);
    for _ in 0..4 {
        gateway.waits(Duration::from_secs(400));
    }
    gateway.counted_before();
    gateway.receives(v4(SERVER, &outside).udp(53, port, b"late"));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::NoBinding));
}

#[test]
fn a_silent_connection_is_probed_through_its_softwire() {
    // RFC 5382 §5.
    let mut gateway = gateway(|_| {});
    gateway.receives(up(B4, v4(HOST, SERVER).tcp(4_001, 443, SYN, b"")));
    let (outside, port) = source(&gateway.sent());
    gateway.receives(v4(SERVER, &outside).tcp(443, port, SYN | ACK, b""));
    gateway.receives(up(B4, v4(HOST, SERVER).tcp(4_001, 443, ACK, b"")));
    while gateway.waiting() > 0 {
        gateway.sent();
    }
    for _ in 0..80 {
        gateway.waits(Duration::from_secs(100));
    }
    let probe = gateway.sent();
    assert_eq!(probe[..40], down(B4, vec![0; 40]).octets()[..40]);
    assert_eq!(probe[52..60], v4(SERVER, HOST).octets()[12..20]);
    assert_eq!((&probe[60..64], probe[73]), (&[1, 187, 15, 161][..], ACK));
    assert!(support::checksum_is_right(&probe[40..]));
    gateway.sends_nothing();
}
