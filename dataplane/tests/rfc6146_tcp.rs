//! TCP through NAT64: the state machine's transitions as packets see them (RFC 6146 §3.5.2).

use crate::support;
use crate::support::{Gateway, checksum_is_right, v4, v6};
use sixway_dataplane::mechanism::nat64::Nat64Config;
use sixway_dataplane::nat::StateLimits;
use sixway_dataplane::nat::{Filtering, PoolConfig, STORED_SYNS, TCP_EST, TCP_INCOMING_SYN, TCP_TRANS};
use sixway_dataplane::translate::Policy;
use sixway_dataplane::translate::address::Rfc6052;
use sixway_dataplane::{DropReason, Verdict};
use std::net::Ipv4Addr;
use std::time::Duration;

const HOST: &str = "2001:db8:1::1";
const SERVER: &str = "203.0.113.2";
const SERVER6: &str = "64:ff9b::203.0.113.2";
const STRANGER: &str = "203.0.113.99";
const SECOND: Duration = Duration::from_secs(1);

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// A gateway with a NAT64, and the host's outside endpoint once it is known.
struct Scene {
    gateway: Gateway,
    address: String,
    port: u16,
}

fn scene(filtering: Filtering) -> Scene {
    let gateway = support::gateway(|config| {
        config.nat64.push(Nat64Config {
            filtering,
            limits: StateLimits { sessions: 100, bindings: 100, ..StateLimits::default() },
            policy: Policy { clamp_mss: false, ..Policy::default() },
            ..Nat64Config::new(
                Rfc6052::new("64:ff9b::/96".parse().unwrap(), true).unwrap(),
                PoolConfig { addresses: vec!["192.0.2.1/32".parse().unwrap()], ports: vec![1_024..=65_535] },
            )
        });
    });
    Scene { gateway, address: String::new(), port: 0 }
}

impl Scene {
    /// The host sends; whether it went out.
    fn out(&mut self, flags: u8) -> bool {
        self.gateway.receives(v6(HOST, SERVER6).tcp(4_001, 80, flags, b"data"));
        if self.gateway.last != Verdict::Forward {
            return false;
        }
        let sent = self.gateway.sent();
        assert!(checksum_is_right(&sent));
        self.address = Ipv4Addr::new(sent[12], sent[13], sent[14], sent[15]).to_string();
        self.port = u16::from_be_bytes([sent[20], sent[21]]);
        assert_eq!(sent[33], flags);
        true
    }

    /// The server sends; whether it came in.
    fn back(&mut self, flags: u8) -> bool {
        self.back_from(SERVER, flags)
    }

    fn back_from(&mut self, from: &str, flags: u8) -> bool {
        self.gateway.receives(v4(from, &self.address).tcp(80, self.port, flags, b"data"));
        if self.gateway.last != Verdict::Forward {
            return false;
        }
        self.gateway.sends(v6(&format!("64:ff9b::{from}"), HOST).hops(63).tcp(80, 4_001, flags, b"data"));
        true
    }

    /// Time passes, tick by tick, so long.
    fn wait(&mut self, time: Duration) {
        for _ in 0..time.as_secs() {
            self.gateway.waits(SECOND);
        }
    }

    /// Whether there is a session: its packets come in.
    fn is_alive(&mut self) -> bool {
        self.back(ACK)
    }

    fn refusal(&self) -> DropReason {
        match self.gateway.last {
            Verdict::Dropped(reason) => reason,
            other => panic!("{other:?}"),
        }
    }

    fn established() -> Self {
        let mut scene = scene(Filtering::EndpointIndependent);
        assert!(scene.out(SYN) && scene.back(SYN | ACK) && scene.out(ACK));
        scene
    }
}

#[test]
fn a_connection_from_inside_is_translated_both_ways() {
    Scene::established().gateway.counted([
        ("nat64.v6_to_v4", 2),
        ("nat64.v4_to_v6", 1),
        ("nat.bindings.made", 1),
        ("nat.sessions.made", 1),
    ]);
}

#[test]
fn a_syn_without_answer_is_forgotten_after_tcp_trans() {
    let mut scene = scene(Filtering::EndpointIndependent);
    assert!(scene.out(SYN));
    scene.wait(TCP_TRANS - 2 * SECOND);
    assert!(scene.out(SYN), "which starts the time again");
    scene.wait(TCP_TRANS - 2 * SECOND);
    assert!(scene.back(ACK), "which does not");
    scene.wait(5 * SECOND);
    assert!(!scene.is_alive());
}

