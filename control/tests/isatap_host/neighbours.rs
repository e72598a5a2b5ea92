//! RFC 4861 §7.2.4: a host answers for its own addresses.

use super::*;
use sixway_control::neighbour_discovery::{Malformed, NeighbourSolicitation, RouterSolicitation};
use sixway_wire::checksum::pseudo6;
use sixway_wire::protocol::ICMPV6;

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

/// RFC 4861 §6.2.4: whatever a host receives, and however long it runs, it is not a router.
#[test]
fn a_host_never_sends_an_advertisement() {
    let mut site = Site::new(&[R1, R2]);
    let solicitation = Message::RouterSolicitation(RouterSolicitation::default());
    for _ in 0..50 {
        site.hear(PEER, isatap::link_local(PEER), &solicitation);
        site.advertise(R1, with_prefix(5_400, 2_700));
        let own = site.host.addresses()[0].address;
        ask(&mut site, PEER, isatap::link_local(PEER), own);
        site.host.report_path_error(site.now, R1);
        site.pass_with_traffic(200);
    }
    site.host.shut_down();
    site.pass(100);
    let sent = site.sent();
    assert!(sent.len() > 100, "it does speak");
    for (_, _, message) in sent {
        assert!(!matches!(message, Message::RouterAdvertisement(_)), "{message:?}");
        let Message::NeighbourAdvertisement(said) = message else { continue };
        assert!(!said.router);
    }
}

/// RFC 4861 §6.1.1, §6.1.2, §7.1.1, §7.1.2: what such a message has no use for is passed over, and the message is heard.
#[test]
fn options_that_do_not_belong_to_a_message_are_ignored_and_the_message_is_heard() {
    let strange = vec![
        NdOption::TargetLinkLayer(vec![2, 0, 0, 0, 0, 9]),
        NdOption::Mtu(1_400),
        prefix_option("2001:db8:9::/64", 5_400, 2_700),
    ];
    let mut site = site();
    let (peer, target) = (isatap::link_local(PEER), site.host.link_local());
    let asked = NeighbourSolicitation { target, options: strange.clone() };
    assert_eq!(site.hear(PEER, peer, &Message::NeighbourSolicitation(asked)), HostHeard::Solicitation);
    let target = isatap::link_local(R1);
    let (router, solicited, overrides, options) = (true, true, false, strange);
    let said = NeighbourAdvertisement { router, solicited, overrides, target, options };
    assert_eq!(site.hear(R1, target, &Message::NeighbourAdvertisement(said)), HostHeard::Neighbour);
    let options = vec![
        NdOption::TargetLinkLayer(vec![2, 0, 0, 0, 0, 9]),
        prefix_option("2001:db8:2::/64", 5_400, 2_700),
    ];
    assert_eq!(
        site.advertise(R1, RouterAdvertisement { options, ..super::router(1_800) }),
        HostHeard::Advertisement
    );
    let prefixes: Vec<_> = site.host.addresses().iter().map(|known| known.prefix).collect();
    assert_eq!(
        prefixes,
        [prefix("2001:db8:1::/64"), prefix("2001:db8:2::/64")],
        "what the advertisements said"
    );
}

/// RFC 4861 §4.3: a probe as it is sent. It goes to the one node that it is about, so that the link-layer address is left out, and it comes
/// from an address of the interface.
#[test]
fn a_solicitation_is_written_as_section_4_3_draws_it() {
    let mut site = Site::new(&[R1]);
    site.pass(2);
    site.advertise(R1, router(1_800));
    site.pass(0);
    let sent = site.sent();
    let (_, sent, _) = sent.last().unwrap();
    let packet = sent.packet();
    let target = isatap::link_local(R1).octets();
    assert_eq!((packet[6], packet[7], packet.len()), (58, 255, 40 + 24), "no options");
    assert_eq!((&packet[8..24], &packet[24..40]), (&site.host.link_local().octets()[..], &target[..]));
    assert_eq!((packet[40], packet[41]), (135, 0));
    assert_eq!((&packet[44..48], &packet[48..64]), (&[0; 4][..], &target[..]), "Reserved is zero");
}

/// RFC 4861 §8: nothing is learnt from a redirect, whatever its sender.
#[test]
fn a_redirect_is_not_followed() {
    let mut site = site();
    let (source, destination) = (isatap::link_local(R1), site.host.link_local());
    let mut message = vec![137, 0, 0, 0, 0, 0, 0, 0];
    message.extend(isatap::link_local(R2).octets());
    message.extend("2001:db8:7::1".parse::<Ipv6Addr>().unwrap().octets());
    let sum = pseudo6(source, destination, ICMPV6, message.len() as u32).bytes(&message).checksum();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let received =
        Received { source, destination, hop_limit: 255, outer_source: Some(R1), message: &message };
    let before = site.route();
    assert_eq!(site.host.handle_message(site.now, &received), Err(Malformed::OtherType));
    site.drain();
    assert_eq!(site.route(), before);
    assert!(site.sent().is_empty());
}
