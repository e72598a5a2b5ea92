//! Any datagrams to a Teredo relay or client, and any packets that are routed to it, in any order. The engine never panics and accounts for every frame;
//! what leaves by UDP goes from the tunnel's own endpoint to a host, in a bounded number for each datagram that came; and after a time nothing is left.
//!
//! ```text
//!   input:   choice (1) · packets          1: a client, else a relay · 2: few peers · 4: hardly any outbox
//!   packet:  length (2) · what (1) · octets
//!   what:    0 the octets as they are · 1 a datagram: number of the peer (1) · payload · 2 the same from the server
//!            3 number of the peer (1): an IPv6 packet from it, a bubble of it with the nonce that it was sent, or an echo reply to the last
//!            test, as the next octet says, from its endpoint or another one (2 bits) · 4: two seconds pass before it · 8: half a minute ·
//!            16: ten minutes · 32: the local end changes · 64: a native host's packet to the peer follows
//! ```

#[path = "checksum.rs"]
#[allow(
    clippy::duplicate_mod,
    reason = "a target is a program of its own, and a module of the replay among others"
)]
mod checksum;

use checksum::State;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_dataplane::engine::{Engine, EngineConfig};
use sixway_dataplane::mechanism::teredo::{
    PortRule, Prediction, RelayConfig, TeredoChange, TeredoConfig, TeredoRole,
};
use sixway_dataplane::parse::{self, Addresses};
use sixway_dataplane::{Checksum, Frame, Instant, Offload, Outbox};
use sixway_wire::teredo::{TEREDO_PORT, TeredoAddress, TeredoInterface, bubble};
use sixway_wire::{Endpoint4, IcmpHeader, Ipv4Header, Ipv6Header, UdpHeader, protocol};
use std::time::Duration;

const LOCAL: Endpoint4 = Endpoint4::new(Ipv4Addr::new(192, 0, 2, 9), TEREDO_PORT);
const SERVER: Endpoint4 = Endpoint4::new(Ipv4Addr::new(198, 51, 100, 1), TEREDO_PORT);
const RELAY6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9);
const NATIVE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
/// A direct bubble, one through the server, those to four alternate endpoints; and four packets that waited.
const MOST: usize = 10;
/// The first of a client's spare ports.
const SPARE: u16 = 51_000;

pub fn run(octets: &[u8]) {
    let [choice, packets @ ..] = octets else { return };
    let mut gateway = Gateway::new(*choice);
    let mut rest = packets;
    while let [high, low, what, more @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(more.len());
        let (octets, behind) = more.split_at(length);
        rest = behind;
        gateway.step(*what, octets);
    }
    gateway.ends();
}

struct Gateway {
    engine: Engine,
    out: Outbox,
    now: Instant,
    own: Ipv6Addr,
    moved: bool,
    /// What was sent last to the server: a bubble, or a test.
    asked: Vec<u8>,
    /// The spare port that something left by last; the service port at first.
    from: u16,
}

impl Gateway {
    fn new(choice: u8) -> Self {
        let is_client = choice & 1 != 0;
        let role = if is_client {
            TeredoRole::Client
        } else {
            TeredoRole::Relay(RelayConfig { address: RELAY6, serves: Vec::new() })
        };
        let mut teredo = TeredoConfig::new(role);
        teredo.max_peers = if choice & 2 != 0 { 3 } else { 100 };
        teredo.servers = vec![SERVER.address];
        let config = EngineConfig { others: vec![teredo.into()], seed: [1, 2], ..EngineConfig::default() };
        let (mut engine, now) = (Engine::new(&config).unwrap(), Instant::from_secs(1));
        engine.change_teredo(0, &TeredoChange::Local(Some(LOCAL), Vec::new()), now);
        engine.change_teredo(0, &TeredoChange::Client(Some(client(0))), now);
        if choice & 24 != 0 {
            let secondary = Ipv4Addr::new(198, 51, 100, 2);
            let rule = if choice & 8 != 0 { PortRule::Preserved } else { PortRule::Sequential { secondary } };
            let prediction = Prediction { rule: Some(rule), ports: vec![SPARE, SPARE + 1, SPARE + 2] };
            engine.change_teredo(0, &TeredoChange::Prediction(prediction), now);
        }
        let own = if is_client { client(0).address() } else { RELAY6 };
        let out = Outbox::new(if choice & 4 != 0 { 3 } else { 1_024 });
        Self { engine, out, now, own, moved: false, asked: Vec::new(), from: LOCAL.port }
    }

    fn step(&mut self, what: u8, octets: &[u8]) {
        let seconds = [(4, 2), (8, 30), (16, 600)].map(|(bit, time)| if what & bit != 0 { time } else { 0 });
        self.passes(Duration::from_secs(seconds.iter().sum()));
        if what & 32 != 0 {
            self.moved = !self.moved;
            let local = (!self.moved).then_some(LOCAL);
            let subnets = vec!["192.168.1.0/24".parse().unwrap()];
            self.engine.change_teredo(0, &TeredoChange::Local(local, subnets), self.now);
        }
        let (number, payload) = octets.split_first().map_or((0, octets), |(number, rest)| (*number, rest));
        let mapped = client(number).mapped();
        match what & 3 {
            0 => self.receives(octets),
            1 => self.receives(&datagram(mapped, payload)),
            2 => self.receives(&datagram(SERVER, payload)),
            _ => self.plays(number, payload),
        }
        if what & 64 != 0 {
            let (source, destination) =
                (if self.own == RELAY6 { NATIVE } else { self.own }, client(number).address());
            let header = Ipv6Header::new(source, destination, protocol::NO_NEXT_HEADER, 4);
            self.receives(&[&header.octets()[..], b"data"].concat());
        }
    }

