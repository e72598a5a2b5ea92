//! The cases: an engine, the packets that it is given, and what each becomes.

use crate::packets::{in_ipv4, in_ipv6, in_udp4, udp4, udp6};
use sixway_dataplane::engine::{Engine, EngineConfig, TunnelConfig};
use sixway_dataplane::mechanism::b4::B4Config;
use sixway_dataplane::mechanism::configured::ConfiguredConfig;
use sixway_dataplane::mechanism::ds_lite::DsLiteConfig;
use sixway_dataplane::mechanism::four_over_six::{Binding, ConcentratorConfig, FourOverSixConfig, Role};
use sixway_dataplane::mechanism::nat44::Nat44Config;
use sixway_dataplane::mechanism::nat46::{MappingSettings, Mappings, Nat46Config, Sharing};
use sixway_dataplane::mechanism::nat64::Nat64Config;
use sixway_dataplane::mechanism::siit::SiitConfig;
use sixway_dataplane::mechanism::teredo::{RelayConfig, TeredoChange, TeredoConfig, TeredoRole};
use sixway_dataplane::nat::PoolConfig;
use sixway_dataplane::nat::{StateLimits, SubscriberPolicy};
use sixway_dataplane::translate::Policy;
use sixway_dataplane::translate::address::eam::EamTable;
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use sixway_dataplane::tunnel::{TunnelMtu, TunnelPolicy};
use sixway_dataplane::{Frame, Instant, Offload, Outbox};
use sixway_wire::teredo::{TEREDO_PORT, TeredoAddress, TeredoInterface, bubble};
use sixway_wire::{Endpoint4, Prefix4};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// The names of the cases whose instructions are counted.
pub const COUNTED: [&str; 21] = [
    "siit-6to4",
    "siit-4to6",
    "nat64-6to4",
    "nat64-4to6",
    "nat64-new",
    "nat44-out",
    "nat44-in",
    "nat44-new",
    "nat44-scan",
    "6in4-encap",
    "6in4-decap",
    "teredo-encap",
    "teredo-decap",
    "aftr-out",
    "aftr-in",
    "b4-encap",
    "b4-decap",
    "4over6-encap",
    "4over6-decap",
    "nat46-4to6",
    "nat46-6to4",
];
/// The names of those that only take time: they execute the same instructions and wait for memory.
pub const TIMED: [&str; 12] = [
    "nat64-6to4-100k",
    "nat64-4to6-100k",
    "nat64-6to4-1M",
    "nat64-4to6-1M",
    "nat44-out-100k",
    "nat44-in-100k",
    "nat44-out-1M",
    "nat44-in-1M",
    "aftr-out-100k",
    "aftr-in-100k",
    "aftr-out-1M",
    "aftr-in-1M",
];

/// Flows of the case in which every packet opens a session.
const NEW: u32 = 102_400;
/// Flows of one inside host, where there are many.
const PER_HOST: u32 = 16;
const FLOWS: u32 = 1_000;
const HOSTS4: u32 = u32::from_be_bytes([10, 0, 0, 0]);
const HOSTS6: u128 = 0x2001_0db8_0001 << 80;
const SIIT_PREFIX: u128 = 0x2001_0db8_0064 << 80;
const NAT64_PREFIX: u128 = 0x0064_ff9b << 96;
const AFTR: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 1);
const B4: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 0xb4);
const NAT46_PREFIX: u128 = 0x2001_0db8_0046 << 80;
const LOCAL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);
const REMOTE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
/// An address of the pool that no host has.
const UNMAPPED: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 255);
const BEHIND_TUNNEL: u128 = 0x2001_0db8_0007 << 80;

/// One case.
pub struct Case {
    /// The engine.
    pub engine: Engine,
    /// One packet for each flow.
    pub packets: Vec<Vec<u8>>,
    /// Octets of what each packet becomes; `None`: it is dropped.
    pub length: Option<usize>,
    /// Packets that are sent before anything is counted.
    pub warming: usize,
}

