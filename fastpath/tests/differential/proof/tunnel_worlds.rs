//! The worlds with tunnels.

use super::choices::Choices;
use super::routes::Target;
use super::scene::Port;
use super::support;
use super::world::*;
use sixway_dataplane::Limits;
use sixway_dataplane::engine::TunnelConfig;
use sixway_dataplane::mechanism::configured::ConfiguredConfig;
use sixway_dataplane::mechanism::six_to_four::NativeSources;
use sixway_dataplane::mechanism::{isatap, six_rd, six_to_four};
use sixway_dataplane::translate::HeaderByte;
use sixway_dataplane::tunnel::{Ecn, OuterFragments, TunnelMtu, TunnelPolicy};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const TUN: Target = Target::Tun;

pub fn all() -> Vec<World> {
    let [usual, other, path] = policies();
    vec![
        relay("6to4 relay", usual),
        relay("6to4 relay, header octets set", other),
        router("6to4 router", path),
        customer_edge("6rd customer edge", usual),
        border_relay("6rd border relay", other, "10.0.0.0/8"),
        border_relay("6rd border relay, short", path, "10.64.0.0/10"),
        configured(),
        isatap_router("isatap router", usual),
        isatap_router("isatap router, header octets set", other),
        at_one_address(),
    ]
}

/// The usual options, all the others, and those that follow the path.
fn policies() -> [TunnelPolicy; 3] {
    let other = TunnelPolicy {
        ttl: HeaderByte::Copy,
        traffic_class: HeaderByte::Set(0xb8),
        ecn: Ecn::Normal,
        mtu: TunnelMtu::Static(1_480),
        outer_fragments: OuterFragments::Never,
        clamp_mss: false,
        ..TunnelPolicy::default()
    };
    let path = TunnelPolicy { mtu: TunnelMtu::Dynamic, ttl: HeaderByte::Set(3), ..TunnelPolicy::default() };
    [TunnelPolicy::default(), other, path]
}

fn world(name: &'static str, tunnels: Vec<TunnelConfig>, local: &[&str]) -> World {
    let mut config = configuration();
    config.tunnels = tunnels;
    config.join = false;
    config.host4 = local.iter().map(|text| four(text)).collect();
    let local = local.iter().map(|text| IpAddr::V4(four(text))).collect();
    World { name, config, local, routes: Vec::new(), lanes: Vec::new() }
}

/// An address of the 6to4 site there.
fn site(address: Ipv4Addr, octet: u8) -> Ipv6Addr {
    Ipv6Addr::from_bits(0x2002 << 112 | u128::from(address.to_bits()) << 80 | u128::from(octet))
}

fn relay(name: &'static str, policy: TunnelPolicy) -> World {
    let mut tunnel = support::six_to_four(six_to_four::Role::Relay, "45.80.0.1");
    tunnel.policy = policy;
    tunnel.subnets = vec!["45.1.0.0/29".parse().unwrap()];
    let mut world = world(name, vec![TunnelConfig::SixToFour(tunnel)], &["45.80.0.1"]);
    world.routes = vec![("2002::/16", TUN), ("2002:2d01:5::/48", Target::Neighbour(Port::Inner, None))];
    let out = |choices: &mut Choices| PacketAddresses::V6(remote6(choices), site(remote4(choices), 9));
    let inward = |choices: &mut Choices| {
        let from = remote4(choices);
        PacketAddresses::In4(from, four("45.80.0.1"), site(from, choices.octet()), remote6(choices))
    };
    world.lanes = vec![lane(SIX_TO_FOUR, OUT, out), lane(SIX_TO_FOUR, IN, inward)];
    world
}

