//! Tunnels of either family over IPv6 (RFC 2473) and of IPv4 in IPv4 (RFC 2003).
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod support;

use sixway_dataplane::engine::TunnelConfig;
use sixway_dataplane::mechanism::ip_in_ip::{IpInIpConfig, IpInIpFault};
use sixway_dataplane::translate::HeaderByte;
use sixway_dataplane::tunnel::{Ecn, OuterFragments, TunnelMtu, TunnelPolicy};
use sixway_dataplane::{DropReason, SegmentKind, Verdict};
use support::super_frame::{described, on_the_wire, unfinished};
use support::{Build, Gateway, checksum_is_right, hex, icmp4, icmp6, v4, v6};

/// Both ends over IPv6, and over IPv4.
const LOCAL6: &str = "2001:db8:ff::9";
const REMOTE6: &str = "2001:db8:ff::7";
const LOCAL4: &str = "192.0.2.9";
const REMOTE4: &str = "198.51.100.7";
/// A host here and one behind the other end.
const HERE6: &str = "2001:db8:1::1";
const THERE6: &str = "2001:db8:7::1";
const HERE4: &str = "10.1.0.1";
const THERE4: &str = "10.7.0.1";
/// The destination options header with a Tunnel Encapsulation Limit.
const fn limit(limit: u8) -> [u8; 8] {
    [0, 0, 4, 1, limit, 1, 1, 0]
}

fn config(local: &str, remote: &str) -> IpInIpConfig {
    IpInIpConfig {
        local: local.parse().unwrap(),
        remote: remote.parse().ok(),
        prefixes6: vec!["2001:db8:7::/48".parse().unwrap()],
        prefixes4: vec!["10.7.0.0/16".parse().unwrap()],
        strict_sources: true,
        policy: TunnelPolicy { mtu: TunnelMtu::Dynamic, clamp_mss: false, ..TunnelPolicy::default() },
    }
}

fn over6() -> IpInIpConfig {
    config(LOCAL6, REMOTE6)
}

fn over4() -> IpInIpConfig {
    IpInIpConfig { prefixes6: Vec::new(), ..config(LOCAL4, REMOTE4) }
}

fn with(config: IpInIpConfig) -> Gateway {
    support::tunnelling(TunnelConfig::IpInIp(config))
}

/// A packet in an outer IPv6 header as our tunnels write it.
fn in_ipv6(protocol: u8, source: &str, destination: &str, inner: impl Into<Vec<u8>>) -> Build {
    v6(source, destination).extension(60, &limit(4)).protocol(protocol, &inner.into(), None)
}

fn in_ipv4(source: &str, destination: &str, inner: impl Into<Vec<u8>>) -> Build {
    v4(source, destination).protocol(4, &inner.into(), None)
}

/// IPv4 in IPv4 as it was sent, for its identification.
fn identified(sent: &[u8], expected: Build) -> Vec<u8> {
    expected.identification(u32::from(u16::from_be_bytes([sent[4], sent[5]]))).octets()
}

fn big4(octets: usize) -> Build {
    v4(HERE4, THERE4).udp(53, 4_000, &vec![7; octets - 28])
}

fn big6(octets: usize) -> Build {
    v6(HERE6, THERE6).udp(53, 4_000, &vec![7; octets - 48])
}

#[test]
fn ipv6_goes_through_ipv6_both_ways_with_its_hop_limit() {
    let mut gateway = with(over6());
    let there = v6(HERE6, THERE6).hops(1).udp(53, 4_000, b"data");
    gateway.receives(there.clone());
    gateway.sends(in_ipv6(41, LOCAL6, REMOTE6, there));
    gateway.counted([("ip_in_ip.encap", 1)]);
    let back = v6(THERE6, HERE6).hops(1).udp(53, 4_000, b"data");
    gateway.receives(in_ipv6(41, REMOTE6, LOCAL6, back.clone()).hops(1));
    gateway.sends(back.clone());
    gateway.receives(v6(REMOTE6, LOCAL6).protocol(41, &back.octets(), None));
    gateway.sends(back);
    gateway.counted([("ip_in_ip.decap", 2)]);
}

#[test]
fn ipv4_goes_through_ipv6_both_ways_with_its_ttl() {
    let mut gateway = with(over6());
    let there = v4(HERE4, THERE4).hops(1).udp(53, 4_000, b"data");
    gateway.receives(there.clone());
    gateway.sends(in_ipv6(4, LOCAL6, REMOTE6, there));
    gateway.counted([("ip_in_ip.encap", 1)]);
    let back = v4(THERE4, HERE4).hops(1).options(&[1, 1, 1, 0]).udp(53, 4_000, b"data");
    gateway.receives(in_ipv6(4, REMOTE6, LOCAL6, back.clone()));
    gateway.sends(back);
    gateway.counted([("ip_in_ip.decap", 1)]);
}

#[test]
fn ipv4_goes_through_ipv4_both_ways_and_keeps_its_df() {
    let mut gateway = with(over4());
    for there in [v4(HERE4, THERE4).udp(53, 4_000, b"data"), v4(HERE4, THERE4).may_fragment().udp(1, 2, b"")]
    {
        gateway.receives(there.clone());
        let sent = gateway.sent();
        let outer = in_ipv4(LOCAL4, REMOTE4, there.clone());
        let outer = if there.octets()[6] & 0x40 == 0 { outer.may_fragment() } else { outer };
        assert_eq!(hex(&sent), hex(&identified(&sent, outer)));
    }
    gateway.counted([("ip_in_ip.encap", 2)]);
    let back = v4(THERE4, HERE4).hops(1).udp(53, 4_000, b"data");
    gateway.receives(in_ipv4(REMOTE4, LOCAL4, back.clone()).hops(1));
    gateway.sends(back);
    gateway.counted([("ip_in_ip.decap", 1)]);
}

#[test]
fn a_tunnel_of_ipv6_in_ipv4_may_have_the_same_ends() {
    let mut gateway = support::gateway(|config| {
        config.tunnels.push(TunnelConfig::IpInIp(over4()));
        config.tunnels.push(TunnelConfig::Configured(support::configured()));
    });
    let there = v6(HERE6, THERE6).udp(53, 4_000, b"data");
    gateway.receives(there.clone());
    let sent = gateway.sent();
    assert_eq!((sent[9], hex(&sent[20..])), (41, hex(&there.octets())));
    let back = v6(THERE6, HERE6).udp(53, 4_000, b"data");
    gateway.receives(support::in_ipv4(REMOTE4, LOCAL4, back.clone()));
    gateway.sends(back);
    let back = v4(THERE4, HERE4).udp(53, 4_000, b"data");
    gateway.receives(in_ipv4(REMOTE4, LOCAL4, back.clone()));
    gateway.sends(back);
    gateway.counted([("configured.encap", 1), ("configured.decap", 1), ("ip_in_ip.decap", 1)]);
}

