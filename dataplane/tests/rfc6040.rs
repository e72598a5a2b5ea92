//! Congestion marks through a tunnel (RFC 6040).

use crate::support;
use crate::support::{
    Gateway, checksum_is_right, configured, in_ipv4, isatap, six_rd, six_to_four, tunnelling, v6,
};
use sixway_dataplane::engine::TunnelConfig;
use sixway_dataplane::mechanism::{isatap, six_rd, six_to_four};
use sixway_dataplane::tunnel::{Ecn, TunnelPolicy};
use sixway_dataplane::{DropReason, Verdict};

const NOT_ECT: u8 = 0;
const ECT_1: u8 = 1;
const ECT_0: u8 = 2;
const CE: u8 = 3;
const EACH: [u8; 4] = [NOT_ECT, ECT_0, ECT_1, CE];

fn tunnel(ecn: Ecn) -> Gateway {
    support::gateway(|config| {
        let mut tunnel = configured();
        tunnel.policy = TunnelPolicy { ecn, ..TunnelPolicy::default() };
        config.tunnels.push(TunnelConfig::Configured(tunnel));
    })
}

#[test]
fn in_normal_mode_the_outer_field_is_the_inner_one_and_in_compatibility_mode_it_is_clear() {
    for (ecn, copied) in [(Ecn::Normal, true), (Ecn::Compatibility, false)] {
        let mut gateway = tunnel(ecn);
        for field in EACH {
            let inner = v6("2001:db8:1::1", "2001:db8:7::1").tos(0xb8 | field).udp(1, 2, b"data");
            gateway.receives(inner.clone());
            let sent = gateway.sent();
            assert_eq!(sent[1], 0xb8 | if copied { field } else { NOT_ECT });
            assert_eq!(sent[20..], inner.octets(), "the inner header is forwarded as it is");
            assert!(checksum_is_right(&sent));
        }
    }
}

#[test]
fn until_the_other_end_is_known_to_carry_marks_on_the_mode_is_compatibility() {
    assert_eq!(TunnelPolicy::default().ecn, Ecn::Compatibility);
    let tunnels = [
        TunnelConfig::Configured(configured()),
        TunnelConfig::SixToFour(six_to_four(six_to_four::Role::Router, "203.0.113.9")),
        TunnelConfig::SixRd(six_rd(six_rd::Role::BorderRelay, "10.0.0.1")),
        TunnelConfig::Isatap(isatap(isatap::Role::Router, "10.0.0.1")),
    ];
    let ends = [
        ("2001:db8:1::1", "2001:db8:7::1"),
        ("2002:cb00:7109::1", "2002:c633:6407::1"),
        ("2001:4860::8", "2001:db8:6464:100::7"),
        ("2001:4860::8", "2001:db8:1:2:0:5efe:10.0.0.7"),
    ];
    for (tunnel, (source, destination)) in tunnels.into_iter().zip(ends) {
        let mut gateway = tunnelling(tunnel);
        for field in EACH {
            let inner = v6(source, destination).tos(0xb8 | field).udp(1, 2, b"data");
            gateway.receives(inner.clone());
            let sent = gateway.sent();
            assert_eq!((sent[9], sent[1] & CE), (41, NOT_ECT), "to {destination}");
            assert_eq!(sent[20..], inner.octets(), "what is inside keeps its field");
        }
    }
}

/// Figure 4: for each inner field a row, its cells by outer field Not-ECT, ECT(0), ECT(1), CE.
const FIGURE_4: [[Option<u8>; 4]; 4] = [
    [Some(NOT_ECT), Some(NOT_ECT), Some(NOT_ECT), None],
    [Some(ECT_0), Some(ECT_0), Some(ECT_1), Some(CE)],
    [Some(ECT_1), Some(ECT_1), Some(ECT_1), Some(CE)],
    [Some(CE), Some(CE), Some(CE), Some(CE)],
];

#[test]
fn what_leaves_the_tunnel_has_the_field_of_figure_4_and_its_own_dscp() {
    for ecn in [Ecn::Normal, Ecn::Compatibility] {
        for (inner, row) in EACH.into_iter().zip(FIGURE_4) {
            for (outer, field) in EACH.into_iter().zip(row) {
                let mut gateway = tunnel(ecn);
                let packet =
                    |field| v6("2001:db8:7::1", "2001:db8:1::1").tos(0x28 | field).udp(1, 2, b"data");
                let labelled = |field| {
                    let mut octets = packet(field).octets();
                    octets[1] |= 0x0a;
                    octets[2..4].copy_from_slice(&[0xbc, 0xde]);
                    octets
                };
                let arrived = labelled(inner);
                gateway.receives(in_ipv4("198.51.100.7", "192.0.2.9", arrived).tos(0xb8 | outer));
                let Some(field) = field else {
                    assert_eq!(gateway.last, Verdict::Dropped(DropReason::InnerNotEct));
                    gateway.sends_nothing();
                    continue;
                };
                gateway.sends(labelled(field));
            }
        }
    }
}

#[test]
fn combinations_that_nobody_sends_are_counted_and_no_others() {
    let mut gateway = tunnel(Ecn::Normal);
    let mut come = |inner, outer| {
        let packet = v6("2001:db8:7::1", "2001:db8:1::1").tos(inner).udp(1, 2, b"data");
        gateway.counted_before();
        gateway.receives(in_ipv4("198.51.100.7", "192.0.2.9", packet).tos(outer));
        let counters = gateway.engine.counters();
        (counters.ecn_possibly_dangerous, counters.ecn_dangerous)
    };
    let (mut possibly, mut dangerous) = (0, 0);
    for inner in EACH {
        for outer in EACH {
            match (inner, outer) {
                (NOT_ECT, ECT_0 | ECT_1 | CE) | (CE, ECT_1) => dangerous += 1,
                (ECT_1, ECT_0) => possibly += 1,
                (_, _) => {}
            }
            assert_eq!(come(inner, outer), (possibly, dangerous), "inner {inner}, outer {outer}");
        }
    }
    assert_eq!((possibly, dangerous), (1, 4));
}
