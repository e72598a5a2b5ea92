//! SYN/ACKs that the fast path forwards: an engine that does not see them has the sessions of one that does.

use crate::support;
use crate::support::fast_path::{Fate, MemoryFastPath, Word};
use crate::support::{v4, v6};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use sixway_dataplane::engine::{Engine, EngineConfig};
use sixway_dataplane::nat::{Inside, NatProtocol, SavedSession, Selection, SessionRow, WantedOutside};
use sixway_dataplane::stateful::Stateful as _;
use sixway_dataplane::{Frame, Instant, Outbox};
use sixway_trial::budget;
use sixway_wire::{Endpoint4, Endpoint6};
use std::time::Duration;

const SYN: u8 = 2;
const SYN_ACK: u8 = 18;
const ACK: u8 = 16;
const FIN_ACK: u8 = 17;
const RST: u8 = 4;
const SERVER: &str = "203.0.113.2";
const SERVER6: &str = "64:ff9b::203.0.113.2";
const OUTSIDE: &str = "192.0.2.1";

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A packet of the client at this port comes.
    Comes { port: u16, outbound: bool, flags: u8 },
    /// Time passes, in seconds.
    Passes(u32),
    /// The sessions are saved, as for another process.
    Saves,
}

fn step() -> impl Strategy<Value = Step> {
    let out = prop_oneof![4 => Just(SYN), 4 => Just(ACK), 1 => Just(FIN_ACK), 1 => Just(RST)];
    let into =
        prop_oneof![5 => Just(SYN_ACK), 3 => Just(ACK), 1 => Just(SYN), 1 => Just(FIN_ACK), 1 => Just(RST)];
    prop_oneof![
        6 => (1u16..4, out).prop_map(|(port, flags)| Step::Comes { port, outbound: true, flags }),
        6 => (1u16..4, into).prop_map(|(port, flags)| Step::Comes { port, outbound: false, flags }),
        1 => (1u32..10).prop_map(Step::Passes),
        1 => (200u32..300).prop_map(Step::Passes),
        1 => (7_000u32..8_000).prop_map(Step::Passes),
        1 => Just(Step::Saves),
    ]
}

/// A gateway: an engine, and the fast path before it.
struct Gateway {
    engine: Engine,
    path: MemoryFastPath,
    answers: u32,
}

impl Gateway {
    /// With room for this number of half-open entries.
    fn new(half_open: usize) -> Self {
        let mut config = EngineConfig { seed: [1, 2], ..EngineConfig::default() };
        let mut nat64 = support::nat64();
        nat64.pool.addresses = vec![format!("{OUTSIDE}/32").parse().unwrap()];
        config.nat64.push(nat64);
        let mut engine = Engine::new(&config).unwrap();
        let path = MemoryFastPath::new(100);
        path.table().most_half_open = half_open;
        engine.set_fast_path(Box::new(path.clone()), 1_024);
        Self { engine, path, answers: 0 }
    }

    fn rows(&mut self, now: Instant) -> Vec<SessionRow> {
        let mut rows = Vec::new();
        self.engine.nat64()[0].sessions(0, u32::MAX, &Selection::default(), now, &mut rows);
        rows.sort_by_key(|row| row.inside);
        // A SYN/ACK that the fast path counts makes no session due for it.
        rows.iter_mut().for_each(|row| row.offloaded = false);
        rows
    }

    /// A packet comes: whether it leaves.
    fn comes(&mut self, packet: &[u8], now: Instant) -> bool {
        if self.path.meets(packet, now) == Fate::Forwarded {
            self.answers += 1;
            return true;
        }
        let mut frames = [Frame::holding(packet)];
        self.engine.process(&mut frames, now, &mut Outbox::new(64));
        self.engine.settle(now);
        frames[0].verdict.leaves()
    }

    fn saved(&mut self, now: Instant) -> Vec<SavedSession> {
        let mut saved = Vec::new();
        self.engine.nat64()[0].export(0, u32::MAX, now, &mut saved);
        saved.sort_by_key(|session| session.inside);
        saved
    }
}

/// Two gateways that get the same packets. One's fast path has half-open entries.
struct Pair {
    gateways: [Gateway; 2],
    now: Instant,
}

impl Pair {
    fn new() -> Self {
        Self { gateways: [Gateway::new(0), Gateway::new(2)], now: Instant::from_secs(1_000) }
    }

