//! 6to4: RFC 3056, RFC 3964, RFC 6324.

use super::bench::{Harness, scene};
use super::packets::{Body, Head, in_tunnel, ipv6};
use super::{check, namespace};
use sixway_dataplane::engine::{EngineConfig, TunnelConfig};
use sixway_dataplane::mechanism::six_to_four::{NativeSources, Role, SixToFourConfig};
use sixway_dataplane::tunnel::{Ecn, TunnelPolicy};

/// What the fast path writes for an outer header.
fn outer() -> Head {
    Head { hops: 64, dont_fragment: false, class: 0 }
}

fn head(hops: u8) -> Head {
    Head { hops, ..Head::default() }
}

fn relay() -> EngineConfig {
    let relay = SixToFourConfig {
        role: Role::Relay,
        address: "192.0.2.1".parse().unwrap(),
        nat_address: None,
        relay: None,
        native_sources: NativeSources::AnyRelay,
        subnets: vec!["198.51.100.0/24".parse().unwrap()],
        policy: TunnelPolicy { ecn: Ecn::Normal, ..TunnelPolicy::default() },
    };
    EngineConfig {
        tunnels: vec![TunnelConfig::SixToFour(relay)],
        host4: vec!["192.0.2.1".parse().unwrap(), "203.0.113.77".parse().unwrap()],
        host6: vec!["2001:db8:ff08::1".parse().unwrap()],
        ..EngineConfig::default()
    }
}

const NATIVE: &str = "2001:db8:b::1";
const SITE: &str = "2002:c633:6408::1";

#[test]
fn a_relay_sends_to_sites_what_native_hosts_say() {
    namespace::in_namespace("relay_out", || {
        let mut bench = Harness::new(scene(&["2002::/16"]), &relay());
        let body = Body::Udp(b"hello".to_vec());
        let out = |inner: Vec<u8>| Some(in_tunnel("192.0.2.1", "198.51.100.8", outer(), inner));
        let plain = ipv6(NATIVE, SITE, head(63), &body);
        let class = |hops| Head { class: 0xb9, hops, ..Head::default() };
        let marked = in_tunnel(
            "192.0.2.1",
            "198.51.100.8",
            Head { class: 0xb9, ..outer() },
            ipv6(NATIVE, SITE, class(8), &body),
        );
        let to = |destination| ipv6(NATIVE, destination, head(64), &body);
        let from = |source| ipv6(source, SITE, head(64), &body);
        let most = Body::Udp(vec![0; 1_232]);
        check(
            &mut bench,
            vec![
                ("to a site", ipv6(NATIVE, SITE, head(64), &body), out(plain)),
                ("marks", ipv6(NATIVE, SITE, class(9), &body), Some(marked)),
                (
                    "echo",
                    ipv6(NATIVE, SITE, head(64), &Body::Echo(true, vec![1])),
                    out(ipv6(NATIVE, SITE, head(63), &Body::Echo(true, vec![1]))),
                ),
                (
                    "1,280 octets",
                    ipv6(NATIVE, SITE, head(64), &most),
                    out(ipv6(NATIVE, SITE, head(63), &most)),
                ),
                ("more", ipv6(NATIVE, SITE, head(64), &Body::Udp(vec![0; 1_233])), None),
                ("hop limit", ipv6(NATIVE, SITE, head(1), &body), None),
                (
                    "SYN",
                    ipv6(NATIVE, SITE, head(64), &Body::syn(1_440)),
                    out(ipv6(NATIVE, SITE, head(63), &Body::syn(1_220))),
                ),
                ("private site", to("2002:0a00:0001::1"), None),
                ("martian site", to("2002:7f00:0001::1"), None),
                ("broadcast address", to("2002:c633:64ff::1"), None),
                ("this host", to("2002:cb00:714d::1"), None),
                ("own site", to("2002:c000:201::1"), None),
                ("not routed to us", to("2001:db8:c::1"), None),
                ("another site's source", from("2002:c633:6409::1"), None),
                ("own address as source", from("2001:db8::5efe:192.0.2.1"), None),
                ("site-local source", from("fec0::1"), None),
            ],
        );
    });
}

#[test]
fn a_relay_takes_from_sites_what_is_for_native_hosts() {
    namespace::in_namespace("relay_in", || {
        let mut bench = Harness::new(scene(&["2002::/16"]), &relay());
        let body = Body::Udp(b"hello".to_vec());
        let inner = ipv6(SITE, NATIVE, head(64), &body);
        let came = |from, inner: Vec<u8>| in_tunnel(from, "192.0.2.1", Head::default(), inner);
        let marked = |class| {
            in_tunnel(
                "198.51.100.8",
                "192.0.2.1",
                Head { class, ..Head::default() },
                ipv6(SITE, NATIVE, Head { class: 0xba, ..head(9) }, &body),
            )
        };
        let taken = |class| Some(ipv6(SITE, NATIVE, Head { class, ..head(8) }, &body));
        let from = |source| came("198.51.100.8", ipv6(source, NATIVE, head(64), &body));
        let to = |destination| came("198.51.100.8", ipv6(SITE, destination, head(64), &body));
        let longer = [inner.clone(), vec![0; 3]].concat();
        check(
            &mut bench,
            vec![
                (
                    "from a site",
                    came("198.51.100.8", inner.clone()),
                    Some(ipv6(SITE, NATIVE, head(63), &body)),
                ),
                ("ECT(0) inside, CE outside", marked(3), taken(0xbb)),
                ("ECT(0) inside, ECT(1) outside", marked(1), taken(0xb9)),
                ("ECT(0) inside, nothing outside", marked(0), taken(0xba)),
                ("padding in the packet", came("198.51.100.8", longer), None),
                ("another's site", came("198.51.100.9", inner.clone()), None),
                (
                    "this host sent it",
                    came("203.0.113.77", ipv6("2002:cb00:714d::1", NATIVE, head(64), &body)),
                    None,
                ),
                ("private site", came("10.0.0.1", ipv6("2002:0a00:0001::1", NATIVE, head(64), &body)), None),
                (
                    "broadcast address",
                    came("198.51.100.255", ipv6("2002:c633:64ff::1", NATIVE, head(64), &body)),
                    None,
                ),
                ("native source", from("2001:db8:c::1"), None),
                ("to another site", to("2002:c633:6409::1"), None),
                ("own address inside", to("2001:db8::5efe:192.0.2.1"), None),
                ("to this host", to("2001:db8:ff08::1"), None),
                ("link-local", to("fe80::1"), None),
                ("hop limit", came("198.51.100.8", ipv6(SITE, NATIVE, head(1), &body)), None),
                (
                    "another address of ours",
                    in_tunnel("198.51.100.8", "203.0.113.77", Head::default(), inner.clone()),
                    None,
                ),
                (
                    "SYN",
                    came("198.51.100.8", ipv6(SITE, NATIVE, head(64), &Body::syn(1_440))),
                    Some(ipv6(SITE, NATIVE, head(63), &Body::syn(1_220))),
                ),
                (
                    "neighbour solicitation",
                    came("198.51.100.8", ipv6(SITE, NATIVE, head(255), &Body::Icmp(0, 135))),
                    None,
                ),
                ("not IPv6", came("198.51.100.8", vec![0x45; 40]), None),
                ("short", came("198.51.100.8", inner[..30].to_vec()), None),
            ],
        );
    });
}
