//! 6to4 (RFC 3056) with the checks of RFC 3964: hosts and routers of sites. Addresses are those of the papers' figure: router
//! 192.0.2.8, client 2002:c000:208::2, server 2001:db8::2, relay 192.88.99.1.

use crate::support;
use crate::support::{Build, Gateway, icmp4, in_ipv4, six_to_four, tunnelling, v4, v6};
use sixway_dataplane::DropReason;
use sixway_dataplane::engine::TunnelConfig;
use sixway_dataplane::mechanism::six_to_four::{NativeSources, Role, SixToFourConfig, SixToFourFault};

const ROUTER: &str = "192.0.2.8";
const CLIENT: &str = "2002:c000:208::2";
const SERVER: &str = "2001:db8::2";
const RELAY: &str = "192.88.99.1";
/// Another relay, nearer to the server: the way back is not the way there.
const OTHER_RELAY: &str = "198.51.100.1";
/// Another site, and a host there.
const SITE: &str = "203.0.113.9";
const NEIGHBOUR: &str = "2002:cb00:7109::5";

fn site_with(edit: impl FnOnce(&mut SixToFourConfig)) -> Gateway {
    let mut config = six_to_four(Role::Router, ROUTER);
    edit(&mut config);
    assert_eq!(config.check(), Ok(()));
    tunnelling(TunnelConfig::SixToFour(config))
}

fn site() -> Gateway {
    site_with(|_| {})
}

fn question(source: &str, destination: &str) -> Build {
    v6(source, destination).udp(4_000, 53, b"question")
}

fn answer(source: &str, destination: &str) -> Build {
    v6(source, destination).udp(53, 4_000, b"answer")
}

#[test]
fn a_packet_to_a_native_server_goes_to_the_relay_and_its_answer_may_come_by_another() {
    for role in [Role::Router, Role::Host] {
        let mut gateway = site_with(|config| config.role = role);
        gateway.receives(question(CLIENT, SERVER));
        gateway.sends_in_ipv4(ROUTER, RELAY, question(CLIENT, SERVER));
        gateway.counted([("six_to_four.encap", 1)]);
        gateway.receives(in_ipv4(OTHER_RELAY, ROUTER, answer(SERVER, CLIENT)));
        gateway.sends(answer(SERVER, CLIENT));
        gateway.counted([("six_to_four.decap", 1)]);
    }
}

#[test]
fn a_packet_to_another_site_goes_to_the_address_that_its_destination_embeds() {
    let mut gateway = site();
    gateway.receives(question(CLIENT, NEIGHBOUR));
    gateway.sends_in_ipv4(ROUTER, SITE, question(CLIENT, NEIGHBOUR));
    gateway.receives(in_ipv4(SITE, ROUTER, answer(NEIGHBOUR, CLIENT)));
    gateway.sends(answer(NEIGHBOUR, CLIENT));
    gateway.counted([("six_to_four.encap", 1), ("six_to_four.decap", 1)]);
}

#[test]
fn native_sources_are_taken_from_listed_relays_alone_if_so_configured() {
    let listed = NativeSources::Listed(vec![OTHER_RELAY.parse().unwrap()]);
    let mut gateway = site_with(|config| config.native_sources = listed);
    for relay in [RELAY, OTHER_RELAY] {
        gateway.receives(in_ipv4(relay, ROUTER, answer(SERVER, CLIENT)));
        gateway.sends(answer(SERVER, CLIENT));
    }
    gateway.refuses(in_ipv4(SITE, ROUTER, answer(SERVER, CLIENT)), DropReason::SourceNotRelay);
    // Its own packets are still a site's own matter.
    gateway.receives(in_ipv4(SITE, ROUTER, answer(NEIGHBOUR, CLIENT)));
    gateway.sends(answer(NEIGHBOUR, CLIENT));
}

