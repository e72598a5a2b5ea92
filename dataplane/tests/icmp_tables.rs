//! ICMP errors through the whole gateway: every row of the tables of RFC 7915 §4.2 and §5.2, stateless and stateful, and
//! the packets that they quote, octet for octet.

use crate::support;
use crate::support::{Build, Gateway, checksum_is_right, eam, hex, icmp4, icmp6, v4, v6};
use sixway_dataplane::{DropReason, Limits, Verdict};
use std::net::Ipv4Addr;

/// The host, its peer and a router on the way, as IPv6 sees them under either prefix. The outside address of the host is
/// the scene's.
const HOST6: &str = "2001:db8:1::1";
const PEER4: &str = "203.0.113.2";
const ROUTER4: &str = "198.18.0.7";
const INSIDE_PORT: u16 = 4_001;

/// By what the errors are translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Translator {
    Siit,
    Nat64,
}

/// What the packets carry that the errors are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    Udp,
    Tcp,
    Echo,
}

const WAYS: [Translator; 2] = [Translator::Siit, Translator::Nat64];
const LOADS: [Load; 3] = [Load::Udp, Load::Tcp, Load::Echo];

/// A gateway, and the host as it is seen outside.
struct Scene {
    gateway: Gateway,
    way: Translator,
    load: Load,
    host4: String,
    outside_port: u16,
}

fn scene(way: Translator, load: Load, limits: Limits) -> Scene {
    let gateway = support::gateway(|config| {
        config.limits = limits;
        match way {
            Translator::Siit => config.siit.push(sixway_dataplane::mechanism::siit::SiitConfig {
                prefix: Some(support::prefix("2001:db8:64::/96")),
                eam: eam(&[("198.51.100.8/29", "2001:db8:1::/125")]),
                ..Default::default()
            }),
            Translator::Nat64 => config.nat64.push(support::nat64()),
        }
    });
    let host4 = "198.51.100.9".to_owned();
    let mut scene = Scene { gateway, way, load, host4, outside_port: INSIDE_PORT };
    if way == Translator::Nat64 {
        scene.gateway.receives(scene.load_of(v6(HOST6, &scene.image(PEER4)), INSIDE_PORT, true, 8));
        let sent = scene.gateway.sent();
        let port_at = if load == Load::Echo { 24 } else { 20 };
        scene.host4 = Ipv4Addr::new(sent[12], sent[13], sent[14], sent[15]).to_string();
        scene.outside_port = u16::from_be_bytes([sent[port_at], sent[port_at + 1]]);
    }
    scene.gateway.counted_before();
    scene
}

fn plain(way: Translator, load: Load) -> Scene {
    scene(way, load, Limits::default())
}

impl Scene {
    /// An IPv4 address as IPv6 sees it.
    fn image(&self, address: &str) -> String {
        match self.way {
            Translator::Siit => format!("2001:db8:64::{address}"),
            Translator::Nat64 => format!("64:ff9b::{address}"),
        }
    }

    /// A packet of the scene's kind between a port of the host and the peer, `data` octets long.
    fn load_of(&self, packet: Build, host_port: u16, outbound: bool, data: usize) -> Build {
        let data: Vec<u8> = (0..data).map(|n| n as u8).collect();
        let (from, to) = if outbound { (host_port, 53) } else { (53, host_port) };
        match self.load {
            Load::Udp => packet.udp(from, to, &data),
            Load::Tcp => packet.tcp(from, to, 2, &data),
            Load::Echo if outbound => packet.echo(host_port, 9, &data),
            Load::Echo => packet.echo_reply(host_port, 9, &data),
        }
    }

    /// What the host sent, as it was in IPv4 on the way to the peer, and as it was when the host sent it.
    fn outbound(&self, data: usize) -> (Vec<u8>, Vec<u8>) {
        let four = v4(&self.host4, PEER4).hops(50).identification(0x77);
        let six = v6(HOST6, &self.image(PEER4)).hops(50);
        (
            self.load_of(four, self.outside_port, true, data).octets(),
            self.load_of(six, INSIDE_PORT, true, data).octets(),
        )
    }

