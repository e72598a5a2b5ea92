//! Nanoseconds a packet, from parsing to the finished packet: stateless translation both ways, medians of seven runs.
//!
//! `cargo bench -p sixway-dataplane --bench path`
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark reads the clock"
)]

mod median;

use median::median;
use sixway_dataplane::engine::{Engine, EngineConfig};
use sixway_dataplane::mechanism::siit::SiitConfig;
use sixway_dataplane::translate::address::eam::EamTable;
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use sixway_dataplane::{Frame, Instant, Offload, Outbox};
use std::sync::Arc;

fn udp6() -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 24, 17, 64];
    packet.extend("2001:db8:1::1".parse::<std::net::Ipv6Addr>().unwrap().octets());
    packet.extend("2001:db8:64::cb00:7102".parse::<std::net::Ipv6Addr>().unwrap().octets());
    packet.extend([0x0f, 0xa0, 0, 53, 0, 24, 0x12, 0x34]);
    packet.extend([0; 16]);
    packet
}

fn main() {
    let mut config = EngineConfig::default();
    let eam =
        EamTable::new([("198.51.100.8/29".parse().unwrap(), "2001:db8:1::/125".parse().unwrap())]).unwrap();
    config.siit.push(SiitConfig {
        prefix: Some(Rfc6052::new("2001:db8:64::/96".parse().unwrap(), false).unwrap()),
        eam: Arc::new(eam),
        ..SiitConfig::default()
    });
    let mut engine = Engine::new(&config).unwrap();
    let mut out = Outbox::new(64);
    let tick = std::env::var_os("TICK").is_some();
    let packet = udp6();
    let only = std::env::var("BATCH").ok().and_then(|text| text.parse().ok());
    for batch in only.map_or(vec![256, 1], |batch| vec![batch]) {
        let mut frames: Vec<Frame> = (0..256).map(|_| Frame::with_capacity(2_048)).collect();
        let packets = std::env::var("PACKETS").map_or(2_000_000, |text| text.parse().unwrap());
        let rounds = packets / 256;
        let mut runs = [[0.0; 2]; 7];
        for run in &mut runs {
            let mut spent = [0u128; 2];
            for _ in 0..rounds {
                for frame in &mut frames {
                    frame.fill(&packet, Offload::default());
                }
                let t = std::time::Instant::now();
                for some in frames.chunks_mut(batch) {
                    engine.process(some, Instant(1), &mut out);
                    if tick {
                        engine.tick(Instant(1), &mut out);
                    }
                }
                spent[0] += t.elapsed().as_nanos();
                for frame in &mut frames {
                    // The answer: the same packet back, by exchanging the addresses (the checksums do not change).
                    let octets = frame.bytes_mut();
                    for at in 12..16 {
                        octets.swap(at, at + 4);
                    }
                }
                let t = std::time::Instant::now();
                for some in frames.chunks_mut(batch) {
                    engine.process(some, Instant(1), &mut out);
                    if tick {
                        engine.tick(Instant(1), &mut out);
                    }
                }
                spent[1] += t.elapsed().as_nanos();
            }
            for direction in 0..2 {
                run[direction] = spent[direction] as f64 / (rounds * 256) as f64;
            }
        }
        let [out, back] = [0, 1].map(|direction| median(&mut runs.map(|run| run[direction])));
        println!("batch {batch:>3}: v6 to v4 {out:.1} ns, v4 to v6 {back:.1} ns");
    }
    assert!(engine.counters().dropped_total() == 0);
}
