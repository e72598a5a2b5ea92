//! Every reason to drop a packet, provoked: it is counted, and the sender gets the error that the list says, or nothing.
//!
//! The `match` has no default arm: who adds a reason says here how it comes about.

use crate::ds_lite;
use crate::support;
use crate::support::{Build, Gateway, eam, icmp4, icmp6, in_ipv4, siit, tunnelling, v4, v6};
use sixway_dataplane::engine::{EngineConfig, TunnelConfig};
use sixway_dataplane::frame::HEADROOM;
use sixway_dataplane::mechanism::configured::ConfiguredConfig;
use sixway_dataplane::mechanism::ds_lite::DsLiteConfig;
use sixway_dataplane::mechanism::four_over_six::{
    ConcentratorConfig, FourOverSixConfig, HostEndConfig, Role,
};
use sixway_dataplane::mechanism::ip_in_ip::IpInIpConfig;
use sixway_dataplane::mechanism::isatap;
use sixway_dataplane::mechanism::nat64::Nat64Config;
use sixway_dataplane::mechanism::npt66::{Npt66Config, Prefixes};
use sixway_dataplane::mechanism::siit::SiitConfig;
use sixway_dataplane::mechanism::siit::dynamic_pool::DynamicPoolConfig;
use sixway_dataplane::mechanism::six_to_four::{self, NativeSources};
use sixway_dataplane::nat::StateLimits;
use sixway_dataplane::nat::{Filtering, Inside, NatProtocol, Outside, PoolConfig, StaticBinding};
use sixway_dataplane::translate::UdpZeroChecksum;
use sixway_dataplane::translate::address::Rfc6052;
use sixway_dataplane::tunnel::{OuterFragments, TunnelPolicy};
use sixway_dataplane::{DropReason, Frame, Offload, Outbox, SegmentKind, Segments, Verdict};
use sixway_wire::{Endpoint4, Endpoint6};
use std::time::Duration;

/// A host of the explicit table, and a host of the IPv4 Internet, as both sides see them.
const HOST4: &str = "198.51.100.9";
const HOST6: &str = "2001:db8:1::1";
const PEER4: &str = "203.0.113.2";
const PEER6: &str = "2001:db8:64::cb00:7102";
/// The IPv4 host as those behind the NAT64 see it, and the NAT64's one address.
const NAT_PEER6: &str = "64:ff9b::203.0.113.2";
const OUTSIDE: &str = "192.0.2.1";
const SYN: u8 = 2;
const ACK: u8 = 16;

fn stateless() -> Gateway {
    stateless_with(|_| {})
}

fn stateless_with(edit: impl FnOnce(&mut SiitConfig)) -> Gateway {
    siit(|config| {
        config.eam = eam(&[("198.51.100.8/29", "2001:db8:1::/125")]);
        edit(config);
    })
}

fn stateful() -> Gateway {
    stateful_with(|_, _| {})
}

fn stateful_with(edit: impl FnOnce(&mut Nat64Config, &mut EngineConfig)) -> Gateway {
    support::gateway(|engine| {
        let mut nat64 = Nat64Config {
            limits: StateLimits { sessions: 100, bindings: 100, ..StateLimits::default() },
            ..Nat64Config::new(
                Rfc6052::new("64:ff9b::/96".parse().unwrap(), true).unwrap(),
                PoolConfig { addresses: vec!["192.0.2.1/32".parse().unwrap()], ports: vec![1_024..=65_535] },
            )
        };
        edit(&mut nat64, engine);
        engine.nat64.push(nat64);
    })
}

/// Packets come in, one by one.
fn after<const N: usize>(mut gateway: Gateway, packets: [Build; N]) -> Gateway {
    for packet in packets {
        gateway.receives(packet);
    }
    gateway
}

/// Octets come in that no builder would make.
fn after_octets(mut gateway: Gateway, octets: Vec<u8>) -> Gateway {
    gateway.receives(octets);
    gateway
}

/// The outside port that a packet from this inside port was sent from.
fn outside_port(gateway: &mut Gateway, packet: Build) -> u16 {
    gateway.receives(packet);
    let sent = gateway.sent();
    u16::from_be_bytes([sent[20], sent[21]])
}

/// The local end of a configured tunnel.
const END4: &str = "192.0.2.9";

fn tunnel() -> Gateway {
    tunnelling(TunnelConfig::Configured(support::configured()))
}

/// The 6to4 relay's address.
/// A concentrator of 4over6 without bindings.
/// A host of 4over6 without a lease.
fn leasing_host() -> Gateway {
    let role = Role::Host(HostEndConfig {
        local: "2001:db8:b::1".parse().unwrap(),
        concentrator: "2001:db8:c::1".parse().unwrap(),
        prefixes: vec!["0.0.0.0/0".parse().unwrap()],
        lease: None,
    });
    tunnelling(FourOverSixConfig { role, policy: TunnelPolicy::default() }.into())
}