    /// What the peer sent, as it reached the host, and as a packet of IPv4. The quoted identification is not known here.
    fn inbound(&self, data: usize) -> (Vec<u8>, Vec<u8>) {
        let six = v6(&self.image(PEER4), HOST6).hops(50);
        let four = v4(PEER4, &self.host4).hops(50);
        let six = self.load_of(six, INSIDE_PORT, false, data).octets();
        let mut four = self.load_of(four, self.outside_port, false, data);
        if six.len() <= 1_280 {
            four = four.may_fragment();
        }
        (six, four.octets())
    }

    /// An ICMPv4 error from the router reaches the gateway; what is it inside?
    #[track_caller]
    fn error_from_outside(&mut self, kind: u8, code: u8, rest: [u8; 4], body: &[u8]) -> Option<Vec<u8>> {
        self.gateway.receives(v4(ROUTER4, &self.host4).icmp(icmp4(kind, code, rest, body)));
        (self.gateway.waiting() > 0).then(|| self.gateway.sent())
    }

    /// An ICMPv6 error from the host reaches the gateway; what is it outside?
    #[track_caller]
    fn error_from_inside(&mut self, kind: u8, code: u8, rest: [u8; 4], body: &[u8]) -> Option<Vec<u8>> {
        self.gateway.receives(v6(HOST6, &self.image(PEER4)).icmp(icmp6(kind, code, rest, body)));
        (self.gateway.waiting() > 0).then(|| self.gateway.sent())
    }

    /// The error inside that an error outside becomes.
    fn inside_error(&self, kind: u8, code: u8, rest: [u8; 4], body: &[u8]) -> Vec<u8> {
        v6(&self.image(ROUTER4), HOST6).hops(63).icmp(icmp6(kind, code, rest, body)).octets()
    }

    /// The error outside that an error inside becomes; its identification is the gateway's choice.
    fn outside_error(&self, sent: &[u8], kind: u8, code: u8, rest: [u8; 4], body: &[u8]) -> Vec<u8> {
        let identification = u16::from_be_bytes([sent[4], sent[5]]);
        let envelope = v4(&self.host4, PEER4).hops(63).may_fragment().identification(identification.into());
        envelope.icmp(icmp4(kind, code, rest, body)).octets()
    }

    /// What is counted for one more error.
    #[track_caller]
    fn counts(&mut self, from_v4: bool, dropped: Option<DropReason>) {
        let translated = match (self.way, from_v4) {
            (Translator::Siit, true) => "siit.v4_to_v6",
            (Translator::Siit, false) => "siit.v6_to_v4",
            (Translator::Nat64, true) => "nat64.v4_to_v6",
            (Translator::Nat64, false) => "nat64.v6_to_v4",
        };
        match dropped {
            Some(reason) => self.gateway.counted([(translated, 1), (reason.name(), 1)]),
            None => self.gateway.counted([(translated, 1)]),
        }
    }
}

/// Type, code and the four octets behind the checksum.
type Head = (u8, u8, [u8; 4]);

/// RFC 7915 §4.2 for links of 1,500 octets; `None`: silently dropped.
fn section_4_2() -> Vec<(Head, Option<Head>)> {
    let plain = |kind, code, (to_kind, to_code)| ((kind, code, [0; 4]), Some((to_kind, to_code, [0; 4])));
    let mut rows = vec![
        plain(3, 0, (1, 0)),
        plain(3, 1, (1, 0)),
        ((3, 2, [0; 4]), Some((4, 1, [0, 0, 0, 6]))),
        plain(3, 3, (1, 4)),
        ((3, 4, [0, 0, 0x05, 0x78]), Some((2, 0, [0, 0, 0x05, 0x8c]))),
        plain(3, 5, (1, 0)),
        plain(3, 6, (1, 0)),
        plain(3, 7, (1, 0)),
        plain(3, 8, (1, 0)),
        plain(3, 9, (1, 1)),
        plain(3, 10, (1, 1)),
        plain(3, 11, (1, 0)),
        plain(3, 12, (1, 0)),
        plain(3, 13, (1, 1)),
        ((3, 14, [0; 4]), None),
        plain(3, 15, (1, 1)),
        plain(11, 0, (3, 0)),
        plain(11, 1, (3, 1)),
        ((12, 1, [0; 4]), None),
    ];
    rows.extend((16..=20).map(|code| ((3, code, [0; 4]), None)));
    rows.extend((3..=6).map(|code| ((12, code, [0; 4]), None)));
    rows.extend([4, 5].map(|kind| ((kind, 0, [0; 4]), None)));
    // Figure 3, for both codes that have a pointer.
    for pointer in 0..=20 {
        let to = match pointer {
            0 | 1 => Some(pointer),
            2 | 3 => Some(4),
            8 => Some(7),
            9 => Some(6),
            12..=15 => Some(8),
            16..=19 => Some(24),
            _ => None,
        };
        for code in [0, 2] {
            rows.push(((12, code, [pointer, 0, 0, 0]), to.map(|to| (4, 0, [0, 0, 0, to]))));
        }
    }
    rows
}

