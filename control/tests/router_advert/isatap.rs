//! RFC 5214 §8.2 and §8.4: only solicitations are answered, through the tunnel.

use super::*;
use sixway_control::isatap;
use sixway_control::neighbour_discovery::{NeighbourAdvertisement, NeighbourSolicitation};
use sixway_control::router_advert::{AdvertisedPrefix, MAX_WAITING};

const LOCAL: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 7);

fn tunnel() -> Site {
    let prefixes = vec![AdvertisedPrefix::lasting(prefix("2001:db8:1::/64"))];
    Site::with_seed(
        Link::Isatap { local: LOCAL, mtu: 1_280 },
        Settings { prefixes, ..Settings::default() },
        1,
    )
}

fn solicit(site: &mut Site, source: Ipv6Addr, outer: Ipv4Addr) -> Heard {
    site.hear(source, Some(outer), &Message::RouterSolicitation(RouterSolicitation::default())).unwrap()
}

#[test]
fn nothing_is_said_unasked() {
    let mut site = tunnel();
    site.pass(Duration::from_secs(100_000));
    site.router.shut_down();
    site.pass(Duration::from_secs(100));
    assert!(site.sent.is_empty() && site.router.is_over());
}

#[test]
fn the_soliciting_host_is_answered_through_the_tunnel() {
    let mut site = tunnel();
    let asked = site.now;
    assert_eq!(solicit(&mut site, isatap::link_local(HOST), HOST), Heard::Solicitation);
    site.pass(Duration::from_secs(1));
    assert_eq!(site.sent.len(), 1);
    let (at, sent) = &site.sent[0];
    assert!(*at - asked <= seconds(0.5));
    assert_eq!((sent.source, sent.destination), (isatap::link_local(LOCAL), isatap::link_local(HOST)));
    assert_eq!(sent.outer_destination, Some(HOST));
    let said = site.last();
    assert_eq!(prefixes_in(&said).len(), said.options.len(), "no link-layer address");
}

#[test]
fn a_host_is_answered_at_whichever_of_its_addresses_it_asks_from() {
    for source in ["fe80::200:5efe:a00:7", "2001:db8:1::5efe:a00:7"] {
        let mut site = tunnel();
        let source = source.parse().unwrap();
        assert_eq!(solicit(&mut site, source, HOST), Heard::Solicitation);
        site.pass(Duration::from_secs(1));
        assert_eq!(site.sent[0].1.destination, source);
    }
}

#[test]
fn a_solicitation_whose_sender_is_not_the_tunnels_is_not_answered() {
    let mut site = tunnel();
    for source in ["::", "fe80::1", "fe80::5efe:a00:8", "2001:db8:1::5efe:a00:8"] {
        assert_eq!(solicit(&mut site, source.parse().unwrap(), HOST), Heard::NotForUs, "{source}");
    }
    site.pass(Duration::from_secs(1));
    assert!(site.sent.is_empty());
}

#[test]
fn a_flood_of_solicitations_is_answered_up_to_a_bound() {
    let mut site = tunnel();
    for number in 0..10_000u32 {
        let outer = Ipv4Addr::from_bits(HOST.to_bits() + number);
        let heard = solicit(&mut site, isatap::link_local(outer), outer);
        let expected = if number < MAX_WAITING as u32 { Heard::Solicitation } else { Heard::TooMany };
        assert_eq!(heard, expected);
    }
    site.pass(Duration::from_secs(1));
    assert_eq!(site.sent.len(), MAX_WAITING);
    assert_eq!(site.router.counters().too_many, 10_000 - MAX_WAITING as u64);
}

fn ask_for(site: &mut Site, source: Ipv6Addr, outer: Ipv4Addr, target: Ipv6Addr) -> Heard {
    let solicitation = NeighbourSolicitation { target, options: vec![] };
    site.hear(source, Some(outer), &Message::NeighbourSolicitation(solicitation)).unwrap()
}

#[test]
fn a_host_that_probes_the_router_has_an_answer_from_the_address_it_asked_for() {
    let mut site = tunnel();
    for target in [isatap::link_local(LOCAL), isatap::address(prefix("2001:db8:1::/64"), LOCAL)] {
        site.sent.clear();
        assert_eq!(ask_for(&mut site, isatap::link_local(HOST), HOST, target), Heard::Neighbour);
        site.pass(Duration::ZERO);
        let sent = &site.sent[0].1;
        assert_eq!((sent.source, sent.destination), (target, isatap::link_local(HOST)));
        assert_eq!(sent.outer_destination, Some(HOST));
        let packet = sent.packet();
        let answer = Message::parse(&Received::from_packet(&packet).unwrap()).unwrap();
        let (router, solicited, overrides, options) = (true, true, false, vec![]);
        let expected = NeighbourAdvertisement { router, solicited, overrides, target, options };
        assert_eq!(answer, Message::NeighbourAdvertisement(expected));
    }
}

#[test]
fn probes_for_others_and_from_others_are_not_answered() {
    let mut site = tunnel();
    let (own, host) = (isatap::link_local(LOCAL), isatap::link_local(HOST));
    assert_eq!(ask_for(&mut site, host, HOST, host), Heard::NotForUs);
    assert_eq!(ask_for(&mut site, host, LOCAL, own), Heard::NotForUs);
    assert_eq!(ask_for(&mut site, "fe80::1".parse().unwrap(), HOST, own), Heard::NotForUs);
    site.pass(Duration::from_secs(1));
    assert!(site.sent.is_empty());
}

#[test]
fn a_flood_of_probes_is_answered_up_to_a_bound_in_a_second() {
    let mut site = tunnel();
    let mut answered = 0;
    for _ in 0..10_000 {
        if ask_for(&mut site, isatap::link_local(HOST), HOST, isatap::link_local(LOCAL)) == Heard::Neighbour {
            answered += 1;
        }
        site.pass(Duration::from_micros(200));
    }
    assert!((256..=3 * 256).contains(&answered), "{answered} in two seconds");
    assert_eq!(site.sent.len(), answered);
}

#[test]
fn on_a_lan_the_kernel_answers_for_neighbours() {
    let mut site = Site::lan(Settings::default());
    let solicitation = NeighbourSolicitation { target: ROUTER, options: vec![] };
    let heard = site.hear(host(1), None, &Message::NeighbourSolicitation(solicitation));
    assert_eq!(heard, Ok(Heard::NotForUs));
}
