//! The limits of RFC 4861 §6.2.1 and of the options' own RFCs.

use super::*;
use sixway_control::neighbour_discovery::Preference;
use sixway_control::router_advert::{AdvertisedPref64, AdvertisedPrefix, AdvertisedRoute, Setting};

fn faulty(settings: Settings) -> Vec<Setting> {
    faulty_on(&lan(), settings)
}

fn faulty_on(link: &Link, settings: Settings) -> Vec<Setting> {
    let faults = settings.faults(link);
    assert!(faults.iter().all(|fault| !fault.to_string().is_empty()));
    assert_eq!(RouterAdvert::new(link.clone(), settings, 1, Instant::default()).is_ok(), faults.is_empty());
    faults.iter().map(|fault| fault.setting).collect()
}

fn numbered(number: u16, length: u8) -> Prefix6 {
    Prefix6::holding(Ipv6Addr::new(0x2001, 0xdb8, number, 0, 0, 0, 0, 0), length)
}

#[test]
fn the_defaults_are_those_of_the_rfc() {
    let settings = Settings::default();
    assert_eq!(faulty(settings.clone()), []);
    assert_eq!((settings.max_interval, settings.router_lifetime()), (600, 1_800));
    assert_eq!(settings.intervals(), (seconds(198.0), seconds(600.0)));
    assert!(!settings.managed && !settings.other);
    assert_eq!((settings.mtu, settings.reachable_time, settings.retrans_timer), (None, 0, 0));
}

#[test]
fn the_default_of_the_shorter_interval_stays_within_its_own_limits() {
    for max in 4..=1_800 {
        let (min, max) = Settings { max_interval: max, ..Settings::default() }.intervals();
        assert!(min >= seconds(3.0) && min <= max.mul_f64(0.75), "{min:?} {max:?}");
    }
}

#[test]
fn intervals_outside_their_limits_are_refused() {
    for (max, min, expected) in [
        (3, None, vec![Setting::MaxInterval]),
        (4, None, vec![]),
        (1_800, None, vec![]),
        (1_801, None, vec![Setting::MaxInterval]),
        (600, Some(2), vec![Setting::MinInterval]),
        (600, Some(3), vec![]),
        (600, Some(450), vec![]),
        (600, Some(451), vec![Setting::MinInterval]),
        (4, Some(3), vec![]),
    ] {
        let settings = Settings { max_interval: max, min_interval: min, ..Settings::default() };
        assert_eq!(faulty(settings), expected, "{max} {min:?}");
    }
}

#[test]
fn lifetimes_and_times_outside_their_limits_are_refused() {
    for (lifetime, good) in [(0, true), (1, false), (599, false), (600, true), (9_000, true), (9_001, false)]
    {
        let settings = Settings { router_lifetime: Some(lifetime), ..Settings::default() };
        assert_eq!(faulty(settings).is_empty(), good, "{lifetime}");
    }
    assert_eq!(faulty(Settings { reachable_time: 3_600_000, ..Settings::default() }), []);
    let settings = Settings { reachable_time: 3_600_001, ..Settings::default() };
    assert_eq!(faulty(settings), [Setting::ReachableTime]);
    assert_eq!(faulty(Settings { goodbyes: 4, ..Settings::default() }), [Setting::Goodbyes]);
}

#[test]
fn an_mtu_below_1280_or_above_the_links_is_refused() {
    for (mtu, good) in [(1_279, false), (1_280, true), (1_500, true), (1_501, false)] {
        assert_eq!(faulty(Settings { mtu: Some(mtu), ..Settings::default() }).is_empty(), good, "{mtu}");
    }
}

#[test]
fn links_without_a_proper_address_are_refused() {
    let lan = |text: &str, mtu| Link::Multicast { address: text.parse().unwrap(), link_layer: None, mtu };
    assert_eq!(faulty_on(&lan("2001:db8::1", 1_500), Settings::default()), [Setting::Link]);
    assert_eq!(faulty_on(&lan("fe80::1", 1_279), Settings::default()), [Setting::Link]);
    let tunnel = |local| Link::Isatap { local, mtu: 1_280 };
    for local in
        [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST, Ipv4Addr::new(224, 0, 0, 1)]
    {
        assert_eq!(faulty_on(&tunnel(local), Settings::default()), [Setting::Link], "{local}");
    }
    assert_eq!(faulty_on(&tunnel(Ipv4Addr::new(192, 0, 2, 1)), Settings::default()), []);
}

