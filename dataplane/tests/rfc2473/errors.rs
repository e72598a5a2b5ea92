//! ICMP errors from inside of tunnels (RFC 2473 §8), and what is learnt from them.

use super::*;
use crate::support;

/// An ICMPv6 error from a router inside, about a tunnel packet.
pub fn error6(kind: u8, code: u8, rest: u32, outer: &Build) -> Build {
    let octets = outer.octets();
    v6("2001:db8:ff::1", LOCAL6).icmp(icmp6(
        kind,
        code,
        rest.to_be_bytes(),
        &octets[..octets.len().min(1_232)],
    ))
}

#[test]
fn errors_from_inside_are_reported_to_ipv6_senders_as_rfc_2473_section_8_2_says() {
    let inner = big6(1_400);
    let outer = in_ipv6(41, LOCAL6, REMOTE6, inner.clone());
    for (kind, code, rest) in [(1, 0, 0), (1, 3, 0), (3, 0, 0), (4, 0, 44)] {
        let mut gateway = with(over6());
        gateway.receives(error6(kind, code, rest, &outer));
        let sent = gateway.sent();
        assert_eq!((sent[6], sent[40], sent[41]), (58, 1, 3), "{kind}/{code}");
        assert_eq!(hex(&sent[24..40]), hex(&inner.octets()[8..24]));
        assert_eq!(hex(&sent[48..]), hex(&inner.octets()[..sent.len() - 48]));
        assert!(checksum_is_right(&sent));
    }
    let mut gateway = with(over6());
    gateway.receives(error6(2, 0, 1_380, &outer));
    let sent = gateway.sent();
    assert_eq!((sent[40], u32::from_be_bytes([sent[44], sent[45], sent[46], sent[47]])), (2, 1_332));
    gateway.counted([("tunnels.path_mtus.learned", 1), ("tunnels.errors_relayed", 1), ("answered", 1)]);
    // It is remembered.
    gateway.receives(big6(1_333));
    assert_eq!(gateway.sent()[40], 2);
    gateway.receives(big6(1_332));
    assert_eq!(gateway.sent().len(), 1_380);
    // Concerns the tunnel alone.
    for (kind, code, rest) in [(3, 1, 0), (4, 0, 6), (4, 1, 44)] {
        gateway.counted_before();
        gateway.refuses(error6(kind, code, rest, &outer), DropReason::ErrorNotRelayable);
    }
}

#[test]
fn errors_from_inside_are_reported_to_ipv4_senders_as_rfc_2473_section_8_3_says() {
    let inner = big4(1_400);
    let outer = in_ipv6(4, LOCAL6, REMOTE6, inner.clone());
    let mut gateway = with(over6());
    gateway.receives(error6(1, 0, 0, &outer));
    let sent = gateway.sent();
    assert_eq!((sent[9], sent[20], sent[21], &sent[16..20]), (1, 3, 1, &[10, 1, 0, 1][..]));
    assert_eq!(hex(&sent[28..]), hex(&inner.octets()[..sent.len() - 28]));
    assert!(checksum_is_right(&sent));
    gateway.receives(error6(2, 0, 1_380, &outer));
    let sent = gateway.sent();
    assert_eq!((sent[20], sent[21], u16::from_be_bytes([sent[26], sent[27]])), (3, 4, 1_332));
    // Without DF its sender need not know: the outer packets are cut from now on.
    let outer = in_ipv6(4, LOCAL6, REMOTE6, big4(1_400).may_fragment());
    gateway.counted_before();
    gateway.receives(error6(2, 0, 1_380, &outer));
    gateway.sends_nothing();
    gateway.receives(big4(1_400).may_fragment());
    assert_eq!((gateway.sent()[6], gateway.sent()[6]), (44, 44));
    // RFC 2003 §4.
    let mut gateway = with(over4());
    let outer = in_ipv4(LOCAL4, REMOTE4, big4(1_400)).octets();
    gateway.receives(v4("198.18.0.1", LOCAL4).icmp(icmp4(3, 4, [0, 0, 5, 0x14], &outer[..548])));
    let sent = gateway.sent();
    assert_eq!((sent[20], sent[21], u16::from_be_bytes([sent[26], sent[27]])), (3, 4, 1_280));
    gateway.receives(v4("198.18.0.1", LOCAL4).icmp(icmp4(11, 0, [0; 4], &outer[..548])));
    assert_eq!(gateway.sent()[20..22], [3, 1]);
}

