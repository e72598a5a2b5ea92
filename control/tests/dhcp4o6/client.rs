//! The client, by hand.

use super::at;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_control::dhcp4o6::{
    Client, ClientEvent, ClientSettings, ClientState, Dhcpv4, Envelope, Ignored, MessageKind,
};

const TUNNEL: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xa, 0, 0, 0, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const LEASED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 17);

fn client(remembered: Option<Ipv4Addr>) -> Client {
    let settings = ClientSettings { tunnel: TUNNEL, client_id: vec![255, 0, 0, 0, 1, 0, 4, 9] };
    Client::new(settings, remembered, 5)
}

/// What it sends now, and whether the Unicast flag is set.
fn sent(client: &mut Client, seconds: u64) -> Option<(Dhcpv4, bool)> {
    let octets = client.poll_transmit(at(seconds))?;
    let envelope = Envelope::parse(&octets).unwrap();
    assert!(!envelope.is_response);
    Some((Dhcpv4::parse(&envelope.dhcpv4).unwrap(), envelope.is_unicast))
}

fn reply(asked: &Dhcpv4, kind: MessageKind) -> Dhcpv4 {
    Dhcpv4 {
        is_reply: true,
        hardware: asked.hardware.clone(),
        yiaddr: LEASED,
        server: Some(SERVER),
        lease_time: Some(3_600),
        ..Dhcpv4::new(kind, asked.xid)
    }
}

fn hears(client: &mut Client, seconds: u64, reply: &Dhcpv4) -> Result<(), Ignored> {
    let response = Envelope { is_response: true, ..Envelope::query(reply.to_octets(), false) };
    client.handle_response(at(seconds), &response.to_octets())
}

fn bound() -> Client {
    let mut client = client(None);
    client.want(at(0));
    let (asked, _) = sent(&mut client, 0).unwrap();
    hears(&mut client, 0, &reply(&asked, MessageKind::Offer)).unwrap();
    let (asked, _) = sent(&mut client, 0).unwrap();
    hears(&mut client, 0, &reply(&asked, MessageKind::Ack)).unwrap();
    assert_eq!(client.poll_event(), Some(ClientEvent::Bound(LEASED, at(3_600))));
    client
}

#[test]
fn a_lease_is_discovered_and_requested_as_rfc_2131_says() {
    let mut client = client(None);
    assert_eq!(client.poll_transmit(at(0)), None);
    client.want(at(0));
    let (asked, is_unicast) = sent(&mut client, 0).unwrap();
    assert_eq!((asked.kind, is_unicast, asked.softwire_source), (MessageKind::Discover, false, Some(TUNNEL)));
    assert_eq!(asked.hardware, (36, TUNNEL.octets().to_vec()));
    assert!(!asked.client_id.is_empty(), "RFC 7341 §9");
    hears(&mut client, 1, &reply(&asked, MessageKind::Offer)).unwrap();
    let (asked, is_unicast) = sent(&mut client, 1).unwrap();
    assert_eq!((asked.requested, asked.server, is_unicast), (Some(LEASED), Some(SERVER), false));
    hears(&mut client, 2, &reply(&asked, MessageKind::Ack)).unwrap();
    assert_eq!(client.poll_event(), Some(ClientEvent::Bound(LEASED, at(3_601))));
    assert_eq!(client.poll_timeout(), Some(at(1_801)));
}

#[test]
fn a_client_that_had_an_address_gets_it_by_one_round_trip() {
    let mut client = client(Some(LEASED));
    client.want(at(0));
    let (asked, is_unicast) = sent(&mut client, 0).unwrap();
    assert_eq!((asked.kind, asked.requested, asked.server), (MessageKind::Request, Some(LEASED), None));
    assert!(!is_unicast);
    hears(&mut client, 0, &reply(&asked, MessageKind::Ack)).unwrap();
    assert!(matches!(client.state(), ClientState::Bound(_)));
}

#[test]
fn an_address_that_is_refused_or_not_answered_is_given_up_for_another() {
    let mut refused = client(Some(LEASED));
    refused.want(at(0));
    let (asked, _) = sent(&mut refused, 0).unwrap();
    hears(&mut refused, 0, &reply(&asked, MessageKind::Nak)).unwrap();
    assert_eq!(sent(&mut refused, 0).unwrap().0.requested, None);
    let mut silent = client(Some(LEASED));
    silent.want(at(0));
    let kinds: Vec<MessageKind> =
        (0..15).filter_map(|second| Some(sent(&mut silent, second)?.0.kind)).collect();
    assert_eq!(kinds, [MessageKind::Request, MessageKind::Request, MessageKind::Discover]);
}

#[test]
fn retransmissions_are_rarer_each_time_and_spread() {
    // RFC 2131 §4.1: 4, 8, 16, 32, 64 s, each by up to a second to either side.
    let mut client = client(None);
    client.want(at(0));
    let times: Vec<u64> = (0..400).filter(|second| sent(&mut client, *second).is_some()).collect();
    let pauses: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (pause, expected) in pauses.iter().zip([4, 8, 16, 32, 64, 64, 64]) {
        assert!((expected - 1..=expected + 2).contains(pause), "{pauses:?}");
    }
}

