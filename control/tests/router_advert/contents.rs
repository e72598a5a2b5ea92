//! RFC 4861 §6.2.3: what an advertisement contains.

use super::*;
use sixway_control::neighbour_discovery::{Preference, RouteInformation};
use sixway_control::router_advert::{AdvertisedPref64, AdvertisedPrefix, AdvertisedRoute, MAX_PARTS};

fn first_of(settings: Settings) -> RouterAdvertisement {
    let mut site = Site::lan(settings);
    site.pass(Duration::from_secs(1));
    assert_eq!(site.sent.len(), 1);
    let sent = &site.sent[0].1;
    assert_eq!((sent.source, sent.destination), (ROUTER, ALL_NODES));
    assert_eq!(sent.packet()[7], 255);
    site.last()
}

#[test]
fn by_default_the_router_alone_is_told_for_three_intervals() {
    let said = first_of(Settings::default());
    let expected = RouterAdvertisement {
        hop_limit: 64,
        router_lifetime: 1_800,
        options: vec![NdOption::SourceLinkLayer(vec![2, 0, 0, 0, 0, 1])],
        ..RouterAdvertisement::default()
    };
    assert_eq!(said, expected);
}

#[test]
fn every_variable_stands_in_its_field() {
    let said = first_of(Settings {
        managed: true,
        other: true,
        preference: Preference::High,
        hop_limit: 32,
        router_lifetime: Some(9_000),
        reachable_time: 30_000,
        retrans_timer: 1_000,
        mtu: Some(1_400),
        ..Settings::default()
    });
    assert!(said.managed && said.other && said.preference == Preference::High);
    assert_eq!((said.hop_limit, said.router_lifetime), (32, 9_000));
    assert_eq!((said.reachable_time, said.retrans_timer), (30_000, 1_000));
    assert_eq!(said.options[1], NdOption::Mtu(1_400));
}

#[test]
fn a_router_that_is_not_a_default_router_still_tells_of_its_prefixes() {
    let prefixes = vec![AdvertisedPrefix::lasting(prefix("2001:db8:1::/64"))];
    let said = first_of(Settings { router_lifetime: Some(0), prefixes, ..Settings::default() });
    assert_eq!((said.router_lifetime, said.options.len()), (0, 2));
}

#[test]
fn a_prefix_has_the_lifetimes_and_flags_that_were_set() {
    let lasting = AdvertisedPrefix::lasting(prefix("2001:db8:1::/64"));
    let off_link =
        AdvertisedPrefix { on_link: false, ..AdvertisedPrefix::changing(prefix("2001:db8:2::/64")) };
    let said = first_of(Settings { prefixes: vec![lasting, off_link], ..Settings::default() });
    let [first, second] = prefixes_in(&said)[..] else { panic!("{said:?}") };
    assert!(first.on_link && first.autonomous && !second.on_link && second.autonomous);
    assert_eq!((first.valid, first.preferred), (2_592_000, 604_800), "30 days and 7 days, RFC 4861 §6.2.1");
    assert_eq!((second.valid, second.preferred), (5_400, 2_700), "RFC 9096 §4");
}

#[test]
fn without_a_link_layer_address_the_option_is_left_out() {
    let link = Link::Multicast { address: ROUTER, link_layer: None, mtu: 1_500 };
    let mut site = Site::with_seed(link, Settings::default(), 1);
    site.pass(Duration::from_secs(1));
    assert_eq!(site.last().options, []);
}

/// Routes, DNS and NAT64 prefixes, with lifetimes of their own or without.
fn services(max_interval: u16, lifetime: Option<u32>) -> Settings {
    Settings {
        max_interval,
        routes: vec![AdvertisedRoute {
            prefix: prefix("2001:db8::/32"),
            preference: Preference::Low,
            lifetime,
        }],
        dns_servers: vec!["2001:db8::53".parse().unwrap()],
        dns_search: vec!["example.com".parse().unwrap()],
        dns_lifetime: lifetime,
        pref64: vec![AdvertisedPref64 { prefix: prefix("64:ff9b::/96"), lifetime }],
        captive_portal: Some("https://portal.example/api".to_owned()),
        ..Settings::default()
    }
}

