//! The B4 of DS-Lite (RFC 6333 §5): IPv4 in IPv6 to one AFTR.

use crate::support::{self, Build, Gateway, checksum_is_right, hex, icmp4, icmp6, v4, v6};
use sixway_dataplane::engine::TunnelConfig;
use sixway_dataplane::mechanism::b4::B4Config;
use sixway_dataplane::mechanism::ip_in_ip::IpInIpConfig;
use sixway_dataplane::tunnel::{OuterFragments, TunnelMtu, TunnelPolicy};
use sixway_dataplane::{DropReason, Verdict};

const LOCAL: &str = "2001:db8:1::b4";
const AFTR: &str = "2001:db8:a::1";
const STRANGER: &str = "2001:db8:bad::1";
/// This host, one on the LAN, and one far away.
const OWN: &str = "192.0.0.2";
const LAN: &str = "192.168.1.5";
const FAR: &str = "198.51.100.7";

fn b4() -> B4Config {
    B4Config {
        local: LOCAL.parse().unwrap(),
        remote: AFTR.parse().ok(),
        inside: ["192.168.0.0/16", "10.0.0.0/8", "192.0.0.0/29"].map(|it| it.parse().unwrap()).to_vec(),
        policy: TunnelPolicy {
            mtu: TunnelMtu::Dynamic,
            encapsulation_limit: None,
            ..TunnelPolicy::default()
        },
    }
}

fn with(config: B4Config) -> Gateway {
    support::tunnelling(TunnelConfig::B4(config))
}

fn out(inner: impl Into<Vec<u8>>) -> Build {
    v6(LOCAL, AFTR).protocol(4, &inner.into(), None)
}

fn back_from(source: &str, inner: impl Into<Vec<u8>>) -> Build {
    v6(source, LOCAL).protocol(4, &inner.into(), None)
}

fn datagram(octets: usize) -> Build {
    v4(LAN, FAR).udp(53, 4_000, &vec![7; octets - 28])
}

#[test]
fn whatever_no_other_mechanism_names_goes_to_the_aftr_and_comes_back_untranslated() {
    let mut gateway = with(b4());
    for source in [OWN, LAN] {
        let there = v4(source, FAR).hops(1).udp(53, 4_000, b"data");
        gateway.receives(there.clone());
        gateway.sends(out(there));
        let back = v4(FAR, source).hops(1).udp(4_000, 53, b"data");
        gateway.receives(back_from(AFTR, back.clone()));
        gateway.sends(back);
    }
    gateway.counted([("b4.encap", 2), ("b4.decap", 2)]);
}

#[test]
fn a_narrower_tunnel_has_precedence_over_the_rest() {
    let narrow = IpInIpConfig {
        local: LOCAL.parse().unwrap(),
        remote: "2001:db8:7::1".parse().ok(),
        prefixes4: vec!["198.51.100.0/24".parse().unwrap()],
        prefixes6: Vec::new(),
        strict_sources: true,
        policy: b4().policy,
    };
    let mut gateway = support::gateway(|config| {
        config.tunnels.push(TunnelConfig::B4(b4()));
        config.tunnels.push(TunnelConfig::IpInIp(narrow));
    });
    gateway.receives(v4(LAN, FAR).udp(1, 2, b"data"));
    gateway.sends(v6(LOCAL, "2001:db8:7::1").protocol(4, &v4(LAN, FAR).udp(1, 2, b"data").octets(), None));
    gateway.receives(v4(LAN, "203.0.113.1").udp(1, 2, b"data"));
    gateway.sends(out(v4(LAN, "203.0.113.1").udp(1, 2, b"data")));
    // They have one local end: the outer source tells whose a packet is.
    gateway.receives(back_from(AFTR, v4("203.0.113.1", LAN).udp(2, 1, b"data")));
    gateway.sends(v4("203.0.113.1", LAN).udp(2, 1, b"data"));
    gateway.counted([("ip_in_ip.encap", 1), ("b4.encap", 1), ("b4.decap", 1)]);
}

