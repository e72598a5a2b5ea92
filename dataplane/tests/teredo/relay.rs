//! The relay (RFC 4380 §5.4).

use super::{LOCAL, NATIVE, RELAY6, SERVER, bubble, client6, datagram, establish, mapped, packet, relay};
use super::{asks, relay_with, sends_to};
use crate::support::{v4, v6};
use core::net::Ipv4Addr;
use core::time::Duration;
use sixway_dataplane::frame::{SegmentKind, Segments};
use sixway_dataplane::mechanism::teredo::{PeerState, TeredoChange, TeredoRole};
use sixway_dataplane::{DropReason, Offload, Verdict};
use sixway_wire::Endpoint4;
use sixway_wire::teredo::{Origin, TeredoAddress, TeredoInterface};

const SECOND: Duration = Duration::from_secs(1);

/// §5.4.1, 3 and 1.
#[test]
fn a_packet_waits_for_the_clients_bubble_and_those_behind_it_do_not() {
    let mut gateway = relay();
    let address = client6(1);
    gateway.receives(packet(NATIVE, &address));
    assert_eq!(gateway.last, Verdict::Held);
    asks(&mut gateway, RELAY6, &address);
    gateway.receives(packet("2001:db8:1::2", &address));
    assert_eq!(gateway.last, Verdict::Held);
    gateway.sends_nothing();
    gateway.receives(datagram(mapped(1), LOCAL, bubble(&address, RELAY6)));
    assert_eq!(gateway.last, Verdict::Absorbed);
    sends_to(&mut gateway, mapped(1), packet(NATIVE, &address));
    sends_to(&mut gateway, mapped(1), packet("2001:db8:1::2", &address));
    gateway.receives(packet(NATIVE, &address));
    assert_eq!(gateway.last, Verdict::Forward);
    sends_to(&mut gateway, mapped(1), packet(NATIVE, &address));
    gateway.counted([("absorbed", 1), ("teredo.encap", 3)]);
}

/// §5.4.2.
#[test]
fn a_clients_packet_goes_to_its_destination() {
    let mut gateway = relay();
    establish(&mut gateway, 1);
    gateway.counted_before();
    gateway.receives(datagram(mapped(1), LOCAL, packet(&client6(1), NATIVE)));
    gateway.sends(packet(&client6(1), NATIVE));
    gateway.counted([("teredo.decap", 1)]);
}

#[test]
fn octets_behind_the_packet_are_dropped() {
    let mut gateway = relay();
    establish(&mut gateway, 1);
    let mut payload = packet(&client6(1), NATIVE).octets();
    payload.extend([1, 4, 1, 2, 3, 4]);
    gateway.receives(datagram(mapped(1), LOCAL, payload));
    gateway.sends(packet(&client6(1), NATIVE));
}

#[test]
fn a_data_packet_of_the_client_makes_it_trusted_as_a_bubble_does() {
    let mut gateway = relay();
    gateway.receives(packet(NATIVE, &client6(1)));
    gateway.sent();
    gateway.receives(datagram(mapped(1), LOCAL, packet(&client6(1), NATIVE)));
    gateway.sends(packet(&client6(1), NATIVE));
    sends_to(&mut gateway, mapped(1), packet(NATIVE, &client6(1)));
}

/// §5.4.2: silently.
#[test]
fn what_does_not_come_from_where_the_client_is_mapped_is_dropped() {
    let mut gateway = relay();
    establish(&mut gateway, 1);
    let elsewhere = [Endpoint4::new(mapped(1).address, 7), mapped(99)];
    for from in elsewhere {
        let spoofed = datagram(from, LOCAL, packet(&client6(1), NATIVE));
        gateway.refuses(spoofed, DropReason::SpoofedEmbeddedSource);
    }
    gateway.refuses(datagram(mapped(1), LOCAL, packet(NATIVE, RELAY6)), DropReason::SourceNotRelay);
    gateway.refuses(datagram(mapped(2), LOCAL, packet(&client6(2), NATIVE)), DropReason::TeredoNotTrusted);
}

