//! SIIT: RFC 6052, RFC 7757, RFC 7915.

use super::bench::{Harness, scene};
use super::packets::{Body, Head, ipv4, ipv6};
use super::{Example, check, namespace};
use sixway_dataplane::engine::EngineConfig;
use sixway_dataplane::mechanism::siit::dynamic_pool::DynamicPoolConfig;
use sixway_dataplane::mechanism::siit::{Hairpinning, SiitConfig};
use sixway_dataplane::translate::address::{EamTable, Rfc6052};
use std::sync::Arc;

fn prefix(text: &str) -> Option<Rfc6052> {
    Some(Rfc6052::new(text.parse().unwrap(), false).unwrap())
}

fn table(rows: &[(&str, &str)]) -> Arc<EamTable> {
    let rows = rows.iter().map(|(four, six)| (four.parse().unwrap(), six.parse().unwrap()));
    Arc::new(EamTable::new(rows).unwrap())
}

fn engine(siit: SiitConfig) -> EngineConfig {
    EngineConfig { siit: vec![siit], ..EngineConfig::default() }
}

fn head(hops: u8) -> Head {
    Head { hops, ..Head::default() }
}

/// IPv4 packets made from IPv6 packets of up to 1,280 octets.
fn small(hops: u8) -> Head {
    Head { hops, dont_fragment: false, ..Head::default() }
}

const ROUTES: [&str; 5] = [
    "64:ff9b::/96",
    "2001:db8:64::/48",
    "198.51.100.0/24",
    "203.0.113.0/24",
    // Hosts whose addresses are translatable by the prefix (RFC 6052 section 2.3).
    "2001:db8:64::198.51.100.0/120 via 2001:db8:ff09::2",
];

/// Examples of both ways between 2001:db8:64::/96 and itself.
fn plain() -> Vec<Example> {
    let (a6, b6) = ("2001:db8:64::c633:6401", "2001:db8:64::808:808");
    let (a4, b4) = ("198.51.100.1", "8.8.8.8");
    let mut all = Vec::new();
    for body in [
        Body::Udp(b"hello".to_vec()),
        Body::Tcp(0x18, b"hello!".to_vec()),
        Body::Echo(true, b"ping".to_vec()),
        Body::Echo(false, b"pong".to_vec()),
        Body::Udp(vec![7; 1_232]),
    ] {
        all.push(("v6 to v4", ipv6(a6, b6, head(64), &body), Some(ipv4(a4, b4, small(63), &body))));
        all.push(("v4 to v6", ipv4(b4, a4, head(64), &body), Some(ipv6(b6, a6, head(63), &body))));
        all.push(("v4 to v6, DF clear", ipv4(b4, a4, small(64), &body), Some(ipv6(b6, a6, head(63), &body))));
    }
    let large = Body::Udp(vec![7; 1_400]);
    all.push(("DF above 1,280", ipv6(a6, b6, head(64), &large), Some(ipv4(a4, b4, head(63), &large))));
    all.push(("DF set", ipv4(b4, a4, head(64), &large), Some(ipv6(b6, a6, head(63), &large))));
    all.push(("would be cut", ipv4(b4, a4, small(64), &large), None));
    all.push(("too big", ipv4(b4, a4, head(64), &Body::Udp(vec![7; 1_460])), None));
    let class = Head { class: 0xb9, ..head(9) };
    let small_class = Head { class: 0xb9, ..small(8) };
    let body = Body::Udp(vec![1]);
    all.push(("class", ipv6(a6, b6, class, &body), Some(ipv4(a4, b4, small_class, &body))));
    for (name, body) in [
        ("late MSS option", Body::Syn(vec![1, 2, 4, 5, 0x78, 1, 1, 1])),
        ("MSS option that says nothing", Body::syn(65_535)),
        ("no checksum", Body::Unchecked(vec![1, 2])),
        ("an ICMP error", Body::Icmp(3, 1)),
        ("timestamp, neighbour solicitation", Body::Icmp(13, 135)),
        ("another protocol", Body::Other(132, vec![0; 20])),
    ] {
        all.push((name, ipv6(a6, b6, head(64), &body), None));
        all.push((name, ipv4(b4, a4, head(64), &body), None));
    }
    for (name, body, result) in [
        ("SYN", Body::Tcp(2, vec![]), Body::Tcp(2, vec![])),
        ("FIN", Body::Tcp(0x11, vec![]), Body::Tcp(0x11, vec![])),
        ("RST", Body::Tcp(4, vec![]), Body::Tcp(4, vec![])),
        ("MSS 1,460", Body::syn(1_460), Body::syn(1_440)),
        ("MSS 1,440", Body::syn(1_440), Body::syn(1_440)),
        ("MSS 536", Body::syn(536), Body::syn(536)),
    ] {
        all.push((name, ipv6(a6, b6, head(64), &body), Some(ipv4(a4, b4, small(63), &result))));
        all.push((name, ipv4(b4, a4, head(64), &body), Some(ipv6(b6, a6, head(63), &result))));
    }
    for hops in [0, 1] {
        all.push(("hop limit", ipv6(a6, b6, head(hops), &body), None));
        all.push(("TTL", ipv4(b4, a4, head(hops), &body), None));
    }
    all.push(("least hop limit", ipv6(a6, b6, head(2), &body), Some(ipv4(a4, b4, small(1), &body))));
    all
}