#[test]
fn only_the_aftr_s_packets_come_out_of_the_softwire() {
    let mut gateway = with(b4());
    let back = || v4(FAR, LAN).udp(4_000, 53, b"data");
    gateway.refuses(back_from(STRANGER, back()), DropReason::NoTunnel);
    let six = v6("2001:db8:5::1", "2001:db8:6::1").udp(1, 2, b"data").octets();
    gateway.refuses(v6(AFTR, LOCAL).protocol(41, &six, None), DropReason::NoTunnel);
    gateway.refuses(back_from(AFTR, v4("127.0.0.1", LAN).udp(1, 2, b"")), DropReason::MartianSource);
    gateway.receives(back_from(AFTR, back()));
    gateway.sends(back());
}

#[test]
fn what_is_not_of_the_site_is_not_carried_in_either_direction() {
    let mut gateway = with(b4());
    gateway.refuses(v4("203.0.113.9", FAR).udp(1, 2, b""), DropReason::SourceNotOfSite);
    let elsewhere = v4(FAR, "203.0.113.9").udp(1, 2, b"");
    gateway.refuses(back_from(AFTR, elsewhere), DropReason::DestinationNotInSite);
}

#[test]
fn without_an_aftr_senders_are_told_that_the_network_cannot_be_reached() {
    let mut gateway = with(B4Config { remote: None, ..b4() });
    gateway.receives(v4(LAN, FAR).udp(1, 2, b"data"));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::NoRemote));
    let sent = gateway.sent();
    assert_eq!((sent[20], &sent[16..20]), (3, &[192, 168, 1, 5][..]));
    // An address that no host can have is not used.
    let mut gateway = with(B4Config { remote: "fe80::1".parse().ok(), ..b4() });
    gateway.receives(v4(LAN, FAR).udp(1, 2, b"data"));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::NoRemote));
}

#[test]
fn another_aftr_and_another_prefix_take_over_without_a_new_engine() {
    let mut gateway = with(b4());
    let there = v4(LAN, FAR).udp(1, 2, b"data");
    gateway.receives(there.clone());
    gateway.sends(out(there.clone()));
    let (local, aftr) = ("2001:db8:2::b4", "2001:db8:a::2");
    let other = B4Config { local: local.parse().unwrap(), remote: aftr.parse().ok(), ..b4() };
    gateway.engine.set_tunnels(&[TunnelConfig::B4(other)], &[], &[]);
    gateway.receives(there.clone());
    gateway.sends(v6(local, aftr).protocol(4, &there.octets(), None));
    let back = v4(FAR, LAN).udp(2, 1, b"data");
    gateway.receives(v6(aftr, local).protocol(4, &back.octets(), None));
    gateway.sends(back.clone());
    gateway.refuses(v6(AFTR, local).protocol(4, &back.octets(), None), DropReason::NoTunnel);
}

#[test]
fn a_packet_of_1_500_octets_is_fragmented_outside_and_never_inside() {
    let mut gateway = with(b4());
    gateway.receives(datagram(1_500).may_fragment());
    let (first, second) = (gateway.sent(), gateway.sent());
    gateway.sends_nothing();
    assert_eq!((first[6], second[6], first[40], second[40]), (44, 44, 4, 4));
    assert!(first.len() <= 1_500 && second.len() <= 1_500);
    let inner: Vec<u8> = first[48..].iter().chain(&second[48..]).copied().collect();
    assert_eq!(hex(&inner), hex(&datagram(1_500).may_fragment().octets()));
}