#[test]
fn batches_of_both_ways_and_families_are_carried() {
    use sixway_dataplane::{Frame, Outbox};
    let mut gateway = with(over6());
    let packets: Vec<Vec<u8>> = (0..40_u16)
        .map(|number| match number % 4 {
            0 => v6(HERE6, THERE6).udp(number, 2, b"data").octets(),
            1 => v4(HERE4, THERE4).udp(number, 2, b"data").octets(),
            2 => in_ipv6(41, REMOTE6, LOCAL6, v6(THERE6, HERE6).udp(number, 2, b"data")).octets(),
            _ => in_ipv6(4, REMOTE6, LOCAL6, v4(THERE4, HERE4).udp(1, 2, b"data")).octets(),
        })
        .collect();
    let mut frames: Vec<Frame> = packets.iter().map(|packet| Frame::holding(packet)).collect();
    let mut out = Outbox::new(64);
    gateway.engine.process(&mut frames, gateway.now, &mut out);
    for (number, frame) in frames.iter().enumerate() {
        // Datagrams that came out of the tunnel may leave as one.
        let is_joined = number % 4 == 2 && frame.verdict == Verdict::Merged;
        assert!(frame.verdict == Verdict::Forward || is_joined, "{number}: {:?}", frame.verdict);
    }
    assert!(gateway.engine.counters().frames_are_conserved());
    gateway.counted([("ip_in_ip.encap", 20), ("ip_in_ip.decap", 20)]);
}

#[test]
fn the_outer_header_follows_the_policy() {
    let policy = TunnelPolicy {
        ttl: HeaderByte::Set(9),
        traffic_class: HeaderByte::Set(0x40),
        ecn: Ecn::Normal,
        encapsulation_limit: None,
        ..over6().policy
    };
    let mut gateway = with(IpInIpConfig { policy, ..over6() });
    let inner = v4(HERE4, THERE4).tos(0xb9).udp(53, 4_000, b"data");
    gateway.receives(inner.clone());
    gateway.sends(v6(LOCAL6, REMOTE6).hops(9).tos(0x41).protocol(4, &inner.octets(), None));
    let policy = TunnelPolicy { ttl: HeaderByte::Copy, ..TunnelPolicy::default() };
    let mut gateway = with(IpInIpConfig { policy, ..over4() });
    let inner = v4(HERE4, THERE4).tos(0xb9).hops(7).udp(53, 4_000, b"data");
    gateway.receives(inner.clone());
    let sent = gateway.sent();
    assert_eq!(sent, identified(&sent, in_ipv4(LOCAL4, REMOTE4, inner).tos(0xb8).hops(7)));
}

#[test]
fn congestion_marks_are_carried_on_as_rfc_6040_says() {
    // Figure 4: rows Not-ECT, ECT(1), ECT(0), CE as they are numbered; columns likewise; 9 is a drop.
    const FIGURE_4: [[u8; 4]; 4] = [[0, 0, 0, 9], [1, 1, 1, 3], [2, 1, 2, 3], [3, 3, 3, 3]];
    let wraps: [fn(Build) -> Build; 3] = [
        |inner| in_ipv6(41, REMOTE6, LOCAL6, inner),
        |inner| in_ipv6(4, REMOTE6, LOCAL6, inner),
        |inner| in_ipv4(REMOTE4, LOCAL4, inner),
    ];
    for (kind, wrap) in wraps.into_iter().enumerate() {
        for (inner, row) in (0..).zip(FIGURE_4) {
            for (outer, expected) in (0..).zip(row) {
                let mut gateway = with(if kind == 2 { over4() } else { over6() });
                let packet = if kind == 0 { v6(THERE6, HERE6) } else { v4(THERE4, HERE4) };
                let packet = packet.udp(53, 4_000, b"data");
                gateway.receives(wrap(packet.clone().tos(0xb8 | inner)).tos(0x28 | outer));
                if expected == 9 {
                    assert_eq!(gateway.last, Verdict::Dropped(DropReason::InnerNotEct));
                } else {
                    gateway.sends(packet.tos(0xb8 | expected));
                }
            }
        }
    }
}

#[test]
fn sources_are_checked_inside_and_outside() {
    let mut gateway = with(over6());
    let good6 = || v6(THERE6, HERE6).udp(1, 2, b"data");
    let good4 = || v4(THERE4, HERE4).udp(1, 2, b"data");
    gateway.refuses(in_ipv6(41, "2001:db8:ff::8", LOCAL6, good6()), DropReason::NoTunnel);
    gateway.refuses(in_ipv6(4, "2001:db8:ff::8", LOCAL6, good4()), DropReason::NoTunnel);
    let other6 = v6("2001:db8:8::1", HERE6).udp(1, 2, b"data");
    gateway.refuses(in_ipv6(41, REMOTE6, LOCAL6, other6.clone()), DropReason::SourceNotInTunnel);
    let other4 = v4("10.8.0.1", HERE4).udp(1, 2, b"data");
    gateway.refuses(in_ipv6(4, REMOTE6, LOCAL6, other4.clone()), DropReason::SourceNotInTunnel);
    let own = v6("2001:db8::fe", HERE6).udp(1, 2, b"data");
    gateway.refuses(in_ipv6(41, REMOTE6, LOCAL6, own), DropReason::SourceNotInTunnel);
    let martian = v4("127.0.0.1", HERE4).udp(1, 2, b"data");
    gateway.refuses(in_ipv6(4, REMOTE6, LOCAL6, martian), DropReason::MartianSource);
    let link_local = v6("fe80::1", HERE6).udp(1, 2, b"data");
    gateway.refuses(in_ipv6(41, REMOTE6, LOCAL6, link_local), DropReason::MartianSource);
    let mapped = v6("::ffff:10.7.0.1", HERE6).udp(1, 2, b"data");
    gateway.refuses(in_ipv6(41, REMOTE6, LOCAL6, mapped), DropReason::MartianSource);
    // What the protocol number says is inside has to be.
    gateway.refuses(in_ipv6(41, REMOTE6, LOCAL6, good4()), DropReason::InnerNotIpv6);
    gateway.refuses(in_ipv6(4, REMOTE6, LOCAL6, good6()), DropReason::InnerNotIpv6);
    gateway.refuses(in_ipv6(4, REMOTE6, LOCAL6, Vec::new()), DropReason::InnerNotIpv6);
    let mut gateway = with(IpInIpConfig { strict_sources: false, ..over6() });
    gateway.receives(in_ipv6(41, REMOTE6, LOCAL6, other6.clone()));
    gateway.sends(other6);
    gateway.receives(in_ipv6(4, REMOTE6, LOCAL6, other4.clone()));
    gateway.sends(other4);
    let mut gateway = with(over4());
    gateway.refuses(in_ipv4("198.51.100.8", LOCAL4, good4()), DropReason::NoTunnel);
}

