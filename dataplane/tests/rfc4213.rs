//! The tunnel itself, whatever mechanism decides about it (RFC 4213 §3): MTU, fragments, outer headers, errors from inside.

use crate::support;
use crate::support::super_frame::{described, on_the_wire, unfinished};
use crate::support::{Build, Gateway, checksum_is_right, configured, icmp4, icmp6, in_ipv4, v4, v6};
use sixway_dataplane::engine::{EngineConfig, PathErrorJudge, TunnelConfig};
use sixway_dataplane::mechanism::six_to_four;
use sixway_dataplane::translate::HeaderByte;
use sixway_dataplane::tunnel::{OuterFragments, TunnelMtu, TunnelPolicy};
use sixway_dataplane::{DropReason, Frame, SegmentKind, Verdict, WorkerId};
use std::collections::BTreeSet;
use std::time::Duration;

const LOCAL: &str = "192.0.2.9";
const REMOTE: &str = "198.51.100.7";
const ROUTER: &str = "203.0.113.1";
const HOST: &str = "2001:db8:1::1";
const PEER: &str = "2001:db8:7::1";
const GATEWAY6: &str = "2001:db8::fe";
const SYN: u8 = 2;
const ACK: u8 = 16;

fn with_engine(policy: TunnelPolicy, edit: impl FnOnce(&mut EngineConfig)) -> Gateway {
    support::gateway(|config| {
        let mut tunnel = configured();
        tunnel.policy = policy;
        config.tunnels.push(TunnelConfig::Configured(tunnel));
        edit(config);
    })
}

fn with(policy: TunnelPolicy) -> Gateway {
    with_engine(policy, |_| {})
}

fn fixed(mtu: u16) -> TunnelPolicy {
    TunnelPolicy { mtu: TunnelMtu::Static(mtu), ..TunnelPolicy::default() }
}

fn dynamic() -> TunnelPolicy {
    TunnelPolicy { mtu: TunnelMtu::Dynamic, ..TunnelPolicy::default() }
}

/// An IPv6 packet of this number of octets that is routed into the tunnel.
fn outbound(length: usize) -> Build {
    let data: Vec<u8> = (0..length - 48).map(|at| at as u8).collect();
    v6(HOST, PEER).udp(53, 4_000, &data)
}

fn dont_fragment(outer: &[u8]) -> bool {
    outer[6] & 0x40 != 0
}

fn identification(outer: &[u8]) -> u16 {
    u16::from_be_bytes([outer[4], outer[5]])
}

/// The router's error about a packet that was sent into the tunnel, quoted up to `quoted` octets.
fn error(kind: u8, code: u8, mtu: u16, inner: Build, quoted: usize) -> Build {
    let [high, low] = mtu.to_be_bytes();
    let outer = in_ipv4(LOCAL, REMOTE, inner).octets();
    v4(ROUTER, LOCAL).icmp(icmp4(kind, code, [0, 0, high, low], &outer[..outer.len().min(quoted)]))
}

fn too_big(mtu: u16, inner: Build) -> Build {
    error(3, 4, mtu, inner, 548)
}

/// The error that the sender of `packet` gets.
fn packet_too_big(mtu: u32, packet: &Build, quoted: usize) -> Build {
    let octets = packet.octets();
    let quote = &octets[..octets.len().min(quoted)];
    v6(GATEWAY6, HOST).icmp(icmp6(2, 0, mtu.to_be_bytes(), quote))
}

#[track_caller]
fn sends_packet_too_big(gateway: &mut Gateway, mtu: u32, packet: &Build) {
    gateway.sends(packet_too_big(mtu, packet, 1_232));
}

/// A packet of the tunnel's MTU passes, and one octet more is answered with it.
#[track_caller]
fn carries(gateway: &mut Gateway, mtu: usize, is_whole: bool) {
    gateway.receives(outbound(mtu));
    let sent = gateway.sent();
    assert_eq!((sent[20..].to_vec(), dont_fragment(&sent)), (outbound(mtu).octets(), is_whole));
    let larger = outbound(mtu + 1);
    gateway.receives(larger.clone());
    sends_packet_too_big(gateway, mtu as u32, &larger);
    gateway.sends_nothing();
}