/// RFC 7915 §5.2.
fn section_5_2() -> Vec<(Head, Option<Head>)> {
    let plain = |kind, code, (to_kind, to_code)| ((kind, code, [0; 4]), Some((to_kind, to_code, [0; 4])));
    let mut rows = vec![
        plain(1, 0, (3, 1)),
        plain(1, 1, (3, 10)),
        plain(1, 2, (3, 1)),
        plain(1, 3, (3, 1)),
        plain(1, 4, (3, 3)),
        ((2, 0, [0, 0, 0x05, 0x8c]), Some((3, 4, [0, 0, 0x05, 0x78]))),
        plain(3, 0, (11, 0)),
        plain(3, 1, (11, 1)),
        ((4, 1, [0, 0, 0, 6]), Some((3, 2, [0; 4]))),
        ((4, 2, [0; 4]), None),
        ((4, 3, [0; 4]), None),
    ];
    rows.extend((5..=10).map(|code| ((1, code, [0; 4]), None)));
    rows.extend([0, 5, 100, 101, 127].map(|kind| ((kind, 0, [0; 4]), None)));
    // Figure 6.
    for pointer in 0..=44 {
        let to = match pointer {
            0 | 1 => Some(pointer),
            4 | 5 => Some(2),
            6 => Some(9),
            7 => Some(8),
            8..=23 => Some(12),
            24..=39 => Some(16),
            _ => None,
        };
        rows.push(((4, 0, [0, 0, 0, pointer]), to.map(|to| (12, 0, [to, 0, 0, 0]))));
    }
    rows
}

#[test]
fn every_row_of_section_4_2_with_its_quote() {
    for (way, load) in WAYS.into_iter().flat_map(|way| LOADS.map(|load| (way, load))) {
        let mut scene = plain(way, load);
        let (quote, image) = scene.outbound(32);
        for ((kind, code, rest), expected) in section_4_2() {
            let sent = scene.error_from_outside(kind, code, rest, &quote);
            let expected = expected.map(|(kind, code, rest)| scene.inside_error(kind, code, rest, &image));
            let name = format!("{way:?} {load:?} {kind}/{code} {rest:?}");
            assert_eq!(sent.as_deref().map(hex), expected.as_deref().map(hex), "{name}");
            scene.counts(true, expected.is_none().then_some(DropReason::IcmpUntranslatable));
        }
    }
}

#[test]
fn every_row_of_section_5_2_with_its_quote() {
    for (way, load) in WAYS.into_iter().flat_map(|way| LOADS.map(|load| (way, load))) {
        let mut scene = plain(way, load);
        let (quote, image) = scene.inbound(32);
        for ((kind, code, rest), expected) in section_5_2() {
            let sent = scene.error_from_inside(kind, code, rest, &quote);
            let expected = expected
                .zip(sent.as_deref())
                .map(|((kind, code, rest), sent)| scene.outside_error(sent, kind, code, rest, &image));
            let name = format!("{way:?} {load:?} {kind}/{code} {rest:?}: {:?}", scene.gateway.last);
            assert_eq!(sent.as_deref().map(hex), expected.as_deref().map(hex), "{name}");
            let is_dropped = section_5_2().contains(&((kind, code, rest), None));
            assert_eq!(sent.is_none(), is_dropped, "{name}");
            scene.counts(false, is_dropped.then_some(DropReason::IcmpUntranslatable));
        }
    }
}

