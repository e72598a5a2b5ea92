//! Configured tunnels (RFC 4213 §3.6, §4, §5): whose packets are taken, and what is neighbour discovery between the ends.

use crate::support;
use crate::support::{Build, Gateway, configured, icmp4, icmp6, in_ipv4, tunnelling, v4, v6};
use sixway_dataplane::engine::TunnelConfig;
use sixway_dataplane::mechanism::configured::{ConfiguredConfig, ConfiguredFault};
use sixway_dataplane::{DropReason, Verdict};

const LOCAL: &str = "192.0.2.9";
const REMOTE: &str = "198.51.100.7";
/// Behind the other end, and on this side.
const THERE: &str = "2001:db8:7::1";
const HERE: &str = "2001:db8:1::1";

fn tunnel() -> Gateway {
    tunnelling(TunnelConfig::Configured(configured()))
}

/// A tunnel to a provider: everything is behind its other end.
fn uplink() -> Gateway {
    tunnelling(TunnelConfig::Configured(ConfiguredConfig {
        prefixes: vec!["::/0".parse().unwrap()],
        strict_sources: false,
        ..configured()
    }))
}

fn packet(source: &str, destination: &str) -> Build {
    v6(source, destination).udp(4_000, 53, b"data")
}

#[test]
fn only_the_configured_remote_endpoint_is_heard_and_others_learn_nothing() {
    for outer in ["198.51.100.8", "203.0.113.9", "10.0.0.1"] {
        tunnel().refuses(in_ipv4(outer, LOCAL, packet(THERE, HERE)), DropReason::NoTunnel);
    }
    tunnel().refuses(in_ipv4(LOCAL, LOCAL, packet(THERE, HERE)), DropReason::TunnelLoop);
}

#[test]
fn sources_that_are_not_behind_the_other_end_are_refused_if_ingress_is_strict() {
    for source in [HERE, "2001:db8:8::1", "2001:db8::fe", "64:ff9b::1"] {
        tunnel().refuses(in_ipv4(REMOTE, LOCAL, packet(source, HERE)), DropReason::SourceNotInTunnel);
    }
}

#[test]
fn an_uplink_takes_any_source_but_the_gateways_own() {
    for source in [THERE, "2001:4860::8", "fd00::1"] {
        let mut gateway = uplink();
        gateway.receives(in_ipv4(REMOTE, LOCAL, packet(source, HERE)));
        gateway.sends(packet(source, HERE));
    }
    uplink().refuses(in_ipv4(REMOTE, LOCAL, packet("2001:db8::fe", HERE)), DropReason::SourceNotInTunnel);
}

/// RFC 4213 §3.6, the list of invalid sources.
#[test]
fn sources_that_no_packet_may_bear_are_refused_silently() {
    for source in ["ff02::1", "ff0e::1", "::1", "::", "::192.0.2.1", "::2", "::ffff:192.0.2.1", "fe80::1"] {
        uplink().refuses(in_ipv4(REMOTE, LOCAL, packet(source, HERE)), DropReason::MartianSource);
    }
}

#[test]
fn lying_and_truncated_packets_are_counted_by_what_they_lack() {
    let inner = || packet(THERE, HERE);
    let mut gateway = tunnel();
    gateway.refuses(in_ipv4(REMOTE, LOCAL, &inner().octets()[..39]), DropReason::Truncated);
    gateway.refuses(in_ipv4(REMOTE, LOCAL, inner().lies_about_length(1)), DropReason::Truncated);
    gateway.refuses(
        in_ipv4(REMOTE, LOCAL, packet(THERE, HERE).lies_about_length(40_000)),
        DropReason::Truncated,
    );
    gateway.refuses(in_ipv4(REMOTE, LOCAL, v4(REMOTE, LOCAL).echo(7, 1, b"ping")), DropReason::InnerNotIpv6);
    // The inner length counts; what is behind it is padding, or a transport header cut short.
    gateway.receives(in_ipv4(REMOTE, LOCAL, [inner().octets(), vec![0xee; 5]].concat()));
    gateway.sends(inner());
    gateway.refuses(in_ipv4(REMOTE, LOCAL, inner().lies_about_length(-9)), DropReason::TransportTruncated);
}

#[test]
fn fragments_are_held_only_from_the_remote_endpoint() {
    let whole = |outer| in_ipv4(outer, LOCAL, v6(THERE, HERE).udp(1, 2, &[7; 1_000]));
    let mut gateway = tunnel();
    gateway.refuses(whole("198.51.100.8").fragment(7, 0, true).part(0, 512), DropReason::NoTunnel);
    gateway.receives(whole(REMOTE).fragment(7, 0, true).part(0, 512));
    assert_eq!(gateway.last, Verdict::Held);
}

