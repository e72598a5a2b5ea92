//! Loops, unknown senders, forged errors, and false addresses.

use super::errors::error6;
use super::*;
use crate::support;

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
fn a_stateless_translator_gets_what_is_in_no_tunnel() {
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
    gateway.counted([("tunnels.path_mtus.refused", 1), ("ErrorNotRelayable", 1)]);
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
fn only_the_limit_itself_is_reported_to_the_sender() {
    let outer = in_ipv6(41, LOCAL6, REMOTE6, big6(1_400));
    for pointer in (40..48).filter(|pointer| *pointer != 44) {
        let mut gateway = with(over6());
        gateway.refuses(error6(4, 0, pointer, &outer), DropReason::ErrorNotRelayable);
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
    // No ICMP error is sent about an error, about what was not sent, or about a packet whose start is missing.
    let error = v4(HERE4, THERE4).icmp(icmp4(3, 1, [0; 4], &inner.octets()[..28]));
    let later = inner.clone().may_fragment().fragment(7, 512, false).part(512, 980);
    for (about, reason) in [
        (error, DropReason::QuoteIsIcmpError),
        (v4("127.0.0.1", THERE4).udp(1, 2, b"data"), DropReason::ErrorNotRelayable),
        (later, DropReason::ErrorNotRelayable),
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
    gateway.refuses(error, DropReason::ErrorNotForTunnel);
}

#[test]
fn a_packet_with_df_is_held_to_the_ipv4_path_whatever_mtu_is_configured() {
    let policy = TunnelPolicy { mtu: TunnelMtu::Static(9_000), ..over4().policy };
    let mut gateway = with(IpInIpConfig { policy, ..over4() });
    let quote = in_ipv4(LOCAL4, REMOTE4, big4(1_400)).octets();
    gateway.receives(v4("198.18.0.1", LOCAL4).icmp(icmp4(3, 4, [0, 0, 5, 120], &quote[..28])));
    gateway.receives(big4(1_381));
    let sent = gateway.sent();
    assert_eq!((&sent[20..22], &sent[26..28]), (&[3, 4][..], &1_380_u16.to_be_bytes()[..]));
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
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::ErrorNotRelayable));
    for (quoted, reason) in [(47, Some(DropReason::ErrorNotRelayable)), (48, None)] {
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

#[test]
fn each_segment_that_is_cut_has_an_identification_of_its_own() {
    let mut gateway = with(over6());
    let packet = v4(HERE4, THERE4).may_fragment().tcp(80, 4_000, 0x10, &[7; 4_380]);
    let mut offload = described(SegmentKind::Tcp, 1_460);
    offload.transport = 20;
    let mut known = std::collections::BTreeSet::new();
    for _again in 0..2 {
        gateway.receives_with(unfinished(packet.clone()), offload);
        for _segment in 0..3 {
            let (first, second) = (gateway.sent(), gateway.sent());
            assert_eq!((first[6], second[6], &first[44..48]), (44, 44, &second[44..48]));
            assert!(known.insert(first[44..48].to_vec()), "another segment's");
        }
        gateway.sends_nothing();
    }
    let mut gateway = with(over4());
    for size in [1_460, 1_000] {
        gateway.receives_with(unfinished(packet.clone()), described(SegmentKind::Tcp, size));
        let known: std::collections::BTreeSet<Vec<u8>> =
            (0..gateway.waiting()).map(|_| gateway.sent()[4..6].to_vec()).collect();
        assert_eq!(known.len(), 4_380_usize.div_ceil(size.into()));
    }
}

#[test]
fn both_ends_here_answer_echo_requests_and_nothing_else_of_theirs_is_translated() {
    use sixway_dataplane::mechanism::siit::SiitConfig;
    let mut gateway = support::gateway(|config| {
        let prefix = Some(support::prefix("2001:db8:64::/96"));
        config.siit.push(SiitConfig { prefix, ..SiitConfig::default() });
        config.tunnels.extend([over4(), over6()].map(TunnelConfig::IpInIp));
    });
    let echo = |kind| icmp4(kind, 0, [0, 1, 0, 2], b"ping");
    gateway.receives(v4("198.51.100.1", LOCAL4).icmp(echo(8)));
    gateway.sends(v4(LOCAL4, "198.51.100.1").icmp(echo(0)));
    gateway.receives(v6(HERE6, LOCAL6).icmp(icmp6(128, 0, [0, 1, 0, 2], b"ping")));
    gateway.sends(v6(LOCAL6, HERE6).icmp(icmp6(129, 0, [0, 1, 0, 2], b"ping")));
    gateway.receives(v4("198.51.100.1", LOCAL4).udp(1, 2, b"data"));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::ToGateway));
}