#[test]
fn a_tunnel_takes_only_the_families_that_it_has_prefixes_of() {
    let mut gateway = with(IpInIpConfig { prefixes4: Vec::new(), ..over6() });
    gateway.refuses(in_ipv6(4, REMOTE6, LOCAL6, v4(THERE4, HERE4).udp(1, 2, b"")), DropReason::NoTunnel);
    let mut gateway = with(IpInIpConfig { prefixes6: Vec::new(), ..over6() });
    gateway.refuses(in_ipv6(41, REMOTE6, LOCAL6, v6(THERE6, HERE6).udp(1, 2, b"")), DropReason::NoTunnel);
    let mut gateway = with(IpInIpConfig { prefixes4: Vec::new(), ..over4() });
    gateway.receives(in_ipv4(REMOTE4, LOCAL4, v4(THERE4, HERE4).udp(1, 2, b"")));
    assert!(matches!(gateway.last, Verdict::Dropped(_)));
}

#[test]
fn the_longest_ipv4_prefix_wins_and_a_pool_comes_first() {
    let wide = IpInIpConfig { prefixes4: vec!["0.0.0.0/0".parse().unwrap()], ..over6() };
    let narrow = over4();
    let mut gateway = support::gateway(|config| {
        config.tunnels.extend([wide, narrow].map(TunnelConfig::IpInIp));
    });
    gateway.receives(v4(HERE4, THERE4).udp(1, 2, b"data"));
    assert_eq!(gateway.sent()[0] >> 4, 4);
    gateway.receives(v4(HERE4, "10.8.0.1").udp(1, 2, b"data"));
    assert_eq!(gateway.sent()[0] >> 4, 6);
}

#[test]
fn the_encapsulation_limit_is_counted_down_and_obeyed() {
    let mut gateway = with(over6());
    let nested = v6(HERE6, THERE6).extension(60, &limit(1)).udp(1, 2, b"data");
    gateway.receives(nested.clone());
    gateway.sends(v6(LOCAL6, REMOTE6).extension(60, &limit(0)).protocol(41, &nested.octets(), None));
    let last = v6(HERE6, THERE6).extension(60, &limit(0)).udp(1, 2, b"data");
    gateway.receives(last.clone());
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::EncapsulationLimit));
    gateway.sends(v6("2001:db8::fe", HERE6).icmp(icmp6(4, 0, [0, 0, 0, 44], &last.octets())));
    // A limit that is borne is carried on whatever the policy says.
    let policy = TunnelPolicy { encapsulation_limit: None, ..over6().policy };
    let mut gateway = with(IpInIpConfig { policy, ..over6() });
    gateway.receives(nested.clone());
    gateway.sends(v6(LOCAL6, REMOTE6).extension(60, &limit(0)).protocol(41, &nested.octets(), None));
    gateway.receives(v6(HERE6, THERE6).udp(1, 2, b"data"));
    assert_eq!(gateway.sent()[6], 41);
}

#[test]
fn an_ipv6_packet_beyond_the_tunnels_mtu_is_answered_and_one_of_1_280_octets_is_cut_outside() {
    let mut gateway = with(over6());
    gateway.receives(big6(1_452));
    assert_eq!(gateway.sent().len(), 1_500);
    gateway.receives(big6(1_453));
    let error = icmp6(2, 0, 1_452_u32.to_be_bytes(), &big6(1_453).octets()[..1_232]);
    gateway.sends(v6("2001:db8::fe", HERE6).icmp(error));
    let mut gateway = support::gateway(|config| {
        config.limits.mtu6 = 1_280;
        config.tunnels.push(TunnelConfig::IpInIp(over6()));
    });
    gateway.receives(big6(1_281));
    let error = icmp6(2, 0, 1_280_u32.to_be_bytes(), &big6(1_281).octets()[..1_232]);
    gateway.sends(v6("2001:db8::fe", HERE6).icmp(error));
    gateway.receives(big6(1_280));
    let (first, second) = (gateway.sent(), gateway.sent());
    gateway.sends_nothing();
    assert!(first.len() <= 1_280 && second.len() <= 1_280);
    assert_eq!((first[6], second[6]), (44, 44));
    let mut other = with(config(REMOTE6, LOCAL6));
    let here = big6(1_280);
    // The other end joins them. Its prefixes are those of this side.
    let mut config = config(REMOTE6, LOCAL6);
    config.prefixes6 = vec!["2001:db8:1::/48".parse().unwrap()];
    other.engine.set_tunnels(&[TunnelConfig::IpInIp(config)], &[], &[]);
    other.receives(second);
    other.sends_nothing();
    other.receives(first);
    other.sends(here);
}

#[test]
fn an_ipv4_packet_with_df_is_answered_and_one_without_is_cut_outside() {
    let mut gateway = with(over6());
    gateway.receives(big4(1_452));
    assert_eq!(gateway.sent().len(), 1_500);
    gateway.receives(big4(1_453));
    let sent = gateway.sent();
    assert_eq!((&sent[20..22], &sent[26..28]), (&[3, 4][..], &1_452_u16.to_be_bytes()[..]));
    assert_eq!(sent[16..20], [10, 1, 0, 1]);
    gateway.receives(big4(3_000).may_fragment());
    let pieces: Vec<Vec<u8>> = (0..3).map(|_| gateway.sent()).collect();
    gateway.sends_nothing();
    assert!(pieces.iter().all(|piece| piece[6] == 44 && piece.len() <= 1_500));
    let total: usize = pieces.iter().map(|piece| piece.len() - 48).sum();
    assert_eq!(total, 3_000 + 8);
    // RFC 2003 §5.1.
    let mut gateway = with(over4());
    gateway.receives(big4(1_481));
    let sent = gateway.sent();
    assert_eq!((&sent[20..22], &sent[26..28]), (&[3, 4][..], &1_480_u16.to_be_bytes()[..]));
    gateway.receives(big4(1_481).may_fragment());
    assert_eq!((gateway.sent()[9], gateway.sent()[9]), (4, 4));
    gateway.sends_nothing();
}

