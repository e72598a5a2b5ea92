//! RFC 4861 §6.2.6: answers to solicitations.

use super::*;
use sixway_control::router_advert::{MAX_WAITING, Solicited};

/// A router that has said its first three advertisements and is between two of its regular ones.
fn settled(settings: Settings) -> Site {
    let mut site = Site::lan(settings);
    site.pass(Duration::from_secs(60));
    site.sent.clear();
    site
}

#[test]
fn a_solicitation_is_answered_to_all_nodes_within_half_a_second() {
    let mut site = settled(Settings::default());
    let asked = site.now;
    assert_eq!(site.solicit(host(1)), Heard::Solicitation);
    site.pass(Duration::from_secs(1));
    let times = site.multicasts();
    assert_eq!((times.len(), site.sent.len()), (1, 1));
    assert!(times[0] - asked <= seconds(0.5));
}

#[test]
fn delays_of_answers_are_random() {
    let delay = |seed| {
        let mut site = Site::with_seed(lan(), Settings::default(), seed);
        site.pass(Duration::from_secs(60));
        let asked = site.now;
        site.sent.clear();
        site.solicit(host(1));
        site.pass(Duration::from_secs(1));
        site.multicasts()[0] - asked
    };
    let delays: Vec<_> = (0..200).map(delay).collect();
    assert!(delays.iter().all(|delay| *delay <= seconds(0.5)));
    assert!(
        delays.iter().any(|delay| *delay < seconds(0.05))
            && delays.iter().any(|delay| *delay > seconds(0.45))
    );
}

#[test]
fn many_solicitations_have_one_answer_delayed_from_the_first() {
    let mut site = settled(Settings::default());
    let asked = site.now;
    for number in 0..1_000 {
        site.solicit(host(number));
        site.pass(Duration::from_micros(100));
    }
    site.pass(Duration::from_secs(1));
    assert_eq!(site.sent.len(), 1);
    assert!(site.multicasts()[0] - asked <= seconds(0.5));
}

#[test]
fn a_flood_of_solicitations_has_an_answer_every_three_seconds() {
    let mut site = settled(Settings::default());
    for number in 0..60_000u32 {
        site.solicit(host((number % 50_000) as u16));
        site.pass(Duration::from_millis(1));
    }
    assert!((15..=21).contains(&site.sent.len()), "{} in a minute", site.sent.len());
    assert!(gaps(&site.multicasts()).iter().all(|gap| *gap >= seconds(3.0)));
}

#[test]
fn soon_after_an_advertisement_the_answer_waits_for_three_seconds_and_a_delay() {
    let mut site = settled(Settings::default());
    site.solicit(host(1));
    site.pass(Duration::from_secs(1));
    let first = site.multicasts()[0];
    site.solicit(host(2));
    site.pass(Duration::from_secs(4));
    let second = site.multicasts()[1];
    assert!((seconds(3.0)..=seconds(3.5)).contains(&(second - first)));
}

#[test]
fn an_advertisement_that_is_due_anyway_is_the_answer() {
    let mut site = Site::lan(Settings::default());
    site.pass(Duration::from_secs(10));
    let due = site.router.poll_timeout().unwrap();
    site.pass((due - site.now).saturating_sub(Duration::from_nanos(1)));
    site.sent.clear();
    site.solicit(host(1));
    assert_eq!(site.router.poll_timeout(), Some(due));
    site.pass(Duration::from_secs(2));
    assert_eq!(site.multicasts(), [due]);
}

#[test]
fn an_answer_to_all_nodes_starts_the_interval_again() {
    let mut site = settled(Settings::default());
    site.solicit(host(1));
    site.pass(Duration::from_secs(1));
    let answered = site.multicasts()[0];
    site.pass(Duration::from_secs(700));
    let next = site.multicasts()[1];
    assert!((seconds(198.0)..=seconds(600.0)).contains(&(next - answered)));
}

#[test]
fn by_unicast_the_host_that_asked_is_answered_and_nobody_else() {
    let mut site = settled(Settings { solicited: Solicited::Unicast, ..Settings::default() });
    let (asked, regular) = (site.now, site.router.poll_timeout());
    site.solicit(host(1));
    site.solicit(host(2));
    site.solicit(host(1));
    site.pass(Duration::from_secs(1));
    let mut answered: Vec<_> = site.sent.iter().map(|(_, sent)| sent.destination).collect();
    answered.sort();
    assert_eq!(answered, [host(1), host(2)]);
    assert!(site.sent.iter().all(|(at, sent)| *at - asked <= seconds(0.5) && sent.source == ROUTER));
    assert_eq!(site.router.poll_timeout(), regular, "unicast answers leave the interval alone");
}

#[test]
fn a_host_without_an_address_is_answered_to_all_nodes() {
    let mut site = settled(Settings { solicited: Solicited::Unicast, ..Settings::default() });
    site.solicit(Ipv6Addr::UNSPECIFIED);
    site.pass(Duration::from_secs(1));
    assert_eq!((site.multicasts().len(), site.sent.len()), (1, 1));
}

#[test]
fn beyond_what_may_wait_hosts_are_answered_together() {
    let mut site = settled(Settings { solicited: Solicited::Unicast, ..Settings::default() });
    for number in 0..10_000 {
        assert_eq!(site.solicit(host(number)), Heard::Solicitation);
    }
    site.pass(Duration::from_secs(1));
    assert_eq!(site.sent.len() - site.multicasts().len(), MAX_WAITING);
    assert_eq!(site.multicasts().len(), 1);
}

#[test]
fn an_answer_has_every_option() {
    let settings = Settings {
        prefixes: vec![sixway_control::router_advert::AdvertisedPrefix::lasting(prefix("2001:db8:1::/64"))],
        mtu: Some(1_400),
        ..Settings::default()
    };
    let mut site = settled(settings);
    site.solicit(host(1));
    site.pass(Duration::from_secs(1));
    assert_eq!(site.last().options.len(), 3, "link-layer address, MTU, prefix");
}

#[test]
fn a_malformed_solicitation_is_not_answered_and_is_counted() {
    let mut site = settled(Settings::default());
    let message = Message::RouterSolicitation(RouterSolicitation::default());
    let octets = message.to_octets(host(1), ALL_ROUTERS);
    let (source, destination) = (host(1), ALL_ROUTERS);
    let received = Received { source, destination, hop_limit: 64, outer_source: None, message: &octets };
    assert_eq!(site.router.handle_message(site.now, &received), Err(Malformed::HopLimit));
    site.pass(Duration::from_secs(1));
    assert!(site.sent.is_empty());
    assert_eq!(site.router.counters().malformed, 1);
}

/// RFC 4861 §6.1.1: what a solicitation has no use for is passed over, and it is answered.
#[test]
fn options_that_do_not_belong_to_a_solicitation_are_ignored_and_it_is_answered() {
    let mut site = settled(Settings::default());
    let options = vec![NdOption::TargetLinkLayer(vec![2, 0, 0, 0, 0, 9]), NdOption::Mtu(1_400)];
    let asked = Message::RouterSolicitation(RouterSolicitation { options });
    assert_eq!(site.hear(host(1), None, &asked), Ok(Heard::Solicitation));
    site.pass(Duration::from_secs(1));
    assert_eq!(site.sent.len(), 1);
}
