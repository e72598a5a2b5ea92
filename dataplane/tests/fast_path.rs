//! Sessions and the fast path: which are offloaded and when, what it reports of them, and how they are withdrawn.

use crate::support;
use crate::support::fast_path::{Fate, MemoryFastPath, Word};
use crate::support::{Gateway, v4, v6};
use sixway_dataplane::mechanism::identity::Identity;
use sixway_dataplane::mechanism::nat64::Nat64Config;
use sixway_dataplane::nat::{Inside, NatProtocol, Outside, Selection, SessionRow, StaticBinding};
use sixway_dataplane::stateful::Stateful as _;
use sixway_dataplane::{Frame, Instant, Outbox, Verdict};
use sixway_wire::{Endpoint4, Endpoint6};
use std::time::Duration;

const HOST: &str = "2001:db8:1::1";
const SERVER: &str = "203.0.113.2";
const SERVER6: &str = "64:ff9b::203.0.113.2";
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;
const PACKETS: u32 = 8;
const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// A gateway and its fast path.
struct Pair {
    gateway: Gateway,
    path: MemoryFastPath,
    /// Makes the packets different.
    number: u32,
}

fn pair() -> Pair {
    pair_with(64, |_| {})
}

fn pair_with(most: usize, edit: impl FnOnce(&mut Nat64Config)) -> Pair {
    let mut nat64 = support::nat64();
    edit(&mut nat64);
    let mut gateway = support::gateway(|config| config.nat64.push(nat64));
    let path = MemoryFastPath::new(most);
    gateway.engine.set_fast_path(Box::new(path.clone()), PACKETS);
    Pair { gateway, path, number: 0 }
}

impl Pair {
    fn data(&mut self) -> [u8; 8] {
        self.number += 1;
        u64::from(self.number).to_be_bytes()
    }

    /// A packet comes from the wire: what the program does with it, and then the engine.
    #[track_caller]
    fn comes(&mut self, packet: &[u8]) -> Fate {
        let fate = self.path.meets(packet, self.gateway.now);
        if fate == Fate::Passed {
            self.decides(packet);
            self.gateway.engine.settle(self.gateway.now);
        }
        fate
    }

    /// Nothing comes for so long, and nothing waits before the engine.
    fn rests(&mut self, time: Duration) {
        self.gateway.now = self.gateway.now + time;
        for _ in 0..4 {
            self.gateway.engine.emptied(self.gateway.now);
            self.gateway.engine.settle(self.gateway.now);
        }
    }

    /// The engine gets it, and its batch is not sent yet.
    #[track_caller]
    fn decides(&mut self, packet: &[u8]) {
        self.gateway.receives(packet);
        assert_eq!(self.gateway.last, Verdict::Forward);
    }

    fn udp_out(&mut self, port: u16) -> Vec<u8> {
        let data = self.data();
        v6(HOST, SERVER6).udp(port, 53, &data).octets()
    }

    fn udp_in(&mut self, port: u16) -> Vec<u8> {
        let (outside, data) = (self.row(port).outside.0, self.data());
        v4(SERVER, &outside.address.to_string()).udp(53, outside.port, &data).octets()
    }

    fn tcp_out(&mut self, flags: u8) -> Vec<u8> {
        let data = self.data();
        sequenced(v6(HOST, SERVER6).tcp(1_000, 80, flags, &data).octets(), 40, self.number)
    }

    fn tcp_in(&mut self, flags: u8) -> Vec<u8> {
        let (outside, data) = (self.row(1_000).outside.0, self.data());
        let packet = v4(SERVER, &outside.address.to_string()).tcp(80, outside.port, flags, &data).octets();
        sequenced(packet, 20, self.number)
    }

    /// The session of an inside port, as it is shown.
    #[track_caller]
    fn row(&mut self, port: u16) -> SessionRow {
        let rows = rows(&mut self.gateway);
        let mut found = rows.iter().filter(|row| row.inside.unwrap().0.port == port);
        *found.next().unwrap_or_else(|| panic!("no session of port {port} in {rows:?}"))
    }

