//! The server: leases, and attacks on it.

use super::{HOUR, SERVER_ID, ask, at, discover, host, lease, lease_of, request, settings};
use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use sixway_control::dhcp4o6::{
    Asker, Change, Dhcpv4, Envelope, Lease, LeaseState, MessageKind, Refusal, RelayHop, Server,
    ServerSettings,
};

fn server() -> Server {
    Server::new(settings(), 7)
}

fn changes(server: &mut Server) -> Vec<Change> {
    std::iter::from_fn(|| server.poll_change()).collect()
}

#[test]
fn a_host_gets_a_lease_renews_it_and_gives_it_back() {
    let mut server = server();
    let ipv4 = lease(&mut server, at(0), host(1)).unwrap();
    let bound = |until| Lease { ipv4, host: host(1), state: LeaseState::Bound, until };
    assert_eq!(changes(&mut server), [Change::Bound(bound(at(3_600)))]);
    let renew = Dhcpv4 { ciaddr: ipv4, ..Dhcpv4::new(MessageKind::Request, 9) };
    let answer = ask(&mut server, at(1_800), host(1), &renew, true).unwrap().unwrap();
    assert_eq!((answer.kind, answer.yiaddr, answer.ciaddr), (MessageKind::Ack, ipv4, ipv4));
    assert_eq!(
        (answer.lease_time, answer.renewal, answer.rebinding),
        (Some(3_600), Some(1_800), Some(3_150))
    );
    assert_eq!(changes(&mut server), [Change::Bound(bound(at(5_400)))]);
    let release = Dhcpv4 { ciaddr: ipv4, server: Some(SERVER_ID), ..Dhcpv4::new(MessageKind::Release, 10) };
    assert_eq!(ask(&mut server, at(2_000), host(1), &release, true), Ok(None));
    let [Change::Ended(ended)] = changes(&mut server)[..] else { panic!("it has not ended") };
    assert_eq!((ended.ipv4, server.bound()), (ipv4, 0));
    // RFC 2131 §4.3.1: a client gets the address that it had.
    assert_eq!(discover(&mut server, at(2_100), host(1)), Ok(ipv4));
}

#[test]
fn a_lease_ends_by_time_and_its_address_goes_to_another_host_last() {
    let mut server = server();
    let first = lease(&mut server, at(0), host(1)).unwrap();
    changes(&mut server);
    assert_eq!(server.poll_timeout(), Some(at(3_600)));
    server.expire(at(3_600));
    assert!(matches!(changes(&mut server)[..], [Change::Ended(lease)] if lease.ipv4 == first));
    let others: Vec<Ipv4Addr> =
        (2..10).map(|number| lease(&mut server, at(3_601), host(number)).unwrap()).collect();
    assert_eq!(others.iter().position(|ipv4| *ipv4 == first), Some(7));
    assert_eq!(lease(&mut server, at(3_602), host(1)), Err(Refusal::PoolEmpty));
}

#[test]
fn an_offer_that_is_not_taken_is_free_again_after_a_minute() {
    let mut server =
        Server::new(ServerSettings { pool: vec!["192.0.2.16/32".parse().unwrap()], ..settings() }, 7);
    let ipv4 = discover(&mut server, at(0), host(1)).unwrap();
    assert_eq!(discover(&mut server, at(59), host(2)), Err(Refusal::PoolEmpty));
    assert_eq!(discover(&mut server, at(60), host(2)), Ok(ipv4));
    assert_eq!(request(&mut server, at(61), host(1), ipv4), Some(MessageKind::Nak));
    assert_eq!(request(&mut server, at(62), host(2), ipv4), Some(MessageKind::Ack));
}