#[test]
fn nobody_who_sends_from_a_private_address_is_a_relay_unless_it_is_the_configured_one() {
    let mut gateway = site_with(|config| config.relay = "10.0.0.1".parse().ok());
    gateway.refuses(in_ipv4("10.0.0.2", ROUTER, answer(SERVER, CLIENT)), DropReason::SourceNotRelay);
    gateway.receives(in_ipv4("10.0.0.1", ROUTER, answer(SERVER, CLIENT)));
    gateway.sends(answer(SERVER, CLIENT));
}

#[test]
fn a_source_that_embeds_another_address_than_the_outer_one_is_spoofed() {
    let mut gateway = site();
    for outer in [OTHER_RELAY, RELAY, "203.0.113.10"] {
        gateway.refuses(in_ipv4(outer, ROUTER, answer(NEIGHBOUR, CLIENT)), DropReason::SpoofedEmbeddedSource);
    }
}

#[test]
fn nobody_outside_sends_from_the_sites_own_addresses() {
    let mut gateway = site();
    gateway.refuses(in_ipv4(SITE, ROUTER, answer(CLIENT, CLIENT)), DropReason::SpoofedEmbeddedSource);
    gateway.refuses(in_ipv4(ROUTER, ROUTER, answer(CLIENT, CLIENT)), DropReason::TunnelLoop);
}

#[test]
fn a_packet_for_somebody_else_is_not_passed_on() {
    let mut gateway = site();
    for destination in ["2002:cb00:7163::1", "2001:db8::9", "2001:db8::fe"] {
        let packet = in_ipv4(SITE, ROUTER, answer(NEIGHBOUR, destination));
        gateway.refuses(packet, DropReason::DestinationNotInSite);
    }
}

/// RFC 3964 §5.3.2.
#[test]
fn inner_addresses_that_no_packet_may_bear_are_refused() {
    let mut gateway = site();
    for source in ["::", "::1", "ff02::1", "fe80::1", "fec0::1", "::192.0.2.9", "::ffff:192.0.2.9", "0:1::1"]
    {
        let packet = in_ipv4(OTHER_RELAY, ROUTER, answer(source, CLIENT));
        gateway.refuses(packet, DropReason::MartianSource);
    }
    for destination in
        ["::", "::1", "ff0e::1", "fe80::1", "fec0::1", "::192.0.2.8", "::ffff:192.0.2.8", "0:1::1"]
    {
        let packet = in_ipv4(SITE, ROUTER, answer(NEIGHBOUR, destination));
        gateway.refuses(packet, DropReason::MartianDestination);
    }
    gateway.refuses(question("fec0::1", NEIGHBOUR), DropReason::MartianSource);
    gateway.refuses(question(CLIENT, "fec0::1"), DropReason::MartianDestination);
}

/// RFC 3964 §4.1.1: neighbour discovery is not accepted from the tunnel's link.
#[test]
fn neighbour_discovery_is_not_spoken_over_6to4() {
    let advertisement = support::icmp6(134, 0, [64, 0, 7, 8], &[0; 8]);
    let inner = v6("fe80::2", "ff02::1").hops(255).icmp(advertisement);
    site().refuses(in_ipv4(OTHER_RELAY, ROUTER, inner), DropReason::MartianSource);
}

/// RFC 3056 §9 and RFC 3964 §5.3.1.
#[test]
fn embedded_addresses_that_are_not_public_hosts_are_refused_in_both_directions_silently() {
    let mut gateway = site();
    for (embedded, reason) in [
        ("2002:a00:1::1", DropReason::EmbeddedNotPublic),
        ("2002:ac10:1::1", DropReason::EmbeddedNotPublic),
        ("2002:c0a8:1::1", DropReason::EmbeddedNotPublic),
        ("2002:6440:1::1", DropReason::EmbeddedNotPublic),
        ("2002:a9fe:1::1", DropReason::EmbeddedNotPublic),
        ("2002:0:1::1", DropReason::EmbeddedNotUnicast),
        ("2002:7f00:1::1", DropReason::EmbeddedNotUnicast),
        ("2002:e000:1::1", DropReason::EmbeddedNotUnicast),
        ("2002:f000:1::1", DropReason::EmbeddedNotUnicast),
        ("2002:ffff:ffff::1", DropReason::EmbeddedNotUnicast),
    ] {
        gateway.refuses(question(CLIENT, embedded), reason);
        gateway.refuses(in_ipv4(SITE, ROUTER, answer(embedded, CLIENT)), reason);
    }
    gateway
        .refuses(in_ipv4("10.0.0.1", ROUTER, answer("2002:a00:1::1", CLIENT)), DropReason::EmbeddedNotPublic);
}

