//! What datagrams of unknown senders make a relay or a client send, and keep.

use super::client::qualified;
use super::{
    LOCAL, NATIVE, RELAY6, SERVER, asks, bubble, client, client6, datagram, establish, mapped, packet,
};
use super::{relay, relay_with, sends_to, sent_datagram, with_teredo};
use crate::support::{Gateway, icmp6, v6};
use core::net::Ipv4Addr;
use core::time::Duration;
use sixway_dataplane::mechanism::teredo::{PeerState, TeredoChange, TeredoConfig, TeredoRole};
use sixway_dataplane::{DropReason, Verdict};
use sixway_wire::Endpoint4;
use sixway_wire::teredo::Origin;

const SECOND: Duration = Duration::from_secs(1);

fn count(gateway: &Gateway, state: PeerState) -> u32 {
    gateway.engine.teredo()[0].row().peers[state as usize]
}

/// What is sent until a time has passed, in steps of a tick: to where.
fn sent_within(gateway: &mut Gateway, time: Duration) -> Vec<Endpoint4> {
    let mut sent = Vec::new();
    for _ in 0..time.as_millis() / 100 {
        gateway.waits(Duration::from_millis(100));
        while gateway.waiting() > 0 {
            sent.push(sent_datagram(gateway).0);
        }
    }
    sent
}

/// A bubble that the client's server forwarded.
fn forwarded(source: &str, trailers: &[u8]) -> crate::support::Build {
    let payload = [&Origin(mapped(9)).octets()[..], &bubble(source, &client6(0)), trailers].concat();
    datagram(SERVER, LOCAL, payload)
}

/// The trailer with alternate addresses (RFC 6081 §4.3).
fn alternates(endpoints: &[Endpoint4]) -> Vec<u8> {
    let mut trailer = vec![3, 2 + 6 * endpoints.len() as u8, 0, 0];
    for endpoint in endpoints {
        trailer.extend(endpoint.address.octets());
        trailer.extend(endpoint.port.to_be_bytes());
    }
    trailer
}

/// The inner source is freely chosen, the outer one is not.
#[test]
fn a_strangers_datagrams_with_ever_new_sources_are_counted_by_the_address_that_they_come_from() {
    let mut gateway = qualified();
    let flood = |gateway: &mut Gateway, from: Endpoint4, sites: core::ops::Range<u32>| {
        for site in sites {
            let inner = packet(&format!("2001:db8:{site:x}::1"), &client6(0));
            gateway.receives(datagram(from, LOCAL, inner));
            assert!(matches!(gateway.last, Verdict::Dropped(_)));
        }
        let sent = gateway.waiting();
        (0..sent).for_each(|_| assert_eq!(sent_datagram(gateway).0, SERVER));
        sent
    };
    assert_eq!(flood(&mut gateway, mapped(7), 0x1000..0x2000), 4, "its rate");
    assert_eq!(count(&gateway, PeerState::Contacting), 4);
    let others = (0..200_u32).map(|number| {
        let from = Endpoint4::new(Ipv4Addr::from_bits(0x0505_0000 + number), 53);
        flood(&mut gateway, from, 0x3000 + number * 16..0x3010 + number * 16)
    });
    assert!(others.sum::<usize>() < 10, "of all strangers");
    // This host's own tests have most of the rate to the server.
    for number in 0..400_u32 {
        gateway.receives(packet(&client6(0), &format!("2001:db9:{number:x}::1")));
        assert_eq!((gateway.last, sent_datagram(&mut gateway).0), (Verdict::Held, SERVER), "{number}");
    }
}

