//! Packets between clients, and between clients and native hosts, by the engine's client and relay behind NATs of every kind.

use super::engine_ends::{EngineClient, RelayHost};
use super::meeting::{figure_1, figure_1_with_ports};
use super::*;
use sixway_control::Instant;
use sixway_dataplane::mechanism::teredo::PeerState;
use sixway_wire::protocol::UDP;
use sixway_wire::{Ipv6Header, UdpHeader};

const RELAY: Endpoint4 = Endpoint4::new(Ipv4Addr::new(203, 0, 113, 60), 3_545);

/// A UDP packet that says this.
fn packet(source: Ipv6Addr, destination: Ipv6Addr, data: &[u8]) -> Vec<u8> {
    let udp = UdpHeader::new(4_000, 4_000, data.len()).with_checksum6(source, destination, data);
    let header = Ipv6Header::new(source, destination, UDP, udp.length.into());
    [&header.octets()[..], &udp.octets(), data].concat()
}

type SharedClient = Rc<RefCell<ClientHost<EngineClient>>>;

/// The network with a server, a relay with a native host, and clients behind NATs of these kinds.
struct Internet {
    network: Network,
    relay: Rc<RefCell<RelayHost>>,
    clients: Vec<SharedClient>,
}

impl Internet {
    fn new(kinds: &[Kind], delay: u64, seed: u64) -> Self {
        Self::with_spares(kinds, 0, (delay, seed))
    }

    /// The same; each client has this many spare ports.
    fn with_spares(kinds: &[Kind], spares: u16, (delay, seed): (u64, u64)) -> Self {
        let mut network = Network::new(Duration::from_millis(delay), seed);
        let relay = RelayHost::new(RELAY, "2001:db8::9".parse().unwrap(), seed, network.now);
        let server = ServerHost::new(PRIMARY, Some(SECONDARY));
        server.borrow_mut().native = Some(relay.clone());
        for address in [PRIMARY, SECONDARY] {
            network.attach(address, None, server.clone());
        }
        network.attach(RELAY.address, None, relay.clone());
        let outside = [NAT, NAT_LATER];
        let clients = kinds.iter().zip(outside).zip(0_u8..).map(|((kind, outside), n)| {
            let options = Options {
                kind: *kind,
                preserves_ports: false,
                hairpins: false,
                timeout: Duration::from_secs(60),
            };
            let nat = network.nat(Nat::new(options, outside, seed.wrapping_add(u64::from(n))));
            let address = if *kind == Kind::Absent { outside } else { Ipv4Addr::new(10, n, 0, 5) };
            let endpoint = Endpoint4::new(address, 40_001 + u16::from(n));
            let local = Local { endpoint, subnets: Vec::new() };
            let settings = Settings { probe_cone: false, ..Settings::new(vec![SERVER]) };
            let mut peers = EngineClient::new(endpoint, seed ^ u64::from(n), network.now);
            peers.spares = spares;
            let client = ClientHost::new(settings, local, n, peers, network.now);
            network.attach(address, Some(nat), client.clone());
            client
        });
        let clients = clients.collect();
        network.run(Duration::from_secs(5));
        Self { network, relay, clients }
    }

    /// Two clients of one private network behind one NAT, which sends packets for its own address back to that side or not.
    fn behind_one_nat(kind: Kind, hairpins: bool, (delay, seed): (u64, u64)) -> Self {
        let mut network = Network::new(Duration::from_millis(delay), seed);
        let relay = RelayHost::new(RELAY, "2001:db8::9".parse().unwrap(), seed, network.now);
        let server = ServerHost::new(PRIMARY, Some(SECONDARY));
        for address in [PRIMARY, SECONDARY] {
            network.attach(address, None, server.clone());
        }
        let options = Options { kind, preserves_ports: false, hairpins, timeout: Duration::from_secs(60) };
        let nat = network.nat(Nat::new(options, NAT, seed));
        let clients = (0..2_u8).map(|n| {
            let endpoint = Endpoint4::new(Ipv4Addr::new(10, 0, 0, 5 + n), 40_001 + u16::from(n));
            let peers = EngineClient::new(endpoint, seed ^ u64::from(n), network.now);
            let settings = Settings { probe_cone: false, ..Settings::new(vec![SERVER]) };
            let local = Local { endpoint, subnets: Vec::new() };
            let client = ClientHost::new(settings, local, n, peers, network.now);
            network.attach(endpoint.address, Some(nat), client.clone());
            client
        });
        let clients = clients.collect();
        network.run(Duration::from_secs(5));
        Self { network, relay, clients }
    }

