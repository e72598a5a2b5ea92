//! Which clients meet: the matrix of RFC 6081 §3 in the model, with rules of peers that are as few as possible. The engine's are to do at least as much.

use super::hosts::Peers;
use super::*;
use sixway_control::Instant;
use sixway_control::teredo_client::ClientState;
use sixway_wire::Ipv6Header;
use sixway_wire::teredo::{
    Origin, Prologue, TEREDO_PORT, TeredoAddress, Trailer, Trailers, bubble, is_bubble,
};

/// Seeks one peer, or answers the one that seeks it.
#[derive(Default)]
struct Meeting {
    state: Option<ClientState>,
    peer: Option<Ipv6Addr>,
    nonce: [u8; 4],
    /// The nonce of the last indirect bubble, and where it came from.
    asked: Option<([u8; 4], Endpoint4)>,
    trusted: Option<Endpoint4>,
    due: Option<Instant>,
    rounds: u8,
    /// Data that came from the trusted endpoint.
    data: u32,
}

type Sent = Vec<(Endpoint4, Vec<u8>)>;

impl Meeting {
    fn seek(&mut self, peer: Ipv6Addr, nonce: [u8; 4], now: Instant) {
        (self.peer, self.nonce, self.due, self.rounds) = (Some(peer), nonce, Some(now), 0);
    }

    fn own(&self) -> Ipv6Addr {
        self.state.unwrap().address.address()
    }

    /// A direct bubble; with the nonce of the indirect bubble, if there was one (RFC 6081 §5.2.4.2).
    fn direct(&self, to: Endpoint4) -> (Endpoint4, Vec<u8>) {
        let mut octets = bubble(self.own(), self.peer.unwrap(), 255).to_vec();
        if let Some((nonce, _)) = self.asked {
            octets.extend(written(nonce));
        }
        (to, octets)
    }

    /// An indirect bubble with a nonce of ours (RFC 6081 §5.2.4.1).
    fn indirect(&self) -> (Endpoint4, Vec<u8>) {
        let peer = self.peer.unwrap();
        let server = TeredoAddress::of(peer).unwrap().server;
        let octets = [&bubble(self.own(), peer, 255)[..], &written(self.nonce)].concat();
        (Endpoint4::new(server, TEREDO_PORT), octets)
    }
}

fn written(nonce: [u8; 4]) -> Vec<u8> {
    let mut octets = vec![0; 6];
    Trailer::Nonce(nonce).write(&mut octets).unwrap();
    octets
}

impl Peers for Meeting {
    fn use_address(&mut self, state: Option<ClientState>) {
        self.state = state;
    }

    fn local_peer(&mut self, _: Ipv6Addr, _: Endpoint4) {}

    fn receive(&mut self, from: Endpoint4, payload: &[u8], now: Instant) -> Sent {
        let Some(ClientState { address: own, .. }) = self.state else { return Vec::new() };
        let (prologue, packet) = Prologue::split(payload).unwrap();
        let header = Ipv6Header::read(packet).unwrap();
        assert_eq!(header.destination, own.address(), "what is for another client comes to no client");
        let source = TeredoAddress::of(header.source).unwrap();
        let nonce = Trailers::new(&packet[40..]).find_map(|trailer| match trailer {
            Ok(Trailer::Nonce(nonce)) => Some(nonce),
            _ => None,
        });
        if !is_bubble(packet) {
            self.data += u32::from(self.trusted == Some(from));
            return Vec::new();
        }
        if from == Endpoint4::new(own.server, TEREDO_PORT) {
            let Some(Origin(origin)) = prologue.origin else { return Vec::new() };
            self.asked = nonce.map(|nonce| (nonce, origin));
            if self.peer.is_none() {
                // It seeks the peer itself, too: the peer's endpoint may be another than the one in its address.
                self.seek(header.source, [9, 9, 9, 9], now);
            }
            return vec![self.direct(origin)];
        }
        if from == source.mapped() || nonce == Some(self.nonce) {
            self.trusted = Some(from);
        }
        Vec::new()
    }

    fn due(&self) -> Option<Instant> {
        self.due
    }

    fn step(&mut self, now: Instant) -> Sent {
        if self.state.is_none() || self.due.is_none_or(|due| due > now) {
            return Vec::new();
        }
        self.rounds += 1;
        // RFC 4380 §5.2.6: not more often than each 2 s, and not more than four.
        self.due = (self.rounds < 4).then(|| now + Duration::from_secs(2));
        let embedded = TeredoAddress::of(self.peer.unwrap()).unwrap().mapped();
        match self.trusted {
            Some(trusted) => vec![self.direct(trusted)],
            None => vec![self.direct(embedded), self.indirect()],
        }
    }
}

