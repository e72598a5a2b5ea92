//! How long bindings, sessions and ports of a NAT44 last, and who can make them last longer (RFC 7857 §2.1, §7; RFC 6888 REQ-8).

use crate::support;
use crate::support::{Gateway, v4};
use sixway_dataplane::mechanism::nat44::Nat44Config;
use sixway_dataplane::nat::{NatProtocol, PortTimeout, SessionState};
use sixway_dataplane::{DropReason, Verdict};
use std::net::Ipv4Addr;
use std::time::Duration;

const HOST: &str = "10.0.0.1";
const OTHER: &str = "10.0.0.2";
const SERVER: &str = "203.0.113.1";
const STRANGER: &str = "203.0.113.2";
const OUTSIDE: &str = "192.0.2.1";
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// With one outside address and these ports.
fn gateway(ports: std::ops::RangeInclusive<u16>, edit: impl FnOnce(&mut Nat44Config)) -> Gateway {
    support::gateway(|config| {
        let mut nat44 = support::nat44();
        nat44.pool.addresses = vec!["192.0.2.1/32".parse().unwrap()];
        nat44.pool.ports = vec![ports];
        edit(&mut nat44);
        config.nat44.push(nat44);
    })
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The port of a packet without options, from the pool.
fn port(packet: &[u8]) -> u16 {
    assert_eq!(Ipv4Addr::from(<[u8; 4]>::try_from(&packet[12..16]).unwrap()).to_string(), OUTSIDE);
    u16::from_be_bytes([packet[20], packet[21]])
}

/// A host sends a datagram; its outside port.
fn opens(gateway: &mut Gateway, host: &str) -> u16 {
    gateway.receives(v4(host, SERVER).udp(4_000, 53, b""));
    port(&gateway.sent())
}

fn bindings(gateway: &mut Gateway) -> u32 {
    gateway.engine.stateful_at(0).unwrap().0.occupancy().bindings
}

fn sessions(gateway: &mut Gateway) -> u32 {
    gateway.engine.stateful_at(0).unwrap().0.occupancy().sessions
}

#[test]
fn a_late_answer_does_not_reach_the_next_host() {
    let mut gateway = gateway(2_000..=2_003, |_| {});
    let port = opens(&mut gateway, HOST);
    gateway.waits(seconds(301));
    assert_eq!(bindings(&mut gateway), 0);
    for host in 2..=4 {
        assert_ne!(opens(&mut gateway, &format!("10.0.0.{host}")), port);
    }
    gateway.receives(v4(SERVER, OUTSIDE).udp(53, port, b"late"));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::NoBinding));
    while gateway.waiting() > 0 {
        gateway.sent();
    }
    gateway.waits(seconds(120));
    gateway.receives(v4("10.0.0.9", SERVER).udp(4_002, 53, b""));
    assert_eq!(self::port(&gateway.sent()), port, "its quarantine is over");
}

#[test]
fn who_sends_from_outside_and_gets_no_answer_keeps_no_binding() {
    let mut gateway = gateway(2_000..=2_009, |_| {});
    let ports: Vec<u16> = (1..=5).map(|host| opens(&mut gateway, &format!("10.0.0.{host}"))).collect();
    // One packet for each port, from a new port of the stranger each time, before the sessions end.
    for round in 0..4u16 {
        gateway.waits(seconds(100));
        for port in &ports {
            gateway.receives(v4(STRANGER, OUTSIDE).udp(6_000 + round, *port, b"hold"));
            while gateway.waiting() > 0 {
                gateway.sent();
            }
        }
    }
    gateway.waits(seconds(1));
    assert_eq!((bindings(&mut gateway), sessions(&mut gateway)), (0, 0));
}

