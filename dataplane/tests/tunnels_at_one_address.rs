//! Several mechanisms at one IPv4 address (RFC 3964 §6.1, RFC 5214 §7.3): a packet is the configured tunnel's that it comes
//! from, or else the first mechanism's that claims it.

use crate::support;
use crate::support::{Build, Gateway, configured, in_ipv4, v6};
use sixway_dataplane::DropReason;
use sixway_dataplane::engine::TunnelConfig;
use sixway_dataplane::mechanism::configured::ConfiguredConfig;
use sixway_dataplane::mechanism::{isatap, six_rd, six_to_four};

const LOCAL: &str = "192.0.2.8";
const REMOTE: &str = "198.51.100.7";
const SERVER: &str = "2001:4860::8";

fn tunnels() -> [TunnelConfig; 4] {
    let mut domain = support::six_rd(six_rd::Role::BorderRelay, LOCAL);
    domain.domain =
        six_rd::Domain::new("2001:ddd::/32".parse().unwrap(), "0.0.0.0/0".parse().unwrap()).unwrap();
    let link = isatap::IsatapConfig { routers: Vec::new(), ..support::isatap(isatap::Role::Router, LOCAL) };
    [
        TunnelConfig::SixToFour(support::six_to_four(six_to_four::Role::Relay, LOCAL)),
        TunnelConfig::SixRd(domain),
        TunnelConfig::Isatap(link),
        TunnelConfig::Configured(ConfiguredConfig { local: LOCAL.parse().unwrap(), ..configured() }),
    ]
}

fn gateway() -> Gateway {
    support::gateway(|config| config.tunnels = tunnels().to_vec())
}

fn packet(source: &str, destination: &str) -> Build {
    v6(source, destination).udp(1, 2, b"data")
}

/// Outer and inner source of a host behind each tunnel, and what is counted.
const OTHERS: [(&str, &str, &str, &str); 4] = [
    ("203.0.113.9", "2002:cb00:7109::1", "six_to_four.decap", "six_to_four.encap"),
    ("203.0.113.9", "2001:ddd:cb00:7109::1", "six_rd.decap", "six_rd.encap"),
    ("203.0.113.9", "2001:db8:1:2:200:5efe:203.0.113.9", "isatap.decap", "isatap.encap"),
    (REMOTE, "2001:db8:7::1", "configured.decap", "configured.encap"),
];

#[test]
fn each_mechanism_has_its_own_packets_in_any_order_of_the_configuration() {
    for turn in 0..4 {
        let mut order = tunnels();
        order.rotate_left(turn);
        let mut gateway = support::gateway(|config| config.tunnels = order.to_vec());
        for (outer, inner, decap, encap) in OTHERS {
            gateway.receives(in_ipv4(outer, LOCAL, packet(inner, SERVER)));
            gateway.sends(packet(inner, SERVER));
            gateway.counted([(decap, 1)]);
            gateway.receives(packet(SERVER, inner));
            gateway.sends_in_ipv4(LOCAL, outer, packet(SERVER, inner));
            gateway.counted([(encap, 1)]);
        }
    }
}

#[test]
fn the_other_end_of_a_configured_tunnel_may_be_a_site_of_another_mechanism_too() {
    let mut gateway = gateway();
    for (inner, decap) in [
        ("2002:c633:6407::1", "six_to_four.decap"),
        ("2001:ddd:c633:6407::1", "six_rd.decap"),
        ("2001:db8:7::9", "configured.decap"),
    ] {
        gateway.receives(in_ipv4(REMOTE, LOCAL, packet(inner, SERVER)));
        gateway.sends(packet(inner, SERVER));
        gateway.counted([(decap, 1)]);
    }
}

#[test]
fn what_nobody_claims_is_told_what_it_lacks() {
    let mut gateway = gateway();
    gateway.refuses(in_ipv4(REMOTE, LOCAL, packet("2001:4860::7", SERVER)), DropReason::SourceNotInTunnel);
    gateway.refuses(
        in_ipv4("203.0.113.9", LOCAL, packet("2001:4860::7", SERVER)),
        DropReason::SourceNotInTunnel,
    );
    gateway.refuses(
        in_ipv4("203.0.113.9", LOCAL, packet("2002:cb00:710a::1", SERVER)),
        DropReason::SpoofedEmbeddedSource,
    );
}