#[test]
fn outer_fragments_may_be_forbidden() {
    let policy = TunnelPolicy { outer_fragments: OuterFragments::Never, ..over6().policy };
    let mut gateway = with(IpInIpConfig { policy, ..over6() });
    gateway.receives(big4(1_453).may_fragment());
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::OuterTooBig));
    let sent = gateway.sent();
    assert_eq!(sent[20..22], [3, 1]);
}

#[test]
fn fragments_of_tunnel_packets_are_joined_only_if_they_come_from_the_other_end() {
    let mut gateway = with(over6());
    let inner = v4(THERE4, HERE4).udp(53, 4_000, &[7; 1_000]);
    let whole = |source| v6(source, LOCAL6).protocol(4, &inner.octets(), None);
    gateway.receives(whole(REMOTE6).fragment(7, 512, false).part(512, 1_028));
    gateway.sends_nothing();
    gateway.receives(whole(REMOTE6).fragment(7, 0, true).part(0, 512));
    gateway.sends(inner.clone());
    gateway.counted_before();
    gateway.refuses(whole("2001:db8:ff::8").fragment(7, 0, true).part(0, 512), DropReason::NoTunnel);
    let mut gateway = with(over4());
    let whole = in_ipv4(REMOTE4, LOCAL4, inner.clone());
    gateway.receives(whole.clone().fragment(7, 512, false).part(512, 1_028));
    gateway.receives(whole.fragment(7, 0, true).part(0, 512));
    gateway.sends(inner);
}

#[test]
fn super_frames_leave_as_a_tunnel_packet_for_each_segment() {
    let data: Vec<u8> = (0..3_000).map(|at| at as u8).collect();
    let offload = described(SegmentKind::Tcp, 1_220);
    for (config, packet, front) in [
        (over6(), v6(HERE6, THERE6).tcp(80, 4_000, 0x10, &data), 48),
        (over6(), v4(HERE4, THERE4).tcp(80, 4_000, 0x10, &data), 48),
        (over4(), v4(HERE4, THERE4).tcp(80, 4_000, 0x10, &data), 20),
    ] {
        let mut gateway = with(config);
        let mut offload = offload;
        offload.transport = if packet.octets()[0] >> 4 == 6 { 40 } else { 20 };
        let whole = unfinished(packet);
        gateway.receives_with(whole.clone(), offload);
        for segment in on_the_wire(&whole, offload) {
            let sent = gateway.sent();
            assert_eq!(hex(&sent[front..]), hex(&segment));
            assert!(front == 48 || checksum_is_right(&sent));
            let told = u16::from_be_bytes(if front == 48 { [sent[4], sent[5]] } else { [sent[2], sent[3]] });
            assert_eq!(usize::from(told), sent.len() - if front == 48 { 40 } else { 0 });
        }
        gateway.sends_nothing();
    }
}

#[test]
fn the_mss_is_lowered_to_what_the_tunnel_carries() {
    let policy = TunnelPolicy { clamp_mss: true, ..over6().policy };
    let syn = |packet: Build| packet.tcp_with(80, 4_000, 2, &[2, 4, 0x23, 0], b"");
    let mss = |octets: &[u8], at: usize| {
        assert!(checksum_is_right(octets));
        u16::from_be_bytes([octets[at + 22], octets[at + 23]])
    };
    let mut gateway = with(IpInIpConfig { policy, ..over6() });
    gateway.receives(syn(v6(HERE6, THERE6)));
    assert_eq!(mss(&gateway.sent()[48..], 40), 1_452 - 60);
    gateway.receives(syn(v4(HERE4, THERE4)));
    assert_eq!(mss(&gateway.sent()[48..], 20), 1_452 - 40);
    gateway.receives(in_ipv6(4, REMOTE6, LOCAL6, syn(v4(THERE4, HERE4))));
    assert_eq!(mss(&gateway.sent(), 20), 1_452 - 40);
}

/// An ICMPv6 error from a router inside, about a tunnel packet.
fn error6(kind: u8, code: u8, rest: u32, outer: &Build) -> Build {
    let octets = outer.octets();
    v6("2001:db8:ff::1", LOCAL6).icmp(icmp6(
        kind,
        code,
        rest.to_be_bytes(),
        &octets[..octets.len().min(1_232)],
    ))
}

#[test]
fn errors_from_inside_are_told_to_ipv6_senders_as_rfc_2473_section_8_2_says() {
    let inner = big6(1_400);
    let outer = in_ipv6(41, LOCAL6, REMOTE6, inner.clone());
    for (kind, code, rest) in [(1, 0, 0), (1, 3, 0), (3, 0, 0), (4, 0, 44)] {
        let mut gateway = with(over6());
        gateway.receives(error6(kind, code, rest, &outer));
        let sent = gateway.sent();
        assert_eq!((sent[6], sent[40], sent[41]), (58, 1, 3), "{kind}/{code}");
        assert_eq!(hex(&sent[24..40]), hex(&inner.octets()[8..24]));
        assert_eq!(hex(&sent[48..]), hex(&inner.octets()[..sent.len() - 48]));
        assert!(checksum_is_right(&sent));
    }
    let mut gateway = with(over6());
    gateway.receives(error6(2, 0, 1_380, &outer));
    let sent = gateway.sent();
    assert_eq!((sent[40], u32::from_be_bytes([sent[44], sent[45], sent[46], sent[47]])), (2, 1_332));
    gateway.counted([("tunnels.path_mtus.learnt", 1), ("tunnels.errors_relayed", 1), ("answered", 1)]);
    // It is remembered.
    gateway.receives(big6(1_333));
    assert_eq!(gateway.sent()[40], 2);
    gateway.receives(big6(1_332));
    assert_eq!(gateway.sent().len(), 1_380);
    // Concerns the tunnel alone.
    for (kind, code, rest) in [(3, 1, 0), (4, 0, 6), (4, 1, 44)] {
        gateway.counted_before();
        gateway.refuses(error6(kind, code, rest, &outer), DropReason::ErrorForTunnelAlone);
    }
}

