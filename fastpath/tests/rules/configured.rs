//! Configured tunnels: RFC 4213; what an outer header says; several tunnels at one address.

use super::bench::{Harness, scene};
use super::packets::{Body, Head, in_tunnel, ipv4, ipv6};
use super::{check, namespace};
use sixway_dataplane::engine::{EngineConfig, TunnelConfig};
use sixway_dataplane::mechanism::configured::ConfiguredConfig;
use sixway_dataplane::mechanism::siit::SiitConfig;
use sixway_dataplane::mechanism::six_rd::{self, Domain, SixRdConfig};
use sixway_dataplane::mechanism::six_to_four::{NativeSources, Role, SixToFourConfig};
use sixway_dataplane::translate::HeaderByte;
use sixway_dataplane::translate::address::EamTable;
use sixway_dataplane::tunnel::{OuterFragments, TunnelMtu, TunnelPolicy};
use std::sync::Arc;
use std::time::Duration;

const LOCAL: &str = "192.0.2.1";
const REMOTE: &str = "198.51.100.7";
const HERE: &str = "2001:dba::1";
const THERE: &str = "2001:db8:7::1";

fn tunnel(remote: Option<&str>, prefix: &str) -> ConfiguredConfig {
    ConfiguredConfig {
        local: LOCAL.parse().unwrap(),
        remote: remote.map(|remote| remote.parse().unwrap()),
        prefixes: vec![prefix.parse().unwrap()],
        strict_sources: false,
        policy: TunnelPolicy::default(),
    }
}

fn engine(tunnels: Vec<TunnelConfig>) -> EngineConfig {
    EngineConfig {
        tunnels,
        host4: vec![LOCAL.parse().unwrap(), "203.0.113.77".parse().unwrap()],
        ..EngineConfig::default()
    }
}

fn one(config: ConfiguredConfig) -> EngineConfig {
    engine(vec![TunnelConfig::Configured(config)])
}

fn head(hops: u8) -> Head {
    Head { hops, ..Head::default() }
}

fn body() -> Body {
    Body::Udp(b"hello".to_vec())
}

fn came(from: &str, source: &str, destination: &str) -> Vec<u8> {
    in_tunnel(from, LOCAL, Head::default(), ipv6(source, destination, head(64), &body()))
}

#[test]
fn a_tunnel_both_ways() {
    namespace::in_namespace("configured", || {
        let mut bench =
            Harness::new(scene(&["2001:db8:7::/48"]), &one(tunnel(Some(REMOTE), "2001:db8:7::/48")));
        let outer = Head { hops: 64, dont_fragment: false, class: 0 };
        let sent = in_tunnel(LOCAL, REMOTE, outer, ipv6(HERE, THERE, head(63), &body()));
        check(
            &mut bench,
            vec![
                ("out", ipv6(HERE, THERE, head(64), &body()), Some(sent)),
                ("in", came(REMOTE, THERE, HERE), Some(ipv6(THERE, HERE, head(63), &body()))),
                (
                    "any source",
                    came(REMOTE, "2001:dbc::1", HERE),
                    Some(ipv6("2001:dbc::1", HERE, head(63), &body())),
                ),
                ("from elsewhere", came("198.51.100.8", THERE, HERE), None),
                ("IPv4-mapped source", came(REMOTE, "::ffff:10.0.0.1", HERE), None),
                ("IPv4-compatible destination", came(REMOTE, THERE, "::10.0.0.1"), None),
                ("in the tunnel again", came(REMOTE, "2001:dbc::1", THERE), None),
                ("to ours, not through a tunnel", ipv4(REMOTE, LOCAL, head(64), &body()), None),
            ],
        );
    });
}

#[test]
fn strict_sources_are_those_behind_the_other_end() {
    namespace::in_namespace("strict", || {
        let config = ConfiguredConfig { strict_sources: true, ..tunnel(Some(REMOTE), "2001:db8:7::/48") };
        let mut bench = Harness::new(scene(&["2001:db8:7::/48"]), &one(config));
        check(
            &mut bench,
            vec![
                ("behind", came(REMOTE, THERE, HERE), Some(ipv6(THERE, HERE, head(63), &body()))),
                ("elsewhere", came(REMOTE, "2001:dbc::1", HERE), None),
            ],
        );
    });
}