#[test]
fn a_host_that_comes_back_asks_for_its_address_by_one_message() {
    // RFC 2131 §4.3.2: INIT-REBOOT.
    let mut server = server();
    let ipv4 = lease(&mut server, at(0), host(1)).unwrap();
    server.end(ipv4, at(1));
    let reboot = |ipv4| Dhcpv4 { requested: Some(ipv4), ..Dhcpv4::new(MessageKind::Request, 9) };
    let kind = |server: &mut Server, number, ipv4| {
        ask(server, at(2), host(number), &reboot(ipv4), false).map(|answer| answer.unwrap().kind)
    };
    assert_eq!(kind(&mut server, 1, ipv4), Ok(MessageKind::Ack));
    assert_eq!(kind(&mut server, 1, "192.0.2.20".parse().unwrap()), Ok(MessageKind::Nak), "it has another");
    assert_eq!(kind(&mut server, 2, ipv4), Ok(MessageKind::Nak), "another has it");
    assert_eq!(kind(&mut server, 2, "203.0.113.1".parse().unwrap()), Ok(MessageKind::Nak), "a wrong network");
    assert_eq!(kind(&mut server, 2, "192.0.2.20".parse().unwrap()), Err(Refusal::NotOurs), "no record");
}

#[test]
fn the_offer_of_another_server_frees_ours() {
    let mut server = server();
    discover(&mut server, at(0), host(1)).unwrap();
    let other = Dhcpv4 {
        requested: Some("203.0.113.9".parse().unwrap()),
        server: Some("203.0.113.1".parse().unwrap()),
        ..Dhcpv4::new(MessageKind::Request, 8)
    };
    assert_eq!(ask(&mut server, at(1), host(1), &other, false), Err(Refusal::NotOurs));
    assert_eq!(server.leases_from(Ipv4Addr::UNSPECIFIED).count(), 0);
}

#[test]
fn a_static_lease_is_its_hosts_alone() {
    let fixed = vec![(host(1), "192.0.2.16".parse().unwrap())];
    let mut server = Server::new(ServerSettings { fixed, ..settings() }, 7);
    assert_eq!(lease(&mut server, at(0), host(1)), Ok("192.0.2.16".parse().unwrap()));
    assert!(changes(&mut server).is_empty(), "the configuration has its binding");
    for number in 2..9 {
        assert_ne!(lease(&mut server, at(0), host(number)), Ok("192.0.2.16".parse().unwrap()));
    }
    assert_eq!(discover(&mut server, at(0), host(9)), Err(Refusal::PoolEmpty));
}

#[test]
fn a_client_names_another_end_of_its_tunnel_only_within_its_prefix() {
    // RFC 8539.
    let mut server = server();
    let named =
        |source: Ipv6Addr| Dhcpv4 { softwire_source: Some(source), ..Dhcpv4::new(MessageKind::Discover, 7) };
    let own: Ipv6Addr = "2001:db8:a:100::77".parse().unwrap();
    let answer = ask(&mut server, at(0), host(1), &named(own), false).unwrap().unwrap();
    assert_eq!(answer.softwire_source, Some(own));
    // Another customer's: the lease is bound to the sender.
    let answer = ask(&mut server, at(0), host(2), &named(host(3)), false).unwrap().unwrap();
    assert_eq!(answer.softwire_source, Some(host(2)));
    let hosts: Vec<Ipv6Addr> = server.leases_from(Ipv4Addr::UNSPECIFIED).map(|lease| lease.host).collect();
    assert_eq!(hosts, [own, host(2)]);
}

#[test]
fn queries_through_a_relay_agent_are_answered_through_it() {
    let mut server = server();
    let relay: Ipv6Addr = "2001:db8:77::1".parse().unwrap();
    let hop = RelayHop { hops: 0, link: relay, peer: host(1), interface: Some(b"eth0".to_vec()) };
    let asked = Dhcpv4::new(MessageKind::Discover, 7).to_octets();
    let query = Envelope { relays: vec![hop.clone()], ..Envelope::query(asked, false) };
    let reply = server.handle_query(at(0), relay, &query.to_octets()).unwrap().unwrap();
    let read = Envelope::parse(&reply.octets).unwrap();
    assert_eq!((reply.octets[0], read.relays), (13, vec![hop]));
    assert_eq!(server.leases_from(Ipv4Addr::UNSPECIFIED).next().unwrap().host, host(1));
}

