//! RFC 4861 §7.2.4: a host answers for its own addresses.

use super::*;
use sixway_control::neighbour_discovery::{Malformed, NeighbourSolicitation, RouterSolicitation};

const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 8);

fn site() -> Site {
    let mut site = Site::new(&[R1]);
    site.pass(2);
    site.advertise(R1, with_prefix(5_400, 2_700));
    site.pass(10);
    site.done.clear();
    site
}

fn ask(site: &mut Site, outer: Ipv4Addr, source: Ipv6Addr, target: Ipv6Addr) -> HostHeard {
    let asked = NeighbourSolicitation { target, options: vec![] };
    site.hear(outer, source, &Message::NeighbourSolicitation(asked))
}

#[test]
fn a_neighbour_that_probes_an_address_has_an_answer_of_a_host() {
    let mut site = site();
    for target in [site.host.link_local(), site.host.addresses()[0].address] {
        site.done.clear();
        assert_eq!(ask(&mut site, PEER, isatap::link_local(PEER), target), HostHeard::Solicitation);
        let sent = site.sent();
        let [(_, sent, Message::NeighbourAdvertisement(said))] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!((sent.source, sent.outer_destination), (target, Some(PEER)));
        assert!(!said.router && said.solicited && !said.overrides);
        assert_eq!(said.target, target);
    }
}

#[test]
fn nobody_is_answered_for_an_address_of_others_or_with_a_forged_source() {
    let mut site = site();
    let own = site.host.link_local();
    assert_eq!(ask(&mut site, PEER, isatap::link_local(PEER), isatap::link_local(R2)), HostHeard::NotForUs);
    assert_eq!(ask(&mut site, PEER, isatap::link_local(R2), own), HostHeard::NotForUs);
    assert!(site.sent().is_empty());
}

#[test]
fn a_host_discards_router_solicitations() {
    let mut site = site();
    let message = Message::RouterSolicitation(RouterSolicitation::default());
    assert_eq!(site.hear(PEER, isatap::link_local(PEER), &message), HostHeard::NotForUs);
    assert!(site.sent().is_empty());
}

#[test]
fn a_malformed_message_says_why_it_is_discarded() {
    let mut site = site();
    let message = [134, 0, 0, 0];
    let (source, destination) = (isatap::link_local(R1), site.host.link_local());
    let received = Received { source, destination, hop_limit: 1, outer_source: Some(R1), message: &message };
    assert_eq!(site.host.handle_message(site.now, &received), Err(Malformed::HopLimit));
}

#[test]
fn a_flood_of_probes_is_answered_up_to_a_bound_in_a_second() {
    let mut site = site();
    let own = site.host.link_local();
    let answered = (0..10_000)
        .filter(|_| ask(&mut site, PEER, isatap::link_local(PEER), own) == HostHeard::Solicitation)
        .count();
    assert_eq!(answered, 256);
}
