//! The client (RFC 4380 §5.2.3, §5.2.4).

use super::{
    LOCAL, NATIVE, SERVER, bubble, client, client6, datagram, mapped, packet, sends_to, sent_datagram,
};
use super::{advertisement, asks, with_teredo};
use crate::support::{Gateway, icmp6, v6};
use core::net::Ipv4Addr;
use core::time::Duration;
use sixway_dataplane::mechanism::teredo::{PeerState, TeredoChange, TeredoConfig, TeredoRole};
use sixway_dataplane::{DropReason, Verdict};
use sixway_wire::Endpoint4;
use sixway_wire::teredo::Origin;

const SECOND: Duration = Duration::from_secs(1);
/// A relay near the native host.
const RELAY: Endpoint4 = Endpoint4::new(Ipv4Addr::new(198, 51, 100, 77), 3_545);

/// A client with the address of number 0.
pub(super) fn qualified() -> Gateway {
    let mut gateway = with_teredo(TeredoConfig::new(TeredoRole::Client), |_| {});
    gateway.engine.change_teredo(0, &TeredoChange::Client(Some(client(0))), gateway.now);
    gateway
}

/// The reply to an echo request.
fn reply(request: &[u8]) -> Vec<u8> {
    let body = &request[48..];
    let identifier: [u8; 4] = request[44..48].try_into().unwrap();
    v6(NATIVE, &client6(0)).icmp(icmp6(129, 0, identifier, body)).octets()
}

/// The native host is a peer by its relay.
#[track_caller]
fn establish_native(gateway: &mut Gateway) {
    gateway.receives(packet(&client6(0), NATIVE));
    let (to, request) = sent_datagram(gateway);
    assert_eq!(to, SERVER);
    gateway.receives(datagram(RELAY, LOCAL, reply(&request)));
    sends_to(gateway, RELAY, packet(&client6(0), NATIVE));
}

/// The origin in a forwarded bubble is where its sender says that it is.
#[test]
fn bubbles_in_the_name_of_a_trusted_host_have_the_rate_of_a_sender_at_all_endpoints_but_its_own() {
    let mut gateway = qualified();
    establish_native(&mut gateway);
    let mut sent = 0;
    for number in 0..1_000 {
        let victim = Endpoint4::new(Ipv4Addr::from_bits(0x0505_0000 + number), 53);
        let payload = [&Origin(victim).octets()[..], &bubble(NATIVE, &client6(0))].concat();
        gateway.receives(datagram(SERVER, LOCAL, payload));
        while gateway.waiting() > 0 {
            assert_eq!(sent_datagram(&mut gateway).0, victim);
            sent += 1;
        }
    }
    assert_eq!(sent, 200);
}

/// §5.2.4, 2, and §5.2.9.
#[test]
fn a_native_host_is_tested_through_the_server_and_reached_by_the_relay_that_answers() {
    let mut gateway = qualified();
    gateway.receives(packet(&client6(0), NATIVE));
    assert_eq!(gateway.last, Verdict::Held);
    let (to, request) = sent_datagram(&mut gateway);
    assert_eq!((to, request[6], request[40]), (SERVER, 58, 128), "an echo request");
    let expected =
        v6(&client6(0), NATIVE).icmp(icmp6(128, 0, request[44..48].try_into().unwrap(), &request[48..]));
    assert_eq!(request, expected.octets(), "with a checksum");
    gateway.receives(datagram(RELAY, LOCAL, reply(&request)));
    assert_eq!(gateway.last, Verdict::Absorbed);
    sends_to(&mut gateway, RELAY, packet(&client6(0), NATIVE));
    gateway.receives(datagram(RELAY, LOCAL, packet(NATIVE, &client6(0))));
    gateway.sends(packet(NATIVE, &client6(0)));
}

/// §5.2.4, 2: repeated up to three times.
#[test]
fn a_native_host_that_does_not_answer_is_tested_four_times() {
    let mut gateway = qualified();
    gateway.receives(packet(&client6(0), NATIVE));
    let (_, first) = sent_datagram(&mut gateway);
    for _ in 0..3 {
        gateway.waits(2 * SECOND);
        assert_eq!(sent_datagram(&mut gateway), (SERVER, first.clone()));
    }
    gateway.waits(2 * SECOND);
    let error = gateway.sent();
    assert_eq!((error[40], error[41]), (1, 3));
    gateway.waits(2 * SECOND);
    gateway.sends_nothing();
}