/// RFC 7341 §9: a client whose option 88 is empty asks by multicast, from a link-local address, which says nothing at the server.
#[test]
fn a_client_that_asks_a_relay_agent_by_multicast_gets_its_lease_for_an_end_on_its_link_alone() {
    let mut server = server();
    let relay: Ipv6Addr = "2001:db8:77::1".parse().unwrap();
    let asks = |server: &mut Server, link: Ipv6Addr, end: Option<Ipv6Addr>| {
        let peer = "fe80::7".parse().unwrap();
        let hop = RelayHop { hops: 0, link, peer, interface: Some(b"eth0".to_vec()) };
        let asked = Dhcpv4 { softwire_source: end, ..Dhcpv4::new(MessageKind::Discover, 7) };
        let query = Envelope { relays: vec![hop], ..Envelope::query(asked.to_octets(), false) };
        server.handle_query(at(0), relay, &query.to_octets())
    };
    let link = Ipv6Addr::from_bits(host(1).to_bits() | 0xff);
    let reply = asks(&mut server, link, Some(host(1))).unwrap().unwrap();
    let offer = Dhcpv4::parse(&Envelope::parse(&reply.octets).unwrap().dhcpv4).unwrap();
    assert_eq!((offer.kind, offer.softwire_source), (MessageKind::Offer, Some(host(1))));
    assert_eq!(lease_of(&server, offer.yiaddr).map(|lease| lease.host), Some(host(1)));
    for (link, end) in [
        (link, Some(host(2))),
        (link, None),
        (Ipv6Addr::UNSPECIFIED, Some(host(1))),
        ("2001:db9::1".parse().unwrap(), Some("2001:db9::2".parse().unwrap())),
    ] {
        assert_eq!(asks(&mut server, link, end), Err(Refusal::NotAClient), "{link} {end:?}");
    }
    assert_eq!(server.leases_from(Ipv4Addr::UNSPECIFIED).count(), 1);
}

#[test]
fn unknown_clients_get_no_answer_and_no_address() {
    let mut server = server();
    assert_eq!(discover(&mut server, at(0), "2001:db9::1".parse().unwrap()), Err(Refusal::NotAClient));
    assert_eq!((server.counters.not_clients, server.leases_from(Ipv4Addr::UNSPECIFIED).count()), (1, 0));
}

#[test]
fn a_client_prefix_that_takes_all_leases_gets_its_share_and_others_lose_nothing() {
    let pool = vec!["198.51.100.0/24".parse().unwrap()];
    let mut server = Server::new(ServerSettings { pool, ..settings() }, 7);
    let attacker = host(1).to_bits();
    let mut got = 0;
    for number in 0..10_000_u128 {
        let source = Ipv6Addr::from_bits(attacker + (number << 32));
        got += usize::from(lease(&mut server, at(0), source).is_ok());
    }
    assert_eq!(got, 2);
    assert_eq!(server.counters.refused_share, 9_998);
    for number in 2..250 {
        assert!(lease(&mut server, at(1), host(number)).is_ok(), "{number}");
    }
}

#[test]
fn a_flood_of_discovers_is_limited_and_others_are_answered() {
    let mut server = Server::new(ServerSettings { queries_per_second: 10, ..settings() }, 7);
    let mut answered = 0;
    for _query in 0..10_000 {
        answered += usize::from(discover(&mut server, at(0), host(1)).is_ok());
    }
    assert_eq!((answered, server.counters.limited), (20, 9_980));
    assert!(lease(&mut server, at(0), host(2)).is_ok());
    assert!(discover(&mut server, at(2), host(1)).is_ok());
}

