//! While one does its worst, what do others lose?

use super::{LOCAL, NATIVE, RELAY6, bubble, client, client6, datagram, establish, mapped, packet, relay};
use super::{SERVER, advertisement, asks, relay_with, sends_to};
use crate::support::{Gateway, gateway, nat64};
use core::net::Ipv4Addr;
use core::time::Duration;
use sixway_dataplane::mechanism::teredo::{PeerState, TeredoChange, TeredoConfig, TeredoRole};
use sixway_dataplane::{DropReason, Verdict};
use sixway_wire::Endpoint4;
use sixway_wire::teredo::{Origin, TeredoAddress};

/// Packets from this host to many clients that do not exist.
fn flood(gateway: &mut Gateway, host: &str, clients: core::ops::Range<u32>) {
    for number in clients {
        gateway.receives(packet(host, &client6(number)));
        while gateway.waiting() > 0 {
            gateway.sent();
        }
    }
}

fn count(gateway: &Gateway, state: PeerState) -> u32 {
    gateway.engine.teredo()[0].row().peers[state as usize]
}

#[test]
fn a_sender_to_clients_that_do_not_exist_takes_its_share_of_the_list_alone() {
    let mut gateway = relay_with(|config| config.max_peers = 6_400);
    (0..20).for_each(|number| establish(&mut gateway, number * 16));
    flood(&mut gateway, "2001:db8:666::1", 1_000..3_000);
    assert_eq!(count(&gateway, PeerState::Contacting), 100, "one part in 64");
    // Another host gets an entry, and its packet to an established client goes immediately.
    establish(&mut gateway, 400);
    gateway.receives(packet(NATIVE, &client6(0)));
    sends_to(&mut gateway, mapped(0), packet(NATIVE, &client6(0)));
}

#[test]
fn a_flood_from_everywhere_ends_no_established_client_and_new_ones_still_come_in() {
    let mut gateway = relay_with(|config| config.max_peers = 200);
    (0..50).for_each(|number| establish(&mut gateway, number * 16));
    for site in 0..100 {
        gateway.now = gateway.now + Duration::from_millis(20);
        flood(
            &mut gateway,
            &format!("2001:db8:{:x}::1", 0x1000 + site),
            1_000 + site * 400..1_010 + site * 400,
        );
    }
    assert_eq!(count(&gateway, PeerState::Established), 50);
    gateway.receives(packet(NATIVE, &client6(999)));
    assert_eq!(gateway.last, Verdict::Held);
    let error = gateway.sent();
    assert_eq!((error[40], error[41]), (1, 3), "whoever had the place that it got is told");
    asks(&mut gateway, RELAY6, &client6(999));
    gateway.receives(datagram(mapped(999), LOCAL, bubble(&client6(999), RELAY6)));
    sends_to(&mut gateway, mapped(999), packet(NATIVE, &client6(999)));
    assert_eq!(count(&gateway, PeerState::Established), 51);
}

#[test]
fn where_every_place_is_an_established_clients_a_new_one_is_refused() {
    let mut gateway = relay_with(|config| config.max_peers = 20);
    (0..20).for_each(|number| establish(&mut gateway, number * 16));
    gateway.receives(packet(NATIVE, &client6(999)));
    assert_eq!(gateway.last, Verdict::Dropped(DropReason::TeredoPeersFull));
    let error = gateway.sent();
    assert_eq!((error[40], error[41]), (1, 3));
    gateway.sends_nothing();
}

/// One IPv4 address can be in any number of clients' addresses.
#[test]
fn an_ipv4_address_has_a_share_of_the_list() {
    let mut gateway = relay_with(|config| config.max_peers = 64 * 16);
    for flags in 0..40_u16 {
        let mut client = super::client(1);
        client.interface.flags = flags;
        gateway.receives(packet(&format!("2001:db8:{flags:x}::1"), &client.address().to_string()));
    }
    assert_eq!(count(&gateway, PeerState::Contacting), 16);
}

#[test]
fn packets_that_wait_are_shared_by_their_senders() {
    let mut gateway = relay_with(|config| config.max_peers = 100_000);
    flood(&mut gateway, "2001:db8:666::1", 1_000..3_000);
    let held = gateway.engine.teredo()[0].row().waiting;
    assert!(held < 200, "{held} of 1,024");
    gateway.receives(packet(NATIVE, &client6(0)));
    assert_eq!(gateway.last, Verdict::Held);
    asks(&mut gateway, RELAY6, &client6(0));
    gateway.receives(datagram(mapped(0), LOCAL, bubble(&client6(0), RELAY6)));
    sends_to(&mut gateway, mapped(0), packet(NATIVE, &client6(0)));
}

/// Whoever writes a server into addresses makes the relay send to it.
#[test]
fn no_address_gets_more_than_500_bubbles_a_second() {
    let mut gateway = relay_with(|config| config.max_peers = 1_000_000);
    let mut bubbles = 0;
    for number in 0..20_000_u32 {
        let site = number / 100;
        gateway.receives(packet(&format!("2001:db8:{site:x}::1"), &client6(number)));
        bubbles += gateway.waiting();
        while gateway.waiting() > 0 {
            gateway.sent();
        }
    }
    assert_eq!(bubbles, 1_000, "a burst of two seconds");
    let row = gateway.engine.teredo()[0].row();
    assert!(row.bubbles_limited > 10_000);
    gateway.now = gateway.now + Duration::from_secs(1);
    let mut later = 0;
    for number in 20_000..22_000_u32 {
        let site = number / 100;
        gateway.receives(packet(&format!("2001:db8:{site:x}::1"), &client6(number)));
        later += gateway.waiting();
        while gateway.waiting() > 0 {
            gateway.sent();
        }
    }
    assert_eq!(later, 500);
}