#[test]
fn a_static_mtu_is_told_and_its_packets_may_be_fragmented() {
    carries(&mut with(TunnelPolicy::default()), 1_280, false);
    carries(&mut with(fixed(1_480)), 1_480, false);
}

#[test]
fn what_is_larger_than_the_next_link_is_cut_into_outer_fragments() {
    let mut gateway = with_engine(fixed(2_000), |config| config.limits.mtu4 = 1_500);
    gateway.receives(outbound(2_000));
    let fragments = [gateway.sent(), gateway.sent()];
    gateway.sends_nothing();
    assert!(fragments.iter().all(|fragment| fragment.len() <= 1_500 && checksum_is_right(fragment)));
    assert_eq!(fragments.each_ref().map(|fragment| fragment[9]), [41, 41]);
    assert_eq!(identification(&fragments[0]), identification(&fragments[1]));
    assert_eq!([&fragments[0][20..], &fragments[1][20..]].concat(), outbound(2_000).octets());
    gateway.counted([("configured.encap", 1), ("fragments.made", 2)]);
}

#[test]
fn outer_packets_that_are_never_fragmented_have_df_and_the_sender_is_told_what_fits() {
    let never = TunnelPolicy { outer_fragments: OuterFragments::Never, ..fixed(9_000) };
    carries(&mut with_engine(never, |config| config.limits.mtu4 = 1_400), 1_380, true);
    let narrow = TunnelPolicy { outer_fragments: OuterFragments::Never, ..fixed(1_300) };
    carries(&mut with(narrow), 1_300, true);
    // The link carries less than IPv6 needs: no sender can send what fits.
    let mut gateway = with_engine(narrow, |config| config.limits.mtu4 = 1_290);
    gateway.receives(outbound(1_280));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::OuterTooBig));
    let sent = gateway.sent();
    assert_eq!((sent[40], sent[41]), (1, 3));
}

#[test]
fn a_dynamic_mtu_starts_as_the_link_and_follows_the_path() {
    let mut gateway = with(dynamic());
    carries(&mut gateway, 1_480, true);
    gateway.counted_before();
    gateway.receives(too_big(1_400, outbound(1_480)));
    // RFC 4213 §3.4: the sender of the packet gets an error immediately.
    gateway.sends(packet_too_big(1_380, &outbound(1_480), 528));
    assert_eq!(gateway.last, Verdict::Answered);
    gateway.counted([("tunnels.path_mtus.learned", 1), ("tunnels.errors_relayed", 1), ("answered", 1)]);
    carries(&mut gateway, 1_380, true);
    gateway.waits(Duration::from_secs(599));
    carries(&mut gateway, 1_380, true);
    gateway.waits(Duration::from_secs(1));
    carries(&mut gateway, 1_480, true);
}

#[test]
fn a_path_that_carries_less_than_1_280_octets_inside_gets_packets_that_may_be_fragmented() {
    let mut gateway = with(dynamic());
    gateway.receives(too_big(1_299, outbound(1_400)));
    gateway.sends(packet_too_big(1_280, &outbound(1_400), 528));
    carries(&mut gateway, 1_280, false);
    // Who cannot send less is not told.
    gateway.receives(too_big(600, outbound(1_280)));
    gateway.sends_nothing();
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::ErrorNotRelayable));
    carries(&mut gateway, 1_280, false);
}