    /// A UDP session whose halves are both active.
    #[track_caller]
    fn carried_udp(&mut self, port: u16) {
        for _ in 0..PACKETS {
            let packet = self.udp_out(port);
            assert_eq!(self.comes(&packet), Fate::Passed);
        }
        for _ in 0..2 {
            let (there, back) = (self.udp_out(port), self.udp_in(port));
            self.comes(&there);
            self.comes(&back);
        }
        assert!(self.row(port).offloaded);
    }

    /// A TCP connection whose halves are both active.
    #[track_caller]
    fn carried_tcp(&mut self) {
        let syn = self.tcp_out(SYN);
        self.comes(&syn);
        let answer = self.tcp_in(SYN | ACK);
        self.comes(&answer);
        for _ in 0..PACKETS + 1 {
            let (there, back) = (self.tcp_out(ACK), self.tcp_in(ACK));
            self.comes(&there);
            self.comes(&back);
        }
        assert_eq!(self.path.active(), [true; 2]);
    }
}

fn sequenced(mut packet: Vec<u8>, transport: usize, number: u32) -> Vec<u8> {
    packet[transport + 4..transport + 8].copy_from_slice(&(number * 1_000).to_be_bytes());
    packet
}

fn rows(gateway: &mut Gateway) -> Vec<SessionRow> {
    let (now, mut rows) = (gateway.now, Vec::new());
    assert_eq!(gateway.engine.nat64()[0].sessions(0, u32::MAX, &Selection::default(), now, &mut rows), None);
    rows
}

#[test]
fn a_session_is_armed_by_its_eighth_packet_and_active_at_its_next() {
    let mut pair = pair();
    for n in 1..=PACKETS {
        assert_eq!(pair.path.len(), 0, "before packet {n}");
        let packet = pair.udp_out(1_000);
        pair.comes(&packet);
    }
    let (_, entry) = pair.path.only();
    assert_eq!(entry.words, [Word::Armed(0); 2]);
    let nat64 = Identity::of_nat64("64:ff9b::/96".parse().unwrap());
    assert_eq!((entry.flow.mechanism, entry.flow.protocol), (nat64, NatProtocol::Udp));
    assert_eq!(entry.flow.inside, Inside(Endpoint6::new(HOST.parse().unwrap(), 1_000)));
    assert_eq!(entry.flow.outside, pair.row(1_000).outside);
    let packet = pair.udp_out(1_000);
    assert_eq!(pair.comes(&packet), Fate::Passed);
    assert_eq!(pair.path.active(), [true, false]);
    let packet = pair.udp_out(1_000);
    assert_eq!(pair.comes(&packet), Fate::Forwarded);
    let packet = pair.udp_in(1_000);
    assert_eq!(pair.comes(&packet), Fate::Passed);
    assert_eq!(pair.path.active(), [true, true]);
    pair.gateway.counted([
        ("nat64.v6_to_v4", 9),
        ("nat64.v4_to_v6", 1),
        ("nat.bindings.made", 1),
        ("nat.sessions.made", 1),
        ("flows.offloaded", 1),
    ]);
}

#[test]
fn a_packet_under_way_keeps_a_half_from_becoming_active() {
    let mut pair = pair();
    for _ in 0..PACKETS {
        let packet = pair.udp_out(1_000);
        pair.comes(&packet);
    }
    let (one, two) = (pair.udp_out(1_000), pair.udp_out(1_000));
    for packet in [&one, &two] {
        assert_eq!(pair.path.meets(packet, pair.gateway.now), Fate::Passed);
    }
    pair.decides(&one);
    pair.gateway.engine.settle(pair.gateway.now);
    assert_eq!(pair.path.active(), [false, false], "the second waits in the queue");
    pair.decides(&two);
    assert_eq!(pair.path.active(), [false, false], "its batch is not sent");
    pair.gateway.engine.settle(pair.gateway.now);
    assert_eq!(pair.path.active(), [true, false]);
}