/// Two clients behind two NATs; whether both trust an endpoint of the other after the first has sought the second, and data pass both ways.
fn meet(kinds: [Kind; 2], delay: u64, seed: u64) -> bool {
    let delay = Duration::from_millis(delay);
    let mut network = Network::new(delay, seed);
    let server = ServerHost::new(PRIMARY, Some(SECONDARY));
    for address in [PRIMARY, SECONDARY] {
        network.attach(address, None, server.clone());
    }
    let clients: Vec<_> = [(kinds[0], NAT), (kinds[1], NAT_LATER)]
        .into_iter()
        .zip(0_u8..)
        .map(|((kind, outside), n)| {
            let options =
                Options { kind, preserves_ports: false, hairpins: false, timeout: Duration::from_secs(60) };
            let nat = network.nat(Nat::new(options, outside, seed.wrapping_add(u64::from(n))));
            let address = if kind == Kind::Absent { outside } else { Ipv4Addr::new(10, n, 0, 5) };
            let local =
                Local { endpoint: Endpoint4::new(address, 40_001 + u16::from(n)), subnets: Vec::new() };
            let settings = Settings { probe_cone: false, ..Settings::new(vec![SERVER]) };
            let client = ClientHost::new(settings, local, n, Meeting::default(), network.now);
            network.attach(address, Some(nat), client.clone());
            client
        })
        .collect();
    network.run(Duration::from_secs(5));
    let peer = clients[1].borrow().address().unwrap().address();
    clients[0].borrow_mut().peers.seek(peer, [1, 2, 3, 4], network.now);
    network.run(Duration::from_secs(20));
    if clients.iter().any(|client| client.borrow().peers.trusted.is_none()) {
        return false;
    }
    for client in &clients {
        let mut client = client.borrow_mut();
        let (to, own, peer) = (client.peers.trusted.unwrap(), client.peers.own(), client.peers.peer.unwrap());
        let data = Ipv6Header::new(own, peer, 17, 0).octets();
        client.send(to, &data);
    }
    network.run(Duration::from_secs(2));
    clients.iter().all(|client| client.borrow().peers.data == 1)
}

/// RFC 6081 §3, figure 1, by its first two extensions; `None`: the figure has no row, or needs another port of the client (PP, SS).
pub fn figure_1(source: Kind, destination: Kind) -> Option<bool> {
    use Kind::{
        Absent, AddressRestricted, AddressSymmetric, Cone, PortPreservingSymmetric, PortRestricted,
        PortSymmetric, SequentialSymmetric,
    };
    match (source, destination) {
        (Absent | Cone, _) | (_, Absent | Cone) => Some(true),
        (AddressRestricted | PortRestricted, AddressRestricted | PortRestricted) => Some(true),
        // The figure says no; by the definitions of both, each has sent to the other's address, which opens them.
        (AddressRestricted, AddressSymmetric) | (AddressSymmetric, AddressRestricted) => None,
        (AddressRestricted, _) | (_, AddressRestricted) => Some(true),
        (
            PortPreservingSymmetric | SequentialSymmetric,
            PortRestricted | PortPreservingSymmetric | SequentialSymmetric,
        )
        | (PortRestricted, PortPreservingSymmetric | SequentialSymmetric) => None,
        (
            PortRestricted | AddressSymmetric | PortSymmetric | PortPreservingSymmetric | SequentialSymmetric,
            _,
        ) => Some(false),
    }
}

/// The same with the other two, which use another port of the client for each peer.
pub fn figure_1_with_ports(source: Kind, destination: Kind) -> Option<bool> {
    use Kind::{PortPreservingSymmetric, PortRestricted, SequentialSymmetric};
    match (source, destination) {
        (PortPreservingSymmetric, PortRestricted | PortPreservingSymmetric | SequentialSymmetric)
        | (PortRestricted, PortPreservingSymmetric | SequentialSymmetric)
        | (SequentialSymmetric, PortRestricted) => Some(true),
        (SequentialSymmetric, PortPreservingSymmetric | SequentialSymmetric) => Some(false),
        _ => figure_1(source, destination),
    }
}

#[test]
fn clients_meet_behind_the_pairs_of_nats_that_rfc_6081_names_and_behind_no_others() {
    let mut wrong = Vec::new();
    for source in Kind::ALL {
        for destination in Kind::ALL {
            let Some(expected) = figure_1(source, destination) else { continue };
            for (delay, seed) in [(5, 1), (80, 22), (300, 333)] {
                let met = meet([source, destination], delay, seed);
                if met != expected {
                    wrong.push((source, destination, delay, met));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn by_their_definitions_an_address_restricted_and_an_address_symmetric_nat_let_clients_meet() {
    for (delay, seed) in [(5, 1), (80, 22), (300, 333)] {
        assert!(meet([Kind::AddressRestricted, Kind::AddressSymmetric], delay, seed));
        assert!(meet([Kind::AddressSymmetric, Kind::AddressRestricted], delay, seed));
    }
}