#[test]
fn errors_from_inside_are_told_to_ipv4_senders_as_rfc_2473_section_8_3_says() {
    let inner = big4(1_400);
    let outer = in_ipv6(4, LOCAL6, REMOTE6, inner.clone());
    let mut gateway = with(over6());
    gateway.receives(error6(1, 0, 0, &outer));
    let sent = gateway.sent();
    assert_eq!((sent[9], sent[20], sent[21], &sent[16..20]), (1, 3, 1, &[10, 1, 0, 1][..]));
    assert_eq!(hex(&sent[28..]), hex(&inner.octets()[..sent.len() - 28]));
    assert!(checksum_is_right(&sent));
    gateway.receives(error6(2, 0, 1_380, &outer));
    let sent = gateway.sent();
    assert_eq!((sent[20], sent[21], u16::from_be_bytes([sent[26], sent[27]])), (3, 4, 1_332));
    // Without DF its sender need not know: the outer packets are cut from now on.
    let outer = in_ipv6(4, LOCAL6, REMOTE6, big4(1_400).may_fragment());
    gateway.counted_before();
    gateway.receives(error6(2, 0, 1_380, &outer));
    gateway.sends_nothing();
    gateway.receives(big4(1_400).may_fragment());
    assert_eq!((gateway.sent()[6], gateway.sent()[6]), (44, 44));
    // RFC 2003 §4.
    let mut gateway = with(over4());
    let outer = in_ipv4(LOCAL4, REMOTE4, big4(1_400)).octets();
    gateway.receives(v4("198.18.0.1", LOCAL4).icmp(icmp4(3, 4, [0, 0, 5, 0x14], &outer[..548])));
    let sent = gateway.sent();
    assert_eq!((sent[20], sent[21], u16::from_be_bytes([sent[26], sent[27]])), (3, 4, 1_280));
    gateway.receives(v4("198.18.0.1", LOCAL4).icmp(icmp4(11, 0, [0; 4], &outer[..548])));
    assert_eq!(gateway.sent()[20..22], [3, 1]);
}

#[test]
fn errors_are_believed_only_about_what_was_sent() {
    let mut gateway = with(over6());
    let nothing_sent = DropReason::ErrorAboutNothingSent;
    for outer in [
        in_ipv6(41, LOCAL6, "2001:db8:ff::8", big6(1_400)),
        in_ipv6(41, REMOTE6, LOCAL6, big6(1_400)),
        in_ipv6(41, LOCAL6, REMOTE6, v6(HERE6, "2001:db8:8::1").udp(1, 2, b"data")),
        in_ipv6(4, LOCAL6, REMOTE6, v4(HERE4, "10.8.0.1").udp(1, 2, b"data")),
    ] {
        gateway.counted_before();
        gateway.refuses(error6(2, 0, 1_300, &outer), nothing_sent);
    }
    // Nothing was learnt.
    gateway.receives(big6(1_452));
    assert_eq!(gateway.sent().len(), 1_500);
    // An error about an error is no news; neither is a path narrower than IPv6 allows, or wider than was thought.
    let error = v6(HERE6, THERE6).icmp(icmp6(1, 0, [0; 4], b"data"));
    gateway.counted_before();
    gateway.refuses(error6(1, 0, 0, &in_ipv6(41, LOCAL6, REMOTE6, error)), DropReason::QuoteIsIcmpError);
    for told in [1_279, 1_501] {
        gateway.receives(error6(2, 0, told, &in_ipv6(41, LOCAL6, REMOTE6, big6(1_280))));
        gateway.sends_nothing();
    }
    let broken = {
        let mut octets = error6(1, 0, 0, &in_ipv6(41, LOCAL6, REMOTE6, big6(1_400))).octets();
        octets[60] ^= 1;
        octets
    };
    gateway.counted_before();
    gateway.refuses(broken, DropReason::BadIcmpChecksum);
}

#[test]
fn what_another_worker_heard_of_a_path_is_learnt_too() {
    let mut gateway = with(over6());
    let error = error6(2, 0, 1_380, &in_ipv6(41, LOCAL6, REMOTE6, big6(1_400))).octets();
    gateway.engine.learn_path_error(&error, gateway.now);
    gateway.receives(big6(1_333));
    assert_eq!(gateway.sent()[40], 2);
}

#[test]
fn what_is_heard_of_a_path_is_kept_for_the_other_workers_and_in_bounds() {
    let two = || {
        support::gateway(|config| {
            config.workers = 2;
            config.tunnels.push(TunnelConfig::IpInIp(over6()));
        })
    };
    let (mut gateway, mut other) = (two(), two());
    // Without DF the sender is not told: what the other engine sends would be lost for ever.
    let error = error6(2, 0, 1_380, &in_ipv6(4, LOCAL6, REMOTE6, big4(1_400).may_fragment())).octets();
    gateway.receives(error.clone());
    let news = gateway.engine.take_path_errors();
    assert_eq!(news, std::slice::from_ref(&error));
    assert!(gateway.engine.take_path_errors().is_empty());
    for octets in &news {
        other.engine.learn_path_error(octets, other.now);
    }
    assert!(other.engine.take_path_errors().is_empty(), "news went in a circle");
    other.receives(big4(1_400).may_fragment());
    assert_eq!((other.sent()[6], other.sent()[6]), (44, 44));
    // What is not believed is no news, and there is never much.
    gateway.receives(error6(2, 0, 1_400, &in_ipv6(4, LOCAL6, REMOTE6, big4(1_400).may_fragment())));
    assert!(gateway.engine.take_path_errors().is_empty());
    (0..20).for_each(|_| gateway.receives(error.clone()));
    assert_eq!(gateway.engine.take_path_errors().len(), 8);
    let mut alone = with(over6());
    alone.receives(error);
    assert!(alone.engine.take_path_errors().is_empty());
}

