//! What NAT64's state costs: `cargo bench -p sixway-dataplane --bench nat64`.
//!
//! Lookups are those of a batch of 256 packets of established flows in random order, each flow with a binding and a host of
//! its own: probe, warm and decide, without parsing and rewriting.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a benchmark reads the clock")]
#![allow(clippy::unwrap_used, reason = "a benchmark may stop at the first surprise")]
#![allow(missing_docs)]

mod median;

use median::median;
use sixway_dataplane::effects::Effects;
use sixway_dataplane::mechanism::contract::Arrival;
use sixway_dataplane::mechanism::nat64::{Nat64, Nat64Config, Probe};
use sixway_dataplane::nat::{Filtering, NatProtocol, Outside, PoolConfig, Selection};
use sixway_dataplane::nat::{StateLimits, SubscriberPolicy};
use sixway_dataplane::parse::{Addresses, Packet, Transport};
use sixway_dataplane::stateful::Stateful as _;
use sixway_dataplane::translate::address::Rfc6052;
use sixway_dataplane::{Counters, Decision, Edit, Frame, Instant as Moment, PolicyId, WorkerId};
use sixway_wire::protocol::UDP;
use sixway_wire::{Endpoint4, Endpoint6};
use std::hint::black_box;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::OnceLock;
use std::time::Instant;

const BATCH: usize = 256;
const NOW: Moment = Moment::from_secs(1_000);

/// Numbers that look random (splitmix64), the same in every run.
fn scattered(n: u64) -> u64 {
    let mut z = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

fn nat64(sessions: u32, pool: &str, filtering: Filtering) -> Nat64 {
    let config = Nat64Config {
        filtering,
        limits: StateLimits { sessions, bindings: sessions, ..StateLimits::default() },
        subscribers: SubscriberPolicy::new(128),
        ..Nat64Config::new(
            Rfc6052::new("64:ff9b::/96".parse().unwrap(), false).unwrap(),
            PoolConfig { addresses: vec![pool.parse().unwrap()], ports: vec![1_024..=65_535] },
        )
    };
    Nat64::new(&config, PolicyId(0), WorkerId(0), 1, [0x1234, 0x5678])
}

fn inside(flow: u64) -> Endpoint6 {
    let host = 0x2001_0db8_u128 << 96 | u128::from(scattered(flow));
    Endpoint6::new(Ipv6Addr::from_bits(host), 1_024 + (flow % 60_000) as u16)
}

fn remote(flow: u64) -> Endpoint4 {
    Endpoint4::new(Ipv4Addr::from_bits(0x0101_0000 + (scattered(flow) >> 48) as u32), 53)
}

fn packet(addresses: Addresses, source: u16, destination: u16) -> Packet {
    let transport = Transport::Ports { source, destination, tcp_flags: 0 };
    Packet { addresses, protocol: UDP, hops: 64, transport_at: 40, length: 64, transport, ..Packet::EMPTY }
}

fn outbound(flow: u64) -> Packet {
    let (inside, remote) = (inside(flow), remote(flow));
    let destination = Ipv6Addr::from_bits(0x64_ff9b_u128 << 96 | u128::from(remote.address.to_bits()));
    packet(Addresses::V6 { source: inside.address, destination }, inside.port, remote.port)
}

fn inbound(flow: u64, outside: Endpoint4) -> Packet {
    let remote = remote(flow);
    let addresses = Addresses::V4 { source: remote.address, destination: outside.address };
    packet(addresses, remote.port, outside.port)
}

/// The octets of all packets, which are ignored.
static FRAME: OnceLock<Frame> = OnceLock::new();

#[inline(always)]
fn decide(
    nat64: &mut Nat64,
    packet: &Packet,
    probe: &Probe,
    effects: &mut Effects,
) -> Result<Decision, sixway_dataplane::DropReason> {
    nat64.decide(&Arrival::new(FRAME.get_or_init(|| Frame::holding(&[])), packet, None), probe, NOW, effects)
}

/// Opens a session and says which outside endpoint it has.
fn open(nat64: &mut Nat64, packet: &Packet, effects: &mut Effects) -> Endpoint4 {
    let mut probe = Probe::EMPTY;
    nat64.probe(packet, &mut probe);
    nat64.warm(&mut probe);
    source_of(decide(nat64, packet, &probe, effects))
}

fn source_of(outcome: Result<Decision, sixway_dataplane::DropReason>) -> Endpoint4 {
    match outcome {
        Ok(decision) => match decision.action.edit {
            Some(Edit::Translate6To4 { source, .. }) => source,
            Some(Edit::Translate4To6 { .. } | Edit::Renumber4 { .. } | Edit::Renumber6 { .. }) | None => {
                unreachable!()
            }
        },
        other => panic!("{other:?}"),
    }
}

/// The median of the batches, and what a tenth of them were faster than.
struct Spread(f64, f64);

impl Spread {
    fn of(mut times: Vec<f64>) -> Self {
        Self(median(&mut times), times[times.len() / 10])
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:>6.1} ns (a tenth below {:.1})", self.0, self.1)
    }
}

