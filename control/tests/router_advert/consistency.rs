//! RFC 4861 §6.2.7 and RFC 8781 §5.2: what other routers say differently is reported, and nothing else.

use super::*;
use sixway_control::neighbour_discovery::{Pref64, ScaledLifetime};
use sixway_control::router_advert::{AdvertisedPref64, AdvertisedPrefix, Inconsistency, Parameter};

const OTHER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0xb);

fn settings() -> Settings {
    Settings {
        reachable_time: 30_000,
        retrans_timer: 1_000,
        mtu: Some(1_400),
        prefixes: vec![AdvertisedPrefix::lasting(prefix("2001:db8:1::/64"))],
        pref64: vec![AdvertisedPref64 { prefix: prefix("64:ff9b::/96"), lifetime: None }],
        ..Settings::default()
    }
}

/// Our own words, as another router would say them.
fn ours() -> RouterAdvertisement {
    let mut site = Site::lan(settings());
    site.pass(Duration::from_secs(1));
    site.last()
}

fn told(site: &mut Site, theirs: RouterAdvertisement) -> Vec<(Parameter, u32, u32)> {
    match site.hear(OTHER, None, &Message::RouterAdvertisement(theirs)).unwrap() {
        Heard::Router(found) => {
            found.iter().map(|fault| (fault.parameter, fault.ours, fault.theirs)).collect()
        }
        other => panic!("{other:?}"),
    }
}

fn found(theirs: RouterAdvertisement) -> Vec<(Parameter, u32, u32)> {
    told(&mut Site::lan(settings()), theirs)
}

fn prefix_of(theirs: &mut RouterAdvertisement) -> &mut PrefixInformation {
    let of = |option: &mut NdOption| matches!(option, NdOption::Prefix(_));
    let at = theirs.options.iter_mut().position(of).unwrap();
    match &mut theirs.options[at] {
        NdOption::Prefix(prefix) => prefix,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_router_that_says_the_same_is_consistent() {
    assert_eq!(found(ours()), []);
}

#[test]
fn unspecified_values_and_other_prefixes_do_not_contradict() {
    let other = NdOption::Prefix(PrefixInformation {
        prefix: prefix("2001:db8:2::/64"),
        on_link: true,
        autonomous: true,
        valid: 1,
        preferred: 1,
    });
    let unspecified = RouterAdvertisement { router_lifetime: 77, options: vec![other], ..Default::default() };
    assert_eq!(found(unspecified), []);
}

#[test]
fn each_field_that_differs_is_reported() {
    let theirs = RouterAdvertisement {
        hop_limit: 63,
        managed: true,
        other: true,
        reachable_time: 1,
        retrans_timer: 2,
        options: vec![NdOption::Mtu(1_500)],
        ..ours()
    };
    let expected = [
        (Parameter::HopLimit, 64, 63),
        (Parameter::ReachableTime, 30_000, 1),
        (Parameter::RetransTimer, 1_000, 2),
        (Parameter::Managed, 0, 1),
        (Parameter::Other, 0, 1),
        (Parameter::Mtu, 1_400, 1_500),
    ];
    assert_eq!(found(theirs), expected);
}

#[test]
fn lifetimes_of_the_same_prefix_are_compared() {
    let mut theirs = ours();
    prefix_of(&mut theirs).valid = 2_592_001;
    prefix_of(&mut theirs).preferred = 3;
    let same = prefix("2001:db8:1::/64");
    let expected = [(Parameter::Valid(same), 2_592_000, 2_592_001), (Parameter::Preferred(same), 604_800, 3)];
    assert_eq!(found(theirs), expected);
}

#[test]
fn lifetimes_that_count_down_may_be_skewed_a_little() {
    let ends = Some(Instant::from_secs(1_000 + 2_000));
    let leased = AdvertisedPrefix { ends, ..settings().prefixes[0] };
    let mut site = Site::lan(Settings { prefixes: vec![leased], ..settings() });
    let mut theirs = ours();
    (prefix_of(&mut theirs).valid, prefix_of(&mut theirs).preferred) = (2_008, 1_995);
    assert_eq!(told(&mut site, theirs.clone()), []);
    prefix_of(&mut theirs).valid = 2_020;
    assert_eq!(told(&mut site, theirs), [(Parameter::Valid(prefix("2001:db8:1::/64")), 2_000, 2_020)]);
}

#[test]
fn another_nat64_prefix_and_one_withdrawn_are_reported() {
    let pref64 = |text, seconds| {
        let lifetime = ScaledLifetime::from_secs(seconds);
        NdOption::Pref64(Pref64::new(prefix(text), lifetime).unwrap())
    };
    let with = |options| RouterAdvertisement { options, ..ours() };
    let (own, other) = ("64:ff9b::/96", "2001:db8:64::/96");
    assert_eq!(found(with(vec![pref64(own, 9)])), []);
    assert_eq!(found(with(vec![pref64(other, 0)])), []);
    assert_eq!(found(with(vec![pref64(own, 0)])), [(Parameter::Pref64(prefix(own)), 1, 0)]);
    assert_eq!(found(with(vec![pref64(other, 9)])), [(Parameter::Pref64(prefix(other)), 0, 1)]);
}

#[test]
fn the_same_fault_is_reported_once_an_hour() {
    let mut site = Site::lan(settings());
    let theirs = RouterAdvertisement { hop_limit: 63, ..ours() };
    assert_eq!(told(&mut site, theirs.clone()).len(), 1);
    for _ in 0..11 {
        site.pass(Duration::from_secs(300));
        assert_eq!(told(&mut site, theirs.clone()), []);
    }
    site.pass(Duration::from_secs(300));
    assert_eq!(told(&mut site, theirs).len(), 1);
    assert_eq!(site.router.counters().inconsistencies, 2);
}

#[test]
fn many_routers_with_faults_do_not_fill_the_log() {
    let mut site = Site::lan(settings());
    let theirs = Message::RouterAdvertisement(RouterAdvertisement { hop_limit: 63, ..ours() });
    let mut told = 0;
    for number in 0..10_000 {
        if let Heard::Router(found) = site.hear(host(number), None, &theirs).unwrap() {
            told += found.len();
        }
    }
    assert_eq!(told, 32);
}

#[test]
fn our_own_advertisement_that_comes_back_is_not_another_routers() {
    let mut site = Site::lan(settings());
    let theirs = RouterAdvertisement { hop_limit: 63, ..ours() };
    assert_eq!(site.hear(ROUTER, None, &Message::RouterAdvertisement(theirs)), Ok(Heard::NotForUs));
}

#[test]
fn a_fault_reads_as_a_sentence() {
    let fault = Inconsistency { router: OTHER, parameter: Parameter::HopLimit, ours: 64, theirs: 63 };
    assert_eq!(fault.to_string(), "fe80::b advertises hop limit 63, not 64");
}