#[test]
fn a_tunnel_without_other_end_or_to_this_host_carries_nothing() {
    for remote in [None, Some("203.0.113.77"), Some("127.0.0.1")] {
        namespace::in_namespace("endless", move || {
            let mut bench =
                Harness::new(scene(&["2001:db8:7::/48"]), &one(tunnel(remote, "2001:db8:7::/48")));
            check(
                &mut bench,
                vec![
                    ("out", ipv6(HERE, THERE, head(64), &body()), None),
                    ("in", came(remote.unwrap_or("0.0.0.0"), THERE, HERE), None),
                ],
            );
        });
    }
}

/// Outer headers by policy: TTL and TOS, DF and the largest packet (RFC 4213 sections 3.2, 3.3).
#[test]
fn outer_headers_follow_the_policy() {
    let plain = TunnelPolicy::default();
    let outer = Head { hops: 64, dont_fragment: false, class: 0xb8 };
    for (name, policy, outer, most) in [
        ("as usual", plain, outer, 1_280),
        ("copied TTL", TunnelPolicy { ttl: HeaderByte::Copy, ..plain }, Head { hops: 9, ..outer }, 1_280),
        (
            "set TOS",
            TunnelPolicy { traffic_class: HeaderByte::Set(0x40), ..plain },
            Head { class: 0x40, ..outer },
            1_280,
        ),
        ("static MTU", TunnelPolicy { mtu: TunnelMtu::Static(1_400), ..plain }, outer, 1_400),
        (
            "never cut",
            TunnelPolicy { mtu: TunnelMtu::Static(1_600), outer_fragments: OuterFragments::Never, ..plain },
            Head { dont_fragment: true, ..outer },
            1_480,
        ),
        ("cut beyond the link", TunnelPolicy { mtu: TunnelMtu::Static(1_500), ..plain }, outer, 1_480),
        (
            "dynamic",
            TunnelPolicy { mtu: TunnelMtu::Dynamic, ..plain },
            Head { dont_fragment: true, ..outer },
            1_480,
        ),
    ] {
        namespace::in_namespace("policy", move || {
            let config = ConfiguredConfig { policy, ..tunnel(Some(REMOTE), "2001:db8:7::/48") };
            let mut bench = Harness::new(scene(&["2001:db8:7::/48"]), &one(config));
            // ECN-capable: in compatibility mode the outer header is not.
            let packet = |hops, octets: usize| {
                ipv6(
                    HERE,
                    THERE,
                    Head { hops, class: 0xba, ..Head::default() },
                    &Body::Udp(vec![0; octets - 48]),
                )
            };
            let sent = |octets: usize| Some(in_tunnel(LOCAL, REMOTE, outer, packet(9, octets)));
            let mut examples = vec![
                (name, packet(10, 100), sent(100)),
                (name, packet(10, most), sent(most)),
                (name, packet(10, most + 1), None),
            ];
            if policy.ttl == HeaderByte::Copy {
                examples.push(("nothing left to copy", packet(2, 100), None));
            }
            check(&mut bench, examples);
            if policy.mtu == TunnelMtu::Dynamic {
                bench.narrow(REMOTE);
                check(&mut bench, vec![("less is known to fit", packet(10, 100), None)]);
            }
        });
    }
}