    fn address(&self, client: usize) -> Ipv6Addr {
        self.clients[client].borrow().address().unwrap().address()
    }

    /// Whether a client's packet comes to the other one.
    fn carries(&mut self, from: usize, to: usize) -> bool {
        let sent = packet(self.address(from), self.address(to), b"packet");
        self.clients[from].borrow_mut().peers.sends(sent.clone());
        self.network.run(Duration::from_secs(12));
        self.clients[to].borrow().peers.end.delivered.contains(&sent)
    }

    /// Whether a client's packet comes to the other one, and the answer back.
    fn pass(&mut self, from: usize, to: usize) -> bool {
        let (source, destination) = (self.address(from), self.address(to));
        let exchanged = |internet: &mut Self, from: usize, to: usize, data: &[u8]| {
            let sent = packet(internet.address(from), internet.address(to), data);
            internet.clients[from].borrow_mut().peers.sends(sent.clone());
            internet.network.run(Duration::from_secs(12));
            let client = internet.clients[to].borrow();
            client.peers.end.delivered.contains(&sent)
        };
        let there = exchanged(self, from, to, b"question");
        let back = there && exchanged(self, to, from, b"answer");
        let state = |client: usize, peer: Ipv6Addr, now: Instant| {
            self.clients[client].borrow().peers.end.peer(peer, now).map(|row| row.state)
        };
        if there && back {
            assert_eq!(state(from, destination, self.network.now), Some(PeerState::Established));
            assert_eq!(state(to, source, self.network.now), Some(PeerState::Established));
        } else {
            assert_eq!(state(from, destination, self.network.now), Some(PeerState::Unreachable));
        }
        there && back
    }
}