fn concentrator() -> Gateway {
    let role = Role::Concentrator(ConcentratorConfig {
        addresses: vec!["2001:db8:c::1".parse().unwrap()],
        lent: vec!["192.0.2.8/29".parse().unwrap()],
        max_bindings: 1,
        client_bits: 56,
        bindings: Vec::new(),
    });
    tunnelling(FourOverSixConfig { role, policy: TunnelPolicy::default() }.into())
}

const RELAY4: &str = "192.88.99.1";

fn relay() -> Gateway {
    tunnelling(TunnelConfig::SixToFour(support::six_to_four(six_to_four::Role::Relay, RELAY4)))
}

fn router() -> Gateway {
    tunnelling(TunnelConfig::SixToFour(support::six_to_four(six_to_four::Role::Router, "192.0.2.8")))
}

fn from_site(source: &str) -> Build {
    v6(source, "2001:db8::2").udp(1, 2, b"data")
}

fn tunnel_packet() -> Build {
    v6("2001:db8:7::1", "2001:db8:1::1").udp(1, 2, b"data")
}

fn udp4() -> Build {
    v4(PEER4, HOST4).udp(1, 2, b"data")
}

fn udp6() -> Build {
    v6(HOST6, PEER6).udp(1, 2, b"data")
}

/// A NAT64 with a static binding, so that fragments to its address are held.
fn bound() -> Gateway {
    bound_with(|_| {})
}

fn bound_with(edit: impl FnOnce(&mut EngineConfig)) -> Gateway {
    stateful_with(|nat64, engine| {
        nat64.static_bindings = vec![StaticBinding {
            softwire: None,
            protocol: NatProtocol::Udp,
            inside: Inside(Endpoint6::new(HOST6.parse().unwrap(), 4_000)),
            outside: Outside(Endpoint4::new(OUTSIDE.parse().unwrap(), 4_000)),
        }];
        edit(engine);
    })
}

/// Three parts of a packet from outside.
fn part(offset: u16, to: usize, more: bool) -> Build {
    let whole = v4(PEER4, OUTSIDE).udp(53, 4_000, &[7; 92]);
    whole.fragment(99, offset, more).part(usize::from(offset), to)
}