/// SYN, FIN and RST; a lower MSS where less is carried (RFC 9293 section 3.7.1).
#[test]
fn connections_begin_and_end_in_the_programs() {
    let dynamic = TunnelPolicy { mtu: TunnelMtu::Dynamic, ..TunnelPolicy::default() };
    for (policy, most) in [(dynamic, 1_420), (TunnelPolicy { clamp_mss: false, ..dynamic }, 8_960)] {
        namespace::in_namespace("connections", move || {
            let config = ConfiguredConfig { policy, ..tunnel(Some(REMOTE), "2001:db8:7::/48") };
            let mut bench = Harness::new(scene(&["2001:db8:7::/48"]), &one(config));
            let out = |body: &Body| ipv6(HERE, THERE, head(64), body);
            let sent = |body: &Body| {
                Some(in_tunnel(LOCAL, REMOTE, Head::default(), ipv6(HERE, THERE, head(63), body)))
            };
            let came =
                |body: &Body| in_tunnel(REMOTE, LOCAL, Head::default(), ipv6(THERE, HERE, head(64), body));
            let taken = |body: &Body| Some(ipv6(THERE, HERE, head(63), body));
            let late = Body::Syn(vec![1, 2, 4, 0x22, 0xff, 1, 1, 1]);
            let mut examples = vec![];
            for (body, result) in [
                (Body::Tcp(0x02, vec![]), Body::Tcp(0x02, vec![])),
                (Body::Tcp(0x11, vec![1]), Body::Tcp(0x11, vec![1])),
                (Body::Tcp(0x14, vec![]), Body::Tcp(0x14, vec![])),
                (Body::syn(1_420), Body::syn(1_420)),
                (Body::syn(1_421), Body::syn(most.min(1_421))),
                (Body::syn(8_960), Body::syn(most)),
            ] {
                examples.push(("out", out(&body), sent(&result)));
                examples.push(("in", came(&body), taken(&result)));
                // Nothing is left of the packet before.
                for body in [self::body(), Body::Echo(true, vec![1, 2])] {
                    examples.push(("no TCP, out", out(&body), sent(&body)));
                    examples.push(("no TCP, in", came(&body), taken(&body)));
                }
            }
            let is_lowered = policy.clamp_mss;
            examples.push(("late, out", out(&late), if is_lowered { None } else { sent(&late) }));
            examples.push(("late, in", came(&late), if is_lowered { None } else { taken(&late) }));
            check(&mut bench, examples);
            bench.narrow(REMOTE);
            let (data, syn) = (Body::Tcp(0x10, vec![1]), Body::syn(536));
            let fin = Body::Tcp(0x11, vec![]);
            check(
                &mut bench,
                vec![
                    (
                        "less is known to fit: a SYN in",
                        came(&syn),
                        if is_lowered { None } else { taken(&syn) },
                    ),
                    ("less is known to fit: a datagram in", came(&body()), taken(&body())),
                    ("less is known to fit: data in", came(&data), taken(&data)),
                    ("less is known to fit: FIN in", came(&fin), taken(&fin)),
                ],
            );
        });
    }
}

/// The outer packets are fragmented where less fits.
#[test]
fn an_mss_by_a_fixed_mtu_does_not_depend_on_what_is_known_of_the_path() {
    namespace::in_namespace("fixed", || {
        let policy = TunnelPolicy {
            mtu: TunnelMtu::Static(1_400),
            outer_fragments: OuterFragments::Allowed,
            ..TunnelPolicy::default()
        };
        let config = ConfiguredConfig { policy, ..tunnel(Some(REMOTE), "2001:db8:7::/48") };
        let mut bench = Harness::new(scene(&["2001:db8:7::/48"]), &one(config));
        bench.narrow(REMOTE);
        let came =
            |mss| in_tunnel(REMOTE, LOCAL, Head::default(), ipv6(THERE, HERE, head(64), &Body::syn(mss)));
        let taken = |mss| Some(ipv6(THERE, HERE, head(63), &Body::syn(mss)));
        let examples = [(1_341, 1_340), (1_340, 1_340), (536, 536)];
        check(&mut bench, examples.map(|(mss, most)| ("SYN in", came(mss), taken(most))).to_vec());
    });
}

/// Unless the operator says otherwise, the host's packet filter sees who opens connections.
#[test]
fn a_syn_is_left_to_the_engine_unless_it_may_be_forwarded() {
    for clamp_mss in [true, false] {
        namespace::in_namespace("syn", move || {
            let policy = TunnelPolicy { clamp_mss, ..TunnelPolicy::default() };
            let config = ConfiguredConfig { policy, ..tunnel(Some(REMOTE), "2001:db8:7::/48") };
            let mut bench = Harness::without_syn(scene(&["2001:db8:7::/48"]), &one(config));
            let outer = Head { dont_fragment: false, ..Head::default() };
            let out = |body: &Body| ipv6(HERE, THERE, head(64), body);
            let came =
                |body: &Body| in_tunnel(REMOTE, LOCAL, Head::default(), ipv6(THERE, HERE, head(64), body));
            let mut examples = vec![];
            let without_mss = Body::Syn(vec![1, 1, 1, 1]);
            let all = [0, 1, 2, 536, 1_220, 9_000, 65_535].map(Body::syn).into_iter();
            for body in all.chain([Body::Tcp(0x02, vec![]), Body::Tcp(0x12, vec![]), without_mss]) {
                examples.push(("SYN out", out(&body), None));
                examples.push(("SYN in", came(&body), None));
            }
            for body in [
                Body::Tcp(0x11, vec![]),
                Body::Tcp(0x04, vec![]),
                Body::Tcp(0x10, vec![1]),
                self::body(),
                Body::Echo(true, vec![1, 2]),
            ] {
                examples.push(("no SYN, in", came(&body), Some(ipv6(THERE, HERE, head(63), &body))));
                examples.push((
                    "no SYN, out",
                    out(&body),
                    Some(in_tunnel(LOCAL, REMOTE, outer, ipv6(HERE, THERE, head(63), &body))),
                ));
            }
            check(&mut bench, examples);
        });
    }
}

