//! ICMPv6 errors of routers that no mapping names, as the IPv4 side sees them (RFC 6791).

use crate::support;
use crate::support::{eam, icmp6, v6};
use std::collections::HashSet;

/// A traceroute that comes twice to the same router sees no loop and no two routers.
#[test]
fn a_router_is_always_seen_at_the_same_address_of_the_pool() {
    let mut gateway = support::siit(|config| {
        config.eam = eam(&[("198.51.100.8/29", "2001:db8:1::/125")]);
        config.icmp_source_pool = (100..116).map(|last| std::net::Ipv4Addr::new(203, 0, 113, last)).collect();
    });
    let arrived = v6("2001:db8:64::203.0.113.2", "2001:db8:1::1").udp(53, 4_000, b"question").octets();
    let mut seen = |router: u16| {
        let source = format!("2001:db8:ffff::{router:x}");
        gateway.receives(v6(&source, "2001:db8:64::203.0.113.2").icmp(icmp6(3, 0, [0; 4], &arrived)));
        gateway.sent()[12..16].to_vec()
    };
    let first: Vec<_> = (1..64).map(&mut seen).collect();
    let second: Vec<_> = (1..64).map(&mut seen).collect();
    assert_eq!(first, second);
    assert!(first.iter().collect::<HashSet<_>>().len() > 8, "and different ones are told apart");
}