#[test]
fn prefixes_that_no_host_could_use_are_refused() {
    let with = |entries: Vec<AdvertisedPrefix>| faulty(Settings { prefixes: entries, ..Settings::default() });
    let good = AdvertisedPrefix::lasting(numbered(1, 64));
    assert_eq!(with(vec![good]), []);
    assert_eq!(with(vec![good, good]), [Setting::Prefixes], "twice");
    assert_eq!(with(vec![AdvertisedPrefix::lasting(prefix("fe80::/64"))]), [Setting::Prefixes]);
    assert_eq!(with(vec![AdvertisedPrefix::lasting(prefix("ff00::/64"))]), [Setting::Prefixes]);
    assert_eq!(with(vec![AdvertisedPrefix { preferred: 9, valid: 8, ..good }]), [Setting::Prefixes]);
    let many = |count| (0..count).map(|at| AdvertisedPrefix::lasting(numbered(at, 64))).collect();
    assert_eq!(with(many(16)), []);
    assert_eq!(with(many(17)), [Setting::Prefixes]);
}

#[test]
fn no_more_than_17_routes_and_none_twice() {
    let route =
        |at| AdvertisedRoute { prefix: numbered(at, 48), preference: Preference::Low, lifetime: None };
    let with = |routes| faulty(Settings { routes, ..Settings::default() });
    assert_eq!(with((0..17).map(route).collect()), []);
    assert_eq!(with((0..18).map(route).collect()), [Setting::Routes]);
    assert_eq!(with(vec![route(1), route(1)]), [Setting::Routes]);
}

#[test]
fn nat64_prefixes_of_other_lengths_are_refused() {
    for length in 0..=128 {
        let pref64 = vec![AdvertisedPref64 { prefix: numbered(0, length), lifetime: None }];
        let good = [32, 40, 48, 56, 64, 96].contains(&length);
        assert_eq!(faulty(Settings { pref64, ..Settings::default() }).is_empty(), good, "/{length}");
    }
}

#[test]
fn dns_servers_and_portals_that_cannot_be_are_refused() {
    let servers = |text: &str| vec![text.parse().unwrap()];
    assert_eq!(
        faulty(Settings { dns_servers: servers("ff02::1"), ..Settings::default() }),
        [Setting::DnsServers]
    );
    assert_eq!(faulty(Settings { dns_servers: servers("::"), ..Settings::default() }), [Setting::DnsServers]);
    assert_eq!(faulty(Settings { dns_servers: servers("fe80::1"), ..Settings::default() }), []);
    for (uri, good) in
        [(String::new(), false), ("u".repeat(255), true), ("u".repeat(256), false), ("a b".to_owned(), false)]
    {
        let settings = Settings { captive_portal: Some(uri), ..Settings::default() };
        assert_eq!(faulty(settings).is_empty(), good);
    }
}

#[test]
fn all_errors_are_reported_together() {
    let settings = Settings { max_interval: 1, goodbyes: 9, mtu: Some(3), ..Settings::default() };
    assert_eq!(faulty(settings), [Setting::Mtu, Setting::MaxInterval, Setting::Goodbyes]);
}

#[test]
fn more_than_three_packets_can_hold_is_refused() {
    let long =
        |at| format!("{}.{}.{}.x{at}", "a".repeat(63), "b".repeat(63), "c".repeat(63)).parse().unwrap();
    let settings =
        Settings { mtu: Some(1_280), dns_search: (0..8).map(long).collect(), ..Settings::default() };
    assert_eq!(faulty(settings), [Setting::Everything]);
    let settings =
        Settings { mtu: Some(1_280), dns_search: (0..5).map(long).collect(), ..Settings::default() };
    assert_eq!(faulty(settings), []);
}