#[test]
fn nothing_runs_in_a_circle() {
    // RFC 2473 §4.1.2: its own packet comes back to be put in again; the other end is this host; its packet comes from itself.
    let behind = IpInIpConfig { prefixes6: vec!["2001:db8::/32".parse().unwrap()], ..over6() };
    let mut gateway = with(behind);
    let inner = v6(HERE6, THERE6).udp(1, 2, b"data");
    gateway.receives(in_ipv6(41, LOCAL6, REMOTE6, inner.clone()));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::TunnelLoop));
    gateway.sends_nothing();
    let mut gateway = support::gateway(|config| {
        config.host6 = vec![REMOTE6.parse().unwrap()];
        config.tunnels.push(TunnelConfig::IpInIp(over6()));
    });
    gateway.refuses(inner, DropReason::TunnelLoop);
    let back = v6(THERE6, HERE6).udp(1, 2, b"data");
    gateway.refuses(in_ipv6(41, REMOTE6, LOCAL6, back), DropReason::TunnelLoop);
}

#[test]
fn a_tunnel_may_end_at_the_gateways_own_address() {
    let mut gateway = with(IpInIpConfig { local: "2001:db8::fe".parse().unwrap(), ..over6() });
    let back = v4(THERE4, HERE4).udp(1, 2, b"data");
    gateway.receives(in_ipv6(4, REMOTE6, "2001:db8::fe", back.clone()));
    gateway.sends(back);
    gateway.receives(v6(HERE6, "2001:db8::fe").echo(1, 2, b"data"));
    gateway.sends(v6("2001:db8::fe", HERE6).echo_reply(1, 2, b"data"));
}

#[test]
fn tunnels_without_a_known_other_end_say_so_in_the_senders_family() {
    let mut gateway = with(IpInIpConfig { remote: None, ..over6() });
    gateway.receives(v4(HERE4, THERE4).udp(1, 2, b"data"));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::NoRemote));
    assert_eq!(gateway.sent()[20..22], [3, 1]);
    gateway.receives(v6(HERE6, THERE6).udp(1, 2, b"data"));
    assert_eq!(gateway.sent()[40..42], [1, 3]);
}

#[test]
fn ends_are_of_one_family_and_two() {
    assert_eq!(config(LOCAL6, LOCAL6).check(), Err(IpInIpFault::SameEnds));
    assert_eq!(config(LOCAL6, REMOTE4).check(), Err(IpInIpFault::MixedEnds));
    let six_in_four = IpInIpConfig { prefixes6: over6().prefixes6, ..over4() };
    assert_eq!(six_in_four.check(), Err(IpInIpFault::SixInFour));
    assert_eq!(over4().check(), Ok(()));
    assert_eq!(over6().check(), Ok(()));
}

#[test]
fn a_stateless_translator_beside_takes_what_is_in_no_tunnel() {
    use sixway_dataplane::mechanism::siit::SiitConfig;
    let translated = |tunnels: bool, destination: &str| {
        let mut gateway = support::gateway(|config| {
            config.siit.push(SiitConfig {
                prefix: Some(support::prefix("2001:db8:64::/96")),
                ..SiitConfig::default()
            });
        });
        if tunnels {
            gateway.engine.set_tunnels(&[TunnelConfig::IpInIp(over4())], &[], &[]);
        }
        gateway.receives(v4("198.51.100.1", destination).udp(1, 2, b"data"));
        gateway.sent()[0] >> 4 == 6
    };
    assert!(translated(false, THERE4) && translated(true, "10.8.0.1"));
    assert!(!translated(true, THERE4));
}

#[test]
fn the_gateways_own_ipv4_address_is_behind_no_tunnel() {
    let mut gateway = with(IpInIpConfig { prefixes4: vec!["0.0.0.0/0".parse().unwrap()], ..over6() });
    gateway.receives(v4(HERE4, "192.0.2.254").echo(1, 2, b"data"));
    gateway.sends(v4("192.0.2.254", HERE4).echo_reply(1, 2, b"data"));
}

#[test]
fn nobody_behind_a_tunnel_speaks_in_the_gateways_name_or_in_nobodys() {
    let all = || vec!["0.0.0.0/0".parse().unwrap()];
    let quote = v4(HERE4, THERE4).udp(1, 2, b"data").octets();
    for (config, wrap) in [
        (over6(), (|inner| in_ipv6(4, REMOTE6, LOCAL6, inner)) as fn(Build) -> Build),
        (over4(), |inner| in_ipv4(REMOTE4, LOCAL4, inner)),
    ] {
        let mut gateway = with(IpInIpConfig { prefixes4: all(), ..config });
        let own = v4("192.0.2.254", HERE4).icmp(icmp4(3, 1, [0; 4], &quote));
        gateway.refuses(wrap(own), DropReason::SourceNotInTunnel);
        for nobody in ["127.0.0.1", "0.0.0.1", "224.0.0.1", "255.255.255.255"] {
            gateway.counted_before();
            let error = v4(nobody, HERE4).icmp(icmp4(3, 1, [0; 4], &quote));
            gateway.refuses(wrap(error), DropReason::MartianSource);
        }
        gateway.receives(wrap(v4(THERE4, HERE4).icmp(icmp4(3, 1, [0; 4], &quote))));
        assert_eq!(gateway.sent()[9], 1);
    }
}

#[test]
fn a_tunnel_packet_of_this_host_goes_into_no_second_tunnel_over_ipv4() {
    // RFC 2003 §3.2, as two tunnels whose ends are behind each other would have it.
    let other = IpInIpConfig {
        local: "192.0.2.10".parse().unwrap(),
        remote: "203.0.113.7".parse().ok(),
        prefixes4: vec!["198.51.100.0/24".parse().unwrap()],
        ..over4()
    };
    let first = IpInIpConfig { prefixes4: vec!["203.0.113.0/24".parse().unwrap()], ..over4() };
    let mut gateway = support::gateway(|config| {
        config.tunnels.extend([first, other].map(TunnelConfig::IpInIp));
    });
    let inner = || v4(HERE4, "203.0.113.9").may_fragment().udp(1, 2, b"data");
    gateway.receives(inner());
    let outer = gateway.sent();
    gateway.refuses(outer, DropReason::TunnelLoop);
    let mut configured = support::in_ipv4("192.0.2.9", REMOTE4, v6(HERE6, THERE6).udp(1, 2, b"data"));
    gateway.counted_before();
    gateway.refuses(configured.clone(), DropReason::TunnelLoop);
    // That of another host may.
    configured = support::in_ipv4(HERE4, REMOTE4, v6(HERE6, THERE6).udp(1, 2, b"data"));
    gateway.receives(configured);
    assert_eq!(gateway.sent()[9], 4);
    // What comes from the other end is not sent back to it.
    gateway.counted_before();
    gateway.refuses(v4("203.0.113.7", REMOTE4).udp(1, 2, b"data"), DropReason::TunnelLoop);
}

