//! ISATAP (RFC 5214) with the checks of RFC 6324: router 10.0.0.1, host 10.1.2.3, prefix 2001:db8:1:2::/64.

use crate::support;
use crate::support::{Build, Gateway, icmp4, icmp6, in_ipv4, isatap, tunnelling, v4, v6};
use sixway_dataplane::engine::TunnelConfig;
use sixway_dataplane::mechanism::isatap::{IsatapConfig, Role};
use sixway_dataplane::{DropReason, Verdict};

const ROUTER: &str = "10.0.0.1";
const ROUTER6: &str = "2001:db8:1:2:0:5efe:10.0.0.1";
const HOST: &str = "10.1.2.3";
const HOST6: &str = "2001:db8:1:2:0:5efe:10.1.2.3";
const NEIGHBOUR: &str = "10.1.2.4";
const NEIGHBOUR6: &str = "2001:db8:1:2:0:5efe:10.1.2.4";
const SERVER: &str = "2001:4860::8";

fn router_with(edit: impl FnOnce(&mut IsatapConfig)) -> Gateway {
    let mut config = isatap(Role::Router, ROUTER);
    edit(&mut config);
    tunnelling(TunnelConfig::Isatap(config))
}

fn router() -> Gateway {
    router_with(|_| {})
}

fn host() -> Gateway {
    tunnelling(TunnelConfig::Isatap(isatap(Role::Host, HOST)))
}

fn packet(source: &str, destination: &str) -> Build {
    v6(source, destination).udp(4_000, 53, b"data")
}

/// A message of neighbour discovery.
fn discovery(kind: u8, source: &str, destination: &str) -> Build {
    v6(source, destination).hops(255).icmp(icmp6(kind, 0, [0; 4], &[0; 16]))
}

fn is_controls(mut gateway: Gateway, packet: Build) {
    gateway.receives(packet);
    assert_eq!(gateway.last, Verdict::Control);
    gateway.sends_nothing();
    assert_eq!(gateway.engine.counters().to_control, 1);
}

#[test]
fn a_host_sends_by_its_router_and_hears_from_it() {
    let mut gateway = host();
    gateway.receives(packet(HOST6, SERVER));
    gateway.sends_in_ipv4(HOST, ROUTER, packet(HOST6, SERVER));
    gateway.receives(in_ipv4(ROUTER, HOST, packet(SERVER, HOST6)));
    gateway.sends(packet(SERVER, HOST6));
    gateway.counted([("isatap.encap", 1), ("isatap.decap", 1)]);
}

#[test]
fn hosts_of_the_link_reach_one_another_by_the_addresses_that_they_embed() {
    let universal = "2001:db8:1:2:200:5efe:9.1.2.4";
    for (outer, inner) in [(NEIGHBOUR, NEIGHBOUR6), ("9.1.2.4", universal)] {
        let mut gateway = host();
        gateway.receives(packet(HOST6, inner));
        gateway.sends_in_ipv4(HOST, outer, packet(HOST6, inner));
        gateway.receives(in_ipv4(outer, HOST, packet(inner, HOST6)));
        gateway.sends(packet(inner, HOST6));
    }
}

#[test]
fn a_router_carries_packets_between_the_link_and_the_internet() {
    let mut gateway = router();
    gateway.receives(in_ipv4(HOST, ROUTER, packet(HOST6, SERVER)));
    gateway.sends(packet(HOST6, SERVER));
    gateway.receives(packet(SERVER, HOST6));
    gateway.sends_in_ipv4(ROUTER, HOST, packet(SERVER, HOST6));
    gateway.receives(in_ipv4(HOST, ROUTER, packet(HOST6, ROUTER6)));
    gateway.sends(packet(HOST6, ROUTER6));
    gateway.counted([("isatap.encap", 1), ("isatap.decap", 2)]);
}

/// RFC 5214 §7.3.
#[test]
fn the_outer_source_is_the_embedded_one_or_a_routers() {
    for (gateway, local, destination) in [(router(), ROUTER, SERVER), (host(), HOST, HOST6)] {
        let mut gateway = gateway;
        let spoofed = in_ipv4("10.1.2.5", local, packet(NEIGHBOUR6, destination));
        gateway.refuses(spoofed, DropReason::SpoofedEmbeddedSource);
        for source in [SERVER, "2001:db8:1:2::7", "2001:db8:1:3:0:5efe:10.1.2.5"] {
            gateway
                .refuses(in_ipv4("10.1.2.5", local, packet(source, destination)), DropReason::SourceNotRelay);
        }
    }
    // A router of the list may send packets of any source.
    let mut gateway = router_with(|config| config.routers.push("10.0.0.2".parse().unwrap()));
    gateway.receives(in_ipv4("10.0.0.2", ROUTER, packet("2001:4860::7", SERVER)));
    gateway.sends(packet("2001:4860::7", SERVER));
}

