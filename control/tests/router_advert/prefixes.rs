//! Prefixes that change while the router runs (RFC 9096 §3.3, §3.5; RFC 4861 §6.2.4).

use super::*;
use sixway_control::router_advert::{AdvertisedPrefix, MAX_STALE, StalePrefix};

fn with(prefixes: &[&str]) -> Vec<AdvertisedPrefix> {
    prefixes.iter().map(|text| AdvertisedPrefix::changing(prefix(text))).collect()
}

fn site(prefixes: &[&str]) -> Site {
    let mut site = Site::lan(Settings { prefixes: with(prefixes), ..Settings::default() });
    site.pass(Duration::from_secs(100));
    site
}

/// Prefixes with their valid and preferred lifetimes.
fn said(site: &Site) -> Vec<(String, u32, u32)> {
    let said = prefixes_in(&site.last());
    said.iter().map(|said| (said.prefix.to_string(), said.valid, said.preferred)).collect()
}

fn row(prefix: &str, valid: u32, preferred: u32) -> (String, u32, u32) {
    (prefix.to_owned(), valid, preferred)
}

#[test]
fn a_changed_prefix_is_reported_in_three_fast_advertisements() {
    let mut site = site(&["2002:c000:201:1::/64"]);
    site.sent.clear();
    let changed = site.now;
    site.router.set_prefixes(site.now, with(&["2002:c000:202:1::/64"])).unwrap();
    site.pass(Duration::from_secs(60));
    let times = site.multicasts();
    assert!(times[0] - changed <= seconds(0.5));
    assert_eq!(gaps(&times), [seconds(16.0); 2]);
    assert_eq!(said(&site), [row("2002:c000:202:1::/64", 5_400, 2_700), row("2002:c000:201:1::/64", 0, 0)]);
}

#[test]
fn a_prefix_that_went_away_is_withdrawn_for_as_long_as_it_was_valid() {
    let mut site = site(&["2001:db8:1::/64"]);
    site.router.set_prefixes(site.now, vec![]).unwrap();
    site.pass(Duration::from_secs(5_300));
    site.solicit(host(1));
    site.pass(Duration::from_secs(10));
    assert_eq!(said(&site), [row("2001:db8:1::/64", 0, 0)]);
    assert_eq!(site.router.stale_prefixes().len(), 1);
    site.pass(Duration::from_secs(600));
    assert_eq!(said(&site), []);
    assert!(site.router.stale_prefixes().is_empty());
}

#[test]
fn a_prefix_whose_lifetime_was_cut_before_it_went_is_withdrawn_for_the_longer_one() {
    let long = AdvertisedPrefix { valid: 50_000, ..AdvertisedPrefix::changing(prefix("2001:db8:1::/64")) };
    let mut site = Site::lan(Settings { prefixes: vec![long], ..Settings::default() });
    site.pass(Duration::from_secs(60));
    site.router.set_prefixes(site.now, with(&["2001:db8:1::/64"])).unwrap();
    site.pass(Duration::from_secs(60));
    site.router.set_prefixes(site.now, vec![]).unwrap();
    site.pass(Duration::from_secs(49_000));
    assert_eq!(said(&site), [row("2001:db8:1::/64", 0, 0)]);
}

#[test]
fn the_flags_of_a_stale_prefix_stay_what_they_were() {
    let odd = AdvertisedPrefix { on_link: false, ..AdvertisedPrefix::changing(prefix("2001:db8:1::/64")) };
    let mut site = Site::lan(Settings { prefixes: vec![odd], ..Settings::default() });
    site.pass(Duration::from_secs(60));
    site.router.set_prefixes(site.now, vec![]).unwrap();
    site.pass(Duration::from_secs(10));
    let [stale] = prefixes_in(&site.last())[..] else { panic!() };
    assert!(!stale.on_link && stale.autonomous);
}