/// RFC 6081 §3, figure 1, as far as its first two extensions go; what `show` has says why the others do not.
#[test]
fn packets_pass_between_clients_behind_the_pairs_of_nats_that_rfc_6081_names_and_behind_no_others() {
    let mut wrong = Vec::new();
    for source in Kind::ALL {
        for destination in Kind::ALL {
            let Some(expected) = figure_1(source, destination) else { continue };
            for (delay, seed) in [(5, 1), (300, 333)] {
                let met = Internet::new(&[source, destination], delay, seed).pass(0, 1);
                if met != expected {
                    wrong.push((source, destination, delay, met));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// The whole figure, with ports that are predicted (§5.4, §5.5).
#[test]
fn with_predicted_ports_packets_pass_behind_all_pairs_of_nats_that_rfc_6081_names_and_behind_no_others() {
    let mut wrong = Vec::new();
    for source in Kind::ALL {
        for destination in Kind::ALL {
            let Some(expected) = figure_1_with_ports(source, destination) else { continue };
            for (delay, seed) in [(5, 1), (80, 22), (300, 333)] {
                let met = Internet::with_spares(&[source, destination], 8, (delay, seed)).pass(0, 1);
                if met != expected {
                    wrong.push((source, destination, delay, met));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Pairs of clients behind one NAT of each kind that meet although they should not, or do not although they should.
fn wrong_behind_one_nat(
    isolates: bool,
    expected: impl Fn(Kind, bool) -> Option<bool>,
) -> Vec<(Kind, bool, u64, bool)> {
    let mut wrong = Vec::new();
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Absent) {
        for hairpins in [true, false] {
            let Some(expected) = expected(kind, hairpins) else { continue };
            for (delay, seed) in [(5, 1), (300, 333)] {
                let mut internet = Internet::behind_one_nat(kind, hairpins, (delay, seed));
                internet.network.isolates = isolates;
                // The first packets come before the peer knows whose the endpoint is, and are dropped.
                let met = (0..3).any(|_| internet.carries(0, 1)) && (0..3).any(|_| internet.carries(1, 0));
                let now = internet.network.now;
                let row = internet.clients[0].borrow().peers.end.peer(internet.address(1), now);
                let state = if met { PeerState::Established } else { PeerState::Unreachable };
                assert_eq!(row.map(|row| row.state), Some(state), "{kind:?} {hairpins} {delay}");
                if met != expected {
                    wrong.push((kind, hairpins, delay, met));
                }
            }
        }
    }
    wrong
}

/// RFC 6081 §3.5: by the alternate addresses in their bubbles.
#[test]
fn clients_of_one_link_reach_each_other_behind_any_nat_whether_it_hairpins_or_not() {
    assert_eq!(wrong_behind_one_nat(false, |_, _| Some(true)), []);
}

/// As behind two NATs in front of which there is a third one: their own endpoints are not reachable.
#[test]
fn clients_behind_one_nat_without_a_common_link_reach_each_other_only_if_it_hairpins() {
    assert_eq!(
        wrong_behind_one_nat(true, |kind, hairpins| figure_1(kind, kind).map(|meets| meets && hairpins)),
        []
    );
}

/// RFC 4380 §5.2.9 and §5.4: whatever the NAT.
#[test]
fn a_client_behind_any_nat_reaches_a_native_host_by_a_relay() {
    for kind in Kind::ALL {
        for (delay, seed) in [(5, 1), (300, 333)] {
            let mut internet = Internet::new(&[kind], delay, seed);
            let (own, native) = (internet.address(0), stranger6());
            let question = packet(own, native, b"question");
            internet.clients[0].borrow_mut().peers.sends(question.clone());
            internet.network.run(Duration::from_secs(12));
            assert_eq!(internet.relay.borrow().received, [question], "{kind:?} {delay}");
            let answer = packet(native, own, b"answer");
            internet.relay.borrow_mut().sends(answer.clone());
            internet.network.run(Duration::from_secs(3));
            assert!(internet.clients[0].borrow().peers.end.delivered.contains(&answer), "{kind:?} {delay}");
        }
    }
}

/// The first packet makes the client test the native host, and later ones pass.
#[test]
fn a_native_host_reaches_a_client_behind_any_nat_by_a_relay() {
    for kind in Kind::ALL {
        for (delay, seed) in [(5, 1), (300, 333)] {
            let mut internet = Internet::new(&[kind], delay, seed);
            let (own, native) = (internet.address(0), stranger6());
            for round in 0..4 {
                internet.relay.borrow_mut().sends(packet(native, own, &[round]));
                internet.network.run(Duration::from_secs(3));
            }
            let last = packet(native, own, &[3]);
            assert!(internet.clients[0].borrow().peers.end.delivered.contains(&last), "{kind:?} {delay}");
            let answer = packet(own, native, b"answer");
            internet.clients[0].borrow_mut().peers.sends(answer.clone());
            internet.network.run(Duration::from_secs(3));
            assert!(internet.relay.borrow().received.contains(&answer), "{kind:?} {delay}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn with_datagrams_lost_clients_still_meet_if_their_nats_let_them(
        source in prop::sample::select(&Kind::ALL[..]), destination in prop::sample::select(&Kind::ALL[..]),
        delay in 1..400_u64, seed in any::<u64>(),
    ) {
        prop_assume!(figure_1(source, destination) == Some(true));
        let mut internet = Internet::new(&[source, destination], delay, seed);
        prop_assume!(internet.clients.iter().all(|client| client.borrow().address().is_some()));
        internet.network.loss = 25;
        // A host sends again what is not answered; a peer that did not answer in time is tried again after five minutes. Clients whose server did not
        // answer in time may have other addresses.
        for round in 0..300_u32 {
            let addresses: Vec<_> =
                internet.clients.iter().filter_map(|client| client.borrow().address()).collect();
            if let [own, peer] = addresses[..] {
                let sent = packet(own.address(), peer.address(), &round.to_be_bytes());
                internet.clients[0].borrow_mut().peers.sends(sent);
            }
            internet.network.run(Duration::from_secs(3));
            if internet.clients[1].borrow().peers.end.delivered.iter().any(|one| one[6] == UDP) {
                return Ok(());
            }
        }
        prop_assert!(false, "{source:?} {destination:?} {delay}");
    }
}