/// Nanoseconds a packet, over batches of packets of random flows.
fn look_ups(nat64: &mut Nat64, batch: usize, make: impl Fn(u64) -> Packet, flows: u64) -> Spread {
    let mut effects = Effects::default();
    let mut probes = vec![Probe::EMPTY; batch];
    let mut times = Vec::new();
    for round in 0..(2_000_000 / batch as u64).min(20_000) {
        let frames: Vec<Packet> =
            (0..batch as u64).map(|n| make(scattered(round * batch as u64 + n) % flows)).collect();
        let start = Instant::now();
        for (packet, probe) in frames.iter().zip(&mut probes) {
            nat64.probe(packet, probe);
        }
        for probe in &mut probes {
            nat64.warm(probe);
        }
        for (packet, probe) in frames.iter().zip(&probes) {
            if let Ok(decision) = decide(nat64, packet, probe, &mut effects) {
                match decision.action.edit {
                    Some(Edit::Translate6To4 { source, destination, .. }) => {
                        let _ = black_box((source, destination));
                    }
                    Some(Edit::Translate4To6 { source, destination, .. }) => {
                        let _ = black_box((source, destination));
                    }
                    Some(Edit::Renumber4 { .. } | Edit::Renumber6 { .. }) | None => unreachable!(),
                }
            }
        }
        times.push(start.elapsed().as_nanos() as f64 / batch as f64);
    }
    assert_eq!(effects.counters.sessions_made, 0, "only established flows are measured");
    Spread::of(times)
}

fn established(flows: u32) {
    let mut nat64 = nat64(flows.max(1_000), "192.0.2.0/27", Filtering::EndpointIndependent);
    let mut effects = Effects::default();
    let endpoints: Vec<Endpoint4> =
        (0..u64::from(flows)).map(|flow| open(&mut nat64, &outbound(flow), &mut effects)).collect();
    let out = look_ups(&mut nat64, BATCH, outbound, flows.into());
    let back = look_ups(&mut nat64, BATCH, |flow| inbound(flow, endpoints[flow as usize]), flows.into());
    let single = look_ups(&mut nat64, 1, outbound, flows.into());
    println!("{flows:>9} sessions: out {out}, in {back} a packet; out in batches of 1 {single}");
}

/// Nanoseconds a new session, in batches.
fn opened(nat64: &mut Nat64, flows: std::ops::Range<u64>, times: &mut Vec<f64>) -> Vec<Endpoint4> {
    let mut effects = Effects::default();
    let mut probes = vec![Probe::EMPTY; BATCH];
    let mut endpoints = Vec::new();
    let flows: Vec<u64> = flows.collect();
    for chunk in flows.chunks(BATCH) {
        let packets: Vec<Packet> = chunk.iter().map(|flow| outbound(*flow)).collect();
        let start = Instant::now();
        for (packet, probe) in packets.iter().zip(&mut probes) {
            nat64.probe(packet, probe);
        }
        for probe in &mut probes[..packets.len()] {
            nat64.warm(probe);
        }
        for (packet, probe) in packets.iter().zip(&probes) {
            endpoints.push(source_of(decide(nat64, packet, probe, &mut effects)));
        }
        times.push(start.elapsed().as_nanos() as f64 / packets.len() as f64);
    }
    endpoints
}

fn new_sessions() {
    let ports = 16 * 64_512u64;
    let mut nat64 = nat64(ports as u32, "192.0.2.0/28", Filtering::EndpointIndependent);
    let (mut first, mut most, mut full) = (Vec::new(), Vec::new(), Vec::new());
    opened(&mut nat64, 0..100_000, &mut first);
    opened(&mut nat64, 100_000..ports * 90 / 100, &mut Vec::new());
    opened(&mut nat64, ports * 90 / 100..ports * 99 / 100, &mut most);
    for round in 0..20 {
        let from = 10_000_000 + round * 8_192;
        for endpoint in opened(&mut nat64, from..from + 8_192, &mut full) {
            nat64.end_binding(NatProtocol::Udp, Outside(endpoint), 1, &mut Counters::default());
        }
    }
    println!("new session, empty pool   {}", Spread::of(first));
    println!("new session, 90 to 99 %   {}", Spread::of(most));
    println!("new session, above 99 %   {}", Spread::of(full));
}

fn memory() {
    for filtering in [Filtering::EndpointIndependent, Filtering::AddressDependent] {
        let mut nat64 = nat64(1_000_000, "192.0.2.0/27", filtering);
        let mut effects = Effects::default();
        for flow in 0..1_000_000 {
            open(&mut nat64, &outbound(flow), &mut effects);
        }
        let each = nat64.memory() as f64 / f64::from(nat64.occupancy().sessions);
        println!("memory: {each:.0} octets a session, binding and host included, {filtering:?}");
        if filtering == Filtering::EndpointIndependent {
            dump(&nat64);
        }
    }
}

fn main() {
    // An argument limits the run to one part: a number of established sessions, "new" or "memory".
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    for flows in [1_000, 100_000, 1_000_000] {
        if wanted(&flows.to_string()) {
            established(flows);
        }
    }
    if wanted("new") {
        new_sessions();
    }
    if wanted("memory") {
        memory();
    }
}

/// What a worker's packets wait for while `show sessions` goes through a million: steps of 512 places, one a batch.
fn dump(nat64: &Nat64) {
    let (mut cursor, mut rows, mut steps) = (Some(0), Vec::new(), Vec::new());
    while let Some(from) = cursor {
        rows.clear();
        let begun = Instant::now();
        cursor = nat64.sessions(from, 512, &Selection::default(), Moment::from_secs(1), &mut rows);
        steps.push(begun.elapsed().as_nanos() as f64 / 1_000.0);
    }
    let (middle, last) = (median(&mut steps), steps[steps.len() - 1]);
    println!(
        "dump of 1000000 sessions: {} steps of 512 places, {middle:.1} µs each, at most {last:.1} µs",
        steps.len()
    );
}
