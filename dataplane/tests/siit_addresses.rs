//! Addresses end to end: every prefix length of RFC 6052, the well-known prefix, unequal suffixes of RFC 7757, and hosts
//! of the dynamic pool from their first packet until they are forgotten.

use crate::support;
use crate::support::{Gateway, eam, icmp4, icmp6, siit, v4, v6};
use sixway_dataplane::mechanism::siit::SiitConfig;
use sixway_dataplane::mechanism::siit::dynamic_pool::DynamicPoolConfig;
use sixway_dataplane::translate::address::Rfc6052;
use sixway_dataplane::{DropReason, Verdict};
use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::time::Duration;

const PEER4: &str = "203.0.113.2";
const PEER6: &str = "2001:db8:64::203.0.113.2";

/// The packet that leaves is this one, whatever its Identification.
#[track_caller]
fn sends(gateway: &mut Gateway, expected: support::Build) {
    let sent = gateway.sent();
    let identification = u16::from_be_bytes([sent[4], sent[5]]);
    assert_eq!(support::hex(&sent), support::hex(&expected.identification(identification.into()).octets()));
}

fn source(packet: &[u8]) -> String {
    Ipv4Addr::new(packet[12], packet[13], packet[14], packet[15]).to_string()
}

#[test]
fn every_prefix_length_carries_addresses_there_and_back() {
    // RFC 6052 table 1, for 192.0.2.33; the other host is 198.51.100.9 under the same prefix.
    let lengths = [
        ("2001:db8::/32", "2001:db8:c000:221::", "2001:db8:c633:6409::"),
        ("2001:db8:100::/40", "2001:db8:1c0:2:21::", "2001:db8:1c6:3364:9::"),
        ("2001:db8:122::/48", "2001:db8:122:c000:2:2100::", "2001:db8:122:c633:64:900::"),
        ("2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::", "2001:db8:122:3c6:33:6409::"),
        ("2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100::", "2001:db8:122:344:c6:3364:900::"),
        ("2001:db8:122:344::/96", "2001:db8:122:344::192.0.2.33", "2001:db8:122:344::198.51.100.9"),
    ];
    for (prefix, one, other) in lengths {
        let mut gateway = siit(|config| config.prefix = Some(support::prefix(prefix)));
        gateway.receives(v4("192.0.2.33", "198.51.100.9").udp(1, 2, b"data"));
        gateway.sends(v6(one, other).hops(63).udp(1, 2, b"data"));
        gateway.receives(v6(other, one).tcp(2, 1, 16, b"data"));
        sends(&mut gateway, v4("198.51.100.9", "192.0.2.33").hops(63).may_fragment().tcp(2, 1, 16, b"data"));
        let quote = v4("192.0.2.33", "198.51.100.9").udp(1, 2, b"data").octets();
        let image = v6(one, other).udp(1, 2, b"data").octets();
        gateway.receives(v4("198.51.100.9", "192.0.2.33").icmp(icmp4(3, 3, [0; 4], &quote)));
        gateway.sends(v6(other, one).hops(63).icmp(icmp6(1, 4, [0; 4], &image)));
    }
}

#[test]
fn the_suffix_of_a_short_prefix_is_ignored() {
    let mut gateway = siit(|config| config.prefix = Some(support::prefix("2001:db8::/32")));
    gateway.receives(v6("2001:db8:c633:6409:0:1:2:3", "2001:db8:c000:221:0:4:5:6").udp(1, 2, b"data"));
    sends(&mut gateway, v4("198.51.100.9", "192.0.2.33").hops(63).may_fragment().udp(1, 2, b"data"));
}

#[test]
fn the_well_known_prefix_stands_for_private_addresses_only_if_it_is_told_to() {
    for (is_allowed, leaves) in [(false, false), (true, true)] {
        for private in ["10.0.0.1", "192.168.1.1", "100.64.0.1", "169.254.0.1", "198.18.0.1"] {
            let mut gateway = siit(|config| {
                config.prefix = Some(Rfc6052::new("64:ff9b::/96".parse().unwrap(), is_allowed).unwrap());
                config.eam = eam(&[("8.8.4.0/24", "2001:db8:1::/120")]);
            });
            gateway.receives(v4(private, "8.8.4.4").udp(1, 2, b"data"));
            assert_eq!(gateway.last == Verdict::Forward, leaves, "{private}");
            gateway.receives(v6("2001:db8:1::4", &format!("64:ff9b::{private}")).udp(1, 2, b"data"));
            assert_eq!(gateway.last == Verdict::Forward, leaves, "{private}");
        }
    }
}