/// RFC 3964 §4.1.4.
#[test]
fn nothing_is_sent_to_the_broadcast_address_of_an_attached_network() {
    let mut gateway = site_with(|config| config.subnets = vec!["192.0.2.0/24".parse().unwrap()]);
    gateway.refuses(question(CLIENT, "2002:c000:2ff::bbbb"), DropReason::EmbeddedNotUnicast);
    gateway.refuses(
        in_ipv4("192.0.2.255", ROUTER, answer("2002:c000:2ff::bbbb", CLIENT)),
        DropReason::EmbeddedNotUnicast,
    );
    gateway.receives(question(CLIENT, "2002:c000:2fe::1"));
    gateway.sends_in_ipv4(ROUTER, "192.0.2.254", question(CLIENT, "2002:c000:2fe::1"));
}

/// RFC 3964 §5.1.
#[test]
fn what_the_other_end_would_refuse_is_not_sent() {
    let mut gateway = site();
    gateway.refuses(question(NEIGHBOUR, SERVER), DropReason::SourceNotOfSite);
    gateway.refuses(question(NEIGHBOUR, "2002:cb00:7163::1"), DropReason::SourceNotOfSite);
    gateway.refuses(question("2001:db8:1::1", SERVER), DropReason::SourceNotOfSite);
    // A host of the site that has native IPv6 too may reach another site from its native address (§2.4.2).
    gateway.receives(question("2001:db8:1::1", NEIGHBOUR));
    gateway.sends_in_ipv4(ROUTER, SITE, question("2001:db8:1::1", NEIGHBOUR));
}

#[test]
fn a_packet_for_the_own_site_that_comes_back_to_the_tunnel_goes_no_further() {
    site().refuses(question(CLIENT, "2002:c000:208:9::1"), DropReason::TunnelLoop);
    site().refuses(question("2001:db8::1", "2002:c000:208:9::1"), DropReason::TunnelLoop);
}

/// RFC 6324 §3.3: a source that contains our address in another tunnel's format.
#[test]
fn a_source_in_which_the_own_address_stands_elsewhere_is_not_sent() {
    for source in ["2001:db8:9::5efe:192.0.2.8", "2001:db8:9::200:5efe:192.0.2.8"] {
        site().refuses(question(source, NEIGHBOUR), DropReason::TunnelLoop);
    }
}

#[test]
fn a_native_destination_without_a_relay_is_reported_to_its_sender() {
    let mut gateway = site_with(|config| config.relay = None);
    gateway.receives(question(CLIENT, SERVER));
    let sent = gateway.sent();
    assert_eq!((sent[40], sent[41]), (1, 0));
    gateway.counted([("NoMechanism", 1), ("icmp_errors.made", 1)]);
}

