//! 6rd (RFC 5969), with the example of §7.1.1: 6rd prefix 2001:db8::/32, IPv4MaskLen 8, customer edge 10.100.100.1, border
//! relay 10.0.0.1.

use crate::support;
use crate::support::{Build, Gateway, icmp4, in_ipv4, six_rd, tunnelling, v4, v6};
use sixway_dataplane::engine::TunnelConfig;
use sixway_dataplane::mechanism::six_rd::{Domain, Role, SixRdConfig, SixRdFault};
use sixway_dataplane::translate::HeaderByte;
use sixway_dataplane::tunnel::{OuterFragments, TunnelMtu};
use sixway_dataplane::{DropReason, Verdict};

const EDGE: &str = "10.100.100.1";
const CUSTOMER: &str = "2001:db8:6464:100::7";
const BORDER: &str = "10.0.0.1";
/// Another customer.
const OTHER_EDGE: &str = "10.9.8.7";
const OTHER_CUSTOMER: &str = "2001:db8:908:700::9";
const SERVER: &str = "2001:4860::8";

fn edge() -> Gateway {
    tunnelling(TunnelConfig::SixRd(six_rd(Role::CustomerEdge, EDGE)))
}

fn border_with(edit: impl FnOnce(&mut SixRdConfig)) -> Gateway {
    let mut config = six_rd(Role::BorderRelay, BORDER);
    edit(&mut config);
    assert_eq!(config.check(), Ok(()));
    tunnelling(TunnelConfig::SixRd(config))
}

fn border() -> Gateway {
    border_with(|_| {})
}

fn packet(source: &str, destination: &str) -> Build {
    v6(source, destination).udp(4_000, 53, b"data")
}

#[test]
fn a_customers_packet_to_the_internet_goes_to_the_border_relay_and_its_answer_comes_from_there() {
    let mut gateway = edge();
    gateway.receives(packet(CUSTOMER, SERVER));
    gateway.sends_in_ipv4(EDGE, BORDER, packet(CUSTOMER, SERVER));
    gateway.receives(in_ipv4(BORDER, EDGE, packet(SERVER, CUSTOMER)));
    gateway.sends(packet(SERVER, CUSTOMER));
    gateway.counted([("six_rd.encap", 1), ("six_rd.decap", 1)]);
}

#[test]
fn customers_reach_one_another_without_the_border_relay() {
    let mut gateway = edge();
    gateway.receives(packet(CUSTOMER, OTHER_CUSTOMER));
    gateway.sends_in_ipv4(EDGE, OTHER_EDGE, packet(CUSTOMER, OTHER_CUSTOMER));
    gateway.receives(in_ipv4(OTHER_EDGE, EDGE, packet(OTHER_CUSTOMER, CUSTOMER)));
    gateway.sends(packet(OTHER_CUSTOMER, CUSTOMER));
}

#[test]
fn a_border_relay_carries_packets_between_the_domain_and_the_internet() {
    let mut gateway = border();
    gateway.receives(in_ipv4(EDGE, BORDER, packet(CUSTOMER, SERVER)));
    gateway.sends(packet(CUSTOMER, SERVER));
    gateway.receives(packet(SERVER, CUSTOMER));
    gateway.sends_in_ipv4(BORDER, EDGE, packet(SERVER, CUSTOMER));
    gateway.counted([("six_rd.encap", 1), ("six_rd.decap", 1)]);
}

/// RFC 5969 §8: a packet of the customer edge to itself by way of the border relay.
#[test]
fn a_customer_edge_that_asks_whether_its_border_relay_lives_hears_itself() {
    let echo = || v6(CUSTOMER, "2001:db8:6464:100::1").echo(7, 1, b"alive");
    let mut gateway = border();
    gateway.receives(in_ipv4(EDGE, BORDER, echo()));
    gateway.sends(echo());
    // The host's kernel routes it back into the tunnel.
    gateway.receives(echo().hops(63));
    gateway.sends_in_ipv4(BORDER, EDGE, echo().hops(63));
    let mut gateway = edge();
    gateway.receives(in_ipv4(BORDER, EDGE, echo().hops(63)));
    gateway.sends(echo().hops(63));
}