#[test]
fn a_prefix_that_comes_back_lives_again() {
    let mut site = site(&["2001:db8:1::/64"]);
    site.router.set_prefixes(site.now, vec![]).unwrap();
    site.pass(Duration::from_secs(100));
    site.router.set_prefixes(site.now, with(&["2001:db8:1::/64"])).unwrap();
    site.pass(Duration::from_secs(100));
    assert_eq!(said(&site), [row("2001:db8:1::/64", 5_400, 2_700)]);
}

#[test]
fn a_prefix_that_no_advertisement_told_of_is_not_withdrawn() {
    let mut site = Site::lan(Settings { prefixes: with(&["2001:db8:1::/64"]), ..Settings::default() });
    site.router.set_prefixes(site.now, with(&["2001:db8:2::/64"])).unwrap();
    site.pass(Duration::from_secs(10));
    assert_eq!(said(&site), [row("2001:db8:2::/64", 5_400, 2_700)]);
}

#[test]
fn the_same_prefixes_again_change_nothing() {
    let mut site = site(&["2001:db8:1::/64"]);
    let due = site.router.poll_timeout();
    site.router.set_prefixes(site.now, with(&["2001:db8:1::/64"])).unwrap();
    assert_eq!(site.router.poll_timeout(), due);
}

#[test]
fn prefixes_that_change_all_the_time_are_told_every_three_seconds_and_stay_bounded() {
    let mut site = site(&[]);
    site.sent.clear();
    for number in 0..600u16 {
        let fresh = Prefix6::holding(Ipv6Addr::new(0x2002, number, 1, 1, 0, 0, 0, 0), 64);
        site.router.set_prefixes(site.now, vec![AdvertisedPrefix::changing(fresh)]).unwrap();
        site.pass(Duration::from_millis(500));
    }
    assert!(gaps(&site.multicasts()).iter().all(|gap| *gap >= seconds(3.0)));
    assert_eq!(site.router.stale_prefixes().len(), MAX_STALE);
}

#[test]
fn lifetimes_never_reach_beyond_the_prefixes_own_end() {
    let start = Instant::from_secs(1_000);
    let ends = start + Duration::from_secs(3_000);
    let leased =
        AdvertisedPrefix { ends: Some(ends), ..AdvertisedPrefix::changing(prefix("2001:db8:1::/64")) };
    let mut site = Site::lan(Settings { prefixes: vec![leased], ..Settings::default() });
    for _ in 0..60 {
        site.pass(Duration::from_secs(60));
        let (sent_at, _) = site.sent.last().unwrap();
        let left = (ends - *sent_at).as_secs() as u32;
        assert_eq!(said(&site), [row("2001:db8:1::/64", left.min(5_400), left.min(2_700))]);
    }
    assert_eq!(said(&site), [row("2001:db8:1::/64", 0, 0)]);
}

#[test]
fn the_next_run_takes_back_what_the_last_one_advertised() {
    let before = site(&["2001:db8:1::/64", "2001:db8:2::/64"]);
    let kept: Vec<StalePrefix> = before.router.believed_prefixes(before.now).collect();
    assert_eq!(kept.len(), 2);
    assert!(kept.iter().all(|kept| kept.until - before.now == Duration::from_secs(5_400)));
    let mut after = Site::lan(Settings { prefixes: with(&["2001:db8:2::/64"]), ..Settings::default() });
    after.router.add_stale_prefixes(after.now, kept);
    after.pass(Duration::from_secs(2));
    assert_eq!(said(&after), [row("2001:db8:2::/64", 5_400, 2_700), row("2001:db8:1::/64", 0, 0)]);
}

#[test]
fn faulty_prefixes_leave_the_old_ones() {
    let mut site = site(&["2001:db8:1::/64"]);
    assert!(site.router.set_prefixes(site.now, with(&["fe80::/64"])).is_err());
    site.pass(Duration::from_secs(1_000));
    assert_eq!(said(&site), [row("2001:db8:1::/64", 5_400, 2_700)]);
}