fn by_address(body: &Body) -> Vec<Example> {
    let (a6, b6) = ("2001:db8:64::c633:6401", "2001:db8:64::808:808");
    let to = |destination| ipv6(a6, destination, head(64), body);
    let from = |source| ipv6(source, b6, head(64), body);
    vec![
        ("martian destination", to("2001:db8:64::7f00:1"), None),
        ("destination 0/8", to("2001:db8:64::1"), None),
        ("multicast destination", to("2001:db8:64::e000:1"), None),
        ("martian source", from("2001:db8:64::7f00:1"), None),
        ("unmapped source", from("2001:db8:65::1"), None),
        ("link-local source", from("fe80::1"), None),
        ("IPv4-mapped source", from("::ffff:198.51.100.1"), None),
        ("not routed to us", to("2001:db8:65::1"), None),
        ("multicast", to("ff0e::1"), None),
        ("not routed to us, IPv4", ipv4("8.8.8.8", "9.9.9.9", head(64), body), None),
        ("this host's source", ipv4("10.255.8.1", "198.51.100.1", head(64), body), None),
        ("martian IPv4 source", ipv4("127.0.0.1", "198.51.100.1", head(64), body), None),
        ("to this host", ipv4("8.8.8.8", "10.255.8.1", head(64), body), None),
    ]
}

#[test]
fn rfc_6052_both_ways() {
    namespace::in_namespace("rfc_6052", || {
        let siit = SiitConfig { prefix: prefix("2001:db8:64::/96"), ..SiitConfig::default() };
        let mut bench = Harness::new(scene(&ROUTES), &engine(siit));
        check(&mut bench, plain());
        check(&mut bench, by_address(&Body::Udp(b"x".to_vec())));
    });
}

/// RFC 6052 section 2.4: 192.0.2.33 under prefixes of every length.
#[test]
fn every_length_of_rfc_6052() {
    namespace::in_namespace("lengths", || {
        for (length, site) in [
            ("2001:db8::/32", "2001:db8:c000:221::"),
            ("2001:db8:100::/40", "2001:db8:1c0:2:21::"),
            ("2001:db8:122::/48", "2001:db8:122:c000:2:2100::"),
            ("2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"),
            ("2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100::"),
            ("2001:db8:122:344::/96", "2001:db8:122:344::192.0.2.33"),
        ] {
            let siit = SiitConfig {
                prefix: prefix(length),
                eam: table(&[("198.51.100.1", "2001:db8:aaaa::1")]),
                ..SiitConfig::default()
            };
            let hosts = "2001:db8:aaaa::/64 via 2001:db8:ff09::2";
            let tun = scene(&[length, "198.51.100.0/24", hosts]);
            let mut bench = Harness::new(tun, &engine(siit));
            let body = Body::Echo(true, vec![1, 2, 3]);
            let six = ipv6("2001:db8:aaaa::1", site, head(64), &body);
            let four = ipv4("192.0.2.33", "198.51.100.1", head(64), &body);
            check(
                &mut bench,
                vec![
                    ("out", six, Some(ipv4("198.51.100.1", "192.0.2.33", small(63), &body))),
                    ("in", four, Some(ipv6(site, "2001:db8:aaaa::1", head(63), &body))),
                ],
            );
            drop(bench);
            for device in ["port", "far"] {
                namespace::ip(&format!("link del {device}"));
            }
        }
    });
}

