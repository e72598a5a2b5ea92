//! ICMP errors: inside softwires, about their packets, and from outside (RFC 2473 §8, RFC 5508 §4).

use super::*;
use crate::support::{checksum_is_right, hex, icmp4, icmp6};
use sixway_dataplane::{DropReason, Verdict};

/// A router on the way to a B4.
const ROUTER: &str = "2001:db8:ff::1";

/// Its error about a tunnel packet.
fn error6(kind: u8, code: u8, rest: u32, outer: &Build) -> Build {
    let octets = outer.octets();
    let quote = &octets[..octets.len().min(1_232)];
    v6(ROUTER, AFTR).icmp(icmp6(kind, code, rest.to_be_bytes(), quote))
}

/// What a server sends to the host, as the host gets it and as the server sent it.
fn sizes(outside: &str, port: u16, octets: usize) -> (Build, Build) {
    let data = vec![7; octets - 28];
    (v4(SERVER, HOST).hops(63).udp(53, 4_001, &data), v4(SERVER, outside).hops(63).udp(53, port, &data))
}

#[test]
fn a_narrow_path_to_a_b4_is_learnt_and_the_remote_host_hears_of_it_as_it_sent_its_packet() {
    // RFC 2473 §8.1, §8.3.
    let mut gateway = gateway(|_| {});
    let (outside, port) = opened(&mut gateway, B4);
    let (to_host, as_sent) = sizes(&outside, port, 1_400);
    gateway.receives(error6(2, 0, 1_380, &down(B4, to_host)));
    assert_eq!(gateway.last, Verdict::Answered);
    let sent = gateway.sent();
    assert_eq!(sent[12..20], v4("192.0.2.254", SERVER).octets()[12..20], "from the gateway to the server");
    assert_eq!((sent[20], sent[21], u16::from_be_bytes([sent[26], sent[27]])), (3, 4, 1_340));
    assert_eq!(hex(&sent[28..]), hex(&as_sent.octets()[..sent.len() - 28]));
    assert!(checksum_is_right(&sent));
    gateway.counted([("tunnels.path_mtus.learned", 1), ("tunnels.errors_relayed", 1), ("answered", 1)]);
    // From now on the gateway says so itself, and cuts what may be cut.
    gateway.receives(v4(SERVER, &outside).udp(53, port, &[7; 1_313]));
    let sent = gateway.sent();
    assert_eq!((sent[20], sent[21], u16::from_be_bytes([sent[26], sent[27]])), (3, 4, 1_340));
    gateway.receives(v4(SERVER, &outside).may_fragment().udp(53, port, &[7; 1_400]));
    assert_eq!((gateway.sent().len() <= 1_380, gateway.sent().len() <= 1_380), (true, true));
    // Another B4 has another path.
    let (outside, port) = opened(&mut gateway, NEIGHBOUR);
    gateway.receives(v4(SERVER, &outside).udp(53, port, &[7; 1_400]));
    assert_eq!(gateway.sent().len(), 1_468);
}

#[test]
fn unreachable_b4s_hop_limits_and_encapsulation_limits_are_told_to_the_remote_host() {
    // RFC 2473 §8.1: all of them are Host Unreachable; the rest concerns the tunnel alone.
    for (kind, code, rest) in [(1, 0, 0), (1, 1, 0), (1, 3, 0), (1, 4, 0), (3, 0, 0)] {
        let mut gateway = gateway(|_| {});
        let (outside, port) = opened(&mut gateway, B4);
        let (to_host, as_sent) = sizes(&outside, port, 200);
        gateway.receives(error6(kind, code, rest, &down(B4, to_host)));
        let sent = gateway.sent();
        assert_eq!((sent[20], sent[21]), (3, 1), "{kind}/{code}");
        assert_eq!(hex(&sent[28..]), hex(&as_sent.octets()));
        assert!(checksum_is_right(&sent));
        gateway.counted([("tunnels.errors_relayed", 1), ("answered", 1)]);
    }
    for (kind, code, rest) in [(3, 1, 0), (4, 0, 6), (4, 0, 44), (4, 1, 44)] {
        let mut gateway = gateway(|_| {});
        let (outside, port) = opened(&mut gateway, B4);
        let (to_host, _) = sizes(&outside, port, 200);
        gateway.refuses(error6(kind, code, rest, &down(B4, to_host)), DropReason::ErrorNotRelayable);
    }
}

#[test]
fn errors_about_what_was_not_sent_into_a_softwire_teach_nothing_and_reach_no_one() {
    let mut gateway = gateway(|_| {});
    let (outside, port) = opened(&mut gateway, B4);
    let (to_host, _) = sizes(&outside, port, 1_400);
    let none = DropReason::NoSessionForError;
    // Another B4, another host, another server, and a softwire that does not exist.
    gateway.refuses(error6(2, 0, 1_380, &down(NEIGHBOUR, to_host.clone())), none);
    let other_host = v4(SERVER, "10.0.0.6").udp(53, 4_001, &[7; 1_372]);
    gateway.refuses(error6(2, 0, 1_380, &down(B4, other_host)), none);
    gateway.refuses(error6(2, 0, 1_380, &down(B4, v4(STRANGER, HOST).udp(53, 4_001, &[7; 1_372]))), none);
    let elsewhere = error6(2, 0, 1_380, &down("2001:db8:b5::1", to_host.clone()));
    gateway.refuses(elsewhere, DropReason::ErrorNotForTunnel);
    let mut damaged = error6(2, 0, 1_380, &down(B4, to_host)).octets();
    damaged[42] ^= 1;
    gateway.refuses(damaged, DropReason::BadIcmpChecksum);
    // The path is as wide as before.
    gateway.receives(v4(SERVER, &outside).udp(53, port, &[7; 1_400]));
    assert_eq!(gateway.sent().len(), 1_468);
}