/// §5.2.3, 2: the nonce.
#[test]
fn a_reply_with_another_nonce_proves_nothing() {
    let mut gateway = qualified();
    gateway.receives(packet(&client6(0), NATIVE));
    let (_, request) = sent_datagram(&mut gateway);
    let mut forged = request.clone();
    forged[50] ^= 1;
    gateway.refuses(datagram(RELAY, LOCAL, reply(&forged)), DropReason::TeredoNotTrusted);
    gateway.receives(packet(&client6(0), NATIVE));
    assert_eq!(gateway.last, Verdict::Held);
}

#[test]
fn a_late_reply_proves_nothing() {
    let mut gateway = qualified();
    gateway.receives(packet(&client6(0), NATIVE));
    let (_, request) = sent_datagram(&mut gateway);
    (0..4).for_each(|_| gateway.waits(2 * SECOND));
    gateway.waits(8 * SECOND);
    while gateway.waiting() > 0 {
        gateway.sent();
    }
    gateway.refuses(datagram(RELAY, LOCAL, reply(&request)), DropReason::TeredoNotTrusted);
}

/// §5.2.3, 6: a trusted peer stays where it is while another endpoint claims to be its relay, and moves when that is proven.
#[test]
fn a_native_host_moves_to_another_relay_by_a_test_alone() {
    let mut gateway = qualified();
    establish_native(&mut gateway);
    let other = Endpoint4::new(Ipv4Addr::new(198, 51, 100, 78), 3_545);
    gateway.receives(datagram(other, LOCAL, packet(NATIVE, &client6(0))));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::TeredoNotTrusted));
    gateway.sends_nothing();
    gateway.waits(2 * SECOND);
    gateway.receives(datagram(other, LOCAL, packet(NATIVE, &client6(0))));
    let (to, request) = sent_datagram(&mut gateway);
    assert_eq!(to, SERVER);
    gateway.receives(packet(&client6(0), NATIVE));
    sends_to(&mut gateway, RELAY, packet(&client6(0), NATIVE));
    gateway.receives(datagram(other, LOCAL, reply(&request)));
    gateway.receives(packet(&client6(0), NATIVE));
    sends_to(&mut gateway, other, packet(&client6(0), NATIVE));
}

/// §5.2.4, 5.
#[test]
fn another_client_gets_a_bubble_directly_and_one_through_its_server() {
    let mut gateway = qualified();
    let (own, peer) = (client6(0), client6(1));
    gateway.receives(packet(&own, &peer));
    assert_eq!(gateway.last, Verdict::Held);
    sends_to(&mut gateway, mapped(1), bubble(&own, &peer));
    asks(&mut gateway, &own, &peer);
    gateway.receives(datagram(mapped(1), LOCAL, bubble(&peer, &own)));
    assert_eq!(gateway.last, Verdict::Absorbed);
    sends_to(&mut gateway, mapped(1), packet(&own, &peer));
}

/// §5.2.3, 3.
#[test]
fn a_client_whose_packet_comes_from_where_its_address_says_is_trusted() {
    let mut gateway = qualified();
    let (own, peer) = (client6(0), client6(1));
    gateway.receives(datagram(mapped(1), LOCAL, packet(&peer, &own)));
    gateway.sends(packet(&peer, &own));
    gateway.receives(packet(&own, &peer));
    sends_to(&mut gateway, mapped(1), packet(&own, &peer));
    let row = gateway.engine.teredo()[0].peer(peer.parse().unwrap(), gateway.now).unwrap();
    assert_eq!((row.state, row.endpoint), (PeerState::Established, mapped(1)));
    gateway.refuses(datagram(mapped(3), LOCAL, packet(&client6(2), &own)), DropReason::TeredoNotTrusted);
}

/// A bubble through the server asks for one: to the client, or to the relay that the origin indication names.
#[test]
fn a_bubble_from_the_server_is_answered_directly() {
    let mut gateway = qualified();
    let (own, peer) = (client6(0), client6(1));
    let with_origin = |origin: Endpoint4, source: &str| {
        let mut payload = Origin(origin).octets().to_vec();
        payload.extend(bubble(source, &client6(0)));
        payload
    };
    gateway.receives(datagram(SERVER, LOCAL, with_origin(mapped(1), &peer)));
    assert_eq!(gateway.last, Verdict::Absorbed);
    sends_to(&mut gateway, mapped(1), bubble(&own, &peer));
    asks(&mut gateway, &own, &peer);
    gateway.receives(datagram(SERVER, LOCAL, with_origin(RELAY, NATIVE)));
    sends_to(&mut gateway, RELAY, bubble(&own, NATIVE));
    assert_eq!(gateway.engine.teredo()[0].row().peers, [0, 1, 0, 0], "which trusts nobody");
}

