//! ISATAP: RFC 5214, RFC 6324.

use super::bench::{Harness, scene};
use super::packets::{Body, Head, in_tunnel, ipv6};
use super::{check, namespace};
use sixway_dataplane::engine::{EngineConfig, TunnelConfig};
use sixway_dataplane::mechanism::isatap::{IsatapConfig, Role};
use sixway_dataplane::tunnel::TunnelPolicy;

fn head(hops: u8) -> Head {
    Head { hops, ..Head::default() }
}

fn node(role: Role, address: &str) -> EngineConfig {
    let config = IsatapConfig {
        role,
        address: address.parse().unwrap(),
        prefixes: vec!["2001:db8:1:2::/64".parse().unwrap()],
        routers: vec!["127.0.0.1".parse().unwrap(), "10.0.0.1".parse().unwrap()],
        locators: vec!["10.0.0.0/16".parse().unwrap(), "10.5.0.0/16".parse().unwrap()],
        subnets: vec!["10.5.0.0/16".parse().unwrap()],
        policy: TunnelPolicy::default(),
    };
    EngineConfig {
        tunnels: vec![TunnelConfig::Isatap(config)],
        host4: vec![address.parse().unwrap(), "203.0.113.77".parse().unwrap()],
        ..EngineConfig::default()
    }
}

const OUTER: Head = Head { hops: 64, dont_fragment: false, class: 0 };
const HOST: &str = "2001:db8:1:2:0:5efe:10.5.2.3";
const NATIVE: &str = "2001:dba::1";

fn body() -> Body {
    Body::Echo(true, b"hello".to_vec())
}

fn plain(source: &str, destination: &str, hops: u8) -> Vec<u8> {
    ipv6(source, destination, head(hops), &body())
}

#[test]
fn a_router_stands_between_the_link_and_native_hosts() {
    namespace::in_namespace("isatap_router", || {
        let local = "10.0.0.9";
        let mut bench = Harness::new(scene(&["2001:db8:1:2::/64"]), &node(Role::Router, local));
        let came = |from, source, destination| {
            in_tunnel(from, local, Head::default(), plain(source, destination, 64))
        };
        let sent = |to, destination| Some(in_tunnel(local, to, OUTER, plain(NATIVE, destination, 63)));
        check(
            &mut bench,
            vec![
                ("to a host", plain(NATIVE, HOST, 64), sent("10.5.2.3", HOST)),
                (
                    "to a host, u set",
                    plain(NATIVE, "2001:db8:1:2:200:5efe:10.0.7.7", 64),
                    sent("10.0.7.7", "2001:db8:1:2:200:5efe:10.0.7.7"),
                ),
                ("outside the site", plain(NATIVE, "2001:db8:1:2:0:5efe:10.6.2.3", 64), None),
                ("broadcast address", plain(NATIVE, "2001:db8:1:2:0:5efe:10.5.255.255", 64), None),
                ("no locator", plain(NATIVE, "2001:db8:1:2::1", 64), None),
                ("this host", plain(NATIVE, "2001:db8:1:2:0:5efe:10.0.0.9", 64), None),
                ("own address in the source", plain("2002:cb00:714d::1", HOST, 64), None),
                ("from a host", came("10.5.2.3", HOST, NATIVE), Some(plain(HOST, NATIVE, 63))),
                (
                    "from another router",
                    came("10.0.0.1", "2001:dbb::1", NATIVE),
                    Some(plain("2001:dbb::1", NATIVE, 63)),
                ),
                ("spoofed", came("10.5.2.4", HOST, NATIVE), None),
                ("not of the link", came("10.5.2.3", "2001:db8:1:3:0:5efe:10.5.2.3", NATIVE), None),
                ("outside the site", came("10.6.2.3", "2001:db8:1:2:0:5efe:10.6.2.3", NATIVE), None),
                ("own address inside", came("10.5.2.3", HOST, "2002:cb00:714d::1"), None),
                ("back to the link", came("10.5.2.3", HOST, "2001:db8:1:2:0:5efe:10.5.2.9"), None),
            ],
        );
    });
}

#[test]
fn a_host_sends_by_its_router() {
    namespace::in_namespace("isatap_host", || {
        let (local, own) = ("10.5.2.3", HOST);
        let routes =
            ["2001:dba::/32", "2001:db8:1:2::/64", "2001:db8:1:2:0:5efe:10.5.2.3 via 2001:db8:ff09::2"];
        let mut bench = Harness::new(scene(&routes), &node(Role::Host, local));
        let other = "2001:db8:1:2:0:5efe:10.5.2.9";
        let came = |from, source, destination| {
            in_tunnel(from, local, Head::default(), plain(source, destination, 64))
        };
        let sent = |to, destination| Some(in_tunnel(local, to, OUTER, plain(own, destination, 63)));
        check(
            &mut bench,
            vec![
                ("to a native host", plain(own, NATIVE, 64), sent("10.0.0.1", NATIVE)),
                ("to another host", plain(own, other, 64), sent("10.5.2.9", other)),
                ("another's source", plain(other, NATIVE, 64), None),
                ("from another host", came("10.5.2.9", other, own), Some(plain(other, own, 63))),
                ("from the router", came("10.0.0.1", NATIVE, own), Some(plain(NATIVE, own, 63))),
                ("from nobody's router", came("10.0.0.2", NATIVE, own), None),
                ("to another", came("10.0.0.1", NATIVE, other), None),
            ],
        );
    });
}
