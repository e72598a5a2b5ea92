//! 6to4 relays (RFC 3056 §5.2, RFC 3964 §3.2), with the addresses of relay-2013: relay 80.64.79.254, hosts 80.64.79.n,
//! responder 2a02:a50::2; and by the anycast address 192.88.99.1 (RFC 3068).

use crate::support;
use crate::support::{Build, Gateway, icmp4, in_ipv4, six_to_four, tunnelling, v4, v6};
use sixway_dataplane::DropReason;
use sixway_dataplane::engine::TunnelConfig;
use sixway_dataplane::mechanism::six_to_four::{Role, SixToFourConfig};

const RELAY: &str = "80.64.79.254";
/// Of the relay's own prefix.
const RELAY6: &str = "2002:5040:4ffe::1";
const HOST: &str = "80.64.79.3";
const HOST6: &str = "2002:5040:4f03::1";
const RESPONDER: &str = "2a02:a50::2";

fn relay_with(edit: impl FnOnce(&mut SixToFourConfig)) -> Gateway {
    let mut config = six_to_four(Role::Relay, RELAY);
    edit(&mut config);
    assert_eq!(config.check(), Ok(()));
    tunnelling(TunnelConfig::SixToFour(config))
}

fn relay() -> Gateway {
    relay_with(|_| {})
}

fn ping(source: &str, destination: &str) -> Build {
    v6(source, destination).echo(7, 1, &[0x55; 100])
}

#[test]
fn a_hosts_packet_comes_out_towards_native_ipv6_and_the_answer_goes_to_the_address_it_embeds() {
    let mut gateway = relay();
    gateway.receives(in_ipv4(HOST, RELAY, ping(HOST6, RESPONDER)));
    gateway.sends(ping(HOST6, RESPONDER));
    gateway.receives(ping(RESPONDER, HOST6));
    gateway.sends_in_ipv4(RELAY, HOST, ping(RESPONDER, HOST6));
    gateway.counted([("six_to_four.encap", 1), ("six_to_four.decap", 1)]);
}

#[test]
fn the_anycast_address_serves_as_any_other() {
    let mut gateway = relay_with(|config| config.address = "192.88.99.1".parse().unwrap());
    gateway.receives(in_ipv4("192.0.2.8", "192.88.99.1", ping("2002:c000:208::2", "2001:db8::2")));
    gateway.sends(ping("2002:c000:208::2", "2001:db8::2"));
    gateway.receives(ping("2001:db8::2", "2002:c000:208::2"));
    gateway.sends_in_ipv4("192.88.99.1", "192.0.2.8", ping("2001:db8::2", "2002:c000:208::2"));
}

/// RFC 3068 §4.2.
#[test]
fn a_relay_at_the_anycast_address_is_reached_at_its_own_address_too() {
    let mut gateway = support::gateway(|config| {
        for address in ["192.88.99.1", RELAY] {
            config.tunnels.push(TunnelConfig::SixToFour(six_to_four(Role::Relay, address)));
        }
    });
    for address in ["192.88.99.1", RELAY] {
        gateway.receives(in_ipv4(HOST, address, ping(HOST6, RESPONDER)));
        gateway.sends(ping(HOST6, RESPONDER));
    }
    // Answers come from the first.
    gateway.receives(ping(RESPONDER, HOST6));
    gateway.sends_in_ipv4("192.88.99.1", HOST, ping(RESPONDER, HOST6));
}

/// RFC 6343 §4.4, item 4: so a site finds out whether its relay lives.
#[test]
fn the_relays_own_prefix_is_reached_from_sites_and_reaches_them() {
    let mut gateway = relay();
    gateway.receives(in_ipv4(HOST, RELAY, ping(HOST6, RELAY6).hops(1)));
    gateway.sends(ping(HOST6, RELAY6).hops(1));
    gateway.receives(ping(RELAY6, HOST6));
    gateway.sends_in_ipv4(RELAY, HOST, ping(RELAY6, HOST6));
}

#[test]
fn a_source_that_does_not_embed_the_outer_one_is_spoofed() {
    relay().refuses(in_ipv4("80.64.79.4", RELAY, ping(HOST6, RESPONDER)), DropReason::SpoofedEmbeddedSource);
}