    fn packet(&mut self, port: u16, outbound: bool, flags: u8) -> Option<Vec<u8>> {
        if outbound {
            return Some(v6("2001:db8:1::1", SERVER6).tcp(port, 80, flags, &[]).octets());
        }
        let rows = self.gateways[0].rows(self.now);
        let inside = rows.iter().find(|row| row.inside.is_some_and(|inside| inside.0.port == port))?;
        Some(v4(SERVER, OUTSIDE).tcp(80, inside.outside.0.port, flags, &[]).octets())
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Comes { port, outbound, flags } => {
                let Some(packet) = self.packet(port, outbound, flags) else { return };
                let now = self.now;
                let [one, other] = self.gateways.each_mut().map(|gateway| gateway.comes(&packet, now));
                assert_eq!(one, other, "whether it leaves");
            }
            Step::Passes(seconds) => {
                self.now = self.now + Duration::from_secs(seconds.into());
                let now = self.now;
                for gateway in &mut self.gateways {
                    gateway.engine.tick(now, &mut Outbox::new(64));
                }
            }
            Step::Saves => {
                let now = self.now;
                let [one, other] = self.gateways.each_mut().map(|gateway| gateway.saved(now));
                assert_eq!(one, other);
                assert_eq!(self.gateways[1].path.len(), 0, "another process has none of them");
            }
        }
        let now = self.now;
        let [one, other] = self.gateways.each_mut().map(|gateway| gateway.rows(now));
        assert_eq!(one, other);
        let counts = self.gateways.each_ref().map(|gateway| {
            let counters = gateway.engine.counters();
            (
                counters.sessions_made,
                counters.sessions_ended,
                counters.bindings_made,
                counters.flows_withdrawn,
            )
        });
        assert_eq!(counts[0], counts[1]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(budget(600)))]

    #[test]
    fn sessions_are_those_of_an_engine_that_sees_the_syn_ack(steps in prop::collection::vec(step(), 1..60)) {
        let mut pair = Pair::new();
        for step in steps {
            pair.step(step);
        }
        prop_assert_eq!(pair.gateways[0].answers, 0);
    }
}

#[test]
fn the_steps_reach_half_open_entries() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut answers = 0;
    for _ in 0..100 {
        let mut pair = Pair::new();
        for step in prop::collection::vec(step(), 60).new_tree(&mut runner).unwrap().current() {
            pair.step(step);
        }
        answers += pair.gateways[1].answers;
    }
    assert!(answers > 60, "{answers}");
}

/// A connection opens, without its SYN/ACK at the engine.
fn opened() -> Pair {
    let mut pair = Pair::new();
    for (outbound, flags) in [(true, SYN), (false, SYN_ACK), (true, ACK)] {
        pair.step(Step::Comes { port: 1, outbound, flags });
    }
    assert_eq!(pair.gateways[1].answers, 1);
    pair
}

/// With TCP packets in one direction, until the session has an entry of both halves. `false`: it gets none.
fn is_offloaded(pair: &mut Pair, outbound: bool) -> bool {
    for _ in 0..=2_048 {
        pair.step(Step::Comes { port: 1, outbound, flags: ACK });
    }
    pair.gateways[1].path.len() == 1
}

#[test]
fn an_opened_connection_has_no_entry_until_it_is_offloaded() {
    let mut pair = opened();
    assert_eq!(pair.gateways[1].path.len(), 0);
    assert!(is_offloaded(&mut pair, false));
    let (_, entry) = pair.gateways[1].path.only();
    // The packet that armed it was sent.
    assert!(matches!(entry.words, [Word::Armed(0), Word::Active]), "{:?}", entry.words);
    assert_eq!(pair.gateways[1].engine.counters().flows_offloaded, 1);
}

/// The host's packet filter may drop what comes from this server: whatever the inside host does, the filter has to pass a packet of it first.
#[test]
fn a_connection_is_not_offloaded_before_a_packet_from_outside_has_come_to_the_engine() {
    let out = |flags| Step::Comes { port: 1, outbound: true, flags };
    for more in [vec![], vec![out(SYN)], vec![out(RST), out(ACK)], vec![Step::Saves]] {
        let mut pair = opened();
        for step in more {
            pair.step(step);
        }
        assert!(!is_offloaded(&mut pair, true));
        pair.step(Step::Comes { port: 1, outbound: false, flags: ACK });
        assert!(is_offloaded(&mut pair, true));
    }
}

#[test]
fn a_session_that_was_restored_is_not_offloaded_before_a_packet_from_outside_has_come() {
    let mut pair = opened();
    let now = pair.now;
    let saved = pair.gateways[1].saved(now);
    assert_eq!((saved.len(), saved[0].packets), (1, [2, 1]));
    pair.gateways = [Gateway::new(0), Gateway::new(2)];
    for gateway in &mut pair.gateways {
        let (nat64, counters) = gateway.engine.nat64_and_counters();
        nat64[0].restore(&saved[0], now, counters).unwrap();
    }
    assert!(!is_offloaded(&mut pair, true));
    pair.step(Step::Comes { port: 1, outbound: false, flags: ACK });
    assert!(is_offloaded(&mut pair, true));
}