#[test]
fn a_source_of_the_domain_must_embed_the_outer_one() {
    edge().refuses(
        in_ipv4("10.9.8.8", EDGE, packet(OTHER_CUSTOMER, CUSTOMER)),
        DropReason::SpoofedEmbeddedSource,
    );
    border().refuses(
        in_ipv4("10.9.8.8", BORDER, packet(OTHER_CUSTOMER, SERVER)),
        DropReason::SpoofedEmbeddedSource,
    );
    // The same last bits under another IPv4 prefix.
    border().refuses(
        in_ipv4("11.9.8.7", BORDER, packet(OTHER_CUSTOMER, SERVER)),
        DropReason::SpoofedEmbeddedSource,
    );
}

#[test]
fn native_sources_come_from_the_border_relay_alone_and_never_to_it() {
    edge().refuses(in_ipv4(OTHER_EDGE, EDGE, packet(SERVER, CUSTOMER)), DropReason::SourceNotRelay);
    border().refuses(in_ipv4(EDGE, BORDER, packet(SERVER, "2001:4860::9")), DropReason::SourceNotInTunnel);
}

#[test]
fn a_customer_edge_takes_nothing_for_others() {
    for destination in [OTHER_CUSTOMER, SERVER, "2001:db8:6464:200::1"] {
        edge().refuses(in_ipv4(BORDER, EDGE, packet(SERVER, destination)), DropReason::DestinationNotInSite);
    }
}

#[test]
fn a_customer_edge_sends_only_from_its_delegated_prefix() {
    for source in [OTHER_CUSTOMER, "2001:4860::9", "fd00::1"] {
        edge().refuses(packet(source, SERVER), DropReason::SourceNotOfSite);
        edge().refuses(packet(source, OTHER_CUSTOMER), DropReason::SourceNotOfSite);
    }
}

#[test]
fn addresses_that_lead_nowhere_or_to_the_gateway_itself_are_refused() {
    edge().refuses(packet(CUSTOMER, "2001:db8:6464:1ff::1"), DropReason::TunnelLoop);
    border().refuses(packet(SERVER, "2001:db8:0:1ff::1"), DropReason::TunnelLoop);
    let whole = |config: &mut SixRdConfig| {
        let shared = "0.0.0.0/0".parse().unwrap();
        config.domain = Domain::new("2001:db8::/32".parse().unwrap(), shared).unwrap();
        config.subnets = vec!["10.0.0.0/24".parse().unwrap()];
    };
    for (destination, reason) in [
        ("2001:db8:7f00:1::1", DropReason::EmbeddedNotUnicast),
        ("2001:db8:e000:1::1", DropReason::EmbeddedNotUnicast),
        ("2001:db8:ffff:ffff::1", DropReason::EmbeddedNotUnicast),
        ("2001:db8:0:1::1", DropReason::EmbeddedNotUnicast),
        ("2001:db8:a00:ff::1", DropReason::EmbeddedNotUnicast),
        ("2001:db8:a9fe:1::1", DropReason::EmbeddedNotPublic),
        ("2001:db8:a00:1::1", DropReason::TunnelLoop),
    ] {
        border_with(whole).refuses(packet(SERVER, destination), reason);
    }
    // Private addresses are the provider's own affair.
    let mut gateway = border_with(whole);
    gateway.receives(packet(SERVER, "2001:db8:c0a8:101::1"));
    gateway.sends_in_ipv4(BORDER, "192.168.1.1", packet(SERVER, "2001:db8:c0a8:101::1"));
}

#[test]
fn a_customer_edge_sends_nothing_to_an_address_that_is_no_hosts() {
    let config = SixRdConfig {
        domain: Domain::new("2001:db8::/32".parse().unwrap(), "0.0.0.0/0".parse().unwrap()).unwrap(),
        subnets: vec!["10.9.8.0/24".parse().unwrap()],
        ..six_rd(Role::CustomerEdge, EDGE)
    };
    assert_eq!(config.check(), Ok(()));
    let inside = "2001:db8:a64:6401::7";
    for (destination, reason) in [
        ("2001:db8:7f00:1::1", DropReason::EmbeddedNotUnicast),
        ("2001:db8:e000:1::1", DropReason::EmbeddedNotUnicast),
        ("2001:db8:ffff:ffff::1", DropReason::EmbeddedNotUnicast),
        ("2001:db8:a09:8ff::1", DropReason::EmbeddedNotUnicast),
        ("2001:db8:a9fe:1::1", DropReason::EmbeddedNotPublic),
    ] {
        let mut gateway = tunnelling(TunnelConfig::SixRd(config.clone()));
        gateway.refuses(packet(inside, destination), reason);
    }
    let mut gateway = tunnelling(TunnelConfig::SixRd(config));
    gateway.receives(packet(inside, "2001:db8:a09:8fe::1"));
    gateway.sends_in_ipv4(EDGE, "10.9.8.254", packet(inside, "2001:db8:a09:8fe::1"));
}