#[test]
fn fragmentation_needed_tells_what_the_path_carries_in_ipv6() {
    // What the router says, the length of the packet it is about, the links, and the MTU that the host gets.
    let rows = [
        (1_400u16, 1_500usize, (1_500, 1_500), 1_420u32),
        (1_500, 1_500, (1_500, 1_500), 1_500),
        (1_500, 1_500, (1_400, 1_500), 1_420),
        (1_400, 1_500, (1_500, 1_300), 1_300),
        (1_260, 1_500, (1_500, 1_500), 1_280),
        (576, 1_500, (1_500, 1_500), 1_280),
        (68, 1_500, (1_500, 1_500), 1_280),
        // RFC 1191 §7: who says nothing is guessed by the plateaus.
        (0, 1_500, (1_500, 1_500), 1_500),
        (0, 1_492, (1_500, 1_500), 1_280),
        (0, 1_493, (9_000, 9_000), 1_512),
        (0, 4_000, (9_000, 9_000), 2_022),
        (0, 9_000, (65_535, 65_535), 8_186),
        (0, 1_280, (9_000, 9_000), 1_280),
    ];
    for way in WAYS {
        for (mtu, length, (mtu4, mtu6), expected) in rows {
            let mut scene = scene(way, Load::Udp, Limits { mtu4, mtu6 });
            let (quote, image) = scene.outbound(length - 28);
            assert_eq!(quote.len(), length);
            let [high, low] = mtu.to_be_bytes();
            let sent = scene.error_from_outside(3, 4, [0, 0, high, low], &quote[..548]).unwrap();
            let error = scene.inside_error(2, 0, expected.to_be_bytes(), &image[..568]);
            assert_eq!(hex(&sent), hex(&error), "{way:?}: {mtu} about {length}, links {mtu4} and {mtu6}");
        }
    }
}

#[test]
fn packet_too_big_tells_what_the_path_carries_in_ipv4() {
    let rows = [
        (1_420u32, (1_500, 1_500), 1_400u16),
        (1_500, (1_500, 1_500), 1_480),
        (1_280, (1_500, 1_500), 1_260),
        (1_500, (1_400, 1_500), 1_400),
        (1_500, (1_500, 1_300), 1_280),
        (9_000, (1_500, 1_500), 1_480),
        (u32::MAX, (65_535, 65_535), 65_515),
        (0, (1_500, 1_500), 68),
    ];
    for way in WAYS {
        for (mtu, (mtu4, mtu6), expected) in rows {
            let mut scene = scene(way, Load::Udp, Limits { mtu4, mtu6 });
            let (quote, image) = scene.inbound(1_300);
            let sent = scene.error_from_inside(2, 0, mtu.to_be_bytes(), &quote[..1_232]).unwrap();
            let [high, low] = expected.to_be_bytes();
            let error = scene.outside_error(&sent, 3, 4, [0, 0, high, low], &image[..548]);
            assert_eq!(hex(&sent), hex(&error), "{way:?}: {mtu}, links {mtu4} and {mtu6}");
        }
    }
}

#[test]
fn a_quote_with_a_fragment_header_loses_it_and_eight_octets_more_of_mtu() {
    let mut scene = plain(Translator::Siit, Load::Udp);
    let quote =
        v6(&scene.image(PEER4), HOST6).hops(50).fragment(0xdead_beef, 0, true).udp(53, 4_001, &[7; 1_300]);
    let image = v4(PEER4, &scene.host4).hops(50).fragment(0xbeef, 0, true).udp(53, 4_001, &[7; 1_300]);
    let sent = scene.error_from_inside(2, 0, 1_400u32.to_be_bytes(), &quote.octets()[..600]).unwrap();
    let error = scene.outside_error(&sent, 3, 4, [0, 0, 0x05, 0x5c], &image.octets()[..548]);
    assert_eq!(hex(&sent), hex(&error));
}

