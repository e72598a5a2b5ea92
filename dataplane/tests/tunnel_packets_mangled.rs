//! Tunnel packets with octets changed, cut off and added, at a gateway with tunnels of every kind: it accounts for each of them,
//! and never sends more than came in.

use crate::support;
use crate::support::{Build, Gateway, configured, icmp4, icmp6, in_ipv4, v4, v6};
use proptest::prelude::*;
use sixway_dataplane::direction::Direction;
use sixway_dataplane::engine::TunnelConfig;
use sixway_dataplane::mechanism::ip_in_ip::IpInIpConfig;
use sixway_dataplane::mechanism::table::Kind;
use sixway_dataplane::mechanism::{isatap, six_rd, six_to_four};
use sixway_dataplane::tunnel::{OuterFragments, TunnelMtu, TunnelPolicy};
use sixway_dataplane::{Checksum, Offload, SegmentKind, Segments};
use sixway_trial::budget;

/// Two tunnels at each of two addresses.
fn gateway() -> Gateway {
    let mut domain = support::six_rd(six_rd::Role::BorderRelay, "192.0.2.9");
    domain.domain =
        six_rd::Domain::new("2001:ddd::/32".parse().unwrap(), "0.0.0.0/0".parse().unwrap()).unwrap();
    let relay = support::six_to_four(six_to_four::Role::Relay, "192.88.99.1");
    let link = support::isatap(isatap::Role::Router, "192.88.99.1");
    support::gateway(|config| {
        config.tunnels = vec![
            TunnelConfig::Configured(configured()),
            TunnelConfig::SixRd(domain),
            TunnelConfig::SixToFour(relay),
            TunnelConfig::Isatap(link),
        ];
        config.host4 = vec!["203.0.113.77".parse().unwrap()];
    })
}

/// Packets that pass.
fn good() -> Vec<Vec<u8>> {
    let ends = [
        ("192.0.2.9", "198.51.100.7", "2001:db8:7::1"),
        ("192.0.2.9", "203.0.113.9", "2001:ddd:cb00:7109::1"),
        ("192.88.99.1", "203.0.113.9", "2002:cb00:7109::1"),
        ("192.88.99.1", "10.1.2.3", "2001:db8:1:2::5efe:10.1.2.3"),
    ];
    let server = "2001:4860::8";
    let mut packets = Vec::new();
    for (local, remote, far) in ends {
        let inward = v6(far, server).udp(1, 2, &[7; 64]);
        let outward = v6(server, far).tcp(1, 2, 2, &[7; 64]);
        let whole = in_ipv4(remote, local, inward.clone());
        let quote = in_ipv4(local, remote, outward.clone()).octets();
        packets.extend([
            whole.octets(),
            whole.clone().fragment(9, 0, true).part(0, 64).octets(),
            whole.fragment(9, 64, false).part(64, 112).octets(),
            v4("198.18.0.1", local).icmp(icmp4(3, 1, [0; 4], &quote)).octets(),
            v4("198.18.0.1", local).icmp(icmp4(3, 4, [0, 0, 5, 0], &quote[..64])).octets(),
            outward.octets(),
        ]);
    }
    packets
}

/// The outer header's checksum, made right again.
fn seal(octets: &mut [u8]) {
    if let Some(header) = octets.first_chunk_mut::<20>()
        && header[0] == 0x45
    {
        header[10..12].copy_from_slice(&[0, 0]);
        let mut sum: u32 =
            header.as_chunks::<2>().0.iter().map(|pair| u32::from(u16::from_be_bytes(*pair))).sum();
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        header[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(budget(1_000)))]

    #[test]
    fn whatever_is_done_to_tunnel_packets_they_are_accounted_for_and_grow_into_no_more(
        mangled in prop::collection::vec(
            (any::<prop::sample::Index>(), prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
             prop::option::weighted(0.2, any::<prop::sample::Index>()), 0usize..9, prop::bool::weighted(0.8)),
            1..20
        )
    ) {
        let (mut gateway, good) = (gateway(), good());
        let (mut received, mut sent) = (0, 0);
        for (which, changes, cut, more, sealed) in mangled {
            let mut octets = which.get(&good).clone();
            for (at, value) in changes {
                let at = at.index(octets.len());
                octets[at] = value;
            }
            if let Some(cut) = cut {
                octets.truncate(cut.index(octets.len()));
            }
            octets.extend(vec![0xee; more]);
            if sealed {
                seal(&mut octets);
            }
            received += octets.len();
            // The support's gateway sees that all frames are accounted for.
            gateway.receives(octets);
            let before = sent;
            while gateway.waiting() > 0 {
                sent += gateway.sent().len();
            }
            // An answer is an ICMP header and an IPv6 header more than what it is about.
            prop_assert!(sent - before <= received + 48, "{} octets made of {}", sent - before, received);
        }
    }
}

#[test]
fn what_is_mangled_here_would_pass() {
    let mut gateway = gateway();
    for packet in good() {
        gateway.receives(packet);
        while gateway.waiting() > 0 {
            gateway.sent();
        }
    }
    let counters = gateway.engine.counters();
    assert_eq!(counters.tunnel_errors_relayed, 4, "{counters:?}");
    let tunnels = [Kind::Configured, Kind::SixRd, Kind::SixToFour, Kind::Isatap];
    let passed = |way| tunnels.map(|kind| counters.passed[kind as usize][way as usize]);
    assert_eq!(passed(Direction::In), [2; 4], "whole, and of two fragments");
    assert_eq!(passed(Direction::Out).iter().sum::<u64>(), 4);
}

