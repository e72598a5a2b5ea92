//! Hosts of the network: a Teredo server, a client, and a host on the Internet that looks for the client.

use super::engine_ends::RelayHost;
use super::network::{Datagram, Host};
use core::cell::RefCell;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_control::Instant;
use sixway_control::teredo_client::{
    Action, Client, ClientState, DISCOVERY, Local, NatKind, Port, Settings, Why,
};
use sixway_control::teredo_server::{self, Sent, Server};
use sixway_dataplane::mechanism::teredo::PortRule;
use sixway_wire::teredo::{Origin, Prologue, TEREDO_PORT, TeredoAddress, bubble};
use sixway_wire::{Endpoint4, Ipv6Header};
use std::rc::Rc;

/// The real server on one or two addresses.
pub struct ServerHost {
    server: Server,
    out: Vec<Datagram>,
    /// It answers nothing.
    pub is_down: bool,
    /// Where its IPv6 packets go.
    pub native: Option<Rc<RefCell<RelayHost>>>,
}

impl ServerHost {
    pub fn new(primary: Ipv4Addr, secondary: Option<Ipv4Addr>) -> Rc<RefCell<Self>> {
        let server = Server::new(teredo_server::Settings::new(primary, secondary), 5);
        Rc::new(RefCell::new(Self { server, out: Vec::new(), is_down: false, native: None }))
    }
}

impl Host for ServerHost {
    fn receive(&mut self, datagram: &Datagram, now: Instant) {
        if self.is_down || datagram.to.port != TEREDO_PORT {
            return;
        }
        let received = teredo_server::Datagram {
            from: datagram.from,
            to: datagram.to.address,
            payload: &datagram.payload,
        };
        let mut payload = Vec::new();
        match (self.server.handle(received, &mut payload, now), &self.native) {
            (Ok(Sent::Udp { from, to }), _) => {
                self.out.push(Datagram { from: Endpoint4::new(from, TEREDO_PORT), to, payload });
            }
            (Ok(Sent::Native(_)), Some(relay)) => relay.borrow_mut().reaches_native(payload),
            (Ok(Sent::Native(_)) | Err(_), _) => {}
        }
    }

    fn due(&self) -> Option<Instant> {
        None
    }

    fn step(&mut self, _: Instant) -> Vec<Datagram> {
        core::mem::take(&mut self.out)
    }
}

/// What a client does with the packets of the tunnel: here stands the least; the engine's peers have their place here, too.
pub trait Peers {
    /// The address in use changed.
    fn use_address(&mut self, state: Option<ClientState>);
    /// A neighbour was found (RFC 4380 §5.2.8).
    fn local_peer(&mut self, peer: Ipv6Addr, endpoint: Endpoint4);
    /// A datagram came to the service port that is not of the maintenance; what is sent from the service port.
    fn receive(&mut self, from: Endpoint4, payload: &[u8], now: Instant) -> Vec<(Endpoint4, Vec<u8>)>;
    /// When [`Peers::step`] is to be called next.
    fn due(&self) -> Option<Instant>;
    /// What is sent from the service port at this time.
    fn step(&mut self, now: Instant) -> Vec<(Endpoint4, Vec<u8>)>;
    /// What is known of the NAT's ports.
    fn follow(&mut self, _rule: Option<PortRule>) {}
    /// A datagram came to another port.
    fn receive_apart(&mut self, _datagram: &Datagram, _now: Instant) {}
    /// What is sent from other ports.
    fn apart(&mut self) -> Vec<Datagram> {
        Vec::new()
    }
}

/// Answers an indirect bubble with a direct one, with its nonce, and writes down what comes.
#[derive(Default)]
pub struct Answering {
    state: Option<ClientState>,
    pub heard: Vec<(Endpoint4, Vec<u8>)>,
    pub neighbours: Vec<(Ipv6Addr, Endpoint4)>,
}

impl Peers for Answering {
    fn use_address(&mut self, state: Option<ClientState>) {
        self.state = state;
    }

    fn local_peer(&mut self, peer: Ipv6Addr, endpoint: Endpoint4) {
        self.neighbours.push((peer, endpoint));
    }

    fn receive(&mut self, from: Endpoint4, payload: &[u8], _: Instant) -> Vec<(Endpoint4, Vec<u8>)> {
        self.heard.push((from, payload.to_vec()));
        let Some(ClientState { address: own, .. }) = self.state else { return Vec::new() };
        let Ok((prologue, packet)) = Prologue::split(payload) else { return Vec::new() };
        let (Some(Origin(origin)), Ok(header)) = (prologue.origin, Ipv6Header::read(packet)) else {
            return Vec::new();
        };
        if from != Endpoint4::new(own.server, TEREDO_PORT) || header.destination != own.address() {
            return Vec::new();
        }
        // RFC 6081 §5.2.4.2: the trailer goes back.
        let trailers = packet.get(40..).unwrap_or_default();
        vec![(origin, [&bubble(own.address(), header.source, 255)[..], trailers].concat())]
    }