#[test]
fn a_packet_too_big_without_an_mtu_teaches_nothing() {
    let mut gateway = with(over6());
    gateway.receives(error6(2, 0, 0, &in_ipv6(41, LOCAL6, REMOTE6, big6(1_452))));
    gateway.counted([("tunnels.path_mtus.refused", 1), ("ErrorForTunnelAlone", 1)]);
    gateway.receives(big6(1_452));
    assert_eq!(gateway.sent().len(), 1_500);
}

#[test]
fn no_forged_error_makes_an_ipv4_tunnel_useless() {
    let policy = TunnelPolicy { clamp_mss: true, ..over4().policy };
    let mut gateway = with(IpInIpConfig { policy, ..over4() });
    let outer = in_ipv4(LOCAL4, REMOTE4, big4(1_400)).octets();
    gateway.receives(v4("198.18.0.1", LOCAL4).icmp(icmp4(3, 4, [0, 0, 0, 68], &outer[..28])));
    gateway.receives(big4(556));
    assert_eq!(gateway.sent().len(), 576);
    gateway.receives(big4(557));
    let sent = gateway.sent();
    assert_eq!((&sent[20..22], &sent[26..28]), (&[3, 4][..], &556_u16.to_be_bytes()[..]));
    gateway.receives(v4(HERE4, THERE4).tcp_with(80, 4_000, 2, &[2, 4, 5, 0xb4], b""));
    assert_eq!(gateway.sent()[62..64], 516_u16.to_be_bytes());
}

#[test]
fn the_gateways_address_of_today_is_the_one_that_tunnels_may_not_lead_to() {
    let mut gateway = with(over6());
    gateway.engine.set_own6(Some("2001:db8::ab".parse().unwrap()));
    let to = |remote: &str| [TunnelConfig::IpInIp(IpInIpConfig { remote: remote.parse().ok(), ..over6() })];
    gateway.engine.set_tunnels(&to("2001:db8::ab"), &[], &[]);
    gateway.refuses(v6(HERE6, THERE6).udp(1, 2, b"data"), DropReason::TunnelLoop);
    gateway.engine.set_tunnels(&to("2001:db8::fe"), &[], &[]);
    gateway.receives(v6(HERE6, THERE6).udp(1, 2, b"data"));
    assert_eq!(gateway.last, Verdict::Forward);
}

#[test]
fn a_tunnel_packet_that_is_to_go_elsewhere_first_is_not_taken() {
    let mut gateway = with(over6());
    let back = v6(THERE6, HERE6).udp(1, 2, b"data").octets();
    let routed = |left| {
        v6(REMOTE6, LOCAL6)
            .extension(43, &[0, 2, 4, left, 0, 0, 0, 0].iter().copied().chain([0; 16]).collect::<Vec<_>>())
            .protocol(41, &back, None)
    };
    gateway.receives(routed(1));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::RoutingHeader));
    gateway.receives(routed(0));
    let _answer = gateway.sent();
    gateway.sends(back.clone());
}

#[test]
fn only_the_limit_itself_is_told_to_the_sender() {
    let outer = in_ipv6(41, LOCAL6, REMOTE6, big6(1_400));
    for pointer in (40..48).filter(|pointer| *pointer != 44) {
        let mut gateway = with(over6());
        gateway.refuses(error6(4, 0, pointer, &outer), DropReason::ErrorForTunnelAlone);
    }
}

#[test]
fn an_error_about_a_tunnel_in_a_tunnel_goes_to_the_entry_point_before() {
    let entry = "2001:db8:5::5";
    let nested = in_ipv6(41, entry, THERE6, big6(1_000));
    let mut gateway = with(over6());
    gateway.receives(error6(1, 0, 0, &in_ipv6(41, LOCAL6, REMOTE6, nested.clone())));
    let sent = gateway.sent();
    assert_eq!((sent[40], sent[41]), (1, 3));
    assert_eq!(hex(&sent[24..40]), hex(&nested.octets()[8..24]));
    assert_eq!(hex(&sent[48..]), hex(&nested.octets()[..sent.len() - 48]));
}

#[test]
fn a_hop_limit_or_an_encapsulation_limit_that_ran_out_is_told_to_an_ipv4_sender_too() {
    let inner = big4(1_000);
    let outer = in_ipv6(4, LOCAL6, REMOTE6, inner.clone());
    for (kind, rest) in [(3, 0), (4, 44)] {
        let mut gateway = with(over6());
        gateway.receives(error6(kind, 0, rest, &outer));
        let sent = gateway.sent();
        assert_eq!((sent[9], sent[20], sent[21], &sent[16..20]), (1, 3, 1, &[10, 1, 0, 1][..]), "{kind}");
        assert_eq!(hex(&sent[28..]), hex(&inner.octets()[..sent.len() - 28]));
    }
    // Nobody is told of an error, of what nobody sent, or of a packet whose start is not there.
    let error = v4(HERE4, THERE4).icmp(icmp4(3, 1, [0; 4], &inner.octets()[..28]));
    let later = inner.clone().may_fragment().fragment(7, 512, false).part(512, 980);
    for (about, reason) in [
        (error, DropReason::QuoteIsIcmpError),
        (v4("127.0.0.1", THERE4).udp(1, 2, b"data"), DropReason::ErrorForTunnelAlone),
        (later, DropReason::ErrorForTunnelAlone),
    ] {
        let mut gateway = with(over6());
        gateway.refuses(error6(1, 0, 0, &in_ipv6(4, LOCAL6, REMOTE6, about)), reason);
    }
}