#[test]
fn the_well_known_prefix_stands_for_global_addresses_alone() {
    namespace::in_namespace("well_known", || {
        let siit = SiitConfig {
            prefix: prefix("64:ff9b::/96"),
            eam: table(&[("198.51.100.1", "2001:db8:aaaa::1")]),
            ..SiitConfig::default()
        };
        let mut bench = Harness::new(scene(&ROUTES), &engine(siit));
        let body = Body::Udp(b"x".to_vec());
        let to = |four: &str| ipv6("2001:db8:aaaa::1", &format!("64:ff9b::{four}"), head(64), &body);
        let from = |four: &str| ipv4(four, "198.51.100.1", head(64), &body);
        let mut examples = vec![
            ("global", to("8.8.8.8"), Some(ipv4("198.51.100.1", "8.8.8.8", small(63), &body))),
            ("global", from("8.8.8.8"), Some(ipv6("64:ff9b::8.8.8.8", "2001:db8:aaaa::1", head(63), &body))),
        ];
        for row in sixway_dataplane::translate::address::non_global::NON_GLOBAL {
            for address in [row.block.address(), row.block.last()] {
                examples.push((row.purpose, to(&address.to_string()), None));
                examples.push((row.purpose, from(&address.to_string()), None));
            }
        }
        for edge in [
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "198.17.255.255",
            "198.20.0.0",
        ] {
            examples.push((edge, to(edge), Some(ipv4("198.51.100.1", edge, small(63), &body))));
        }
        check(&mut bench, examples);
    });
}

/// RFC 7757 section 3.1, Figure 3, and its examples.
#[test]
fn explicit_mappings_both_ways() {
    namespace::in_namespace("mappings", || {
        let rows = [
            ("192.0.2.1", "2001:db8:aaaa::"),
            ("192.0.2.2/32", "2001:db8:bbbb::b"),
            ("192.0.2.16/28", "2001:db8:cccc::/124"),
            ("192.0.2.128/26", "2001:db8:dddd::/64"),
            ("192.0.2.192/29", "2001:db8:eeee:8::/62"),
            ("192.0.2.224/31", "64:ff9b::/127"),
        ];
        let siit =
            SiitConfig { prefix: prefix("2001:db8:64::/96"), eam: table(&rows), ..SiitConfig::default() };
        let routes = ["2001:db8:64::/96", "192.0.2.0/24"];
        let mut bench = Harness::new(scene(&routes), &engine(siit));
        let body = Body::Tcp(0x10, vec![1, 2, 3]);
        let host6 = "2001:db8:64::8.8.8.8";
        let mut examples = Vec::new();
        for (four, six) in [
            ("192.0.2.1", "2001:db8:aaaa::"),
            ("192.0.2.2", "2001:db8:bbbb::b"),
            ("192.0.2.16", "2001:db8:cccc::"),
            ("192.0.2.24", "2001:db8:cccc::8"),
            ("192.0.2.31", "2001:db8:cccc::f"),
            ("192.0.2.128", "2001:db8:dddd::"),
            ("192.0.2.152", "2001:db8:dddd:0:6000::"),
            ("192.0.2.183", "2001:db8:dddd:0:dc00::"),
            ("192.0.2.195", "2001:db8:eeee:9:8000::"),
            ("192.0.2.225", "64:ff9b::1"),
        ] {
            let out = Some(ipv4(four, "8.8.8.8", small(63), &body));
            examples.push((four, ipv6(six, host6, head(64), &body), out));
            let back = Some(ipv6(host6, six, head(63), &body));
            examples.push((six, ipv4("8.8.8.8", four, head(64), &body), back));
        }
        examples.push((
            "both ends of the table, by prefix: the translator turns it around",
            ipv6("2001:db8:aaaa::", "2001:db8:64::192.0.2.2", head(64), &body),
            None,
        ));
        examples.push((
            "both ends of the table, by table",
            ipv6("2001:db8:aaaa::", "2001:db8:bbbb::b", head(64), &body),
            // It is not routed to us.
            None,
        ));
        check(&mut bench, examples);
    });
}

