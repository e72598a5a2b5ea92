//! The end of an advertising interface, and a change of its address (RFC 4861 §6.2.5, §6.2.8).

use super::*;
use sixway_control::neighbour_discovery::Preference;
use sixway_control::router_advert::{AdvertisedPref64, AdvertisedPrefix, AdvertisedRoute};

#[test]
fn the_last_advertisement_takes_the_router_its_routes_dns_and_nat64_back() {
    let (lifetime, preference) = (None, Preference::High);
    let mut site = Site::lan(Settings {
        preference,
        prefixes: vec![AdvertisedPrefix::lasting(prefix("2001:db8:1::/64"))],
        routes: vec![AdvertisedRoute { prefix: prefix("2001:db8::/32"), preference, lifetime }],
        dns_servers: vec!["2001:db8::53".parse().unwrap()],
        dns_search: vec!["example.com".parse().unwrap()],
        pref64: vec![AdvertisedPref64 { prefix: prefix("64:ff9b::/96"), lifetime }],
        ..Settings::default()
    });
    site.pass(Duration::from_secs(60));
    site.sent.clear();
    site.router.shut_down();
    site.pass(Duration::from_secs(100));
    assert_eq!(site.sent.len(), 1);
    let said = site.last();
    assert_eq!((said.router_lifetime, said.preference), (0, Preference::Medium));
    let [
        NdOption::SourceLinkLayer(_),
        NdOption::Route(route),
        NdOption::Rdnss { lifetime: rdnss, servers },
        NdOption::Dnssl { lifetime: dnssl, names },
        NdOption::Pref64(pref64),
    ] = &said.options[..]
    else {
        panic!("the prefixes alone are not spoken of: {said:?}")
    };
    assert_eq!((route.prefix, route.lifetime), (prefix("2001:db8::/32"), 0));
    assert_eq!((rdnss, dnssl, servers.len(), names.len()), (&0, &0, 1, 1));
    assert_eq!((pref64.prefix(), pref64.lifetime.as_secs()), (prefix("64:ff9b::/96"), 0));
    assert!(site.router.is_over());
    assert_eq!(site.router.poll_timeout(), None);
}

#[test]
fn three_goodbyes_are_three_seconds_apart_and_no_more_follow() {
    let mut site = Site::lan(Settings { goodbyes: 3, ..Settings::default() });
    site.pass(Duration::from_secs(60));
    site.sent.clear();
    site.router.shut_down();
    assert!(!site.router.is_over());
    site.pass(Duration::from_secs(100));
    assert_eq!(gaps(&site.multicasts()), [seconds(3.0); 2]);
    assert!(site.sent.iter().all(|(_, sent)| advertisement(sent).router_lifetime == 0));
    assert!(site.router.is_over());
}

#[test]
fn a_router_among_redundant_ones_may_leave_without_a_word() {
    let mut site = Site::lan(Settings { goodbyes: 0, ..Settings::default() });
    site.pass(Duration::from_secs(60));
    site.sent.clear();
    site.router.shut_down();
    site.pass(Duration::from_secs(100));
    assert!(site.sent.is_empty() && site.router.is_over());
}

#[test]
fn a_router_that_said_nothing_has_nothing_to_take_back() {
    let mut site = Site::lan(Settings::default());
    site.router.shut_down();
    assert!(site.router.is_over());
}

#[test]
fn a_router_that_leaves_answers_nobody() {
    let mut site = Site::lan(Settings::default());
    site.pass(Duration::from_secs(60));
    site.router.shut_down();
    site.sent.clear();
    assert_eq!(site.solicit(host(1)), Heard::NotForUs);
    site.pass(Duration::from_secs(100));
    assert_eq!(site.sent.len(), 1);
    assert_eq!(site.last().router_lifetime, 0);
}

#[test]
fn a_new_link_local_address_is_reported_in_fast_advertisements() {
    let mut site = Site::lan(Settings::default());
    site.pass(Duration::from_secs(60));
    site.sent.clear();
    let address = "fe80::2".parse().unwrap();
    site.router.set_link(site.now, Link::Multicast { address, link_layer: None, mtu: 1_500 }).unwrap();
    site.pass(Duration::from_secs(60));
    assert_eq!(site.sent.len(), 3);
    assert!(site.sent.iter().all(|(_, sent)| sent.source == address));
}

#[test]
fn a_lan_does_not_become_a_tunnel() {
    let mut site = Site::lan(Settings::default());
    let tunnel = Link::Isatap { local: Ipv4Addr::new(10, 0, 0, 1), mtu: 1_280 };
    assert!(site.router.set_link(site.now, tunnel).is_err());
    assert_eq!(site.router.source(), ROUTER);
}

#[test]
fn what_was_sent_and_heard_is_counted() {
    let mut site = Site::lan(Settings::default());
    site.pass(Duration::from_secs(60));
    site.solicit(host(1));
    site.pass(Duration::from_secs(1));
    let counters = site.router.counters();
    assert_eq!((counters.multicast, counters.unicast, counters.solicitations), (4, 0, 1));
}