/// A token for a test that is not made is not taken.
#[test]
fn while_the_list_is_full_strangers_use_up_no_tests_of_each_other() {
    let mut gateway = with_teredo(TeredoConfig::new(TeredoRole::Client), |config| config.max_peers = 1);
    gateway.engine.change_teredo(0, &TeredoChange::Client(Some(client(0))), gateway.now);
    let (own, peer) = (client6(0), client6(1));
    gateway.receives(packet(&own, &peer));
    gateway.receives(datagram(mapped(1), LOCAL, bubble(&peer, &own)));
    while gateway.waiting() > 0 {
        gateway.sent();
    }
    for number in 0..40_u32 {
        let from = Endpoint4::new(Ipv4Addr::from_bits(0x0505_0000 + number), 53);
        let inner = packet(&format!("2001:db8:{number:x}::1"), &own);
        gateway.refuses(datagram(from, LOCAL, inner), DropReason::TeredoPeersFull);
    }
    for address in [None, Some(client(0))] {
        gateway.engine.change_teredo(0, &TeredoChange::Client(address), gateway.now);
    }
    gateway.receives(datagram(mapped(7), LOCAL, packet(NATIVE, &own)));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::TeredoNotTrusted));
    assert_eq!(sent_datagram(&mut gateway).0, SERVER, "there is room again");
}

/// One of the peer's two senders exceeds its rate.
#[test]
fn a_senders_rate_does_not_cost_a_peer_the_endpoint_that_it_has_proven() {
    let mut gateway = relay_with(|config| config.max_peers = 100_000);
    let address = client6(1);
    gateway.receives(packet(NATIVE, &address));
    let nonce = asks(&mut gateway, RELAY6, &address);
    let elsewhere = Endpoint4::new(mapped(1).address, 7);
    gateway.receives(datagram(elsewhere, LOCAL, [bubble(&address, RELAY6), nonce].concat()));
    sends_to(&mut gateway, elsewhere, packet(NATIVE, &address));
    gateway.waits(40 * SECOND);
    // Its first sender uses up his rate, and sends to it, which is silent now.
    for number in 100..400 {
        gateway.receives(packet(NATIVE, &client6(number)));
    }
    while gateway.waiting() > 0 {
        gateway.sent();
    }
    gateway.receives(packet(NATIVE, &address));
    gateway.sends_nothing();
    let endpoint = |gateway: &Gateway| {
        let row = gateway.engine.teredo()[0].peer(client(1).address(), gateway.now).unwrap();
        (row.state, row.endpoint)
    };
    assert_eq!(endpoint(&gateway), (PeerState::Contacting, elsewhere));
    gateway.receives(packet("2001:db8:77::1", &address));
    let sent: Vec<_> = (0..gateway.waiting()).map(|_| gateway.sent()).collect();
    assert!(sent.iter().any(|octets| octets[0] == 0x45), "the other sender has a rate of his own");
    assert_eq!(endpoint(&gateway), (PeerState::Contacting, elsewhere));
}

#[test]
fn a_test_that_a_stranger_wants_is_not_repeated_and_one_that_this_host_wants_is() {
    let mut gateway = qualified();
    let stray = datagram(mapped(7), LOCAL, packet(NATIVE, &client6(0)));
    gateway.receives(stray.clone());
    assert_eq!(sent_datagram(&mut gateway).0, SERVER);
    assert_eq!(sent_within(&mut gateway, 7 * SECOND), []);
    assert_eq!(sent_within(&mut gateway, 4 * SECOND), []);
    assert_eq!(gateway.engine.teredo()[0].row().peers, [0; 4], "it is forgotten");
    gateway.receives(stray);
    assert_eq!(sent_datagram(&mut gateway).0, SERVER);
    gateway.receives(packet(&client6(0), NATIVE));
    assert_eq!(gateway.last, Verdict::Held);
    assert_eq!(sent_within(&mut gateway, 7 * SECOND), [SERVER; 3]);
}

/// RFC 6081 §5.6: two bubbles answer one, and one more for each endpoint in this host's own network.
#[test]
fn a_forwarded_bubble_is_answered_once_and_at_no_endpoint_that_its_sender_chose_elsewhere() {
    let mut gateway = qualified();
    let near = |last: u8| Endpoint4::new(Ipv4Addr::new(192, 168, 1, last), 3_544);
    let victim = Endpoint4::new(Ipv4Addr::new(8, 8, 8, 8), 53);
    let neighbour = client6(2);
    gateway.receives(forwarded(&neighbour, &alternates(&[near(7), victim, near(7), near(8)])));
    for to in [mapped(2), near(7), near(8)] {
        sends_to(&mut gateway, to, bubble(&client6(0), &neighbour));
    }
    assert_eq!(sent_datagram(&mut gateway).0, SERVER);
    gateway.sends_nothing();
    assert_eq!(sent_within(&mut gateway, 20 * SECOND), []);
    assert_eq!(gateway.engine.teredo()[0].row().peers, [0; 4]);
    // An attached network is near, whatever its addresses are.
    let subnets = vec!["8.8.8.0/24".parse().unwrap()];
    gateway.engine.change_teredo(0, &TeredoChange::Local(Some(LOCAL), subnets), gateway.now);
    gateway.receives(forwarded(&neighbour, &alternates(&[victim])));
    for to in [mapped(2), victim] {
        sends_to(&mut gateway, to, bubble(&client6(0), &neighbour));
    }
}