#[test]
fn an_entry_without_an_answer_is_withdrawn_after_some_seconds_if_others_open() {
    let mut pair = Pair::new();
    let syn = |port| Step::Comes { port, outbound: true, flags: SYN };
    pair.step(syn(1));
    pair.step(syn(2));
    pair.step(syn(3));
    assert_eq!(pair.gateways[1].path.len(), 2, "it has room for two");
    pair.step(Step::Passes(3));
    pair.step(syn(3));
    pair.step(Step::Comes { port: 3, outbound: false, flags: SYN_ACK });
    assert_eq!(pair.gateways[1].answers, 0, "the first two wait still");
    // Without a tick.
    pair.now = pair.now + Duration::from_secs(1);
    pair.step(syn(4));
    assert_eq!(pair.gateways[1].path.only().1.flow.inside.0.port, 4);
    pair.step(Step::Comes { port: 4, outbound: false, flags: SYN_ACK });
    assert_eq!(pair.gateways[1].answers, 1);
    pair.step(Step::Comes { port: 1, outbound: false, flags: SYN_ACK });
    assert_eq!(pair.gateways[1].answers, 1, "by the engine");
}

#[test]
fn an_entry_without_an_answer_is_withdrawn_if_nothing_comes() {
    let mut pair = Pair::new();
    pair.step(Step::Comes { port: 1, outbound: true, flags: SYN });
    pair.step(Step::Passes(3));
    assert_eq!(pair.gateways[1].path.len(), 1);
    pair.step(Step::Passes(1));
    assert_eq!(pair.gateways[1].path.len(), 0, "another worker may have use for its room");
    pair.step(Step::Comes { port: 1, outbound: false, flags: SYN_ACK });
}

#[test]
fn an_offloaded_flow_with_the_handle_of_its_half_open_entry_stays() {
    let mut pair = opened();
    pair.gateways[1].path.reuses_handle();
    assert!(is_offloaded(&mut pair, false));
    pair.step(Step::Passes(10));
    assert_eq!(pair.gateways[1].path.len(), 1);
    assert_eq!(pair.gateways[1].engine.counters().flows_offloaded, 1);
    pair.step(Step::Comes { port: 2, outbound: true, flags: SYN });
    assert_eq!(pair.gateways[1].path.len(), 2);
}

#[test]
fn a_request_for_a_session_says_how_long_an_answered_one_lives() {
    let mut pair = Pair::new();
    pair.step(Step::Comes { port: 1, outbound: true, flags: SYN });
    pair.step(Step::Comes { port: 1, outbound: false, flags: SYN_ACK });
    let (inside, remote) =
        (Endpoint6::new("2001:db8:1::1".parse().unwrap(), 1), Endpoint4::new(SERVER.parse().unwrap(), 80));
    let now = pair.now;
    let lives = pair.gateways.each_mut().map(|gateway| {
        let wanted = WantedOutside { address: None, port: 0, exactly: false };
        let (translator, counters) = gateway.engine.stateful_at(0).unwrap();
        let named = Inside(inside).into();
        translator.open_by_request((NatProtocol::Tcp, named, remote), wanted, now, counters).unwrap().1
    });
    assert_eq!(lives, [7_440; 2]);
}

/// A packet of the session comes so seldom that the entry is the only one that knows of the answer.
#[test]
fn an_answered_session_lives_as_an_established_one() {
    let mut pair = Pair::new();
    pair.step(Step::Comes { port: 1, outbound: true, flags: SYN });
    pair.step(Step::Passes(2));
    pair.step(Step::Comes { port: 1, outbound: false, flags: SYN_ACK });
    assert_eq!(pair.gateways[1].answers, 1);
    pair.step(Step::Passes(7_200));
    assert_eq!(pair.gateways[1].rows(pair.now).len(), 1);
    assert_eq!(pair.gateways[1].path.len(), 0);
}

#[test]
fn an_unanswered_syn_keeps_its_entry_no_longer_than_its_session() {
    let mut pair = Pair::new();
    pair.step(Step::Comes { port: 1, outbound: true, flags: SYN });
    pair.step(Step::Passes(200));
    assert_eq!(pair.gateways[1].path.len(), 0);
    pair.step(Step::Comes { port: 1, outbound: true, flags: SYN });
    assert_eq!(pair.gateways[1].path.len(), 1, "it waits once more");
    let now = pair.now;
    let [one, other] = pair.gateways.each_mut().map(|gateway| {
        let (nat64, counters) = gateway.engine.nat64_and_counters();
        let mut rows = Vec::new();
        nat64[0].sessions(0, u32::MAX, &Selection::default(), now, &mut rows);
        let row = &rows[0];
        nat64[0].end_session(row.protocol, row.inside.unwrap().into(), row.remote, counters)
    });
    assert!(one && other);
    assert_eq!(pair.gateways[1].path.len(), 0);
}