    /// What a peer does that keeps to the protocol, or nearly.
    fn plays(&mut self, number: u8, octets: &[u8]) {
        let peer = client(number);
        let what = octets.first().copied().unwrap_or_default();
        let elsewhere = Endpoint4::new(peer.mapped().address, 50_000 + u16::from(what >> 4));
        let from = if what & 4 == 0 { peer.mapped() } else { elsewhere };
        let payload = match what & 3 {
            0 => [&bubble(peer.address(), self.own, 64)[..], octets.get(1..).unwrap_or_default()].concat(),
            1 => {
                let nonce = self.asked.get(40..46).unwrap_or_default();
                [&bubble(peer.address(), self.own, 64)[..], nonce].concat()
            }
            2 => {
                let echo = self.asked.get(48..).unwrap_or_default();
                let reply = IcmpHeader::echo(129, 0x6317, 1).with_checksum6(NATIVE, self.own, echo);
                let header = Ipv6Header::new(NATIVE, self.own, protocol::ICMPV6, 8 + echo.len());
                [&header.octets()[..], &reply.octets(), echo].concat()
            }
            _ => {
                let to = if self.own == RELAY6 { NATIVE } else { self.own };
                let header = Ipv6Header::new(peer.address(), to, 253, 4);
                [&header.octets()[..], b"data"].concat()
            }
        };
        let port = if what & 8 == 0 { LOCAL.port } else { self.from };
        self.receives(&datagram_to(port, from, &payload));
    }

    fn receives(&mut self, octets: &[u8]) {
        let mut frame = Frame::with_capacity(octets.len() + 1_500);
        frame.fill(octets, Offload::default());
        self.engine.process(std::slice::from_mut(&mut frame), self.now, &mut self.out);
        if frame.verdict.leaves() {
            self.judge(&frame);
        }
        let datagrams = self.sent();
        assert!(datagrams <= MOST, "one packet made {datagrams} datagrams");
    }

    fn passes(&mut self, time: Duration) {
        self.now = self.now + time;
        self.engine.tick(self.now, &mut self.out);
        self.sent();
    }

    /// Looks at what is in the outbox; how many datagrams there are.
    fn sent(&mut self) -> usize {
        let mut out = std::mem::replace(&mut self.out, Outbox::new(0));
        let datagrams = out.frames().iter().filter(|frame| self.judge(frame)).count();
        out.clear();
        self.out = out;
        let counters = self.engine.counters();
        assert!(counters.frames_are_conserved(), "{counters:?}");
        datagrams
    }

    /// Whether what leaves is a datagram of the tunnel.
    fn judge(&mut self, frame: &Frame) -> bool {
        let Ok(packet) = parse::parse(frame.bytes()) else { panic!("what leaves is no packet: {frame:?}") };
        assert_eq!(packet.length as usize, frame.len(), "octets behind the packet leave: {frame:?}");
        let Addresses::V4 { source, destination } = packet.addresses else {
            assert!(!frame.by_socket, "{frame:?}");
            return false;
        };
        if packet.protocol != protocol::UDP {
            assert!(!frame.by_socket, "{frame:?}");
            return false;
        }
        assert!(frame.by_socket && source == LOCAL.address, "{frame:?}");
        assert!(!destination.is_multicast() && !destination.is_loopback(), "{frame:?}");
        // Another socket of this host may be a server.
        let is_to_server = frame.bytes().get(22..24) == Some(&TEREDO_PORT.to_be_bytes());
        assert!(destination != LOCAL.address || is_to_server, "{frame:?}");
        assert_eq!(frame.offload.checksum, Checksum::Partial);
        assert_eq!(checksum::partial(frame.bytes(), &packet), State::Right, "{frame:?}");
        let port = frame.bytes().get(20..22).map_or(0, |port| u16::from_be_bytes([port[0], port[1]]));
        assert!(port == LOCAL.port || (SPARE..SPARE + 3).contains(&port), "{frame:?}");
        if port != LOCAL.port {
            self.from = port;
        }
        if destination == SERVER.address {
            self.asked = frame.bytes()[28..].to_vec();
        }
        true
    }

    /// After hours of silence nothing is held and no peer is known.
    fn ends(&mut self) {
        for _ in 0..64 {
            self.passes(Duration::from_secs(600));
        }
        assert_eq!(self.engine.counters().held, 0, "packets are held for ever");
        let row = self.engine.teredo()[0].row();
        assert!(self.moved || row.peers == [0; 4], "peers live for ever: {row:?}");
    }
}

/// Sixteen clients behind one address, and so on; those of other servers, some at no host of the Internet.
fn client(number: u8) -> TeredoAddress {
    let server = match number {
        250 => Ipv4Addr::new(10, 0, 0, 1),
        251 => LOCAL.address,
        _ => SERVER.address,
    };
    let address = match number {
        252 => Ipv4Addr::new(192, 168, 1, 1),
        253 => LOCAL.address,
        _ => Ipv4Addr::new(203, 0, 113, number / 16),
    };
    let mapped = Endpoint4::new(address, 40_000 + u16::from(number % 16));
    TeredoAddress { server, interface: TeredoInterface { flags: 0, mapped } }
}

fn datagram(from: Endpoint4, payload: &[u8]) -> Vec<u8> {
    datagram_to(LOCAL.port, from, payload)
}

fn datagram_to(port: u16, from: Endpoint4, payload: &[u8]) -> Vec<u8> {
    let payload = &payload[..payload.len().min(65_000)];
    let header = Ipv4Header::new(from.address, LOCAL.address, protocol::UDP, 8 + payload.len());
    let udp = UdpHeader::new(from.port, port, payload.len());
    [&header.octets()[..], &udp.octets(), payload].concat()
}