#[test]
fn errors_are_believed_only_about_what_was_sent() {
    let mut gateway = with(over6());
    let nothing_sent = DropReason::ErrorNotForTunnel;
    for outer in [
        in_ipv6(41, LOCAL6, "2001:db8:ff::8", big6(1_400)),
        in_ipv6(41, REMOTE6, LOCAL6, big6(1_400)),
        in_ipv6(41, LOCAL6, REMOTE6, v6(HERE6, "2001:db8:8::1").udp(1, 2, b"data")),
        in_ipv6(4, LOCAL6, REMOTE6, v4(HERE4, "10.8.0.1").udp(1, 2, b"data")),
    ] {
        gateway.counted_before();
        gateway.refuses(error6(2, 0, 1_300, &outer), nothing_sent);
    }
    // Nothing was learnt.
    gateway.receives(big6(1_452));
    assert_eq!(gateway.sent().len(), 1_500);
    // An error about an error is not news; neither is a path narrower than IPv6 allows, or wider than was thought.
    let error = v6(HERE6, THERE6).icmp(icmp6(1, 0, [0; 4], b"data"));
    gateway.counted_before();
    gateway.refuses(error6(1, 0, 0, &in_ipv6(41, LOCAL6, REMOTE6, error)), DropReason::QuoteIsIcmpError);
    for told in [1_279, 1_501] {
        gateway.receives(error6(2, 0, told, &in_ipv6(41, LOCAL6, REMOTE6, big6(1_280))));
        gateway.sends_nothing();
    }
    let broken = {
        let mut octets = error6(1, 0, 0, &in_ipv6(41, LOCAL6, REMOTE6, big6(1_400))).octets();
        octets[60] ^= 1;
        octets
    };
    gateway.counted_before();
    gateway.refuses(broken, DropReason::BadIcmpChecksum);
}

#[test]
fn what_another_worker_heard_of_a_path_is_learnt_too() {
    let mut gateway = with(over6());
    let error = error6(2, 0, 1_380, &in_ipv6(41, LOCAL6, REMOTE6, big6(1_400))).octets();
    gateway.engine.learn_path_error(&error, gateway.now);
    gateway.receives(big6(1_333));
    assert_eq!(gateway.sent()[40], 2);
}

#[test]
fn what_is_heard_of_a_path_is_kept_for_the_other_workers_and_in_bounds() {
    let two = || {
        support::gateway(|config| {
            config.workers = 2;
            config.tunnels.push(TunnelConfig::IpInIp(over6()));
        })
    };
    let (mut gateway, mut other) = (two(), two());
    // Without DF the sender is not told: what the other engine sends would be lost for ever.
    let error = error6(2, 0, 1_380, &in_ipv6(4, LOCAL6, REMOTE6, big4(1_400).may_fragment())).octets();
    gateway.receives(error.clone());
    let news = gateway.engine.take_path_errors();
    assert_eq!(news, std::slice::from_ref(&error));
    assert!(gateway.engine.take_path_errors().is_empty());
    for octets in &news {
        other.engine.learn_path_error(octets, other.now);
    }
    assert!(other.engine.take_path_errors().is_empty(), "news went in a circle");
    other.receives(big4(1_400).may_fragment());
    assert_eq!((other.sent()[6], other.sent()[6]), (44, 44));
    // What is not believed is not news, and there is never much.
    gateway.receives(error6(2, 0, 1_400, &in_ipv6(4, LOCAL6, REMOTE6, big4(1_400).may_fragment())));
    assert!(gateway.engine.take_path_errors().is_empty());
    (0..20).for_each(|_| gateway.receives(error.clone()));
    assert_eq!(gateway.engine.take_path_errors().len(), 8);
    let mut alone = with(over6());
    alone.receives(error);
    assert!(alone.engine.take_path_errors().is_empty());
}