#[test]
fn encapsulations_of_servers_and_clients_are_not_for_a_relay() {
    let mut gateway = relay();
    establish(&mut gateway, 1);
    let mut payload = Origin(mapped(3)).octets().to_vec();
    payload.extend(packet(&client6(1), NATIVE).octets());
    gateway.refuses(datagram(mapped(1), LOCAL, payload), DropReason::TeredoUnexpected);
}

/// RFC 6324 §3.2, and §5.4.2: destinations that are not served.
#[test]
fn between_two_clients_there_is_no_relay() {
    let mut gateway = relay();
    establish(&mut gateway, 1);
    gateway.refuses(datagram(mapped(1), LOCAL, packet(&client6(1), &client6(2))), DropReason::TunnelLoop);
    gateway.refuses(packet(&client6(1), &client6(2)), DropReason::TunnelLoop);
}

#[test]
fn a_relay_of_some_prefixes_serves_no_others() {
    let mut gateway = relay_with(|config| {
        let TeredoRole::Relay(relay) = &mut config.role else { panic!("a relay") };
        relay.serves.push("2001:db8:1::/48".parse().unwrap());
    });
    establish(&mut gateway, 1);
    let other = datagram(mapped(1), LOCAL, packet(&client6(1), "2001:db8:2::1"));
    gateway.refuses(other, DropReason::DestinationNotInSite);
}

/// §5.4.1: the format of a global unicast address; and port 0, this host's own address, an attached network's broadcast address.
#[test]
fn nothing_is_sent_to_addresses_that_are_no_hosts_of_the_internet() {
    let mut gateway = relay();
    let subnets = vec!["203.0.113.0/24".parse().unwrap()];
    gateway.engine.change_teredo(0, &TeredoChange::Local(Some(LOCAL), subnets), gateway.now);
    let good = mapped(1).address;
    let bad =
        ["10.1.2.3", "127.0.0.1", "169.254.1.1", "224.0.0.1", "255.255.255.255", "192.88.99.1", "192.0.2.9"];
    let bad = bad.map(|text| text.parse::<Ipv4Addr>().unwrap());
    let broadcast = Ipv4Addr::new(203, 0, 113, 255);
    let cases = bad.into_iter().chain([broadcast]).map(|address| (SERVER.address, address, 40_000));
    let servers = bad.into_iter().take(6).map(|server| (server, good, 40_000));
    for (server, address, port) in cases.chain(servers).chain([(SERVER.address, good, 0)]) {
        let interface = TeredoInterface { flags: 0, mapped: Endpoint4::new(address, port) };
        let client = TeredoAddress { server, interface };
        gateway.receives(packet(NATIVE, &client.address().to_string()));
        assert_eq!(
            gateway.last,
            Verdict::Dropped(DropReason::TeredoUnreachable),
            "{server} {address} {port}"
        );
        let error = gateway.sent();
        assert_eq!((error[40], error[41]), (1, 3), "the sender is told");
        gateway.sends_nothing();
    }
    assert_eq!(gateway.engine.teredo()[0].row().bubbles, 0);
}

/// §5.4.1 and §5.2.6: after two seconds a bubble again, three times; then nothing for 300 seconds from the first.
#[test]
fn a_client_that_does_not_answer_gets_four_bubbles_in_300_seconds() {
    let mut gateway = relay();
    let address = client6(1);
    gateway.receives(packet(NATIVE, &address));
    asks(&mut gateway, RELAY6, &address);
    for _ in 0..3 {
        gateway.waits(SECOND);
        gateway.sends_nothing();
        gateway.waits(SECOND);
        asks(&mut gateway, RELAY6, &address);
    }
    gateway.waits(2 * SECOND);
    let error = gateway.sent();
    assert_eq!((error[40], error[41]), (1, 3), "address unreachable");
    let quoted = packet(NATIVE, &address).octets();
    assert_eq!(error[48..], quoted, "about the packet that waited");
    let counters = gateway.engine.counters();
    assert_eq!((counters.held, counters.dropped[DropReason::TeredoUnreachable as usize]), (0, 1));
    for _ in 0..29 {
        gateway.waits(10 * SECOND);
        gateway.receives(packet(NATIVE, &address));
        assert_eq!(gateway.last, Verdict::Dropped(DropReason::TeredoUnreachable));
        gateway.sent();
        gateway.sends_nothing();
    }
    let row = gateway.engine.teredo()[0].peer(address.parse().unwrap(), gateway.now).unwrap();
    assert_eq!((row.state, row.bubbles, row.heard), (PeerState::Unreachable, 4, None));
    gateway.waits(2 * SECOND);
    gateway.receives(packet(NATIVE, &address));
    asks(&mut gateway, RELAY6, &address);
}