#[test]
fn a_path_mtu_is_believed_only_if_it_lowers_and_is_68_at_least() {
    let mut gateway = with(dynamic());
    for (told, expected) in [(1_500, 1_480), (9_000, 1_480), (67, 1_480), (1_400, 1_380), (1_450, 1_380)] {
        gateway.receives(too_big(told, outbound(1_000)));
        carries(&mut gateway, expected, true);
    }
    // An old router tells 0: the plateau below 1,420 octets is 1,006.
    gateway.receives(too_big(0, outbound(1_400)));
    gateway.sends(packet_too_big(1_280, &outbound(1_400), 528));
    carries(&mut gateway, 1_280, false);
    gateway.counted_before();
    gateway.receives(too_big(1_100, outbound(1_000)));
    gateway.counted([("tunnels.path_mtus.refused", 1), ("ErrorNotRelayable", 1)]);
}

#[test]
fn eight_octets_behind_the_outer_header_teach_the_mtu_and_tell_nobody() {
    let mut gateway = with(dynamic());
    gateway.receives(error(3, 4, 1_400, outbound(1_480), 28));
    gateway.sends_nothing();
    gateway.counted([("tunnels.path_mtus.learned", 1), ("ErrorNotRelayable", 1)]);
    carries(&mut gateway, 1_380, true);
}

#[test]
fn what_one_worker_learns_of_a_path_the_others_learn_too() {
    let heard = too_big(1_400, outbound(1_480)).octets();
    for worker in [0, 1] {
        let mut gateway = with_engine(dynamic(), |config| {
            (config.worker, config.workers) = (WorkerId(worker), 2);
        });
        let now = gateway.now;
        for length in 0..heard.len() {
            gateway.engine.learn_path_error(&heard[..length], now);
        }
        carries(&mut gateway, 1_480, true);
        gateway.engine.learn_path_error(&heard, now);
        carries(&mut gateway, 1_380, true);
        gateway
            .engine
            .learn_path_error(&too_big(1_300, v6(HOST, "2001:db8:8::1").udp(1, 2, b"")).octets(), now);
        carries(&mut gateway, 1_380, true);
    }
}

#[test]
fn errors_that_quote_what_the_tunnel_never_sent_teach_nothing() {
    let mut gateway = with(dynamic());
    let elsewhere = v6(HOST, "2001:db8:8::1").udp(1, 2, &[0; 1_400]);
    let quote = |source, destination, inner: Build| {
        let outer = in_ipv4(source, destination, inner).octets();
        v4(ROUTER, LOCAL).icmp(icmp4(3, 4, 1_300_u32.to_be_bytes(), &outer[..548]))
    };
    for forged in [
        quote(LOCAL, REMOTE, elsewhere),
        quote(LOCAL, "198.51.100.8", outbound(1_480)),
        quote("192.0.2.10", REMOTE, outbound(1_480)),
        quote(REMOTE, LOCAL, outbound(1_480)),
    ] {
        gateway.receives(forged);
        assert_eq!(gateway.last, Verdict::Dropped(DropReason::ErrorNotForTunnel));
        gateway.sends_nothing();
    }
    let mut broken = too_big(1_300, outbound(1_480)).octets();
    broken[100] ^= 1;
    gateway.receives(broken);
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::BadIcmpChecksum));
    carries(&mut gateway, 1_480, true);
}

