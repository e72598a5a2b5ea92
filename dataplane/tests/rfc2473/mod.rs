//! Tunnels of either family over IPv6 (RFC 2473) and of IPv4 in IPv4 (RFC 2003).

mod attacks;
mod errors;
use crate::support;
use crate::support::super_frame::{described, on_the_wire, unfinished};
use crate::support::{Build, Gateway, checksum_is_right, hex, icmp4, icmp6, v4, v6};
use sixway_dataplane::engine::TunnelConfig;
use sixway_dataplane::mechanism::ip_in_ip::{IpInIpConfig, IpInIpFault};
use sixway_dataplane::translate::HeaderByte;
use sixway_dataplane::tunnel::{Ecn, OuterFragments, TunnelMtu, TunnelPolicy};
use sixway_dataplane::{DropReason, SegmentKind, Verdict};

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
            _ => in_ipv6(4, REMOTE6, LOCAL6, v4(THERE4, HERE4).udp(number, 2, b"data")).octets(),
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
fn congestion_marks_are_forwarded_as_rfc_6040_says() {
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
    // The limit of a received packet is copied whatever the policy says.
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
fn gso_packets_leave_as_a_tunnel_packet_for_each_segment() {
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