/// RFC 3964 §4.2.2.
#[test]
fn native_sources_from_the_tunnel_are_refused() {
    for source in ["2001:db8:9::1", RESPONDER, "64:ff9b::1", "fd00::1"] {
        relay().refuses(in_ipv4(HOST, RELAY, ping(source, "2001:db8::2")), DropReason::SourceNotInTunnel);
        relay().refuses(in_ipv4(HOST, RELAY, ping(source, HOST6)), DropReason::SourceNotInTunnel);
    }
}

/// RFC 3964 §4.2, §5.2.
#[test]
fn sites_are_not_joined_by_the_relay_in_either_direction() {
    let mut gateway = relay();
    gateway.refuses(in_ipv4(HOST, RELAY, ping(HOST6, "2002:5040:4f04::1")), DropReason::BetweenSites);
    gateway.refuses(ping("2002:5040:4f04::1", HOST6), DropReason::SourceNotOfSite);
}

#[test]
fn embedded_addresses_that_are_not_public_hosts_are_refused_silently() {
    let mut gateway = relay();
    for (embedded, reason) in [
        ("2002:a00:1::1", DropReason::EmbeddedNotPublic),
        ("2002:c0a8:101::1", DropReason::EmbeddedNotPublic),
        ("2002:7f00:1::1", DropReason::EmbeddedNotUnicast),
        ("2002:e000:1::1", DropReason::EmbeddedNotUnicast),
        ("2002:ffff:ffff::1", DropReason::EmbeddedNotUnicast),
        ("2002:5040:4ffe:9::1", DropReason::TunnelLoop),
    ] {
        gateway.refuses(ping(RESPONDER, embedded), reason);
    }
    gateway
        .refuses(in_ipv4("10.0.0.1", RELAY, ping("2002:a00:1::1", RESPONDER)), DropReason::EmbeddedNotPublic);
}

/// RFC 3964 §4.2.4.
#[test]
fn nothing_is_sent_to_the_broadcast_address_of_an_attached_network() {
    let mut gateway = relay_with(|config| config.subnets = vec!["80.64.79.0/24".parse().unwrap()]);
    gateway.refuses(ping(RESPONDER, "2002:5040:4fff::bbbb"), DropReason::EmbeddedNotUnicast);
    let echo = in_ipv4("80.64.79.255", RELAY, ping("2002:5040:4fff::bbbb", RESPONDER).hops(1));
    gateway.refuses(echo, DropReason::EmbeddedNotUnicast);
}

/// RFC 6324 §2: an ISATAP router with prefix 2001:db8:1:2::/64 at 198.51.100.1, and this relay. §3.3 ends the loop.
#[test]
fn a_circle_with_an_isatap_router_is_cut_at_the_relay() {
    let mut gateway = relay();
    // Packet 2 of figure 1, on its way to the router that would send it to us.
    let looping = |source: &str, destination: &str| v6(source, destination).udp(1, 2, b"round");
    let back = "2001:db8:1:2:200:5efe:80.64.79.254";
    gateway
        .refuses(in_ipv4("198.51.100.1", RELAY, looping("2002:c633:6401::1", back)), DropReason::TunnelLoop);
    // Packet 0, the other way about: this relay is to send it to the router.
    gateway.refuses(looping(back, "2002:c633:6401::1"), DropReason::TunnelLoop);
}

#[test]
fn packets_to_and_from_other_addresses_of_this_host_run_in_no_circle() {
    let mut gateway = support::gateway(|config| {
        config.tunnels.push(TunnelConfig::SixToFour(six_to_four(Role::Relay, RELAY)));
        config.host4 = vec!["203.0.113.77".parse().unwrap()];
    });
    gateway.refuses(ping(RESPONDER, "2002:cb00:714d::1"), DropReason::TunnelLoop);
    gateway.refuses(
        in_ipv4("203.0.113.77", RELAY, ping("2002:cb00:714d::1", RESPONDER)),
        DropReason::TunnelLoop,
    );
}