#[test]
fn a_tunnel_whose_other_end_is_not_known_tells_who_would_use_it() {
    let mut gateway = tunnelling(TunnelConfig::Configured(ConfiguredConfig { remote: None, ..configured() }));
    gateway.receives(packet(HERE, THERE));
    let sent = gateway.sent();
    assert_eq!((sent[40], sent[41]), (1, 3));
    gateway.counted([("NoRemote", 1), ("icmp_errors.made", 1)]);
    gateway.refuses(in_ipv4(REMOTE, LOCAL, packet(THERE, HERE)), DropReason::NoTunnel);
    let solicitation =
        v6("fe80::c633:6407", "fe80::c000:209").hops(255).icmp(icmp6(135, 0, [0; 4], &[0; 16]));
    gateway.refuses(in_ipv4(REMOTE, LOCAL, solicitation), DropReason::MartianSource);
    // Its name has been resolved.
    gateway.engine.set_tunnels(&[TunnelConfig::Configured(configured())], &[], &[]);
    gateway.receives(packet(HERE, THERE));
    gateway.sends_in_ipv4(LOCAL, REMOTE, packet(HERE, THERE));
    gateway.receives(in_ipv4(REMOTE, LOCAL, packet(THERE, HERE)));
    gateway.sends(packet(THERE, HERE));
}

#[test]
fn packets_never_move_the_remote_endpoint() {
    let mut gateway = tunnel();
    gateway.refuses(in_ipv4("198.51.100.8", LOCAL, packet(THERE, HERE)), DropReason::NoTunnel);
    gateway.receives(packet(HERE, THERE));
    gateway.sends_in_ipv4(LOCAL, REMOTE, packet(HERE, THERE));
}

#[test]
fn a_remote_endpoint_that_moves_is_followed_when_the_configuration_says_so() {
    let mut gateway = tunnel();
    let moved = ConfiguredConfig { remote: "198.51.100.8".parse().ok(), ..configured() };
    gateway.engine.set_tunnels(&[TunnelConfig::Configured(moved)], &[], &[]);
    gateway.refuses(in_ipv4(REMOTE, LOCAL, packet(THERE, HERE)), DropReason::NoTunnel);
    gateway.receives(packet(HERE, THERE));
    gateway.sends_in_ipv4(LOCAL, "198.51.100.8", packet(HERE, THERE));
}

/// RFC 4213 §3.8.
#[test]
fn neighbour_discovery_between_the_ends_goes_to_control() {
    let solicitation = |source: &str, destination: &str| {
        v6(source, destination).hops(255).icmp(icmp6(135, 0, [0; 4], &[0; 16]))
    };
    for destination in ["fe80::c000:209", "ff02::1:ff00:209", "ff02::1"] {
        let mut gateway = tunnel();
        gateway.receives(in_ipv4(REMOTE, LOCAL, solicitation("fe80::c633:6407", destination)));
        assert_eq!(gateway.last, Verdict::Control);
        gateway.sends_nothing();
    }
    let mut gateway = tunnel();
    let link_local = || solicitation("fe80::c633:6407", "fe80::c000:209");
    gateway.refuses(in_ipv4("198.51.100.8", LOCAL, link_local()), DropReason::NoTunnel);
    gateway.refuses(in_ipv4(REMOTE, LOCAL, link_local().hops(254)), DropReason::MartianSource);
    let ping = v6("fe80::c633:6407", "fe80::c000:209").hops(255).echo(7, 1, b"ping");
    gateway.refuses(in_ipv4(REMOTE, LOCAL, ping), DropReason::MartianSource);
}

#[test]
fn several_tunnels_end_at_one_address_and_each_has_its_own_packets() {
    let second = ConfiguredConfig {
        remote: "198.51.100.8".parse().ok(),
        prefixes: vec!["2001:db8:8::/48".parse().unwrap()],
        ..configured()
    };
    let mut gateway = support::gateway(|config| {
        config.tunnels = [configured(), second].map(TunnelConfig::Configured).to_vec();
    });
    for (remote, there) in [(REMOTE, THERE), ("198.51.100.8", "2001:db8:8::1")] {
        gateway.receives(packet(HERE, there));
        gateway.sends_in_ipv4(LOCAL, remote, packet(HERE, there));
        gateway.receives(in_ipv4(remote, LOCAL, packet(there, HERE)));
        gateway.sends(packet(there, HERE));
    }
    gateway.refuses(in_ipv4(REMOTE, LOCAL, packet("2001:db8:8::1", HERE)), DropReason::SourceNotInTunnel);
}

#[test]
fn an_icmp_error_must_quote_a_packet_that_went_through_the_tunnel() {
    for (source, destination, inner) in [
        (LOCAL, "198.51.100.8", packet(HERE, THERE)),
        ("192.0.2.10", REMOTE, packet(HERE, THERE)),
        (LOCAL, REMOTE, packet(HERE, "2001:db8:8::1")),
    ] {
        let quote = in_ipv4(source, destination, inner).octets();
        let error = v4("203.0.113.1", LOCAL).icmp(icmp4(3, 1, [0; 4], &quote));
        tunnel().refuses(error, DropReason::ErrorNotForTunnel);
    }
}

#[test]
fn both_ends_at_one_address_are_refused() {
    let config = ConfiguredConfig { remote: LOCAL.parse().ok(), ..configured() };
    assert_eq!(config.check(), Err(ConfiguredFault::EndsAreOne));
    assert_eq!(configured().check(), Ok(()));
}