fn router(name: &'static str, policy: TunnelPolicy) -> World {
    let mut tunnel = support::six_to_four(six_to_four::Role::Router, "45.80.0.2");
    tunnel.policy = policy;
    tunnel.native_sources = NativeSources::Listed(vec![four("45.1.0.99"), four("45.2.0.99")]);
    let mut world = world(name, vec![TunnelConfig::SixToFour(tunnel)], &["45.80.0.2"]);
    world.routes = vec![
        ("::/0", TUN),
        ("2002::/16", TUN),
        ("2002:2d50:2::/48", Target::Neighbour(Port::Inner, None)),
        ("2002:2d50:2:2::/64", Target::Neighbour(Port::Tagged, None)),
        ("2002:2d50:2:3::/64", Target::Neighbour(Port::Narrow, None)),
    ];
    let own = |choices: &mut Choices| {
        let subnet = choices.of(&[0_u128, 1, 2, 3]);
        Ipv6Addr::from_bits(site(four("45.80.0.2"), choices.octet()).to_bits() | subnet << 64)
    };
    let native =
        |choices: &mut Choices| Ipv6Addr::new(0x2a10, 0, 0, 0, 0, 0, 0, u16::from(choices.octet() % 4) + 1);
    let out = move |choices: &mut Choices| PacketAddresses::V6(own(choices), site(remote4(choices), 9));
    let to_native = move |choices: &mut Choices| PacketAddresses::V6(own(choices), native(choices));
    let inward = move |choices: &mut Choices| {
        let from = remote4(choices);
        PacketAddresses::In4(from, four("45.80.0.2"), site(from, choices.octet()), own(choices))
    };
    let from_native = move |choices: &mut Choices| {
        let from = choices.of(&[four("192.88.99.1"), four("45.1.0.99"), four("45.2.0.99")]);
        PacketAddresses::In4(from, four("45.80.0.2"), native(choices), own(choices))
    };
    world.lanes = vec![
        lane(SIX_TO_FOUR, OUT, out),
        lane(SIX_TO_FOUR, IN, inward),
        lane(SIX_TO_FOUR, OUT, to_native),
        lane(SIX_TO_FOUR, IN, from_native),
    ];
    world
}

fn domain(prefix: &str, shared: &str) -> six_rd::Domain {
    six_rd::Domain::new(prefix.parse().unwrap(), shared.parse().unwrap()).unwrap()
}

/// The domain 2a00:6d00::/32 of 10.0.0.0/8: the prefix of each customer has 56 bits.
fn customer(address: Ipv4Addr, octet: u8) -> Ipv6Addr {
    let prefix = six("2a00:6d00::").to_bits();
    Ipv6Addr::from_bits(prefix | u128::from(address.to_bits() & 0xff_ffff) << 72 | u128::from(octet))
}

fn customer_edge(name: &'static str, policy: TunnelPolicy) -> World {
    let mut tunnel = support::six_rd(six_rd::Role::CustomerEdge, "10.1.2.3");
    tunnel.domain = domain("2a00:6d00::/32", "10.0.0.0/8");
    tunnel.policy = policy;
    let mut world = world(name, vec![TunnelConfig::SixRd(tunnel)], &["10.1.2.3"]);
    world.routes = vec![
        ("::/0", TUN),
        ("2a00:6d00::/32", TUN),
        ("2a00:6d00:102:300::/56", Target::Neighbour(Port::Inner, None)),
        ("2a00:6d00:102:302::/64", Target::Neighbour(Port::Tagged, None)),
        ("10.9.0.0/16", Target::Neighbour(Port::Narrow, None)),
    ];
    let own = |choices: &mut Choices| {
        let subnet = choices.of(&[0_u128, 1, 2]);
        Ipv6Addr::from_bits(customer(four("10.1.2.3"), choices.octet()).to_bits() | subnet << 64)
    };
    let edge = |choices: &mut Choices| Ipv4Addr::new(10, choices.of(&[1, 2, 3, 9]), 7, choices.octet());
    let native =
        |choices: &mut Choices| Ipv6Addr::new(0x2a10, 0, 0, 0, 0, 0, 0, u16::from(choices.octet() % 4) + 1);
    let out = move |choices: &mut Choices| PacketAddresses::V6(own(choices), customer(edge(choices), 5));
    let to_native = move |choices: &mut Choices| PacketAddresses::V6(own(choices), native(choices));
    let inward = move |choices: &mut Choices| {
        let from = edge(choices);
        PacketAddresses::In4(from, four("10.1.2.3"), customer(from, choices.octet()), own(choices))
    };
    let from_native = move |choices: &mut Choices| {
        PacketAddresses::In4(four("10.0.0.1"), four("10.1.2.3"), native(choices), own(choices))
    };
    world.lanes = vec![
        lane(SIX_RD, OUT, out),
        lane(SIX_RD, IN, inward),
        lane(SIX_RD, OUT, to_native),
        lane(SIX_RD, IN, from_native),
    ];
    world
}

