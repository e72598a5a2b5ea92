//! A Teredo client, clause by clause of RFC 4380 §5.2, as RFC 5991 and RFC 6081 change it.

mod discovery;
mod failover;
mod hostile;
mod interval;
mod maintenance;
mod qualification;

use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use sixway_control::Instant;
use sixway_control::neighbour_discovery::{
    ALL_ROUTERS, INFINITY, Message, NdOption, PrefixInformation, Received, RouterAdvertisement,
};
use sixway_control::teredo_client::{
    Action, Client, ClientState, Local, Port, Refused, ServerAddresses, Settings, Why,
};
use sixway_wire::protocol::ICMPV6;
use sixway_wire::teredo::{Authentication, Origin, Prologue, TeredoInterface};
use sixway_wire::{Endpoint4, Ipv6Header, Prefix6};

const PRIMARY: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const SECONDARY: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
const SERVER: ServerAddresses = ServerAddresses { primary: PRIMARY, secondary: Some(SECONDARY) };
const OTHER: ServerAddresses = ServerAddresses {
    primary: Ipv4Addr::new(203, 0, 113, 1),
    secondary: Some(Ipv4Addr::new(203, 0, 113, 2)),
};
const LOCAL: Endpoint4 = Endpoint4::new(Ipv4Addr::new(10, 0, 0, 5), 40_001);
const MAPPED: Endpoint4 = Endpoint4::new(Ipv4Addr::new(192, 0, 2, 7), 61_001);
const ELSEWHERE: Endpoint4 = Endpoint4::new(Ipv4Addr::new(192, 0, 2, 8), 61_002);

const fn at(address: Ipv4Addr) -> Endpoint4 {
    Endpoint4::new(address, 3_544)
}

fn local(endpoint: Endpoint4) -> Local {
    Local { endpoint, subnets: vec!["10.0.0.0/24".parse().unwrap()] }
}

/// Without the probe and what is optional, so that only the main exchanges are seen.
fn settings() -> Settings {
    Settings { probe_cone: false, ..Settings::new(vec![SERVER]) }
}

/// A datagram that the client sent.
#[derive(Clone, Debug)]
struct Out {
    at: Instant,
    from: Port,
    to: Endpoint4,
    octets: Vec<u8>,
}

/// A router solicitation as a server reads it.
#[derive(Clone, Debug)]
struct Asked {
    link_local: Ipv6Addr,
    nonce: [u8; 8],
    client: Vec<u8>,
    value: Vec<u8>,
    packet: Vec<u8>,
}

impl Out {
    fn asked(&self) -> Asked {
        let (prologue, packet) = Prologue::split(&self.octets).unwrap();
        assert_eq!(prologue.origin, None);
        let authentication = prologue.authentication.expect("a nonce is always sent");
        let received = Received::from_packet(packet).unwrap();
        assert!(matches!(Message::parse(&received), Ok(Message::RouterSolicitation(_))));
        assert_eq!(received.destination, ALL_ROUTERS);
        assert_eq!(authentication.confirmation, 0);
        Asked {
            link_local: received.source,
            nonce: authentication.nonce,
            client: authentication.client.to_vec(),
            value: authentication.value.to_vec(),
            packet: packet.to_vec(),
        }
    }
}

/// Client identifier, value, nonce and confirmation byte.
type Authenticated = (Vec<u8>, Vec<u8>, [u8; 8], u8);

/// A router advertisement, right unless a test changes it.
#[derive(Clone, Debug)]
struct Answer {
    authentication: Option<Authenticated>,
    origin: Option<Endpoint4>,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    hop_limit: u8,
    prefixes: Vec<Prefix6>,
}

fn prefix(server: Ipv4Addr) -> Prefix6 {
    let bits = 0x2001_0000_u128 << 96 | u128::from(server.to_bits()) << 64;
    Prefix6::holding(Ipv6Addr::from_bits(bits), 64)
}

impl Answer {
    fn to(asked: &Asked, server: Ipv4Addr, mapped: Endpoint4) -> Self {
        let source = TeredoInterface { flags: 0x8000, mapped: at(server) }.link_local();
        Self {
            authentication: Some((Vec::new(), Vec::new(), asked.nonce, 0)),
            origin: Some(mapped),
            source,
            destination: asked.link_local,
            hop_limit: 255,
            prefixes: vec![prefix(server)],
        }
    }