#[test]
fn a_longer_ipv6_suffix_is_zero_on_the_way_in_and_forgotten_on_the_way_out() {
    let mut gateway = siit(|config| config.eam = eam(&[("198.51.100.8/29", "2001:db8:1:8::/61")]));
    gateway.receives(v4(PEER4, "198.51.100.13").udp(1, 2, b"data"));
    gateway.sends(v6(PEER6, "2001:db8:1:d::").hops(63).udp(1, 2, b"data"));
    gateway.receives(v6("2001:db8:1:d:aaaa:bbbb:cccc:dddd", PEER6).udp(2, 1, b"data"));
    sends(&mut gateway, v4("198.51.100.13", PEER4).hops(63).may_fragment().udp(2, 1, b"data"));
}

#[test]
fn the_longest_row_counts_and_the_rest_goes_by_the_prefix() {
    let mut gateway = siit(|config| {
        config.eam = eam(&[
            ("198.51.100.0/24", "2001:db8:1::/120"),
            ("198.51.100.8/29", "2001:db8:2::/125"),
            ("198.51.100.9/32", "2001:db8:3::9/128"),
        ]);
    });
    for (four, six) in [
        ("198.51.100.7", "2001:db8:1::7"),
        ("198.51.100.10", "2001:db8:2::2"),
        ("198.51.100.9", "2001:db8:3::9"),
        ("198.51.101.9", "2001:db8:64::198.51.101.9"),
    ] {
        gateway.receives(v4(PEER4, four).udp(1, 2, b"data"));
        gateway.sends(v6(PEER6, six).hops(63).udp(1, 2, b"data"));
        gateway.receives(v6(six, PEER6).udp(2, 1, b"data"));
        sends(&mut gateway, v4(four, PEER4).hops(63).may_fragment().udp(2, 1, b"data"));
    }
}

#[test]
fn two_translators_keep_to_their_own_prefixes_and_tables() {
    let mut gateway = support::gateway(|config| {
        for (prefix, four, six) in [
            ("2001:db8:64::/96", "198.51.100.8/29", "2001:db8:1::/125"),
            ("2001:db8:65::/96", "198.51.100.16/29", "2001:db8:2::/125"),
        ] {
            config.siit.push(SiitConfig {
                prefix: Some(support::prefix(prefix)),
                eam: eam(&[(four, six)]),
                ..SiitConfig::default()
            });
        }
    });
    gateway.receives(v4(PEER4, "198.51.100.9").udp(1, 2, b"data"));
    gateway.sends(v6("2001:db8:64::203.0.113.2", "2001:db8:1::1").hops(63).udp(1, 2, b"data"));
    gateway.receives(v4(PEER4, "198.51.100.17").udp(1, 2, b"data"));
    gateway.sends(v6("2001:db8:65::203.0.113.2", "2001:db8:2::1").hops(63).udp(1, 2, b"data"));
    gateway.receives(v6("2001:db8:2::1", "2001:db8:65::203.0.113.2").udp(2, 1, b"data"));
    sends(&mut gateway, v4("198.51.100.17", PEER4).hops(63).may_fragment().udp(2, 1, b"data"));
    // The first translator does not know the second one's host.
    gateway.receives(v6("2001:db8:2::1", PEER6).udp(2, 1, b"data"));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::SourceUnmapped));
}

#[test]
fn a_table_alone_translates_what_it_names_and_tells_the_others() {
    let mut gateway = siit(|config| {
        config.prefix = None;
        config.eam = eam(&[("198.51.100.8/29", "2001:db8:1::/125"), ("203.0.113.2", "2001:db8:9::2")]);
    });
    gateway.receives(v4(PEER4, "198.51.100.9").udp(1, 2, b"data"));
    gateway.sends(v6("2001:db8:9::2", "2001:db8:1::1").hops(63).udp(1, 2, b"data"));
    gateway.receives(v4("203.0.113.3", "198.51.100.9").udp(1, 2, b"data"));
    let sent = gateway.sent();
    assert_eq!((sent[20], sent[21]), (3, 13));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::SourceUnmapped));
    // The router of a path may send errors though no mapping has it: they come from the gateway.
    let quote = v4("198.51.100.9", PEER4).udp(1, 2, b"data").octets();
    let image = v6("2001:db8:1::1", "2001:db8:9::2").udp(1, 2, b"data").octets();
    gateway.receives(v4("203.0.113.3", "198.51.100.9").icmp(icmp4(11, 0, [0; 4], &quote)));
    gateway.sends(v6("2001:db8::fe", "2001:db8:1::1").hops(63).icmp(icmp6(3, 0, [0; 4], &image)));
}