/// A relay without a global address of its own sends such bubbles (miredo's does); from anybody else than the server they say nothing.
#[test]
fn a_bubble_of_a_relay_with_a_link_local_address_is_answered_if_it_came_through_the_server() {
    let mut gateway = qualified();
    let mut payload = Origin(RELAY).octets().to_vec();
    payload.extend(bubble("fe80::8000:5445:5245:444f", &client6(0)));
    gateway.receives(datagram(SERVER, LOCAL, payload.clone()));
    sends_to(&mut gateway, RELAY, bubble(&client6(0), "fe80::8000:5445:5245:444f"));
    gateway.refuses(datagram(mapped(5), LOCAL, payload), DropReason::TeredoUnexpected);
    gateway.refuses(
        datagram(RELAY, LOCAL, bubble("fe80::8000:5445:5245:444f", &client6(0))),
        DropReason::TeredoUnexpected,
    );
    assert_eq!(gateway.engine.teredo()[0].row().peers, [0, 0, 0, 0], "it is no peer");
}

#[test]
fn a_forged_origin_makes_a_client_send_to_no_local_network() {
    for address in ["10.0.0.1", "192.168.1.1", "127.0.0.1", "224.0.0.1", "255.255.255.255", "192.0.2.9"] {
        let mut gateway = qualified();
        let mut payload = Origin(Endpoint4::new(address.parse().unwrap(), 53)).octets().to_vec();
        payload.extend(bubble(NATIVE, &client6(0)));
        gateway.receives(datagram(SERVER, LOCAL, payload.clone()));
        gateway.sends_nothing();
        // And from anybody but the server it says nothing.
        gateway.refuses(datagram(mapped(5), LOCAL, payload), DropReason::TeredoUnexpected);
    }
}

#[test]
fn what_is_not_for_its_address_is_dropped_and_nothing_else_is_sent() {
    let mut gateway = qualified();
    gateway.refuses(
        datagram(mapped(1), LOCAL, packet(&client6(1), &client6(2))),
        DropReason::DestinationNotInSite,
    );
    gateway
        .refuses(datagram(mapped(0), LOCAL, packet(&client6(0), &client6(0))), DropReason::SourceNotInTunnel);
    gateway.refuses(packet(&client6(5), &client6(1)), DropReason::SourceNotOfSite);
    gateway.engine.change_teredo(0, &TeredoChange::Client(None), gateway.now);
    gateway.receives(packet(&client6(0), &client6(1)));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::NoRemote));
}

#[test]
fn advertisements_go_to_control_as_they_came() {
    let mut gateway = qualified();
    gateway.receives(datagram(SERVER, LOCAL, advertisement()));
    assert_eq!(gateway.last, Verdict::Control);
    gateway.sends_nothing();
    // Without a nonce, or of another kind, it is not what control has asked for.
    for payload in [advertisement()[13..].to_vec(), v6("fe80::1", "fe80::2").udp(1, 2, b"").octets()] {
        gateway.refuses(datagram(SERVER, LOCAL, payload), DropReason::TeredoUnexpected);
    }
}

#[test]
fn with_another_address_or_another_local_end_a_client_has_no_peers() {
    for change in [
        TeredoChange::Client(Some(client(5))),
        TeredoChange::Client(None),
        TeredoChange::Local(Some(Endpoint4::new(LOCAL.address, 9)), Vec::new()),
    ] {
        let mut gateway = qualified();
        establish_native(&mut gateway);
        gateway.receives(packet(&client6(0), &client6(1)));
        assert_eq!(gateway.last, Verdict::Held);
        gateway.engine.change_teredo(0, &change, gateway.now);
        assert_eq!(gateway.engine.teredo()[0].row().peers, [0; 4]);
        let counters = gateway.engine.counters();
        assert_eq!((counters.held, counters.dropped[DropReason::TeredoUnreachable as usize]), (0, 1));
    }
    // The same again is not a change.
    let mut gateway = qualified();
    establish_native(&mut gateway);
    gateway.engine.change_teredo(0, &TeredoChange::Client(Some(client(0))), gateway.now);
    gateway.engine.change_teredo(0, &TeredoChange::Local(Some(LOCAL), Vec::new()), gateway.now);
    assert_eq!(gateway.engine.teredo()[0].row().peers[PeerState::Established as usize], 1);
}

