//! Ports that are predicted (RFC 6081 §5.4, §5.5), and what attackers make of them.

use super::client::qualified;
use super::{LOCAL, SERVER, bubble, client, client6, datagram, mapped, packet};
use crate::support::{Gateway, icmp6, v6};
use core::net::Ipv4Addr;
use core::time::Duration;
use sixway_dataplane::mechanism::teredo::{PeerState, PortRule, Prediction, TeredoChange};
use sixway_dataplane::{DropReason, Verdict};
use sixway_wire::Endpoint4;
use sixway_wire::teredo::{Origin, TeredoAddress, Trailer, Trailers};

const SECOND: Duration = Duration::from_secs(1);
const SECONDARY: Endpoint4 = Endpoint4::new(Ipv4Addr::new(198, 51, 100, 2), 3_544);
/// The first spare port.
const SPARE: u16 = 50_001;

fn tells(gateway: &mut Gateway, rule: Option<PortRule>, number: u16) {
    let prediction = Prediction { rule, ports: (SPARE..SPARE + number).collect() };
    gateway.engine.change_teredo(0, &TeredoChange::Prediction(prediction), gateway.now);
}

/// A client behind a NAT that preserves ports, with this many spare ones.
fn preserving(number: u16) -> Gateway {
    let mut gateway = qualified();
    tells(&mut gateway, Some(PortRule::Preserved), number);
    gateway
}

fn sequential(number: u16) -> Gateway {
    let mut gateway = qualified();
    tells(&mut gateway, Some(PortRule::Sequential { secondary: SECONDARY.address }), number);
    gateway
}

/// A datagram that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sent {
    port: u16,
    to: Endpoint4,
    payload: Vec<u8>,
}

impl Sent {
    fn trailers(&self) -> Vec<Trailer<'_>> {
        Trailers::new(&self.payload[40..]).map(Result::unwrap).collect()
    }

    fn random_port(&self) -> Option<u16> {
        self.trailers()
            .iter()
            .find_map(|it| if let Trailer::RandomPort(port) = it { Some(*port) } else { None })
    }

    /// The trailer that proves that its receiver got it.
    fn nonce(&self) -> Vec<u8> {
        let nonce = self
            .trailers()
            .iter()
            .find_map(|it| if let Trailer::Nonce(nonce) = it { Some(*nonce) } else { None });
        nonce.map_or_else(Vec::new, |nonce| [&[1, 4][..], &nonce].concat())
    }
}

fn all_sent(gateway: &mut Gateway) -> Vec<Sent> {
    let mut all = Vec::new();
    while gateway.waiting() > 0 {
        let sent = gateway.sent();
        assert_eq!((sent[0], sent[9], &sent[12..16]), (0x45, 17, &LOCAL.address.octets()[..]));
        let word = |at: usize| u16::from_be_bytes([sent[at], sent[at + 1]]);
        let to = Endpoint4::new(Ipv4Addr::new(sent[16], sent[17], sent[18], sent[19]), word(22));
        all.push(Sent { port: word(20), to, payload: sent[28..].to_vec() });
    }
    all
}

fn from_and_to(sent: &[Sent]) -> Vec<(u16, Endpoint4)> {
    sent.iter().map(|one| (one.port, one.to)).collect()
}

/// A bubble that the client's server forwarded, with trailers.
fn forwarded(source: &str, trailers: &[u8]) -> crate::support::Build {
    let payload = [&Origin(mapped(9)).octets()[..], &bubble(source, &client6(0)), trailers].concat();
    datagram(SERVER, LOCAL, payload)
}

fn nonce(value: u8) -> Vec<u8> {
    vec![1, 4, value, value, value, value]
}

fn random_port(port: u16) -> Vec<u8> {
    [&[5, 2][..], &port.to_be_bytes()].concat()
}

fn at(port: u16) -> Endpoint4 {
    Endpoint4::new(LOCAL.address, port)
}

/// Where the numbered client's NAT has this port.
fn other_port(number: u32, port: u16) -> Endpoint4 {
    Endpoint4::new(mapped(number).address, port)
}

