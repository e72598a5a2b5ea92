//! The worlds.

use super::routes::{Route, Target};
use super::scene::{Port, SHORT};
use super::support::{eam, nat44, nat64};
use super::world::*;
use sixway_dataplane::Limits;
use sixway_dataplane::engine::TunnelConfig;
use sixway_dataplane::mechanism::nat44::Nat44Config;
use sixway_dataplane::mechanism::siit::{Hairpinning, SiitConfig};
use sixway_dataplane::nat::PoolConfig;
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use sixway_dataplane::translate::{HeaderByte, Policy, UdpZeroChecksum};
use std::net::{IpAddr, Ipv4Addr};

/// All of them.
pub fn all() -> Vec<World> {
    let mut all = vec![plain_nat64(), choosy_nat64(), two_nat64(), mapped(), mapped_only(), several()];
    all.extend(PREFIXES.iter().map(|(name, prefix, length)| embedding(name, prefix, *length)));
    all.extend(super::tunnel_worlds::all());
    all.extend([nat44_alone(), nat44_among_others()]);
    all
}

/// Names of some worlds, one of each kind; a fuzzer's input says which by its number here.
pub const TELLING: [&str; 9] = [
    "nat64, header octets set",
    "two nat64",
    "siit, explicit mappings",
    "several",
    "siit /64",
    "6to4 router",
    "6rd border relay, short",
    "tunnels at one address",
    "nat44 among others",
];

/// The world of this number.
pub fn telling(number: usize) -> World {
    all().into_iter().find(|world| world.name == TELLING[number]).unwrap()
}

const TUN: Target = Target::Tun;

/// MSS clamping changes SYNs alone, which are the engine's.
fn policy() -> Policy {
    Policy::default()
}

/// Traffic Class and TOS are set, packets with DF clear may grow, UDP without checksum goes nowhere.
fn choosy() -> Policy {
    Policy {
        traffic_class: HeaderByte::Set(0x4a),
        tos: HeaderByte::Set(0x2c),
        udp_zero_checksum: UdpZeroChecksum::Drop,
        lowest_ipv6_mtu: 1_400,
        clamp_mss: false,
    }
}

fn prefix(text: &str, non_global: bool) -> Rfc6052 {
    Rfc6052::new(text.parse().unwrap(), non_global).unwrap()
}

fn pool(text: &str) -> PoolConfig {
    PoolConfig { addresses: vec![text.parse().unwrap()], ports: vec![1_024..=65_535] }
}

fn sessions(number: u8) -> [Lane; 2] {
    sessions_of(NAT64, number)
}

/// Both directions of the sessions of the stateful translator of this number.
fn sessions_of(kind: u32, number: u8) -> [Lane; 2] {
    [true, false].map(|outward| {
        let way = if outward { OUT } else { IN };
        lane(kind, way, move |_| PacketAddresses::Session(number, outward))
    })
}

/// The well-known prefix, which takes global addresses only; one network of it goes elsewhere.
fn plain_nat64() -> World {
    let mut config = configuration();
    config.nat64.push(sixway_dataplane::mechanism::nat64::Nat64Config {
        prefix: prefix("64:ff9b::/96", false),
        pool: pool("45.64.0.0/30"),
        policy: policy(),
        ..nat64()
    });
    World {
        name: "nat64",
        config,
        local: Vec::new(),
        routes: vec![
            ("64:ff9b::/96", TUN),
            ("64:ff9b::45.1.0.16/124", Target::Neighbour(Port::Inner, None)),
            ("45.64.0.0/30", TUN),
        ],
        lanes: sessions(0).into(),
    }
}

/// Where a NAT44's inside networks are: with each kind of next hop.
const INSIDE: [Route; 7] = [
    ("10.41.0.0/16", Target::Neighbour(Port::Inner, None)),
    ("10.42.0.0/16", Target::Neighbour(Port::Tagged, None)),
    ("10.43.0.0/16", Target::Neighbour(Port::Narrow, None)),
    ("10.44.0.0/16", Target::Unknown),
    ("10.45.0.0/16", Target::Neighbour(Port::Unhooked, None)),
    ("10.46.0.0/16", Target::Neighbour(Port::Inner, Some(SHORT))),
    ("10.47.0.0/16", Target::Nowhere),
];

fn nat44_with(addresses: &str) -> Nat44Config {
    let inside = ["10.40.0.0/14", "10.44.0.0/14"].map(|text| text.parse().unwrap());
    Nat44Config { inside: inside.into(), pool: pool(addresses), ..nat44() }
}