#[test]
fn who_declines_all_addresses_has_his_share_of_them_and_no_more() {
    let mut server = server();
    let mut declined = 0;
    for number in 0..8 {
        let source = Ipv6Addr::from_bits(host(1).to_bits() + number);
        let Ok(ipv4) = lease(&mut server, at(0), source) else { continue };
        let decline =
            Dhcpv4 { requested: Some(ipv4), server: Some(SERVER_ID), ..Dhcpv4::new(MessageKind::Decline, 9) };
        assert_eq!(ask(&mut server, at(0), source, &decline, false), Ok(None));
        declined += 1;
    }
    assert_eq!((declined, server.counters.declines), (2, 2));
    let ended = changes(&mut server).into_iter().filter(|change| matches!(change, Change::Ended(_))).count();
    assert_eq!(ended, 2);
    for number in 2..8 {
        assert!(lease(&mut server, at(1), host(number)).is_ok());
    }
    assert_eq!(discover(&mut server, at(2), host(9)), Err(Refusal::PoolEmpty));
    server.expire(at(3_600));
    assert!(discover(&mut server, at(3_600), host(9)).is_ok());
}

#[test]
fn nobody_ends_or_renews_anothers_lease() {
    let mut server = server();
    let ipv4 = lease(&mut server, at(0), host(1)).unwrap();
    let release = Dhcpv4 { ciaddr: ipv4, server: Some(SERVER_ID), ..Dhcpv4::new(MessageKind::Release, 9) };
    assert_eq!(ask(&mut server, at(1), host(2), &release, true), Ok(None));
    let renew = Dhcpv4 { ciaddr: ipv4, ..Dhcpv4::new(MessageKind::Request, 9) };
    assert_eq!(ask(&mut server, at(1), host(2), &renew, true).unwrap().unwrap().kind, MessageKind::Nak);
    assert_eq!((server.bound(), server.counters.releases), (1, 0));
}

#[test]
fn leases_are_taken_up_after_a_restart_unless_they_do_not_fit() {
    let mut server = server();
    let held =
        |ipv4: &str, host, state| Lease { ipv4: ipv4.parse().unwrap(), host, state, until: at(0) + HOUR };
    assert!(server.restore(held("192.0.2.16", host(1), LeaseState::Bound)));
    assert!(server.restore(held("192.0.2.17", host(2), LeaseState::Ended)));
    assert!(!server.restore(held("192.0.2.16", host(3), LeaseState::Bound)), "another has it");
    assert!(!server.restore(held("192.0.2.18", host(1), LeaseState::Bound)), "the host has another");
    assert!(!server.restore(held("203.0.113.1", host(4), LeaseState::Bound)), "not of the pool");
    assert!(
        !server.restore(held("192.0.2.19", "2001:db9::1".parse().unwrap(), LeaseState::Bound)),
        "no client"
    );
    assert_eq!(changes(&mut server).len(), 1);
    assert_eq!(lease(&mut server, at(1), host(2)), Ok("192.0.2.17".parse().unwrap()));
    assert_eq!(lease(&mut server, at(1), host(1)), Ok("192.0.2.16".parse().unwrap()));
}

/// Clients that look up names by streams, which prove their addresses.
fn outside(number: u8) -> Asker {
    Asker { client: Ipv4Addr::new(203, 0, 113, number).into(), is_proven: true }
}

/// The same by datagrams, whose sources may be forged.
fn forged(number: u8) -> Asker {
    Asker { is_proven: false, ..outside(number) }
}

#[test]
fn an_address_is_reserved_for_a_host_that_is_looked_up_and_the_host_renews_it() {
    let mut server = server();
    let (ipv4, left) = server.reserve(host(1), outside(1), at(0)).unwrap();
    assert_eq!(left, Duration::from_secs(120));
    assert_eq!(server.reserve("2001:db9::1".parse().unwrap(), outside(1), at(0)), Err(Refusal::NotAClient));
    assert!(matches!(changes(&mut server)[..], [Change::Bound(lease)] if lease.ipv4 == ipv4));
    // Nothing changes by a second query, until half of the time has passed.
    assert_eq!(server.reserve(host(1), outside(2), at(50)), Ok((ipv4, Duration::from_secs(70))));
    assert_eq!(changes(&mut server), []);
    assert_eq!(server.reserve(host(1), outside(2), at(60)), Ok((ipv4, Duration::from_secs(120))));
    // The host asks for the address that it remembers, or for any.
    assert_eq!(lease(&mut server, at(61), host(1)), Ok(ipv4));
    assert_eq!(server.bound(), 1);
    assert_eq!(server.poll_timeout(), Some(at(61) + HOUR));
    assert_eq!(server.reserve(host(1), outside(2), at(62)), Ok((ipv4, HOUR - Duration::from_secs(1))));
    assert_eq!(server.poll_timeout(), Some(at(61) + HOUR));
}