#[test]
fn lying_and_truncated_packets_are_counted_by_what_they_lack_and_not_answered() {
    let inner = || ping(HOST6, RESPONDER);
    let mut gateway = relay();
    gateway.refuses(in_ipv4(HOST, RELAY, &inner().octets()[..39]), DropReason::Truncated);
    gateway.refuses(in_ipv4(HOST, RELAY, &inner().octets()[..100]), DropReason::Truncated);
    gateway.refuses(in_ipv4(HOST, RELAY, inner().lies_about_length(1)), DropReason::Truncated);
    gateway.refuses(in_ipv4(HOST, RELAY, Vec::new()), DropReason::InnerNotIpv6);
    gateway.refuses(in_ipv4(HOST, RELAY, v4(HOST, RELAY).echo(7, 1, b"ping")), DropReason::InnerNotIpv6);
    let mut version = inner().octets();
    version[0] = 0x75;
    gateway.refuses(in_ipv4(HOST, RELAY, version), DropReason::InnerNotIpv6);
    gateway.refuses(in_ipv4(HOST, RELAY, inner()).lies_about_length(1), DropReason::Truncated);
    let chain = inner().extension(0, &[0, 200, 0, 0, 0, 0, 0, 0]);
    gateway.refuses(in_ipv4(HOST, RELAY, chain), DropReason::BadExtensionHeader);
}

/// RFC 4213 §3.6: the inner length counts, for the outer packet may be padded.
#[test]
fn padding_behind_the_inner_packet_is_left_behind() {
    let mut gateway = relay();
    gateway.receives(in_ipv4(HOST, RELAY, [ping(HOST6, RESPONDER).octets(), vec![0xee; 9]].concat()));
    gateway.sends(ping(HOST6, RESPONDER));
}

#[test]
fn fragments_are_joined_first_and_their_flood_is_held_within_the_memory_for_them() {
    let whole = in_ipv4(HOST, RELAY, v6(HOST6, RESPONDER).udp(1, 2, &[7; 1_000]));
    let mut gateway = support::gateway(|config| {
        config.tunnels.push(TunnelConfig::SixToFour(six_to_four(Role::Relay, RELAY)));
        config.fragments.memory = 64 * 1_024;
    });
    gateway.receives(whole.clone().fragment(7, 0, true).part(0, 512));
    gateway.receives(whole.clone().fragment(7, 512, false).part(512, 1_048));
    gateway.sends(v6(HOST6, RESPONDER).udp(1, 2, &[7; 1_000]));
    for identification in 0..2_000 {
        gateway.receives(whole.clone().fragment(identification, 0, true).part(0, 512));
        gateway.sends_nothing();
    }
    let counters = gateway.engine.counters();
    assert!(counters.held * 512 <= 64 * 1_024, "{counters:?}");
    assert!(counters.dropped_total() >= 2_000 - 128, "{counters:?}");
}

#[test]
fn fragments_from_where_no_tunnels_packets_come_from_are_not_held() {
    let mut gateway = relay();
    let first = in_ipv4("10.0.0.1", RELAY, v6("2002:a00:1::1", RESPONDER).udp(1, 2, &[7; 1_000]));
    gateway.refuses(first.fragment(7, 0, true).part(0, 512), DropReason::NoTunnel);
}

#[test]
fn an_icmp_error_must_quote_a_packet_that_this_relay_could_have_sent() {
    let mut gateway = relay();
    for (destination, inner) in [
        ("80.64.79.4", ping(RESPONDER, HOST6)),
        (HOST, ping("2002:5040:4f04::1", HOST6)),
        (HOST, ping(RESPONDER, "2001:db8::2")),
    ] {
        let quote = in_ipv4(RELAY, destination, inner).octets();
        let error = v4("198.51.100.77", RELAY).icmp(icmp4(3, 1, [0; 4], &quote));
        gateway.refuses(error, DropReason::ErrorNotForTunnel);
    }
}

#[test]
fn an_icmp_error_about_a_relayed_packet_is_reported_to_its_sender() {
    relay().relays_an_error(RELAY, HOST, ping(RESPONDER, HOST6));
}