#[test]
fn a_host_takes_what_is_its_own_and_sends_what_is_its_own() {
    for destination in [NEIGHBOUR6, SERVER, "2001:db8:1:2::7"] {
        host().refuses(in_ipv4(ROUTER, HOST, packet(SERVER, destination)), DropReason::DestinationNotInSite);
    }
    for source in [NEIGHBOUR6, SERVER, "2001:db8:1:2::7"] {
        host().refuses(packet(source, SERVER), DropReason::SourceNotOfSite);
    }
}

#[test]
fn a_destination_on_the_link_without_a_locator_is_unreachable_and_its_sender_is_reported() {
    let known = |config: &mut IsatapConfig| config.locators = vec!["10.0.0.0/8".parse().unwrap()];
    for destination in ["2001:db8:1:2::7", "2001:db8:1:2:0:5efe:192.168.1.1"] {
        let mut gateway = router_with(known);
        gateway.receives(packet(SERVER, destination));
        let sent = gateway.sent();
        assert_eq!((sent[40], sent[41]), (1, 3));
        gateway.counted([("NoLocator", 1), ("icmp_errors.made", 1)]);
    }
}

/// RFC 6324 §3.1.2.
#[test]
fn hosts_that_are_not_where_they_may_be_are_refused() {
    let known = |config: &mut IsatapConfig| config.locators = vec!["10.0.0.0/8".parse().unwrap()];
    let stranger = packet("2001:db8:1:2:0:5efe:192.168.1.1", SERVER);
    router_with(known).refuses(in_ipv4("192.168.1.1", ROUTER, stranger), DropReason::SourceNotInTunnel);
    let mut gateway = router_with(known);
    gateway.receives(in_ipv4(HOST, ROUTER, packet(HOST6, SERVER)));
    gateway.sends(packet(HOST6, SERVER));
}

#[test]
fn locators_that_are_not_hosts_are_refused() {
    let attached = |config: &mut IsatapConfig| config.subnets = vec!["10.1.2.0/24".parse().unwrap()];
    for (locator, reason) in [
        ("127.0.0.1", DropReason::EmbeddedNotUnicast),
        ("224.0.0.1", DropReason::EmbeddedNotUnicast),
        ("255.255.255.255", DropReason::EmbeddedNotUnicast),
        ("0.0.0.1", DropReason::EmbeddedNotUnicast),
        ("10.1.2.255", DropReason::EmbeddedNotUnicast),
        ("169.254.1.1", DropReason::EmbeddedNotPublic),
        (ROUTER, DropReason::TunnelLoop),
    ] {
        let destination = format!("2001:db8:1:2:0:5efe:{locator}");
        router_with(attached).refuses(packet(SERVER, &destination), reason);
    }
}

/// RFC 6324 §2, §3.3, with a router whose address is public: a 6to4 relay, a Teredo client and another ISATAP link.
#[test]
fn circles_with_other_tunnels_are_cut_at_the_router() {
    let public = |config: &mut IsatapConfig| config.address = "192.0.2.1".parse().unwrap();
    for back in ["2002:c000:201::1", "2001:4860::5efe:192.0.2.1", "2001:0:1:2::3fff:fdfe"] {
        let looping = in_ipv4(HOST, "192.0.2.1", packet(HOST6, back));
        router_with(public).refuses(looping, DropReason::TunnelLoop);
        router_with(public).refuses(packet(back, HOST6), DropReason::TunnelLoop);
    }
    // A private address of ours may be another network's too (§3.3).
    let mut gateway = router();
    gateway.receives(packet("2001:4860::5efe:10.0.0.1", HOST6));
    gateway.sends_in_ipv4(ROUTER, HOST, packet("2001:4860::5efe:10.0.0.1", HOST6));
}

/// RFC 6324 §3.3.1: a private address in an address of a 6rd domain which the gateway knows is its own.
#[test]
fn circles_between_two_tunnels_of_one_gateway_are_cut() {
    let mut gateway = support::gateway(|config| {
        config.tunnels.push(TunnelConfig::Isatap(isatap(Role::Router, ROUTER)));
        let mut domain = support::six_rd(sixway_dataplane::mechanism::six_rd::Role::BorderRelay, "10.0.0.9");
        domain.domain = sixway_dataplane::mechanism::six_rd::Domain::new(
            "2001:ddd::/32".parse().unwrap(),
            "10.0.0.0/8".parse().unwrap(),
        )
        .unwrap();
        config.tunnels.push(TunnelConfig::SixRd(domain));
    });
    gateway.refuses(in_ipv4(HOST, ROUTER, packet(HOST6, "2001:ddd:0:900::1")), DropReason::TunnelLoop);
    gateway.refuses(packet("2001:ddd:0:900::1", HOST6), DropReason::TunnelLoop);
}