/// A gateway that has just dropped a packet for this reason, and whether the packet was IPv4.
#[expect(clippy::too_many_lines, reason = "one arm for each reason")]
fn provoke(reason: DropReason) -> (Gateway, bool) {
    let (four, six) = (true, false);
    match reason {
        DropReason::Truncated => (after_octets(stateless(), udp4().octets()[..19].to_vec()), four),
        DropReason::NotIp => (after_octets(stateless(), vec![0x50; 40]), four),
        DropReason::BadIpv4Length => {
            let mut octets = udp4().octets();
            octets[0] = 0x44;
            (after_octets(stateless(), octets), four)
        }
        DropReason::BadIpv4Checksum => {
            let mut octets = udp4().octets();
            octets[10] ^= 1;
            (after_octets(stateless(), octets), four)
        }
        DropReason::BadExtensionHeader => {
            (after(stateless(), [udp6().extension(0, &[0, 200, 0, 0, 0, 0, 0, 0])]), six)
        }
        DropReason::TransportTruncated => {
            (after(stateless(), [v4(PEER4, HOST4).protocol(6, &[0; 19], None)]), four)
        }
        DropReason::BadGso => {
            let mut gateway = stateless();
            let segments = Some(Segments { size: 0, kind: SegmentKind::Tcp });
            gateway.receives_with(
                v4(PEER4, HOST4).tcp(1, 2, ACK, b"data"),
                Offload { segments, ..Offload::default() },
            );
            (gateway, four)
        }
        DropReason::NoMechanism => (after(stateful(), [v6(HOST6, "2001:db8:9::1").udp(1, 2, b"data")]), six),
        DropReason::NoTunnel => (after(tunnel(), [in_ipv4("198.51.100.8", END4, tunnel_packet())]), four),
        DropReason::TunnelLoop => (after(tunnel(), [in_ipv4(END4, END4, tunnel_packet())]), four),
        DropReason::InnerNotIpv6 => (after(tunnel(), [in_ipv4("198.51.100.7", END4, udp4())]), four),
        DropReason::SpoofedEmbeddedSource => {
            (after(relay(), [in_ipv4("192.0.2.8", RELAY4, from_site("2002:c000:209::1"))]), four)
        }
        DropReason::EmbeddedNotUnicast => {
            (after(relay(), [v6(HOST6, "2002:e000:1::1").udp(1, 2, b"data")]), six)
        }
        DropReason::EmbeddedNotPublic => {
            (after(relay(), [v6(HOST6, "2002:a00:1::1").udp(1, 2, b"data")]), six)
        }
        DropReason::SourceNotRelay => {
            let mut config = support::six_to_four(six_to_four::Role::Router, "192.0.2.8");
            config.native_sources = NativeSources::Listed(Vec::new());
            let gateway = tunnelling(TunnelConfig::SixToFour(config));
            let inner = v6(HOST6, "2002:c000:208::2").udp(1, 2, b"data");
            (after(gateway, [in_ipv4("203.0.113.9", "192.0.2.8", inner)]), four)
        }
        DropReason::SourceNotInTunnel => {
            (after(relay(), [in_ipv4("192.0.2.8", RELAY4, from_site("2001:db8:9::1"))]), four)
        }
        DropReason::DestinationNotInSite => {
            let inner = v6("2002:c000:209::1", "2002:c000:20a::1").udp(1, 2, b"data");
            (after(router(), [in_ipv4("192.0.2.9", "192.0.2.8", inner)]), four)
        }
        DropReason::BetweenSites => {
            let inner = v6("2002:c000:208::2", "2002:c000:209::1").udp(1, 2, b"data");
            (after(relay(), [in_ipv4("192.0.2.8", RELAY4, inner)]), four)
        }
        DropReason::SourceNotOfSite => {
            (after(router(), [v6("2002:c000:209::1", "2001:db8:9::1").udp(1, 2, b"data")]), six)
        }
        DropReason::NoRelay => {
            let mut config = support::isatap(isatap::Role::Host, "10.1.2.3");
            config.routers.clear();
            let gateway = tunnelling(TunnelConfig::Isatap(config));
            (after(gateway, [v6("2001:db8:1:2::5efe:10.1.2.3", PEER6).udp(1, 2, b"data")]), six)
        }
        DropReason::NoLocator => {
            let config = support::isatap(isatap::Role::Router, "10.0.0.1");
            let gateway = tunnelling(TunnelConfig::Isatap(config));
            (after(gateway, [v6(HOST6, "2001:db8:1:2::77").udp(1, 2, b"data")]), six)
        }
        DropReason::NoRemote => {
            let config = ConfiguredConfig { remote: None, ..support::configured() };
            let gateway = tunnelling(TunnelConfig::Configured(config));
            (after(gateway, [v6(HOST6, "2001:db8:7::1").udp(1, 2, b"data")]), six)
        }
        DropReason::NoLease => (after(concentrator(), [v4(PEER4, "192.0.2.9").udp(1, 2, b"data")]), four),
        DropReason::LeaseWaitingFull => {
            let mut gateway = leasing_host();
            (0..65).for_each(|_| gateway.receives(v4("192.0.2.9", PEER4).udp(1, 2, b"data")));
            (gateway, four)
        }
        DropReason::SourceNotLeased => {
            let inner = v4("192.0.2.9", PEER4).udp(1, 2, b"data");
            (after(concentrator(), [v6(HOST6, "2001:db8:c::1").protocol(4, &inner.octets(), None)]), six)
        }
        DropReason::TeredoUnreachable => {
            (after(crate::teredo::relay(), [v6(HOST6, "2001:0:102:304::").udp(1, 2, b"data")]), six)
        }
        DropReason::TeredoWaitingFull => {
            let packets = [(); 5].map(|()| v6(HOST6, &crate::teredo::client6(1)).udp(1, 2, b"data"));
            (after(crate::teredo::relay(), packets), six)
        }
        DropReason::TeredoPeersFull => {
            let packets = [0; 17]
                .iter()
                .zip(1..)
                .map(|(_, number)| v6(HOST6, &crate::teredo::client6(number * 16)).udp(1, 2, b"data"));
            let packets: Vec<Build> = packets.collect();
            (after(crate::teredo::relay(), <[Build; 17]>::try_from(packets).unwrap()), six)
        }
        DropReason::TeredoNotTrusted | DropReason::TeredoUnexpected => {
            let inner = v6(&crate::teredo::client6(1), HOST6).udp(1, 2, b"data").octets();
            let front = if reason == DropReason::TeredoUnexpected { vec![0; 8] } else { Vec::new() };
            let (from, to) = (crate::teredo::mapped(1), crate::teredo::LOCAL);
            let datagram = crate::teredo::datagram(from, to, [front, inner].concat());
            (after(crate::teredo::relay(), [datagram]), four)
        }
        DropReason::OuterTooBig => {
            let policy = TunnelPolicy { outer_fragments: OuterFragments::Never, ..TunnelPolicy::default() };
            let tunnel = ConfiguredConfig { policy, ..support::configured() };
            let gateway = support::gateway(|config| {
                config.limits.mtu4 = 1_290;
                config.tunnels.push(TunnelConfig::Configured(tunnel));
            });
            (after(gateway, [v6(HOST6, "2001:db8:7::1").udp(1, 2, &[0; 1_232])]), six)
        }
        DropReason::EncapsulationLimit => {
            let gateway = tunnelling(TunnelConfig::IpInIp(IpInIpConfig {
                local: "2001:db8:ff::9".parse().unwrap(),
                remote: "2001:db8:ff::7".parse().ok(),
                prefixes6: vec!["2001:db8:7::/48".parse().unwrap()],
                prefixes4: Vec::new(),
                ..tunnel_of_ipv4()
            }));
            let inner = v6(HOST6, "2001:db8:7::1").extension(60, &[0, 0, 4, 1, 0, 1, 1, 0]);
            (after(gateway, [inner.udp(1, 2, b"data")]), six)
        }
        DropReason::InnerNotEct => {
            (after(tunnel(), [in_ipv4("198.51.100.7", END4, tunnel_packet()).tos(3)]), four)
        }
        DropReason::ErrorNotRelayable => {
            let inner = v6("2001:db8:1::1", "2001:db8:7::1").udp(1, 2, b"data");
            let quote = in_ipv4(END4, "198.51.100.7", inner).octets();
            (after(tunnel(), [v4(PEER4, END4).icmp(icmp4(12, 0, [0; 4], &quote))]), four)
        }
        DropReason::ErrorNotForTunnel => {
            let quote = in_ipv4(END4, "198.51.100.8", tunnel_packet()).octets();
            (after(tunnel(), [v4(PEER4, END4).icmp(icmp4(3, 1, [0; 4], &quote))]), four)
        }
        DropReason::MartianSource => (after(stateless(), [v4("127.0.0.1", HOST4).udp(1, 2, b"data")]), four),
        DropReason::MartianDestination => {
            (after(stateless(), [v4(PEER4, "224.0.0.9").udp(1, 2, b"data")]), four)
        }
        DropReason::ProtocolUnknown => {
            (after(stateless(), [v4(PEER4, "192.0.2.254").protocol(132, &[0; 20], None)]), four)
        }
        DropReason::ToGateway => (after(stateless(), [v4(PEER4, "192.0.2.254").udp(1, 2, b"data")]), four),
        DropReason::HopLimitExceeded => (after(stateless(), [udp4().hops(1)]), four),
        DropReason::NestingLimit => {
            let mut gateway = stateful();
            let port = outside_port(&mut gateway, v6(HOST6, NAT_PEER6).udp(4_000, 53, b"data"));
            let mut frame =
                Frame::holding(&v6("2001:db8::7", "64:ff9b::192.0.2.1").udp(1, port, b"data").octets());
            frame.passes = 3;
            let frames = std::slice::from_mut(&mut frame);
            gateway.engine.take_over(frames, gateway.now, &mut Outbox::new(8));
            (gateway, six)
        }
        DropReason::HandoverFull => {
            let mut gateway = stateful_with(|_, engine| engine.workers = 2);
            for host in 1..100 {
                let packet = v6(&format!("2001:db8:1::{host}"), NAT_PEER6).udp(4_000, 53, b"data");
                let mut frame = Frame::holding(&packet.octets());
                let frames = std::slice::from_mut(&mut frame);
                gateway.engine.process(frames, gateway.now, &mut Outbox::new(8));
                if matches!(frame.verdict, Verdict::HandOver(_)) {
                    gateway.engine.refused_handover(&mut frame);
                    break;
                }
            }
            (gateway, six)
        }
        DropReason::SourceRoute => {
            (after(stateless(), [udp4().options(&[131, 7, 4, 192, 0, 2, 9, 0])]), four)
        }
        DropReason::RoutingHeader => {
            let mut route = [0; 24];
            (route[1], route[3]) = (2, 1);
            (after(stateless(), [udp6().extension(43, &route)]), six)
        }
        DropReason::ExtensionAfterFragment => {
            let packet = v6(HOST6, PEER6).fragment(5, 0, true).protocol(
                60,
                &[17, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8],
                None,
            );
            (after(stateless(), [packet]), six)
        }
        DropReason::PacketTooBig => (after(stateless(), [v4(PEER4, HOST4).udp(1, 2, &[0; 1_453])]), four),
        DropReason::TooLongForIpv4 => (after(stateless(), [v6(HOST6, PEER6).udp(1, 2, &[0; 65_520])]), six),
        DropReason::UdpChecksumZero => {
            let gateway = stateless_with(|config| config.policy.udp_zero_checksum = UdpZeroChecksum::Drop);
            (after(gateway, [udp4().without_checksum()]), four)
        }
        DropReason::UdpChecksumZeroFragment => {
            let whole = v4(PEER4, HOST4).udp(1, 2, &[0; 40]).without_checksum();
            (after(stateless(), [whole.fragment(5, 0, true).part(0, 24)]), four)
        }
        DropReason::BadUdpLength => {
            let lying = [0, 1, 0, 2, 0, 99, 0, 0, 1, 2, 3, 4];
            (after(stateless(), [v4(PEER4, HOST4).protocol(17, &lying, None)]), four)
        }
        DropReason::SourceUnmapped => {
            (after(stateless(), [v6("2001:db8:9::1", PEER6).udp(1, 2, b"data")]), six)
        }
        DropReason::ZeroInterfaceIdentifier => {
            let prefixes =
                Prefixes::new("fd00::/48".parse().unwrap(), "2001:db8:9:9000::/52".parse().unwrap()).unwrap();
            let npt66 = Npt66Config { prefixes, except: Vec::new(), ingress: None };
            let gateway = support::gateway(|engine| engine.others.push(npt66.into()));
            (after(gateway, [v6("fd00::", PEER6).udp(1, 2, b"data")]), six)
        }
        DropReason::DestinationUnmapped => {
            let pool = |config: &mut SiitConfig| {
                config.dynamic_pool = Some(DynamicPoolConfig::new("172.16.0.0/12".parse().unwrap()));
            };
            (after(stateless_with(pool), [v4(PEER4, "172.16.0.9").udp(1, 2, b"data")]), four)
        }
        DropReason::NonGlobalWithWellKnownPrefix => {
            let gateway = stateless_with(|config| config.prefix = Some(support::prefix("64:ff9b::/96")));
            (after(gateway, [v4("10.0.0.1", HOST4).udp(1, 2, b"data")]), four)
        }
        DropReason::LinkLocalIpv4 => {
            (after(stateful(), [v6(HOST6, "64:ff9b::169.254.169.254").udp(1_024, 53, b"data")]), six)
        }
        DropReason::SourceNotInside => {
            let inside = |config: &mut Nat64Config| config.inside = vec!["2001:db8:9::/48".parse().unwrap()];
            let gateway = stateful_with(|config, _| inside(config));
            (after(gateway, [v6(HOST6, NAT_PEER6).udp(1_024, 53, b"data")]), six)
        }
        DropReason::DestinationIsHost => {
            let gateway = stateful_with(|_, engine| engine.host4 = vec![PEER4.parse().unwrap()]);
            (after(gateway, [v6(HOST6, NAT_PEER6).udp(1_024, 53, b"data")]), six)
        }
        DropReason::ExcludedIpv4 => {
            let gateway =
                stateful_with(|config, _| config.excluded = vec!["203.0.113.0/24".parse().unwrap()]);
            (after(gateway, [v6(HOST6, NAT_PEER6).udp(1_024, 53, b"data")]), six)
        }
        DropReason::OctetUNotZero => {
            let gateway = stateless_with(|config| config.prefix = Some(support::prefix("2001:db8:64::/64")));
            (after(gateway, [v6(HOST6, "2001:db8:64:0:1cb:71:200::").udp(1, 2, b"data")]), six)
        }
        DropReason::DynamicPoolEmpty => {
            let pool = |config: &mut SiitConfig| {
                config.dynamic_pool = Some(DynamicPoolConfig::new("172.16.0.1/32".parse().unwrap()));
            };
            let packet = |host| v6(host, PEER6).udp(1, 2, b"data");
            (after(stateless_with(pool), [packet("2001:db8:9::1"), packet("2001:db8:9::2")]), six)
        }
        DropReason::IcmpUntranslatable => {
            (after(stateless(), [v4(PEER4, HOST4).icmp(icmp4(13, 0, [0; 4], &[0; 12]))]), four)
        }
        DropReason::IcmpFragment => (
            after(stateless(), [v4(PEER4, HOST4).echo(1, 1, &[0; 40]).fragment(5, 0, true).part(0, 24)]),
            four,
        ),
        DropReason::BadIcmpChecksum => {
            let quote = v4(HOST4, PEER4).udp(1, 2, b"data").octets();
            (
                after(stateless(), [v4(PEER4, HOST4).icmp(icmp4(3, 1, [0; 4], &quote)).without_checksum()]),
                four,
            )
        }
        DropReason::QuoteUnusable => {
            (after(stateless(), [v4(PEER4, HOST4).icmp(icmp4(3, 1, [0; 4], &[0x45, 0, 0, 9]))]), four)
        }
        DropReason::QuoteIsIcmpError => {
            let quote = v6(PEER6, HOST6).icmp(icmp6(1, 0, [0; 4], &[0; 48])).octets();
            (after(stateless(), [v6(HOST6, PEER6).icmp(icmp6(1, 0, [0; 4], &quote))]), six)
        }
        DropReason::Igmp => (after(stateless(), [v4(PEER4, HOST4).protocol(2, &[0x16; 8], None)]), four),
        DropReason::ProtocolUntranslatable => {
            (after(stateless(), [v4(PEER4, HOST4).protocol(58, &[128, 0, 0, 0, 0, 0, 0, 0], None)]), four)
        }
        DropReason::ProtocolUnsupported => {
            (after(stateful(), [v6(HOST6, NAT_PEER6).protocol(132, &[0; 20], None)]), six)
        }
        DropReason::SourceInTranslationPrefix => {
            (after(stateful(), [v6("64:ff9b::192.0.2.1", NAT_PEER6).udp(1, 2, b"data")]), six)
        }
        DropReason::SourceInPool => (after(stateful(), [v4(OUTSIDE, OUTSIDE).udp(1, 2, b"data")]), four),
        DropReason::NoBinding => (after(stateful(), [v4(PEER4, OUTSIDE).udp(1, 2_000, b"data")]), four),
        DropReason::Filtered => {
            let mut gateway = stateful_with(|config, _| config.filtering = Filtering::AddressDependent);
            let port = outside_port(&mut gateway, v6(HOST6, NAT_PEER6).udp(4_000, 53, b"data"));
            (after(gateway, [v4("203.0.113.99", OUTSIDE).udp(53, port, b"data")]), four)
        }
        DropReason::RemoteInUse => {
            let gateway = support::gateway(|engine| {
                let mut nat44 = support::nat44();
                nat44.pool.addresses.truncate(0);
                nat44.pool.addresses.push("192.0.2.1/32".parse().unwrap());
                engine.nat44.push(nat44);
            });
            let tunnel = |host| v4(host, PEER4).protocol(41, &[0x60; 40], None);
            (after(gateway, [tunnel("10.0.0.1"), tunnel("10.0.0.2")]), four)
        }
        DropReason::NoSession => (after(stateful(), [v6(HOST6, NAT_PEER6).tcp(1, 2, ACK, b"data")]), six),
        DropReason::InboundSyn => {
            let mut gateway = after(stateful(), [v4(PEER4, OUTSIDE).tcp(1, 2_000, SYN, b"")]);
            for _ in 0..9 {
                gateway.waits(Duration::from_secs(1));
            }
            (gateway, four)
        }
        DropReason::StoredSynsFull => {
            let gateway = stateful_with(|config, _| config.limits.sessions = 1);
            let packet = |port| v4(PEER4, OUTSIDE).tcp(port, 2_000, SYN, b"");
            (after(gateway, [packet(1), packet(2)]), four)
        }
        DropReason::SynAwaitsInside => {
            let packet = |flags| v4(PEER4, OUTSIDE).tcp(1, 2_000, flags, b"");
            (after(stateful(), [packet(SYN), packet(ACK)]), four)
        }
        DropReason::PortPoolEmpty => {
            let gateway = stateful_with(|config, _| config.pool.ports = vec![2_000..=2_000]);
            let packet = |port| v6(HOST6, NAT_PEER6).udp(port, 53, b"data");
            (after(gateway, [packet(1_024), packet(1_026)]), six)
        }
        DropReason::SubscriberLimit => {
            let gateway = stateful_with(|config, _| config.limits.of_subscriber.bindings = 1);
            let packet = |host| v6(host, NAT_PEER6).udp(4_000, 53, b"data");
            (after(gateway, [packet("2001:db8:1::1"), packet("2001:db8:1::2")]), six)
        }
        DropReason::SubscriberShare => {
            let gateway = stateful_with(|_, _| ());
            let packet = |port| v6(HOST6, NAT_PEER6).udp(1_024, port, b"data");
            (after(gateway, std::array::from_fn::<_, 91, _>(|port| packet(port as u16 + 1))), six)
        }
        DropReason::BindingTableFull => {
            let gateway = stateful_with(|config, _| config.limits.bindings = 1);
            let packet = |port| v6(HOST6, NAT_PEER6).udp(port, 53, b"data");
            (after(gateway, [packet(1_024), packet(1_026)]), six)
        }
        DropReason::SoftwireTableFull => {
            let aftr = DsLiteConfig { max_softwires: 1, ..ds_lite::aftr() };
            let packet = |b4| ds_lite::up(b4, v4(ds_lite::HOST, PEER4).udp(4_000, 53, b"data"));
            let gateway = support::gateway(|config| config.others.push(aftr.into()));
            (after(gateway, [packet(ds_lite::B4), packet(ds_lite::NEIGHBOUR)]), four)
        }
        DropReason::SessionTableFull => {
            let gateway = stateful_with(|config, _| config.limits.sessions = 1);
            let packet = |port| v6(HOST6, NAT_PEER6).udp(1_024, port, b"data");
            (after(gateway, [packet(53), packet(54)]), six)
        }
        DropReason::OutsideSessionsFull => {
            let mut gateway = stateful_with(|nat64, _| nat64.limits.sessions = 8);
            let port = outside_port(&mut gateway, v6(HOST6, NAT_PEER6).udp(4_000, 53, b"data"));
            for remote_port in 1..=7 {
                gateway.receives(v4("203.0.113.3", OUTSIDE).udp(remote_port, port, b"data"));
            }
            (gateway, four)
        }
        DropReason::NoSessionForError => {
            let quote = v4(OUTSIDE, PEER4).udp(2_000, 53, b"data").octets();
            (after(stateful(), [v4(PEER4, OUTSIDE).icmp(icmp4(3, 1, [0; 4], &quote))]), four)
        }
        DropReason::FragmentOverlap => (after(bound(), [part(0, 64, true), part(56, 100, false)]), four),
        DropReason::FragmentDuplicate => (after(bound(), [part(0, 64, true), part(0, 64, true)]), four),
        DropReason::BadFragment => (after(bound(), [part(0, 60, true)]), four),
        DropReason::FragmentMemory => {
            let gateway = bound_with(|engine| engine.fragments.memory = 0);
            (after(gateway, [part(0, 64, true)]), four)
        }
        DropReason::FragmentShare => {
            // The third packet replaces the first.
            let gateway = bound_with(|engine| engine.fragments.packets_per_source = 2);
            let first =
                |number| v4(PEER4, OUTSIDE).udp(53, 4_000, &[7; 92]).fragment(number, 0, true).part(0, 64);
            (after(gateway, [first(1), first(2), first(3)]), four)
        }
        DropReason::FragmentTimeout => {
            let mut gateway = after(bound(), [part(0, 64, true)]);
            for _ in 0..5 {
                gateway.waits(Duration::from_secs(1));
            }
            (gateway, four)
        }
        DropReason::NoHeadroom => {
            // The packet is where the headroom was.
            let (mut gateway, packet) = (stateless(), udp4().octets());
            let mut frame = Frame::holding(&packet);
            frame.resize_front(0, HEADROOM - 8).unwrap();
            frame.bytes_mut()[..packet.len()].copy_from_slice(&packet);
            frame.truncate(packet.len());
            gateway.engine.process(std::slice::from_mut(&mut frame), gateway.now, &mut Outbox::new(8));
            (gateway, four)
        }
        DropReason::Overload => {
            let mut gateway = stateful_with(|_, engine| engine.fair_shares = Some(64));
            let packet = v6(HOST6, NAT_PEER6).udp(4_000, 53, b"data").octets();
            // The queue is never empty.
            for _ in 0..100 {
                if gateway.engine.counters().dropped_total() > 0 {
                    break;
                }
                gateway.now = gateway.now + Duration::from_millis(10);
                let mut frames = [Frame::holding(&packet), Frame::holding(&packet)];
                gateway.engine.process(&mut frames, gateway.now, &mut Outbox::new(8));
            }
            (gateway, six)
        }
        DropReason::OutboxFull => {
            let mut gateway = stateless();
            let large = v4(PEER4, HOST4).may_fragment().udp(1, 2, &[0; 1_400]);
            let mut frame = Frame::holding(&large.octets());
            gateway.engine.process(std::slice::from_mut(&mut frame), gateway.now, &mut Outbox::new(1));
            (gateway, four)
        }
    }
}