fn six_to_four(role: Role) -> TunnelConfig {
    TunnelConfig::SixToFour(SixToFourConfig {
        role,
        address: LOCAL.parse().unwrap(),
        nat_address: None,
        relay: (role != Role::Relay).then(|| "198.51.100.99".parse().unwrap()),
        native_sources: NativeSources::AnyRelay,
        subnets: vec![],
        policy: TunnelPolicy::default(),
    })
}

#[test]
fn several_tunnels_end_at_one_address() {
    namespace::in_namespace("several", || {
        let tunnels = vec![
            TunnelConfig::Configured(tunnel(Some(REMOTE), "2001:db8:7::/48")),
            TunnelConfig::Configured(tunnel(Some("198.51.100.8"), "2001:db8:8::/48")),
            six_to_four(Role::Relay),
        ];
        let routes = ["2001:db8:7::/48", "2001:db8:8::/48", "2002::/16"];
        let mut bench = Harness::new(scene(&routes), &engine(tunnels));
        let site = "2002:c633:6409::1";
        let taken = |source| Some(ipv6(source, HERE, head(63), &body()));
        check(
            &mut bench,
            vec![
                ("from the first", came(REMOTE, THERE, HERE), taken(THERE)),
                ("from the second", came("198.51.100.8", THERE, HERE), taken(THERE)),
                ("from a site", came("198.51.100.9", site, HERE), taken(site)),
                ("a site's, from the first", came(REMOTE, site, HERE), taken(site)),
                ("from nobody", came("198.51.100.10", THERE, HERE), None),
            ],
        );
    });
}

#[test]
fn what_depends_on_the_destination_is_left_to_the_engine() {
    namespace::in_namespace("perhaps", || {
        let domain = SixRdConfig {
            domain: Domain::new("2001:db8::/32".parse().unwrap(), "192.0.0.0/8".parse().unwrap()).unwrap(),
            role: six_rd::Role::CustomerEdge,
            address: LOCAL.parse().unwrap(),
            border_relays: vec!["192.0.2.99".parse().unwrap()],
            other_relays: vec![],
            subnets: vec![],
            policy: TunnelPolicy::default(),
        };
        let tunnels = vec![TunnelConfig::SixRd(domain), six_to_four(Role::Router)];
        let hosts = ["2002:c000:201::/48 via 2001:db8:ff09::2", "2001:db8:2:100::/56 via 2001:db8:ff09::2"];
        let mut bench = Harness::new(scene(&hosts), &engine(tunnels));
        check(
            &mut bench,
            vec![
                ("of a site", came("198.51.100.9", "2002:c633:6409::1", "2002:c000:201::1"), None),
                ("of a customer", came("192.0.2.50", "2001:db8:232::1", "2001:db8:2:100::1"), None),
            ],
        );
    });
}

