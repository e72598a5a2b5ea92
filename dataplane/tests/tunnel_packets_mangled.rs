//! Tunnel packets with octets changed, cut off and added, at a gateway with tunnels of every kind: it accounts for each of them,
//! and never sends more than came in.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod support;

use proptest::prelude::*;
use sixway_dataplane::engine::TunnelConfig;
use sixway_dataplane::mechanism::table::{Kind, Way};
use sixway_dataplane::mechanism::{isatap, six_rd, six_to_four};
use support::{Gateway, configured, icmp4, in_ipv4, v4, v6};

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
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

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
    assert_eq!(passed(Way::In), [2; 4], "whole, and of two fragments");
    assert_eq!(passed(Way::Out).iter().sum::<u64>(), 4);
}