#[test]
fn without_a_pool_of_rfc_6791_errors_of_routers_come_from_the_gateway() {
    let mut gateway = siit(|config| config.eam = eam(&[("198.51.100.8/29", "2001:db8:1::/125")]));
    let arrived = v6(PEER6, "2001:db8:1::1").udp(1, 2, b"data").octets();
    gateway.receives(v6("2001:db8:ffff::1", PEER6).icmp(icmp6(3, 0, [0; 4], &arrived)));
    let sent = gateway.sent();
    assert_eq!((source(&sent).as_str(), sent[20], sent[21]), ("192.0.2.254", 11, 0));
}

const LIFETIME: Duration = Duration::from_secs(600);
const REMEMBERED: Duration = Duration::from_secs(3_600);
const SECOND: Duration = Duration::from_secs(1);

/// A gateway with a dynamic pool that has two addresses to give.
fn pool_of_two() -> Gateway {
    siit(|config| {
        let mut pool = DynamicPoolConfig::new("172.16.0.0/30".parse().unwrap());
        (pool.lifetime, pool.remembered) = (LIFETIME, REMEMBERED);
        config.dynamic_pool = Some(pool);
    })
}

/// A host sends; its address outside.
fn address_of(gateway: &mut Gateway, host: &str) -> String {
    gateway.receives(v6(host, PEER6).udp(1, 2, b"data"));
    source(&gateway.sent())
}

/// Whether a packet to the address reaches the host.
fn reaches(gateway: &mut Gateway, address: &str, host: &str) -> bool {
    gateway.receives(v4(PEER4, address).udp(2, 1, b"answer"));
    let reached = gateway.last == Verdict::Forward;
    if reached {
        gateway.sends(v6(PEER6, host).hops(63).udp(2, 1, b"answer"));
    }
    reached
}

/// Hosts without a mapping.
const HOSTS: [&str; 3] = ["2001:db8:ffff::1", "2001:db8:ffff::2", "2001:db8:ffff::3"];

#[test]
fn each_host_of_the_pool_has_its_own_address_for_everything_it_sends() {
    let mut gateway = pool_of_two();
    let addresses = [HOSTS[0], HOSTS[1]].map(|host| address_of(&mut gateway, host));
    assert_eq!(HashSet::from(addresses.clone()).len(), 2);
    assert!(addresses.iter().all(|address| ["172.16.0.1", "172.16.0.2"].contains(&address.as_str())));
    gateway.receives(v6(HOSTS[0], PEER6).echo(1, 1, b"ping"));
    assert_eq!(source(&gateway.sent()), addresses[0]);
    gateway.receives(v6(HOSTS[0], PEER6).protocol(132, &[0; 20], None));
    assert_eq!(source(&gateway.sent()), addresses[0]);
    assert!(reaches(&mut gateway, &addresses[0], HOSTS[0]) && reaches(&mut gateway, &addresses[1], HOSTS[1]));
}

#[test]
fn an_address_that_nobody_has_is_unreachable() {
    let mut gateway = pool_of_two();
    gateway.receives(v4(PEER4, "172.16.0.1").udp(2, 1, b"hello"));
    let sent = gateway.sent();
    assert_eq!((sent[20], sent[21]), (3, 1));
    gateway.counted([("DestinationUnmapped", 1), ("icmp_errors.made", 1)]);
}

#[test]
fn a_host_that_sends_keeps_its_address_and_one_that_only_receives_does_not() {
    let mut gateway = pool_of_two();
    let kept = address_of(&mut gateway, HOSTS[0]);
    let lost = address_of(&mut gateway, HOSTS[1]);
    gateway.waits(LIFETIME - 2 * SECOND);
    assert_eq!(address_of(&mut gateway, HOSTS[0]), kept);
    assert!(reaches(&mut gateway, &lost, HOSTS[1]));
    gateway.waits(4 * SECOND);
    assert!(reaches(&mut gateway, &kept, HOSTS[0]));
    assert!(!reaches(&mut gateway, &lost, HOSTS[1]));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::DestinationUnmapped));
}

#[test]
fn a_host_that_comes_back_gets_its_address_again_while_it_is_remembered() {
    let mut gateway = pool_of_two();
    let address = address_of(&mut gateway, HOSTS[0]);
    gateway.waits(LIFETIME + 10 * SECOND);
    assert_eq!(address_of(&mut gateway, HOSTS[0]), address);
    assert!(reaches(&mut gateway, &address, HOSTS[0]));
}