/// §5.2.8, §5.2.3, 5.
#[test]
fn a_client_of_the_same_link_is_reached_there() {
    let mut gateway = qualified();
    let near = Endpoint4::new(Ipv4Addr::new(192, 168, 1, 7), 3_544);
    let (own, peer) = (client6(0), client6(1));
    gateway.engine.change_teredo(0, &TeredoChange::LocalPeer(peer.parse().unwrap(), near), gateway.now);
    gateway.receives(datagram(near, LOCAL, bubble(&peer, &own)));
    assert_eq!(gateway.last, Verdict::Absorbed);
    gateway.receives(packet(&own, &peer));
    sends_to(&mut gateway, near, packet(&own, &peer));
}

#[test]
fn a_trusted_client_is_not_moved_by_local_discovery() {
    let mut gateway = qualified();
    let (own, peer) = (client6(0), client6(1));
    gateway.receives(datagram(mapped(1), LOCAL, packet(&peer, &own)));
    gateway.sends(packet(&peer, &own));
    let near = Endpoint4::new(Ipv4Addr::new(192, 168, 1, 7), 3_544);
    gateway.engine.change_teredo(0, &TeredoChange::LocalPeer(peer.parse().unwrap(), near), gateway.now);
    gateway.receives(packet(&own, &peer));
    sends_to(&mut gateway, mapped(1), packet(&own, &peer));
}

/// A bubble of a client with trailers.
fn bubble_with(source: &str, trailers: &[u8]) -> Vec<u8> {
    [&bubble(source, &client6(0))[..], trailers].concat()
}

/// RFC 6081 §5.2.4.4: where the peer's NAT maps another port for each destination.
#[test]
fn a_client_behind_a_symmetric_nat_is_reached_where_its_bubble_with_the_nonce_comes_from() {
    let mut gateway = qualified();
    let (own, peer) = (client6(0), client6(1));
    let elsewhere = Endpoint4::new(mapped(1).address, 50_001);
    gateway.receives(packet(&own, &peer));
    gateway.sent();
    let nonce = asks(&mut gateway, &own, &peer);
    let mut forged = nonce.clone();
    forged[5] ^= 1;
    for trailers in [&[][..], &forged] {
        let other = datagram(elsewhere, LOCAL, bubble_with(&peer, trailers));
        gateway.refuses(other, DropReason::TeredoNotTrusted);
    }
    gateway.receives(datagram(elsewhere, LOCAL, bubble_with(&peer, &nonce)));
    assert_eq!(gateway.last, Verdict::Absorbed);
    sends_to(&mut gateway, elsewhere, bubble(&own, &peer));
    sends_to(&mut gateway, elsewhere, packet(&own, &peer));
    gateway.receives(datagram(elsewhere, LOCAL, packet(&peer, &own)));
    gateway.sends(packet(&peer, &own));
}

/// RFC 6081 §5.2.4.2, §5.2.4.3.
#[test]
fn direct_bubbles_have_the_nonce_of_the_last_bubble_through_the_server_and_none_without_one() {
    let mut gateway = qualified();
    let (own, peer) = (client6(0), client6(1));
    let through_server = |trailers: &[u8]| {
        let mut payload = Origin(mapped(1)).octets().to_vec();
        payload.extend(bubble_with(&client6(1), trailers));
        datagram(SERVER, LOCAL, payload)
    };
    let nonce = [1, 4, 9, 8, 7, 6];
    gateway.receives(through_server(&nonce));
    sends_to(&mut gateway, mapped(1), [&bubble(&own, &peer)[..], &nonce].concat());
    asks(&mut gateway, &own, &peer);
    // What waits for it is why this client asks again.
    gateway.receives(packet(&own, &peer));
    assert_eq!(gateway.last, Verdict::Held);
    gateway.waits(2 * SECOND);
    sends_to(&mut gateway, mapped(1), [&bubble(&own, &peer)[..], &nonce].concat());
    asks(&mut gateway, &own, &peer);
    gateway.receives(through_server(&[]));
    sends_to(&mut gateway, mapped(1), bubble(&own, &peer));
    gateway.sends_nothing();
    gateway.waits(2 * SECOND);
    sends_to(&mut gateway, mapped(1), bubble(&own, &peer));
    asks(&mut gateway, &own, &peer);
    // A malformed one ends only the bubble.
    gateway.refuses(through_server(&[1, 3, 9, 8, 7]), DropReason::TeredoUnexpected);
}