#[test]
fn packets_that_passed_before_the_entry_was_made_are_waited_for() {
    let mut pair = pair();
    let early: Vec<_> = (0..PACKETS + 3).map(|_| pair.udp_out(1_000)).collect();
    for packet in &early[..PACKETS as usize] {
        pair.comes(packet);
    }
    // The others are in the queue without a mark.
    for packet in &early[PACKETS as usize..] {
        pair.gateway.engine.settle(pair.gateway.now);
        assert_eq!(pair.path.active(), [false, false]);
        pair.decides(packet);
        pair.gateway.engine.settle(pair.gateway.now);
    }
    assert_eq!(pair.path.active(), [false, false]);
    pair.rests(49 * MILLISECOND);
    assert_eq!(pair.path.active(), [false, false]);
    pair.rests(MILLISECOND);
    assert_eq!(pair.path.active(), [true, true], "nothing can be under way any more");
}

#[test]
fn without_a_quiet_point_a_flow_moves_after_half_a_second() {
    let mut pair = pair();
    for _ in 0..PACKETS {
        let packet = pair.udp_out(1_000);
        pair.comes(&packet);
    }
    let mut waiting = pair.udp_out(1_000);
    pair.path.meets(&waiting, pair.gateway.now);
    for _ in 0..50 {
        assert!(!pair.path.active()[0]);
        pair.gateway.now = pair.gateway.now + 10 * MILLISECOND;
        let next = pair.udp_out(1_000);
        pair.path.meets(&next, pair.gateway.now);
        pair.decides(&waiting);
        pair.gateway.engine.settle(pair.gateway.now);
        waiting = next;
    }
    assert_eq!(pair.path.active(), [true, true]);
    assert_eq!(pair.gateway.engine.counters().flows_moved_busy, 1);
}

#[test]
fn a_fin_or_rst_or_syn_takes_a_connection_out_of_the_fast_path() {
    for (flags, state) in [(FIN | ACK, "fin from inside"), (RST, "trans"), (SYN, "established")] {
        let mut pair = pair();
        pair.carried_tcp();
        let before = pair.row(1_000);
        assert!(before.offloaded);
        for _ in 0..5 {
            let (there, back) = (pair.tcp_out(ACK), pair.tcp_in(ACK));
            assert_eq!((pair.comes(&there), pair.comes(&back)), (Fate::Forwarded, Fate::Forwarded));
        }
        assert_eq!(pair.row(1_000).packets_out, before.packets_out + 5);
        let packet = pair.tcp_out(flags);
        assert_eq!(pair.comes(&packet), Fate::Passed);
        assert_eq!(pair.path.len(), 0);
        let row = pair.row(1_000);
        assert_eq!((row.state, row.offloaded), (state, false));
        assert_eq!(row.packets_out, before.packets_out + 6);
        assert_eq!(row.packets_in, before.packets_in + 5);
        assert_eq!(row.octets_in, before.octets_in + 5 * 48);
        let packet = pair.tcp_out(ACK);
        assert_eq!(pair.comes(&packet), Fate::Passed);
        assert_eq!(pair.gateway.engine.counters().flows_withdrawn, 1);
    }
}

#[test]
fn a_connection_that_goes_on_after_a_reset_is_soon_given_away_again() {
    let mut pair = pair();
    pair.carried_tcp();
    for _ in 0..100_000 {
        let packet = pair.tcp_out(ACK);
        pair.comes(&packet);
    }
    // Anyone can forge one, and the host may not believe it.
    let packet = pair.tcp_in(RST);
    pair.comes(&packet);
    assert_eq!((pair.path.len(), pair.row(1_000).state), (0, "trans"));
    for _ in 0..2 * PACKETS {
        let (there, back) = (pair.tcp_out(ACK), pair.tcp_in(ACK));
        pair.comes(&there);
        pair.comes(&back);
    }
    assert_eq!(pair.path.active(), [true; 2]);
    assert!(pair.row(1_000).packets_out > 100_000);
}