#[test]
fn a_control_connection_of_ftp_has_no_half_open_entry() {
    let mut config = EngineConfig { seed: [1, 2], ..EngineConfig::default() };
    let mut nat64 = support::nat64();
    nat64.ftp_alg = true;
    config.nat64.push(nat64);
    let mut engine = Engine::new(&config).unwrap();
    let path = MemoryFastPath::new(100);
    path.table().most_half_open = 100;
    engine.set_fast_path(Box::new(path.clone()), 8);
    for (port, entries) in [(21, 0), (80, 1)] {
        let syn = v6("2001:db8:1::1", SERVER6).tcp(1_000, port, SYN, &[]).octets();
        engine.process(&mut [Frame::holding(&syn)], Instant::from_secs(1_000), &mut Outbox::new(8));
        engine.settle(Instant::from_secs(1_000));
        assert_eq!(path.len(), entries, "port {port}");
    }
}

/// A batch of SYNs from these ports of an inside host, decided on by an engine with room for a hundred half-open entries.
fn decided_on(ports: std::ops::Range<u16>) -> Gateway {
    let mut gateway = Gateway::new(100);
    let syn = |port| v6("2001:db8:1::1", SERVER6).tcp(port, 80, SYN, &[]).octets();
    let mut frames: Vec<_> = ports.map(|port| Frame::holding(&syn(port))).collect();
    gateway.engine.process(&mut frames, Instant::from_secs(1_000), &mut Outbox::new(8));
    assert!(frames.iter().all(|frame| frame.verdict.leaves()));
    gateway
}

/// The entry takes longer than the translation, and the SYN/ACK cannot come before the SYN has left.
#[test]
fn an_only_syn_is_sent_before_its_entry_is_made() {
    let now = Instant::from_secs(1_000);
    let mut gateway = decided_on(1_000..1_001);
    assert_eq!(gateway.path.len(), 0);
    for _ in 0..2 {
        gateway.engine.settle(now);
        assert_eq!(gateway.path.len(), 1);
    }
}

/// Sending a batch takes long enough for an answer to the first SYN.
#[test]
fn of_several_syns_all_but_the_last_have_their_entries_before_they_are_sent() {
    let mut gateway = decided_on(1_000..1_070);
    assert_eq!(gateway.path.len(), 69);
    gateway.engine.settle(Instant::from_secs(1_000));
    assert_eq!(gateway.path.len(), 70);
}

/// Otherwise an entry would be left that belongs to no session.
#[test]
fn two_syns_of_a_session_in_a_batch_make_one_entry() {
    let now = Instant::from_secs(1_000);
    let mut gateway = decided_on(1_000..1_001);
    for _ in 0..2 {
        let syn = v6("2001:db8:1::1", SERVER6).tcp(1_000, 80, SYN, &[]).octets();
        gateway.engine.process(&mut [Frame::holding(&syn)], now, &mut Outbox::new(8));
    }
    gateway.engine.settle(now);
    assert_eq!(gateway.path.len(), 1);
    gateway.saved(now);
    assert_eq!(gateway.path.len(), 0, "it is the session's");
}

#[test]
fn a_host_that_closes_its_connection_in_the_batch_of_its_syn_has_no_half_open_entry() {
    for flags in [RST, FIN_ACK] {
        let now = Instant::from_secs(1_000);
        let mut gateway = decided_on(1_000..1_001);
        let end = v6("2001:db8:1::1", SERVER6).tcp(1_000, 80, flags, &[]).octets();
        gateway.engine.process(&mut [Frame::holding(&end)], now, &mut Outbox::new(8));
        gateway.engine.settle(now);
        assert_eq!(gateway.path.len(), 0, "{flags}");
    }
}

#[test]
fn a_session_that_is_ended_before_its_entry_is_made_has_none() {
    let now = Instant::from_secs(1_000);
    let mut gateway = decided_on(1_000..1_001);
    let SessionRow { protocol, inside, remote, .. } = gateway.rows(now)[0];
    let (nat64, counters) = gateway.engine.nat64_and_counters();
    assert!(nat64[0].end_session(protocol, inside.unwrap().into(), remote, counters));
    gateway.engine.settle(now);
    assert_eq!(gateway.path.len(), 0);
}

#[test]
fn a_session_whose_syn_ack_came_in_the_same_batch_has_no_half_open_entry() {
    let now = Instant::from_secs(1_000);
    let mut gateway = decided_on(1_000..1_001);
    let port = gateway.rows(now)[0].outside.0.port;
    let syn_ack = v4(SERVER, OUTSIDE).tcp(80, port, SYN_ACK, &[]).octets();
    gateway.engine.process(&mut [Frame::holding(&syn_ack)], now, &mut Outbox::new(8));
    gateway.engine.settle(now);
    assert_eq!(gateway.path.len(), 0);
}