#[test]
fn a_host_that_is_looked_up_gets_the_address_that_it_had() {
    let mut server = server();
    let former = lease(&mut server, at(0), host(1)).unwrap();
    assert!(server.end(former, at(1)));
    lease(&mut server, at(2), host(2)).unwrap();
    assert_eq!(server.reserve(host(1), outside(1), at(3)).map(|(ipv4, _)| ipv4), Ok(former));
    // Nobody comes: the address is free again.
    server.expire(at(123));
    assert_eq!(server.bound(), 1);
}

#[test]
fn while_one_looks_up_all_names_in_a_loop_others_get_leases() {
    // 256 addresses, of which 32 may wait, 8 for one client.
    let pool = vec!["192.0.2.0/24".parse().unwrap()];
    let mut server = Server::new(ServerSettings { pool, leases_per_client: 1_000, ..settings() }, 7);
    let loops = |server: &mut Server, client: u8, second: u64| {
        let names = (0..200).map(|number| server.reserve(host(number), outside(client), at(second)));
        names.filter(Result::is_ok).count()
    };
    assert_eq!(loops(&mut server, 1, 0), 8);
    // Another client has addresses of its own for other names.
    assert!(server.reserve(host(201), outside(2), at(0)).is_ok());
    for client in 3..100 {
        loops(&mut server, client, 1);
    }
    assert_eq!(server.bound(), 32);
    // Hosts that ask get all others.
    let another = |number| Ipv6Addr::new(0x2001, 0xdb8, 0xb, number, 0, 0, 0, 1);
    let got = (0..300).filter(|number| lease(&mut server, at(2), another(*number)).is_ok()).count();
    assert_eq!(got, 256 - 32);
    // A host that asks for the address that waits for it counts no longer.
    assert!(lease(&mut server, at(3), host(201)).is_ok());
    assert_eq!(server.bound(), 256);
}

/// A server of 256 addresses, of which 32 may wait: 8 for one client, and 16 for clients that prove nothing.
fn with_names() -> Server {
    let pool = vec!["192.0.2.0/24".parse().unwrap()];
    Server::new(ServerSettings { pool, leases_per_client: 1_000, ..settings() }, 7)
}

#[test]
fn forged_datagrams_take_no_more_than_half_of_what_waits_and_nothing_of_a_client_that_proves_itself() {
    let mut server = with_names();
    let mut taken = 0;
    for client in 1..=200 {
        for number in 0..200 {
            taken += usize::from(server.reserve(host(number), forged(client), at(0)).is_ok());
        }
    }
    // Those that have an address are answered with it, whoever asks.
    assert_eq!(server.bound(), 16);
    assert_eq!(taken, 8 + 16 * 199);
    assert_eq!(server.reserve(host(201), forged(9), at(1)), Err(Refusal::Unproven));
    // In the name of the client itself, too.
    for number in 201..209 {
        assert!(server.reserve(host(number), outside(1), at(1)).is_ok(), "{number}");
    }
    assert_eq!(server.reserve(host(209), outside(1), at(1)), Err(Refusal::Reserved), "its quarter");
    assert!(server.reserve(host(209), outside(2), at(1)).is_ok());
}

#[test]
fn of_a_small_pool_an_address_waits_only_for_who_proves_itself() {
    let mut server = server();
    assert_eq!(server.reserve(host(1), forged(1), at(0)), Err(Refusal::Unproven));
    assert!(server.reserve(host(1), outside(1), at(0)).is_ok());
    assert!(server.reserve(host(1), forged(1), at(1)).is_ok(), "it has the address already");
}