#[test]
fn forged_resets_do_not_keep_a_connection_out_of_the_fast_path_for_longer_each_time() {
    let mut pair = pair();
    pair.carried_tcp();
    for resets in 0..40 {
        let packet = pair.tcp_in(RST);
        pair.comes(&packet);
        let (before, mut packets) = (pair.row(1_000), 0_u32);
        while pair.path.len() == 0 || pair.path.active() != [true; 2] {
            let (there, back) = (pair.tcp_out(ACK), pair.tcp_in(ACK));
            pair.comes(&there);
            pair.comes(&back);
            packets += 1;
            assert!(packets <= 4 * PACKETS + 2, "after {resets} resets");
        }
        assert_eq!(pair.row(1_000).packets_out, before.packets_out + u64::from(packets), "none is lost");
    }
    // A reset just before each packet that would make it due.
    for _ in 0..4_000 {
        let (reset, packet) = (pair.tcp_in(RST), pair.tcp_out(ACK));
        pair.comes(&reset);
        pair.comes(&packet);
    }
    for _ in 0..4 * PACKETS + 2 {
        let (there, back) = (pair.tcp_out(ACK), pair.tcp_in(ACK));
        pair.comes(&there);
        pair.comes(&back);
    }
    assert_eq!(pair.path.active(), [true; 2]);
}

#[test]
fn packets_in_the_fast_path_keep_a_udp_session_alive_and_their_end_ends_it() {
    let mut pair = pair();
    pair.carried_udp(1_000);
    for _ in 0..10 {
        pair.gateway.waits(200 * SECOND);
        let packet = pair.udp_in(1_000);
        assert_eq!(pair.comes(&packet), Fate::Forwarded);
        assert_eq!(pair.row(1_000).idle, Duration::ZERO);
        assert!(pair.row(1_000).ends_in >= 300 * SECOND);
    }
    pair.gateway.waits(299 * SECOND);
    assert_eq!((rows(&mut pair.gateway).len(), pair.path.len()), (1, 1));
    pair.gateway.waits(2 * SECOND);
    assert_eq!((rows(&mut pair.gateway).len(), pair.path.len()), (0, 0));
    assert_eq!(pair.gateway.engine.counters().bindings_ended, 1);
}

#[test]
fn a_packet_for_the_engine_finds_a_session_alive_that_only_the_fast_path_saw() {
    let mut pair = pair();
    pair.carried_udp(1_000);
    pair.gateway.now = pair.gateway.now + 290 * SECOND;
    let packet = pair.udp_out(1_000);
    assert_eq!(pair.comes(&packet), Fate::Forwarded);
    // No tick: the wheel has not fired.
    pair.gateway.now = pair.gateway.now + 290 * SECOND;
    let packet = pair.udp_in(1_000);
    pair.decides(&packet);
    assert_eq!(pair.gateway.engine.counters().sessions_made, 1);
    assert_eq!(pair.path.len(), 1);
}

#[test]
fn a_silent_connection_leaves_the_fast_path_and_is_probed_and_one_in_use_does_not() {
    let mut pair = pair();
    pair.carried_tcp();
    let hours = 3_600 * SECOND;
    pair.gateway.waits(hours);
    let packet = pair.tcp_out(ACK);
    assert_eq!(pair.comes(&packet), Fate::Forwarded);
    pair.gateway.waits(hours + 60 * SECOND);
    assert_eq!((pair.row(1_000).state, pair.path.len()), ("established", 1));
    assert_eq!(pair.gateway.engine.counters().tcp_probes_made, 0);
    pair.gateway.waits(hours);
    assert_eq!((pair.row(1_000).state, pair.path.len()), ("trans", 0));
    assert_eq!(pair.gateway.engine.counters().tcp_probes_made, 1);
    // A host that still exists answers, through the engine.
    let packet = pair.tcp_out(ACK);
    assert_eq!(pair.comes(&packet), Fate::Passed);
    assert_eq!(pair.row(1_000).state, "established");
}

#[test]
fn an_entry_goes_before_its_port_is_given_again() {
    let mut pair = pair_with(64, |nat64| {
        nat64.pool.addresses = vec!["192.0.2.1/32".parse().unwrap()];
        nat64.pool.ports = vec![4_000..=4_000];
    });
    pair.carried_udp(1_000);
    pair.gateway.now = pair.gateway.now + 301 * SECOND;
    // The new session makes room for itself: the old one's entry has to be out by then.
    let packet = v6("2001:db8:1::2", SERVER6).udp(2_000, 53, b"").octets();
    pair.decides(&packet);
    assert_eq!((rows(&mut pair.gateway).len(), pair.path.len()), (1, 0));
}