fn nat44_alone() -> World {
    let mut config = configuration();
    config.nat44.push(nat44_with("45.64.8.0/30"));
    World {
        name: "nat44",
        config,
        local: Vec::new(),
        routes: [&INSIDE[..], &[("45.64.8.0/30", TUN)]].concat(),
        lanes: sessions_of(NAT44, 0).into(),
    }
}

/// Next to a NAT64, whose pool is near, and to a SIIT that maps every IPv4 address; with small MTUs.
fn nat44_among_others() -> World {
    let mut config = configuration();
    config.limits = Limits { mtu4: 1_400, mtu6: 1_460 };
    config.nat64.push(sixway_dataplane::mechanism::nat64::Nat64Config {
        prefix: prefix("64:ff9b::/96", true),
        pool: pool("45.64.0.0/30"),
        policy: policy(),
        ..nat64()
    });
    config.nat44.push(nat44_with("45.64.0.4/30"));
    config.siit.push(SiitConfig { prefix: Some(prefix("2a00:60::/96", true)), ..SiitConfig::default() });
    let inward = |choices: &mut Choices| {
        PacketAddresses::V4(remote4(choices), Ipv4Addr::new(45, 70, 0, choices.octet() % 8))
    };
    let [a, b] = sessions(0);
    let [c, d] = sessions_of(NAT44, 1);
    World {
        name: "nat44 among others",
        config,
        local: Vec::new(),
        routes: [
            &INSIDE[..],
            &[
                ("64:ff9b::/96", TUN),
                ("45.64.0.0/29", TUN),
                ("2a00:60::/96", TUN),
                ("2a00:60::45.70.0.0/112", Target::Neighbour(Port::Inner, None)),
                ("45.70.0.0/16", TUN),
            ],
        ]
        .concat(),
        lanes: vec![a, b, c, d, lane(SIIT, IN, inward)],
    }
}

fn choosy_nat64() -> World {
    let mut config = configuration();
    config.limits = Limits { mtu4: 1_400, mtu6: 1_460 };
    config.nat64.push(sixway_dataplane::mechanism::nat64::Nat64Config {
        prefix: prefix("2a00:64:0:64::/64", true),
        pool: pool("45.64.1.0/31"),
        policy: choosy(),
        ..nat64()
    });
    World {
        name: "nat64, header octets set",
        config,
        local: Vec::new(),
        routes: vec![("2a00:64:0:64::/64", TUN), ("45.64.1.0/31", TUN)],
        lanes: sessions(0).into(),
    }
}

fn two_nat64() -> World {
    let mut config = configuration();
    let one = |at: &str, addresses: &str, policy: Policy| sixway_dataplane::mechanism::nat64::Nat64Config {
        prefix: prefix(at, true),
        pool: pool(addresses),
        policy,
        ..nat64()
    };
    config.nat64.push(one("64:ff9b::/96", "45.64.0.0/30", policy()));
    config.nat64.push(one("2a00:65::/32", "45.64.4.0/30", choosy()));
    let [a, b] = sessions(0);
    let [c, d] = sessions(1);
    World {
        name: "two nat64",
        config,
        local: Vec::new(),
        routes: vec![
            ("64:ff9b::/96", TUN),
            ("2a00:65::/32", TUN),
            ("45.64.0.0/30", TUN),
            ("45.64.4.0/30", TUN),
        ],
        lanes: vec![a, b, c, d],
    }
}

/// Name, prefix and its length.
const PREFIXES: [(&str, &str, u8); 6] = [
    ("siit /32", "2a00:6032::", 32),
    ("siit /40", "2a00:6040:4000::", 40),
    ("siit /48", "2a00:6048:4800::", 48),
    ("siit /56", "2a00:6056:56:5600::", 56),
    ("siit /64", "2a00:6064:64:64::", 64),
    ("siit /96", "64:ff9b::", 96),
];

fn route_of(length: u8) -> &'static str {
    match length {
        32 => "2a00:6032::/32",
        40 => "2a00:6040:4000::/40",
        48 => "2a00:6048:4800::/48",
        56 => "2a00:6056:56:5600::/56",
        64 => "2a00:6064:64:64::/64",
        _ => "64:ff9b::/96",
    }
}

/// A destination under the prefix that the host sends elsewhere.
fn elsewhere(at: &str, length: u8) -> &'static str {
    let address = embedded(at, length, Ipv4Addr::new(45, 1, 0, 5));
    Box::leak(format!("{address}/128").into_boxed_str())
}

/// A host that the translator knows by 45.70.0.0/24.
fn inside(octet: u8) -> Ipv4Addr {
    Ipv4Addr::new(45, 70, 0, octet % 16)
}

