//! Limits of the rules: requests for too much, for another client's lease, or through another host.

use super::{SERVER_ID, ask, at, discover, host, lease, lease_of, request, settings};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use sixway_control::dhcp4o6::{
    Asker, Client, ClientEvent, ClientSettings, Dhcpv4, Envelope, Ignored, Lease, LeaseState, Malformed,
    MessageKind, Refusal, RelayHop, Server, ServerSettings,
};

const TUNNEL: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xa, 0, 0, 0, 0, 0x46);
const LEASED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 17);

fn with(change: impl FnOnce(&mut ServerSettings)) -> Server {
    let mut settings = settings();
    change(&mut settings);
    Server::new(settings, 7)
}

/// A host of the first client prefix.
fn sibling(number: u128) -> Ipv6Addr {
    Ipv6Addr::from_bits(host(1).to_bits() + number)
}

fn release(ipv4: Ipv4Addr) -> Dhcpv4 {
    Dhcpv4 { ciaddr: ipv4, server: Some(SERVER_ID), ..Dhcpv4::new(MessageKind::Release, 9) }
}

fn decline(ipv4: Ipv4Addr) -> Dhcpv4 {
    Dhcpv4 { requested: Some(ipv4), server: Some(SERVER_ID), ..Dhcpv4::new(MessageKind::Decline, 9) }
}

/// The host that has an address.
fn holder(server: &Server, ipv4: Ipv4Addr) -> Option<(Ipv6Addr, LeaseState)> {
    lease_of(server, ipv4).map(|lease| (lease.host, lease.state))
}

#[test]
fn a_host_whose_lease_has_ended_is_within_its_clients_share_when_it_comes_back() {
    let mut server = with(|_| {});
    let first = lease(&mut server, at(0), sibling(0)).unwrap();
    lease(&mut server, at(0), sibling(1)).unwrap();
    assert_eq!(ask(&mut server, at(1), sibling(0), &release(first), true), Ok(None));
    let third = lease(&mut server, at(2), sibling(2)).unwrap();
    assert_eq!(discover(&mut server, at(3), sibling(0)), Err(Refusal::Share));
    let reboot = Dhcpv4 { requested: Some(first), ..Dhcpv4::new(MessageKind::Request, 9) };
    assert_eq!(ask(&mut server, at(3), sibling(0), &reboot, false), Err(Refusal::Share));
    assert_eq!(server.bound(), 2);
    assert_eq!(ask(&mut server, at(4), sibling(2), &release(third), true), Ok(None));
    assert_eq!(lease(&mut server, at(5), sibling(0)), Ok(first));
}

#[test]
fn an_address_that_a_host_asks_for_is_the_pools_and_nobody_elses() {
    let mut server = with(|settings| settings.reserved = vec!["192.0.2.23/32".parse().unwrap()]);
    let others = lease(&mut server, at(0), host(1)).unwrap();
    for wanted in [others, "192.0.2.23".parse().unwrap(), "203.0.113.1".parse().unwrap()] {
        let asked = Dhcpv4 { requested: Some(wanted), ..Dhcpv4::new(MessageKind::Discover, 7) };
        let offer = ask(&mut server, at(1), host(2), &asked, false).unwrap().unwrap();
        assert_ne!(offer.yiaddr, wanted);
        assert!((16..23).contains(&offer.yiaddr.octets()[3]), "{}", offer.yiaddr);
        server.end(offer.yiaddr, at(1));
    }
    assert_eq!(holder(&server, others), Some((host(1), LeaseState::Bound)));
}

#[test]
fn no_more_leases_are_made_or_taken_up_than_the_maximum() {
    let mut server = with(|settings| settings.max_leases = 2);
    for number in 1..=2 {
        lease(&mut server, at(0), host(number)).unwrap();
    }
    assert_eq!(discover(&mut server, at(1), host(3)), Err(Refusal::PoolEmpty));
    let ipv4 = "192.0.2.22".parse().unwrap();
    assert!(!server.restore(Lease { ipv4, host: host(3), state: LeaseState::Bound, until: at(60) }));
}

#[test]
fn the_address_whose_last_lease_ended_first_is_the_first_that_another_host_gets() {
    let mut server = with(|settings| settings.pool = vec!["192.0.2.16/30".parse().unwrap()]);
    let had: Vec<Ipv4Addr> = (1..=4).map(|number| lease(&mut server, at(0), host(number)).unwrap()).collect();
    assert!(server.end(had[0], at(1)));
    assert_eq!(lease(&mut server, at(2), host(1)), Ok(had[0]), "it comes back");
    assert!(server.end(had[1], at(3)));
    assert!(server.end(had[0], at(4)));
    assert_eq!(discover(&mut server, at(5), host(9)), Ok(had[1]));
}