#[test]
fn the_administrator_ends_sessions_and_bindings_with_their_entries() {
    let mut pair = pair();
    pair.carried_udp(1_000);
    pair.carried_udp(1_002);
    let row = pair.row(1_000);
    let (nat64, counters) = pair.gateway.engine.nat64_and_counters();
    assert!(nat64[0].end_session(NatProtocol::Udp, row.inside.unwrap().into(), row.remote, counters));
    assert_eq!(pair.path.len(), 1);
    let outside = pair.row(1_002).outside;
    let (nat64, counters) = pair.gateway.engine.nat64_and_counters();
    assert_eq!(nat64[0].end_binding(NatProtocol::Udp, outside, 10, counters), Some(true));
    assert_eq!(pair.path.len(), 0);
}

#[test]
fn an_echo_session_is_given_away_lives_there_and_ends() {
    let mut pair = pair();
    let there = |n| v6(HOST, SERVER6).echo(7, n, b"data").octets();
    for n in 0..PACKETS as u16 {
        assert_eq!(pair.comes(&there(n)), Fate::Passed);
    }
    let outside = pair.row(7).outside.0;
    let back = |n| v4(SERVER, &outside.address.to_string()).echo_reply(outside.port, n, b"data").octets();
    for n in 0..2 {
        pair.comes(&there(100 + n));
        pair.comes(&back(100 + n));
    }
    assert_eq!(pair.path.active(), [true; 2]);
    for n in 0..10 {
        assert_eq!(pair.comes(&there(200 + n)), Fate::Forwarded);
        assert_eq!(pair.comes(&back(200 + n)), Fate::Forwarded);
        pair.gateway.waits(50 * SECOND);
        assert!(pair.row(7).offloaded, "{n}: 60 s after its last packet it ends");
    }
    pair.gateway.waits(61 * SECOND);
    assert_eq!((rows(&mut pair.gateway).len(), pair.path.len()), (0, 0));
}

#[test]
fn half_open_connections_are_never_given_away() {
    let mut pair = pair();
    for _ in 0..100u16 {
        pair.decides(&v6(HOST, SERVER6).tcp(1_000, 80, SYN, &[]).octets());
        pair.decides(&v6(HOST, SERVER6).tcp(1_000, 80, ACK, &[]).octets());
    }
    assert_eq!(rows(&mut pair.gateway).len(), 1);
    assert_eq!((pair.path.len(), pair.path.table().asked), (0, 0));
}

/// Two hosts behind the same translator: each packet belongs to two sessions, the sender's and the receiver's.
#[test]
fn a_hairpins_packets_are_forwarded_when_both_their_sessions_are_there() {
    let called = "2001:db8:1::2";
    for protocol in [NatProtocol::Udp, NatProtocol::Tcp] {
        let mut pair = pair_with(64, |nat64| {
            nat64.static_bindings.push(StaticBinding {
                softwire: None,
                protocol,
                inside: Inside(Endpoint6::new(called.parse().unwrap(), 53)),
                outside: Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), 53)),
            });
        });
        let packet = |pair: &mut Pair, flags, back: bool| {
            let data = pair.data();
            let (packet, ports) = if back {
                let caller = pair.row(1_000).outside.0;
                let image = format!("64:ff9b::{}", caller.address);
                (v6(called, &image), [53, caller.port])
            } else {
                (v6(HOST, "64:ff9b::192.0.2.1"), [1_000, 53])
            };
            match protocol {
                NatProtocol::Tcp => {
                    sequenced(packet.tcp(ports[0], ports[1], flags, &data).octets(), 40, pair.number)
                }
                _ => packet.udp(ports[0], ports[1], &data).octets(),
            }
        };
        for (flags, back) in [(SYN, false), (SYN | ACK, true)] {
            let packet = packet(&mut pair, flags, back);
            pair.comes(&packet);
        }
        for _ in 0..PACKETS + 2 {
            for back in [false, true] {
                let packet = packet(&mut pair, ACK, back);
                pair.comes(&packet);
            }
        }
        assert_eq!(pair.path.len(), 2);
        let words = pair.path.table().entries.values().flat_map(|entry| entry.words).collect::<Vec<_>>();
        assert_eq!(words, [Word::Active; 4], "{protocol}");
        for back in [false, true] {
            let packet = packet(&mut pair, ACK, back);
            assert_eq!(pair.comes(&packet), Fate::Forwarded);
        }
        assert_eq!(pair.gateway.engine.counters().flows_moved_busy, 0);
    }
}