/// RFC 5969 §12.
#[test]
fn a_border_relay_has_no_dealings_with_other_relays() {
    let others = |config: &mut SixRdConfig| {
        config.border_relays.push("10.0.0.2".parse().unwrap());
        config.other_relays = vec!["10.5.0.0/24".parse().unwrap()];
    };
    for (relay, embedding) in [("10.0.0.2", "2001:db8:0:200::1"), ("10.5.0.9", "2001:db8:500:900::1")] {
        border_with(others).refuses(packet(SERVER, embedding), DropReason::TunnelLoop);
        border_with(others)
            .refuses(in_ipv4(relay, BORDER, packet(embedding, SERVER)), DropReason::TunnelLoop);
    }
    let anycast = |config: &mut SixRdConfig| {
        let shared = "0.0.0.0/0".parse().unwrap();
        config.domain = Domain::new("2001:db8::/32".parse().unwrap(), shared).unwrap();
    };
    border_with(anycast).refuses(packet(SERVER, "2001:db8:c058:6301::1"), DropReason::TunnelLoop);
}

/// RFC 6324 §3.3.
#[test]
fn a_circle_with_another_tunnels_router_is_cut_at_the_border_relay() {
    let public = |config: &mut SixRdConfig| {
        config.address = "192.0.2.1".parse().unwrap();
        config.domain =
            Domain::new("2001:db8::/32".parse().unwrap(), "192.0.2.0/24".parse().unwrap()).unwrap();
    };
    for back in ["2002:c000:201::1", "2001:4860::5efe:192.0.2.1"] {
        border_with(public).refuses(packet(back, "2001:db8:700::1"), DropReason::TunnelLoop);
        let looping = in_ipv4("192.0.2.7", "192.0.2.1", packet("2001:db8:700::1", back));
        border_with(public).refuses(looping, DropReason::TunnelLoop);
    }
}

#[test]
fn several_domains_live_in_one_gateway_and_at_one_address() {
    let mut second = six_rd(Role::BorderRelay, BORDER);
    second.domain = Domain::new("2001:ddd::/40".parse().unwrap(), "10.128.0.0/9".parse().unwrap()).unwrap();
    let mut third = six_rd(Role::BorderRelay, "192.0.2.1");
    third.domain = Domain::new("2001:eee::/32".parse().unwrap(), "0.0.0.0/0".parse().unwrap()).unwrap();
    let mut gateway = support::gateway(|config| {
        let domains = [six_rd(Role::BorderRelay, BORDER), second, third];
        config.tunnels.extend(domains.map(TunnelConfig::SixRd));
    });
    for (edge, border, customer) in [
        (EDGE, BORDER, CUSTOMER),
        ("10.129.2.3", BORDER, "2001:ddd:2:406::1"),
        ("198.51.100.9", "192.0.2.1", "2001:eee:c633:6409::1"),
    ] {
        gateway.receives(in_ipv4(edge, border, packet(customer, SERVER)));
        gateway.sends(packet(customer, SERVER));
        gateway.receives(packet(SERVER, customer));
        gateway.sends_in_ipv4(border, edge, packet(SERVER, customer));
    }
    gateway.refuses(
        in_ipv4("10.129.2.4", BORDER, packet("2001:ddd:2:406::1", SERVER)),
        DropReason::SpoofedEmbeddedSource,
    );
    gateway.refuses(in_ipv4(EDGE, BORDER, packet(SERVER, SERVER)), DropReason::SourceNotInTunnel);
}

#[test]
fn what_the_host_must_route_nowhere_is_told() {
    let edge = six_rd(Role::CustomerEdge, EDGE);
    assert_eq!(edge.null_routes(), ["2001:db8:6464:100::/56".parse().unwrap()]);
    assert_eq!(edge.prefixes(), ["2001:db8::/32", "::/0"].map(|prefix| prefix.parse().unwrap()));
    let border = six_rd(Role::BorderRelay, BORDER);
    assert_eq!(border.null_routes(), ["2001:db8:0:100::/56".parse().unwrap()]);
    assert_eq!(border.subnet_router_anycast(), "2001:db8:0:100::".parse().ok());
    // A border relay whose address is not in the customers' range: there is no prefix that it could withhold from one of them.
    assert_eq!(six_rd(Role::BorderRelay, "192.0.2.1").null_routes(), []);
}