#[test]
fn strangers_fragments_leave_room_for_the_other_end() {
    use sixway_dataplane::fragment::FragmentLimits;
    use sixway_dataplane::mechanism::six_to_four::Role;
    let mut gateway = support::gateway(|config| {
        config.fragments = FragmentLimits { packets: 8, packets_per_source: 1, ..FragmentLimits::default() };
        let relay = support::six_to_four(Role::Relay, "192.88.99.1");
        config.tunnels = vec![TunnelConfig::SixToFour(relay), TunnelConfig::IpInIp(over6())];
    });
    for host in 0..8_u8 {
        let inner = v6(&format!("2002:cb00:71{host:02x}::1"), HERE6).udp(1, 2, &[7; 600]);
        let whole = support::in_ipv4(&format!("203.0.113.{host}"), "192.88.99.1", inner);
        gateway.receives(whole.fragment(7, 0, true).part(0, 64));
        assert_eq!(gateway.last, Verdict::Held);
    }
    let inner = v4(THERE4, HERE4).udp(53, 4_000, &[7; 1_000]);
    let whole = v6(REMOTE6, LOCAL6).protocol(4, &inner.octets(), None);
    // More than one at a time, for all come from it.
    for identification in [6, 7] {
        gateway.receives(whole.clone().fragment(identification, 512, false).part(512, 1_028));
        assert_eq!(gateway.last, Verdict::Held);
    }
    gateway.receives(whole.clone().fragment(7, 0, true).part(0, 512));
    gateway.sends(inner);
    gateway.receives(whole.fragment(8, 0, true).part(0, 512));
    gateway.waits(std::time::Duration::from_secs(3));
    assert_eq!(gateway.engine.counters().held, 0);
}

#[test]
fn an_error_that_came_to_another_tunnels_end_teaches_nothing() {
    let other = IpInIpConfig {
        local: "2001:db8:ff::a".parse().unwrap(),
        prefixes6: vec!["2001:db8:8::/48".parse().unwrap()],
        prefixes4: Vec::new(),
        ..over6()
    };
    let mut gateway = support::gateway(|config| {
        config.tunnels.extend([over6(), other].map(TunnelConfig::IpInIp));
    });
    let quote = in_ipv6(41, LOCAL6, REMOTE6, big6(1_400)).octets();
    let error = v6("2001:db8:ff::1", "2001:db8:ff::a").icmp(icmp6(2, 0, [0, 0, 5, 100], &quote[..1_232]));
    gateway.refuses(error, DropReason::ErrorAboutNothingSent);
}

#[test]
fn a_packet_with_df_is_held_to_the_ipv4_path_whatever_mtu_is_configured() {
    let policy = TunnelPolicy { mtu: TunnelMtu::Static(9_000), ..over4().policy };
    let mut gateway = with(IpInIpConfig { policy, ..over4() });
    gateway.receives(big4(1_481));
    let sent = gateway.sent();
    assert_eq!((&sent[20..22], &sent[26..28]), (&[3, 4][..], &1_480_u16.to_be_bytes()[..]));
}

#[test]
fn what_is_longer_with_its_outer_header_than_a_packet_may_be_is_refused() {
    for (config, most) in [(over4(), 65_515), (over6(), 65_527)] {
        let mut gateway = with(config);
        gateway.receives(big4(most).may_fragment());
        assert_eq!(gateway.last, Verdict::InPieces);
        let mut gateway = with(if most == 65_515 { over4() } else { over6() });
        gateway.receives(big4(most + 1).may_fragment());
        assert_eq!(gateway.last, Verdict::Dropped(DropReason::TooLongForIpv4));
        gateway.sends_nothing();
    }
}

#[test]
fn an_ipv4_sender_is_told_of_a_narrow_path_only_if_its_packet_did_not_fit_and_is_quoted() {
    let mut gateway = with(over6());
    let outer = in_ipv6(4, LOCAL6, REMOTE6, big4(1_000));
    gateway.receives(error6(2, 0, 1_380, &outer));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::ErrorForTunnelAlone));
    for (quoted, reason) in [(47, Some(DropReason::ErrorForTunnelAlone)), (48, None)] {
        let mut gateway = with(over4());
        let outer = in_ipv4(LOCAL4, REMOTE4, big4(1_400)).octets();
        gateway.receives(v4("198.18.0.1", LOCAL4).icmp(icmp4(3, 1, [0; 4], &outer[..quoted])));
        assert_eq!(gateway.last, reason.map_or(Verdict::Answered, Verdict::Dropped));
    }
}

#[test]
fn all_addresses_of_this_host_are_known_and_no_remote_end_is_nobodys() {
    let host = ["2001:db8:ff::7", "2001:db8::1", "2001:db8:ffff::1", "2001:db8:3::1"];
    for remote in host {
        let mut gateway = support::gateway(|config| {
            config.host6 = host.map(|address| address.parse().unwrap()).to_vec();
            config.tunnels.push(TunnelConfig::IpInIp(config_to(remote)));
        });
        gateway.refuses(v6(HERE6, THERE6).udp(1, 2, b"data"), DropReason::TunnelLoop);
        let inner = v6(THERE6, HERE6).udp(1, 2, &[7; 100]).octets();
        let part = v6(remote, LOCAL6).protocol(41, &inner, None).fragment(7, 0, true).part(0, 64);
        gateway.counted_before();
        gateway.refuses(part, DropReason::TunnelLoop);
    }
    for remote in ["fe80::1", "::1", "ff0e::1", "::"] {
        let mut gateway = with(config_to(remote));
        gateway.receives(v6(HERE6, THERE6).udp(1, 2, b"data"));
        assert_eq!(gateway.last, Verdict::Dropped(DropReason::NoRemote));
    }
}

fn config_to(remote: &str) -> IpInIpConfig {
    config(LOCAL6, remote)
}

#[test]
fn what_a_table_names_is_translated_though_a_tunnel_has_a_prefix_of_it() {
    use sixway_dataplane::mechanism::siit::SiitConfig;
    let mut gateway = support::gateway(|config| {
        let eam = support::eam(&[("10.7.0.5/32", "2001:db8:5::5/128")]);
        let prefix = Some(support::prefix("2001:db8:64::/96"));
        config.siit.push(SiitConfig { prefix, eam, ..SiitConfig::default() });
        config.tunnels.push(TunnelConfig::IpInIp(over4()));
    });
    for _rebuilt in 0..3 {
        gateway.receives(v4("198.51.100.1", "10.7.0.5").udp(1, 2, b"data"));
        assert_eq!(gateway.sent()[0] >> 4, 6);
        gateway.receives(v4("198.51.100.1", "10.7.0.6").udp(1, 2, b"data"));
        assert_eq!(gateway.sent()[9], 4);
        gateway.engine.set_tunnels(&[], &[], &[]);
        gateway.receives(v4("198.51.100.1", "10.7.0.6").udp(1, 2, b"data"));
        assert_eq!(gateway.sent()[0] >> 4, 6);
        gateway.engine.set_tunnels(&[TunnelConfig::IpInIp(over4())], &[], &[]);
    }
}
