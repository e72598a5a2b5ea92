//! RFC 5214 §8.3.2 to §8.3.4: the potential router list, solicitations, and whose advertisements are taken.

use super::*;
use sixway_control::isatap_host::MAX_ROUTERS;
use sixway_control::neighbour_discovery::{ALL_ROUTERS, Preference};
use sixway_control::router_advert::{AdvertisedPrefix, Link, RouterAdvert, Settings};

#[test]
fn a_potential_router_is_solicited_three_times_and_then_more_and_more_seldom() {
    let mut site = Site::new(&[R1]);
    let start = site.now;
    site.pass(4 * 3_600);
    let times = site.solicitations(R1);
    assert!(times[0] - start <= Duration::from_secs(1), "MAX_RTR_SOLICITATION_DELAY");
    let gaps = gaps(&times);
    assert_eq!(gaps[..2], [4, 4], "RTR_SOLICITATION_INTERVAL");
    let between: Vec<_> = gaps.iter().copied().filter(|gap| *gap != 4).collect();
    let expected = [120, 240, 480, 960, 1_920, 3_600];
    assert!(between.len() >= expected.len());
    for (gap, least) in between.iter().zip(expected) {
        assert!((least..=least * 11 / 10).contains(gap), "{between:?}");
    }
    assert_eq!(site.default_router(), None);
}

#[test]
fn solicitations_go_through_the_tunnel_to_both_forms_of_address_and_to_all_routers() {
    let mut site = Site::new(&[R1]);
    site.pass(60);
    let sent = site.sent();
    let destinations: Vec<_> = sent.iter().map(|(_, sent, _)| sent.destination).collect();
    let forms = ["fe80::5efe:a00:1", "fe80::200:5efe:a00:1"].map(|text| text.parse::<Ipv6Addr>().unwrap());
    assert_eq!(destinations, [forms[0], forms[1], ALL_ROUTERS]);
    assert!(sent.iter().all(|(_, sent, _)| sent.source == isatap::link_local(LOCAL)));
    assert!(sent.iter().all(|(_, sent, _)| sent.outer_destination == Some(R1)));
    assert!(sent.iter().all(|(_, sent, _)| sent.packet()[7] == 255));
}

#[test]
fn an_answer_ends_the_solicitations_and_sets_the_default_route() {
    let mut site = Site::new(&[R1]);
    site.pass(2);
    assert_eq!(site.solicitations(R1).len(), 1);
    assert_eq!(site.advertise(R1, router(1_800)), HostHeard::Advertisement);
    let gateway = isatap::link_local(R1);
    assert_eq!(site.route(), Some(DefaultRoute { gateway, router: R1, mtu: None, hop_limit: None }));
    site.pass(600);
    assert_eq!(site.solicitations(R1).len(), 1);
}

#[test]
fn an_answer_that_comes_unasked_is_taken_and_one_solicitation_is_sent_all_the_same() {
    let mut site = Site::new(&[R1]);
    site.advertise(R1, router(1_800));
    assert_eq!(site.default_router(), Some(R1));
    site.pass(2);
    assert_eq!(site.solicitations(R1).len(), 1);
}

#[test]
fn promises_are_refreshed_before_they_run_out() {
    for (said, shortest) in [
        (router(1_800), 1_800),
        (with_prefix(5_400, 2_700), 1_800),
        (with_prefix(1_000, 900), 900),
        (with_prefix(u32::MAX, u32::MAX), 1_800),
    ] {
        let mut site = Site::new(&[R1]);
        site.pass(2);
        site.advertise(R1, said);
        let answered = site.now;
        site.done.clear();
        site.pass(4_000);
        let next = (site.solicitations(R1)[0] - answered).as_secs();
        assert!((shortest / 2..shortest).contains(&next), "{next} of {shortest}");
    }
}

#[test]
fn a_router_is_never_asked_again_sooner_than_min_router_solicit_interval() {
    let mut site = Site::new(&[R1]);
    site.pass(2);
    site.advertise(R1, with_prefix(20, 10));
    let answered = site.now;
    site.done.clear();
    site.pass(300);
    assert!(site.solicitations(R1)[0] - answered >= Duration::from_secs(120));
}