#[test]
fn a_part_that_cannot_be_says_why() {
    let shared = "10.0.0.0/8".parse().unwrap();
    let outside = six_rd(Role::CustomerEdge, "192.0.2.7").check().unwrap_err();
    assert_eq!(outside, SixRdFault::AddressOutsideDomain("192.0.2.7".parse().unwrap(), shared));
    assert!(outside.to_string().contains("IPv4MaskLen 8"));
    let alone = SixRdConfig { border_relays: Vec::new(), ..six_rd(Role::CustomerEdge, EDGE) };
    assert_eq!(alone.check(), Err(SixRdFault::NoBorderRelay));
    assert_eq!(six_rd(Role::CustomerEdge, BORDER).check(), Err(SixRdFault::OwnBorderRelay));
}

#[test]
fn an_icmp_error_must_quote_a_packet_that_this_gateway_could_have_sent() {
    for (gateway, local, destination, inner) in [
        (edge(), EDGE, OTHER_EDGE, packet(CUSTOMER, SERVER)),
        (edge(), EDGE, BORDER, packet(OTHER_CUSTOMER, SERVER)),
        (edge(), EDGE, BORDER, packet(CUSTOMER, OTHER_CUSTOMER)),
        (border(), BORDER, OTHER_EDGE, packet(SERVER, CUSTOMER)),
        (border(), BORDER, EDGE, packet(CUSTOMER, SERVER)),
    ] {
        let quote = in_ipv4(local, destination, inner).octets();
        let error = v4("10.7.7.7", local).icmp(icmp4(3, 1, [0; 4], &quote));
        let mut gateway = gateway;
        gateway.refuses(error, DropReason::ErrorNotForTunnel);
    }
}

/// RFC 5969 §9.
#[test]
fn the_traffic_class_goes_out_with_the_packet_unless_it_is_configured_otherwise() {
    let mut gateway = edge();
    gateway.receives(packet(CUSTOMER, SERVER).tos(0xb8));
    assert_eq!(gateway.sent()[1], 0xb8);
    let mut config = six_rd(Role::CustomerEdge, EDGE);
    config.policy.traffic_class = HeaderByte::Set(0);
    let mut gateway = tunnelling(TunnelConfig::SixRd(config));
    gateway.receives(packet(CUSTOMER, SERVER).tos(0xb8));
    assert_eq!(gateway.sent()[1], 0);
}

/// RFC 5969 §9.1.
#[test]
fn the_tunnel_carries_1_280_octets_unless_more_is_configured() {
    let large = || v6(CUSTOMER, SERVER).udp(1, 2, &[7; 1_233]);
    let mut gateway = edge();
    gateway.receives(large());
    let sent = gateway.sent();
    assert_eq!((sent[40], sent[41], &sent[44..48]), (2, 0, &1_280u32.to_be_bytes()[..]));
    gateway.counted([("six_rd.encap", 1), ("PacketTooBig", 1), ("icmp_errors.made", 1)]);
    let mut config = six_rd(Role::CustomerEdge, EDGE);
    config.policy.mtu = TunnelMtu::Static(1_480);
    let mut gateway = tunnelling(TunnelConfig::SixRd(config));
    gateway.receives(large());
    gateway.sends_in_ipv4(EDGE, BORDER, large());
}

/// RFC 5969 §9.1: two border relays at one anycast address might give the same identification to two packets.
#[test]
fn a_border_relay_whose_packets_may_not_be_cut_sets_df() {
    let mut gateway = border_with(|config| config.policy.outer_fragments = OuterFragments::Never);
    gateway.receives(packet(SERVER, CUSTOMER));
    let sent = gateway.sent();
    assert_eq!((sent[6], &sent[20..]), (0x40, &packet(SERVER, CUSTOMER).octets()[..]));
}

#[test]
fn an_icmp_error_about_a_packet_of_the_domain_is_told_to_its_sender() {
    edge().relays_an_error(EDGE, BORDER, packet(CUSTOMER, SERVER));
    edge().relays_an_error(EDGE, OTHER_EDGE, packet(CUSTOMER, OTHER_CUSTOMER));
    border().relays_an_error(BORDER, EDGE, packet(SERVER, CUSTOMER));
}