/// Lifetimes of the route, DNS servers, search list and NAT64 prefix.
fn lifetimes(said: &RouterAdvertisement) -> Vec<u32> {
    let of = |option: &NdOption| match option {
        NdOption::Route(RouteInformation { lifetime, .. })
        | NdOption::Rdnss { lifetime, .. }
        | NdOption::Dnssl { lifetime, .. } => Some(*lifetime),
        NdOption::Pref64(pref64) => Some(pref64.lifetime.as_secs()),
        _ => None,
    };
    said.options.iter().filter_map(of).collect()
}

#[test]
fn lifetimes_are_three_intervals_unless_they_are_set() {
    assert_eq!(lifetimes(&first_of(services(600, None))), [1_800; 4]);
    assert_eq!(
        lifetimes(&first_of(services(601, None))),
        [1_803, 1_803, 1_803, 1_808],
        "NAT64 in units of 8 s"
    );
    assert_eq!(lifetimes(&first_of(services(600, Some(100)))), [100, 100, 100, 104]);
    assert_eq!(lifetimes(&first_of(services(600, Some(100_000)))), [100_000, 100_000, 100_000, 65_528]);
}

#[test]
fn a_portals_uri_is_reported() {
    let said = first_of(services(600, None));
    assert_eq!(said.options.last(), Some(&NdOption::CaptivePortal("https://portal.example/api".to_owned())));
}

/// So much to tell that it takes more than one packet of 1,280 octets.
fn wordy() -> Settings {
    let nth = |at: u16, length| Prefix6::holding(Ipv6Addr::new(0x2001, 0xdb8, at, 0, 0, 0, 0, 0), length);
    let route = |at| AdvertisedRoute { prefix: nth(at, 48), preference: Preference::Medium, lifetime: None };
    Settings {
        mtu: Some(1_280),
        prefixes: (0..16).map(|at| AdvertisedPrefix::lasting(nth(at, 64))).collect(),
        routes: (0..17).map(route).collect(),
        dns_search: (0..8)
            .map(|at| format!("department-{at}.subsidiary.example.com").parse().unwrap())
            .collect(),
        captive_portal: Some("u".repeat(255)),
        ..services(600, None)
    }
}

#[test]
fn what_does_not_fit_one_packet_is_split_and_no_packet_is_larger_than_the_link() {
    let mut site = Site::lan(wordy());
    site.pass(Duration::from_secs(10));
    let packets: Vec<_> = site.sent.iter().map(|(_, sent)| sent.packet().len()).collect();
    assert!((2..=MAX_PARTS).contains(&packets.len()), "{packets:?}");
    assert!(packets.iter().all(|length| *length <= 1_280), "{packets:?}");
    assert_eq!(gaps(&site.multicasts()), [seconds(3.0)], "MIN_DELAY_BETWEEN_RAS");
    let parts: Vec<_> = site.sent.iter().map(|(_, sent)| advertisement(sent)).collect();
    assert!(parts.iter().all(|part| part.router_lifetime == 1_800));
    assert!(parts.iter().all(|part| matches!(part.options[0], NdOption::SourceLinkLayer(_))));
    let prefixes: usize = parts.iter().map(|part| prefixes_in(part).len()).sum();
    let options: usize = parts.iter().map(|part| part.options.len() - 1).sum();
    assert_eq!((prefixes, options), (16, 1 + 16 + 17 + 4), "each option once");
}

#[test]
fn a_host_that_asks_by_unicast_gets_every_packet_immediately() {
    let settings = Settings { solicited: sixway_control::router_advert::Solicited::Unicast, ..wordy() };
    let mut site = Site::lan(settings);
    site.pass(Duration::from_secs(60));
    site.sent.clear();
    site.solicit(host(1));
    site.pass(Duration::from_secs(1));
    assert_eq!(site.sent.len(), 2);
    assert_eq!(site.sent[0].0, site.sent[1].0);
}