/// Both hosts by one prefix; those of 45.70.0.0/24 are on the IPv6 side, at networks with other routes.
fn embedding(name: &'static str, at: &'static str, length: u8) -> World {
    let mut config = configuration();
    if length.is_multiple_of(16) {
        config.limits = Limits { mtu4: 1_400, mtu6: 1_500 };
    }
    let policy = if length % 16 == 8 { choosy() } else { policy() };
    config.siit.push(SiitConfig {
        prefix: Some(prefix(route_of(length), false)),
        eam: eam(&[
            ("45.71.0.0/24", "2a00:71::/120"),
            ("45.72.0.0/30", "2a02:72::/126"),
            ("45.73.0.0/30", "2a06:73::/64"),
        ]),
        policy,
        ..SiitConfig::default()
    });
    let host = |choices: &mut Choices| -> (Ipv4Addr, std::net::Ipv6Addr) {
        let octet = choices.octet() % 4;
        match choices.below(4) {
            0 => (
                Ipv4Addr::new(45, 72, 0, octet),
                std::net::Ipv6Addr::from_bits(six("2a02:72::").to_bits() | u128::from(octet)),
            ),
            1 => (
                Ipv4Addr::new(45, 73, 0, octet),
                std::net::Ipv6Addr::from_bits(six("2a06:73::").to_bits() | u128::from(octet) << 62),
            ),
            _ => (
                Ipv4Addr::new(45, 71, 0, octet),
                std::net::Ipv6Addr::from_bits(six("2a00:71::").to_bits() | u128::from(octet)),
            ),
        }
    };
    let out = move |choices: &mut Choices| {
        // To a host of the table by its IPv4 address: the translator turns the packet around (RFC 7757 §4).
        let turns = choices.one_in(16);
        let to = if turns { host(choices).0 } else { remote4(choices) };
        PacketAddresses::V6(host(choices).1, embedded(at, length, to))
    };
    let inward = move |choices: &mut Choices| PacketAddresses::V4(remote4(choices), host(choices).0);
    let through = move |choices: &mut Choices| {
        PacketAddresses::V6(
            embedded(at, length, inside(choices.octet())),
            embedded(at, length, remote4(choices)),
        )
    };
    World {
        name,
        config,
        local: Vec::new(),
        routes: vec![
            (route_of(length), TUN),
            (elsewhere(at, length), Target::Neighbour(Port::Inner, None)),
            ("45.70.0.0/15", TUN),
            ("45.72.0.0/15", TUN),
            ("45.73.0.3/32", Target::Neighbour(Port::Outer, None)),
        ],
        lanes: vec![lane(SIIT, OUT, out), lane(SIIT, IN, inward), lane(SIIT, OUT, through)],
    }
}

use super::choices::Choices;

/// Explicit mappings of many lengths next to a prefix, overlapping.
fn mapped() -> World {
    let mut config = configuration();
    config.siit.push(SiitConfig {
        prefix: Some(prefix("2a00:60::/96", true)),
        eam: eam(&[
            ("45.70.0.0/16", "2a00:70::/96"),
            ("45.70.1.0/24", "2a02:70::/64"),
            ("45.70.1.128/25", "2a06:70::/48"),
            ("45.70.1.129/32", "2a00:70:9::9/128"),
        ]),
        hairpinning: Hairpinning::Simple,
        ..SiitConfig::default()
    });
    let host4 = |choices: &mut Choices| {
        Ipv4Addr::new(45, 70, choices.octet() % 2, choices.of(&[1, 2, 127, 128, 129, 130]))
    };
    let host6 = |choices: &mut Choices| {
        let octet = u128::from(choices.octet() % 8);
        match choices.below(4) {
            0 => std::net::Ipv6Addr::from_bits(six("2a02:70::").to_bits() | octet << 61),
            1 => std::net::Ipv6Addr::from_bits(six("2a06:70::").to_bits() | octet << 77),
            2 => six("2a00:70:9::9"),
            _ => std::net::Ipv6Addr::from_bits(six("2a00:70::").to_bits() | octet),
        }
    };
    let out = move |choices: &mut Choices| {
        PacketAddresses::V6(host6(choices), embedded("2a00:60::", 96, remote4(choices)))
    };
    let inward = move |choices: &mut Choices| PacketAddresses::V4(remote4(choices), host4(choices));
    World {
        name: "siit, explicit mappings",
        config,
        local: Vec::new(),
        routes: vec![("2a00:60::/96", TUN), ("45.70.0.0/16", TUN)],
        lanes: vec![lane(SIIT, OUT, out), lane(SIIT, IN, inward)],
    }
}

