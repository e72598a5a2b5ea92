//! Properties of every packet through a tunnel: it leaves the tunnel unchanged and in order, and its outer packets fit the link.

use super::judge::{folded, is_right, sum};
use super::packets::{Load, Shape, build, described, plain_load};
use crate::support::super_frame::on_the_wire;
use crate::support::{configured, hex, in_ipv4};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use sixway_dataplane::engine::{Engine, EngineConfig, TunnelConfig};
use sixway_dataplane::parse::{Addresses, parse};
use sixway_dataplane::translate::HeaderByte;
use sixway_dataplane::tunnel::{Ecn, OuterFragments, TunnelMtu, TunnelPolicy};
use sixway_dataplane::{DropReason, Frame, Instant, Limits, Offload, Outbox, Verdict};
use sixway_trial::budget;

const HERE: &str = "192.0.2.9";
const THERE: &str = "198.51.100.7";

/// One end of a tunnel; what is behind the other end is 2001:db8:9::/48, seen from here.
fn end(is_here: bool, policy: TunnelPolicy, mtu4: u16, join: bool) -> Engine {
    let mut tunnel = configured();
    let (local, remote, behind) =
        if is_here { (HERE, THERE, "2001:db8:9::/48") } else { (THERE, HERE, "2001:db8:1::/48") };
    (tunnel.local, tunnel.remote) = (local.parse().unwrap(), Some(remote.parse().unwrap()));
    tunnel.prefixes = vec![behind.parse().unwrap()];
    tunnel.policy = policy;
    Engine::new(&EngineConfig {
        own4: None,
        own6: Some("2001:db8::fe".parse().unwrap()),
        limits: Limits { mtu4, mtu6: 1_500 },
        tunnels: vec![TunnelConfig::Configured(tunnel)],
        join,
        seed: [0x5eed, 0x1ab],
        ..EngineConfig::default()
    })
    .unwrap()
}

pub fn policies() -> impl Strategy<Value = (TunnelPolicy, u16)> {
    let mtu = prop_oneof![(1_280u16..9_000).prop_map(TunnelMtu::Static), Just(TunnelMtu::Dynamic)];
    let byte = || prop_oneof![Just(HeaderByte::Copy), (1u8..).prop_map(HeaderByte::Set)];
    let ecn = select(&[Ecn::Normal, Ecn::Compatibility][..]);
    let fragments = select(&[OuterFragments::Allowed, OuterFragments::Never][..]);
    let link = select(&[576u16, 1_280, 1_400, 1_500, 9_000][..]);
    (mtu, byte(), byte(), ecn, fragments, link).prop_map(
        |(mtu, ttl, traffic_class, ecn, outer_fragments, link)| {
            (
                TunnelPolicy {
                    ttl,
                    traffic_class,
                    ecn,
                    mtu,
                    outer_fragments,
                    clamp_mss: false,
                    ..TunnelPolicy::default()
                },
                link,
            )
        },
    )
}

/// A packet or GSO packet from 2001:db8:1::1 to 2001:db8:9::9, as a kernel would hand it out.
fn outbound() -> impl Strategy<Value = (Vec<u8>, Offload)> {
    let size =
        prop_oneof![2 => Just(None), 1 => select(&[100u16, 536, 1_220, 1_300, 1_440][..]).prop_map(Some)];
    let data = prop_oneof![3 => 0usize..200, 3 => 1_100usize..1_600, 1 => 1_600usize..20_000];
    (plain_load(), data, any::<u8>(), 1u8.., any::<u8>(), size, any::<bool>()).prop_map(
        |(load, data, tos, hops, seed, size, is_unfinished)| {
            let shape = Shape {
                from: 0,
                to: 2,
                ports: (4_000, 53),
                hops,
                tos,
                may_fragment: false,
                identification: 0,
                fragment: None,
                option: None,
                data,
                seed,
            };
            let may_be_cut = matches!(load, Load::Udp { .. } | Load::Tcp { .. });
            let size = size.filter(|_| may_be_cut);
            let input =
                described(build(false, &shape, &load).octets(), size, is_unfinished || size.is_some());
            (input.octets, input.offload)
        },
    )
}

/// What leaves, in the order in which a worker sends it.
pub fn sent(frames: &mut [Frame], out: &mut Outbox) -> Vec<(Vec<u8>, Offload)> {
    let (mut all, mut done) = (Vec::new(), 0);
    for frame in frames {
        for piece in out.frames().get(done..frame.pieces.end.into()).unwrap_or_default() {
            all.push((piece.bytes().to_vec(), piece.offload));
            done += 1;
        }
        if frame.verdict.leaves() {
            all.push((frame.bytes().to_vec(), frame.offload));
        }
    }
    all.extend(out.frames()[done..].iter().map(|frame| (frame.bytes().to_vec(), frame.offload)));
    all
}

