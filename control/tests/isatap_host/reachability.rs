//! RFC 4861 §7.3 and RFC 5214 §8.4: a router that no longer answers is left for another.

use super::*;
use sixway_control::isatap_host::Reachability;

/// Two routers known, the first in use and both confirmed.
fn site() -> Site {
    let mut site = Site::new(&[R1, R2]);
    site.pass(2);
    for router_address in [R1, R2] {
        site.advertise(router_address, router(9_000));
        site.drain();
        site.confirm(router_address, true);
    }
    assert_eq!(site.default_router(), Some(R1));
    site.pass(1);
    site.done.clear();
    site
}

fn state(site: &Site, router: Ipv4Addr) -> Reachability {
    site.host.routers(site.now).find(|shown| shown.address == router).unwrap().reachability
}

fn in_use(site: &Site) -> Option<Ipv4Addr> {
    site.host.routers(site.now).find(|shown| shown.in_use).map(|shown| shown.address)
}

#[test]
fn a_router_that_was_found_is_probed_immediately() {
    let mut site = Site::new(&[R1]);
    site.pass(2);
    site.advertise(R1, router(1_800));
    site.pass(0);
    let sent = site.sent();
    let (_, sent, message) = sent.last().unwrap();
    assert!(matches!(message, Message::NeighbourSolicitation(_)));
    assert_eq!((sent.destination, sent.outer_destination), (isatap::link_local(R1), Some(R1)));
    assert_eq!(site.confirm(R1, true), HostHeard::Neighbour);
    assert!(matches!(state(&site, R1), Reachability::Reachable(_)));
}

#[test]
fn an_advertisement_is_not_a_confirmation() {
    let mut site = Site::new(&[R1]);
    site.pass(2);
    site.advertise(R1, router(1_800));
    assert!(matches!(state(&site, R1), Reachability::Probe { .. }));
    site.advertise(R1, router(1_800));
    assert!(matches!(state(&site, R1), Reachability::Probe { .. }));
}

#[test]
fn without_traffic_nothing_is_probed() {
    let mut site = site();
    site.pass(3_000);
    assert!(site.probes(R1).is_empty());
    assert_eq!(state(&site, R1), Reachability::Stale);
}

#[test]
fn with_traffic_a_stale_router_is_probed_after_five_seconds() {
    let mut site = site();
    site.pass(60);
    let used = site.now;
    site.pass_with_traffic(5);
    assert_eq!(site.probes(R1), [used + Duration::from_secs(5)], "DELAY_FIRST_PROBE_TIME");
    site.confirm(R1, true);
    site.pass_with_traffic(10);
    assert_eq!(site.probes(R1).len(), 1);
}

#[test]
fn a_router_is_reachable_for_a_random_time_around_half_a_minute() {
    let mut site = site();
    let mut reachable = 0;
    while matches!(state(&site, R1), Reachability::Reachable(_)) {
        site.pass(1);
        reachable += 1;
    }
    assert!((13..=46).contains(&reachable), "{reachable} s");
}

#[test]
fn three_probes_without_an_answer_lead_to_the_other_router() {
    let mut site = site();
    site.pass(60);
    site.pass_with_traffic(7);
    assert_eq!(in_use(&site), Some(R1));
    site.pass_with_traffic(3);
    assert_eq!(gaps(&site.probes(R1)), [1, 1], "three, RETRANS_TIMER apart");
    assert_eq!(in_use(&site), Some(R2));
    assert_eq!(site.default_router(), Some(R2));
}

#[test]
fn a_failed_router_that_answers_again_is_not_returned_to_while_the_other_works() {
    let mut site = site();
    site.pass(60);
    site.pass_with_traffic(10);
    site.confirm(R1, true);
    assert_eq!(in_use(&site), Some(R2));
    let shown = site.host.routers(site.now).find(|shown| shown.address == R1).unwrap();
    assert!(!shown.failed);
}

#[test]
fn when_all_have_failed_they_take_turns_and_the_first_that_answers_is_kept() {
    let mut site = site();
    site.pass(60);
    site.pass_with_traffic(60);
    let (first, second) = (site.probes(R1).len(), site.probes(R2).len());
    assert!(first >= 6 && second >= 6, "{first} and {second}: both are probed again and again");
    assert!(site.default_router().is_some(), "the route stays");
    site.confirm(R2, true);
    assert_eq!(in_use(&site), Some(R2));
    site.pass_with_traffic(10);
    assert_eq!(in_use(&site), Some(R2));
}

#[test]
fn probes_are_never_closer_than_the_retrans_timer() {
    let mut site = site();
    for _ in 0..600 {
        site.host.report_path_error(site.now, R1);
        site.host.note_traffic(site.now);
        site.pass(0);
        site.now = site.now + Duration::from_millis(100);
    }
    let times = site.probes(R1);
    assert!(times.len() > 3);
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= Duration::from_secs(1)));
}

#[test]
fn an_error_from_the_path_makes_the_router_prove_itself_immediately() {
    let mut site = site();
    site.host.report_path_error(site.now, R1);
    site.pass(0);
    assert_eq!(site.probes(R1).len(), 1);
    assert_eq!(in_use(&site), Some(R1), "errors may be forged");
    site.pass(4);
    assert_eq!(in_use(&site), Some(R2));
}

#[test]
fn a_router_that_has_become_a_host_is_left() {
    let mut site = site();
    site.confirm(R1, false);
    assert_eq!(in_use(&site), Some(R2));
}

#[test]
fn an_answer_from_elsewhere_confirms_nothing() {
    let mut site = site();
    site.pass(60);
    let target = isatap::link_local(R1);
    let (router_flag, solicited, overrides, options) = (true, true, false, vec![]);
    let said = NeighbourAdvertisement { router: router_flag, solicited, overrides, target, options };
    let message = Message::NeighbourAdvertisement(said);
    assert_eq!(site.hear(R2, target, &message), HostHeard::NotForUs);
    assert_eq!(site.hear(Ipv4Addr::new(10, 9, 9, 9), target, &message), HostHeard::NotForUs);
    assert_eq!(state(&site, R1), Reachability::Stale);
}

#[test]
fn advertised_times_are_taken_and_zero_leaves_them() {
    let mut site = site();
    site.pass(60);
    site.advertise(
        R1,
        RouterAdvertisement { retrans_timer: 3_000, reachable_time: 100_000, ..router(9_000) },
    );
    site.advertise(R1, router(9_000));
    site.pass_with_traffic(13);
    assert_eq!(gaps(&site.probes(R1)), [3, 3]);
    site.confirm(R1, true);
    site.pass(49);
    assert!(matches!(state(&site, R1), Reachability::Reachable(_)));
}