    fn packet(&self) -> Vec<u8> {
        let of = |prefix: &Prefix6| {
            let prefix = *prefix;
            NdOption::Prefix(PrefixInformation {
                prefix,
                on_link: false,
                autonomous: true,
                valid: INFINITY,
                preferred: INFINITY,
            })
        };
        let options = self.prefixes.iter().map(of).collect();
        let message = Message::RouterAdvertisement(RouterAdvertisement { options, ..Default::default() })
            .to_octets(self.source, self.destination);
        let header = Ipv6Header {
            hop_limit: self.hop_limit,
            ..Ipv6Header::new(self.source, self.destination, ICMPV6, message.len())
        };
        [&header.octets()[..], &message].concat()
    }

    fn octets(&self) -> Vec<u8> {
        let mut octets = Vec::new();
        if let Some((client, value, nonce, confirmation)) = &self.authentication {
            let authentication = Authentication { client, value, nonce: *nonce, confirmation: *confirmation };
            octets.resize(authentication.len(), 0);
            authentication.write(&mut octets).unwrap();
        }
        octets.extend(self.origin.iter().flat_map(|origin| Origin(*origin).octets()));
        octets.extend(self.packet());
        octets
    }
}

/// A client, what it did, and the time.
struct Host {
    client: Client,
    now: Instant,
    sent: Vec<Out>,
    used: Vec<ClientState>,
    stopped: Vec<Why>,
    closed: Vec<Port>,
    local_peers: Vec<(Ipv6Addr, Endpoint4)>,
}

impl Host {
    fn new(settings: Settings) -> Self {
        Self::seeded(settings, 7)
    }

    fn seeded(settings: Settings, seed: u8) -> Self {
        let client = Client::new(settings, Some(local(LOCAL)), [seed; 32]);
        let now = Instant::from_secs(1_000);
        let (sent, used, stopped) = (Vec::new(), Vec::new(), Vec::new());
        let mut host = Self { client, now, sent, used, stopped, closed: Vec::new(), local_peers: Vec::new() };
        host.client.start(now);
        host.settle();
        host
    }

    /// One that is qualified.
    fn qualified(settings: Settings) -> Self {
        Self::new(settings).and_qualified()
    }

    fn seeded_and_qualified(seed: u8) -> Self {
        Self::seeded(settings(), seed).and_qualified()
    }

    fn and_qualified(self) -> Self {
        let mut host = self;
        host.answer(MAPPED).unwrap();
        host.answer(MAPPED).unwrap();
        assert_eq!(host.used.len(), 1);
        host
    }

    /// Does what is due.
    fn settle(&mut self) {
        while let Some(action) = self.client.step(self.now) {
            let at = self.now;
            match action {
                Action::Send { from, to, octets } => self.sent.push(Out { at, from, to, octets }),
                Action::Use(state) => self.used.push(state),
                Action::Stop(why) => self.stopped.push(why),
                Action::Close(port) => self.closed.push(port),
                Action::LocalPeer(peer, endpoint) => self.local_peers.push((peer, endpoint)),
            }
        }
        assert!(self.client.due().is_none_or(|due| due > self.now), "nothing is left undone");
    }

    /// Lets time pass; nothing comes.
    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(due) = self.client.due().filter(|due| *due <= end) {
            self.now = due.max(self.now);
            self.settle();
        }
        self.now = end;
    }

    fn wait_secs(&mut self, seconds: u64) {
        self.wait(Duration::from_secs(seconds));
    }

    /// The last thing sent.
    fn last(&self) -> &Out {
        self.sent.last().expect("something was sent")
    }

    fn receive(&mut self, port: Port, from: Endpoint4, octets: &[u8]) -> Result<(), Refused> {
        let result = self.client.receive(port, from, octets, self.now);
        self.settle();
        result
    }

    /// A right answer to what was sent last.
    fn answer(&mut self, mapped: Endpoint4) -> Result<(), Refused> {
        self.answer_of(PRIMARY, mapped)
    }

    fn answer_of(&mut self, server: Ipv4Addr, mapped: Endpoint4) -> Result<(), Refused> {
        let Out { from, to, .. } = *self.last();
        let octets = Answer::to(&self.last().asked(), server, mapped).octets();
        self.receive(from, to, &octets)
    }

    /// An answer that a test changes.
    fn forge(&mut self, change: impl FnOnce(&mut Answer)) -> Result<(), Refused> {
        let Out { from, to, .. } = *self.last();
        let mut answer = Answer::to(&self.last().asked(), PRIMARY, MAPPED);
        change(&mut answer);
        self.receive(from, to, &answer.octets())
    }

    /// Lets time pass until something is sent.
    fn until_sent(&mut self) {
        let before = self.sent.len();
        while self.sent.len() == before {
            self.now = self.client.due().expect("something is planned");
            self.settle();
        }
    }

    fn words(&self) -> String {
        self.client.status(self.now).to_string()
    }
}