#[test]
fn a_packet_with_df_is_answered_with_the_mtu_less_forty_and_by_choice_fragmented() {
    let mut gateway = with(b4());
    gateway.receives(datagram(1_460));
    assert_eq!(gateway.sent().len(), 1_500);
    gateway.receives(datagram(1_461));
    let sent = gateway.sent();
    assert_eq!((&sent[20..22], &sent[26..28]), (&[3, 4][..], &1_460_u16.to_be_bytes()[..]));
    let policy = TunnelPolicy { mtu: TunnelMtu::Static(1_500), ..b4().policy };
    let mut gateway = with(B4Config { policy, ..b4() });
    gateway.receives(datagram(1_500));
    assert_eq!((gateway.sent()[6], gateway.sent()[6]), (44, 44));
    let policy = TunnelPolicy { outer_fragments: OuterFragments::Never, ..b4().policy };
    let mut gateway = with(B4Config { policy, ..b4() });
    gateway.receives(datagram(1_461).may_fragment());
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::OuterTooBig));
}

#[test]
fn the_mss_is_lowered_to_what_the_path_carries() {
    let mut gateway = with(b4());
    let syn = |source, destination, mss: u16| {
        let [high, low] = mss.to_be_bytes();
        v4(source, destination).tcp_with(1_000, 443, 2, &[2, 4, high, low], b"")
    };
    gateway.receives(syn(LAN, FAR, 1_460));
    gateway.sends(out(syn(LAN, FAR, 1_420)));
    gateway.receives(back_from(AFTR, syn(FAR, LAN, 1_460)));
    gateway.sends(syn(FAR, LAN, 1_420));
}

#[test]
fn the_traffic_class_is_carried_into_the_outer_header() {
    let mut gateway = with(b4());
    gateway.receives(v4(LAN, FAR).tos(0xb8).udp(1, 2, b"data"));
    gateway.sends(out(v4(LAN, FAR).tos(0xb8).udp(1, 2, b"data")).tos(0xb8));
    // The AFTR copied it, and routers on the way may have changed it: with a DSCP that is set, the inner one is the sender's.
    let back = |tos| v4(FAR, LAN).tos(tos).udp(2, 1, b"data");
    gateway.receives(back_from(AFTR, back(0xb8)).tos(0x28));
    gateway.sends(back(0xb8));
}

#[test]
fn where_the_traffic_class_is_copied_it_is_carried_out_of_the_tunnel_too() {
    let mut config = b4();
    config.policy.copies_dscp_out = true;
    let mut gateway = with(config);
    let back = |tos| v4(FAR, LAN).tos(tos).udp(2, 1, b"data");
    // With the congestion mark by RFC 6040: of a packet that may be marked.
    for (inner, outer, becomes) in
        [(0xb8, 0x28, 0x28), (0xb8, 0xb8, 0xb8), (0x02, 0x2b, 0x2b), (0x02, 0x28, 0x2a)]
    {
        gateway.receives(back_from(AFTR, back(inner)).tos(outer));
        gateway.sends(back(becomes));
    }
}

#[test]
fn a_narrow_path_is_learnt_from_an_error_and_told_to_the_sender() {
    let mut gateway = with(b4());
    let outer = out(datagram(1_400)).octets();
    let too_big = |mtu: u32, quoted: &[u8]| {
        v6("2001:db8:ff::1", LOCAL).icmp(icmp6(2, 0, mtu.to_be_bytes(), &quoted[..1_232]))
    };
    gateway.receives(too_big(1_400, &outer));
    let sent = gateway.sent();
    assert_eq!((sent[20], sent[21], u16::from_be_bytes([sent[26], sent[27]])), (3, 4, 1_360));
    assert!(checksum_is_right(&sent));
    gateway.receives(datagram(1_361));
    assert_eq!(gateway.sent()[20..22], [3, 4]);
    // Nobody makes the path narrower than IPv6 allows, and errors about what was never sent are not believed.
    gateway.receives(too_big(68, &out(datagram(1_400)).octets()));
    let _told = gateway.sent();
    gateway.receives(datagram(1_240));
    assert_eq!(gateway.sent().len(), 1_280);
    let forged = v6(LOCAL, STRANGER).protocol(4, &datagram(1_400).octets(), None).octets();
    gateway.refuses(too_big(1_280, &forged), DropReason::ErrorNotForTunnel);
}