#[test]
fn an_established_connection_is_kept_for_tcp_est_and_every_packet_renews_it() {
    let mut scene = Scene::established();
    scene.wait(TCP_EST - SECOND);
    assert!(scene.back(ACK));
    scene.wait(TCP_EST - SECOND);
    assert!(scene.out(ACK));
    scene.gateway.sends_nothing();
}

#[test]
fn a_silent_connection_is_probed_after_tcp_est_and_ends_tcp_trans_later() {
    let mut scene = Scene::established();
    scene.wait(TCP_EST + 2 * SECOND);
    let probe = scene.gateway.sent();
    assert!(checksum_is_right(&probe));
    let (source, destination) = (SERVER6, HOST);
    let as_built = v6(source, destination).octets();
    assert_eq!(probe[8..40], as_built[8..40], "from the server, as the host knows it");
    assert_eq!(probe[40..44], [0, 80, 15, 161]);
    assert_eq!(probe[44..52], [0; 8], "sequence and acknowledgment numbers are zero");
    assert_eq!((probe[53], probe.len()), (ACK, 60), "ACK alone, without data");
    scene.wait(TCP_TRANS + 3 * SECOND);
    assert!(!scene.is_alive());
}

#[test]
fn the_answer_to_a_probe_keeps_the_connection() {
    let mut scene = Scene::established();
    scene.wait(TCP_EST + 2 * SECOND);
    scene.gateway.sent();
    assert!(scene.out(ACK));
    scene.wait(TCP_TRANS + 10 * SECOND);
    assert!(scene.is_alive());
}

#[test]
fn a_connection_that_both_sides_closed_is_kept_for_tcp_trans() {
    for inside_first in [true, false] {
        let mut scene = Scene::established();
        if inside_first {
            assert!(scene.out(FIN | ACK) && scene.back(FIN | ACK) && scene.out(ACK));
        } else {
            assert!(scene.back(FIN | ACK) && scene.out(FIN | ACK) && scene.back(ACK));
        }
        scene.wait(TCP_TRANS - 2 * SECOND);
        assert!(scene.is_alive());
        scene.wait(5 * SECOND);
        assert!(!scene.is_alive(), "its packets do not renew it");
    }
}

#[test]
fn a_connection_that_one_side_closed_is_kept_for_tcp_est() {
    for inside in [true, false] {
        let mut scene = Scene::established();
        assert!(if inside { scene.out(FIN | ACK) } else { scene.back(FIN | ACK) });
        scene.wait(TCP_EST - 2 * SECOND);
        assert!(scene.is_alive());
        scene.wait(TCP_EST + 2 * SECOND);
        assert!(!scene.is_alive());
    }
}

#[test]
fn a_reset_connection_ends_after_tcp_trans_unless_packets_keep_flowing() {
    for inside in [true, false] {
        let mut scene = Scene::established();
        assert!(if inside { scene.out(RST) } else { scene.back(RST) });
        scene.wait(TCP_TRANS + 2 * SECOND);
        assert!(!scene.is_alive());
        let mut scene = Scene::established();
        assert!(if inside { scene.out(RST) } else { scene.back(RST) });
        scene.wait(TCP_TRANS - 2 * SECOND);
        assert!(scene.back(ACK), "who did not accept the reset goes on");
        scene.wait(TCP_EST - 2 * SECOND);
        assert!(scene.is_alive());
    }
}

#[test]
fn a_packet_of_no_connection_is_dropped_silently() {
    let mut scene = scene(Filtering::EndpointIndependent);
    assert!(!scene.out(ACK));
    assert_eq!(scene.refusal(), DropReason::NoSession);
    scene.address = "192.0.2.1".to_owned();
    scene.port = 5_000;
    assert!(!scene.back(ACK));
    assert_eq!(scene.refusal(), DropReason::NoSession);
    scene.gateway.sends_nothing();
}

#[test]
fn a_packet_of_no_connection_is_translated_where_there_is_a_binding() {
    let mut scene = Scene::established();
    assert!(scene.back_from(STRANGER, ACK));
    scene.gateway.receives(v6(HOST, "64:ff9b::203.0.113.99").tcp(4_001, 80, ACK, b"data"));
    scene.gateway.sent();
    scene.gateway.counted([
        ("nat64.v6_to_v4", 3),
        ("nat64.v4_to_v6", 2),
        ("nat.bindings.made", 1),
        ("nat.sessions.made", 1),
    ]);
}