#[test]
fn a_judge_without_an_engine_believes_what_an_engine_learns_from() {
    let judge = |policy| {
        let mut tunnel = configured();
        tunnel.policy = policy;
        let relay = support::six_to_four(six_to_four::Role::Relay, LOCAL);
        let tunnels = vec![TunnelConfig::Configured(tunnel), TunnelConfig::SixToFour(relay)];
        PathErrorJudge::new(&EngineConfig { tunnels, ..EngineConfig::default() })
    };
    let remote = Some(REMOTE.parse().unwrap());
    let learning = judge(dynamic());
    let narrow = |error: Build| learning.narrow(&error.octets());
    for _ in 0..2 {
        assert_eq!(narrow(too_big(1_400, outbound(1_480))), remote);
    }
    assert_eq!(
        narrow(error(3, 4, 1_400, outbound(1_480), 28)),
        remote,
        "eight octets behind the outer header"
    );
    assert_eq!(narrow(too_big(0, outbound(1_480))), remote, "an old router's");
    for told in [67, 1_500, 9_000] {
        assert_eq!(narrow(too_big(told, outbound(1_480))), None, "{told}");
    }
    assert_eq!(narrow(error(3, 1, 1_400, outbound(1_480), 548)), None, "it is not about the size");
    assert_eq!(narrow(too_big(1_400, v6(HOST, "2001:db8:8::1").udp(1, 2, b""))), None, "never sent there");
    let about = |from: &str, to: &str, inner: Build, quoted: usize| {
        let outer = in_ipv4(from, to, inner).octets();
        v4(ROUTER, LOCAL).icmp(icmp4(3, 4, 1_400_u32.to_be_bytes(), &outer[..quoted]))
    };
    let to_a_site = || v6(HOST, "2002:cb00:7108::1").udp(1, 2, &[0; 600]);
    assert_eq!(narrow(about(LOCAL, "203.0.113.8", to_a_site(), 548)), None, "a tunnel that cuts its packets");
    assert_eq!(narrow(about(LOCAL, "198.51.100.8", outbound(1_480), 548)), None, "nobody's other end");
    assert_eq!(narrow(about(LOCAL, "198.51.100.8", outbound(1_480), 28)), None, "nor told by its address");
    assert_eq!(narrow(about("192.0.2.10", REMOTE, outbound(1_480), 548)), None, "not sent from here");
    let heard = too_big(1_400, outbound(1_480)).octets();
    assert!((0..heard.len()).all(|length| learning.narrow(&heard[..length]).is_none()));
    assert_eq!(judge(TunnelPolicy::default()).narrow(&heard), None, "packets that may be cut fit everywhere");
}

#[test]
fn an_unreachable_other_end_is_reported_as_an_unreachable_address() {
    let mut gateway = with(TunnelPolicy::default());
    for (kind, code) in [(3, 0), (3, 1), (3, 2), (3, 13), (11, 0)] {
        gateway.receives(error(kind, code, 0, outbound(600), 548));
        let quote = outbound(600).octets();
        gateway.sends(v6(GATEWAY6, HOST).icmp(icmp6(1, 3, [0; 4], &quote[..528])));
    }
    for (kind, code) in [(11, 1), (12, 0), (4, 0), (5, 0)] {
        gateway.receives(error(kind, code, 0, outbound(600), 548));
        assert_eq!(gateway.last, Verdict::Dropped(DropReason::ErrorNotRelayable));
    }
    gateway.receives(error(3, 1, 0, v6(HOST, PEER).icmp(icmp6(1, 0, [0; 4], b"quote")), 548));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::QuoteIsIcmpError));
    gateway.sends_nothing();
}

#[test]
fn relayed_errors_are_limited_like_those_that_are_made_here() {
    let mut gateway = with_engine(TunnelPolicy::default(), |config| config.icmp_errors_per_second = 16);
    for _ in 0..10 {
        gateway.receives(error(3, 1, 0, outbound(600), 548));
    }
    gateway.counted([
        ("tunnels.errors_relayed", 2),
        ("answered", 2),
        ("icmp_errors.limited", 8),
        ("ErrorNotRelayable", 8),
    ]);
    let mut unsourced = with_engine(TunnelPolicy::default(), |config| config.own6 = None);
    unsourced.receives(error(3, 1, 0, outbound(600), 548));
    unsourced.counted([("icmp_errors.no_source", 1), ("ErrorNotRelayable", 1)]);
}

#[test]
fn the_outer_header_is_made_as_the_policy_says_and_the_inner_one_stays() {
    let inner = outbound(100).hops(9).tos(0xb8).octets();
    for (ttl, traffic_class, expected) in [
        (HeaderByte::Set(64), HeaderByte::Copy, (64, 0xb8)),
        (HeaderByte::Copy, HeaderByte::Set(0x28), (9, 0x28)),
        (HeaderByte::Set(255), HeaderByte::Set(0), (255, 0)),
    ] {
        let mut gateway = with(TunnelPolicy { ttl, traffic_class, ..TunnelPolicy::default() });
        let mut labelled = inner.clone();
        labelled[1..4].copy_from_slice(&[0x81, 0x23, 0x45]);
        gateway.receives(labelled.clone());
        let sent = gateway.sent();
        assert_eq!((sent[8], sent[1]), expected);
        assert_eq!(sent[20..], labelled);
        assert!(checksum_is_right(&sent));
    }
}