/// The server's answer to a solicitation: the port that it saw.
fn advertised(solicitation: &Sent, seen: Endpoint4) -> crate::support::Build {
    let server = solicitation.to;
    let nonce = &solicitation.payload[4..12];
    let advertisement =
        v6("fe80::8000:f227:bec8:6189", "fe80::ffff:ffff:fffd").icmp(icmp6(134, 0, [0; 4], &[0; 8]));
    let payload = [&[0, 1, 0, 0][..], nonce, &[0], &Origin(seen).octets(), &advertisement.octets()].concat();
    datagram(server, at(solicitation.port), payload)
}

/// §6.3, on the side of the client that begins.
#[test]
fn behind_a_port_preserving_nat_a_peer_is_told_a_port_of_its_own_and_reached_by_it() {
    let mut gateway = preserving(4);
    let (own, peer) = (client6(0), client6(1));
    gateway.receives(packet(&own, &peer));
    let sent = all_sent(&mut gateway);
    assert_eq!(
        from_and_to(&sent),
        [(LOCAL.port, mapped(1)), (LOCAL.port, SERVER)],
        "nothing from the new port"
    );
    assert_eq!((sent[0].random_port(), sent[1].random_port()), (None, Some(SPARE)));
    let asked = sent[1].nonce();
    // The peer tells its own one.
    gateway.receives(forwarded(&peer, &[nonce(7), random_port(61_000)].concat()));
    let sent = all_sent(&mut gateway);
    let there = other_port(1, 61_000);
    assert_eq!(from_and_to(&sent), [(LOCAL.port, mapped(1)), (SPARE, there)]);
    assert_eq!((sent[1].nonce(), sent[1].random_port()), (nonce(7), Some(SPARE)));
    // It answers there; what comes to the service port from there proves nothing without the nonce.
    gateway.refuses(datagram(there, at(SPARE), bubble(&peer, &own)), DropReason::TeredoNotTrusted);
    let proof = [bubble(&peer, &own), asked].concat();
    gateway.receives(datagram(there, at(SPARE), proof));
    let sent = all_sent(&mut gateway);
    assert_eq!(from_and_to(&sent), [(SPARE, there), (SPARE, there)], "what waited, and an answer");
    assert!(sent.iter().any(|one| one.payload == packet(&own, &peer).octets()));
    gateway.receives(datagram(there, at(SPARE), packet(&peer, &own)));
    gateway.sends(packet(&peer, &own));
    gateway.receives(packet(&own, &peer));
    assert_eq!(from_and_to(&all_sent(&mut gateway)), [(SPARE, there)]);
    let row = gateway.engine.teredo()[0].peer(client(1).address(), gateway.now).unwrap();
    assert_eq!((row.state, row.port, row.endpoint), (PeerState::Established, Some(SPARE), there));
}

/// §6.3, 12 to 13.
#[test]
fn a_peer_that_begins_gets_a_bubble_from_a_port_of_its_own_and_is_told_it() {
    let mut gateway = preserving(4);
    gateway.receives(forwarded(&client6(1), &[nonce(7), random_port(61_000)].concat()));
    let sent = all_sent(&mut gateway);
    let expected = [(LOCAL.port, mapped(1)), (SPARE, other_port(1, 61_000)), (LOCAL.port, SERVER)];
    assert_eq!(from_and_to(&sent), expected);
    assert_eq!((sent[1].nonce(), sent[1].random_port()), (nonce(7), Some(SPARE)));
    assert_eq!(sent[2].random_port(), Some(SPARE));
}

/// §5.4.4.4: whoever is behind no symmetric NAT sends there from the service port.
#[test]
fn without_a_port_of_its_own_a_client_sends_to_the_port_that_it_is_told() {
    let mut gateway = qualified();
    gateway.receives(forwarded(&client6(1), &[nonce(7), random_port(61_000)].concat()));
    let sent = all_sent(&mut gateway);
    let expected = [(LOCAL.port, mapped(1)), (LOCAL.port, other_port(1, 61_000)), (LOCAL.port, SERVER)];
    assert_eq!(from_and_to(&sent), expected);
    assert_eq!(sent[2].random_port(), None);
}