#[test]
fn bubbles_go_to_a_server_of_this_host() {
    let mut gateway = relay();
    let client = TeredoAddress { server: LOCAL.address, ..super::client(1) };
    gateway.receives(packet(NATIVE, &client.address().to_string()));
    let (to, _) = super::sent_datagram(&mut gateway);
    assert_eq!(to, LOCAL, "whose port another socket of this address has");
}

#[test]
fn a_packet_that_is_refused_still_proves_where_the_client_is() {
    let mut gateway = relay();
    let address = client6(1);
    gateway.receives(packet(NATIVE, &address));
    asks(&mut gateway, RELAY6, &address);
    gateway.receives(datagram(mapped(1), LOCAL, packet(&address, &client6(2))));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::TunnelLoop));
    sends_to(&mut gateway, mapped(1), packet(NATIVE, &address));
}

/// §5.2.4: an entry is valid for 30 seconds after the last packet from the peer.
#[test]
fn a_client_that_was_silent_for_half_a_minute_is_asked_again_before_the_next_packet() {
    let mut gateway = relay();
    establish(&mut gateway, 1);
    gateway.waits(30 * SECOND);
    gateway.receives(packet(NATIVE, &client6(1)));
    assert_eq!(gateway.last, Verdict::Held);
    asks(&mut gateway, RELAY6, &client6(1));
    gateway.receives(datagram(mapped(1), LOCAL, bubble(&client6(1), RELAY6)));
    sends_to(&mut gateway, mapped(1), packet(NATIVE, &client6(1)));
}

#[test]
fn a_stream_to_a_silent_client_does_not_stop_while_it_answers_bubbles() {
    let mut gateway = relay();
    establish(&mut gateway, 1);
    let mut bubbles = 0;
    for second in 1..200_u32 {
        gateway.waits(SECOND);
        gateway.receives(packet(NATIVE, &client6(1)));
        assert_eq!(gateway.last, Verdict::Forward, "after {second} s");
        sends_to(&mut gateway, mapped(1), packet(NATIVE, &client6(1)));
        if gateway.waiting() > 0 {
            asks(&mut gateway, RELAY6, &client6(1));
            gateway.receives(datagram(mapped(1), LOCAL, bubble(&client6(1), RELAY6)));
            gateway.sends_nothing();
            bubbles += 1;
        }
    }
    assert_eq!(bubbles, 199 / 20);
}

#[test]
fn a_client_that_no_packet_passes_to_or_from_is_forgotten() {
    let mut gateway = relay();
    establish(&mut gateway, 1);
    (0..12).for_each(|_| gateway.waits(30 * SECOND));
    assert_eq!(gateway.engine.teredo()[0].peer(client6(1).parse().unwrap(), gateway.now), None);
    gateway.sends_nothing();
}

#[test]
fn a_gso_packet_waits_and_goes_out_as_one_datagram_for_each_segment() {
    let mut gateway = relay();
    let data = vec![7; 3_000];
    let octets = v6(NATIVE, &client6(1)).tcp(1_000, 80, 0x10, &data).octets();
    let segments = Some(Segments { size: 1_200, kind: SegmentKind::Tcp });
    gateway.receives_with(octets.clone(), Offload { segments, ..Offload::default() });
    assert_eq!(gateway.last, Verdict::Held);
    gateway.sent();
    gateway.receives(datagram(mapped(1), LOCAL, bubble(&client6(1), RELAY6)));
    for payload in [1_200, 1_200, 600] {
        let (to, inner) = super::sent_datagram(&mut gateway);
        assert_eq!((to, inner.len()), (mapped(1), 60 + payload));
    }
    gateway.sends_nothing();
}