impl Case {
    /// The case of that name.
    pub fn named(name: &str) -> Option<Self> {
        let flows = 0..FLOWS;
        let warming = 2 * 1_024;
        if name == "nat44-scan" {
            let (engine, _) = opened(nat44(2 * FLOWS), nat44_packets(FLOWS));
            let packets = flows.map(|flow| udp4(server4(flow), (UNMAPPED, port(flow)))).collect();
            return Some(Self { engine, packets, length: None, warming });
        }
        let (engine, packets, length): (_, Vec<_>, _) = match name {
            "siit-6to4" => {
                (siit(), flows.map(|flow| udp6(host6(flow), server6(SIIT_PREFIX, flow))).collect(), 44)
            }
            "siit-4to6" => (siit(), flows.map(|flow| udp4(server4(flow), host4(flow))).collect(), 64),
            "nat64-6to4" => nat64_out(FLOWS),
            "nat64-6to4-100k" => nat64_out(100_000),
            "nat64-6to4-1M" => nat64_out(1_000_000),
            "nat64-4to6" => nat64_back(FLOWS),
            "nat64-4to6-100k" => nat64_back(100_000),
            "nat64-4to6-1M" => nat64_back(1_000_000),
            "nat64-new" => (nat64(NEW), nat64_packets(NEW), 44),
            "nat44-out" => nat44_out(FLOWS),
            "nat44-out-100k" => nat44_out(100_000),
            "nat44-out-1M" => nat44_out(1_000_000),
            "nat44-in" => nat44_in(FLOWS),
            "nat44-in-100k" => nat44_in(100_000),
            "nat44-in-1M" => nat44_in(1_000_000),
            "aftr-out" => aftr_out(FLOWS),
            "aftr-out-100k" => aftr_out(100_000),
            "aftr-out-1M" => aftr_out(1_000_000),
            "aftr-in" => aftr_in(FLOWS),
            "aftr-in-100k" => aftr_in(100_000),
            "aftr-in-1M" => aftr_in(1_000_000),
            "nat44-new" => (nat44(NEW), nat44_packets(NEW), 44),
            "6in4-encap" => (tunnel(), flows.map(|flow| udp6(host6(flow), far(flow))).collect(), 84),
            "6in4-decap" => {
                let wrap = |flow| in_ipv4(&udp6(far(flow), host6(flow)), REMOTE, LOCAL);
                (tunnel(), flows.map(wrap).collect(), 64)
            }
            "teredo-encap" => {
                (relay(), flows.map(|flow| udp6(host6(flow), (client(flow).address(), 53))).collect(), 92)
            }
            "teredo-decap" => {
                let from = |flow| (client(flow).mapped().address, client(flow).mapped().port);
                let inner = |flow| udp6((client(flow).address(), 53), host6(flow));
                let wrap = |flow| in_udp4(&inner(flow), from(flow), (LOCAL, TEREDO_PORT));
                (relay(), flows.map(wrap).collect(), 64)
            }
            "b4-encap" => (b4(), flows.map(|flow| udp4(host4(flow), server4(flow))).collect(), 84),
            "b4-decap" => {
                let wrap = |flow| in_ipv6(&udp4(server4(flow), host4(flow)), AFTR, B4);
                (b4(), flows.map(wrap).collect(), 44)
            }
            "4over6-encap" => {
                (four_over_six(), flows.map(|flow| udp4(server4(flow), host4(flow))).collect(), 84)
            }
            "4over6-decap" => {
                let wrap = |flow| in_ipv6(&udp4(host4(flow), server4(flow)), host6(flow).0, AFTR);
                (four_over_six(), flows.map(wrap).collect(), 44)
            }
            "nat46-4to6" => {
                let (engine, addresses) = nat46();
                let towards = |flow| towards46(&addresses, flow);
                (engine, flows.map(towards).collect(), 64)
            }
            "nat46-6to4" => {
                let image = |flow| {
                    (Ipv6Addr::from_bits(NAT46_PREFIX | u128::from(client46(flow).0.to_bits())), port(flow))
                };
                let back = |flow| udp6((host6(flow).0, 53), image(flow));
                let (mut engine, addresses) = nat46();
                flows.clone().for_each(|flow| used46(&mut engine, &towards46(&addresses, flow)));
                (engine, flows.map(back).collect(), 44)
            }
            _ => return None,
        };
        Some(Self { engine, packets, length: Some(length), warming })
    }
}

/// A client of the NAT46, with sixteen servers.
fn client46(flow: u32) -> (Ipv4Addr, u16) {
    (host4(flow / PER_HOST).0, port(flow))
}