/// §5.5.4.1.1 and §6.4.
#[test]
fn behind_a_sequential_nat_the_port_between_two_that_the_server_saw_is_told() {
    let mut gateway = sequential(4);
    let (own, peer) = (client6(0), client6(1));
    gateway.receives(packet(&own, &peer));
    let sent = all_sent(&mut gateway);
    let expected = [(LOCAL.port, mapped(1)), (SPARE, SERVER), (SPARE, mapped(1)), (SPARE, SECONDARY)];
    assert_eq!(from_and_to(&sent), expected);
    assert_eq!((sent[1].payload[53], sent[2].random_port()), (133, None));
    let own_address = client(0).mapped().address;
    let seen = |port| Endpoint4::new(own_address, port);
    // Nobody else's answers count: another nonce, the other address, another mapped address, another port.
    let mut forged = sent[1].clone();
    forged.payload[5] ^= 1;
    gateway.refuses(advertised(&forged, seen(9)), DropReason::TeredoUnexpected);
    gateway.refuses(
        advertised(&Sent { to: SECONDARY, ..sent[1].clone() }, seen(9)),
        DropReason::TeredoUnexpected,
    );
    gateway.refuses(advertised(&sent[1], Endpoint4::new(mapped(3).address, 9)), DropReason::TeredoUnexpected);
    gateway.refuses(
        advertised(&Sent { port: SPARE + 1, ..sent[1].clone() }, seen(9)),
        DropReason::TeredoUnexpected,
    );
    gateway.receives(advertised(&sent[3], seen(30_002)));
    gateway.sends_nothing();
    gateway.receives(advertised(&sent[1], seen(30_000)));
    let asked = all_sent(&mut gateway);
    assert_eq!(from_and_to(&asked), [(LOCAL.port, SERVER)]);
    assert_eq!(asked[0].random_port(), Some(30_001));
    // A port-restricted peer answers before its own bubble through the server arrives, with which alone it believes that the port is this client's.
    gateway.receives(datagram(mapped(1), at(SPARE), [bubble(&peer, &own), asked[0].nonce()].concat()));
    assert_eq!(gateway.last, Verdict::Absorbed);
    gateway.sends_nothing();
    gateway.receives(forwarded(&peer, &nonce(7)));
    let sent = all_sent(&mut gateway);
    assert_eq!(from_and_to(&sent), [(LOCAL.port, mapped(1)), (SPARE, mapped(1))]);
    assert_eq!(sent[1].nonce(), nonce(7));
    gateway.receives(datagram(mapped(1), at(SPARE), [bubble(&peer, &own), asked[0].nonce()].concat()));
    assert_eq!(from_and_to(&all_sent(&mut gateway)), [(SPARE, mapped(1)); 2]);
}

/// §5.5.2.2.
#[test]
fn a_server_that_does_not_answer_is_asked_once_more_and_then_the_peer_without_a_port() {
    let mut gateway = sequential(4);
    gateway.receives(packet(&client6(0), &client6(1)));
    let test = [(SPARE, SERVER), (SPARE, mapped(1)), (SPARE, SECONDARY)];
    assert_eq!(from_and_to(&all_sent(&mut gateway))[1..], test);
    gateway.waits(SECOND);
    assert_eq!(from_and_to(&all_sent(&mut gateway)), test);
    gateway.waits(SECOND);
    assert_eq!(from_and_to(&all_sent(&mut gateway)), [(LOCAL.port, mapped(1))]);
    gateway.waits(SECOND);
    let sent = all_sent(&mut gateway);
    assert_eq!((from_and_to(&sent), sent[0].random_port()), (vec![(LOCAL.port, SERVER)], None));
}

/// Two mapped ports that are far apart do not follow each other.
#[test]
fn without_a_sequence_no_port_is_told() {
    let mut gateway = sequential(4);
    gateway.receives(packet(&client6(0), &client6(1)));
    let sent = all_sent(&mut gateway);
    let seen = |port| Endpoint4::new(client(0).mapped().address, port);
    gateway.receives(advertised(&sent[1], seen(30_000)));
    gateway.receives(advertised(&sent[3], seen(41_000)));
    let sent = all_sent(&mut gateway);
    assert_eq!((sent.len(), sent[0].to, sent[0].random_port()), (1, SERVER, None));
}

