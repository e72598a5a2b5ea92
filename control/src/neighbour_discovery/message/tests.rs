//! Each validity check of RFC 4861 §6.1 and §7.1 by a message that fails it alone.

use super::super::option::tests::any_option;
use super::*;
use crate::neighbour_discovery::{ALL_NODES, ALL_ROUTERS};
use proptest::collection::vec;
use proptest::prelude::*;

const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const HOST: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);
const SOLICITED_NODE: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 1);
const NOBODY: Ipv6Addr = Ipv6Addr::UNSPECIFIED;

/// What is read of these octets, their checksum made right.
fn read(source: Ipv6Addr, destination: Ipv6Addr, octets: &[u8]) -> Result<Message, Malformed> {
    let mut message = octets.to_vec();
    if message.len() >= 4 {
        message[2..4].fill(0);
        let sum = checksum::pseudo6(source, destination, protocol::ICMPV6, message.len() as u32);
        let sum = sum.bytes(&message).checksum();
        message[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    let outer_source = None;
    Message::parse(&Received { source, destination, hop_limit: 255, outer_source, message: &message })
}

fn ra() -> Vec<u8> {
    Message::RouterAdvertisement(RouterAdvertisement::default()).to_octets(ROUTER, ALL_NODES)
}

fn rs() -> Vec<u8> {
    Message::RouterSolicitation(RouterSolicitation::default()).to_octets(HOST, ALL_ROUTERS)
}

fn ns(target: Ipv6Addr) -> Vec<u8> {
    let solicitation = NeighbourSolicitation { target, options: vec![] };
    Message::NeighbourSolicitation(solicitation).to_octets(HOST, ROUTER)
}

fn na(solicited: bool, target: Ipv6Addr) -> Vec<u8> {
    let (router, overrides, options) = (true, false, vec![]);
    let advertisement = NeighbourAdvertisement { router, solicited, overrides, target, options };
    Message::NeighbourAdvertisement(advertisement).to_octets(ROUTER, HOST)
}

/// The messages, each with addresses that it may have.
fn samples() -> [(Ipv6Addr, Ipv6Addr, Vec<u8>); 4] {
    [
        (HOST, ALL_ROUTERS, rs()),
        (ROUTER, ALL_NODES, ra()),
        (HOST, ROUTER, ns(ROUTER)),
        (ROUTER, HOST, na(true, ROUTER)),
    ]
}

#[test]
fn each_message_is_read_as_it_was_written() {
    for (source, destination, octets) in samples() {
        let message = read(source, destination, &octets).unwrap();
        assert_eq!(message.to_octets(source, destination), octets);
    }
}

#[test]
fn a_router_advertisement_stands_as_section_4_2_draws_it() {
    let advertisement = RouterAdvertisement {
        hop_limit: 64,
        managed: true,
        other: false,
        preference: Preference::High,
        router_lifetime: 1_800,
        reachable_time: 30_000,
        retrans_timer: 1_000,
        options: vec![NdOption::Mtu(1_280)],
    };
    let octets = Message::RouterAdvertisement(advertisement).to_octets(ROUTER, ALL_NODES);
    let expected = [64, 0b1000_1000, 7, 8, 0, 0, 0x75, 0x30, 0, 0, 3, 0xe8, 5, 1, 0, 0, 0, 0, 5, 0];
    assert_eq!((&octets[..2], &octets[4..]), (&[134, 0][..], &expected[..]));
}

#[test]
fn a_hop_limit_below_255_is_refused() {
    for (source, destination, message) in samples() {
        let received =
            Received { source, destination, hop_limit: 254, outer_source: None, message: &message };
        assert_eq!(Message::parse(&received), Err(Malformed::HopLimit));
    }
}

#[test]
fn a_wrong_checksum_is_refused() {
    for (source, destination, mut message) in samples() {
        message[3] ^= 1;
        let received =
            Received { source, destination, hop_limit: 255, outer_source: None, message: &message };
        assert_eq!(Message::parse(&received), Err(Malformed::Checksum));
    }
}

#[test]
fn a_code_that_is_not_zero_is_refused() {
    for (source, destination, mut message) in samples() {
        message[1] = 1;
        assert_eq!(read(source, destination, &message), Err(Malformed::Code));
    }
}

#[test]
fn a_message_cut_within_its_fixed_part_is_refused() {
    for (source, destination, message) in samples() {
        for length in 0..message.len() {
            assert_eq!(read(source, destination, &message[..length]), Err(Malformed::TooShort), "{length}");
        }
    }
}

#[test]
fn an_option_of_length_zero_refuses_every_message() {
    for (source, destination, mut message) in samples() {
        message.extend([253, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(read(source, destination, &message), Err(Malformed::ZeroLengthOption));
    }
}

#[test]
fn an_option_beyond_the_end_refuses_every_message() {
    for (source, destination, mut message) in samples() {
        message.extend([253, 2, 0, 0, 0, 0, 0, 0]);
        assert_eq!(read(source, destination, &message), Err(Malformed::OptionBeyondEnd));
    }
}

#[test]
fn unknown_options_and_reserved_fields_are_ignored() {
    for (source, destination, message) in samples() {
        let plain = read(source, destination, &message).unwrap();
        let mut more = message.clone();
        more.extend([253, 1, 1, 2, 3, 4, 5, 6]);
        match plain {
            Message::RouterSolicitation(_) | Message::NeighbourSolicitation(_) => more[4..8].fill(0xff),
            Message::RouterAdvertisement(_) => more[5] |= 0x27,
            Message::NeighbourAdvertisement(_) => {
                more[4] |= 0x1f;
                more[5..8].fill(0xff);
            }
        }
        assert_eq!(read(source, destination, &more), Ok(plain));
    }
}

#[test]
fn a_source_link_layer_address_of_nobody_is_refused() {
    let option = [1, 1, 2, 0, 0, 0, 0, 1];
    let with = |message: Vec<u8>| [message, option.to_vec()].concat();
    assert_eq!(read(NOBODY, ALL_ROUTERS, &with(rs())), Err(Malformed::LinkLayerOfNobody));
    assert!(read(NOBODY, ALL_ROUTERS, &rs()).is_ok());
    assert!(read(HOST, ALL_ROUTERS, &with(rs())).is_ok());
    assert_eq!(read(NOBODY, SOLICITED_NODE, &with(ns(ROUTER))), Err(Malformed::LinkLayerOfNobody));
    assert!(read(NOBODY, SOLICITED_NODE, &ns(ROUTER)).is_ok());
}

#[test]
fn a_solicitation_of_nobody_goes_to_a_solicited_node_address_only() {
    assert_eq!(read(NOBODY, ROUTER, &ns(ROUTER)), Err(Malformed::NotSolicitedNode));
    assert_eq!(read(NOBODY, ALL_NODES, &ns(ROUTER)), Err(Malformed::NotSolicitedNode));
}

#[test]
fn a_router_advertisement_from_an_address_that_is_not_link_local_is_refused() {
    let global: Ipv6Addr = "2001:db8::1".parse().unwrap();
    for source in [global, NOBODY, "fec0::1".parse().unwrap()] {
        assert_eq!(read(source, ALL_NODES, &ra()), Err(Malformed::NotLinkLocal));
    }
}

#[test]
fn a_multicast_target_is_refused() {
    assert_eq!(read(HOST, ROUTER, &ns(ALL_NODES)), Err(Malformed::MulticastTarget));
    assert_eq!(read(ROUTER, HOST, &na(true, ALL_NODES)), Err(Malformed::MulticastTarget));
}

#[test]
fn a_multicast_advertisement_that_claims_to_be_solicited_is_refused() {
    assert_eq!(read(ROUTER, ALL_NODES, &na(true, ROUTER)), Err(Malformed::SolicitedMulticast));
    assert!(read(ROUTER, ALL_NODES, &na(false, ROUTER)).is_ok());
}

#[test]
fn a_multicast_source_and_another_type_are_refused() {
    assert_eq!(read(ALL_NODES, ALL_ROUTERS, &rs()), Err(Malformed::MulticastSource));
    for kind in [1, 128, 132, 137] {
        let mut other = rs();
        other[0] = kind;
        assert_eq!(read(HOST, ALL_ROUTERS, &other), Err(Malformed::OtherType));
    }
}

#[test]
fn the_reserved_preference_and_that_of_no_default_router_count_as_medium() {
    let preference = |bits: u8, lifetime: u8| {
        let mut octets = ra();
        (octets[5], octets[7]) = (bits << 3, lifetime);
        match read(ROUTER, ALL_NODES, &octets) {
            Ok(Message::RouterAdvertisement(advertisement)) => advertisement.preference,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(preference(0b10, 9), Preference::Medium);
    assert_eq!(preference(0b01, 9), Preference::High);
    assert_eq!(preference(0b11, 9), Preference::Low);
    assert_eq!(preference(0b01, 0), Preference::Medium);
}

#[test]
fn a_router_that_is_not_a_default_router_sends_no_preference() {
    let preference = Preference::High;
    let advertisement = RouterAdvertisement { preference, router_lifetime: 0, ..Default::default() };
    assert_eq!(Message::RouterAdvertisement(advertisement).to_octets(ROUTER, ALL_NODES)[5], 0);
}

fn any_ra() -> impl Strategy<Value = RouterAdvertisement> {
    let fields = (any::<u8>(), any::<(bool, bool)>(), 1u16.., any::<u32>(), any::<u32>());
    let preference = prop::sample::select(vec![Preference::High, Preference::Medium, Preference::Low]);
    (fields, preference, vec(any_option(), 0..6)).prop_map(|(fields, preference, options)| {
        let (hop_limit, (managed, other), router_lifetime, reachable_time, retrans_timer) = fields;
        let (router_lifetime, reachable_time) = (router_lifetime, reachable_time);
        RouterAdvertisement {
            hop_limit,
            managed,
            other,
            preference,
            router_lifetime,
            reachable_time,
            retrans_timer,
            options,
        }
    })
}

proptest! {
    #[test]
    fn every_advertisement_comes_back_as_it_went(advertisement in any_ra()) {
        let message = Message::RouterAdvertisement(advertisement);
        let octets = message.to_octets(ROUTER, ALL_NODES);
        prop_assert_eq!(read(ROUTER, ALL_NODES, &octets), Ok(message));
    }

    #[test]
    fn an_advertisement_cut_anywhere_but_between_options_is_refused(advertisement in any_ra()) {
        let octets = Message::RouterAdvertisement(advertisement.clone()).to_octets(ROUTER, ALL_NODES);
        let mut ends = vec![16];
        for option in &advertisement.options {
            ends.push(ends[ends.len() - 1] + option.length());
        }
        for length in 0..octets.len() {
            let outcome = read(ROUTER, ALL_NODES, &octets[..length]);
            prop_assert_eq!(outcome.is_ok(), ends.contains(&length), "cut at {}", length);
        }
    }

    #[test]
    fn any_octets_are_a_message_or_none(kind in 130u8..140, octets in vec(any::<u8>(), 0..120)) {
        let octets = [vec![kind, 0, 0, 0], octets].concat();
        for (source, destination, _) in samples() {
            let _ = read(source, destination, &octets);
        }
    }
}