fn port(flow: u32) -> u16 {
    1_024 + (flow.wrapping_mul(40_503) % 64_000) as u16
}

fn host6(flow: u32) -> (Ipv6Addr, u16) {
    (Ipv6Addr::from_bits(HOSTS6 | u128::from(flow)), port(flow))
}

fn host4(flow: u32) -> (Ipv4Addr, u16) {
    (Ipv4Addr::from_bits(HOSTS4 | flow), port(flow))
}

fn server4(flow: u32) -> (Ipv4Addr, u16) {
    (Ipv4Addr::from_bits(u32::from_be_bytes([203, 0, 113, 0]) | (flow % 251)), 53)
}

fn server6(prefix: u128, flow: u32) -> (Ipv6Addr, u16) {
    (Ipv6Addr::from_bits(prefix | u128::from(server4(flow).0.to_bits())), 53)
}

fn far(flow: u32) -> (Ipv6Addr, u16) {
    (Ipv6Addr::from_bits(BEHIND_TUNNEL | u128::from(flow)), 53)
}

fn rfc6052(prefix: u128, allow_private: bool) -> Rfc6052 {
    Rfc6052::new(format!("{}/96", Ipv6Addr::from_bits(prefix)).parse().unwrap(), allow_private).unwrap()
}

/// The host by an explicit mapping, the server under a prefix.
fn siit() -> Engine {
    let inside4 = format!("{}/20", Ipv4Addr::from_bits(HOSTS4)).parse().unwrap();
    let inside6 = format!("{}/116", Ipv6Addr::from_bits(HOSTS6)).parse().unwrap();
    let siit = SiitConfig {
        prefix: Some(rfc6052(SIIT_PREFIX, false)),
        eam: Arc::new(EamTable::new([(inside4, inside6)]).unwrap()),
        ..SiitConfig::default()
    };
    Engine::new(&EngineConfig { siit: vec![siit], seed: [1, 2], ..EngineConfig::default() }).unwrap()
}

fn nat64(sessions: u32) -> Engine {
    let nat64 = Nat64Config {
        limits: StateLimits { sessions, bindings: sessions, ..StateLimits::default() },
        subscribers: SubscriberPolicy::new(128),
        ..Nat64Config::new(
            rfc6052(NAT64_PREFIX, true),
            PoolConfig { addresses: vec!["198.18.0.0/24".parse().unwrap()], ports: vec![1_024..=65_535] },
        )
    };
    Engine::new(&EngineConfig { nat64: vec![nat64], seed: [1, 2], ..EngineConfig::default() }).unwrap()
}

fn nat64_packets(flows: u32) -> Vec<Vec<u8>> {
    let host = |flow| (host6(flow / PER_HOST).0, port(flow));
    (0..flows).map(|flow| udp6(host(flow), server6(NAT64_PREFIX, flow))).collect()
}

/// Established sessions, from their hosts.
fn nat64_out(sessions: u32) -> (Engine, Vec<Vec<u8>>, usize) {
    let (engine, _) = opened(nat64(sessions), nat64_packets(sessions));
    (engine, nat64_packets(sessions), 44)
}

/// Established sessions, from their servers.
fn nat64_back(sessions: u32) -> (Engine, Vec<Vec<u8>>, usize) {
    let (engine, answers) = opened(nat64(sessions), nat64_packets(sessions));
    (engine, answers, 64)
}

/// With the same limits, pool and flows as the NAT64.
fn nat44(sessions: u32) -> Engine {
    let nat44 = Nat44Config {
        limits: StateLimits { sessions, bindings: sessions, ..StateLimits::default() },
        ..Nat44Config::new(
            vec![format!("{}/8", Ipv4Addr::from_bits(HOSTS4)).parse().unwrap()],
            PoolConfig { addresses: vec!["198.18.0.0/24".parse().unwrap()], ports: vec![1_024..=65_535] },
        )
    };
    Engine::new(&EngineConfig { nat44: vec![nat44], seed: [1, 2], ..EngineConfig::default() }).unwrap()
}

fn nat44_packets(flows: u32) -> Vec<Vec<u8>> {
    let host = |flow| (host4(flow / PER_HOST).0, port(flow));
    (0..flows).map(|flow| udp4(host(flow), server4(flow))).collect()
}

