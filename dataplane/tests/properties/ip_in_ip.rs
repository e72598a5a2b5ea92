//! The same of tunnels of IP in IP: of either family over IPv6, and of IPv4 over IPv4 (RFC 2473, RFC 2003).

use super::judge::is_right;
use super::packets::{Load, Shape, build, described, plain_load};
use super::tunnels::{hold, policies, sent};
use crate::support::super_frame::on_the_wire;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use sixway_dataplane::engine::{Engine, EngineConfig, TunnelConfig};
use sixway_dataplane::mechanism::ip_in_ip::IpInIpConfig;
use sixway_dataplane::parse::parse;
use sixway_dataplane::tunnel::TunnelPolicy;
use sixway_dataplane::{DropReason, Frame, Instant, Limits, Offload, Outbox, Verdict};
use sixway_trial::budget;

/// Both ends of a tunnel over IPv4, and of one over IPv6.
const ENDS: [[&str; 2]; 2] = [["192.0.2.9", "198.51.100.7"], ["2001:db8:ff::9", "2001:db8:ff::7"]];

/// An end of a tunnel behind whose other end is everything.
fn end(is_v6: bool, is_here: bool, policy: TunnelPolicy, link: u16, join: bool) -> Engine {
    let [mut local, mut remote] = ENDS[usize::from(is_v6)];
    if !is_here {
        (local, remote) = (remote, local);
    }
    let tunnel = IpInIpConfig {
        local: local.parse().unwrap(),
        remote: remote.parse().ok(),
        prefixes4: vec!["0.0.0.0/0".parse().unwrap()],
        prefixes6: if is_v6 { vec!["::/0".parse().unwrap()] } else { Vec::new() },
        strict_sources: true,
        policy,
    };
    Engine::new(&EngineConfig {
        limits: if is_v6 { Limits { mtu4: 1_500, mtu6: link } } else { Limits { mtu4: link, mtu6: 1_500 } },
        tunnels: vec![TunnelConfig::IpInIp(tunnel)],
        join,
        seed: [0x5eed, 0x1ab],
        ..EngineConfig::default()
    })
    .unwrap()
}

/// A packet or GSO packet as a kernel would hand it out.
fn outbound(is_v4: bool) -> impl Strategy<Value = (Vec<u8>, Offload)> {
    let size =
        prop_oneof![2 => Just(None), 1 => select(&[100u16, 536, 1_220, 1_300, 1_440][..]).prop_map(Some)];
    let data = prop_oneof![3 => 0usize..200, 3 => 1_100usize..1_600, 1 => 1_600usize..20_000];
    let fields = (any::<u8>(), 1u8.., any::<bool>(), any::<u16>());
    (plain_load(), data, fields, any::<u8>(), size, any::<bool>()).prop_map(
        move |(load, data, (tos, hops, may_fragment, identification), seed, size, is_unfinished)| {
            let shape = Shape {
                from: 0,
                to: 2,
                ports: (4_000, 53),
                hops,
                tos,
                may_fragment,
                identification,
                fragment: None,
                option: None,
                data,
                seed,
            };
            let may_be_cut = matches!(load, Load::Udp { .. } | Load::Tcp { .. });
            let size = size.filter(|_| may_be_cut);
            let input =
                described(build(is_v4, &shape, &load).octets(), size, is_unfinished || size.is_some());
            (input.octets, input.offload)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(budget(256)) })]

    #[test]
    fn what_goes_into_a_tunnel_comes_out_as_it_was_and_fits_the_link_between(
        (policy, link) in policies(), limit in any::<Option<u8>>(), join in any::<bool>(),
        (is_v6, packets) in prop_oneof![
            (Just(false), vec(outbound(true), 1..20)),
            (Just(true), vec(outbound(true), 1..20)),
            (Just(true), vec(outbound(false), 1..20)),
        ],
    ) {
        let is_v4 = |octets: &[u8]| octets[0] >> 4 == 4;
        let policy = TunnelPolicy { encapsulation_limit: limit, ..policy };
        let link = if is_v6 { link.max(1_280) } else { link };
        let (mut here, mut there) = (end(is_v6, true, policy, link, join), end(is_v6, false, policy, link, join));
        let now = Instant::from_secs(1_000);
        let mut out = Outbox::new(16_384);
        let mut frames: Vec<Frame> = packets.iter().map(|(octets, offload)| hold(octets, *offload)).collect();
        here.process(&mut frames, now, &mut out);
        prop_assert!(here.counters().frames_are_conserved());
        let mut expected = Vec::new();
        for (frame, (octets, offload)) in frames.iter().zip(&packets) {
            match frame.verdict {
                Verdict::Dropped(DropReason::PacketTooBig | DropReason::OuterTooBig | DropReason::TooLongForIpv4) => {}
                Verdict::Forward | Verdict::InPieces => expected.extend(on_the_wire(octets, *offload)),
                verdict => prop_assert!(false, "{:?}", verdict),
            }
        }
        let between = sent(&mut frames, &mut out);
        for (octets, offload) in &between {
            prop_assert!(octets.len() <= usize::from(link), "{} octets", octets.len());
            prop_assert_eq!(is_v4(octets), !is_v6);
            let packet = parse(octets).unwrap();
            prop_assert_eq!((packet.length as usize, offload.segments), (octets.len(), None));
        }
        let mut out = Outbox::new(16_384);
        let mut frames: Vec<Frame> = between.iter().map(|(octets, offload)| hold(octets, *offload)).collect();
        there.process(&mut frames, now, &mut out);
        prop_assert!(there.counters().frames_are_conserved());
        prop_assert_eq!(there.counters().dropped_total(), 0);
        let mut arrived: Vec<_> =
            sent(&mut frames, &mut out).iter().flat_map(|(octets, offload)| on_the_wire(octets, *offload)).collect();
        for packet in &arrived {
            prop_assert!(is_right(packet, &parse(packet).unwrap(), Default::default()));
        }
        arrived.sort();
        expected.sort();
        prop_assert_eq!(arrived, expected);
    }
}
