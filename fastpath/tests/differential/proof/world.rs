//! What the gateway is configured to be, and the packets that it then forwards: one world for each mechanism and set of options.

use super::choices::Choices;
use super::routes::{Route, Routes};
use sixway_dataplane::engine::EngineConfig;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses of a packet that its mechanism forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketAddresses {
    V4(Ipv4Addr, Ipv4Addr),
    V6(Ipv6Addr, Ipv6Addr),
    /// An IPv6 packet, its source and destination, in an IPv4 packet from one to the other.
    In4(Ipv4Addr, Ipv4Addr, Ipv6Addr, Ipv6Addr),
    /// A packet of a session of the stateful translator of this number, to the outside or to the inside.
    Session(u8, bool),
}

/// One kind of packets.
pub struct Lane {
    /// Index into the programs' counters: what they count when they forward one.
    pub counter: u32,
    /// Chooses addresses.
    pub way: Box<dyn Fn(&mut Choices) -> PacketAddresses + Send + Sync>,
}

/// A configuration and its place in the network.
pub struct World {
    pub name: &'static str,
    pub config: EngineConfig,
    /// The host's addresses in addition to its devices'.
    pub local: Vec<IpAddr>,
    /// Routes of this world alone.
    pub routes: Vec<Route>,
    pub lanes: Vec<Lane>,
}

impl World {
    pub fn routes(&self) -> Routes {
        let inside = self.config.nat44.iter().flat_map(|nat44| nat44.inside.iter().copied());
        Routes::with(&self.routes, &self.local).inside(inside.collect())
    }
}

/// Numbers of the mechanisms, and of the counters that go with them, as in `layout.h`.
pub const NAT64: u32 = 1;
pub const SIIT: u32 = 2;
pub const SIX_TO_FOUR: u32 = 3;
pub const SIX_RD: u32 = 4;
pub const CONFIGURED: u32 = 5;
pub const ISATAP: u32 = 6;
pub const NAT44: u32 = 9;

/// To IPv4: translated, or put into it.
pub const OUT: u32 = 0;
/// To IPv6.
pub const IN: u32 = 1;

pub fn lane(
    kind: u32,
    way: u32,
    choose: impl Fn(&mut Choices) -> PacketAddresses + Send + Sync + 'static,
) -> Lane {
    Lane { counter: kind * 2 + way, way: Box::new(choose) }
}

/// A public host of the Internet, sometimes beyond a next hop that is not as all others are; seldom an address that is not a public host's.
pub fn remote4(choices: &mut Choices) -> Ipv4Addr {
    if choices.one_in(32) {
        return four(choices.of(NO_HOSTS));
    }
    let network = choices.of(&[1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 6, 1, 1, 1, 1, 4, 5, 7]);
    Ipv4Addr::new(45, network, 0, choices.octet() % 8 + 1)
}

/// Private, shared, link-local, of documentation, no unicast, broadcast of a network that some tunnels know.
const NO_HOSTS: &[&str] = &[
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.1.1",
    "192.0.2.1",
    "198.18.0.1",
    "127.0.0.1",
    "0.0.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "45.1.0.7",
];

/// The same of IPv6.
pub fn remote6(choices: &mut Choices) -> Ipv6Addr {
    let network = choices.of(&[1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 6, 1, 1, 1, 1, 4, 5, 7]);
    Ipv6Addr::new(0x2a00 + network, 0, 0, 0, 0, 0, 0, u16::from(choices.octet() % 8) + 1)
}

/// An IPv4 address in an IPv6 one, `at` bits from its start; bits 64 to 71 are jumped over below a length of 96 (RFC 6052 §2.2).
pub fn embedded(prefix: &str, length: u8, address: Ipv4Addr) -> Ipv6Addr {
    let prefix: Ipv6Addr = prefix.parse().unwrap();
    let mut octets = prefix.octets();
    let mut at = usize::from(length / 8);
    for octet in address.octets() {
        if at == 8 && length < 96 {
            at += 1;
        }
        octets[at] = octet;
        at += 1;
    }
    octets.into()
}

pub fn four(text: &str) -> Ipv4Addr {
    text.parse().unwrap()
}

pub fn six(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

/// A configuration to begin with.
pub fn configuration() -> EngineConfig {
    EngineConfig {
        own4: Some(four("45.90.0.254")),
        own6: Some(six("2a00:90::fe")),
        icmp_errors_per_second: 0,
        seed: [0x5eed, 0x1ab],
        ..EngineConfig::default()
    }
}
