//! The engine's client and relay as hosts of the network.

use super::hosts::Peers;
use super::network::{Datagram, Host};
use super::{PRIMARY, SECONDARY};
use core::cell::RefCell;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use sixway_control::Instant;
use sixway_control::teredo_client::ClientState;
use sixway_dataplane::engine::{Engine, EngineConfig};
use sixway_dataplane::frame::Ingress;
use sixway_dataplane::mechanism::teredo::{
    PeerRow, PortRule, Prediction, RelayConfig, TeredoChange, TeredoConfig, TeredoRole,
};
use sixway_dataplane::{Frame, Outbox};
use sixway_wire::protocol::UDP;
use sixway_wire::{Endpoint4, Ipv4Header, UdpHeader};
use std::rc::Rc;

/// How often an engine is given the time.
const TICK: Duration = Duration::from_millis(100);

type Sent = Vec<(Endpoint4, Vec<u8>)>;

/// An engine with a client or a relay.
pub struct EngineEnd {
    engine: Engine,
    out: Outbox,
    local: Endpoint4,
    /// IPv6 packets that came out of the tunnel, and ICMP errors to the sender of what went into it.
    pub delivered: Vec<Vec<u8>>,
    due: Option<Instant>,
    /// What is sent from other ports.
    apart: Vec<Datagram>,
}

impl EngineEnd {
    pub fn new(role: TeredoRole, local: Endpoint4, seed: u64, now: Instant) -> Self {
        let teredo = TeredoConfig { servers: vec![PRIMARY, SECONDARY], ..TeredoConfig::new(role) };
        let config = EngineConfig {
            own6: Some("2001:db8::fe".parse().unwrap()),
            others: vec![teredo.into()],
            seed: [seed, !seed],
            join: false,
            ..EngineConfig::default()
        };
        let mut engine = Engine::new(&config).unwrap();
        engine.change_teredo(0, &TeredoChange::Local(Some(local), Vec::new()), now);
        Self {
            engine,
            out: Outbox::new(256),
            local,
            delivered: Vec::new(),
            due: Some(now),
            apart: Vec::new(),
        }
    }

    pub fn change(&mut self, change: &TeredoChange, now: Instant) {
        self.engine.change_teredo(0, change, now);
    }

    /// What it knows of a peer.
    pub fn peer(&self, address: Ipv6Addr, now: Instant) -> Option<PeerRow> {
        self.engine.teredo()[0].peer(address, now)
    }

    /// An IPv6 packet is routed into the tunnel.
    pub fn routed(&mut self, packet: &[u8], now: Instant) -> Sent {
        self.process(packet, Ingress::default(), now)
    }

    /// A datagram came.
    pub fn arrived(&mut self, from: Endpoint4, payload: &[u8], now: Instant) -> Sent {
        self.arrived_at(self.local, from, payload, now)
    }

    /// The same at another port.
    fn arrived_at(&mut self, local: Endpoint4, from: Endpoint4, payload: &[u8], now: Instant) -> Sent {
        let udp = UdpHeader::new(from.port, local.port, payload.len());
        let ipv4 = Ipv4Header::new(from.address, local.address, UDP, udp.length.into());
        let octets = [&ipv4.octets()[..], &udp.octets(), payload].concat();
        self.process(&octets, Ingress::Socket, now)
    }

    fn process(&mut self, octets: &[u8], ingress: Ingress, now: Instant) -> Sent {
        let mut frame = Frame::holding(octets);
        frame.ingress = ingress;
        self.engine.process(std::slice::from_mut(&mut frame), now, &mut self.out);
        let mut left = Vec::new();
        if frame.verdict.leaves() {
            left.push(frame.bytes().to_vec());
        }
        self.collect(left)
    }

    /// Time passes.
    pub fn tick(&mut self, now: Instant) -> Sent {
        self.due = Some(now + TICK);
        self.engine.tick(now, &mut self.out);
        self.collect(Vec::new())
    }

    fn collect(&mut self, mut left: Vec<Vec<u8>>) -> Sent {
        left.extend(self.out.frames().iter().map(|frame| frame.bytes().to_vec()));
        self.out.clear();
        assert!(self.engine.counters().frames_are_conserved());
        let mut sent = Vec::new();
        for packet in left {
            if packet[0] >> 4 == 6 {
                self.delivered.push(packet);
                continue;
            }
            assert_eq!(packet[9], UDP);
            let address = Ipv4Addr::new(packet[16], packet[17], packet[18], packet[19]);
            let to = Endpoint4::new(address, u16::from_be_bytes([packet[22], packet[23]]));
            let (port, payload) = (u16::from_be_bytes([packet[20], packet[21]]), packet[28..].to_vec());
            if port == self.local.port {
                sent.push((to, payload));
            } else {
                let from = Endpoint4::new(self.local.address, port);
                self.apart.push(Datagram { from, to, payload });
            }
        }
        sent
    }
}

/// The engine's client, with what its host sends.
pub struct EngineClient {
    pub end: EngineEnd,
    waiting: Vec<Vec<u8>>,
    now: Instant,
    prediction: Prediction,
    /// How many spare ports it has behind a symmetric NAT.
    pub spares: u16,
    /// The number of the next one.
    next_spare: u16,
}

impl EngineClient {
    pub fn new(local: Endpoint4, seed: u64, now: Instant) -> Self {
        let end = EngineEnd::new(TeredoRole::Client, local, seed, now);
        let (waiting, prediction) = Default::default();
        Self { end, waiting, now, prediction, spares: 0, next_spare: 52_000 }
    }