pub fn hold(octets: &[u8], offload: Offload) -> Frame {
    let mut frame = Frame::with_capacity(sixway_dataplane::frame::MAX_PACKET);
    frame.fill(octets, offload);
    frame
}

/// Flows that a joined GSO packet must not be compared across.
fn flow(packet: &[u8]) -> (u8, Vec<u8>) {
    (packet[6], packet.get(40..44).unwrap_or_default().to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(budget(256)) })]

    #[test]
    fn what_goes_into_a_tunnel_comes_out_as_it_was_and_fits_the_link_between(
        (policy, link) in policies(), packets in vec(outbound(), 1..20), join in any::<bool>(),
    ) {
        let (mut here, mut there) = (end(true, policy, link, join), end(false, policy, link, join));
        let now = Instant::from_secs(1_000);
        let mut out = Outbox::new(16_384);
        let mut frames: Vec<Frame> = packets.iter().map(|(octets, offload)| hold(octets, *offload)).collect();
        here.process(&mut frames, now, &mut out);
        prop_assert!(here.counters().frames_are_conserved());
        let mut expected = Vec::new();
        for (frame, (octets, offload)) in frames.iter().zip(&packets) {
            match frame.verdict {
                Verdict::Dropped(reason) => prop_assert!(
                    matches!(
                        reason,
                        DropReason::PacketTooBig | DropReason::OuterTooBig | DropReason::TooLongForIpv4
                    ),
                    "{:?}",
                    reason
                ),
                Verdict::Forward | Verdict::InPieces => expected.extend(on_the_wire(octets, *offload)),
                _ => prop_assert!(false, "{:?}", frame.verdict),
            }
        }

        let between = sent(&mut frames, &mut out);
        let outer: Vec<_> = between.iter().filter(|(octets, _)| octets[0] >> 4 == 4).collect();
        for (octets, offload) in &outer {
            prop_assert!(octets.len() <= usize::from(link), "{} octets", octets.len());
            prop_assert_eq!(octets.len(), usize::from(u16::from_be_bytes([octets[2], octets[3]])));
            prop_assert_eq!(folded(sum(&octets[..20])), 0xffff);
            prop_assert_eq!((octets[9], offload.segments), (41, None));
        }
        let mut out = Outbox::new(16_384);
        let mut frames: Vec<Frame> = outer.iter().map(|(octets, offload)| hold(octets, *offload)).collect();
        there.process(&mut frames, now, &mut out);
        prop_assert!(there.counters().frames_are_conserved());
        prop_assert_eq!(there.counters().dropped_total(), 0);
        let arrived: Vec<_> =
            sent(&mut frames, &mut out).iter().flat_map(|(octets, offload)| on_the_wire(octets, *offload)).collect();
        for packet in &arrived {
            prop_assert!(is_right(packet, &parse(packet).unwrap(), Default::default()));
        }
        // Joining may let flows overtake one another, but no packet those before it in its flow.
        let by_flow = |packets: &[Vec<u8>]| {
            let mut sorted = packets.to_vec();
            sorted.sort_by_key(|packet| flow(packet));
            sorted
        };
        prop_assert_eq!(by_flow(&arrived), by_flow(&expected));
    }

    #[test]
    fn whatever_comes_to_an_end_of_a_tunnel_is_accounted_for_and_leaves_as_a_packet(
        packets in vec((outbound(), any::<[u8; 3]>(), any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 1..20),
    ) {
        let mut there = end(false, TunnelPolicy::default(), 1_500, true);
        let mut frames = Vec::new();
        for ((inner, offload), what, at, damage, is_error) in packets {
            let mut inner = inner;
            let place = at.index(inner.len());
            inner[place] ^= if what[0] > 128 { damage } else { 0 };
            let mut outer = in_ipv4(HERE, THERE, inner).tos(what[1]).octets();
            if is_error {
                // An error about what this end would have sent.
                let quoted = in_ipv4(THERE, HERE, &outer[20..]).octets();
                let quote = &quoted[..quoted.len().min(usize::from(what[2]) * 4)];
                let rest = [0, 0, what[0], what[1]];
                outer = crate::support::v4("203.0.113.1", THERE).icmp(crate::support::icmp4(3, what[1] % 16, rest, quote)).octets();
            }
            frames.push(hold(&outer, if is_error { Offload::default() } else { offload }));
        }
        let mut out = Outbox::new(1_024);
        there.process(&mut frames, Instant::from_secs(1_000), &mut out);
        prop_assert!(there.counters().frames_are_conserved());
        for (octets, _) in sent(&mut frames, &mut out) {
            let packet = parse(&octets).unwrap();
            prop_assert_eq!(packet.length as usize, octets.len(), "{}", hex(&octets));
            let is_v6 = matches!(packet.addresses, Addresses::V6 { .. });
            prop_assert!(is_v6);
        }
    }
}