/// The translator whose table names an address owns it before a tunnel with a shorter prefix, and after one with a longer.
#[test]
fn a_named_address_is_the_translators() {
    namespace::in_namespace("named", || {
        let rows = [
            ("203.0.113.1/32", "2001:db8:7::5/128"),
            ("203.0.113.2/32", "2001:dba::2/128"),
            ("198.18.0.0/24", "2001:db8:7::/60"),
        ];
        let rows = rows.iter().map(|(four, six)| (four.parse().unwrap(), six.parse().unwrap()));
        let siit = SiitConfig { eam: Arc::new(EamTable::new(rows).unwrap()), ..SiitConfig::default() };
        let config = EngineConfig { siit: vec![siit], ..one(tunnel(Some(REMOTE), "2001:db8:7:8::/64")) };
        let mut bench = Harness::new(scene(&["2001:db8:7::/48"]), &config);
        let four = Head { hops: 63, dont_fragment: false, class: 0 };
        let outer = Head { hops: 64, dont_fragment: false, class: 0 };
        let inner = ipv6("2001:dba::2", "2001:db8:7:8::9", head(63), &body());
        check(
            &mut bench,
            vec![
                (
                    "named",
                    ipv6("2001:dba::2", "2001:db8:7::5", head(64), &body()),
                    Some(ipv4("203.0.113.2", "203.0.113.1", four, &body())),
                ),
                (
                    "the tunnel's",
                    ipv6("2001:dba::2", "2001:db8:7:8::9", head(64), &body()),
                    Some(in_tunnel(LOCAL, REMOTE, outer, inner)),
                ),
            ],
        );
    });
}

#[test]
fn strict_reverse_path_filtering_holds() {
    namespace::in_namespace("reverse", || {
        let routes = ["2001:db8:7::/48", "198.51.100.0/24 via 10.255.9.2"];
        let mut bench = Harness::strict(scene(&routes), &one(tunnel(Some(REMOTE), "2001:db8:7::/48")));
        check(&mut bench, vec![("reached by another device", came(REMOTE, THERE, HERE), None)]);
        namespace::ip("route replace 198.51.100.0/24 dev port");
        bench.new_generation();
        check(
            &mut bench,
            vec![("by this one", came(REMOTE, THERE, HERE), Some(ipv6(THERE, HERE, head(63), &body())))],
        );
    });
}

#[test]
fn what_was_refused_is_queried_again() {
    namespace::in_namespace("again", || {
        let config = one(tunnel(Some(REMOTE), "2001:db8:7::/48"));
        let mut bench = Harness::new(scene(&[]), &config);
        let packet = ipv6(HERE, THERE, head(64), &body());
        let outer = Head { hops: 64, dont_fragment: false, class: 0 };
        let sent = in_tunnel(LOCAL, REMOTE, outer, ipv6(HERE, THERE, head(63), &body()));
        check(&mut bench, vec![("not routed to us", packet.clone(), None)]);
        namespace::ip("route add 2001:db8:7::/48 dev tun");
        namespace::ip("neigh del 10.255.9.2 dev far");
        check(&mut bench, vec![("still in memory", packet.clone(), None)]);
        std::thread::sleep(Duration::from_millis(1_100));
        check(&mut bench, vec![("no neighbour", packet.clone(), None)]);
        namespace::ip("neigh replace 10.255.9.2 lladdr 02:00:00:00:00:03 nud permanent dev far");
        check(&mut bench, vec![("at once", packet, Some(sent))]);
    });
}

#[test]
fn an_end_that_this_host_does_not_have_takes_nothing() {
    namespace::in_namespace("elsewhere", || {
        let mut bench = Harness::new(scene(&[]), &one(tunnel(Some(REMOTE), "2001:db8:7::/48")));
        let taken = Some(ipv6(THERE, HERE, head(63), &body()));
        check(&mut bench, vec![("here", came(REMOTE, THERE, HERE), taken)]);
        namespace::ip(&format!("addr del {LOCAL}/32 dev lo"));
        bench.new_generation();
        check(&mut bench, vec![("gone", came(REMOTE, THERE, HERE), None)]);
    });
}

/// With 50 changes of routes a second, 20 bits of the generation come round within six hours.
#[test]
fn a_line_is_not_taken_for_a_fresh_one_when_the_lower_bits_of_the_generation_come_round() {
    namespace::in_namespace("round", || {
        let config = one(tunnel(Some(REMOTE), "2001:db8:7::/48"));
        let mut bench = Harness::new(scene(&["2001:db8:7::/48"]), &config);
        let packet = ipv6(HERE, THERE, head(64), &body());
        let outer = Head { hops: 64, dont_fragment: false, class: 0 };
        let sent = in_tunnel(LOCAL, REMOTE, outer, ipv6(HERE, THERE, head(63), &body()));
        check(&mut bench, vec![("routed to us", packet.clone(), Some(sent))]);
        namespace::ip("route del 2001:db8:7::/48 dev tun");
        bench.pass_generations(1 << 20);
        check(&mut bench, vec![("no longer", packet, None)]);
    });
}