/// RFC 6081 §5.6.
#[test]
fn clients_behind_one_nat_tell_each_other_their_local_endpoints() {
    let mut gateway = qualified();
    // Number 2 has another port of the same address.
    let (own, peer) = (client6(0), client6(2));
    gateway.receives(packet(&own, &peer));
    sends_to(&mut gateway, mapped(2), bubble(&own, &peer));
    let (to, payload) = sent_datagram(&mut gateway);
    let expected = [&[3, 8, 0, 0][..], &LOCAL.address.octets(), &LOCAL.port.to_be_bytes()].concat();
    assert_eq!((to, &payload[46..]), (SERVER, &expected[..]));
    let near = Endpoint4::new(Ipv4Addr::new(192, 168, 1, 7), 3_544);
    let alternates = |endpoints: &[Endpoint4]| {
        let mut trailers = vec![1, 4, 9, 8, 7, 6, 3, 2 + 6 * endpoints.len() as u8, 0, 0];
        for endpoint in endpoints {
            trailers.extend(endpoint.address.octets());
            trailers.extend(endpoint.port.to_be_bytes());
        }
        trailers
    };
    let forwarded = |number: u32, trailers: &[u8]| {
        let mut payload = Origin(mapped(number)).octets().to_vec();
        payload.extend(bubble_with(&client6(number), trailers));
        datagram(SERVER, LOCAL, payload)
    };
    let bad =
        ["224.0.0.253", "127.0.0.1", "192.0.2.9"].map(|text| Endpoint4::new(text.parse().unwrap(), 3_544));
    gateway.receives(forwarded(2, &alternates(&[near, bad[0], bad[1], bad[2]])));
    let nonce = [1, 4, 9, 8, 7, 6];
    sends_to(&mut gateway, mapped(2), [&bubble(&own, &peer)[..], &nonce].concat());
    sends_to(&mut gateway, near, [&bubble(&own, &peer)[..], &nonce].concat());
    gateway.sends_nothing();
    // Behind another NAT it would be a bubble to a stranger in this client's network.
    gateway.receives(forwarded(20, &alternates(&[near])));
    sends_to(&mut gateway, mapped(20), [&bubble(&own, &client6(20))[..], &nonce].concat());
    let (to, _) = sent_datagram(&mut gateway);
    assert_eq!(to, SERVER);
    gateway.sends_nothing();
}

/// RFC 6081 §5.6: the endpoint is private, and proven by the nonce alone.
#[test]
fn a_client_behind_the_same_nat_is_reached_where_its_bubble_with_the_nonce_comes_from() {
    let mut gateway = qualified();
    let near = Endpoint4::new(Ipv4Addr::new(192, 168, 1, 7), 3_544);
    let nonce_of = |gateway: &mut Gateway, peer| {
        gateway.receives(packet(&client6(0), &client6(peer)));
        sends_to(gateway, mapped(peer), bubble(&client6(0), &client6(peer)));
        let (to, payload) = sent_datagram(gateway);
        assert_eq!(to, SERVER);
        payload[40..46].to_vec()
    };
    let (own, peer) = (client6(0), client6(2));
    let nonce = nonce_of(&mut gateway, 2);
    let mut forged = nonce.clone();
    forged[5] ^= 1;
    for trailers in [&[][..], &forged] {
        gateway.refuses(datagram(near, LOCAL, bubble_with(&peer, trailers)), DropReason::TeredoNotTrusted);
    }
    for other in ["224.0.0.253", "127.0.0.1", "192.0.2.9"] {
        let other = Endpoint4::new(other.parse().unwrap(), 3_544);
        let frame = datagram(other, LOCAL, bubble_with(&peer, &nonce));
        gateway.receives(frame);
        assert_ne!(gateway.last, Verdict::Absorbed, "{other}");
    }
    gateway.receives(datagram(near, LOCAL, bubble_with(&peer, &nonce)));
    assert_eq!(gateway.last, Verdict::Absorbed);
    sends_to(&mut gateway, near, bubble(&own, &peer));
    sends_to(&mut gateway, near, packet(&own, &peer));
    gateway.receives(datagram(near, LOCAL, packet(&peer, &own)));
    gateway.sends(packet(&peer, &own));
    // A client behind another NAT is not at a private endpoint, whatever it knows.
    let nonce = nonce_of(&mut gateway, 20);
    let frame = datagram(near, LOCAL, bubble_with(&client6(20), &nonce));
    gateway.refuses(frame, DropReason::TeredoNotTrusted);
}