/// RFC 6324 §3.3: the own address in the format of a tunnel other than the one at hand.
#[test]
fn one_mechanisms_addresses_lead_into_no_circle_through_another() {
    let mut gateway = gateway();
    let (as_site, as_customer, as_host) =
        ("2002:c000:208::1", "2001:ddd:c000:208::1", "2001:4860::5efe:192.0.2.8");
    for ((outer, inner, _, _), destinations) in
        OTHERS.into_iter().zip([[as_customer, as_host], [as_site, as_host], [as_site, as_customer]])
    {
        for destination in destinations {
            gateway.refuses(in_ipv4(outer, LOCAL, packet(inner, destination)), DropReason::TunnelLoop);
        }
    }
}

/// The kernel's ICMPv6 errors, as those of a host that has an address in the format of one of its tunnels.
#[test]
fn what_this_host_says_itself_reaches_all_who_are_in_its_tunnels() {
    let own = ["2001:db8:1:2:200:5efe:192.0.2.8", "2001:ddd:c000:208::", "2001:ddd:c000:208:7::1"];
    let mut gateway = support::gateway(|config| {
        config.tunnels = tunnels().to_vec();
        config.host6 = own.map(|text| text.parse().unwrap()).to_vec();
    });
    for ((outer, inner, _, encap), source) in
        OTHERS.iter().flat_map(|other| own.map(|source| (other, source)))
    {
        gateway.receives(packet(source, inner));
        gateway.sends_in_ipv4(LOCAL, outer, packet(source, inner));
        gateway.counted([(*encap, 1)]);
    }
    // The sending rule of 6to4 knows no exception, and those addresses have no neighbours.
    let site = OTHERS[0].1;
    gateway.refuses(packet("2002:cb00:710a::1", site), DropReason::SourceNotOfSite);
    gateway.refuses(packet("2001:ddd:c000:208::1", site), DropReason::TunnelLoop);
    gateway.refuses(packet("2001:4860::5efe:192.0.2.8", site), DropReason::TunnelLoop);
    // Another host that claims to be this one is not believed, and nothing is sent to it by way of a tunnel of another kind.
    let (nobodys, spoofed) = (DropReason::SourceNotInTunnel, DropReason::SpoofedEmbeddedSource);
    for (source, reason) in own.into_iter().zip([nobodys, spoofed, spoofed]) {
        gateway.refuses(in_ipv4(OTHERS[0].0, LOCAL, packet(source, SERVER)), reason);
        gateway.refuses(in_ipv4(LOCAL, LOCAL, packet(source, SERVER)), DropReason::TunnelLoop);
        gateway.refuses(in_ipv4(OTHERS[0].0, LOCAL, packet(site, source)), DropReason::TunnelLoop);
    }
}

#[test]
fn this_hosts_addresses_are_those_that_it_was_last_told() {
    let (before, after) = ("2001:db8:1:2:200:5efe:192.0.2.8", "2001:db8:1:3:200:5efe:192.0.2.8");
    let mut gateway = support::gateway(|config| {
        config.tunnels = tunnels().to_vec();
        config.host6 = vec![before.parse().unwrap()];
    });
    let (outer, site, ..) = OTHERS[0];
    gateway.refuses(packet(after, site), DropReason::TunnelLoop);
    gateway.engine.set_tunnels(&tunnels(), &[], &[after.parse().unwrap()]);
    gateway.receives(packet(after, site));
    gateway.sends_in_ipv4(LOCAL, outer, packet(after, site));
    gateway.refuses(packet(before, site), DropReason::TunnelLoop);
    // The gateway's own address is one of them, whatever it looks like.
    let mut gateway = support::gateway(|config| {
        config.tunnels = tunnels().to_vec();
        config.own6 = before.parse().ok();
    });
    gateway.receives(packet(before, site));
    gateway.sends_in_ipv4(LOCAL, outer, packet(before, site));
}

/// The default route of one tunnel, and the prefix of another: whichever is set first.
#[test]
fn the_longest_prefix_has_the_packet_after_the_tunnels_were_set_again() {
    let uplink = ConfiguredConfig {
        remote: "198.51.100.8".parse().ok(),
        prefixes: vec!["::/0".parse().unwrap(), "2001:db8::/32".parse().unwrap()],
        strict_sources: false,
        ..configured()
    };
    let tunnels = [uplink, configured()].map(TunnelConfig::Configured);
    let mut gateway = support::gateway(|config| config.tunnels = tunnels.to_vec());
    let ways = [(SERVER, "198.51.100.8"), ("2001:db8:9::1", "198.51.100.8"), ("2001:db8:7::1", REMOTE)];
    for again in [false, true] {
        if again {
            gateway.engine.set_tunnels(&tunnels, &[], &[]);
        }
        for (destination, remote) in ways {
            gateway.receives(packet("2001:db8:1::1", destination));
            gateway.sends_in_ipv4("192.0.2.9", remote, packet("2001:db8:1::1", destination));
        }
    }
}
