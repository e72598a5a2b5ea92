//! What a client does not believe though a server or a trusted peer sent it.

use super::client::qualified;
use super::{LOCAL, NATIVE, SERVER, bubble, client6, datagram, establish, mapped, packet, relay};
use super::{advertisement, sent_datagram};
use crate::support::v6;
use core::net::Ipv4Addr;
use sixway_dataplane::mechanism::teredo::TeredoChange;
use sixway_dataplane::{DropReason, Verdict};
use sixway_wire::Endpoint4;
use sixway_wire::teredo::{Origin, TeredoAddress, TeredoInterface};

#[test]
fn an_advertisement_from_another_port_or_address_than_the_servers_is_not_for_control() {
    let mut gateway = qualified();
    let elsewhere = Endpoint4::new(Ipv4Addr::new(198, 51, 100, 3), 3_544);
    for from in [Endpoint4 { port: 3_545, ..SERVER }, elsewhere] {
        gateway.refuses(datagram(from, LOCAL, advertisement()), DropReason::TeredoUnexpected);
    }
}

#[test]
fn a_server_forwards_bubbles_and_no_data() {
    let mut gateway = qualified();
    for origin in [Vec::new(), Origin(mapped(1)).octets().to_vec()] {
        let payload = [origin, packet(&client6(1), &client6(0)).octets()].concat();
        gateway.refuses(datagram(SERVER, LOCAL, payload), DropReason::TeredoUnexpected);
    }
    assert_eq!(gateway.engine.teredo()[0].row().peers, [0; 4]);
}

#[test]
fn nothing_is_in_front_of_a_trusted_peers_packets() {
    let mut gateway = qualified();
    let whole = packet(&client6(1), &client6(0));
    assert!(gateway.passes(datagram(mapped(1), LOCAL, whole.clone())));
    let payload = [&Origin(mapped(3)).octets()[..], &whole.octets()].concat();
    gateway.refuses(datagram(mapped(1), LOCAL, payload), DropReason::TeredoUnexpected);
}

#[test]
fn a_client_sends_nothing_to_its_own_address() {
    let mut gateway = qualified();
    gateway.receives(packet(&client6(0), &client6(0)));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::TunnelLoop));
    assert_eq!(gateway.engine.teredo()[0].row().peers, [0; 4]);
}

#[test]
fn a_trusted_clients_packets_go_to_hosts_and_not_along_a_route() {
    let mut gateway = relay();
    establish(&mut gateway, 1);
    for to in ["::1", "ff0e::1", "::ffff:192.0.2.1", "::192.0.2.1"] {
        gateway.counted_before();
        gateway.receives(datagram(mapped(1), LOCAL, packet(&client6(1), to)));
        assert!(matches!(gateway.last, Verdict::Dropped(_)), "{to}");
        gateway.sends_nothing();
    }
    let route = [&[17, 2, 4, 1, 0, 0, 0, 0][..], &[0x20; 16]].concat();
    let routed = v6(&client6(1), NATIVE).extension(43, &route).udp(4_000, 53, b"data");
    gateway.receives(datagram(mapped(1), LOCAL, routed));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::RoutingHeader));
}

/// The address of a client of our server that says to be there.
fn client_at(endpoint: Endpoint4) -> String {
    let interface = TeredoInterface { flags: 0, mapped: endpoint };
    TeredoAddress { server: SERVER.address, interface }.address().to_string()
}

#[test]
fn a_client_that_says_to_be_in_a_local_network_gets_no_bubble_there_even_if_this_host_asks_for_it() {
    for address in ["10.1.2.3", "127.0.0.1", "192.168.1.1"] {
        let mut gateway = qualified();
        let peer = client_at(Endpoint4::new(address.parse().unwrap(), 53));
        gateway.receives(datagram(SERVER, LOCAL, bubble(&peer, &client6(0))));
        assert_eq!(sent_datagram(&mut gateway).0, SERVER, "{address}");
        gateway.sends_nothing();
        gateway.waits(core::time::Duration::from_secs(2));
        gateway.receives(packet(&client6(0), &peer));
        assert_eq!(sent_datagram(&mut gateway).0, SERVER, "{address}");
        gateway.sends_nothing();
    }
}

#[test]
fn a_neighbours_bubble_makes_a_client_send_to_no_broadcast_address_and_not_to_itself() {
    let near = [10, 0, 0, 7];
    for (address, port, is_host) in [
        (near, 4_000, true),
        (near, 0, false),
        ([10, 0, 0, 255], 4_000, false),
        ([10, 0, 0, 0], 4_000, false),
        ([127, 0, 0, 1], 4_000, false),
        ([10, 0, 0, 5], 4_000, false),
    ] {
        let mut gateway = qualified();
        let own = Endpoint4::new(Ipv4Addr::new(10, 0, 0, 5), LOCAL.port);
        let subnets = vec!["10.0.0.0/24".parse().unwrap(), "127.0.0.0/8".parse().unwrap()];
        gateway.engine.change_teredo(0, &TeredoChange::Local(Some(own), subnets), gateway.now);
        let trailer = [&[3, 8, 0, 0][..], &address, &u16::to_be_bytes(port)].concat();
        let payload = [bubble(&client6(2), &client6(0)), trailer].concat();
        gateway.receives(datagram(SERVER, own, payload));
        let listed = Endpoint4::new(address.into(), port);
        let to = [mapped(2), listed, SERVER].into_iter().filter(|to| is_host || *to != listed);
        for to in to {
            assert_eq!(gateway.sent()[16..20], to.address.octets(), "{listed}");
        }
        gateway.sends_nothing();
    }
}

#[test]
fn peers_that_are_forgotten_leave_their_senders_and_their_addresses_share() {
    let mut gateway = relay();
    for round in 0..3_u16 {
        for number in 0..17_u16 {
            let port = 1_000 * (round + 1) + number;
            let peer = client_at(Endpoint4::new(mapped(1).address, port));
            gateway.receives(packet(NATIVE, &peer));
            let is_refused = gateway.last == Verdict::Dropped(DropReason::TeredoPeersFull);
            assert_eq!(is_refused, number == 16, "{round} {number}: {:?}", gateway.last);
        }
        (0..400).for_each(|_| gateway.waits(core::time::Duration::from_secs(1)));
        assert_eq!(gateway.engine.teredo()[0].row().peers, [0; 4]);
    }
}