/// No prefix at all: both hosts are in the table.
fn mapped_only() -> World {
    let mut config = configuration();
    config.siit.push(SiitConfig {
        eam: eam(&[
            ("45.70.0.0/24", "2a00:70::/120"),
            ("45.1.0.0/16", "2a00:601::/112"),
            ("45.2.0.0/16", "2a00:602::/64"),
        ]),
        hairpinning: Hairpinning::Off,
        policy: choosy(),
        ..SiitConfig::default()
    });
    let host = |octet: u8| std::net::Ipv6Addr::from_bits(six("2a00:70::").to_bits() | u128::from(octet % 16));
    let remote = |octet: u8| std::net::Ipv6Addr::from_bits(six("2a00:601::").to_bits() | u128::from(octet));
    let out =
        move |choices: &mut Choices| PacketAddresses::V6(host(choices.octet()), remote(choices.octet()));
    let inward = move |choices: &mut Choices| {
        PacketAddresses::V4(Ipv4Addr::new(45, 1, 0, choices.octet()), inside(choices.octet()))
    };
    World {
        name: "siit, explicit mappings alone",
        config,
        local: Vec::new(),
        routes: vec![("2a00:601::/112", TUN), ("2a00:602::/64", TUN), ("45.70.0.0/24", TUN)],
        lanes: vec![lane(SIIT, OUT, out), lane(SIIT, IN, inward)],
    }
}

/// Mechanisms next to one another, with prefixes in prefixes: whose a packet is decides.
fn several() -> World {
    let mut config = configuration();
    config.host4 = vec![four("45.80.0.1"), four("45.81.0.1")];
    config.nat64.push(sixway_dataplane::mechanism::nat64::Nat64Config {
        prefix: prefix("64:ff9b::/96", true),
        pool: pool("45.64.0.0/30"),
        policy: policy(),
        ..nat64()
    });
    config.siit.push(SiitConfig {
        eam: eam(&[("45.71.0.0/24", "2a00:71::/120"), ("45.74.0.1/32", "2a00:7:7::9/128")]),
        prefix: Some(prefix("2a00:60::/96", true)),
        policy: choosy(),
        ..SiitConfig::default()
    });
    config.siit.push(SiitConfig { prefix: Some(prefix("2a00:61::/96", true)), ..SiitConfig::default() });
    config.tunnels.push(TunnelConfig::SixToFour(super::support::six_to_four(
        sixway_dataplane::mechanism::six_to_four::Role::Relay,
        "45.80.0.1",
    )));
    let behind = vec!["2a00:7::/32".parse().unwrap(), "2a00:60::45.9.0.0/112".parse().unwrap()];
    config.tunnels.push(TunnelConfig::Configured(
        sixway_dataplane::mechanism::configured::ConfiguredConfig {
            local: four("45.81.0.1"),
            remote: Some(four("45.1.0.7")),
            prefixes: behind,
            strict_sources: false,
            policy: Default::default(),
        },
    ));
    let [a, b] = sessions(0);
    let host = |octet: u8| std::net::Ipv6Addr::from_bits(six("2a00:71::").to_bits() | u128::from(octet));
    let out = move |choices: &mut Choices| {
        PacketAddresses::V6(host(choices.octet()), embedded("2a00:60::", 96, remote4(choices)))
    };
    let inward = move |choices: &mut Choices| {
        PacketAddresses::V4(remote4(choices), Ipv4Addr::new(45, 71, 0, choices.octet()))
    };
    let tunnelled = move |choices: &mut Choices| {
        PacketAddresses::V6(remote6(choices), choices.of(&[six("2a00:7:7::8"), six("2a00:60::45.9.0.1")]))
    };
    let arrived = move |choices: &mut Choices| {
        PacketAddresses::In4(four("45.1.0.7"), four("45.81.0.1"), six("2a00:7:7::8"), remote6(choices))
    };
    World {
        name: "several",
        config,
        local: [four("45.80.0.1"), four("45.81.0.1")].map(IpAddr::V4).into(),
        routes: several_routes(),
        lanes: vec![
            a,
            b,
            lane(SIIT, OUT, out),
            lane(SIIT, IN, inward),
            lane(CONFIGURED, OUT, tunnelled),
            lane(CONFIGURED, IN, arrived),
        ],
    }
}

fn several_routes() -> Vec<Route> {
    vec![
        ("64:ff9b::/96", TUN),
        ("45.64.0.0/30", TUN),
        ("2a00:60::/95", TUN),
        ("2a00:61::/96", TUN),
        ("45.71.0.0/24", TUN),
        ("45.74.0.1/32", TUN),
        ("2002::/16", TUN),
        ("2a00:7::/32", TUN),
    ]
}