#[test]
fn who_asks_for_the_address_that_it_has_declined_is_told_that_it_has_none() {
    let mut server = with(|_| {});
    let ipv4 = lease(&mut server, at(0), host(1)).unwrap();
    assert_eq!(ask(&mut server, at(1), host(1), &decline(ipv4), false), Ok(None));
    assert_eq!(request(&mut server, at(2), host(1), ipv4), Some(MessageKind::Nak));
    assert_ne!(lease(&mut server, at(3), host(1)).unwrap(), ipv4);
}

#[test]
fn a_release_or_a_decline_that_names_another_address_ends_nothing() {
    let mut server = with(|_| {});
    let ipv4 = lease(&mut server, at(0), host(1)).unwrap();
    let another = lease(&mut server, at(0), host(2)).unwrap();
    assert_eq!(ask(&mut server, at(1), host(1), &release(another), true), Ok(None));
    assert_eq!(ask(&mut server, at(1), host(1), &decline(another), false), Ok(None));
    assert_eq!(holder(&server, ipv4), Some((host(1), LeaseState::Bound)));
    assert_eq!((server.bound(), server.counters.releases, server.counters.declines), (2, 0, 0));
}

#[test]
fn a_request_to_another_server_ends_no_lease_that_a_host_has_already() {
    let mut server = with(|_| {});
    let ipv4 = lease(&mut server, at(0), host(1)).unwrap();
    let other = Dhcpv4 {
        requested: Some("203.0.113.9".parse().unwrap()),
        server: Some("203.0.113.1".parse().unwrap()),
        ..Dhcpv4::new(MessageKind::Request, 8)
    };
    assert_eq!(ask(&mut server, at(1), host(1), &other, false), Err(Refusal::NotOurs));
    assert_eq!(holder(&server, ipv4), Some((host(1), LeaseState::Bound)));
}

#[test]
fn a_host_that_is_not_a_relay_agent_gets_nothing_and_a_relay_agent_nothing_for_unknown_clients() {
    let mut server = with(|_| {});
    let stranger: Ipv6Addr = "2001:db9::1".parse().unwrap();
    let relay: Ipv6Addr = "2001:db8:77::1".parse().unwrap();
    for (source, peer) in [(stranger, host(1)), (relay, stranger)] {
        let hop = RelayHop { hops: 0, link: relay, peer, interface: None };
        let asked = Dhcpv4::new(MessageKind::Discover, 7).to_octets();
        let query = Envelope { relays: vec![hop], ..Envelope::query(asked, false) };
        assert_eq!(server.handle_query(at(0), source, &query.to_octets()), Err(Refusal::NotAClient));
    }
    assert_eq!((server.counters.not_clients, server.leases_from(Ipv4Addr::UNSPECIFIED).count()), (2, 0));
}

/// A query through relay agents, of which each says from whom it had it, the outermost first.
fn relayed(asked: &Dhcpv4, peers: &[Ipv6Addr]) -> Vec<u8> {
    let hop = |peer: &Ipv6Addr| RelayHop { hops: 0, link: *peer, peer: *peer, interface: None };
    let relays = peers.iter().map(hop).collect();
    Envelope { relays, ..Envelope::query(asked.to_octets(), false) }.to_octets()
}

#[test]
fn a_client_that_wraps_its_query_in_the_name_of_another_one_takes_nothing_and_ends_no_lease() {
    let mut server = with(|_| {});
    let ipv4 = lease(&mut server, at(0), host(1)).unwrap();
    let asked = [release(ipv4), decline(ipv4), Dhcpv4::new(MessageKind::Discover, 7)];
    let relay: Ipv6Addr = "2001:db8:77::1".parse().unwrap();
    for query in &asked {
        for victim in [host(1), host(3)] {
            let refused = server.handle_query(at(1), host(2), &relayed(query, &[victim]));
            assert_eq!(refused, Err(Refusal::NotARelay));
            // A relay agent relays what looks relayed already (RFC 8415 §19.1.2), and names who sent it.
            let refused = server.handle_query(at(1), relay, &relayed(query, &[host(2), victim]));
            assert_eq!(refused, Err(Refusal::NotARelay));
        }
    }
    assert_eq!(holder(&server, ipv4), Some((host(1), LeaseState::Bound)));
    assert_eq!(server.leases_from(Ipv4Addr::UNSPECIFIED).count(), 1);
    assert_eq!((server.counters.not_relays, server.counters.releases, server.counters.declines), (12, 0, 0));
    let second: Ipv6Addr = "2001:db8:77::2".parse().unwrap();
    let chained = server.handle_query(at(2), relay, &relayed(&asked[2], &[second, host(3)]));
    assert!(chained.unwrap().is_some(), "two relay agents of ours");
    let none = &mut with(|settings| settings.relays = Vec::new());
    let refused = none.handle_query(at(0), host(1), &relayed(&asked[2], &[host(1)]));
    assert_eq!(refused, Err(Refusal::NotARelay), "by default nobody is a relay agent");
}