/// §5.4.2.1: while no data pass, a bubble each half minute keeps the mapping, 20 times.
#[test]
fn the_mapping_of_a_peer_at_its_port_is_kept_for_ten_minutes_without_data() {
    let mut gateway = established();
    let there = other_port(1, 61_000);
    let mut kept = 0;
    for _ in 0..40 {
        gateway.waits(30 * SECOND);
        let sent = all_sent(&mut gateway);
        assert!(sent.iter().all(|one| (one.port, one.to) == (SPARE, there) && one.payload.len() == 40));
        kept += sent.len();
        // It does the same.
        if kept < 20 {
            gateway.receives(datagram(there, at(SPARE), bubble(&client6(1), &client6(0))));
        }
    }
    assert_eq!(kept, 20);
    assert_eq!(gateway.engine.teredo()[0].row().peers, [0; 4], "forgotten after five minutes of silence");
    assert_eq!(gateway.engine.teredo()[0].row().spares.spent, Some(SPARE), "its NAT knows that port");
}

/// A client that has found number 1 by the first spare port.
fn established() -> Gateway {
    let mut gateway = preserving(4);
    let (own, peer, there) = (client6(0), client6(1), other_port(1, 61_000));
    gateway.receives(packet(&own, &peer));
    let asked = all_sent(&mut gateway)[1].nonce();
    gateway.receives(forwarded(&peer, &[nonce(7), random_port(61_000)].concat()));
    gateway.receives(datagram(there, at(SPARE), [bubble(&peer, &own), asked].concat()));
    assert!(!all_sent(&mut gateway).is_empty());
    gateway.receives(datagram(there, at(SPARE), packet(&peer, &own)));
    gateway.sends(packet(&peer, &own));
    gateway
}

/// §5.4.4.5: a peer that sends to the service port is answered from there.
#[test]
fn a_peer_that_is_heard_at_the_service_port_needs_no_port_of_its_own() {
    let mut gateway = preserving(4);
    let (own, peer) = (client6(0), client6(1));
    gateway.receives(packet(&own, &peer));
    all_sent(&mut gateway);
    gateway.receives(datagram(mapped(1), LOCAL, bubble(&peer, &own)));
    assert_eq!(from_and_to(&all_sent(&mut gateway)), [(LOCAL.port, mapped(1))]);
    assert_eq!(gateway.engine.teredo()[0].row().spares.in_use, 1);
    gateway.waits(30 * SECOND);
    let row = gateway.engine.teredo()[0].row().spares;
    assert_eq!((row.in_use, row.spent, row.open), (0, None, 4), "nothing was sent from it");
}

/// The strongest attack by an unknown host: bubbles through the server, from clients of its own at any address that it has.
#[test]
fn strangers_use_up_half_of_the_ports_and_this_host_still_reaches_its_peers() {
    let mut gateway = preserving(8);
    for number in 0..400 {
        let stranger = TeredoAddress {
            interface: sixway_wire::teredo::TeredoInterface {
                flags: 0,
                mapped: Endpoint4::new(Ipv4Addr::from_bits(0x0505_0000 + number), 53),
            },
            ..client(1)
        };
        let trailers = [nonce(7), random_port(61_000)].concat();
        gateway.receives(forwarded(&stranger.address().to_string(), &trailers));
    }
    let sent = all_sent(&mut gateway);
    assert_eq!(sent.iter().filter(|one| one.random_port().is_some() && one.to != SERVER).count(), 4);
    assert_eq!(gateway.engine.teredo()[0].row().spares.in_use, 4);
    for number in 1..=4 {
        gateway.receives(packet(&client6(0), &client6(number)));
        let sent = all_sent(&mut gateway);
        assert!(sent.iter().any(|one| one.random_port().is_some()), "{number}: {sent:?}");
    }
    // The fifth at a time is asked without one.
    gateway.receives(packet(&client6(0), &client6(5)));
    let sent = all_sent(&mut gateway);
    assert_eq!((sent.len(), sent[1].to, sent[1].random_port()), (2, SERVER, None));
}

/// A neighbour of the peer, behind the same NAT, may forge its bubbles through the server.
#[test]
fn forged_ports_of_a_peer_that_is_asked_make_a_bubble_each_and_take_no_other_port() {
    let mut gateway = preserving(8);
    gateway.receives(packet(&client6(0), &client6(1)));
    all_sent(&mut gateway);
    for forged in 0..50 {
        gateway.receives(forwarded(&client6(1), &[nonce(7), random_port(61_000 + forged)].concat()));
        let sent = all_sent(&mut gateway);
        assert!(sent.len() <= 2, "{sent:?}");
        let to_port = sent.iter().find(|one| one.port == SPARE);
        assert_eq!(to_port.map(|one| one.to), Some(other_port(1, 61_000)), "the first one that was told");
    }
    assert_eq!(gateway.engine.teredo()[0].row().spares.in_use, 1);
}