#[test]
fn a_packet_that_does_not_fit_the_tunnel_is_answered_with_its_mtu() {
    let mut gateway = relay();
    establish(&mut gateway, 1);
    gateway.receives(v6(NATIVE, &client6(1)).udp(1, 2, &[0; 1_300]));
    let error = gateway.sent();
    assert_eq!((error[40], u32::from_be_bytes(error[44..48].try_into().unwrap())), (2, 1_280));
}

#[test]
fn without_a_local_end_nothing_is_sent_and_nothing_taken() {
    let mut gateway = relay();
    establish(&mut gateway, 1);
    gateway.engine.change_teredo(0, &TeredoChange::Local(None, Vec::new()), gateway.now);
    gateway.receives(packet(NATIVE, &client6(1)));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::NoRemote));
    gateway.sent();
    gateway.receives(datagram(mapped(1), LOCAL, packet(&client6(1), NATIVE)));
    assert!(matches!(gateway.last, Verdict::Dropped(_)));
}

#[test]
fn datagrams_to_other_ports_and_of_other_protocols_are_not_the_tunnels() {
    let mut gateway = relay();
    establish(&mut gateway, 1);
    let other = Endpoint4::new(LOCAL.address, 53);
    gateway.receives(datagram(mapped(1), other, packet(&client6(1), NATIVE)));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::NoMechanism));
    gateway.sent();
    gateway.receives(v4(&mapped(1).address.to_string(), "192.0.2.9").tcp(40_000, 3_544, 2, b""));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::NoMechanism));
}

#[test]
fn a_datagram_whose_length_is_wrong_is_dropped() {
    for (length, reason) in
        [(7, DropReason::TransportTruncated), (2_000, DropReason::BadUdpLength), (20, DropReason::Truncated)]
    {
        let mut gateway = relay();
        establish(&mut gateway, 1);
        let mut octets = datagram(mapped(1), LOCAL, packet(&client6(1), NATIVE)).octets();
        octets[24..26].copy_from_slice(&u16::to_be_bytes(length));
        gateway.receives(octets);
        assert_eq!(gateway.last, Verdict::Dropped(reason), "{length}");
    }
}

/// RFC 6081 §5.2.4.4.
#[test]
fn a_client_behind_a_symmetric_nat_is_followed_if_it_proves_by_the_nonce_that_it_got_the_bubble() {
    let mut gateway = relay();
    let address = client6(1);
    let elsewhere = Endpoint4::new(mapped(1).address, 50_001);
    gateway.receives(packet(NATIVE, &address));
    let nonce = asks(&mut gateway, RELAY6, &address);
    let with = |trailers: &[u8]| [&bubble(&address, RELAY6)[..], trailers].concat();
    let mut forged = nonce.clone();
    forged[2] ^= 1;
    for trailers in [&[][..], &forged] {
        gateway.refuses(datagram(elsewhere, LOCAL, with(trailers)), DropReason::SpoofedEmbeddedSource);
    }
    gateway.receives(datagram(elsewhere, LOCAL, with(&nonce)));
    sends_to(&mut gateway, elsewhere, packet(NATIVE, &address));
    gateway.receives(datagram(elsewhere, LOCAL, packet(&address, NATIVE)));
    gateway.sends(packet(&address, NATIVE));
    // A nonce is of no use once the time for the answer is over.
    let other = Endpoint4::new(mapped(1).address, 50_002);
    gateway.waits(9 * SECOND);
    gateway.refuses(datagram(other, LOCAL, with(&nonce)), DropReason::SpoofedEmbeddedSource);
}