#[test]
fn a_client_that_repeats_its_bubble_is_answered_again() {
    let mut gateway = qualified();
    for second in [0, 2, 4, 6] {
        gateway.receives(forwarded(&client6(1), &[]));
        sends_to(&mut gateway, mapped(1), bubble(&client6(0), &client6(1)));
        asks(&mut gateway, &client6(0), &client6(1));
        gateway.sends_nothing();
        assert_eq!(sent_within(&mut gateway, 2 * SECOND), [], "{second} s");
    }
}

/// Whoever forges the server's address, or is behind the same NAT, needs no other.
#[test]
fn a_flood_of_forwarded_bubbles_leaves_the_rate_of_all_bubbles_to_this_hosts_own() {
    let mut gateway = super::with_teredo(TeredoConfig::new(TeredoRole::Client), |_| {});
    gateway.engine.change_teredo(0, &TeredoChange::Client(Some(client(0))), gateway.now);
    let mut sent = 0;
    for number in 16..16_000 {
        gateway.receives(forwarded(&client6(number), &[]));
        sent += gateway.waiting();
        (0..gateway.waiting()).for_each(|_| drop(gateway.sent()));
    }
    assert!(sent <= 2_000, "{sent}: a burst of 1,000 direct ones and as many indirect ones");
    gateway.receives(packet(&client6(0), &client6(1)));
    sends_to(&mut gateway, mapped(1), bubble(&client6(0), &client6(1)));
}

/// Behind one IPv4 address many clients may be.
#[test]
fn a_sender_to_invented_clients_at_one_address_leaves_its_share_to_others() {
    let mut gateway = relay_with(|config| config.max_peers = 100_000);
    for flags in 1..2_000_u16 {
        let mut invented = client(1);
        invented.interface.flags = flags;
        gateway.receives(packet("2001:db8:666::1", &invented.address().to_string()));
        (0..gateway.waiting()).for_each(|_| drop(gateway.sent()));
    }
    assert_eq!(count(&gateway, PeerState::Contacting), 100_000 / 512);
    gateway.receives(packet(NATIVE, &client6(1)));
    assert_eq!(gateway.last, Verdict::Held);
}

/// §5.2.6: four bubbles in 300 s, and two seconds between them.
#[test]
fn a_client_that_falls_silent_gets_four_bubbles_in_300_seconds_while_a_stream_goes_on() {
    let mut gateway = relay();
    establish(&mut gateway, 1);
    let mut bubbles = Vec::new();
    let start = gateway.now;
    for step in 1..6_600_u32 {
        gateway.waits(Duration::from_millis(50));
        if step % 10 == 0 {
            gateway.receives(packet(NATIVE, &client6(1)));
        }
        while gateway.waiting() > 0 {
            let sent = gateway.sent();
            if sent[0] == 0x45 && sent[16..20] == SERVER.address.octets() {
                bubbles.push(gateway.now.since(start));
            }
        }
    }
    let [first, second, third, fourth, fifth, ..] = bubbles[..] else { panic!("{bubbles:?}") };
    assert!(first >= 20 * SECOND && fifth - first >= 300 * SECOND, "{bubbles:?}");
    for (one, next) in [(first, second), (second, third), (third, fourth)] {
        assert!(next - one >= 2 * SECOND, "{bubbles:?}");
    }
}

