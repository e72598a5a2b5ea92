//! Policy rules of the host, and a NAT44's: what the kernel routes by source or incoming interface is routed so here, or passed on.

use super::bench::{Harness, scene};
use super::packets::{Body, Head, in_tunnel, ipv4, ipv6};
use super::{check, namespace};
use sixway_dataplane::engine::{EngineConfig, TunnelConfig};
use sixway_dataplane::mechanism::configured::ConfiguredConfig;
use sixway_dataplane::mechanism::nat44::Nat44Config;
use sixway_dataplane::mechanism::siit::SiitConfig;
use sixway_dataplane::nat::PoolConfig;
use sixway_dataplane::translate::address::Rfc6052;
use sixway_dataplane::tunnel::TunnelPolicy;

const LOCAL: &str = "192.0.2.1";
const REMOTE: &str = "198.51.100.7";
const HERE: &str = "2001:dba::1";
const THERE: &str = "2001:db8:7::1";
/// A mapped IPv6 host and its IPv4 address, and a remote host's.
const HOST: (&str, &str) = ("2001:db8:64::c633:6401", "198.51.100.1");
const FAR: (&str, &str) = ("2001:db8:64::808:808", "8.8.8.8");
const ROUTES: [&str; 4] = [
    "2001:db8:7::/48",
    "2001:db8:64::/96",
    "198.51.100.1/32",
    "2001:db8:64::198.51.100.0/120 via 2001:db8:ff09::2",
];

/// A tunnel and a SIIT.
fn engine() -> EngineConfig {
    let tunnel = ConfiguredConfig {
        local: LOCAL.parse().unwrap(),
        remote: Some(REMOTE.parse().unwrap()),
        prefixes: vec!["2001:db8:7::/48".parse().unwrap()],
        strict_sources: false,
        policy: TunnelPolicy::default(),
    };
    let prefix = Rfc6052::new("2001:db8:64::/96".parse().unwrap(), false).unwrap();
    EngineConfig {
        tunnels: vec![TunnelConfig::Configured(tunnel)],
        siit: vec![SiitConfig { prefix: Some(prefix), ..SiitConfig::default() }],
        host4: vec![LOCAL.parse().unwrap()],
        ..EngineConfig::default()
    }
}

fn with_nat44(inside: &[&str]) -> EngineConfig {
    let inside = inside.iter().map(|prefix| prefix.parse().unwrap()).collect();
    let addresses = vec!["203.0.113.0/29".parse().unwrap()];
    let nat44 = Nat44Config::new(inside, PoolConfig { addresses, ports: vec![1_024..=65_535] });
    EngineConfig { nat44: vec![nat44], ..engine() }
}

fn head(hops: u8) -> Head {
    Head { hops, ..Head::default() }
}

/// An outer header, and one of a small packet made from IPv6.
fn clear(hops: u8) -> Head {
    Head { hops, dont_fragment: false, ..Head::default() }
}

fn body() -> Body {
    Body::Udp(b"hello".to_vec())
}

/// A packet and its result, each of the five that the rules carry.
type Case = (Vec<u8>, Vec<u8>);

fn out() -> Case {
    let sent = in_tunnel(LOCAL, REMOTE, clear(64), ipv6(HERE, THERE, head(63), &body()));
    (ipv6(HERE, THERE, head(64), &body()), sent)
}

fn back() -> Case {
    let came = in_tunnel(REMOTE, LOCAL, head(64), ipv6(THERE, HERE, head(64), &body()));
    (came, ipv6(THERE, HERE, head(63), &body()))
}

fn to_ipv4() -> Case {
    (ipv6(HOST.0, FAR.0, head(64), &body()), ipv4(HOST.1, FAR.1, clear(63), &body()))
}

fn to_ipv6() -> Case {
    (ipv4(FAR.1, HOST.1, head(64), &body()), ipv6(FAR.0, HOST.0, head(63), &body()))
}

/// Tries each, and returns which are carried.
fn carried(bench: &mut Harness) -> [bool; 4] {
    [out(), back(), to_ipv4(), to_ipv6()].map(|(packet, result)| {
        let is_carried = bench.run(&packet).is_some();
        check(bench, vec![("carried rightly", packet, is_carried.then_some(result))]);
        is_carried
    })
}

const EVERYTHING: [bool; 4] = [true; 4];

#[test]
fn next_to_a_nat44_everything_is_carried_but_what_comes_from_its_inside_or_goes_to_its_pool() {
    namespace::in_namespace("nat44", || {
        let mut bench = Harness::new(scene(&ROUTES), &with_nat44(&["192.168.0.0/16", "10.0.0.0/8"]));
        namespace::ip("rule add from 192.168.0.0/16 iif port lookup 100");
        namespace::ip("route add default dev tun table 100");
        assert_eq!(carried(&mut bench), EVERYTHING);
        let inside = "2001:db8:64::c0a8:102";
        check(
            &mut bench,
            vec![
                ("from inside", ipv4("192.168.1.2", HOST.1, head(64), &body()), None),
                ("from inside, too", ipv4("10.255.255.255", HOST.1, head(64), &body()), None),
                ("to inside", ipv4(FAR.1, "192.168.1.2", head(64), &body()), None),
                ("with a result from inside", ipv6(inside, FAR.0, head(64), &body()), None),
                ("to the pool", ipv4(FAR.1, "203.0.113.5", head(64), &body()), None),
            ],
        );
    });
}