/// Tunnels of IP in IP behind which everything is.
fn ip_in_ip(mut edit: impl FnMut(&mut IpInIpConfig)) -> Gateway {
    let mut config = |local: &str, remote: &str, prefixes6: &[&str]| {
        let mut config = IpInIpConfig {
            local: local.parse().unwrap(),
            remote: remote.parse().ok(),
            prefixes4: vec!["0.0.0.0/0".parse().unwrap()],
            prefixes6: prefixes6.iter().map(|prefix| prefix.parse().unwrap()).collect(),
            strict_sources: true,
            policy: TunnelPolicy::default(),
        };
        edit(&mut config);
        TunnelConfig::IpInIp(config)
    };
    let tunnels = [config(LOCAL6, REMOTE6, &["::/0"]), config("192.0.2.9", "198.51.100.7", &[])];
    support::gateway(|config| config.tunnels.extend(tunnels))
}

const LOCAL6: &str = "2001:db8:ff::9";
const REMOTE6: &str = "2001:db8:ff::7";

/// Packets that pass through them.
fn good_ip_in_ip() -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let in6 = [LOCAL6, REMOTE6];
    for ([local, remote], protocol) in [(in6, 41), (in6, 4), (["192.0.2.9", "198.51.100.7"], 4)] {
        let is_v6 = local.contains(':');
        let wrap = |from: &str, to: &str, inner: &Build| {
            let limit = [0, 0, 4, 1, 4, 1, 1, 0];
            let outer = if is_v6 { v6(from, to).extension(60, &limit) } else { v4(from, to) };
            outer.protocol(protocol, &inner.octets(), None)
        };
        let pair = |from: &str, to: &str| if protocol == 41 { v6(from, to) } else { v4(from, to) };
        let [here, far] =
            if protocol == 41 { ["2001:db8:1::1", "2001:db8:7::1"] } else { ["10.1.0.1", "10.7.0.1"] };
        let whole = wrap(remote, local, &pair(far, here).udp(1, 2, &[7; 64]));
        let length = if protocol == 41 { 112 } else { 92 };
        let outward = pair(here, far).tcp(1, 2, 2, &[7; 64]);
        let quote = wrap(local, remote, &outward).octets();
        let error = |kind: u8, code: u8, rest: [u8; 4], quote: &[u8]| {
            let from = if is_v6 { v6("2001:db8:ff::1", local) } else { v4("198.18.0.1", local) };
            from.icmp(if is_v6 { icmp6(kind, code, rest, quote) } else { icmp4(kind, code, rest, quote) })
                .octets()
        };
        packets.extend([
            whole.octets(),
            whole.clone().fragment(9, 0, true).part(0, 64).octets(),
            whole.fragment(9, 64, false).part(64, length).octets(),
            error(if is_v6 { 1 } else { 3 }, if is_v6 { 0 } else { 1 }, [0; 4], &quote),
            if is_v6 { error(2, 0, [0, 0, 5, 20], &quote) } else { error(3, 4, [0, 0, 5, 0], &quote[..28]) },
            outward.octets(),
        ]);
    }
    packets
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(budget(2_000)))]

    #[test]
    fn the_same_of_tunnels_of_ip_in_ip_with_any_offload(
        mangled in prop::collection::vec(
            (any::<prop::sample::Index>(), prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
             prop::option::weighted(0.2, any::<prop::sample::Index>()), 0usize..9, prop::bool::weighted(0.8),
             any::<[u16; 3]>()),
            1..20
        ),
        mtu in prop_oneof![any::<u16>().prop_map(TunnelMtu::Static), Just(TunnelMtu::Dynamic)], limit in any::<Option<u8>>(),
        is_never_cut in any::<bool>(),
    ) {
        let outer_fragments = if is_never_cut { OuterFragments::Never } else { OuterFragments::Allowed };
        let mut gateway = ip_in_ip(|config| {
            config.policy = TunnelPolicy { mtu, encapsulation_limit: limit, outer_fragments, ..config.policy };
        });
        let good = good_ip_in_ip();
        for (which, changes, cut, more, sealed, [kind, size, transport]) in mangled {
            let mut octets = which.get(&good).clone();
            for (at, value) in changes {
                let at = at.index(octets.len());
                octets[at] = value;
            }
            if let Some(cut) = cut {
                octets.truncate(cut.index(octets.len()));
            }
            octets.extend(vec![0xee; more]);
            if sealed {
                seal(&mut octets);
            }
            let kind = [None, None, Some(SegmentKind::Tcp), Some(SegmentKind::Udp)][usize::from(kind) % 4];
            let segments = kind.map(|kind| Segments { size: size % 100, kind });
            let checksum = if size % 2 == 0 { Checksum::Partial } else { Checksum::Complete };
            gateway.receives_with(octets, Offload { checksum, segments, transport: transport % 90 });
            while gateway.waiting() > 0 {
                prop_assert!(gateway.sent().len() <= 1_500);
            }
        }
    }
}

#[test]
fn what_is_mangled_of_ip_in_ip_would_pass() {
    let mut gateway = ip_in_ip(|_| {});
    for packet in good_ip_in_ip() {
        gateway.receives(packet);
        while gateway.waiting() > 0 {
            gateway.sent();
        }
    }
    let counters = gateway.engine.counters();
    assert_eq!(counters.tunnel_errors_relayed, 3, "{counters:?}");
    let passed = counters.passed[Kind::IpInIp as usize];
    assert_eq!((passed[Direction::In as usize], passed[Direction::Out as usize]), (6, 3), "{counters:?}");
}