#[test]
fn the_interval_between_solicitations_and_that_of_the_list_are_the_operators() {
    let now = Instant::from_secs(1_000);
    let settings = HostSettings {
        min_solicit_interval: Duration::from_secs(600),
        refresh_interval: Some(Duration::from_secs(7_200)),
        ..HostSettings::new(LOCAL)
    };
    let mut host = IsatapHost::new(settings, 1, now);
    assert_eq!(host.poll_action(now), Some(HostAction::LookUpRouters));
    host.set_potential_routers(now, &[R1], None);
    let mut site = Site { host, now, done: Vec::new() };
    site.pass(2);
    site.advertise(R1, with_prefix(20, 10));
    let answered = site.now;
    site.done.clear();
    site.pass(7_300);
    assert!(site.solicitations(R1)[0] - answered >= Duration::from_secs(600));
    let looked_up = site.done.iter().find(|(_, action)| *action == HostAction::LookUpRouters);
    assert_eq!((looked_up.unwrap().0 - now).as_secs(), 7_200);
}

#[test]
fn advertisements_of_unknown_routers_are_ignored() {
    let mut site = Site::new(&[R1]);
    site.pass(2);
    let said = Message::RouterAdvertisement(with_prefix(5_400, 2_700));
    assert_eq!(site.hear(R2, isatap::link_local(R2), &said), HostHeard::Stranger, "not on the list");
    assert_eq!(site.hear(R2, isatap::link_local(R1), &said), HostHeard::Stranger, "another sender's packet");
    assert_eq!(site.hear(R1, "fe80::1".parse().unwrap(), &said), HostHeard::Stranger, "no ISATAP address");
    assert!(site.host.addresses().is_empty() && site.default_router().is_none());
    let other_form = "fe80::200:5efe:a00:1".parse().unwrap();
    assert_eq!(site.hear(R1, other_form, &said), HostHeard::Advertisement);
    assert_eq!(site.route().unwrap().gateway, other_form);
}

#[test]
fn the_list_is_looked_up_again_after_an_hour_or_the_ttl() {
    let looked_up = |ttl: Option<u64>| {
        let mut site = Site::new(&[R1]);
        site.host.set_potential_routers(site.now, &[R1], ttl.map(Duration::from_secs));
        let start = site.now;
        site.pass(3_700);
        let at = site.done.iter().find(|(_, action)| *action == HostAction::LookUpRouters).map(|(at, _)| *at);
        (at.unwrap() - start).as_secs()
    };
    assert_eq!(looked_up(None), 3_600);
    assert_eq!(looked_up(Some(600)), 600);
    assert_eq!(looked_up(Some(86_400)), 3_600);
    assert_eq!(looked_up(Some(0)), 120, "before each event of solicitation");
}

#[test]
fn a_look_up_that_fails_is_tried_again() {
    let mut host = IsatapHost::new(HostSettings::new(LOCAL), 1, Instant::from_secs(5));
    assert_eq!(host.poll_action(Instant::from_secs(5)), Some(HostAction::LookUpRouters));
    let again = host.poll_timeout().unwrap();
    assert_eq!(again, Instant::from_secs(3_605));
    assert_eq!(host.poll_action(again), Some(HostAction::LookUpRouters));
}

#[test]
fn a_router_that_leaves_the_list_is_left_and_one_that_comes_is_solicited() {
    let mut site = Site::new(&[R1]);
    site.pass(2);
    site.advertise(R1, router(1_800));
    site.host.set_potential_routers(site.now, &[R2], None);
    site.pass(2);
    assert_eq!(site.default_router(), None);
    assert_eq!(site.solicitations(R2).len(), 1);
    assert_eq!(site.advertise(R1, router(1_800)), HostHeard::Stranger);
}

#[test]
fn a_router_that_stays_on_the_list_is_kept() {
    let mut site = Site::new(&[R1]);
    site.pass(2);
    site.advertise(R1, router(1_800));
    site.done.clear();
    site.host.set_potential_routers(site.now, &[R2, R1], None);
    site.pass(60);
    assert!(!site.done.iter().any(|(_, action)| *action == HostAction::RemoveDefaultRoute));
    assert!(site.solicitations(R1).is_empty());
}

#[test]
fn the_list_is_bounded_and_has_nobody_twice_and_not_the_host_itself() {
    let mut site = Site::new(&[R1, R1, LOCAL, Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST]);
    assert_eq!(site.host.routers(site.now).count(), 1);
    let many: Vec<_> = (1..100).map(|number| Ipv4Addr::new(10, 1, 0, number)).collect();
    site.host.set_potential_routers(site.now, &many, None);
    assert_eq!(site.host.routers(site.now).count(), MAX_ROUTERS);
}

#[test]
fn a_router_that_says_farewell_is_left_for_another() {
    let mut site = Site::new(&[R1, R2]);
    site.pass(2);
    site.advertise(R1, router(1_800));
    site.advertise(R2, router(1_800));
    assert_eq!(site.default_router(), Some(R1));
    site.advertise(R1, router(0));
    assert_eq!(site.default_router(), Some(R2));
    site.advertise(R2, router(0));
    assert_eq!(site.default_router(), None);
}