/// Types and codes of the ICMP errors that were sent.
fn errors_sent(gateway: &mut Gateway) -> Vec<(u8, u8)> {
    let mut errors = Vec::new();
    while gateway.waiting() > 0 {
        let sent = gateway.sent();
        match (sent[0] >> 4, sent[6], sent[9]) {
            (4, _, 1) => errors.push((sent[20], sent[21])),
            (6, 58, _) => errors.push((sent[40], sent[41])),
            (6, 4, _) if sent[49] == 1 => errors.push((sent[60], sent[61])),
            _ => {}
        }
    }
    errors
}

#[test]
fn every_reason_can_be_provoked_is_counted_and_is_answered_as_the_list_says() {
    for &reason in DropReason::ALL {
        let (mut gateway, is_ipv4) = provoke(reason);
        let counters = gateway.engine.counters().clone();
        let name = reason.name();
        // Fragments that were held fall with the one that contradicts them.
        let expected = if reason == DropReason::FragmentOverlap { 2 } else { 1 };
        assert_eq!(counters.dropped[reason as usize], expected, "{name}: {:?}", gateway.last);
        assert_eq!(counters.dropped_total(), expected, "{name}");
        assert!(counters.frames_are_conserved(), "{name}");
        let answer = if is_ipv4 { reason.answer().icmpv4 } else { reason.answer().icmpv6 };
        assert_eq!(errors_sent(&mut gateway), Vec::from_iter(answer), "{name}");
    }
}

