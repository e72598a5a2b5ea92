//! 6rd: RFC 5969.

use super::bench::{Harness, scene};
use super::packets::{Body, Head, in_tunnel, ipv6};
use super::{check, namespace};
use sixway_dataplane::engine::{EngineConfig, TunnelConfig};
use sixway_dataplane::mechanism::nat64::Nat64Config;
use sixway_dataplane::mechanism::six_rd::{Domain, Role, SixRdConfig};
use sixway_dataplane::nat::PoolConfig;
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use sixway_dataplane::tunnel::TunnelPolicy;

fn outer() -> Head {
    Head { hops: 64, dont_fragment: false, class: 0 }
}

fn head(hops: u8) -> Head {
    Head { hops, ..Head::default() }
}

/// The domain of RFC 5969 section 7.1.1: 2001:db8::/32 for 10/8.
fn part(role: Role, address: &str) -> EngineConfig {
    let config = SixRdConfig {
        domain: Domain::new("2001:db8::/32".parse().unwrap(), "10.0.0.0/8".parse().unwrap()).unwrap(),
        role,
        address: address.parse().unwrap(),
        border_relays: vec!["10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()],
        other_relays: vec!["10.77.0.0/16".parse().unwrap()],
        subnets: vec!["10.5.0.0/16".parse().unwrap()],
        policy: TunnelPolicy::default(),
    };
    EngineConfig {
        tunnels: vec![TunnelConfig::SixRd(config)],
        host4: vec![address.parse().unwrap(), "203.0.113.77".parse().unwrap()],
        ..EngineConfig::default()
    }
}

/// In the site of 10.100.100.1, of 10.9.8.7, and elsewhere.
const SITE: &str = "2001:db8:6464:100::1";
const OTHER: &str = "2001:db8:908:700::1";
const NATIVE: &str = "2001:dba::1";

#[test]
fn a_customer_edge_sends_to_others_and_by_its_border_relay() {
    namespace::in_namespace("edge_out", || {
        let tun = scene(&["2001:db8::/32", "2001:dba::/32"]);
        let mut bench = Harness::new(tun, &part(Role::CustomerEdge, "10.100.100.1"));
        let body = Body::Udp(b"hello".to_vec());
        let sent = |destination, by| {
            let inner = ipv6(SITE, destination, head(63), &body);
            (ipv6(SITE, destination, head(64), &body), Some(in_tunnel("10.100.100.1", by, outer(), inner)))
        };
        let (to_other, by_other) = sent(OTHER, "10.9.8.7");
        let (to_native, by_relay) = sent(NATIVE, "10.0.0.1");
        check(
            &mut bench,
            vec![
                ("to another customer", to_other, by_other),
                ("to a native host", to_native, by_relay),
                ("another's source", ipv6(OTHER, NATIVE, head(64), &body), None),
                ("native source", ipv6("2001:dbb::1", OTHER, head(64), &body), None),
                ("own site", ipv6(SITE, "2001:db8:6464:100::2", head(64), &body), None),
                ("broadcast address", ipv6(SITE, "2001:db8:5ff:ff00::1", head(64), &body), None),
            ],
        );
    });
}

#[test]
fn a_customer_edge_takes_from_others_and_from_border_relays() {
    namespace::in_namespace("edge_in", || {
        let hosts = "2001:db8:6464:100::/56 via 2001:db8:ff09::2";
        let tun = scene(&["2001:db8::/32", hosts]);
        let mut bench = Harness::new(tun, &part(Role::CustomerEdge, "10.100.100.1"));
        let body = Body::Tcp(0x10, b"hello".to_vec());
        let came = |from, source, destination| {
            in_tunnel(from, "10.100.100.1", Head::default(), ipv6(source, destination, head(64), &body))
        };
        let taken = |source| Some(ipv6(source, SITE, head(63), &body));
        check(
            &mut bench,
            vec![
                ("from another customer", came("10.9.8.7", OTHER, SITE), taken(OTHER)),
                ("from the border relay", came("10.0.0.1", NATIVE, SITE), taken(NATIVE)),
                ("from the second one", came("10.0.0.2", NATIVE, SITE), taken(NATIVE)),
                ("a customer's, from a relay", came("10.0.0.1", OTHER, SITE), taken(OTHER)),
                ("spoofed", came("10.9.8.6", OTHER, SITE), None),
                ("native, not from a relay", came("10.9.8.7", NATIVE, SITE), None),
                ("to another site", came("10.9.8.7", OTHER, "2001:db8:908:600::1"), None),
                ("to a native host", came("10.9.8.7", OTHER, NATIVE), None),
            ],
        );
    });
}

#[test]
fn a_border_relay_stands_between_the_domain_and_native_hosts() {
    namespace::in_namespace("border_relay", || {
        let mut bench = Harness::new(scene(&["2001:db8::/32"]), &part(Role::BorderRelay, "10.0.0.1"));
        let body = Body::Udp(b"hello".to_vec());
        let came = |from, source, destination| {
            in_tunnel(from, "10.0.0.1", Head::default(), ipv6(source, destination, head(64), &body))
        };
        let to = |destination| ipv6(NATIVE, destination, head(64), &body);
        let sent = in_tunnel("10.0.0.1", "10.9.8.7", outer(), ipv6(NATIVE, OTHER, head(63), &body));
        check(
            &mut bench,
            vec![
                ("to a customer", to(OTHER), Some(sent)),
                ("to a relay", to("2001:db8:0:200::1"), None),
                ("to a relay of another kind", to("2001:db8:4d01:100::1"), None),
                ("to this host", to("2001:db8:0:100::1"), None),
                ("own address in the source", ipv6("2002:cb00:714d::1", OTHER, head(64), &body), None),
                (
                    "from a customer",
                    came("10.9.8.7", OTHER, NATIVE),
                    Some(ipv6(OTHER, NATIVE, head(63), &body)),
                ),
                ("spoofed", came("10.9.8.6", OTHER, NATIVE), None),
                ("native source", came("10.9.8.7", "2001:dbb::1", NATIVE), None),
                ("from a relay", came("10.77.1.1", "2001:db8:4d01:100::1", NATIVE), None),
                ("own address in another format", came("10.9.8.7", OTHER, "2002:cb00:714d::1"), None),
                // It goes back into the tunnel, which the kernel does.
                ("to another customer", came("10.9.8.7", OTHER, SITE), None),
            ],
        );
    });
}

#[test]
fn a_source_under_the_nat64s_prefix_is_left_to_the_engine() {
    namespace::in_namespace("edge_nat64", || {
        let hosts = "2001:db8:6464:100::/56 via 2001:db8:ff09::2";
        let mut config = part(Role::CustomerEdge, "10.100.100.1");
        let prefix = Rfc6052::new("64:ff9b::/96".parse().unwrap(), true).unwrap();
        let pool = PoolConfig { addresses: vec!["192.0.2.0/30".parse().unwrap()], ports: vec![1..=65_535] };
        config.nat64.push(Nat64Config::new(prefix, pool));
        let mut bench = Harness::new(scene(&["2001:db8::/32", hosts]), &config);
        let body = Body::Udp(b"hello".to_vec());
        let came = |source| {
            in_tunnel("10.0.0.1", "10.100.100.1", Head::default(), ipv6(source, SITE, head(64), &body))
        };
        check(
            &mut bench,
            vec![
                ("a native host's", came(NATIVE), Some(ipv6(NATIVE, SITE, head(63), &body))),
                ("of the prefix", came("64:ff9b::203.0.113.7"), None),
            ],
        );
    });
}