#[test]
fn router_solicitations_go_to_control() {
    let host_link_local = "fe80::5efe:10.1.2.3";
    for destination in ["ff02::2", "fe80::5efe:10.0.0.1", "fe80::200:5efe:10.0.0.1"] {
        is_controls(router(), in_ipv4(HOST, ROUTER, discovery(133, host_link_local, destination)));
    }
    let mut gateway = router();
    let spoofed = in_ipv4("10.1.2.5", ROUTER, discovery(133, host_link_local, "ff02::2"));
    gateway.refuses(spoofed, DropReason::SpoofedEmbeddedSource);
    let foreign = in_ipv4(HOST, ROUTER, discovery(133, "fe80::1", "ff02::2"));
    gateway.refuses(foreign, DropReason::SourceNotRelay);
    let routed = in_ipv4(HOST, ROUTER, discovery(133, host_link_local, "ff02::2").hops(254));
    gateway.refuses(routed, DropReason::MartianSource);
    let elsewhere = in_ipv4(HOST, ROUTER, discovery(133, host_link_local, "fe80::5efe:10.0.0.9"));
    gateway.refuses(elsewhere, DropReason::MartianSource);
}

/// RFC 5214 §8.3.3.
#[test]
fn advertisements_and_redirects_are_taken_from_routers_alone() {
    for kind in [134, 137] {
        let from_router = discovery(kind, "fe80::5efe:10.0.0.1", "fe80::5efe:10.1.2.3");
        is_controls(host(), in_ipv4(ROUTER, HOST, from_router));
        let from_neighbour = discovery(kind, "fe80::5efe:10.1.2.4", "fe80::5efe:10.1.2.3");
        host().refuses(in_ipv4(NEIGHBOUR, HOST, from_neighbour), DropReason::SourceNotRelay);
    }
}

#[test]
fn neighbours_that_ask_whether_we_live_are_answered_by_control() {
    for (source, destination) in [
        ("fe80::5efe:10.1.2.4", "fe80::5efe:10.1.2.3"),
        (NEIGHBOUR6, HOST6),
        (NEIGHBOUR6, "ff02::1:ff01:203"),
    ] {
        is_controls(host(), in_ipv4(NEIGHBOUR, HOST, discovery(135, source, destination)));
    }
    // Other ICMPv6 goes its way.
    let mut gateway = host();
    gateway.receives(in_ipv4(NEIGHBOUR, HOST, v6(NEIGHBOUR6, HOST6).hops(255).echo(7, 1, b"ping")));
    gateway.sends(v6(NEIGHBOUR6, HOST6).hops(255).echo(7, 1, b"ping"));
    // And link-local packets that are not neighbour discovery are dropped.
    let ping = v6("fe80::5efe:10.1.2.4", "fe80::5efe:10.1.2.3").echo(7, 1, b"ping");
    host().refuses(in_ipv4(NEIGHBOUR, HOST, ping), DropReason::MartianSource);
}

#[test]
fn a_host_without_routers_tells_that_it_has_no_route() {
    let mut gateway =
        tunnelling(TunnelConfig::Isatap(IsatapConfig { routers: Vec::new(), ..isatap(Role::Host, HOST) }));
    gateway.receives(packet(HOST6, SERVER));
    let sent = gateway.sent();
    assert_eq!((sent[40], sent[41]), (1, 0));
    // Control has found one.
    gateway.engine.set_tunnels(&[TunnelConfig::Isatap(isatap(Role::Host, HOST))], &[], &[]);
    gateway.receives(packet(HOST6, SERVER));
    gateway.sends_in_ipv4(HOST, ROUTER, packet(HOST6, SERVER));
}

#[test]
fn an_icmp_error_must_quote_a_packet_that_this_node_could_have_sent() {
    for (gateway, local, destination, inner) in [
        (host(), HOST, NEIGHBOUR, packet(HOST6, SERVER)),
        (host(), HOST, ROUTER, packet(NEIGHBOUR6, SERVER)),
        (router(), ROUTER, NEIGHBOUR, packet(SERVER, HOST6)),
        (router(), ROUTER, HOST, packet(SERVER, SERVER)),
        (host(), HOST, NEIGHBOUR, discovery(133, "fe80::5efe:10.1.2.3", "fe80::5efe:10.0.0.1")),
    ] {
        let quote = in_ipv4(local, destination, inner).octets();
        let error = v4("10.7.7.7", local).icmp(icmp4(3, 1, [0; 4], &quote));
        let mut gateway = gateway;
        gateway.refuses(error, DropReason::ErrorNotForTunnel);
    }
}

#[test]
fn an_icmp_error_about_a_packet_into_the_link_is_reported_to_its_sender() {
    host().relays_an_error(HOST, ROUTER, packet(HOST6, SERVER));
    host().relays_an_error(HOST, NEIGHBOUR, packet(HOST6, NEIGHBOUR6));
    router().relays_an_error(ROUTER, HOST, packet(SERVER, HOST6));
}

#[test]
fn fragments_are_held_only_from_where_hosts_may_be() {
    let known = |config: &mut IsatapConfig| config.locators = vec!["10.1.0.0/16".parse().unwrap()];
    let first = |outer: &str| {
        let whole = in_ipv4(outer, ROUTER, v6(HOST6, SERVER).udp(1, 2, &[7; 1_000]));
        whole.fragment(7, 0, true).part(0, 512)
    };
    router_with(known).refuses(first("192.168.1.1"), DropReason::NoTunnel);
    let mut gateway = router_with(known);
    gateway.receives(first(HOST));
    assert_eq!(gateway.last, Verdict::Held);
}