#[test]
fn outer_sources_that_are_no_hosts_are_refused_even_if_the_inner_ones_embed_them() {
    let whole = |config: &mut SixRdConfig| {
        let shared = "0.0.0.0/0".parse().unwrap();
        config.domain = Domain::new("2001:db8::/32".parse().unwrap(), shared).unwrap();
        config.subnets = vec!["10.0.0.0/24".parse().unwrap()];
    };
    for (outer, inner, reason) in [
        ("10.0.0.255", "2001:db8:a00:ff::1", DropReason::EmbeddedNotUnicast),
        ("169.254.1.1", "2001:db8:a9fe:101::1", DropReason::EmbeddedNotPublic),
    ] {
        border_with(whole).refuses(in_ipv4(outer, BORDER, packet(inner, SERVER)), reason);
    }
}

#[test]
fn destinations_in_which_an_ipv4_address_stands_bare_are_refused() {
    for destination in ["::192.0.2.1", "::ffff:192.0.2.1"] {
        border()
            .refuses(in_ipv4(EDGE, BORDER, packet(CUSTOMER, destination)), DropReason::MartianDestination);
    }
}

#[test]
fn fragments_are_held_only_from_within_the_domain() {
    let first = |outer: &str, local: &str, source: &str, destination: &str| {
        let whole = in_ipv4(outer, local, v6(source, destination).udp(1, 2, &[7; 1_000]));
        whole.fragment(7, 0, true).part(0, 512)
    };
    border().refuses(first("192.0.2.7", BORDER, CUSTOMER, SERVER), DropReason::NoTunnel);
    edge().refuses(first("192.0.2.7", EDGE, SERVER, CUSTOMER), DropReason::NoTunnel);
    for (mut gateway, fragment) in [
        (border(), first(EDGE, BORDER, CUSTOMER, SERVER)),
        (edge(), first(BORDER, EDGE, SERVER, CUSTOMER)),
        (edge(), first(OTHER_EDGE, EDGE, OTHER_CUSTOMER, CUSTOMER)),
    ] {
        gateway.receives(fragment);
        assert_eq!(gateway.last, Verdict::Held);
    }
}

/// RFC 5969 §7.2: whatever a border relay sends comes from its own address, which may be an anycast one, however the gateway is called.
#[test]
fn a_border_relay_sends_from_its_anycast_address_alone() {
    const ANYCAST: &str = "10.255.0.1";
    let mut config = six_rd(Role::BorderRelay, ANYCAST);
    config.border_relays = vec![ANYCAST.parse().unwrap()];
    config.policy.mtu = TunnelMtu::Static(1_480);
    let mut gateway = support::gateway(|engine| {
        engine.own4 = Some("10.0.0.77".parse().unwrap());
        engine.host4 = vec!["10.0.0.77".parse().unwrap(), ANYCAST.parse().unwrap()];
        engine.limits.mtu4 = 1_280;
        engine.tunnels.push(TunnelConfig::SixRd(config));
    });
    for inner in [
        packet(SERVER, CUSTOMER),
        packet(SERVER, OTHER_CUSTOMER),
        v6(SERVER, CUSTOMER).udp(1, 2, &[7; 1_400]),
    ] {
        gateway.receives(inner);
    }
    // A customer asks whether its border relay lives (§8).
    gateway.receives(in_ipv4(EDGE, ANYCAST, packet(CUSTOMER, CUSTOMER)));
    assert!(gateway.waiting() >= 4);
    while gateway.waiting() > 0 {
        let sent = gateway.sent();
        if sent[0] >> 4 == 4 {
            assert_eq!((sent[9], &sent[12..16]), (41, &[10, 255, 0, 1][..]));
        }
    }
}

/// RFC 5969 §9: a customer edge sends from its IPv4 address, and has packets there and nowhere else.
#[test]
fn a_customer_edge_sends_and_hears_at_its_ipv4_address() {
    let mut gateway = edge();
    for destination in [SERVER, OTHER_CUSTOMER] {
        gateway.receives(packet(CUSTOMER, destination));
        assert_eq!(gateway.sent()[12..16], [10, 100, 100, 1]);
    }
    gateway.receives(in_ipv4(BORDER, EDGE, packet(SERVER, CUSTOMER)));
    gateway.sends(packet(SERVER, CUSTOMER));
    gateway.receives(in_ipv4(BORDER, "10.100.100.2", packet(SERVER, CUSTOMER)));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::NoMechanism));
}

#[test]
fn without_a_domain_there_is_no_6rd() {
    let mut gateway = support::siit(|_| {});
    gateway.receives(packet(CUSTOMER, OTHER_CUSTOMER));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::NoMechanism));
}