/// A tunnel behind which 10.7.0.0/16 is too.
fn tunnel_of_ipv4() -> IpInIpConfig {
    IpInIpConfig {
        local: "192.0.2.9".parse().unwrap(),
        remote: "198.51.100.7".parse().ok(),
        prefixes4: vec!["10.7.0.0/16".parse().unwrap()],
        prefixes6: Vec::new(),
        strict_sources: true,
        policy: TunnelPolicy::default(),
    }
}

/// The same for the other family, where the list tells both.
fn provoke_otherwise(reason: DropReason) -> Option<Gateway> {
    let to_private = |source, destination| {
        let prefix = Rfc6052::new("64:ff9b::/96".parse().unwrap(), false).unwrap();
        after(
            stateless_with(|config| config.prefix = Some(prefix)),
            [v6(source, destination).udp(1, 2, b"data")],
        )
    };
    Some(match reason {
        DropReason::NoMechanism => after(stateful(), [v4(PEER4, "192.0.2.77").udp(1, 2, b"data")]),
        DropReason::ProtocolUnknown => {
            after(stateless(), [v6(HOST6, "2001:db8::fe").protocol(132, &[0; 20], None)])
        }
        // This gateway's own tunnel, behind its NAT44.
        DropReason::RemoteInUse => {
            let gateway = support::gateway(|engine| {
                let mut nat44 = support::nat44();
                nat44.pool.addresses = vec!["192.0.2.1/32".parse().unwrap()];
                nat44.translate_own_tunnels = true;
                engine.nat44.push(nat44);
                let local = "10.0.0.5".parse().unwrap();
                let tunnel = ConfiguredConfig { local, ..support::configured() };
                engine.tunnels.push(TunnelConfig::Configured(tunnel));
            });
            let host = v4("10.0.0.1", "198.51.100.7").protocol(41, &[0x60; 40], None);
            after(gateway, [host, v6(HOST6, "2001:db8:7::1").udp(1, 2, b"data")])
        }
        DropReason::ToGateway => after(stateless(), [v6(HOST6, "2001:db8::fe").udp(1, 2, b"data")]),
        DropReason::HopLimitExceeded => after(stateless(), [udp6().hops(1)]),
        DropReason::PacketTooBig => after(stateless(), [v6(HOST6, PEER6).udp(1, 2, &[0; 1_473])]),
        DropReason::SourceUnmapped => after(stateless_with(|config| config.prefix = None), [udp4()]),
        DropReason::NonGlobalWithWellKnownPrefix => to_private(HOST6, "64:ff9b::10.0.0.1"),
        DropReason::ExcludedIpv4 => {
            let excluded = vec!["203.0.113.0/24".parse().unwrap()];
            after(stateless_with(|config| config.excluded = excluded), [udp4()])
        }
        DropReason::ProtocolUnsupported => {
            after(stateful(), [v4(PEER4, OUTSIDE).protocol(132, &[0; 20], None)])
        }
        // Hairpinned: the caller has an address of IPv6.
        DropReason::NoBinding => {
            after(stateful(), [v6(HOST6, &format!("64:ff9b::{OUTSIDE}")).udp(1, 2_000, b"data")])
        }
        DropReason::Filtered => {
            let mut gateway = stateful_with(|config, _| config.filtering = Filtering::AddressDependent);
            let port = outside_port(&mut gateway, v6(HOST6, NAT_PEER6).udp(4_000, 53, b"data"));
            after(gateway, [v6("2001:db8:1::99", &format!("64:ff9b::{OUTSIDE}")).udp(53, port, b"data")])
        }
        DropReason::SessionTableFull => {
            let mut gateway = stateful_with(|nat64, _| nat64.limits.sessions = 1);
            let port = outside_port(&mut gateway, v6(HOST6, NAT_PEER6).udp(4_000, 53, b"data"));
            after(gateway, [v4("203.0.113.3", OUTSIDE).udp(53, port, b"data")])
        }
        DropReason::OutsideSessionsFull => {
            let mut gateway = stateful_with(|nat64, _| nat64.limits.sessions = 16);
            let port = outside_port(&mut gateway, v6(HOST6, NAT_PEER6).udp(4_000, 53, b"data"));
            for remote_port in 1..=12 {
                gateway.receives(v4("203.0.113.3", OUTSIDE).udp(remote_port, port, b"data"));
            }
            // A hairpin's way in is from outside too.
            after(gateway, [v6("2001:db8:1::2", "64:ff9b::192.0.2.1").udp(4_000, port, b"data")])
        }
        DropReason::FragmentTimeout => {
            let first = v6(HOST6, NAT_PEER6).udp(4_000, 53, &[7; 92]).fragment(99, 0, true).part(0, 64);
            let mut gateway = after(stateful(), [first]);
            for _ in 0..5 {
                gateway.waits(Duration::from_secs(1));
            }
            gateway
        }
        DropReason::NoRemote => {
            let tunnel = IpInIpConfig { remote: None, ..tunnel_of_ipv4() };
            after(tunnelling(TunnelConfig::IpInIp(tunnel)), [v4(PEER4, "10.7.0.1").udp(1, 2, b"data")])
        }
        DropReason::OuterTooBig => {
            let policy = TunnelPolicy { outer_fragments: OuterFragments::Never, ..TunnelPolicy::default() };
            let tunnel = IpInIpConfig { policy, ..tunnel_of_ipv4() };
            let packet = v4(PEER4, "10.7.0.1").may_fragment().udp(1, 2, &[0; 1_472]);
            after(tunnelling(TunnelConfig::IpInIp(tunnel)), [packet])
        }
        _ => return None,
    })
}