#[test]
fn an_unreachable_aftr_is_told_to_the_sender_as_an_unreachable_host() {
    let mut gateway = with(b4());
    let outer = out(datagram(100)).octets();
    gateway.receives(v6("2001:db8:ff::1", LOCAL).icmp(icmp6(1, 0, [0; 4], &outer)));
    let sent = gateway.sent();
    assert_eq!((sent[9], sent[20], sent[21], &sent[16..20]), (1, 3, 1, &[192, 168, 1, 5][..]));
}

#[test]
fn an_error_about_a_source_that_is_not_of_the_site_is_not_believed() {
    let mut gateway = with(b4());
    for source in ["203.0.113.7", FAR] {
        let forged = out(v4(source, FAR).udp(53, 4_000, &[7; 1_372])).octets();
        let unreachable = v6("2001:db8:ff::1", LOCAL).icmp(icmp6(1, 0, [0; 4], &forged[..1_232]));
        gateway.refuses(unreachable, DropReason::ErrorNotForTunnel);
        let too_big =
            v6("2001:db8:ff::1", LOCAL).icmp(icmp6(2, 0, 1_280_u32.to_be_bytes(), &forged[..1_232]));
        gateway.refuses(too_big, DropReason::ErrorNotForTunnel);
    }
    gateway.receives(datagram(1_460));
    assert_eq!(gateway.sent().len(), 1_500, "no narrow path was learnt");
}

#[test]
fn errors_of_the_aftr_s_well_known_address_pass() {
    let mut gateway = with(b4());
    let quote = datagram(100).octets();
    let error = v4("192.0.0.1", LAN).icmp(icmp4(3, 4, [0, 0, 5, 0x14], &quote[..64]));
    gateway.receives(back_from(AFTR, error.clone()));
    gateway.sends(error);
}

#[test]
fn a_tunnel_packet_that_comes_back_is_not_carried_again() {
    // As if a route to the AFTR led into the device.
    let mut gateway = with(b4());
    gateway.receives(datagram(100));
    let sent = gateway.sent();
    gateway.receives(sent);
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::NoMechanism));
}

#[test]
fn fragments_of_strangers_take_no_room_from_the_aftr_s() {
    let inner = v4(FAR, LAN).udp(4_000, 53, &[7; 2_000]).may_fragment().octets();
    let pieces = |source: &str, identification: u32| {
        let whole = back_from(source, inner.clone()).octets();
        let (first, rest) = whole[40..].split_at(1_200);
        let piece = |data: &[u8], offset: u16, more: bool| {
            let field = (offset | u16::from(more)).to_be_bytes();
            let id = identification.to_be_bytes();
            let header = [4, 0, field[0], field[1], id[0], id[1], id[2], id[3]];
            let mut octets = whole[..40].to_vec();
            octets[6] = 44;
            octets[4..6].copy_from_slice(&((data.len() + 8) as u16).to_be_bytes());
            octets.extend(header);
            octets.extend(data);
            octets
        };
        [piece(first, 0, true), piece(rest, 1_200, false)]
    };
    let mut gateway = with(b4());
    let mut whole = 0;
    for number in 0..1_000 {
        for strange in 0..8 {
            let [first, _] = pieces(STRANGER, number * 8 + strange);
            gateway.receives(first);
            assert_eq!(gateway.last, Verdict::Dropped(DropReason::NoTunnel));
        }
        let [first, second] = pieces(AFTR, number);
        gateway.receives(first);
        assert_eq!(gateway.last, Verdict::Held);
        gateway.receives(second);
        whole += usize::from(gateway.sent() == inner);
    }
    assert_eq!(whole, 1_000);
}