#[test]
fn a_full_fast_path_is_asked_again_when_a_session_has_had_twice_as_many_packets() {
    let mut pair = pair_with(0, |_| {});
    for _ in 0..1_000 {
        let packet = pair.udp_out(1_000);
        pair.comes(&packet);
    }
    // At 8, 16, 32, 64, 128, 256 and 512.
    assert_eq!(pair.path.table().asked, 7);
    assert_eq!(pair.gateway.engine.counters().flows_offload_refused, 7);
    pair.path.table().most = 1;
    for _ in 0..24 {
        let packet = pair.udp_out(1_000);
        pair.comes(&packet);
    }
    assert_eq!(pair.path.len(), 1);
}

#[test]
fn thousands_of_flows_move_at_a_time() {
    let mut pair = pair_with(5_000, |nat64| {
        (nat64.limits.sessions, nat64.limits.bindings, nat64.limits.of_subscriber.bindings) =
            (5_000, 5_000, 5_000);
    });
    for port in 1_000..3_000 {
        for _ in 0..PACKETS {
            let packet = pair.udp_out(port);
            pair.comes(&packet);
        }
    }
    assert_eq!(pair.path.len(), 2_000);
    for _ in 0..5 {
        pair.rests(60 * MILLISECOND);
    }
    for port in 1_000..3_000 {
        let (there, back) = (pair.udp_out(port), pair.udp_in(port));
        assert_eq!(pair.comes(&there), Fate::Forwarded, "{port}");
        assert_eq!(pair.comes(&back), Fate::Forwarded, "{port}");
    }
}

/// This number of UDP sessions, given to the fast path in one batch; none of their packets is under way.
fn a_batch_of_ripe_sessions(last: u16) -> Pair {
    let mut pair = pair_with(5_000, |nat64| {
        (nat64.limits.sessions, nat64.limits.bindings, nat64.limits.of_subscriber.bindings) =
            (5_000, 5_000, 5_000);
    });
    for port in 1_000..=last {
        for _ in 0..PACKETS {
            let packet = pair.udp_out(port);
            pair.decides(&packet);
        }
    }
    pair.gateway.engine.settle(pair.gateway.now);
    pair
}

#[test]
fn all_sessions_that_are_ripe_in_one_batch_are_given_away() {
    let mut pair = a_batch_of_ripe_sessions(1_499);
    assert_eq!(pair.gateway.engine.counters().flows_offload_refused, 0);
    assert_eq!(pair.path.len(), 500);
    for _ in 0..2 {
        pair.rests(50 * MILLISECOND);
    }
    for port in 1_000..1_500 {
        let packet = pair.udp_out(port);
        assert_eq!(pair.comes(&packet), Fate::Forwarded, "{port}");
    }
}

#[test]
fn a_packet_in_its_silence_holds_no_session_up_for_long() {
    let mut pair = a_batch_of_ripe_sessions(1_499);
    pair.gateway.now = pair.gateway.now + 20 * MILLISECOND;
    for port in 1_000..1_500 {
        let packet = pair.udp_out(port);
        assert_eq!(pair.comes(&packet), Fate::Passed, "{port}");
    }
    // The end of the silence that was broken; then two for those that are looked at, and may be sent to wait.
    for _ in 0..3 {
        pair.rests(50 * MILLISECOND);
    }
    for port in 1_000..1_500 {
        let (there, back) = (pair.udp_out(port), pair.udp_in(port));
        assert_eq!((pair.comes(&there), pair.comes(&back)), (Fate::Forwarded, Fate::Forwarded), "{port}");
    }
    assert_eq!(pair.gateway.engine.counters().flows_moved_busy, 0);
}