#[test]
fn both_families_are_told_where_the_list_tells_both() {
    for &reason in DropReason::ALL {
        let (Some(icmpv4), Some(icmpv6)) = (reason.answer().icmpv4, reason.answer().icmpv6) else { continue };
        // Every IPv6 destination that reaches a stateless translator has a mapping: by it the packet came there.
        if reason == DropReason::DestinationUnmapped {
            continue;
        }
        // Hosts with IPv4 addresses inside: none of the mechanisms that are configured here has them. The NAT itself is asked in
        // `nat/engine/tests.rs`.
        let of_the_nat = [
            DropReason::PortPoolEmpty,
            DropReason::SubscriberLimit,
            DropReason::SubscriberShare,
            DropReason::BindingTableFull,
        ];
        if of_the_nat.contains(&reason) {
            continue;
        }
        let name = reason.name();
        let (_, is_ipv4) = provoke(reason);
        let mut gateway =
            provoke_otherwise(reason).unwrap_or_else(|| panic!("{name}: how in the other family?"));
        let counters = gateway.engine.counters().clone();
        assert_eq!((counters.dropped[reason as usize], counters.dropped_total()), (1, 1), "{name}");
        assert_eq!(errors_sent(&mut gateway), [if is_ipv4 { icmpv6 } else { icmpv4 }], "{name}");
    }
}