#[test]
fn an_answer_makes_a_session_from_outside_one_that_keeps_its_binding() {
    let mut gateway = gateway(2_000..=2_009, |_| {});
    let port = opens(&mut gateway, HOST);
    gateway.receives(v4(STRANGER, OUTSIDE).udp(6_000, port, b"hello"));
    gateway.sent();
    gateway.waits(seconds(250));
    gateway.receives(v4(HOST, STRANGER).udp(4_000, 6_000, b"answer"));
    gateway.sent();
    gateway.waits(seconds(299));
    assert_eq!(bindings(&mut gateway), 1, "for 300 s from the answer on");
    gateway.receives(v4(STRANGER, OUTSIDE).udp(6_000, port, b"again"));
    gateway.sends(v4(STRANGER, HOST).hops(63).udp(6_000, 4_000, b"again"));
    gateway.waits(seconds(301));
    assert_eq!(bindings(&mut gateway), 0);
}

#[test]
fn thousands_of_unanswered_sessions_end_with_their_binding_a_few_at_a_time() {
    let mut gateway = gateway(2_000..=2_009, |nat44| nat44.limits.sessions = 10_000);
    let port = opens(&mut gateway, HOST);
    gateway.waits(seconds(200));
    for remote in 0..2_000 {
        gateway.receives(v4(STRANGER, OUTSIDE).udp(6_000 + remote, port, b"hello"));
        gateway.sent();
    }
    assert_eq!(sessions(&mut gateway), 2_001);
    for _ in 0..100 {
        gateway.waits(seconds(1));
    }
    let left = sessions(&mut gateway);
    assert!(left < 2_001, "{left} are left");
    for _ in 0..200 {
        gateway.waits(Duration::from_millis(1));
    }
    assert_eq!((sessions(&mut gateway), bindings(&mut gateway)), (0, 0));
}

#[test]
fn a_packet_from_inside_saves_the_binding_while_its_sessions_end() {
    let mut gateway = gateway(2_000..=2_009, |_| {});
    let port = opens(&mut gateway, HOST);
    gateway.waits(seconds(200));
    for remote in 0..200 {
        gateway.receives(v4(STRANGER, OUTSIDE).udp(6_000 + remote, port, b"hello"));
        gateway.sent();
    }
    gateway.now = gateway.now + seconds(101);
    // The session is overdue: the packet ends it, its binding has more than can be ended with it, and keeps its port.
    assert_eq!(opens(&mut gateway, HOST), port);
    gateway.waits(seconds(1));
    assert_eq!(bindings(&mut gateway), 1);
    gateway.receives(v4(SERVER, OUTSIDE).udp(53, port, b"answer"));
    gateway.sends(v4(SERVER, HOST).hops(63).udp(53, 4_000, b"answer"));
}

#[test]
fn opening_and_closing_connections_have_timers_of_their_own() {
    // RFC 7857 §2.1.
    let mut gateway = gateway(2_000..=2_009, |nat44| nat44.timeouts.tcp_opening = seconds(30));
    gateway.receives(v4(HOST, SERVER).tcp(4_000, 443, SYN, b""));
    gateway.sent();
    gateway.receives(v4(OTHER, SERVER).tcp(4_000, 443, SYN, b""));
    let port = port(&gateway.sent());
    gateway.receives(v4(SERVER, OUTSIDE).tcp(443, port, SYN | ACK, b""));
    gateway.sent();
    gateway.receives(v4(SERVER, OUTSIDE).tcp(443, port, RST, b""));
    gateway.sent();
    gateway.waits(seconds(29));
    assert_eq!(bindings(&mut gateway), 2);
    gateway.waits(seconds(1));
    assert_eq!(bindings(&mut gateway), 1, "the one that was never answered has ended");
    gateway.waits(seconds(209));
    assert_eq!(bindings(&mut gateway), 1);
    gateway.waits(seconds(1));
    assert_eq!(bindings(&mut gateway), 0, "4 min after the RST");
}