#[test]
fn a_quoted_ipv4_fragment_gets_a_fragment_header() {
    let mut scene = plain(Translator::Siit, Load::Udp);
    for (offset, more) in [(0, true), (1_480, true), (2_960, false)] {
        let quote = v4(&scene.host4, PEER4).hops(50).fragment(0xbeef, offset, more).udp(4_001, 53, &[7; 100]);
        let image =
            v6(HOST6, &scene.image(PEER4)).hops(50).fragment(0xbeef, offset, more).udp(4_001, 53, &[7; 100]);
        let (quote, mut image) = (quote.octets(), image.octets());
        if offset > 0 {
            // What is in the middle of a packet is data, and has no checksum to follow the addresses.
            image[48..].copy_from_slice(&quote[20..]);
        }
        let sent = scene.error_from_outside(11, 1, [0; 4], &quote).unwrap();
        assert_eq!(hex(&sent), hex(&scene.inside_error(3, 1, [0; 4], &image)), "{offset}");
    }
}

#[test]
fn a_quote_cut_behind_the_ports_is_translated_as_far_as_it_goes() {
    for (way, load) in WAYS.into_iter().flat_map(|way| LOADS.map(|load| (way, load))) {
        let mut scene = plain(way, load);
        // Eight octets of transport are what the oldest routers quote (RFC 792).
        let (quote, image) = scene.outbound(32);
        let sent = scene.error_from_outside(3, 1, [0; 4], &quote[..28]).unwrap();
        assert_eq!(hex(&sent), hex(&scene.inside_error(1, 0, [0; 4], &image[..48])), "{way:?} {load:?}");
        let (quote, image) = scene.inbound(32);
        let sent = scene.error_from_inside(1, 0, [0; 4], &quote[..48]).unwrap();
        assert_eq!(
            hex(&sent),
            hex(&scene.outside_error(&sent, 3, 1, [0; 4], &image[..28])),
            "{way:?} {load:?}"
        );
    }
}

#[test]
fn a_quote_without_its_ports_is_enough_for_siit_and_not_for_nat64() {
    let mut siit = plain(Translator::Siit, Load::Udp);
    let (quote, image) = siit.outbound(32);
    let sent = siit.error_from_outside(3, 1, [0; 4], &quote[..22]).unwrap();
    assert_eq!(hex(&sent), hex(&siit.inside_error(1, 0, [0; 4], &image[..42])));
    let mut nat64 = plain(Translator::Nat64, Load::Udp);
    let (quote, _) = nat64.outbound(32);
    assert_eq!(nat64.error_from_outside(3, 1, [0; 4], &quote[..22]), None);
    assert_eq!(nat64.gateway.last, Verdict::Dropped(DropReason::QuoteUnusable));
    nat64.gateway.counted([("QuoteUnusable", 1)]);
}

/// An extension structure (RFC 4884 §7): version 2, one object of eight octets; its checksum does not matter here.
const EXTENSION: [u8; 12] = [0x20, 0, 0xab, 0xcd, 0, 8, 1, 1, 0, 1, 0x02, 0x01];

/// The quote and the extension behind it, padded to `length` octets.
fn extended(quote: &[u8], length: usize) -> Vec<u8> {
    let mut body = quote[..quote.len().min(length)].to_vec();
    body.resize(length, 0);
    body.extend(EXTENSION);
    body
}

#[test]
fn extensions_move_with_the_quote_and_their_length_attribute_follows() {
    for way in WAYS {
        let mut scene = plain(way, Load::Udp);
        let (quote, image) = scene.outbound(100);
        assert_eq!((quote.len(), image.len()), (128, 148));
        // 128 octets are 32 words outside; 148 and 4 of padding are 19 double words inside.
        let sent = scene.error_from_outside(11, 0, [0, 32, 0, 0], &extended(&quote, 128)).unwrap();
        let expected = scene.inside_error(3, 0, [19, 0, 0, 0], &extended(&image, 152));
        assert_eq!(hex(&sent), hex(&expected), "{way:?}");

        let (quote, image) = scene.inbound(112);
        assert_eq!((quote.len(), image.len()), (160, 140));
        let sent = scene.error_from_inside(1, 4, [20, 0, 0, 0], &extended(&quote, 160)).unwrap();
        let expected = scene.outside_error(&sent, 3, 3, [0, 35, 0, 0], &extended(&image, 140));
        assert_eq!(hex(&sent), hex(&expected), "{way:?}");
    }
}