#[test]
fn a_path_is_never_believed_to_carry_less_than_1_280_octets() {
    let mut gateway = gateway(|_| {});
    let (outside, port) = opened(&mut gateway, B4);
    let (to_host, _) = sizes(&outside, port, 1_400);
    gateway.counted_before();
    gateway.receives(error6(2, 0, 600, &down(B4, to_host)));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::ErrorNotRelayable));
    gateway.counted([("tunnels.path_mtus.refused", 1), ("ErrorNotRelayable", 1)]);
}

#[test]
fn an_error_of_a_host_behind_a_softwire_leaves_with_its_outside_address() {
    // RFC 5508 REQ-5.
    let mut gateway = gateway(|_| {});
    let (outside, port) = opened(&mut gateway, B4);
    let arrived = v4(SERVER, HOST).hops(63).udp(53, 4_001, b"answer");
    for sender in [HOST, "192.0.0.2", "192.168.7.1"] {
        gateway.receives(up(B4, v4(sender, SERVER).icmp(icmp4(3, 3, [0; 4], &arrived.octets()))));
        let sent = gateway.sent();
        let quoted = v4(SERVER, &outside).hops(63).udp(53, port, b"answer");
        let expected = v4(&outside, SERVER).hops(63).icmp(icmp4(3, 3, [0; 4], &quoted.octets()));
        assert_eq!(hex(&sent), hex(&expected.octets()));
    }
    gateway.counted([("ds_lite.to_outside", 3)]);
    // Of another's session no one speaks.
    let other = up(NEIGHBOUR, v4(HOST, SERVER).icmp(icmp4(3, 3, [0; 4], &arrived.octets())));
    gateway.refuses(other, DropReason::NoSessionForError);
}

#[test]
fn an_error_from_outside_goes_into_the_softwire_with_the_hosts_addresses() {
    let mut gateway = gateway(|_| {});
    let (outside, port) = opened(&mut gateway, B4);
    let sent_before = v4(&outside, SERVER).hops(60).udp(port, 53, b"question");
    gateway.receives(v4("198.51.100.9", &outside).icmp(icmp4(11, 0, [0; 4], &sent_before.octets())));
    let quoted = v4(HOST, SERVER).hops(60).udp(4_001, 53, b"question");
    let inner = v4("198.51.100.9", HOST).hops(63).icmp(icmp4(11, 0, [0; 4], &quoted.octets()));
    gateway.sends(down(B4, inner));
    gateway.counted([("ds_lite.to_inside", 1)]);
}

#[test]
fn an_error_about_a_hairpin_goes_back_through_the_senders_softwire() {
    let mut gateway = gateway(|_| {});
    let (door, port) = opened(&mut gateway, NEIGHBOUR);
    let packet = v4(HOST, &door).udp(4_002, port, b"hello");
    gateway.receives(up(B4, packet.clone()));
    let (outside, from) = source(&gateway.sent()[40..]);
    // The neighbour refuses.
    let arrived = v4(&outside, HOST).hops(63).udp(from, 4_001, b"hello");
    gateway.receives(up(NEIGHBOUR, v4(HOST, &outside).icmp(icmp4(3, 3, [0; 4], &arrived.octets()))));
    let quoted = v4(HOST, &door).hops(63).udp(4_002, port, b"hello");
    gateway.sends(down(B4, v4(&door, HOST).hops(63).icmp(icmp4(3, 3, [0; 4], &quoted.octets()))));
    // And the gateway refuses what is too large for the second softwire, in the first.
    let large = v4(HOST, &door).udp(4_002, port, &[7; 1_450]);
    gateway.receives(up(B4, large.clone()));
    let sent = gateway.sent();
    assert_eq!(hex(&sent[24..40]), hex(&up(B4, vec![]).octets()[8..24]), "to its B4");
    let error = &sent[40..];
    assert_eq!((error[20], error[21], u16::from_be_bytes([error[26], error[27]])), (3, 4, 1_460));
    assert_eq!(hex(&error[28..]), hex(&large.octets()[..error.len() - 28]));
}

#[test]
fn errors_into_softwires_are_limited_for_each_subscriber_and_not_by_inner_addresses() {
    let mut gateway = support::gateway(|config| {
        config.icmp_errors_per_second = 80;
        config.others.push(aftr().into());
    });
    let expired = |b4: &str| up(b4, v4(HOST, SERVER).hops(1).udp(4_001, 53, b""));
    let mut answered = [0, 0];
    for _ in 0..50 {
        gateway.receives(expired(B4));
        answered[0] += gateway.waiting();
        while gateway.waiting() > 0 {
            gateway.sent();
        }
    }
    for _ in 0..5 {
        gateway.receives(expired(NEIGHBOUR));
        answered[1] += gateway.waiting();
        while gateway.waiting() > 0 {
            gateway.sent();
        }
    }
    assert_eq!(answered, [10, 5]);
}
