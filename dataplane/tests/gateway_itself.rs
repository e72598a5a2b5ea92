//! What is sent to the gateway itself, and the host's own chatter on the device.

use crate::support;
use crate::support::{Gateway, icmp4, icmp6, v4, v6};
use sixway_dataplane::{DropReason, Limits, Verdict};

const OWN4: &str = "192.0.2.254";
const OWN6: &str = "2001:db8::fe";
const HOST4: &str = "203.0.113.2";
const HOST6: &str = "2001:db8:1::1";

fn gateway() -> Gateway {
    support::siit(|_| {})
}

#[test]
fn an_echo_request_is_answered_in_both_families() {
    for data in [&b""[..], b"ping", &[7; 1_400]] {
        let mut gateway = gateway();
        gateway.receives(v4(HOST4, OWN4).hops(9).tos(0x2e).identification(5).echo(7, 1, data));
        gateway.sends(v4(OWN4, HOST4).hops(64).tos(0x2e).identification(5).echo_reply(7, 1, data));
        gateway.receives(v6(HOST6, OWN6).hops(9).tos(0x2e).echo(7, 1, data));
        gateway.sends(v6(OWN6, HOST6).hops(64).tos(0x2e).echo_reply(7, 1, data));
        gateway.counted([("answered", 2)]);
    }
}

#[test]
fn an_echo_request_that_has_come_to_its_end_is_answered() {
    let mut gateway = gateway();
    gateway.receives(v4(HOST4, OWN4).hops(1).echo(7, 1, b"ping"));
    gateway.sends(v4(OWN4, HOST4).hops(64).echo_reply(7, 1, b"ping"));
    gateway.receives(v6(HOST6, OWN6).hops(1).echo(7, 1, b"ping"));
    gateway.sends(v6(OWN6, HOST6).hops(64).echo_reply(7, 1, b"ping"));
}

#[test]
fn a_reply_has_neither_options_nor_extension_headers_nor_padding() {
    let mut gateway = gateway();
    gateway
        .receives([v4(HOST4, OWN4).options(&[1, 1, 1, 0]).echo(7, 1, b"ping").octets(), vec![9; 5]].concat());
    gateway.sends(v4(OWN4, HOST4).echo_reply(7, 1, b"ping"));
    gateway.receives(v6(HOST6, OWN6).extension(60, &[0, 0, 1, 4, 0, 0, 0, 0]).echo(7, 1, b"ping"));
    gateway.sends(v6(OWN6, HOST6).echo_reply(7, 1, b"ping"));
}

#[test]
fn a_reply_of_zeros_alone_has_a_checksum_of_all_ones() {
    let mut gateway = gateway();
    gateway.receives(v4(HOST4, OWN4).echo(0, 0, &[0; 4]));
    assert_eq!(gateway.sent()[20..], [0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn a_reply_larger_than_its_link_leaves_in_fragments() {
    let mut gateway = support::gateway(|config| config.limits = Limits { mtu4: 1_000, mtu6: 1_280 });
    let data: Vec<u8> = (0..1_400u32).map(|n| n as u8).collect();
    gateway.receives(v4(HOST4, OWN4).echo(7, 1, &data));
    let (first, second) = (gateway.sent(), gateway.sent());
    assert!(first.len() <= 1_000 && second.len() <= 1_000);
    assert_eq!(
        [&first[20..], &second[20..]].concat(),
        v4(OWN4, HOST4).echo_reply(7, 1, &data).octets()[20..]
    );
    gateway.receives(v6(HOST6, OWN6).echo(7, 1, &data));
    let (first, second) = (gateway.sent(), gateway.sent());
    assert!(first.len() <= 1_280 && second.len() <= 1_280);
    assert_eq!(
        [&first[48..], &second[48..]].concat(),
        v6(OWN6, HOST6).echo_reply(7, 1, &data).octets()[40..]
    );
    gateway.counted([("fragments.made", 4)]);
}

#[test]
fn everything_else_is_refused_and_told_but_icmp() {
    for packet in [v4(HOST4, OWN4).udp(1, 2, b"data"), v4(HOST4, OWN4).tcp(1, 2, 2, b"")] {
        let mut gateway = gateway();
        gateway.receives(packet);
        let sent = gateway.sent();
        assert_eq!((sent[20], sent[21]), (3, 3));
        gateway.counted([("ToGateway", 1), ("icmp_errors.made", 1)]);
    }
    for packet in [v6(HOST6, OWN6).udp(1, 2, b"data"), v6(HOST6, OWN6).tcp(1, 2, 2, b"")] {
        let mut gateway = gateway();
        gateway.receives(packet);
        let sent = gateway.sent();
        assert_eq!((sent[40], sent[41]), (1, 4));
        gateway.counted([("ToGateway", 1), ("icmp_errors.made", 1)]);
    }
    let quote = v4(OWN4, HOST4).udp(1, 2, b"data").octets();
    let mut gateway = gateway();
    gateway.receives(v4(HOST4, OWN4).icmp(icmp4(3, 3, [0; 4], &quote)));
    gateway.sends_nothing();
    gateway.counted([("ToGateway", 1)]);
}

#[test]
fn the_image_of_the_gateways_own_address_is_the_gateway() {
    // Under the prefix of the translator, and within a mapping.
    for own6 in ["2001:db8:64::192.0.2.254", "2001:db8:1::6"] {
        let mut gateway = support::gateway(|config| {
            config.own6 = own6.parse().ok();
            config.siit.push(sixway_dataplane::mechanism::siit::SiitConfig {
                prefix: Some(support::prefix("2001:db8:64::/96")),
                eam: support::eam(&[("198.51.100.8/29", "2001:db8:1::/125")]),
                ..Default::default()
            });
        });
        gateway.receives(v6("2001:db8:1::1", own6).echo(7, 1, b"ping"));
        gateway.sends(v6(own6, "2001:db8:1::1").hops(64).echo_reply(7, 1, b"ping"));
        // What is next to it is translated.
        gateway.receives(v6("2001:db8:1::1", "2001:db8:64::192.0.2.253").udp(1, 2, b"data"));
        assert_eq!(gateway.last, Verdict::Forward);
        gateway.receives(v6("2001:db8:1::1", "2001:db8:64::203.0.113.2").hops(1).udp(1, 2, b"data"));
        let _ = gateway.sent();
        let error = gateway.sent();
        assert_eq!(
            (error[40], error[8..24].to_vec()),
            (3, own6.parse::<std::net::Ipv6Addr>().unwrap().octets().to_vec())
        );
    }
}

#[test]
fn a_protocol_that_the_gateway_does_not_have_is_told_as_such() {
    let mut gateway = gateway();
    gateway.receives(v4(HOST4, OWN4).protocol(132, &[0; 20], None));
    let sent = gateway.sent();
    assert_eq!((sent[20], sent[21]), (3, 2), "protocol unreachable");
    let plain = v6(HOST6, OWN6);
    let behind = v6(HOST6, OWN6).extension(60, &[0, 0, 1, 4, 0, 0, 0, 0]).extension(43, &[0; 8]);
    let fragment = v6(HOST6, OWN6).protocol(132, &[0; 20], None).fragment(7, 0, false);
    for (packet, pointer) in
        [(plain.protocol(132, &[0; 20], None), 6), (behind.protocol(132, &[0; 20], None), 48), (fragment, 40)]
    {
        gateway.receives(packet);
        let sent = gateway.sent();
        assert_eq!((sent[40], sent[41], sent[44..48].to_vec()), (4, 1, vec![0, 0, 0, pointer]));
    }
    gateway.counted([("ProtocolUnknown", 4), ("icmp_errors.made", 4)]);
    // Nothing follows: nobody asks for anything.
    gateway.receives(v6(HOST6, OWN6).protocol(59, &[], None));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::ToGateway));
}

#[test]
fn a_fragment_of_an_echo_request_is_refused() {
    let mut gateway = gateway();
    gateway.receives(v6(HOST6, OWN6).echo(7, 1, &[0; 40]).fragment(9, 0, true).part(0, 24));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::ToGateway));
}

