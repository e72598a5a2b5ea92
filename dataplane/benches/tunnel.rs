//! Nanoseconds a packet, from parsing to the finished packet: into a configured tunnel and out of it, joining included.
//!
//! `cargo bench -p sixway-dataplane --bench tunnel`; ONLY=encap measures what has that in its name.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark reads the clock"
)]

mod median;

use median::median;
use sixway_dataplane::engine::{Engine, EngineConfig, TunnelConfig};
use sixway_dataplane::frame::MAX_PACKET;
use sixway_dataplane::mechanism::configured::ConfiguredConfig;
use sixway_dataplane::tunnel::{TunnelMtu, TunnelPolicy};
use sixway_dataplane::{Frame, Instant, Offload, Outbox};
use sixway_wire::tcp::ACK;
use sixway_wire::{Ipv4Header, Ipv6Header, TcpHeader, UdpHeader, protocol};
use std::net::{Ipv4Addr, Ipv6Addr};

const LOCAL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);
const REMOTE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
const NEAR6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
const FAR6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 7, 0, 0, 0, 0, 1);
const FRAMES: usize = 256;

/// An IPv6 packet from behind the tunnel to here, or from here: 16 octets of data between ports of their own.
fn udp(inward: bool, number: usize) -> Vec<u8> {
    let (source, destination) = if inward { (FAR6, NEAR6) } else { (NEAR6, FAR6) };
    let udp = UdpHeader::new(1_024 + number as u16, 53, 16).with_checksum6(source, destination, &[7; 16]);
    let header = Ipv6Header::new(source, destination, protocol::UDP, 24);
    [&header.octets()[..], &udp.octets(), &[7; 16]].concat()
}

/// The next 1,400 octets of one connection.
fn tcp(number: usize) -> Vec<u8> {
    let sequence = 1_400 * number as u32;
    let tcp = TcpHeader { sequence, acknowledgment: 1, window: 512, ..TcpHeader::new(80, 4_096, ACK) };
    let tcp = tcp.with_checksum6(FAR6, NEAR6, &[7; 1_400]);
    let header = Ipv6Header::new(FAR6, NEAR6, protocol::TCP, 1_420);
    [&header.octets()[..], &tcp.octets(), &[7; 1_400]].concat()
}

fn wrapped(inner: &[u8]) -> Vec<u8> {
    let outer = Ipv4Header::new(REMOTE, LOCAL, protocol::IPV6, inner.len());
    [&Ipv4Header { dont_fragment: false, ..outer }.octets()[..], inner].concat()
}

fn engine(join: bool, mtu: TunnelMtu) -> Engine {
    let tunnel = ConfiguredConfig {
        local: LOCAL,
        remote: Some(REMOTE),
        prefixes: vec!["2001:db8:7::/48".parse().unwrap()],
        policy: TunnelPolicy { mtu, ..TunnelPolicy::default() },
        strict_sources: true,
    };
    let tunnels = vec![TunnelConfig::Configured(tunnel)];
    Engine::new(&EngineConfig { tunnels, join, ..EngineConfig::default() }).unwrap()
}

/// The median of seven runs.
fn measure(engine: &mut Engine, packets: &[Vec<u8>], batch: usize, capacity: usize) -> f64 {
    let mut frames: Vec<Frame> = (0..FRAMES).map(|_| Frame::with_capacity(capacity)).collect();
    let mut out = Outbox::new(64);
    let rounds = std::env::var("PACKETS").map_or(1_000_000, |text| text.parse().unwrap()) / FRAMES;
    let mut runs = [0.0; 7];
    for run in &mut runs {
        let mut spent = 0;
        for _ in 0..rounds {
            for (frame, packet) in frames.iter_mut().zip(packets.iter().cycle()) {
                frame.fill(packet, Offload::default());
            }
            let start = std::time::Instant::now();
            for some in frames.chunks_mut(batch) {
                engine.process(some, Instant(1), &mut out);
            }
            spent += start.elapsed().as_nanos();
        }
        *run = spent as f64 / (rounds * FRAMES) as f64;
    }
    assert_eq!(engine.counters().dropped_total(), 0);
    median(&mut runs)
}

fn main() {
    let out: Vec<_> = (0..FRAMES).map(|number| udp(false, number)).collect();
    let small: Vec<_> = (0..FRAMES).map(|number| wrapped(&udp(true, number))).collect();
    let same: Vec<_> = (0..FRAMES).map(|_| wrapped(&udp(true, 0))).collect();
    let bulk: Vec<_> = (0..FRAMES).map(|number| wrapped(&tcp(number))).collect();
    let fixed = TunnelMtu::Static(1_280);
    let only = std::env::var("ONLY").unwrap_or_default();
    for (name, join, mtu, packets, capacity) in [
        ("encap", true, fixed, &out, 2_048),
        ("encap, dynamic MTU", true, TunnelMtu::Dynamic, &out, 2_048),
        ("decap, nothing joined", false, fixed, &small, 2_048),
        ("decap, nothing to be joined", true, fixed, &small, 2_048),
        ("decap, datagrams of 16 octets joined", true, fixed, &same, 8_000),
        ("decap of 1,400 octets of TCP", false, fixed, &bulk, MAX_PACKET),
        ("decap of 1,400 octets of TCP, joined", true, fixed, &bulk, MAX_PACKET),
    ] {
        for batch in [256, 1].into_iter().filter(|_| name.contains(&only)) {
            let spent = measure(&mut engine(join, mtu), packets, batch, capacity);
            println!("batch {batch:>3}: {name:<38} {spent:6.1} ns");
        }
    }
}