#[test]
fn while_one_client_floods_a_relay_agent_another_one_behind_it_gets_its_lease() {
    let mut server = with(|settings| settings.queries_per_second = 10);
    let relay: Ipv6Addr = "2001:db8:77::1".parse().unwrap();
    let asked = Dhcpv4::new(MessageKind::Discover, 7);
    let flood = (0..1_000).map(|_| server.handle_query(at(0), relay, &relayed(&asked, &[host(1)])));
    assert_eq!(flood.filter(|answer| *answer == Err(Refusal::RateLimit)).count(), 980);
    assert!(server.handle_query(at(0), relay, &relayed(&asked, &[host(2)])).unwrap().is_some());
}

#[test]
fn what_servers_send_is_no_query() {
    let mut server = with(|_| {});
    let asked = Dhcpv4::new(MessageKind::Discover, 7);
    let reply = Dhcpv4 { is_reply: true, ..asked.clone() };
    let response = Envelope { is_response: true, ..Envelope::query(asked.to_octets(), false) };
    for envelope in [response, Envelope::query(reply.to_octets(), false)] {
        let refused = server.handle_query(at(0), host(1), &envelope.to_octets());
        assert_eq!(refused, Err(Refusal::NotAQuery));
    }
    assert_eq!((server.counters.malformed, server.leases_from(Ipv4Addr::UNSPECIFIED).count()), (2, 0));
}

#[test]
fn the_flags_of_a_response_and_all_but_the_first_of_a_query_are_ignored() {
    // RFC 7341 §6.3, §6.4.
    let dhcpv4 = Dhcpv4::new(MessageKind::Discover, 7).to_octets();
    let mut query = Envelope::query(dhcpv4.clone(), false).to_octets();
    query[1..4].copy_from_slice(&[0x7f, 0xff, 0xff]);
    assert_eq!(Envelope::parse(&query), Ok(Envelope::query(dhcpv4.clone(), false)));
    query[1] = 0xff;
    assert_eq!(Envelope::parse(&query), Ok(Envelope::query(dhcpv4.clone(), true)));
    query[0] = 21;
    let response = Envelope { is_response: true, ..Envelope::query(dhcpv4, false) };
    assert_eq!(Envelope::parse(&query), Ok(response));
}

#[test]
fn a_client_identifier_has_an_octet_at_least_and_255_at_most() {
    let with = |options: &[u8]| {
        let mut octets = Dhcpv4::new(MessageKind::Discover, 7).to_octets();
        octets.truncate(243);
        octets.extend(options);
        Dhcpv4::parse(&octets).map(|read| read.client_id.len())
    };
    let long = [&[61, 255][..], &[1; 255]].concat();
    assert_eq!(with(&[61, 0, 255]), Err(Malformed::BadOption(61)));
    assert_eq!(with(&long), Ok(255));
    assert_eq!(with(&[&long[..], &[61, 1, 1]].concat()), Err(Malformed::BadOption(61)));
}

#[test]
fn a_network_of_ipv6_hosts_has_the_share_of_one_client_of_what_waits() {
    let mut server = with(|settings| {
        settings.pool = vec!["192.0.2.0/24".parse().unwrap()];
        settings.leases_per_client = 1_000;
    });
    let asker = |number: u16, network: u16| Asker {
        client: IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb9, 0, network, 0, 0, 0, number)),
        is_proven: true,
    };
    let got = (0..200).filter(|one| server.reserve(host(*one), asker(*one, 0), at(0)).is_ok()).count();
    assert_eq!(got, 8, "a quarter of those that wait");
    assert!(server.reserve(host(201), asker(1, 1), at(0)).is_ok(), "another network");
}