/// A stream to a client that is silent, and the next one, half a minute later: each has two of the four bubbles.
#[test]
fn a_stream_to_a_silent_client_leaves_two_bubbles_for_the_next_stream_and_four_are_all() {
    let mut gateway = relay();
    establish(&mut gateway, 1);
    let bubbles = |gateway: &Gateway| gateway.engine.teredo()[0].row().bubbles;
    assert_eq!(bubbles(&gateway), 1);
    (0..20).for_each(|_| gateway.waits(SECOND));
    for _ in 0..8 {
        gateway.receives(packet(NATIVE, &client6(1)));
        gateway.waits(SECOND);
    }
    assert_eq!(bubbles(&gateway), 1 + 2);
    (0..5).for_each(|_| gateway.waits(SECOND));
    gateway.receives(packet(NATIVE, &client6(1)));
    assert_eq!(gateway.last, Verdict::Held, "it may be there again");
    (0..20).for_each(|_| gateway.waits(SECOND));
    assert_eq!(bubbles(&gateway), 1 + 4);
    gateway.receives(packet(NATIVE, &client6(1)));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::TeredoUnreachable));
    (0..300).for_each(|_| gateway.waits(SECOND));
    assert_eq!(bubbles(&gateway), 1 + 4);
    gateway.receives(packet(NATIVE, &client6(1)));
    assert_eq!(gateway.last, Verdict::Held);
}

/// A bubble that is forged in the name of a peer uses up what is answered to that peer, but not what the peer itself gets.
#[test]
fn forged_bubbles_in_the_name_of_a_trusted_peer_do_not_keep_it_from_its_answer() {
    let mut gateway = qualified();
    let peer = client6(2);
    gateway.receives(datagram(mapped(2), LOCAL, bubble(&peer, &client6(0))));
    let answers = |gateway: &mut Gateway, frames: usize| {
        let mut sent = 0;
        for _ in 0..frames {
            gateway.receives(forwarded(&peer, &[]));
            while gateway.waiting() > 0 {
                sent += usize::from(sent_datagram(gateway).0 == mapped(2));
            }
        }
        sent
    };
    assert!(answers(&mut gateway, 400) > 200, "more than the rate of a sender");
}

#[test]
fn strangers_that_fill_the_list_displace_nobody_that_this_host_asks() {
    let mut gateway =
        super::with_teredo(TeredoConfig::new(TeredoRole::Client), |config| config.max_peers = 32);
    gateway.engine.change_teredo(0, &TeredoChange::Client(Some(client(0))), gateway.now);
    // One that a stranger named first.
    gateway.receives(datagram(mapped(7), LOCAL, packet(NATIVE, &client6(0))));
    for native in [NATIVE, "2001:db8:2::1"] {
        gateway.receives(packet(&client6(0), native));
        assert_eq!(gateway.last, Verdict::Held);
    }
    for number in 16..500 {
        gateway.receives(datagram(mapped(number), LOCAL, packet(&client6(number), &client6(0))));
    }
    let teredo = &gateway.engine.teredo()[0];
    for native in [NATIVE, "2001:db8:2::1"] {
        let row = teredo.peer(native.parse().unwrap(), gateway.now).unwrap();
        assert_eq!((row.state, row.waiting), (PeerState::Contacting, 1));
    }
    assert_eq!(gateway.engine.counters().held, 2);
}

/// RFC 6081 §5.2.4.4 accepts bubbles from the endpoint in the address, and data from where the client is.
#[test]
fn a_forged_data_packet_moves_no_client_that_has_proven_another_endpoint() {
    let elsewhere = Endpoint4::new(mapped(1).address, 50_001);
    let mut gateway = relay();
    let address = client6(1);
    gateway.receives(packet(NATIVE, &address));
    let nonce = asks(&mut gateway, RELAY6, &address);
    gateway.receives(datagram(elsewhere, LOCAL, [&bubble(&address, RELAY6)[..], &nonce].concat()));
    gateway.sent();
    gateway.refuses(datagram(mapped(1), LOCAL, packet(&address, NATIVE)), DropReason::SpoofedEmbeddedSource);
    gateway.receives(packet(NATIVE, &address));
    sends_to(&mut gateway, elsewhere, packet(NATIVE, &address));
    // One that was silent may be there again.
    gateway.waits(30 * SECOND);
    gateway.receives(datagram(mapped(1), LOCAL, packet(&address, NATIVE)));
    gateway.sends(packet(&address, NATIVE));

    let mut gateway = qualified();
    let own = client6(0);
    gateway.receives(packet(&own, &address));
    gateway.sent();
    let nonce = asks(&mut gateway, &own, &address);
    gateway.receives(datagram(elsewhere, LOCAL, [&bubble(&address, &own)[..], &nonce].concat()));
    (0..2).for_each(|_| drop(gateway.sent()));
    gateway.refuses(datagram(mapped(1), LOCAL, packet(&address, &own)), DropReason::TeredoNotTrusted);
}