#[test]
fn the_gateways_own_address_under_a_translation_prefix_is_still_its_own() {
    let mut gateway = support::gateway(|config| {
        config.own6 = Some("2001:db8:64::1".parse().unwrap());
        config.siit.push(sixway_dataplane::mechanism::siit::SiitConfig {
            prefix: Some(support::prefix("2001:db8:64::/96")),
            ..Default::default()
        });
    });
    gateway.receives(v6(HOST6, "2001:db8:64::1").echo(7, 1, b"ping"));
    gateway.sends(v6("2001:db8:64::1", HOST6).echo_reply(7, 1, b"ping"));
}

#[test]
fn the_hosts_own_chatter_is_left_to_it_and_is_not_a_drop() {
    let router_alert = [0, 0, 5, 2, 0, 0, 1, 0];
    let mld2 = icmp6(143, 0, [0, 0, 0, 1], &[4, 0, 0, 0]);
    let chatter: [Vec<u8>; 6] = [
        v6("fe80::1", "ff02::16").hops(1).extension(0, &router_alert).icmp(mld2.clone()).octets(),
        v6("::", "ff02::16").hops(1).extension(0, &router_alert).icmp(mld2).octets(),
        v6("fe80::1", "ff02::2").hops(255).icmp(icmp6(133, 0, [0; 4], &[])).octets(),
        v6("::", "ff02::1:ff00:1").hops(255).icmp(icmp6(135, 0, [0; 4], &[0; 16])).octets(),
        v4("192.0.2.254", "224.0.0.22").hops(1).protocol(2, &[0x22, 0, 0, 0, 0, 0, 0, 0], None).octets(),
        v4("0.0.0.0", "224.0.0.22").hops(1).protocol(2, &[0x22, 0, 0, 0, 0, 0, 0, 0], None).octets(),
    ];
    for packet in chatter {
        let mut gateway = gateway();
        gateway.receives(packet);
        assert_eq!(gateway.last, Verdict::Punted);
        gateway.sends_nothing();
        gateway.counted([("punted", 1)]);
    }
}

#[test]
fn what_only_looks_like_chatter_is_dropped() {
    for packet in [
        v6(HOST6, "ff02::16").icmp(icmp6(143, 0, [0; 4], &[])),
        v6("fe80::1", "ff02::fb").udp(5_353, 5_353, b"mdns"),
        v4(HOST4, "224.0.0.251").udp(5_353, 5_353, b"mdns"),
        v4("0.0.0.0", "192.0.2.1").hops(1).protocol(2, &[0x22, 0, 0, 0, 0, 0, 0, 0], None),
        v4("192.0.2.254", "240.0.0.1").hops(1).protocol(2, &[0x22, 0, 0, 0, 0, 0, 0, 0], None),
    ] {
        let mut gateway = gateway();
        gateway.receives(packet);
        assert!(matches!(gateway.last, Verdict::Dropped(_)));
        gateway.sends_nothing();
    }
}