#[test]
fn who_looks_up_again_what_another_had_wait_has_no_share_less() {
    let mut server = with_names();
    for number in 0..8 {
        server.reserve(host(number), outside(1), at(0)).unwrap();
    }
    // The innocent client has them wait for longer, and has addresses of its own.
    for number in 0..16 {
        assert!(server.reserve(host(number), outside(2), at(61)).is_ok(), "{number}");
    }
    assert_eq!(
        server.reserve(host(16), outside(1), at(62)),
        Err(Refusal::Reserved),
        "they still count for it"
    );
}

#[test]
fn what_no_longer_waits_makes_room_however_it_ended() {
    let mut server = with_names();
    let all: Vec<Ipv4Addr> =
        (0..8).map(|number| server.reserve(host(number), outside(1), at(0)).unwrap().0).collect();
    let full = |server: &mut Server, number| server.reserve(host(number), outside(1), at(1)).is_err();
    assert!(full(&mut server, 100));
    // An operator ends one, a host takes one, a host returns one, a host declines one.
    assert!(server.end(all[0], at(1)));
    lease(&mut server, at(1), host(1)).unwrap();
    let release = Dhcpv4 { ciaddr: all[2], server: Some(SERVER_ID), ..Dhcpv4::new(MessageKind::Release, 9) };
    assert_eq!(ask(&mut server, at(1), host(2), &release, true), Ok(None));
    let decline =
        Dhcpv4 { requested: Some(all[3]), server: Some(SERVER_ID), ..Dhcpv4::new(MessageKind::Decline, 9) };
    assert_eq!(ask(&mut server, at(1), host(3), &decline, false), Ok(None));
    assert!((100..104).all(|number| !full(&mut server, number)));
    assert!(full(&mut server, 104));
    // Time ends all others.
    let all_again = (200..208).filter(|number| server.reserve(host(*number), outside(1), at(121)).is_ok());
    assert_eq!(all_again.count(), 8);
}

#[test]
fn leases_that_wait_for_their_hosts_still_wait_after_a_restart() {
    let mut before = with_names();
    for number in 0..8 {
        before.reserve(host(number), outside(1), at(0)).unwrap();
    }
    let mut after = with_names();
    for held in before.leases_from(Ipv4Addr::UNSPECIFIED) {
        let asker = before.waits_for(held).unwrap();
        assert!(after.restore_waiting(*held, asker));
    }
    assert_eq!(after.reserve(host(100), outside(1), at(1)), Err(Refusal::Reserved), "its share");
    lease(&mut after, at(2), host(1)).unwrap();
    let taken = lease_of(&after, after.leases_from(Ipv4Addr::UNSPECIFIED).nth(1).unwrap().ipv4).copied();
    assert_eq!(taken.map(|it| (it.until, after.waits_for(&it))), Some((at(2) + HOUR, None)));
    assert!(after.reserve(host(100), outside(1), at(3)).is_ok());
}

#[test]
fn forged_queries_of_names_and_of_leases_take_nothing_from_another_client() {
    // Together: names by forged datagrams, hosts of one client prefix that ask, release and decline, and octets that are no messages.
    let pool = vec!["192.0.2.0/24".parse().unwrap()];
    let mut server = Server::new(ServerSettings { pool, ..settings() }, 7);
    let innocent: Vec<Ipv6Addr> =
        (0..100).map(|number| Ipv6Addr::new(0x2001, 0xdb8, 0xc, number << 8, 0, 0, 0, 1)).collect();
    let mut lost = 0;
    for round in 0..100_u64 {
        for number in 0..50 {
            let _refused = server.reserve(host(number), forged(round as u8), at(round));
            let each = u128::from(round) * 50 + u128::from(number);
            let attacker = Ipv6Addr::from_bits(host(60).to_bits() + (each << 32));
            let _refused = lease(&mut server, at(round), attacker);
            let _malformed = server.handle_query(at(round), attacker, &[20, 0, 0, 0, 0, 87, 255, 255]);
        }
        lost += usize::from(lease(&mut server, at(round), innocent[round as usize]).is_err());
    }
    assert_eq!(lost, 0);
}