#[test]
fn a_session_with_a_dns_server_may_have_a_short_timer_and_others_keep_theirs() {
    // RFC 4787 REQ-5 a.
    let short = PortTimeout { protocol: NatProtocol::Udp, ports: 53..=53, timeout: seconds(10) };
    let mut gateway = gateway(2_000..=2_009, |nat44| nat44.timeouts.ports = vec![short]);
    opens(&mut gateway, HOST);
    gateway.receives(v4(OTHER, SERVER).udp(4_000, 5_353, b""));
    gateway.sent();
    gateway.waits(seconds(9));
    gateway.receives(v4(HOST, SERVER).udp(4_000, 53, b""));
    gateway.sent();
    gateway.waits(seconds(9));
    assert_eq!(bindings(&mut gateway), 2);
    gateway.waits(seconds(1));
    assert_eq!(bindings(&mut gateway), 1);
    gateway.waits(seconds(280));
    assert_eq!(bindings(&mut gateway), 1);
    gateway.waits(seconds(1));
    assert_eq!(bindings(&mut gateway), 0);
}

#[test]
fn a_reset_from_inside_refreshes_nothing() {
    // RFC 7857 §7.1: the host answers segments of a connection that it has closed.
    let mut gateway = gateway(2_000..=2_009, |_| {});
    gateway.receives(v4(HOST, SERVER).tcp(4_000, 443, SYN, b""));
    let port = port(&gateway.sent());
    gateway.receives(v4(SERVER, OUTSIDE).tcp(443, port, SYN | ACK, b""));
    gateway.sent();
    gateway.receives(v4(SERVER, OUTSIDE).tcp(443, port, RST, b""));
    gateway.sent();
    for _ in 0..4 {
        gateway.waits(seconds(59));
        gateway.receives(v4(HOST, SERVER).tcp(4_000, 443, RST, b""));
        gateway.sent();
    }
    assert_eq!(bindings(&mut gateway), 1);
    gateway.waits(seconds(4));
    assert_eq!(bindings(&mut gateway), 0);
}

#[test]
fn an_unanswered_session_is_one_in_the_next_process_too() {
    let mut before = gateway(2_000..=2_009, |_| {});
    let port = opens(&mut before, HOST);
    before.receives(v4(STRANGER, OUTSIDE).udp(6_000, port, b"hello"));
    before.sent();
    let (now, mut saved) = (before.now, Vec::new());
    let (translator, _) = before.engine.stateful_at(0).unwrap();
    assert_eq!(translator.export(0, u32::MAX, now, &mut saved), None);
    saved.sort_by_key(|session| session.from_outside);
    let states: Vec<_> = saved.iter().map(|session| (session.state, session.from_outside)).collect();
    assert_eq!(states, [(SessionState::Udp, false), (SessionState::Udp, true)]);
    let mut next = gateway(2_000..=2_009, |_| {});
    for session in &saved {
        let (translator, counters) = next.engine.stateful_at(0).unwrap();
        translator.restore(session, now, counters).unwrap();
    }
    next.waits(seconds(250));
    next.receives(v4(STRANGER, OUTSIDE).udp(6_000, port, b"again"));
    next.sends(v4(STRANGER, HOST).hops(63).udp(6_000, 4_000, b"again"));
    next.waits(seconds(51));
    assert_eq!((bindings(&mut next), sessions(&mut next)), (0, 0));
}

#[test]
fn a_restored_binding_that_no_session_keeps_ends() {
    let mut before = gateway(2_000..=2_009, |_| {});
    let port = opens(&mut before, HOST);
    before.receives(v4(STRANGER, OUTSIDE).udp(6_000, port, b"hello"));
    before.sent();
    let (now, mut saved) = (before.now, Vec::new());
    before.engine.stateful_at(0).unwrap().0.export(0, u32::MAX, now, &mut saved);
    let mut next = gateway(2_000..=2_009, |_| {});
    let unanswered = saved.iter().find(|session| session.from_outside).unwrap();
    let (translator, counters) = next.engine.stateful_at(0).unwrap();
    translator.restore(unanswered, now, counters).unwrap();
    next.waits(seconds(1));
    assert_eq!((bindings(&mut next), sessions(&mut next)), (0, 0));
}