#[test]
fn a_forged_port_does_not_move_a_peer_that_packets_pass_to() {
    let mut gateway = established();
    gateway.receives(forwarded(&client6(1), &[nonce(9), random_port(53)].concat()));
    let sent = all_sent(&mut gateway);
    assert_eq!(from_and_to(&sent), [(SPARE, other_port(1, 61_000))], "to where it is proven to be");
    gateway.receives(packet(&client6(0), &client6(1)));
    assert_eq!(from_and_to(&all_sent(&mut gateway)), [(SPARE, other_port(1, 61_000))]);
}

/// The bubble to a predicted port is one, whatever is named, and goes to no address but that of the bubble's sender.
#[test]
fn a_stranger_makes_no_more_octets_than_his_rate_and_no_other_host_is_sent_to() {
    for mut gateway in [qualified(), preserving(8), sequential(8)] {
        let stranger = forwarded(&client6(1), &[nonce(7), random_port(53)].concat());
        let length = stranger.octets().len();
        gateway.receives(stranger);
        let sent = all_sent(&mut gateway);
        let servers = [SERVER.address, SECONDARY.address];
        assert!(
            sent.iter().all(|one| one.to.address == mapped(1).address || servers.contains(&one.to.address))
        );
        let to_him: usize = sent
            .iter()
            .filter(|one| one.to.address == mapped(1).address)
            .map(|one| one.payload.len() + 28)
            .sum();
        assert!(to_him <= 2 * length, "{to_him} {length}");
    }
}

/// A spare port is its peer's alone.
#[test]
fn at_a_spare_port_nobody_is_heard_but_the_peer_that_has_it() {
    let mut gateway = established();
    let (own, there) = (client6(0), other_port(1, 61_000));
    let refused = [
        // A native host, which would be tested at the service port.
        datagram(mapped(7), at(SPARE), packet("2001:db8:1::1", &own)),
        // Another client, from where its address says.
        datagram(mapped(2), at(SPARE), bubble(&client6(2), &own)),
        // The peer, at a port that is not its own.
        datagram(there, at(SPARE + 1), packet(&client6(1), &own)),
        // Its address, from elsewhere.
        datagram(mapped(7), at(SPARE), packet(&client6(1), &own)),
    ];
    for one in refused {
        gateway.refuses(one, DropReason::TeredoNotTrusted);
        gateway.sends_nothing();
    }
    // The server forwards nothing to it.
    let payload = [&Origin(mapped(9)).octets()[..], &bubble(&client6(2), &own)].concat();
    gateway.receives(datagram(SERVER, at(SPARE), payload));
    assert!(matches!(gateway.last, Verdict::Dropped(_)));
    gateway.sends_nothing();
}

/// A socket that failed, or the NAT is another one: nothing is left of what was found by it.
#[test]
fn a_peer_whose_port_is_gone_is_asked_again() {
    let mut gateway = established();
    tells(&mut gateway, None, 0);
    gateway.receives(packet(&client6(0), &client6(1)));
    let sent = all_sent(&mut gateway);
    assert_eq!(from_and_to(&sent), [(LOCAL.port, mapped(1)), (LOCAL.port, SERVER)]);
    assert_eq!(sent[1].random_port(), None);
}

/// It was found by this host, which leaves it alone since then: what it asks for now is a stranger's.
#[test]
fn a_peer_that_tells_one_port_after_the_other_uses_up_no_ports_that_this_host_needs() {
    let mut gateway = established();
    for told in 0..20 {
        gateway.waits(31 * SECOND);
        gateway.receives(forwarded(&client6(1), &[nonce(7), random_port(62_000 + told)].concat()));
        all_sent(&mut gateway);
    }
    for number in 2..=3 {
        gateway.receives(packet(&client6(0), &client6(number)));
        let sent = all_sent(&mut gateway);
        assert!(sent.iter().any(|one| one.random_port().is_some()), "{number}: {sent:?}");
    }
}
