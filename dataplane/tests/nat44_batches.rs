//! Packets of one new flow in one batch: all of them are looked up before the first one makes the session.

use crate::support;
use crate::support::v4;
use sixway_dataplane::engine::{Engine, EngineConfig};
use sixway_dataplane::mechanism::nat44::Nat44Config;
use sixway_dataplane::nat::PoolConfig;
use sixway_dataplane::{Frame, Instant, Offload, Outbox, Verdict};

const HOST: &str = "10.0.0.1";
const SERVER: &str = "203.0.113.1";
const OUTSIDE: &str = "192.0.2.1";
const SYN: u8 = 2;

/// An engine whose pool has one port.
fn engine() -> Engine {
    let pool = PoolConfig { addresses: vec!["192.0.2.1/32".parse().unwrap()], ports: vec![5_000..=5_000] };
    let nat44 = Nat44Config { pool, ..support::nat44() };
    Engine::new(&EngineConfig { nat44: vec![nat44], ..EngineConfig::default() }).unwrap()
}

/// One batch; the verdicts.
fn batch(engine: &mut Engine, packets: &[Vec<u8>], second: u64) -> Vec<Verdict> {
    let mut frames: Vec<Frame> = packets
        .iter()
        .map(|octets| {
            let mut frame = Frame::with_capacity(2_048);
            frame.fill(octets, Offload::default());
            frame
        })
        .collect();
    engine.process(&mut frames, Instant::from_secs(second), &mut Outbox::new(16));
    frames.iter().map(|frame| frame.verdict).collect()
}

#[test]
fn a_flow_whose_first_packets_come_together_has_one_session() {
    let mut engine = engine();
    let packet = v4(HOST, SERVER).udp(4_001, 53, b"question").octets();
    let verdicts = batch(&mut engine, &[packet.clone(), packet.clone(), packet], 1_000);
    assert_eq!(verdicts, [Verdict::Forward; 3]);
    assert_eq!(engine.counters().sessions_made, 1);
}

#[test]
fn a_stranger_whose_first_packets_come_together_has_one_session() {
    let mut engine = engine();
    batch(&mut engine, &[v4(HOST, SERVER).udp(4_001, 53, b"question").octets()], 1_000);
    let packet = v4("203.0.113.9", OUTSIDE).udp(7, 5_000, b"hello").octets();
    assert_eq!(batch(&mut engine, &[packet.clone(), packet.clone(), packet], 1_001), [Verdict::Forward; 3]);
    assert_eq!(engine.counters().sessions_made, 2);
}

#[test]
fn a_stored_syn_that_is_answered_twice_in_a_batch_has_one_session() {
    let mut engine = engine();
    let stored = batch(&mut engine, &[v4(SERVER, OUTSIDE).tcp(443, 5_000, SYN, b"").octets()], 1_000);
    assert_eq!(stored, [Verdict::Held]);
    let answer = v4(HOST, SERVER).tcp(4_001, 443, SYN, b"").octets();
    assert_eq!(batch(&mut engine, &[answer.clone(), answer], 1_001), [Verdict::Forward; 2]);
    assert_eq!(engine.counters().sessions_made, 1);
}