/// Established sessions, from their hosts.
fn nat44_out(sessions: u32) -> (Engine, Vec<Vec<u8>>, usize) {
    let (engine, _) = opened(nat44(sessions), nat44_packets(sessions));
    (engine, nat44_packets(sessions), 44)
}

/// Established sessions, from their servers.
fn nat44_in(sessions: u32) -> (Engine, Vec<Vec<u8>>, usize) {
    let (engine, answers) = opened(nat44(sessions), nat44_packets(sessions));
    (engine, answers, 44)
}

/// The same flows behind softwires, ten to each, of hosts with one address.
fn aftr(sessions: u32) -> Engine {
    let pool = PoolConfig { addresses: vec!["198.18.0.0/24".parse().unwrap()], ports: vec![1_024..=65_535] };
    let aftr = DsLiteConfig {
        limits: StateLimits { sessions, bindings: sessions, ..StateLimits::default() },
        ..DsLiteConfig::new(vec![AFTR], vec!["2001:db8::/32".parse().unwrap()], pool)
    };
    Engine::new(&EngineConfig { others: vec![aftr.into()], seed: [1, 2], ..EngineConfig::default() }).unwrap()
}

fn aftr_packets(flows: u32) -> Vec<Vec<u8>> {
    let b4 = |flow: u32| Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(flow / 10) << 72 | 1);
    let inner = |flow| udp4((host4(0).0, port(flow)), server4(flow));
    (0..flows).map(|flow| in_ipv6(&inner(flow), b4(flow), AFTR)).collect()
}

/// Established sessions, from their hosts.
fn aftr_out(sessions: u32) -> (Engine, Vec<Vec<u8>>, usize) {
    let (engine, _) = opened(aftr(sessions), aftr_packets(sessions));
    (engine, aftr_packets(sessions), 44)
}

/// Established sessions, from their servers.
fn aftr_in(sessions: u32) -> (Engine, Vec<Vec<u8>>, usize) {
    let (engine, answers) = opened(aftr(sessions), aftr_packets(sessions));
    (engine, answers, 84)
}

/// Opens a session with each packet; the engine, and the servers' answers.
fn opened(mut engine: Engine, packets: Vec<Vec<u8>>) -> (Engine, Vec<Vec<u8>>) {
    let mut out = Outbox::new(64);
    let mut answers = Vec::new();
    let mut frame = Frame::with_capacity(2_048);
    for (flow, packet) in (0..).zip(packets) {
        frame.fill(&packet, Offload::default());
        engine.process(std::slice::from_mut(&mut frame), Instant::from_secs(1_000), &mut out);
        let sent = frame.bytes();
        assert!(frame.verdict.leaves() && sent.len() == 44, "flow {flow} was not translated");
        let address = Ipv4Addr::new(sent[12], sent[13], sent[14], sent[15]);
        answers.push(udp4(server4(flow), (address, u16::from_be_bytes([sent[20], sent[21]]))));
    }
    (engine, answers)
}

fn tunnel() -> Engine {
    let tunnel = ConfiguredConfig {
        local: LOCAL,
        remote: Some(REMOTE),
        prefixes: vec![format!("{}/48", Ipv6Addr::from_bits(BEHIND_TUNNEL)).parse().unwrap()],
        strict_sources: true,
        policy: TunnelPolicy::default(),
    };
    let tunnels = vec![TunnelConfig::Configured(tunnel)];
    Engine::new(&EngineConfig { tunnels, seed: [1, 2], ..EngineConfig::default() }).unwrap()
}

/// The Teredo client of a flow: its server, and the endpoint at its NAT.
fn client(flow: u32) -> TeredoAddress {
    let mapped = Endpoint4::new(Ipv4Addr::from_bits(u32::from_be_bytes([203, 0, 0, 0]) | flow), port(flow));
    TeredoAddress { server: REMOTE, interface: TeredoInterface { flags: 0, mapped } }
}

