//! 6to4 compared with the pseudo-code of RFC 3964 §5, written down word by word: whatever the addresses, both say the same.

use crate::support::{in_ipv4, six_to_four, tunnelling, v6};
use proptest::prelude::*;
use sixway_dataplane::Verdict;
use sixway_dataplane::engine::TunnelConfig;
use sixway_dataplane::mechanism::six_to_four::Role;
use sixway_trial::budget;
use std::net::{Ipv4Addr, Ipv6Addr};

const OWN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 8);
const RELAY: Ipv4Addr = Ipv4Addr::new(192, 88, 99, 1);
/// The network that the gateway is attached to.
const SUBNET: &str = "192.0.2.0/24";

fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let octets = address.octets();
    (octets[..2] == [0x20, 0x02]).then(|| Ipv4Addr::new(octets[2], octets[3], octets[4], octets[5]))
}

/// §5.3.1.
fn ipv4_sanity(address: Ipv4Addr) -> bool {
    let listed = [
        "0.0.0.0/8",
        "10.0.0.0/8",
        "127.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "169.254.0.0/16",
        "224.0.0.0/4",
        "240.0.0.0/4",
    ];
    let shared = "100.64.0.0/10"; // RFC 6598, which is younger
    let holds = |prefix: &str| prefix.parse::<sixway_wire::Prefix4>().unwrap().contains(address);
    let broadcast = [Ipv4Addr::new(192, 0, 2, 255), Ipv4Addr::new(192, 0, 2, 0)];
    !listed.into_iter().any(holds) && !holds(shared) && !broadcast.contains(&address)
}

/// §5.3.2.
fn ipv6_sanity(address: Ipv6Addr) -> bool {
    let listed = ["::/16", "fe80::/10", "fec0::/10", "ff00::/8"];
    let holds = |prefix: &str| prefix.parse::<sixway_wire::Prefix6>().unwrap().contains(address);
    !listed.into_iter().any(holds) && embedded(address).is_none_or(ipv4_sanity)
}

/// §5.2, for an address that is assigned to the router; then what §3.1 and §3.2 say of its role.
fn decapsulates(role: Role, src_v4: Ipv4Addr, src_v6: Ipv6Addr, dst_v6: Ipv6Addr) -> bool {
    let dst_v4 = OWN;
    let from_relay = role != Role::Relay && src_v4 == RELAY;
    if !(ipv4_sanity(src_v4) || from_relay) || src_v4 == OWN || !ipv6_sanity(src_v6) || !ipv6_sanity(dst_v6) {
        return false;
    }
    let source_matches = embedded(src_v6).is_none_or(|embedded| embedded == src_v4);
    let as_section_5_2_says = match (embedded(dst_v6), embedded(src_v6)) {
        (Some(destination), _) => destination == dst_v4 && source_matches,
        (None, Some(_)) => source_matches,
        (None, None) => false,
    };
    as_section_5_2_says
        && match role {
            Role::Relay => embedded(src_v6).is_some(),
            Role::Host | Role::Router => embedded(dst_v6).is_some(),
        }
}

/// §5.1, and the sending rule of RFC 3056 §5.3: the outer destination, if the packet is sent.
fn encapsulates(role: Role, src_v6: Ipv6Addr, dst_v6: Ipv6Addr) -> Option<Ipv4Addr> {
    if !ipv6_sanity(src_v6) || !ipv6_sanity(dst_v6) {
        return None;
    }
    let src_v4 = OWN;
    match (embedded(src_v6), embedded(dst_v6)) {
        (Some(source), _) if source != src_v4 => None,
        (None, None) => None,
        (_, Some(destination)) => (destination != OWN).then_some(destination),
        (Some(_), None) => (role != Role::Relay).then_some(RELAY),
    }
}

fn outer() -> impl Strategy<Value = Ipv4Addr> {
    let some = [
        "192.0.2.8",
        "192.0.2.9",
        "203.0.113.9",
        "192.88.99.1",
        "10.0.0.1",
        "192.168.1.1",
        "172.20.0.1",
        "100.64.0.1",
        "169.254.0.1",
        "127.0.0.1",
        "0.0.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "192.0.2.255",
        "192.0.2.0",
    ];
    prop_oneof![
        4 => prop::sample::select(some.to_vec()).prop_map(|text| text.parse().unwrap()),
        1 => any::<u32>().prop_map(Ipv4Addr::from_bits),
    ]
}

fn inner() -> impl Strategy<Value = Ipv6Addr> {
    let some = [
        "2001:db8::2",
        "2a02:a50::1",
        "64:ff9b::1",
        "fd00::1",
        "::",
        "::1",
        "::192.0.2.9",
        "::ffff:192.0.2.9",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "ff0e::1",
        "0:1::1",
        "2003::1",
        "2001:db9::5efe:203.0.113.9",
    ];
    prop_oneof![
        2 => prop::sample::select(some.to_vec()).prop_map(|text| text.parse().unwrap()),
        3 => (outer(), any::<u16>(), any::<u64>()).prop_map(|(site, subnet, identifier)| {
            let bits = 0x2002 << 112 | u128::from(site.to_bits()) << 80 | u128::from(subnet) << 64;
            Ipv6Addr::from_bits(bits | u128::from(identifier))
        }),
        1 => any::<u128>().prop_map(Ipv6Addr::from_bits),
    ]
}

/// What the pseudo-code does not know: the own address in another tunnel's format (RFC 6324), which chance hardly makes.
fn is_teredo_or_isatap(address: Ipv6Addr) -> bool {
    let bits = address.to_bits();
    bits >> 96 == 0x2001_0000 || bits as u64 >> 32 & 0xfdff_ffff == 0x5efe
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(budget(4_000)))]

    #[test]
    fn the_engine_decides_as_the_pseudo_code_does(
        role in prop::sample::select(vec![Role::Host, Role::Router, Role::Relay]),
        from in prop::option::of(outer()), source in inner(), destination in inner(), matching: bool
    ) {
        prop_assume!(!is_teredo_or_isatap(source) && !is_teredo_or_isatap(destination));
        let mut config = six_to_four(role, "192.0.2.8");
        config.subnets = vec![SUBNET.parse().unwrap()];
        let mut gateway = tunnelling(TunnelConfig::SixToFour(config));
        let packet = v6(&source.to_string(), &destination.to_string()).udp(1, 2, b"data");
        match from {
            Some(from) => {
                // Half of them with the address that the source embeds: by chance hardly any would be.
                let from = embedded(source).filter(|_| matching).unwrap_or(from);
                gateway.receives(in_ipv4(&from.to_string(), "192.0.2.8", packet.clone()));
                prop_assert_eq!(
                    gateway.last == Verdict::Forward, decapsulates(role, from, source, destination),
                    "{:?} {} [{} > {}]: {:?}", role, from, source, destination, gateway.last
                );
                if gateway.last == Verdict::Forward {
                    gateway.sends(packet);
                }
                gateway.sends_nothing();
            }
            None => {
                gateway.receives(packet.clone());
                let expected = encapsulates(role, source, destination);
                prop_assert_eq!(
                    gateway.last == Verdict::Forward, expected.is_some(),
                    "{:?} {} > {}: {:?}", role, source, destination, gateway.last
                );
                if let Some(remote) = expected {
                    gateway.sends_in_ipv4("192.0.2.8", &remote.to_string(), packet);
                }
            }
        }
    }
}