#[test]
fn a_lease_is_renewed_then_rebound_then_lost() {
    let mut client = bound();
    let mut messages = Vec::new();
    for second in 0..3_700 {
        if let Some((asked, is_unicast)) = sent(&mut client, second) {
            messages.push((second, asked.kind, is_unicast, asked.ciaddr));
        }
    }
    // T1 with the Unicast flag, T2 without (RFC 7341 §8).
    let renewals: Vec<_> = messages.iter().filter(|message| message.2).collect();
    let rest: Vec<_> = messages.iter().filter(|message| !message.2).collect();
    assert_eq!(*renewals[0], (1_800, MessageKind::Request, true, LEASED));
    assert!(renewals.iter().all(|message| message.0 < 3_150));
    assert_eq!(*rest[0], (3_150, MessageKind::Request, false, LEASED));
    assert!(rest.iter().any(|message| message.0 == 3_600 && message.1 == MessageKind::Discover));
    assert_eq!(client.poll_event(), Some(ClientEvent::Lost));
}

#[test]
fn a_renewed_lease_lasts_from_its_request_on() {
    let mut client = bound();
    let (asked, _) = sent(&mut client, 1_800).unwrap();
    hears(&mut client, 1_803, &reply(&asked, MessageKind::Ack)).unwrap();
    assert_eq!(client.poll_event(), Some(ClientEvent::Bound(LEASED, at(5_400))));
}

#[test]
fn a_release_ends_the_lease_at_once_and_the_address_is_remembered() {
    let mut client = bound();
    client.release(at(10));
    assert_eq!(client.poll_event(), Some(ClientEvent::Lost));
    let (last, is_unicast) = sent(&mut client, 10).unwrap();
    assert_eq!((last.kind, last.ciaddr, last.server), (MessageKind::Release, LEASED, Some(SERVER)));
    assert!(is_unicast);
    assert_eq!((sent(&mut client, 10), client.poll_timeout()), (None, None));
    client.want(at(20));
    assert_eq!(sent(&mut client, 20).unwrap().0.requested, Some(LEASED));
}

#[test]
fn a_declined_address_is_not_asked_for_again() {
    let mut client = bound();
    client.decline(at(10));
    let (last, _) = sent(&mut client, 10).unwrap();
    assert_eq!((last.kind, last.requested, last.server), (MessageKind::Decline, Some(LEASED), Some(SERVER)));
    assert_eq!(sent(&mut client, 19), None);
    let (asked, _) = sent(&mut client, 20).unwrap();
    assert_eq!((asked.kind, asked.requested), (MessageKind::Discover, None));
}

#[test]
fn forged_and_stray_responses_change_nothing() {
    let mut client = client(None);
    client.want(at(0));
    let (asked, _) = sent(&mut client, 0).unwrap();
    let good = reply(&asked, MessageKind::Offer);
    for forged in [
        Dhcpv4 { xid: asked.xid ^ 1, ..good.clone() },
        Dhcpv4 { hardware: (36, vec![1; 16]), ..good.clone() },
    ] {
        assert_eq!(hears(&mut client, 0, &forged), Err(Ignored::NotForUs));
    }
    assert_eq!(hears(&mut client, 0, &reply(&asked, MessageKind::Ack)), Err(Ignored::Unexpected));
    assert_eq!(hears(&mut client, 0, &reply(&asked, MessageKind::Nak)), Err(Ignored::Unexpected));
    assert_eq!(hears(&mut client, 0, &asked), Err(Ignored::NotAResponse));
    for unusable in [Ipv4Addr::UNSPECIFIED, Ipv4Addr::LOCALHOST, Ipv4Addr::new(224, 0, 0, 1)] {
        let offer = Dhcpv4 { yiaddr: unusable, ..good.clone() };
        assert_eq!(hears(&mut client, 0, &offer), Err(Ignored::Unusable));
    }
    assert_eq!(client.state(), ClientState::Selecting);
    // From another server than the one whose offer was taken.
    hears(&mut client, 0, &good).unwrap();
    let (asked, _) = sent(&mut client, 0).unwrap();
    let other = Dhcpv4 { server: Some(Ipv4Addr::new(203, 0, 113, 1)), ..reply(&asked, MessageKind::Ack) };
    assert_eq!(hears(&mut client, 0, &other), Err(Ignored::Unexpected));
    assert_eq!(hears(&mut client, 0, &Dhcpv4 { kind: MessageKind::Nak, ..other }), Err(Ignored::Unexpected));
    assert_eq!(client.poll_event(), None);
}

/// RFC 7341 §9: without a server there is nobody to ask, but the lease still ends.
#[test]
fn a_lease_that_nobody_can_renew_ends_at_its_time() {
    let mut client = bound();
    let end = client.held().unwrap().times[2];
    client.expire(sixway_control::Instant(end.0 - 1));
    assert!(client.held().is_some());
    while client.poll_event().is_some() {}
    client.expire(end);
    assert_eq!((client.held(), client.poll_event()), (None, Some(ClientEvent::Lost)));
}