/// The queue before the engine holds packets for longer than a silence lasts.
#[test]
fn a_silence_is_none_while_packets_wait_before_the_engine() {
    for count in [1, 100] {
        let mut pair = a_batch_of_ripe_sessions(1_000 + count - 1);
        let under_way = pair.udp_out(1_000);
        assert_eq!(pair.path.meets(&under_way, pair.gateway.now), Fate::Passed);
        for _ in 0..9 {
            pair.gateway.now = pair.gateway.now + 50 * MILLISECOND;
            pair.gateway.engine.settle(pair.gateway.now);
        }
        let next = pair.udp_out(1_000);
        assert_eq!(
            pair.path.meets(&next, pair.gateway.now),
            Fate::Passed,
            "it would overtake the one under way"
        );
        pair.decides(&under_way);
        pair.decides(&next);
        pair.gateway.engine.settle(pair.gateway.now);
        pair.rests(60 * MILLISECOND);
        assert_eq!(pair.path.meets(&next, pair.gateway.now), Fate::Forwarded);
    }
}

#[test]
fn who_waits_while_the_queue_is_never_empty_moves_after_half_a_second_without_a_packet() {
    let mut pair = a_batch_of_ripe_sessions(1_499);
    for _ in 0..12 {
        // Its queue is never empty.
        pair.gateway.now = pair.gateway.now + 50 * MILLISECOND;
        pair.gateway.engine.settle(pair.gateway.now);
    }
    let packet = pair.udp_out(1_499);
    assert_eq!(pair.comes(&packet), Fate::Forwarded);
    assert_eq!(pair.gateway.engine.counters().flows_moved_busy, 0);
}

#[test]
fn who_waits_and_had_packets_that_nobody_looked_at_stays_with_the_engine() {
    let mut pair = a_batch_of_ripe_sessions(1_499);
    let ports = pair.path.len();
    for _ in 0..12 {
        // Its queue is never empty: what passes the program has others before it.
        pair.gateway.now = pair.gateway.now + 50 * MILLISECOND;
        let packet = pair.udp_out(1_499);
        assert_eq!(pair.path.meets(&packet, pair.gateway.now), Fate::Passed, "it would overtake others");
        pair.gateway.engine.settle(pair.gateway.now);
    }
    assert!(!pair.row(1_499).offloaded);
    let counters = pair.gateway.engine.counters();
    assert_eq!((pair.path.len(), counters.flows_withdrawn), (ports - 1, 1));
}

#[test]
fn what_the_engine_carries_of_a_flow_keeps_its_entry_from_being_taken_for_idle() {
    let mut pair = pair();
    pair.carried_udp(1_000);
    assert_eq!(pair.path.only().1.touched, None);
    // The programs are idle.
    for _ in 0..4 {
        pair.gateway.waits(100 * SECOND);
        let packet = pair.udp_out(1_000);
        pair.decides(&packet);
    }
    let last = pair.gateway.now;
    pair.gateway.waits(250 * SECOND);
    let touched = pair.path.only().1.touched.unwrap();
    assert!(last.since(touched) <= SECOND, "{touched:?}, {last:?}");
}

#[test]
fn a_packet_that_is_lost_on_its_way_to_the_engine_holds_no_session_up_for_long() {
    let mut pair = pair();
    for _ in 0..PACKETS {
        let packet = pair.udp_out(1_000);
        pair.comes(&packet);
    }
    let lost = pair.udp_out(1_000);
    assert_eq!(pair.path.meets(&lost, pair.gateway.now), Fate::Passed);
    for _ in 0..2 {
        assert!(!pair.path.active()[0]);
        pair.rests(50 * MILLISECOND);
    }
    assert_eq!(pair.path.active(), [true, true]);
    assert_eq!(pair.gateway.engine.counters().flows_moved_busy, 0);
}

