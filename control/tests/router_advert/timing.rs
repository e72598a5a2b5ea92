//! RFC 4861 §6.2.4: the intervals of unsolicited advertisements.

use super::*;
use proptest::prelude::*;

#[test]
fn three_advertisements_come_fast_at_the_beginning_and_then_they_keep_their_interval() {
    let mut site = Site::lan(Settings::default());
    let start = site.now;
    site.pass(Duration::from_secs(10 * 3_600));
    let times = site.multicasts();
    assert!(times[0] - start <= seconds(0.5), "the first comes at once, but for a random delay");
    let gaps = gaps(&times);
    assert_eq!(gaps[..2], [seconds(16.0); 2], "MAX_INITIAL_RTR_ADVERT_INTERVAL");
    assert!(gaps[2..].iter().all(|gap| (seconds(198.0)..=seconds(600.0)).contains(gap)), "{gaps:?}");
    assert!(gaps.len() > 60);
}

#[test]
fn intervals_are_spread_over_their_whole_range() {
    let mut site = Site::lan(Settings::default());
    site.pass(Duration::from_secs(100 * 24 * 3_600));
    let gaps = gaps(&site.multicasts());
    let in_quarter = |quarter: u32| {
        let width = seconds(100.5);
        let from = seconds(198.0) + width * quarter;
        gaps.iter().filter(|gap| (from..from + width).contains(gap)).count()
    };
    let share = gaps.len() / 4;
    for quarter in 0..4 {
        assert!((share * 9 / 10..share * 11 / 10).contains(&in_quarter(quarter)), "{}", in_quarter(quarter));
    }
}

#[test]
fn the_same_seed_gives_the_same_life_and_another_seed_another() {
    let times = |seed| {
        let mut site = Site::with_seed(lan(), Settings::default(), seed);
        site.pass(Duration::from_secs(3_600));
        site.multicasts()
    };
    assert_eq!(times(5), times(5));
    assert_ne!(times(5), times(6));
}

#[test]
fn short_intervals_are_kept_from_the_beginning() {
    let settings = Settings { max_interval: 4, ..Settings::default() };
    let mut site = Site::lan(settings);
    site.pass(Duration::from_secs(600));
    assert!(gaps(&site.multicasts()).iter().all(|gap| (seconds(3.0)..=seconds(4.0)).contains(gap)));
}

#[test]
fn a_router_that_was_not_woken_for_long_speaks_once_and_goes_on() {
    let mut site = Site::lan(Settings::default());
    site.pass(Duration::from_secs(600));
    site.now = site.now + Duration::from_secs(100_000);
    let before = site.sent.len();
    site.pass(Duration::from_millis(1));
    assert_eq!(site.sent.len() - before, 1);
}

/// What may happen to a router between two advertisements.
#[derive(Clone, Debug)]
enum Event {
    Solicitation(u16),
    OtherPrefixes(u16),
    Pass(u32),
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0u16..4).prop_map(Event::Solicitation),
        1 => (1u16..40).prop_map(Event::OtherPrefixes),
        4 => (0u32..5_000).prop_map(Event::Pass),
        1 => (0u32..900_000).prop_map(Event::Pass),
    ]
}

proptest! {
    #[test]
    fn never_more_often_than_every_three_seconds_and_never_later_than_the_interval(
        seed: u64,
        max in 4u16..=1_800,
        wordy: bool,
        events in prop::collection::vec(any_event(), 1..60),
    ) {
        let names = 0..if wordy { 5 } else { 0 };
        let name = |number: u16| format!("{}.{}.n{number}", "a".repeat(63), "b".repeat(63)).parse().unwrap();
        let dns_search = names.map(name).collect();
        let settings = Settings { max_interval: max, mtu: Some(1_280), dns_search, ..Settings::default() };
        let mut site = Site::with_seed(lan(), settings, seed);
        for event in events {
            match event {
                Event::Solicitation(number) => {
                    site.solicit(host(number));
                }
                Event::OtherPrefixes(count) => {
                    let of = |number| sixway_control::router_advert::AdvertisedPrefix::changing(
                        Prefix6::holding(Ipv6Addr::new(0x2001, 0xdb8, number, count, 0, 0, 0, 0), 64)
                    );
                    let list = (0..count % 17).map(of).collect();
                    site.router.set_prefixes(site.now, list).unwrap();
                }
                Event::Pass(milliseconds) => site.pass(Duration::from_millis(u64::from(milliseconds))),
            }
        }
        site.pass(Duration::from_secs(u64::from(max)));
        let times = site.multicasts();
        for gap in gaps(&times) {
            prop_assert!(gap >= seconds(3.0), "{gap:?}");
            prop_assert!(gap <= Duration::from_secs(u64::from(max)), "{gap:?}");
        }
        prop_assert!(site.sent.iter().all(|(_, sent)| sent.packet().len() <= 1_280));
        let last = times.last().copied().unwrap();
        prop_assert!(site.now - last <= Duration::from_secs(u64::from(max)));
    }
}