/// RFC 6081 §5.2.4.1, §5.2.4.4.
#[test]
fn each_bubble_has_a_nonce_of_its_own_and_the_last_one_alone_is_a_proof() {
    let mut gateway = relay();
    let address = client6(1);
    let elsewhere = Endpoint4::new(mapped(1).address, 50_001);
    gateway.receives(packet(NATIVE, &address));
    let mut nonces = vec![asks(&mut gateway, RELAY6, &address)];
    for _ in 0..3 {
        gateway.waits(2 * SECOND);
        nonces.push(asks(&mut gateway, RELAY6, &address));
    }
    let last = nonces[3].clone();
    let with = |nonce: &[u8]| datagram(elsewhere, LOCAL, [&bubble(&address, RELAY6)[..], nonce].concat());
    for nonce in &nonces[..3] {
        gateway.refuses(with(nonce), DropReason::SpoofedEmbeddedSource);
    }
    gateway.receives(with(&last));
    sends_to(&mut gateway, elsewhere, packet(NATIVE, &address));
    // Those that keep its entry valid have others.
    gateway.waits(20 * SECOND);
    gateway.receives(packet(NATIVE, &address));
    gateway.sent();
    assert!(!nonces.contains(&asks(&mut gateway, RELAY6, &address)));
}

/// The peer reads the nonce of a test, and could forge where its answer comes from.
#[test]
fn no_answer_makes_an_endpoint_in_a_local_network_trusted_but_a_neighbours() {
    let near = Endpoint4::new(Ipv4Addr::new(10, 0, 0, 5), 53);
    let mut gateway = qualified();
    gateway.receives(packet(&client6(0), NATIVE));
    let (_, request) = sent_datagram(&mut gateway);
    let identifier: [u8; 4] = request[44..48].try_into().unwrap();
    let reply = v6(NATIVE, &client6(0)).icmp(icmp6(129, 0, identifier, &request[48..]));
    gateway.refuses(datagram(near, LOCAL, reply), DropReason::TeredoNotTrusted);
    for (number, is_neighbour) in [(1, false), (2, true)] {
        let mut gateway = qualified();
        let (own, peer) = (client6(0), client6(number));
        gateway.receives(packet(&own, &peer));
        gateway.sent();
        let (_, asked) = sent_datagram(&mut gateway);
        let nonce = [&bubble(&peer, &own)[..], &asked[40..46]].concat();
        gateway.receives(datagram(near, LOCAL, nonce));
        let verdict =
            if is_neighbour { Verdict::Absorbed } else { Verdict::Dropped(DropReason::TeredoNotTrusted) };
        assert_eq!(gateway.last, verdict);
        if is_neighbour {
            sends_to(&mut gateway, near, bubble(&own, &peer));
            sends_to(&mut gateway, near, packet(&own, &peer));
        }
    }
}

/// The client reads the nonce of a bubble, and could forge where its answer comes from.
#[test]
fn no_nonce_moves_a_client_into_a_local_network_of_the_relay() {
    let mut gateway = relay();
    let address = client6(1);
    gateway.receives(packet(NATIVE, &address));
    let nonce = asks(&mut gateway, RELAY6, &address);
    let proof = [&bubble(&address, RELAY6)[..], &nonce].concat();
    let near = Endpoint4::new(Ipv4Addr::new(10, 0, 0, 5), 53);
    gateway.refuses(datagram(near, LOCAL, proof.clone()), DropReason::SpoofedEmbeddedSource);
    gateway.sends_nothing();
    let elsewhere = Endpoint4::new(mapped(1).address, 50_001);
    gateway.receives(datagram(elsewhere, LOCAL, proof));
    sends_to(&mut gateway, elsewhere, packet(NATIVE, &address));
}