/// A border relay of customers in `shared`, an odd number of whose bits may be in the prefix.
fn border_relay(name: &'static str, policy: TunnelPolicy, shared: &'static str) -> World {
    let length = shared.rsplit('/').next().unwrap().parse::<u32>().unwrap();
    let mut tunnel = support::six_rd(six_rd::Role::BorderRelay, "45.82.0.1");
    tunnel.domain = domain("2a00:6d00::/32", shared);
    tunnel.border_relays = vec![four("45.82.0.1"), four("10.66.6.6")];
    tunnel.subnets = vec!["10.65.7.0/28".parse().unwrap()];
    tunnel.other_relays = vec!["10.67.0.0/16".parse().unwrap()];
    tunnel.policy = policy;
    let mut world = world(name, vec![TunnelConfig::SixRd(tunnel)], &["45.82.0.1"]);
    world.config.limits = Limits { mtu4: 1_450, mtu6: 1_500 };
    world.routes = vec![
        ("2a00:6d00::/32", TUN),
        ("10.65.9.0/24", Target::Neighbour(Port::Narrow, None)),
        ("10.65.8.0/24", Target::Neighbour(Port::Tagged, None)),
    ];
    let edge = |choices: &mut Choices| {
        let (network, last) = (choices.of(&[7, 7, 8, 9]), choices.octet());
        // Now and then what must not be an end: a relay, a broadcast address.
        let other = choices.of(&["10.66.6.6", "10.67.1.1", "10.65.7.15", "10.65.7.0"]);
        if choices.one_in(16) { four(other) } else { Ipv4Addr::new(10, 65, network, last) }
    };
    let address = move |edge: Ipv4Addr, octet: u8| {
        let prefix = six("2a00:6d00::").to_bits();
        let bits = u128::from(edge.to_bits() << length) << 64;
        Ipv6Addr::from_bits(prefix | bits | u128::from(octet))
    };
    let out = move |choices: &mut Choices| PacketAddresses::V6(remote6(choices), address(edge(choices), 5));
    let inward = move |choices: &mut Choices| {
        let from = edge(choices);
        PacketAddresses::In4(from, four("45.82.0.1"), address(from, choices.octet()), remote6(choices))
    };
    world.lanes = vec![lane(SIX_RD, OUT, out), lane(SIX_RD, IN, inward)];
    world
}

/// Three tunnels, each with other options; one takes any inner source.
fn configured() -> World {
    let remotes = ["45.1.0.7", "45.2.0.7", "45.3.0.7"];
    let behind = ["2a00:7:1::/48", "2a00:7:2::/48", "2a00:7:3::/48"];
    let tunnels = policies().into_iter().enumerate().map(|(number, policy)| {
        TunnelConfig::Configured(ConfiguredConfig {
            local: four(if number == 2 { "45.81.0.2" } else { "45.81.0.1" }),
            remote: Some(four(remotes[number])),
            prefixes: vec![behind[number].parse().unwrap()],
            strict_sources: number != 1,
            policy,
        })
    });
    let mut world = world("configured", tunnels.collect(), &["45.81.0.1", "45.81.0.2"]);
    world.routes = behind.map(|prefix| (prefix, TUN)).into();
    let peer =
        |number: usize, octet: u8| Ipv6Addr::new(0x2a00, 7, number as u16 + 1, 0, 0, 0, 0, octet.into());
    let out = move |choices: &mut Choices| {
        PacketAddresses::V6(remote6(choices), peer(choices.below(3), choices.octet()))
    };
    let inward = move |choices: &mut Choices| {
        let number = choices.below(3);
        let local = four(if number == 2 { "45.81.0.2" } else { "45.81.0.1" });
        let any = number == 1 && choices.one_in(4);
        let source = if any { six("2a00:99::1") } else { peer(number, choices.octet()) };
        PacketAddresses::In4(four(remotes[number]), local, source, remote6(choices))
    };
    world.lanes = vec![lane(CONFIGURED, OUT, out), lane(CONFIGURED, IN, inward)];
    world
}

/// An address on the ISATAP link, in either form of the identifier.
fn on_link(locator: Ipv4Addr, universal: bool) -> Ipv6Addr {
    let half = if universal { 0x0200_5efe_u128 } else { 0x5efe };
    Ipv6Addr::from_bits(six("2a00:15:1:2::").to_bits() | half << 32 | u128::from(locator.to_bits()))
}

