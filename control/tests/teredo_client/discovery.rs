//! RFC 4380 §5.2.8.

use super::*;
use sixway_control::neighbour_discovery::ALL_NODES;
use sixway_control::teredo_client::DISCOVERY;
use sixway_wire::teredo::{TeredoAddress, bubble};

const NEIGHBOUR: Endpoint4 = Endpoint4::new(Ipv4Addr::new(10, 0, 0, 9), 40_009);

fn host() -> Host {
    Host::qualified(Settings { local_discovery: true, ..settings() })
}

/// A client with this mapped endpoint.
fn client(mapped: Endpoint4) -> Ipv6Addr {
    TeredoAddress { server: OTHER.primary, interface: TeredoInterface { flags: 0x0401, mapped } }.address()
}

fn neighbour() -> Ipv6Addr {
    client(Endpoint4 { port: 61_009, ..MAPPED })
}

#[test]
fn bubbles_go_to_the_discovery_address_at_random_intervals_of_200_to_300_seconds() {
    let mut host = host();
    let own = host.used[0].address.address();
    let mut last = host.now;
    let mut gaps = Vec::new();
    while gaps.len() < 100 {
        host.until_sent();
        if host.last().to != DISCOVERY {
            host.answer(MAPPED).unwrap();
            continue;
        }
        let out = host.last();
        assert_eq!(
            out.to,
            "224.0.0.253:3544"
                .parse::<std::net::SocketAddrV4>()
                .map(|at| Endpoint4::new(*at.ip(), at.port()))
                .unwrap()
        );
        assert_eq!((out.from, &out.octets[..]), (Port::Service, &bubble(own, ALL_NODES, 1)[..]));
        gaps.push(host.now.since(last).as_secs());
        last = host.now;
    }
    assert!(gaps.iter().all(|gap| (200..=300).contains(gap)), "{gaps:?}");
    assert!(gaps.iter().any(|gap| *gap < 215) && gaps.iter().any(|gap| *gap > 285), "{gaps:?}");
}

#[test]
fn a_bubble_of_a_neighbour_tells_its_local_endpoint_and_is_answered_with_a_unicast_bubble() {
    let mut host = host();
    let own = host.used[0].address.address();
    host.receive(Port::Discovery, NEIGHBOUR, &bubble(neighbour(), ALL_NODES, 1)).unwrap();
    assert_eq!(host.local_peers, [(neighbour(), NEIGHBOUR)]);
    assert_eq!((host.last().from, host.last().to), (Port::Service, NEIGHBOUR));
    let header = Ipv6Header::read(&host.last().octets).unwrap();
    assert_eq!((header.source, header.destination, host.last().octets.len()), (own, neighbour(), 40));
}

#[test]
fn a_bubble_that_came_by_unicast_is_not_a_discovery_bubble() {
    let mut host = host();
    let refused = host.receive(Port::Service, NEIGHBOUR, &bubble(neighbour(), ALL_NODES, 1));
    assert_eq!(refused, Err(Refused::NotAsked));
    assert!(host.local_peers.is_empty());
}

#[test]
fn a_bubble_from_outside_the_link_or_without_a_client_behind_our_nat_is_discarded() {
    let mut host = host();
    let own = host.used[0].address;
    let of_link = bubble(neighbour(), ALL_NODES, 1).to_vec();
    let from = |text: &str| Endpoint4::new(text.parse().unwrap(), 40_009);
    let native: Ipv6Addr = "2001:db8::1".parse().unwrap();
    let mut data = of_link.clone();
    data[6] = 58;
    let trailing = [&of_link[..], &[1, 4, 0, 0, 0, 0]].concat();
    let cases: Vec<(Endpoint4, Vec<u8>, Refused)> = vec![
        (from("10.0.1.9"), of_link.clone(), Refused::NotOfLink),
        (from("192.0.2.9"), of_link.clone(), Refused::NotOfLink),
        (from("10.0.0.255"), of_link.clone(), Refused::NotOfLink),
        (Endpoint4 { port: 0, ..NEIGHBOUR }, of_link.clone(), Refused::NotOfLink),
        (LOCAL, of_link.clone(), Refused::Own),
        (NEIGHBOUR, bubble(own.address(), ALL_NODES, 1).to_vec(), Refused::Own),
        (NEIGHBOUR, bubble(native, ALL_NODES, 1).to_vec(), Refused::NotDiscovery),
        (NEIGHBOUR, bubble(client(NEIGHBOUR), ALL_NODES, 1).to_vec(), Refused::NotDiscovery),
        (
            NEIGHBOUR,
            bubble(client(Endpoint4 { port: 0, ..MAPPED }), ALL_NODES, 1).to_vec(),
            Refused::NotDiscovery,
        ),
        (NEIGHBOUR, bubble(neighbour(), own.address(), 1).to_vec(), Refused::NotDiscovery),
        (NEIGHBOUR, bubble(client(ELSEWHERE), ALL_NODES, 1).to_vec(), Refused::NotBehindSameNat),
        (NEIGHBOUR, data, Refused::NotDiscovery),
        (NEIGHBOUR, [&Origin(MAPPED).octets()[..], &of_link].concat(), Refused::NotDiscovery),
        (NEIGHBOUR, of_link[..39].to_vec(), Refused::Malformed),
    ];
    for (from, octets, refused) in cases {
        assert_eq!(host.receive(Port::Discovery, from, &octets), Err(refused), "{from} {octets:?}");
        assert_eq!(host.client.status(host.now).last_refused, None, "it is not an answer of a server");
    }
    assert!(host.local_peers.is_empty());
    assert_eq!(host.receive(Port::Discovery, NEIGHBOUR, &trailing), Ok(()), "trailers are skipped");
}

#[test]
fn while_one_neighbour_floods_no_more_than_sixteen_bubbles_a_second_are_answered() {
    let mut host = host();
    let begin = host.sent.len();
    for n in 0..10_000_u32 {
        let peer = client(Endpoint4 { port: n as u16 | 1, ..MAPPED });
        let _ = host.receive(Port::Discovery, NEIGHBOUR, &bubble(peer, ALL_NODES, 1));
    }
    assert_eq!((host.sent.len() - begin, host.local_peers.len()), (16, 16));
    host.wait_secs(1);
    host.receive(Port::Discovery, NEIGHBOUR, &bubble(neighbour(), ALL_NODES, 1)).unwrap();
}

#[test]
fn actions_that_nobody_takes_do_not_pile_up() {
    let mut host = host();
    let mut admitted = 0;
    for n in 0..10_000_u32 {
        let peer = client(Endpoint4 { port: n as u16 | 1, ..MAPPED });
        let now = host.now + Duration::from_millis(u64::from(n) * 100);
        admitted += u32::from(
            host.client.receive(Port::Discovery, NEIGHBOUR, &bubble(peer, ALL_NODES, 1), now).is_ok(),
        );
    }
    assert_eq!(admitted, 32);
}

#[test]
fn a_client_that_is_not_qualified_or_does_not_take_part_discards_discovery_bubbles() {
    let octets = bubble(neighbour(), ALL_NODES, 1);
    let mut unqualified = Host::new(Settings { local_discovery: true, ..settings() });
    assert_eq!(unqualified.receive(Port::Discovery, NEIGHBOUR, &octets), Err(Refused::NotDiscovery));
    let mut absent = Host::qualified(settings());
    assert_eq!(absent.receive(Port::Discovery, NEIGHBOUR, &octets), Err(Refused::NotDiscovery));
    absent.wait_secs(1_000);
    assert!(absent.sent.iter().all(|out| out.to != DISCOVERY));
}