#[test]
fn hosts_of_the_dynamic_pool_are_the_engines() {
    namespace::in_namespace("pool", || {
        let siit = SiitConfig {
            prefix: prefix("2001:db8:64::/96"),
            eam: table(&[("198.51.100.1", "2001:db8:aaaa::1")]),
            dynamic_pool: Some(DynamicPoolConfig::new("203.0.113.0/24".parse().unwrap())),
            ..SiitConfig::default()
        };
        let mut bench = Harness::new(scene(&ROUTES), &engine(siit));
        let body = Body::Udp(vec![1]);
        let mapped = ipv6("2001:db8:aaaa::1", "2001:db8:64::8.8.8.8", head(64), &body);
        check(
            &mut bench,
            vec![
                ("mapped", mapped, Some(ipv4("198.51.100.1", "8.8.8.8", small(63), &body))),
                ("from a host", ipv6("2001:db8:bbbb::1", "2001:db8:64::8.8.8.8", head(64), &body), None),
                ("to a host", ipv4("8.8.8.8", "203.0.113.7", head(64), &body), None),
                ("between", ipv6("2001:db8:aaaa::1", "2001:db8:64::203.0.113.7", head(64), &body), None),
            ],
        );
    });
}

/// RFC 7757 section 4.2.1: the table is not asked for sources from IPv4.
#[test]
fn simple_hairpinning_maps_sources_by_the_prefix() {
    namespace::in_namespace("simple", || {
        let rows = [("198.51.100.1", "2001:db8:aaaa::1"), ("198.51.100.2", "2001:db8:aaaa::2")];
        let siit = SiitConfig {
            prefix: prefix("2001:db8:64::/96"),
            eam: table(&rows),
            hairpinning: Hairpinning::Simple,
            ..SiitConfig::default()
        };
        let mut bench = Harness::new(scene(&ROUTES), &engine(siit));
        let body = Body::Udp(vec![1]);
        let packet = ipv4("198.51.100.2", "198.51.100.1", head(64), &body);
        let result = ipv6("2001:db8:64::198.51.100.2", "2001:db8:aaaa::1", head(63), &body);
        check(&mut bench, vec![("between hosts of the table", packet, Some(result))]);
    });
}

/// RFC 6864 section 7: who compares the identifications of its own packets learns nothing of others'.
#[test]
fn packets_to_others_hardly_ever_move_a_destinations_identifications() {
    namespace::in_namespace("identified", || {
        let siit = SiitConfig { prefix: prefix("2001:db8:64::/96"), ..SiitConfig::default() };
        let config = EngineConfig { seed: [0x1234_5678_9abc_def0, 7], ..engine(siit) };
        let mut bench = Harness::new(scene(&ROUTES), &config);
        let mut sent_to = |last: u8| {
            let destination = format!("2001:db8:64::808:{last:x}");
            let packet =
                ipv6("2001:db8:64::c633:6401", &destination, head(64), &Body::Udp(b"hello".to_vec()));
            let octets = bench.run_xdp(&packet).expect("it is forwarded");
            u16::from_be_bytes([octets[4], octets[5]])
        };
        let before = sent_to(1);
        for other in 2..60 {
            let _ = sent_to(other);
        }
        let moved = sent_to(1).wrapping_sub(before);
        assert!(moved < 6, "{moved}");
    });
}