#[test]
fn a_query_for_a_name_lengthens_no_lease_that_its_host_has_taken() {
    let mut server = with(|_| {});
    let ipv4 = lease(&mut server, at(0), host(1)).unwrap();
    let outside = Asker { client: Ipv4Addr::new(203, 0, 113, 1).into(), is_proven: true };
    assert_eq!(server.reserve(host(1), outside, at(3_590)), Ok((ipv4, Duration::from_secs(10))));
    assert_eq!(server.poll_timeout(), Some(at(3_600)));
    let mut server = with(|settings| settings.lease_time = Duration::from_secs(60));
    let waits = server.reserve(host(1), outside, at(0)).map(|(_, left)| left);
    assert_eq!(waits, Ok(Duration::from_secs(60)), "no longer than any lease");
}

#[test]
fn a_host_with_a_static_lease_takes_up_no_other_after_a_restart() {
    let mut server = with(|settings| settings.fixed = vec![(host(1), "192.0.2.16".parse().unwrap())]);
    let ipv4 = "192.0.2.18".parse().unwrap();
    assert!(!server.restore(Lease { ipv4, host: host(1), state: LeaseState::Bound, until: at(60) }));
}

fn sent(client: &mut Client, seconds: u64) -> Option<Dhcpv4> {
    let octets = client.poll_transmit(at(seconds))?;
    Dhcpv4::parse(&Envelope::parse(&octets).unwrap().dhcpv4).ok()
}

fn hears(client: &mut Client, seconds: u64, reply: &Dhcpv4) -> Result<(), Ignored> {
    let response = Envelope { is_response: true, ..Envelope::query(reply.to_octets(), false) };
    client.handle_response(at(seconds), &response.to_octets())
}

fn reply(asked: &Dhcpv4, kind: MessageKind) -> Dhcpv4 {
    Dhcpv4 {
        is_reply: true,
        hardware: asked.hardware.clone(),
        yiaddr: LEASED,
        server: Some(SERVER_ID),
        lease_time: Some(3_600),
        ..Dhcpv4::new(kind, asked.xid)
    }
}

#[test]
fn what_a_client_is_told_of_another_address_or_by_another_server_changes_nothing() {
    let client_id = vec![255, 0, 0, 0, 1, 0, 4, 9];
    let mut client = Client::new(ClientSettings { tunnel: TUNNEL, client_id }, None, 5);
    client.want(at(0));
    let asked = sent(&mut client, 0).unwrap();
    hears(&mut client, 0, &reply(&asked, MessageKind::Offer)).unwrap();
    let early = reply(&asked, MessageKind::Ack);
    assert_eq!(hears(&mut client, 0, &early), Err(Ignored::NotForUs), "it has not requested anything");
    let another = |reply: Dhcpv4| Dhcpv4 { yiaddr: Ipv4Addr::new(192, 0, 2, 99), ..reply };
    let elsewhere = |reply: Dhcpv4| Dhcpv4 { server: Some(Ipv4Addr::new(203, 0, 113, 1)), ..reply };
    let asked = sent(&mut client, 0).unwrap();
    let ack = reply(&asked, MessageKind::Ack);
    for forged in [another(ack.clone()), elsewhere(ack.clone())] {
        assert_eq!(hears(&mut client, 0, &forged), Err(Ignored::Unexpected));
    }
    hears(&mut client, 0, &ack).unwrap();
    assert_eq!(client.poll_event(), Some(ClientEvent::Bound(LEASED, at(3_600))));
    // T1.
    let asked = sent(&mut client, 1_800).unwrap();
    assert_eq!(asked.ciaddr, LEASED);
    let ack = reply(&asked, MessageKind::Ack);
    let nak = Dhcpv4 { lease_time: None, ..reply(&asked, MessageKind::Nak) };
    for forged in [another(ack.clone()), elsewhere(ack.clone()), elsewhere(nak)] {
        assert_eq!(hears(&mut client, 1_801, &forged), Err(Ignored::Unexpected));
    }
    assert_eq!((client.poll_event(), client.held().map(|held| held.ipv4)), (None, Some(LEASED)));
    hears(&mut client, 1_801, &ack).unwrap();
    assert_eq!(client.poll_event(), Some(ClientEvent::Bound(LEASED, at(5_400))));
}