/// Tunnel packets are the host's own, whoever sends them.
#[test]
fn a_tunnel_may_lead_to_a_nat44s_inside() {
    namespace::in_namespace("lan", || {
        let mut bench = Harness::new(scene(&ROUTES), &with_nat44(&["198.51.100.0/24", "192.0.2.0/24"]));
        for rule in
            ["from 192.0.2.0/24 to 198.51.100.0/24 lookup main pref 5", "from 192.0.2.0/24 lookup 100 pref 6"]
        {
            namespace::ip(&format!("rule add {rule}"));
        }
        namespace::ip("route add default dev tun table 100");
        // The mapped host is inside, too.
        assert_eq!(carried(&mut bench), [true, true, false, false]);
    });
}

#[test]
fn sources_of_policy_rules_are_the_engines_on_both_sides() {
    for (name, four, six, expected) in [
        ("from4", Some("8.8.8.0/24"), None, [true, true, true, false]),
        ("mapped4", Some("198.51.100.1/32"), None, [true, true, false, false]),
        ("from6", None, Some("2001:dba::/32"), [false, true, true, true]),
        ("mapped6", None, Some("2001:db8:64::808:800/120"), [true, true, true, false]),
        ("inner", None, Some("2001:db8:7::/48"), [true, false, true, true]),
        ("unmapped6", None, Some("2001:db8:64::c633:6400/120"), [true, true, false, true]),
        ("neither", Some("8.8.4.0/24"), Some("2001:db8:8::/48"), EVERYTHING),
    ] {
        namespace::in_namespace(name, move || {
            let list = |one: Option<&'static str>| one.into_iter().collect::<Vec<_>>();
            let mut bench = Harness::by_source(scene(&ROUTES), &engine(), &list(four), &list(six));
            assert_eq!(carried(&mut bench), expected, "{name}");
        });
    }
}

#[test]
fn what_goes_into_a_tunnel_is_routed_by_its_source() {
    namespace::in_namespace("outer", || {
        let mut bench = Harness::new(scene(&ROUTES), &engine());
        assert_eq!(carried(&mut bench), EVERYTHING);
        namespace::ip("rule add from 192.0.2.1 lookup 100");
        namespace::ip("route add blackhole default table 100");
        bench.new_generation();
        // The return path to the remote end is unreachable, too: for packets from there.
        assert_eq!(carried(&mut bench), [false, false, true, true]);
        namespace::ip("route replace default via 10.255.9.2 dev far table 100");
        bench.new_generation();
        assert_eq!(carried(&mut bench), EVERYTHING);
    });
}

#[test]
fn rules_by_the_incoming_interface_hold_for_what_comes_in_there() {
    namespace::in_namespace("ingress", || {
        let mut bench = Harness::new(scene(&ROUTES), &engine());
        namespace::ip("rule add iif far lookup 100");
        namespace::ip("-6 rule add iif far lookup 100");
        for family in ["-4", "-6"] {
            namespace::ip(&format!("{family} route add blackhole default table 100"));
        }
        bench.new_generation();
        assert_eq!(carried(&mut bench), EVERYTHING, "they come by another one");
        namespace::ip("-6 rule add iif port lookup 100");
        bench.new_generation();
        assert_eq!(carried(&mut bench), [false, true, false, true]);
        namespace::ip("rule add iif port lookup 100");
        bench.new_generation();
        assert_eq!(
            carried(&mut bench),
            [false, true, false, false],
            "what is for this host comes before rules"
        );
    });
}

/// The kernel's filter asks as for a packet of its own.
#[test]
fn the_way_back_is_asked_for_by_no_rule_of_the_incoming_interface() {
    namespace::in_namespace("wayback", || {
        let mut bench = Harness::strict(scene(&ROUTES), &engine());
        let tables = |main: &str, other: &str| {
            for remote in [REMOTE, FAR.1] {
                namespace::ip(&format!("route replace {remote}/32 dev {main}"));
                namespace::ip(&format!("route replace {remote}/32 dev {other} table 100"));
            }
            namespace::ip(&format!("route replace {} dev tun table 100", HOST.1));
        };
        namespace::ip("rule add iif port lookup 100");
        namespace::ip("neigh replace 198.51.100.7 lladdr 02:00:00:00:00:03 nud permanent dev far");
        tables("far", "port");
        bench.new_generation();
        assert!(!carried(&mut bench)[1]);
        assert_eq!(bench.run(&to_ipv6().0), None);
        tables("port", "far");
        bench.new_generation();
        check(&mut bench, vec![("decapsulated", back().0, Some(back().1))]);
        check(&mut bench, vec![("translated", to_ipv6().0, Some(to_ipv6().1))]);
    });
}