/// RFC 6081 §5.7.
#[test]
fn a_silent_client_is_asked_directly_before_its_server_is() {
    let mut gateway = qualified();
    let (own, peer) = (client6(0), client6(1));
    gateway.receives(datagram(mapped(1), LOCAL, packet(&peer, &own)));
    gateway.sends(packet(&peer, &own));
    gateway.waits(20 * SECOND);
    gateway.receives(packet(&own, &peer));
    sends_to(&mut gateway, mapped(1), packet(&own, &peer));
    let solicitation = [&bubble(&own, &peer)[..], &[4, 4, 0, 0, 0, 0]].concat();
    sends_to(&mut gateway, mapped(1), solicitation);
    gateway.waits(2 * SECOND);
    gateway.receives(packet(&own, &peer));
    sends_to(&mut gateway, mapped(1), packet(&own, &peer));
    sends_to(&mut gateway, mapped(1), bubble(&own, &peer));
    asks(&mut gateway, &own, &peer);
    let advertisement = bubble_with(&peer, &[4, 4, 1, 0, 0, 0]);
    gateway.receives(datagram(mapped(1), LOCAL, advertisement));
    gateway.waits(20 * SECOND);
    gateway.receives(packet(&own, &peer));
    assert_eq!(gateway.last, Verdict::Forward, "it was heard");
}

#[test]
fn a_solicitation_of_a_trusted_client_is_answered() {
    let mut gateway = qualified();
    let (own, peer) = (client6(0), client6(1));
    gateway.receives(datagram(mapped(1), LOCAL, bubble_with(&peer, &[4, 4, 0, 0, 0, 0])));
    sends_to(&mut gateway, mapped(1), [&bubble(&own, &peer)[..], &[4, 4, 1, 0, 0, 0]].concat());
    let spoofed = datagram(mapped(3), LOCAL, bubble_with(&peer, &[4, 4, 0, 0, 0, 0]));
    gateway.refuses(spoofed, DropReason::TeredoNotTrusted);
}

/// A lost bubble must not leave two clients where one trusts the other and the other does not know.
#[test]
fn a_client_that_asks_again_is_answered_where_it_has_proven_to_be() {
    let mut gateway = qualified();
    let (own, peer) = (client6(0), client6(1));
    let elsewhere = Endpoint4::new(mapped(1).address, 50_001);
    gateway.receives(packet(&own, &peer));
    gateway.sent();
    let nonce = asks(&mut gateway, &own, &peer);
    gateway.receives(datagram(elsewhere, LOCAL, bubble_with(&peer, &nonce)));
    (0..2).for_each(|_| drop(gateway.sent()));
    let mut asked = Origin(mapped(1)).octets().to_vec();
    asked.extend(bubble_with(&peer, &[1, 4, 9, 8, 7, 6]));
    gateway.receives(datagram(SERVER, LOCAL, asked.clone()));
    sends_to(&mut gateway, elsewhere, [&bubble(&own, &peer)[..], &[1, 4, 9, 8, 7, 6]].concat());
    gateway.sends_nothing();
    // After half a minute of silence it may be somewhere else: a bubble of this client asks for a proof.
    gateway.waits(31 * SECOND);
    gateway.receives(datagram(SERVER, LOCAL, asked));
    sends_to(&mut gateway, elsewhere, [&bubble(&own, &peer)[..], &[1, 4, 9, 8, 7, 6]].concat());
    let nonce = asks(&mut gateway, &own, &peer);
    let moved = Endpoint4::new(mapped(1).address, 50_002);
    gateway.receives(datagram(moved, LOCAL, bubble_with(&peer, &nonce)));
    gateway.sent();
    gateway.receives(packet(&own, &peer));
    sends_to(&mut gateway, moved, packet(&own, &peer));
}