/// The decoupled case of gateway-2012: the NAT is another box, and passes protocol 41.
#[test]
fn behind_a_nat_the_prefix_embeds_the_outer_address_and_packets_bear_the_inner_one() {
    let mut gateway = site_with(|config| {
        config.address = "192.168.1.2".parse().unwrap();
        config.nat_address = ROUTER.parse().ok();
    });
    gateway.receives(question(CLIENT, NEIGHBOUR));
    gateway.sends_in_ipv4("192.168.1.2", SITE, question(CLIENT, NEIGHBOUR));
    gateway.receives(in_ipv4(SITE, "192.168.1.2", answer(NEIGHBOUR, CLIENT)));
    gateway.sends(answer(NEIGHBOUR, CLIENT));
    gateway.receives(in_ipv4(OTHER_RELAY, "192.168.1.2", answer(SERVER, CLIENT)));
    gateway.sends(answer(SERVER, CLIENT));
    gateway.refuses(question(CLIENT, "2002:c000:208:9::1"), DropReason::TunnelLoop);
    gateway.refuses(question("2001:db8:9::5efe:192.0.2.8", NEIGHBOUR), DropReason::TunnelLoop);
}

#[test]
fn an_address_behind_a_nat_is_refused_with_the_reason_unless_the_nats_is_given() {
    let fault = |address: &str, nat: Option<&str>, role| {
        let nat_address = nat.map(|nat| nat.parse().unwrap());
        SixToFourConfig { nat_address, ..six_to_four(role, address) }.check()
    };
    for address in ["192.168.1.2", "10.0.0.1", "100.64.0.1", "169.254.1.1", "127.0.0.1"] {
        let expected = SixToFourFault::NotPublic(address.parse().unwrap());
        assert_eq!(fault(address, None, Role::Router), Err(expected));
        assert!(expected.to_string().contains("outermost NAT (RFC 3056 §2, §5.8)"));
    }
    assert_eq!(fault("192.168.1.2", Some(ROUTER), Role::Host), Ok(()));
    assert_eq!(
        fault("192.168.1.2", Some("10.9.9.9"), Role::Host),
        Err(SixToFourFault::NotPublic("10.9.9.9".parse().unwrap()))
    );
    assert_eq!(fault("192.168.1.2", Some(ROUTER), Role::Relay), Err(SixToFourFault::RelayBehindNat));
    assert_eq!(fault(RELAY, None, Role::Router), Err(SixToFourFault::OwnRelay));
    let relay = SixToFourConfig { relay: ROUTER.parse().ok(), ..six_to_four(Role::Relay, RELAY) };
    assert_eq!(relay.check(), Err(SixToFourFault::RelayOfRelay));
}

#[test]
fn an_icmp_error_must_quote_a_packet_that_this_site_could_have_sent() {
    let mut gateway = site();
    for (outer, inner) in [
        ((ROUTER, SITE), question(CLIENT, SERVER)),
        ((ROUTER, RELAY), question(CLIENT, NEIGHBOUR)),
        ((ROUTER, OTHER_RELAY), question(CLIENT, SERVER)),
        ((ROUTER, SITE), question(NEIGHBOUR, NEIGHBOUR)),
        ((ROUTER, "10.0.0.1"), question(CLIENT, "2002:a00:1::1")),
        (("192.0.2.9", SITE), question(CLIENT, NEIGHBOUR)),
    ] {
        let quote = in_ipv4(outer.0, outer.1, inner).octets();
        let error = v4("198.51.100.77", ROUTER).icmp(icmp4(3, 1, [0; 4], &quote));
        gateway.refuses(error, DropReason::ErrorNotForTunnel);
    }
}

/// RFC 7526 §5.
#[test]
fn without_configuration_there_is_no_6to4() {
    let mut gateway = support::gateway(|_| {});
    gateway.receives(question(CLIENT, NEIGHBOUR));
    gateway.counted([("NoMechanism", 1), ("icmp_errors.made", 1)]);
    gateway.receives(in_ipv4(SITE, ROUTER, answer(NEIGHBOUR, CLIENT)));
    gateway.counted([("NoMechanism", 1), ("icmp_errors.made", 1)]);
}

#[test]
fn an_icmp_error_about_a_packet_of_the_site_is_reported_to_its_sender() {
    site().relays_an_error(ROUTER, SITE, question(CLIENT, NEIGHBOUR));
    site().relays_an_error(ROUTER, RELAY, question(CLIENT, SERVER));
}