    /// Opens another port for one that is spent.
    fn replace_spent(&mut self) {
        let Some(spent) = self.end.engine.teredo()[0].row().spares.spent else { return };
        for port in self.prediction.ports.iter_mut().filter(|port| **port == spent) {
            (*port, self.next_spare) = (self.next_spare, self.next_spare + 1);
        }
        self.end.change(&TeredoChange::Prediction(self.prediction.clone()), self.now);
    }

    /// The host sends an IPv6 packet.
    pub fn sends(&mut self, packet: Vec<u8>) {
        self.waiting.push(packet);
    }
}

impl Peers for EngineClient {
    fn use_address(&mut self, state: Option<ClientState>) {
        self.end.change(&TeredoChange::Client(state.map(|state| state.address)), self.now);
    }

    fn local_peer(&mut self, peer: Ipv6Addr, endpoint: Endpoint4) {
        self.end.change(&TeredoChange::LocalPeer(peer, endpoint), self.now);
    }

    fn receive(&mut self, from: Endpoint4, payload: &[u8], now: Instant) -> Sent {
        self.now = now;
        self.end.arrived(from, payload, now)
    }

    fn due(&self) -> Option<Instant> {
        if self.waiting.is_empty() { self.end.due } else { Some(self.now) }
    }

    fn step(&mut self, now: Instant) -> Sent {
        self.now = now;
        let mut sent = Vec::new();
        for packet in core::mem::take(&mut self.waiting) {
            sent.extend(self.end.routed(&packet, now));
        }
        if self.end.due.is_none_or(|due| due <= now) {
            sent.extend(self.end.tick(now));
            self.replace_spent();
        }
        sent
    }

    fn follow(&mut self, rule: Option<PortRule>) {
        if rule == self.prediction.rule || self.spares == 0 {
            return;
        }
        let ports = self.next_spare..self.next_spare + self.spares;
        self.next_spare = ports.end;
        self.prediction = Prediction { rule, ports: ports.collect() };
        self.end.change(&TeredoChange::Prediction(self.prediction.clone()), self.now);
    }

    fn receive_apart(&mut self, datagram: &Datagram, now: Instant) {
        self.now = now;
        if !self.prediction.ports.contains(&datagram.to.port) {
            return;
        }
        let sent = self.end.arrived_at(datagram.to, datagram.from, &datagram.payload, now);
        let from = self.end.local;
        let sent = sent.into_iter().map(|(to, payload)| Datagram { from, to, payload });
        self.end.apart.extend(sent);
    }

    fn apart(&mut self) -> Vec<Datagram> {
        core::mem::take(&mut self.end.apart)
    }
}

/// The engine's relay, and a native host behind it, which answers echo requests.
pub struct RelayHost {
    pub end: EngineEnd,
    /// Packets that the native host received, echo requests left out.
    pub received: Vec<Vec<u8>>,
    out: Vec<Datagram>,
    waiting: Vec<Vec<u8>>,
    now: Instant,
}

impl RelayHost {
    pub fn new(local: Endpoint4, address: Ipv6Addr, seed: u64, now: Instant) -> Rc<RefCell<Self>> {
        let role = TeredoRole::Relay(RelayConfig { address, serves: Vec::new() });
        let end = EngineEnd::new(role, local, seed, now);
        let (received, out, waiting) = Default::default();
        Rc::new(RefCell::new(Self { end, received, out, waiting, now }))
    }

    /// The native host sends a packet.
    pub fn sends(&mut self, packet: Vec<u8>) {
        self.waiting.push(packet);
    }

    /// A packet came to the native host.
    pub fn reaches_native(&mut self, packet: Vec<u8>) {
        match packet.get(40) {
            Some(128) if packet[6] == 58 => {
                let mut reply = packet.clone();
                reply[8..24].copy_from_slice(&packet[24..40]);
                reply[24..40].copy_from_slice(&packet[8..24]);
                reply[40] = 129;
                // RFC 1624: the sum of the message grew by 0x0100.
                let sum = u32::from(!u16::from_be_bytes([packet[42], packet[43]])) + 0x0100;
                let folded = (sum & 0xffff) + (sum >> 16);
                reply[42..44].copy_from_slice(&(!(folded as u16)).to_be_bytes());
                self.waiting.push(reply);
            }
            _ => self.received.push(packet),
        }
    }

    fn send(&mut self, sent: Sent) {
        let from = self.end.local;
        self.out.extend(sent.into_iter().map(|(to, payload)| Datagram { from, to, payload }));
        for packet in core::mem::take(&mut self.end.delivered) {
            self.reaches_native(packet);
        }
    }
}

impl Host for RelayHost {
    fn receive(&mut self, datagram: &Datagram, now: Instant) {
        self.now = now;
        let sent = self.end.arrived(datagram.from, &datagram.payload, now);
        self.send(sent);
    }

    fn due(&self) -> Option<Instant> {
        if self.waiting.is_empty() { self.end.due } else { Some(self.now) }
    }

    fn step(&mut self, now: Instant) -> Vec<Datagram> {
        self.now = now;
        for packet in core::mem::take(&mut self.waiting) {
            let sent = self.end.routed(&packet, now);
            self.send(sent);
        }
        if self.end.due.is_none_or(|due| due <= now) {
            let sent = self.end.tick(now);
            self.send(sent);
        }
        core::mem::take(&mut self.out)
    }
}