fn isatap_router(name: &'static str, policy: TunnelPolicy) -> World {
    let mut tunnel = support::isatap(isatap::Role::Router, "10.0.0.1");
    tunnel.prefixes = vec!["2a00:15:1:2::/64".parse().unwrap()];
    tunnel.routers = vec![four("10.0.0.9")];
    tunnel.subnets = vec!["10.1.2.0/24".parse().unwrap()];
    tunnel.locators = vec!["10.0.0.0/8".parse().unwrap(), "45.2.0.0/16".parse().unwrap()];
    tunnel.policy = policy;
    let mut world = world(name, vec![TunnelConfig::Isatap(tunnel)], &["10.0.0.1"]);
    world.routes = vec![("2a00:15:1:2::/64", TUN)];
    let host = |choices: &mut Choices| match choices.below(8) {
        7 => {
            four(choices.of(&["10.1.2.255", "10.1.2.0", "169.254.1.1", "45.1.0.1", "10.0.0.1", "224.1.1.1"]))
        }
        6 => Ipv4Addr::new(45, 2, 0, choices.octet()),
        _ => Ipv4Addr::new(10, 1, 2, choices.octet()),
    };
    let out = move |choices: &mut Choices| {
        PacketAddresses::V6(remote6(choices), on_link(host(choices), choices.one_in(3)))
    };
    let inward = move |choices: &mut Choices| {
        let from = host(choices);
        PacketAddresses::In4(from, four("10.0.0.1"), on_link(from, choices.one_in(3)), remote6(choices))
    };
    world.lanes = vec![lane(ISATAP, OUT, out), lane(ISATAP, IN, inward)];
    world
}

/// Tunnels of all kinds that end at one address: who gets a packet is decided by its sources.
fn at_one_address() -> World {
    let end = "45.80.0.3";
    let sites = support::six_to_four(six_to_four::Role::Relay, end);
    let mut rapid = support::six_rd(six_rd::Role::BorderRelay, end);
    rapid.domain = domain("2a00:6d00::/32", "0.0.0.0/0");
    rapid.border_relays = vec![four(end)];
    let mut link = support::isatap(isatap::Role::Router, end);
    (link.prefixes, link.routers) = (vec!["2a00:15:1:2::/64".parse().unwrap()], Vec::new());
    let [_, policy, _] = policies();
    let fixed = ConfiguredConfig {
        local: four(end),
        remote: Some(four("45.1.0.7")),
        prefixes: vec!["2a00:7:1::/48".parse().unwrap()],
        strict_sources: true,
        policy,
    };
    let tunnels = vec![
        TunnelConfig::Isatap(link),
        TunnelConfig::SixRd(rapid),
        TunnelConfig::Configured(fixed),
        TunnelConfig::SixToFour(sites),
    ];
    let mut world = world("tunnels at one address", tunnels, &[end]);
    world.routes =
        vec![("2002::/16", TUN), ("2a00:6d00::/32", TUN), ("2a00:15:1:2::/64", TUN), ("2a00:7:1::/48", TUN)];
    let rapid =
        |at: Ipv4Addr| Ipv6Addr::from_bits(six("2a00:6d00::").to_bits() | u128::from(at.to_bits()) << 64);
    type Inner = fn(Ipv4Addr) -> Ipv6Addr;
    let inner: [(u32, Inner); 4] = [
        (SIX_TO_FOUR, |at| site(at, 1)),
        (SIX_RD, rapid),
        (ISATAP, |at| on_link(at, false)),
        (CONFIGURED, |_| six("2a00:7:1::7")),
    ];
    for (kind, inner) in inner {
        let peer = move |choices: &mut Choices| {
            if kind == CONFIGURED { four("45.1.0.7") } else { remote4(choices) }
        };
        world.lanes.push(lane(kind, OUT, move |choices| {
            PacketAddresses::V6(remote6(choices), inner(peer(choices)))
        }));
        world.lanes.push(lane(kind, IN, move |choices| {
            let from = peer(choices);
            PacketAddresses::In4(from, four(end), inner(from), remote6(choices))
        }));
    }
    world
}