#[test]
fn a_syn_from_outside_to_a_binding_opens_a_connection() {
    let mut scene = Scene::established();
    assert!(scene.back_from(STRANGER, SYN));
    scene.gateway.receives(v6(HOST, "64:ff9b::203.0.113.99").tcp(4_001, 80, SYN | ACK, b""));
    scene.gateway.sent();
    scene.wait(TCP_TRANS + 10 * SECOND);
    assert!(scene.back_from(STRANGER, ACK), "established");
}

#[test]
fn a_syn_from_outside_that_the_filter_stops_is_stored_and_answered_after_tcp_incoming_syn() {
    let mut scene = scene(Filtering::AddressDependent);
    assert!(scene.out(SYN) && scene.back(SYN | ACK));
    assert!(!scene.back_from(STRANGER, SYN));
    assert_eq!(scene.gateway.last, Verdict::Held);
    scene.gateway.sends_nothing();
    scene.wait(TCP_INCOMING_SYN - SECOND);
    scene.gateway.sends_nothing();
    scene.wait(3 * SECOND);
    let sent = scene.gateway.sent();
    assert_eq!((sent[20], sent[21]), (3, 3));
    assert_eq!(sent[28..68], v4(STRANGER, &scene.address).tcp(80, scene.port, SYN, b"data").octets()[..40]);
    assert!(!scene.back_from(STRANGER, ACK));
    assert_eq!(scene.refusal(), DropReason::Filtered);
}

#[test]
fn a_syn_from_outside_that_the_filter_lets_in_opens_a_connection() {
    let mut scene = scene(Filtering::AddressDependent);
    assert!(scene.out(SYN) && scene.back(SYN | ACK));
    scene.gateway.receives(v4(SERVER, &scene.address).tcp(81, scene.port, SYN, b""));
    scene.gateway.sends(v6(SERVER6, HOST).hops(63).tcp(81, 4_001, SYN, b""));
}

#[test]
fn a_syn_from_outside_to_no_binding_is_stored_and_answered() {
    let mut scene = scene(Filtering::EndpointIndependent);
    scene.address = "192.0.2.1".to_owned();
    scene.port = 5_000;
    assert!(!scene.back(SYN));
    assert_eq!(scene.gateway.last, Verdict::Held);
    scene.wait(TCP_INCOMING_SYN + 2 * SECOND);
    let sent = scene.gateway.sent();
    assert_eq!((sent[20], sent[21]), (3, 3));
    scene.gateway.counted([
        ("InboundSyn", 1),
        ("icmp_errors.made", 1),
        ("nat.sessions.made", 1),
        ("nat.sessions.ended", 1),
    ]);
}

#[test]
fn a_simultaneous_open_is_established_by_the_syn_from_inside() {
    let mut scene = scene(Filtering::AddressDependent);
    assert!(scene.out(SYN));
    assert!(!scene.back_from(STRANGER, SYN));
    scene.gateway.receives(v6(HOST, "64:ff9b::203.0.113.99").tcp(4_001, 80, SYN, b""));
    scene.gateway.sent();
    scene.wait(TCP_TRANS + 10 * SECOND);
    scene.gateway.sends_nothing();
    assert!(scene.back_from(STRANGER, ACK), "established");
}

/// A SYN whose sender is to be notified that it was not answered counts as stored until then: the store does not grow by it.
#[test]
fn syns_that_wait_for_their_answer_take_no_more_room_than_the_store_has() {
    let mut gateway = support::gateway(|config| {
        config.icmp_errors_per_second = 0;
        config.nat64.push(Nat64Config {
            pool: PoolConfig {
                addresses: vec!["192.0.2.1/32".parse().unwrap()],
                ports: vec![1_024..=65_535],
            },
            limits: StateLimits { sessions: 100_000, bindings: 100_000, ..StateLimits::default() },
            ..support::nat64()
        });
    });
    let mut held = Vec::new();
    for _ in 0..5 {
        let before = gateway.engine.counters().held;
        for port in 0..2 * STORED_SYNS as u16 {
            gateway.receives(v4(STRANGER, "192.0.2.1").tcp(80, 2_000 + port, SYN, b""));
        }
        held.push(gateway.engine.counters().held - before.min(gateway.engine.counters().held));
        // No tick: no error is sent.
        gateway.now = gateway.now + TCP_INCOMING_SYN + SECOND;
    }
    assert_eq!(held[0], u64::from(STORED_SYNS));
    assert_eq!(gateway.engine.counters().held, 0, "all of the last rounds were refused");
}