#[test]
fn identifications_of_packets_that_may_be_fragmented_do_not_come_twice() {
    let mut given = BTreeSet::new();
    for worker in 0..2 {
        let mut gateway = with_engine(TunnelPolicy::default(), |config| {
            (config.worker, config.workers) = (WorkerId(worker), 2);
        });
        for _ in 0..500 {
            gateway.receives(outbound(100));
            assert!(given.insert(identification(&gateway.sent())));
        }
        let super_frame = unfinished(v6(HOST, PEER).udp(53, 4_000, &[7; 5_000]));
        gateway.receives_with(super_frame, described(SegmentKind::Udp, 100));
        for _ in 0..50 {
            assert!(given.insert(identification(&gateway.sent())));
        }
    }
}

#[test]
fn a_gso_packet_is_judged_by_its_segments() {
    let mut gateway = with(dynamic());
    let data: Vec<u8> = (0..20_000).map(|at| (at / 7) as u8).collect();
    let whole = unfinished(v6(HOST, PEER).tcp(80, 4_000, ACK, &data));
    gateway.receives_with(whole.clone(), described(SegmentKind::Tcp, 1_420));
    for segment in on_the_wire(&whole, described(SegmentKind::Tcp, 1_420)) {
        let sent = gateway.sent();
        assert_eq!((&sent[20..], dont_fragment(&sent)), (&segment[..], true));
        assert!(sent.len() <= 1_500 && checksum_is_right(&sent));
    }
    gateway.receives_with(whole.clone(), described(SegmentKind::Tcp, 1_421));
    let first = on_the_wire(&whole, described(SegmentKind::Tcp, 1_421)).remove(0);
    gateway.sends(v6(GATEWAY6, HOST).icmp(icmp6(2, 0, 1_480_u32.to_be_bytes(), &first[..1_232])));
    gateway.sends_nothing();
}

#[test]
fn segments_that_are_too_large_for_the_link_leave_as_fragments_in_their_order() {
    let mut gateway = with_engine(fixed(1_480), |config| config.limits.mtu4 = 1_000);
    let whole = unfinished(v6(HOST, PEER).udp(53, 4_000, &[7; 2_500]));
    let offload = described(SegmentKind::Udp, 1_200);
    gateway.receives_with(whole.clone(), offload);
    let [first, second, third]: [Vec<u8>; 3] = on_the_wire(&whole, offload).try_into().unwrap();
    for segment in [first, second] {
        let fragments = [gateway.sent(), gateway.sent()];
        assert_eq!([&fragments[0][20..], &fragments[1][20..]].concat(), segment);
        assert!(fragments.iter().all(|fragment| fragment.len() <= 1_000));
    }
    assert_eq!(gateway.sent()[20..], third);
    gateway.counted([("configured.encap", 1), ("segments.made", 3), ("fragments.made", 4)]);
}

#[test]
fn a_gso_packet_for_which_the_outbox_has_no_room_leaves_nothing_behind() {
    let mut gateway = with(TunnelPolicy::default());
    let mut frame = Frame::holding(&unfinished(v6(HOST, PEER).udp(53, 4_000, &[7; 2_500])));
    frame.offload = described(SegmentKind::Udp, 500);
    let mut out = sixway_dataplane::Outbox::new(4);
    gateway.engine.process(std::slice::from_mut(&mut frame), gateway.now, &mut out);
    assert_eq!((frame.verdict, out.len()), (Verdict::Dropped(DropReason::OutboxFull), 0));
    assert!(gateway.engine.counters().frames_are_conserved());
}