#[test]
fn a_default_router_ends_with_its_lifetime() {
    let mut site = Site::new(&[R1]);
    site.pass(2);
    site.advertise(R1, router(1_800));
    site.pass(1_799);
    assert_eq!(site.default_router(), Some(R1));
    site.pass(2);
    assert_eq!(site.default_router(), None);
}

#[test]
fn the_preferred_router_is_chosen() {
    let mut site = Site::new(&[R1, R2]);
    site.pass(2);
    site.advertise(R1, router(1_800));
    assert_eq!(site.default_router(), Some(R1));
    site.advertise(R2, RouterAdvertisement { preference: Preference::High, ..router(1_800) });
    assert_eq!(site.default_router(), Some(R2));
    site.advertise(R2, RouterAdvertisement { preference: Preference::Low, ..router(1_800) });
    assert_eq!(site.default_router(), Some(R1));
}

#[test]
fn mtu_and_hop_limit_are_taken_and_an_mtu_below_1280_is_not() {
    let mut site = Site::new(&[R1]);
    site.pass(2);
    let said =
        |mtu| RouterAdvertisement { hop_limit: 64, options: vec![NdOption::Mtu(mtu)], ..router(1_800) };
    site.advertise(R1, said(1_279));
    assert_eq!((site.route().unwrap().mtu, site.route().unwrap().hop_limit), (None, Some(64)));
    site.advertise(R1, said(1_400));
    assert_eq!(site.route().unwrap().mtu, Some(1_400));
    site.advertise(R1, router(1_800));
    assert_eq!(site.route().unwrap().mtu, Some(1_400), "what is not said stays");
}

#[test]
fn a_host_with_another_ipv4_address_begins_again() {
    let mut site = Site::new(&[R1]);
    site.pass(2);
    site.advertise(R1, with_prefix(5_400, 2_700));
    let old = site.host.addresses()[0].address;
    site.done.clear();
    site.host.set_local(site.now, Ipv4Addr::new(10, 0, 0, 9));
    site.pass(2);
    let actions: Vec<_> = site.done.iter().map(|(_, action)| action.clone()).collect();
    assert_eq!(actions[..2], [HostAction::RemoveDefaultRoute, HostAction::RemoveAddress(old)]);
    assert_eq!(site.sent()[0].1.source, "fe80::5efe:a00:9".parse::<Ipv6Addr>().unwrap());
}

#[test]
fn a_host_that_ends_leaves_nothing_behind() {
    let mut site = Site::new(&[R1]);
    site.pass(2);
    site.advertise(R1, with_prefix(5_400, 2_700));
    let address = site.host.addresses()[0].address;
    site.done.clear();
    site.host.shut_down();
    site.drain();
    let actions: Vec<_> = site.done.iter().map(|(_, action)| action.clone()).collect();
    assert_eq!(actions, [HostAction::RemoveDefaultRoute, HostAction::RemoveAddress(address)]);
    assert_eq!(site.host.poll_timeout(), None);
}

#[test]
fn our_own_router_and_host_understand_one_another() {
    let mut site = Site::new(&[R1]);
    let prefixes = vec![AdvertisedPrefix::changing(prefix("2001:db8:1::/64"))];
    let settings = Settings { prefixes, ..Settings::default() };
    let mut router =
        RouterAdvert::new(Link::Isatap { local: R1, mtu: 1_280 }, settings, 9, site.now).unwrap();
    let end = site.now + Duration::from_secs(24 * 3_600);
    while site.now < end {
        site.host.note_traffic(site.now);
        site.done.clear();
        site.pass(1);
        for (_, sent, message) in site.sent() {
            let octets = message.to_octets(sent.source, sent.destination);
            let received = Received {
                source: sent.source,
                destination: sent.destination,
                hop_limit: 255,
                outer_source: Some(LOCAL),
                message: &octets,
            };
            router.handle_message(site.now, &received).unwrap();
        }
        while let Some(answer) = router.poll_transmit(site.now) {
            assert_eq!(answer.outer_destination, Some(LOCAL));
            let packet = answer.packet();
            let received = Received { outer_source: Some(R1), ..Received::from_packet(&packet).unwrap() };
            site.host.handle_message(site.now, &received).unwrap();
        }
        if site.now > Instant::from_secs(1_000) + Duration::from_secs(5) {
            let address = site.host.addresses()[0];
            assert_eq!(address.address, "2001:db8:1::5efe:a00:7".parse::<Ipv6Addr>().unwrap());
            assert!(address.preferred(site.now) > 0);
            let shown = site.host.routers(site.now).next().unwrap();
            assert!(shown.in_use && !shown.failed);
        }
    }
}