#[test]
fn a_type_that_knows_no_extensions_loses_them() {
    let mut scene = plain(Translator::Nat64, Load::Udp);
    let (quote, image) = scene.outbound(100);
    // ICMPv6 has none in a Parameter Problem (RFC 4884 §4.6).
    let sent = scene.error_from_outside(3, 2, [0, 32, 0, 0], &extended(&quote, 128)).unwrap();
    assert_eq!(hex(&sent), hex(&scene.inside_error(4, 1, [0, 0, 0, 6], &image)));
}

#[test]
fn errors_are_as_long_as_they_may_be_and_no_longer() {
    for way in WAYS {
        let mut scene = plain(way, Load::Udp);
        let (quote, image) = scene.outbound(1_452);
        let sent = scene.error_from_outside(3, 1, [0; 4], &quote[..1_452]).unwrap();
        assert_eq!(sent.len(), 1_280);
        assert_eq!(hex(&sent), hex(&scene.inside_error(1, 0, [0; 4], &image[..1_232])));
        let (quote, image) = scene.inbound(1_300);
        let sent = scene.error_from_inside(1, 0, [0; 4], &quote[..1_232]).unwrap();
        assert_eq!(sent.len(), 576);
        assert_eq!(hex(&sent), hex(&scene.outside_error(&sent, 3, 1, [0; 4], &image[..548])));
    }
}

#[test]
fn an_error_about_an_error_or_with_a_wrong_checksum_goes_nowhere() {
    for way in WAYS {
        let mut scene = plain(way, Load::Udp);
        let (inner, _) = scene.outbound(32);
        let about = v4(&scene.host4, PEER4).icmp(icmp4(3, 1, [0; 4], &inner)).octets();
        assert_eq!(scene.error_from_outside(3, 1, [0; 4], &about), None);
        scene.gateway.counted([("QuoteIsIcmpError", 1)]);
        let (inner, _) = scene.inbound(32);
        let about = v6(&scene.image(PEER4), HOST6).icmp(icmp6(1, 0, [0; 4], &inner)).octets();
        assert_eq!(scene.error_from_inside(1, 0, [0; 4], &about), None);
        scene.gateway.counted([("QuoteIsIcmpError", 1)]);

        let (quote, _) = scene.outbound(32);
        let mut damaged = v4(ROUTER4, &scene.host4).icmp(icmp4(3, 1, [0; 4], &quote)).octets();
        *damaged.last_mut().unwrap() ^= 1;
        scene.gateway.receives(damaged);
        scene.gateway.sends_nothing();
        scene.counts(true, Some(DropReason::BadIcmpChecksum));
    }
}

#[test]
fn an_error_whose_quote_lies_about_its_length_is_translated_with_the_lie() {
    for way in WAYS {
        let mut scene = plain(way, Load::Udp);
        let four = v4(&scene.host4, PEER4).hops(50).lies_about_length(400);
        let quote = scene.load_of(four, scene.outside_port, true, 32).octets();
        let sent = scene.error_from_outside(3, 1, [0; 4], &quote).unwrap();
        assert!(checksum_is_right(&sent));
        assert_eq!(sent[52..54], (8 + 32 + 400u16).to_be_bytes(), "{way:?}");
    }
}

#[test]
fn a_zero_udp_checksum_in_a_quote_stays_zero() {
    for way in WAYS {
        let mut scene = plain(way, Load::Udp);
        let four = v4(&scene.host4, PEER4).hops(50);
        let quote = scene.load_of(four, scene.outside_port, true, 32).without_checksum().octets();
        let six = v6(HOST6, &scene.image(PEER4)).hops(50);
        let image = scene.load_of(six, INSIDE_PORT, true, 32).without_checksum().octets();
        let sent = scene.error_from_outside(3, 3, [0; 4], &quote).unwrap();
        assert_eq!(hex(&sent), hex(&scene.inside_error(1, 4, [0; 4], &image)), "{way:?}");
    }
}