#[test]
fn an_exhausted_pool_tells_the_new_host_and_takes_from_the_silent_what_the_new_one_needs() {
    let mut gateway = pool_of_two();
    let addresses = [HOSTS[0], HOSTS[1]].map(|host| address_of(&mut gateway, host));
    gateway.counted([("siit.v6_to_v4", 2)]);
    gateway.receives(v6(HOSTS[2], PEER6).udp(1, 2, b"data"));
    let sent = gateway.sent();
    assert_eq!((sent[40], sent[41]), (1, 3));
    gateway.counted([("DynamicPoolEmpty", 1), ("icmp_errors.made", 1)]);
    gateway.waits(LIFETIME - 10 * SECOND);
    address_of(&mut gateway, HOSTS[1]);
    gateway.waits(12 * SECOND);
    assert_eq!(address_of(&mut gateway, HOSTS[2]), addresses[0], "of the host that has been silent");
    assert!(reaches(&mut gateway, &addresses[0], HOSTS[2]) && reaches(&mut gateway, &addresses[1], HOSTS[1]));
}

#[test]
fn errors_cross_for_hosts_of_the_pool() {
    let mut gateway = pool_of_two();
    let address = address_of(&mut gateway, HOSTS[0]);
    let quote = v4(&address, PEER4).udp(1, 2, b"data").octets();
    let image = v6(HOSTS[0], PEER6).udp(1, 2, b"data").octets();
    gateway.receives(v4("198.18.0.1", &address).icmp(icmp4(11, 0, [0; 4], &quote)));
    gateway.sends(v6("2001:db8:64::198.18.0.1", HOSTS[0]).hops(63).icmp(icmp6(3, 0, [0; 4], &image)));
    let arrived = v6(PEER6, HOSTS[0]).udp(2, 1, b"answer").octets();
    gateway.receives(v6("2001:db8:eeee::1", PEER6).icmp(icmp6(1, 3, [0; 4], &arrived)));
    let sent = gateway.sent();
    assert_eq!((sent[20], sent[21], source(&sent).as_str()), (3, 1, "192.0.2.254"));
    assert_eq!(source(&sent[28..]), PEER4);
    assert_eq!(sent[44..48], address.parse::<Ipv4Addr>().unwrap().octets());
    // A router that only sends errors is given no address.
    assert_eq!(gateway.engine.siit()[0].dynamic_pool().unwrap().live(), 1);
}

#[test]
fn hosts_of_the_pool_reach_one_another_by_their_addresses() {
    let mut gateway = pool_of_two();
    let seen = [HOSTS[0], HOSTS[1]].map(|host| format!("2001:db8:64::{}", address_of(&mut gateway, host)));
    gateway.receives(v6(HOSTS[0], &seen[1]).udp(1, 2, b"hello"));
    gateway.sends(v6(&seen[0], HOSTS[1]).hops(63).udp(1, 2, b"hello"));
}

#[test]
fn excluded_ipv4_addresses_are_not_represented_by_the_prefix_but_by_explicit_mappings() {
    let mut gateway = siit(|config| {
        config.eam = eam(&[("198.51.100.9/32", "2001:db8:1::1/128"), ("10.0.0.9/32", "2001:db8:1::9/128")]);
        config.excluded = vec!["10.0.0.0/8".parse().unwrap()];
    });
    let dropped = |gateway: &mut Gateway, packet| {
        gateway.receives(packet);
        let _ = gateway.sent();
        gateway.last == Verdict::Dropped(DropReason::ExcludedIpv4)
    };
    assert!(dropped(&mut gateway, v6("2001:db8:1::1", "2001:db8:64::10.0.0.1").udp(1, 2, b"data")));
    assert!(dropped(&mut gateway, v4("10.0.0.1", "198.51.100.9").udp(1, 2, b"data")));
    assert!(!dropped(&mut gateway, v6("2001:db8:1::1", PEER6).udp(1, 2, b"data")));
    assert!(!dropped(&mut gateway, v4(PEER4, "198.51.100.9").udp(1, 2, b"data")));
    assert!(!dropped(&mut gateway, v4("10.0.0.9", "198.51.100.9").udp(1, 2, b"data")));
    // An error of a router there still says where a path ends.
    let quote = v4("198.51.100.9", PEER4).udp(1, 2, b"data").octets();
    assert!(!dropped(&mut gateway, v4("10.0.0.1", "198.51.100.9").icmp(icmp4(11, 0, [0; 4], &quote))));
}