#[test]
fn the_mss_is_lowered_both_ways_to_what_fits_the_tunnel() {
    let syn = |from, to, mss: u16| {
        let [high, low] = mss.to_be_bytes();
        v6(from, to).tcp_with(80, 4_000, SYN, &[2, 4, high, low], b"")
    };
    let mut gateway = with(TunnelPolicy::default());
    gateway.receives(syn(HOST, PEER, 1_440));
    assert_eq!(gateway.sent()[20..], syn(HOST, PEER, 1_220).octets());
    gateway.receives(in_ipv4(REMOTE, LOCAL, syn(PEER, HOST, 1_440)));
    gateway.sends(syn(PEER, HOST, 1_220));
    gateway.receives(in_ipv4(REMOTE, LOCAL, syn(PEER, HOST, 1_000)));
    gateway.sends(syn(PEER, HOST, 1_000));

    let mut gateway = with(dynamic());
    gateway.receives(too_big(1_400, outbound(1_000)));
    gateway.receives(in_ipv4(REMOTE, LOCAL, syn(PEER, HOST, 1_440)));
    gateway.sends(syn(PEER, HOST, 1_320));

    let mut gateway = with(TunnelPolicy { clamp_mss: false, ..TunnelPolicy::default() });
    gateway.receives(in_ipv4(REMOTE, LOCAL, syn(PEER, HOST, 1_440)));
    gateway.sends(syn(PEER, HOST, 1_440));
    gateway.receives(syn(HOST, PEER, 1_440));
    assert_eq!(gateway.sent()[20..], syn(HOST, PEER, 1_440).octets());
}

#[test]
fn the_inner_length_counts_and_octets_behind_it_are_padding() {
    let mut gateway = with(TunnelPolicy::default());
    let inner = v6(PEER, HOST).udp(53, 4_000, b"data").octets();
    gateway.receives(in_ipv4(REMOTE, LOCAL, [&inner[..], &[0; 20]].concat()));
    gateway.sends(inner.clone());
    gateway.receives(in_ipv4(REMOTE, LOCAL, inner.clone()).options(&[1, 1, 1, 0]));
    gateway.sends(inner.clone());
    gateway.receives(in_ipv4(REMOTE, LOCAL, &inner[..inner.len() - 1]));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::Truncated));
}

#[test]
fn tunnel_packets_as_large_as_ipv4_knows_are_put_together_and_leave_whole() {
    let mut gateway = with(TunnelPolicy::default());
    for length in [1_500, 9_000, 65_515] {
        let inner = v6(PEER, HOST).udp(53, 4_000, &vec![7; length - 48]);
        let whole = in_ipv4(REMOTE, LOCAL, inner.clone());
        for from in (0..length).step_by(1_480) {
            let to = (from + 1_480).min(length);
            let fragment = whole.clone().fragment(7, from as u16, to < length);
            gateway.receives(fragment.part(from, to));
        }
        gateway.sends(inner);
        gateway.sends_nothing();
    }
}

/// RFC 4213 §3.6: 1,500 octets at least, even if they come by a link that carries 68 (RFC 791 §3.2), with as few fragments as can be configured.
#[test]
fn a_packet_of_1_500_octets_is_put_together_from_the_smallest_fragments() {
    let mut gateway = support::gateway(|config| {
        config.fragments.fragments_per_packet = 32;
        config.tunnels.push(TunnelConfig::Configured(configured()));
    });
    let inner = v6("2001:db8:7::1", "2001:db8:1::1").udp(1, 2, &[7; 1_432]);
    let whole = in_ipv4("198.51.100.7", "192.0.2.9", inner.clone());
    assert_eq!(whole.octets().len(), 1_500);
    let parts: Vec<_> = (0..1_480).step_by(48).collect();
    assert_eq!(parts.len(), 31);
    for from in parts {
        let to = (from + 48).min(1_480);
        gateway.receives(whole.clone().fragment(7, from as u16, to < 1_480).part(from, to));
    }
    gateway.sends(inner);
}