/// A Teredo relay whose clients have all answered.
fn relay() -> Engine {
    let address = "2001:db8::9".parse().unwrap();
    let relay = TeredoConfig::new(TeredoRole::Relay(RelayConfig { address, serves: Vec::new() }));
    let config = EngineConfig { others: vec![relay.into()], seed: [1, 2], ..EngineConfig::default() };
    let (mut engine, now) = (Engine::new(&config).unwrap(), Instant::from_secs(1_000));
    let local = Endpoint4::new(LOCAL, TEREDO_PORT);
    engine.change_teredo(0, &TeredoChange::Local(Some(local), Vec::new()), now);
    let (mut frame, mut out) = (Frame::with_capacity(2_048), Outbox::new(64));
    for client in (0..FLOWS).map(client) {
        let answer = bubble(client.address(), address, 64);
        let from = (client.mapped().address, client.mapped().port);
        for packet in
            [udp6((address, 53), (client.address(), 53)), in_udp4(&answer, from, (LOCAL, TEREDO_PORT))]
        {
            frame.fill(&packet, Offload::default());
            engine.process(std::slice::from_mut(&mut frame), now, &mut out);
            out.clear();
        }
    }
    engine
}

/// As a softwire carries packets.
fn softwire_policy() -> TunnelPolicy {
    TunnelPolicy { mtu: TunnelMtu::Dynamic, encapsulation_limit: None, ..TunnelPolicy::default() }
}

fn b4() -> Engine {
    let inside = vec![Prefix4::holding(Ipv4Addr::from_bits(HOSTS4), 8)];
    let b4 = B4Config { local: B4, remote: Some(AFTR), inside, policy: softwire_policy() };
    let tunnels = vec![TunnelConfig::B4(b4)];
    Engine::new(&EngineConfig { tunnels, seed: [1, 2], ..EngineConfig::default() }).unwrap()
}

/// A concentrator with a binding for each flow.
fn four_over_six() -> Engine {
    let binding = |flow| Binding { ipv4: Prefix4::holding(host4(flow).0, 32), host: host6(flow).0, local: 0 };
    let concentrator = ConcentratorConfig {
        addresses: vec![AFTR],
        lent: vec![Prefix4::holding(Ipv4Addr::from_bits(HOSTS4), 8)],
        client_bits: 56,
        max_bindings: 1 << 16,
        bindings: (0..FLOWS).map(binding).collect(),
    };
    let ends = FourOverSixConfig { role: Role::Concentrator(concentrator), policy: softwire_policy() };
    Engine::new(&EngineConfig { others: vec![ends.into()], seed: [1, 2], ..EngineConfig::default() }).unwrap()
}

/// The same flows with a mapping each, and the address that each mapping has.
fn nat46() -> (Engine, Vec<Ipv4Addr>) {
    let mappings = MappingSettings {
        pool: "198.18.0.0/16".parse().unwrap(),
        excluded: Vec::new(),
        statics: Vec::new(),
        clients: vec!["10.0.0.0/8".parse().unwrap()],
        servers: vec!["2000::/3".parse().unwrap()],
        not_servers: Vec::new(),
        sharing: Sharing::Client,
        max_mappings: 1 << 16,
        max_per_client: 1_024,
        by_name: true,
    };
    let table = Mappings::in_memory(mappings.clone(), [1, 2]).unwrap();
    let map = |flow| table.map(client46(flow).0, host6(flow).0, 1 << 30, Instant(0)).ok().unwrap();
    let addresses = (0..FLOWS).map(map).collect();
    let prefix = rfc6052(NAT46_PREFIX, true);
    let nat46 = Nat46Config { prefix, table: Some(Arc::new(table)), mappings, policy: Policy::default() };
    let config = EngineConfig { others: vec![nat46.into()], seed: [1, 2], ..EngineConfig::default() };
    (Engine::new(&config).unwrap(), addresses)
}

/// A client's packet to a server.
fn towards46(addresses: &[Ipv4Addr], flow: u32) -> Vec<u8> {
    udp4(client46(flow), (addresses[flow as usize], 53))
}

/// A mapping is used: then its server may send.
fn used46(engine: &mut Engine, packet: &[u8]) {
    let mut frame = Frame::with_capacity(2_048);
    frame.fill(packet, Offload::default());
    engine.process(std::slice::from_mut(&mut frame), Instant::from_secs(1_000), &mut Outbox::new(64));
    assert!(frame.verdict.leaves(), "not translated");
}