#[test]
fn a_half_that_had_a_packet_while_it_waited_moves_by_its_marks() {
    let mut pair = pair_with(1_000, |_| {});
    for port in 1_000..1_100 {
        for _ in 0..PACKETS {
            let packet = pair.udp_out(port);
            pair.comes(&packet);
        }
    }
    let packet = pair.udp_out(1_000);
    assert_eq!(pair.comes(&packet), Fate::Passed);
    // The next one passes the program, and is under way when the wait ends.
    let under_way = pair.udp_out(1_000);
    assert_eq!(pair.path.meets(&under_way, pair.gateway.now), Fate::Passed);
    pair.gateway.now = pair.gateway.now + Duration::from_millis(60);
    pair.gateway.engine.settle(pair.gateway.now);
    let packet = pair.udp_out(1_000);
    assert_eq!(
        pair.path.meets(&packet, pair.gateway.now),
        Fate::Passed,
        "it would overtake the one under way"
    );
}

#[test]
fn a_session_is_not_given_away_early_because_another_moves() {
    let mut pair = pair();
    for port in 1_000..1_065 {
        let packet = pair.udp_out(port);
        pair.comes(&packet);
    }
    for port in (1_000..1_063).step_by(2) {
        for _ in 1..PACKETS {
            let packet = pair.udp_out(port);
            pair.comes(&packet);
        }
    }
    assert_eq!(pair.path.len(), 32);
    for port in 1_000..1_065 {
        let packet = pair.udp_out(port);
        pair.comes(&packet);
    }
    assert_eq!(pair.path.len(), 32);
}

#[test]
fn without_a_fast_path_nothing_is_given_and_what_was_given_comes_back() {
    let mut pair = pair();
    pair.carried_udp(1_000);
    let before = pair.row(1_000);
    pair.gateway.engine.clear_fast_path();
    assert_eq!(pair.path.len(), 0);
    assert_eq!(pair.row(1_000), SessionRow { offloaded: false, ..before });
    for _ in 0..100 {
        let packet = pair.udp_out(1_000);
        assert_eq!(pair.comes(&packet), Fate::Passed);
    }
    assert_eq!(pair.path.table().asked, 1);
}

#[test]
fn a_gso_packet_that_passes_the_threshold_counts_with_its_segments() {
    let mut pair = pair();
    let packet = v6(HOST, SERVER6).udp(1_000, 53, &[7; 900]).octets();
    let segments = sixway_dataplane::Segments { size: 100, kind: sixway_dataplane::SegmentKind::Udp };
    let offload = sixway_dataplane::Offload { segments: Some(segments), transport: 40, ..Default::default() };
    pair.gateway.receives_with(packet, offload);
    assert_eq!(pair.path.len(), 1);
}

#[test]
fn the_owner_of_a_handed_over_packet_gives_its_session_away() {
    let mut nat64 = support::nat64();
    nat64.limits.sessions = 100;
    let engine = |worker| {
        let mut config = sixway_dataplane::engine::EngineConfig {
            worker: sixway_dataplane::WorkerId(worker),
            workers: 2,
            ..Default::default()
        };
        config.nat64.push(nat64.clone());
        sixway_dataplane::engine::Engine::new(&config).unwrap()
    };
    let mut engines = [engine(0), engine(1)];
    let paths = [MemoryFastPath::new(8), MemoryFastPath::new(8)];
    for (engine, path) in engines.iter_mut().zip(&paths) {
        engine.set_fast_path(Box::new(path.clone()), PACKETS);
    }
    let mut out = Outbox::new(64);
    let mut owner = 0;
    let host = (1..).map(|n| format!("2001:db8:{n:x}::1"));
    let is_other =
        |host: &String| engines[0].nat64()[0].ownership().worker_of_inside(host.parse().unwrap()).0 == 1;
    let host = host.into_iter().find(is_other).unwrap();
    for n in 0..PACKETS {
        let mut frame = Frame::holding(&v6(&host, SERVER6).udp(1_000, 53, &n.to_be_bytes()).octets());
        let frames = std::slice::from_mut(&mut frame);
        engines[0].process(frames, Instant::from_secs(1), &mut out);
        if let Verdict::HandOver(worker) = frames[0].verdict {
            owner = usize::from(worker.0);
            engines[owner].take_over(frames, Instant::from_secs(1), &mut out);
        }
    }
    assert_eq!((owner, paths[0].len(), paths[1].len()), (1, 0, 1));
}