#[test]
fn a_hundred_thousand_clients_expire_a_bounded_number_at_a_time() {
    let mut gateway = relay_with(|config| config.max_peers = 100_000);
    for site in 0..200_u32 {
        flood(&mut gateway, &format!("2001:db8:{site:x}::1"), site * 400..site * 400 + 400);
    }
    let before = count(&gateway, PeerState::Contacting);
    assert!(before > 70_000, "{before}");
    gateway.waits(Duration::from_secs(2));
    let sent = gateway.waiting();
    assert!(sent <= 256, "{sent} bubbles in one step");
}

#[test]
fn a_forged_packet_of_a_client_does_not_make_it_trusted() {
    let mut gateway = relay();
    gateway.receives(packet(NATIVE, &client6(1)));
    gateway.sent();
    gateway
        .refuses(datagram(mapped(2), LOCAL, bubble(&client6(1), RELAY6)), DropReason::SpoofedEmbeddedSource);
    gateway.receives(packet(NATIVE, &client6(1)));
    assert_eq!(gateway.last, Verdict::Held);
}

#[test]
fn a_flood_of_advertisements_leaves_control_room_for_those_of_the_server() {
    let mut gateway = super::client::qualified();
    for _ in 0..5_000 {
        gateway.receives(datagram(mapped(7), LOCAL, advertisement()));
        assert_eq!(gateway.last, Verdict::Dropped(DropReason::TeredoUnexpected));
    }
    let from_server = (0..1_000).filter(|_| {
        gateway.receives(datagram(SERVER, LOCAL, advertisement()));
        gateway.last == Verdict::Control
    });
    assert_eq!(from_server.count(), 200, "a burst of two seconds");
}

/// This host's own packets make the peers of a client.
#[test]
fn a_client_reaches_as_many_hosts_as_it_wants_while_many_others_are_dead() {
    let mut gateway = super::client::qualified();
    for number in 0..500_u32 {
        gateway.receives(packet(&client6(0), &format!("2001:db8:{number:x}::1")));
        assert_eq!(gateway.last, Verdict::Held, "{number}");
    }
}

#[test]
fn what_waits_at_a_client_stays_while_the_rate_of_its_server_is_used_up() {
    let mut gateway =
        super::with_teredo(TeredoConfig::new(TeredoRole::Client), |config| config.max_peers = 5_000);
    gateway.engine.change_teredo(0, &TeredoChange::Client(Some(super::client(0))), gateway.now);
    for number in 0..1_002_u32 {
        gateway.receives(packet(&client6(0), &format!("2001:db8:{number:x}::1")));
    }
    gateway.receives(packet(&client6(0), "2001:db8:3e9::1"));
    assert_eq!(gateway.last, Verdict::Held);
    let counters = gateway.engine.counters();
    assert_eq!((counters.held, counters.dropped_total()), (1_003, 0));
}

/// §5.2.4: the sender of a bubble writes the server of its address.
#[test]
fn a_client_asks_no_server_in_a_local_network() {
    for server in ["10.0.0.1", "192.168.1.1", "224.0.0.253"] {
        let mut gateway = super::client::qualified();
        let peer = TeredoAddress { server: server.parse().unwrap(), ..super::client(1) };
        let mut payload = Origin(mapped(1)).octets().to_vec();
        payload.extend(bubble(&peer.address().to_string(), &client6(0)));
        gateway.receives(datagram(SERVER, LOCAL, payload));
        let (to, _) = super::sent_datagram(&mut gateway);
        assert_eq!(to, mapped(1));
        for _ in 0..5 {
            gateway.waits(Duration::from_secs(2));
            while gateway.waiting() > 0 {
                assert_eq!(super::sent_datagram(&mut gateway).0, mapped(1));
            }
        }
    }
}

/// A sender over its rate does not keep others from clients that nobody has asked.
#[test]
fn a_burst_of_one_sender_makes_no_client_unreachable_for_others() {
    let mut gateway = relay_with(|config| config.max_peers = 100_000);
    flood(&mut gateway, "2001:db8:666::1", 1_000..2_500);
    assert_eq!(count(&gateway, PeerState::Contacting), 1_500);
    gateway.receives(packet(NATIVE, &client6(2_400)));
    assert_eq!(gateway.last, Verdict::Held);
    asks(&mut gateway, RELAY6, &client6(2_400));
    for _ in 0..8 {
        for _ in 0..20 {
            gateway.waits(Duration::from_millis(100));
            while gateway.waiting() > 0 {
                gateway.sent();
            }
        }
    }
    let unreachable = count(&gateway, PeerState::Unreachable);
    assert!(unreachable < 1_000, "{unreachable}: those alone that were asked");
}

/// RFC 6052 §5.1: inside hosts would take it for translated, and for this gateway. A host that the network of a relay's translator leads to could
/// prove the first one.
#[test]
fn sources_of_the_gateway_and_of_its_nat64_come_through_no_tunnel_in_udp() {
    let mut config = TeredoConfig::new(TeredoRole::Client);
    config.servers = vec![SERVER.address];
    let mut gateway = gateway(|engine| {
        engine.nat64.push(nat64());
        engine.others.push(config.into());
    });
    let now = gateway.now;
    gateway.engine.change_teredo(0, &TeredoChange::Local(Some(LOCAL), Vec::new()), now);
    gateway.engine.change_teredo(0, &TeredoChange::Client(Some(client(0))), now);
    let relay = Endpoint4::new(Ipv4Addr::new(198, 51, 100, 77), 3_545);
    for forged in ["64:ff9b::203.0.113.7", "2001:db8::fe"] {
        let one = datagram(relay, LOCAL, packet(forged, &client6(0)));
        gateway.refuses(one, DropReason::SourceNotInTunnel);
        gateway.sends_nothing();
    }
}