/// A client whose lease is as this reply says, at 0.
fn bound_by(change: impl FnOnce(&mut Dhcpv4)) -> (Client, Result<(), Ignored>) {
    let client_id = vec![255, 0, 0, 0, 1, 0, 4, 9];
    let mut client = Client::new(ClientSettings { tunnel: TUNNEL, client_id }, None, 5);
    client.want(at(0));
    let asked = sent(&mut client, 0).unwrap();
    hears(&mut client, 0, &reply(&asked, MessageKind::Offer)).unwrap();
    let asked = sent(&mut client, 0).unwrap();
    let mut ack = reply(&asked, MessageKind::Ack);
    change(&mut ack);
    let heard = hears(&mut client, 0, &ack);
    (client, heard)
}

#[test]
fn times_of_a_lease_that_do_not_follow_one_another_are_replaced_by_the_rfcs() {
    let times = |lease, renewal, rebinding| {
        let change = |ack: &mut Dhcpv4| {
            (ack.lease_time, ack.renewal, ack.rebinding) = (Some(lease), Some(renewal), Some(rebinding));
        };
        let (client, heard) = bound_by(change);
        heard.unwrap();
        client.held().unwrap().times.map(|time| time.since(at(0)).as_secs())
    };
    assert_eq!(times(800, 100, 300), [100, 300, 800]);
    assert_eq!(times(800, 100, 800), [100, 700, 800], "T2 is the end");
    assert_eq!(times(800, 300, 300), [300, 300, 800], "T1 is not after T2");
    assert_eq!(times(800, 900, 300), [300, 300, 800]);
    assert_eq!(times(800, 900, 900), [400, 700, 800]);
    assert_eq!(times(1, 3, 6), [3, 6, 10], "a lease of a second would be renewed all the time");
}

#[test]
fn a_lease_that_is_bound_to_another_end_than_the_tunnels_says_so() {
    let (client, heard) = bound_by(|ack| ack.softwire_source = Some(TUNNEL));
    assert_eq!((heard, client.bound_elsewhere()), (Ok(()), None));
    let (mut client, heard) = bound_by(|ack| ack.softwire_source = Some(host(9)));
    assert_eq!((heard, client.bound_elsewhere()), (Ok(()), Some(host(9))));
    client.release(at(1));
    assert_eq!(client.bound_elsewhere(), None, "there is no lease");
    assert_eq!(bound_by(|_| {}).0.bound_elsewhere(), None, "the server does not say");
}

#[test]
fn a_lease_of_no_time_is_none() {
    let (client, heard) = bound_by(|ack| ack.lease_time = Some(0));
    assert_eq!((heard, client.held()), (Err(Ignored::Unusable), None));
    let (client, heard) = bound_by(|ack| ack.yiaddr = Ipv4Addr::LOCALHOST);
    assert_eq!((heard, client.held()), (Err(Ignored::Unexpected), None));
}

#[test]
fn a_client_that_renews_waits_a_minute_or_until_the_next_time_between_requests() {
    let (mut client, heard) = bound_by(|ack| ack.lease_time = Some(400));
    heard.unwrap();
    let asked: Vec<u64> = (0..400).filter(|second| sent(&mut client, *second).is_some()).collect();
    assert_eq!(asked, [200, 275, 335, 350], "T1, half of what is left until T2, a minute, T2");
}

#[test]
fn a_lease_lasts_from_the_first_transmission_of_its_request_on() {
    let client_id = vec![255, 0, 0, 0, 1, 0, 4, 9];
    let mut client = Client::new(ClientSettings { tunnel: TUNNEL, client_id }, None, 5);
    client.want(at(0));
    let asked = sent(&mut client, 0).unwrap();
    hears(&mut client, 2, &reply(&asked, MessageKind::Offer)).unwrap();
    let first = sent(&mut client, 2).unwrap();
    let again = (3..9).find_map(|second| sent(&mut client, second)).unwrap();
    assert_eq!(first.xid, again.xid);
    // It may answer either: RFC 2131 §4.4.1 counts from the request that it answers, and the first is the safe one.
    hears(&mut client, 9, &reply(&first, MessageKind::Ack)).unwrap();
    assert_eq!(client.held().unwrap().times[2], at(3_602));
}

#[test]
fn a_lease_that_ended_while_the_process_was_down_is_not_taken_up() {
    let (client, heard) = bound_by(|_| {});
    heard.unwrap();
    let held = client.held().unwrap();
    for (now, is_taken) in [(3_599, true), (3_600, false), (9_000, false)] {
        let client_id = vec![255, 0, 0, 0, 1, 0, 4, 9];
        let mut next = Client::new(ClientSettings { tunnel: TUNNEL, client_id }, None, 6);
        next.restore(held, at(now));
        assert_eq!((next.held().is_some(), next.poll_event().is_some()), (is_taken, is_taken), "{now}");
    }
}