    fn due(&self) -> Option<Instant> {
        None
    }

    fn step(&mut self, _: Instant) -> Vec<(Endpoint4, Vec<u8>)> {
        Vec::new()
    }
}

/// The real client.
pub struct ClientHost<P> {
    pub client: Client,
    pub peers: P,
    pub local: Local,
    /// Number of the secondary port and of the probe's.
    ports: [u16; 2],
    out: Vec<Datagram>,
    pub used: Vec<ClientState>,
    pub stopped: Vec<Why>,
    pub in_use: Option<ClientState>,
    now: Instant,
}

impl<P: Peers> ClientHost<P> {
    pub fn new(settings: Settings, local: Local, seed: u8, peers: P, now: Instant) -> Rc<RefCell<Self>> {
        let mut client = Client::new(settings, Some(local.clone()), [seed; 32]);
        client.start(now);
        let (used, stopped) = (Vec::new(), Vec::new());
        let ports = [50_001, 50_002];
        let out = Vec::new();
        Rc::new(RefCell::new(Self { client, peers, local, ports, out, used, stopped, in_use: None, now }))
    }

    fn endpoint(&self, port: Port) -> Endpoint4 {
        let [secondary, probe] = self.ports;
        let port = match port {
            Port::Service => self.local.endpoint.port,
            Port::Secondary => secondary,
            Port::Probe => probe,
            Port::Discovery => unreachable!("nothing is sent from there"),
        };
        Endpoint4::new(self.local.endpoint.address, port)
    }

    /// What was found of the NAT.
    pub fn nat(&self) -> NatKind {
        self.client.status(self.now).nat
    }

    /// Sends from the service port.
    pub fn send(&mut self, to: Endpoint4, payload: &[u8]) {
        let from = self.endpoint(Port::Service);
        self.out.push(Datagram { from, to, payload: payload.to_vec() });
    }

    /// Its address.
    pub fn address(&self) -> Option<TeredoAddress> {
        self.in_use.map(|state| state.address)
    }
}

impl<P: Peers> Host for ClientHost<P> {
    fn receive(&mut self, datagram: &Datagram, now: Instant) {
        let Datagram { from, to, payload } = datagram;
        let [secondary, probe] = self.ports;
        let port = match to.port {
            _ if *to == DISCOVERY => Port::Discovery,
            port if port == self.local.endpoint.port => Port::Service,
            port if port == secondary => Port::Secondary,
            port if port == probe => Port::Probe,
            _ => return self.peers.receive_apart(datagram, now),
        };
        let taken = self.client.receive(port, *from, payload, now);
        if port == Port::Service && taken.is_err() {
            let local = self.endpoint(Port::Service);
            let answers = self.peers.receive(*from, payload, now);
            self.out.extend(answers.into_iter().map(|(to, payload)| Datagram { from: local, to, payload }));
        }
    }

    fn due(&self) -> Option<Instant> {
        self.client.due().into_iter().chain(self.peers.due()).min()
    }

    fn step(&mut self, now: Instant) -> Vec<Datagram> {
        self.now = now;
        while let Some(action) = self.client.step(now) {
            match action {
                Action::Send { from, to, octets } => {
                    self.out.push(Datagram { from: self.endpoint(from), to, payload: octets });
                }
                Action::Close(port) => {
                    // A new socket has a new number.
                    let at = usize::from(port == Port::Probe);
                    self.ports[at] += 2;
                }
                Action::Use(state) => {
                    self.used.push(state);
                    self.in_use = Some(state);
                    self.peers.use_address(Some(state));
                }
                Action::Stop(why) => {
                    self.stopped.push(why);
                    self.in_use = None;
                    self.peers.use_address(None);
                }
                Action::LocalPeer(peer, endpoint) => self.peers.local_peer(peer, endpoint),
            }
        }
        self.peers.follow(self.client.port_rule());
        let local = self.endpoint(Port::Service);
        let sent = self.peers.step(now).into_iter();
        self.out.extend(sent.map(|(to, payload)| Datagram { from: local, to, payload }));
        self.out.extend(self.peers.apart());
        core::mem::take(&mut self.out)
    }
}

/// A host on the Internet that sends what the test wants, and writes down what comes.
pub struct Stranger {
    pub endpoint: Endpoint4,
    out: Vec<Datagram>,
    pub heard: Vec<(Endpoint4, Vec<u8>)>,
}

impl Stranger {
    pub fn new(endpoint: Endpoint4) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self { endpoint, out: Vec::new(), heard: Vec::new() }))
    }

    pub fn send(&mut self, to: Endpoint4, payload: &[u8]) {
        self.out.push(Datagram { from: self.endpoint, to, payload: payload.to_vec() });
    }
}

impl Host for Stranger {
    fn receive(&mut self, datagram: &Datagram, _: Instant) {
        self.heard.push((datagram.from, datagram.payload.clone()));
    }

    fn due(&self) -> Option<Instant> {
        None
    }

    fn step(&mut self, _: Instant) -> Vec<Datagram> {
        core::mem::take(&mut self.out)
    }
}
