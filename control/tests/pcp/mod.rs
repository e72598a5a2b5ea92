//! A PCP server, clause by clause of RFC 6887, RFC 7225, RFC 7753 and RFC 6886, with a simple NAT.

mod announce;
mod map;
mod message;
mod nat_pmp;
mod peer;
mod port_set;
mod prefix64;
mod recovery;
mod renumbering;
mod simple_nat;
mod threats;

use core::net::{IpAddr, SocketAddr};
use simple_nat::SimpleNat;
use sixway_control::Instant;
use sixway_control::pcp::{Arrival, AskedAt, Ignored, ResultCode, Server, Settings, Transmit};

const NOW: Instant = Instant::from_secs(1_000);
const ALICE: &str = "192.168.1.2";
const BOB: &str = "192.168.1.3";
const TCP: u8 = 6;
const UDP: u8 = 17;

/// A server with its NAT.
struct Bench {
    server: Server,
    nat: SimpleNat,
    now: Instant,
}

/// A request that is being written.
#[derive(Clone)]
struct Ask {
    client: &'static str,
    octets: Vec<u8>,
}

/// A response.
#[derive(Clone, Debug)]
struct Reply(Vec<u8>);

impl Bench {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings::default();
        change(&mut settings);
        Self { server: Server::new(settings, 0, 7, NOW), nat: SimpleNat::new(), now: NOW }
    }

    fn pass(&mut self, seconds: u64) {
        self.now = Instant(self.now.0 + seconds * 1_000_000_000);
        self.server.handle_timeout(&mut self.nat, self.now);
    }

    fn send(&mut self, client: &str, octets: &[u8]) -> Result<Vec<Reply>, Ignored> {
        let from = SocketAddr::new(client.parse().unwrap(), 40_000);
        let replies =
            self.server.handle(&Arrival { from, at: None, payload: octets }, &mut self.nat, self.now)?;
        for reply in &replies {
            assert!(reply.len() <= 1_100, "a response is at most 1100 octets");
        }
        Ok(replies.into_iter().map(Reply).collect())
    }

    /// Asks, and expects one answer.
    fn ask(&mut self, ask: &Ask) -> Reply {
        let mut replies = self.send(ask.client, &ask.octets).unwrap();
        assert_eq!(replies.len(), 1);
        let reply = replies.remove(0);
        assert_eq!(reply.0[0], 2);
        assert_eq!(reply.0[1], ask.octets[1] | 0x80, "the opcode with the R bit");
        assert_eq!(reply.0[2], 0);
        assert_eq!(reply.0.len() % 4, 0);
        reply
    }

    /// Asks at this interface and address of the server.
    fn ask_at(&mut self, ask: &Ask, at: &AskedAt) -> Reply {
        let from = SocketAddr::new(ask.client.parse().unwrap(), 40_000);
        let arrival = Arrival { from, at: Some(at), payload: &ask.octets };
        let mut replies = self.server.handle(&arrival, &mut self.nat, self.now).unwrap();
        Reply(replies.remove(0))
    }

    /// All messages without a request until this many milliseconds have passed.
    fn messages(&mut self, milliseconds: u64) -> Vec<Transmit> {
        let (mut all, end) = (Vec::new(), Instant(self.now.0 + milliseconds * 1_000_000));
        while let Some(next) = self.server.poll_timeout().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.server.handle_timeout(&mut self.nat, self.now);
            while let Some(sent) = self.server.poll_transmit(self.now) {
                all.push(sent);
            }
        }
        all
    }

    fn result(&mut self, ask: &Ask) -> ResultCode {
        self.ask(ask).result()
    }
}

impl Ask {
    fn header(client: &'static str, opcode: u8, lifetime: u32) -> Self {
        let mut octets = vec![2, opcode, 0, 0];
        octets.extend(lifetime.to_be_bytes());
        octets.extend(mapped(client));
        Self { client, octets }
    }

    fn announce(client: &'static str) -> Self {
        Self::header(client, 0, 0)
    }

    /// MAP of an hour for a port, with a nonce of its own.
    fn map(client: &'static str, protocol: u8, port: u16) -> Self {
        let mut ask = Self::header(client, 1, 3_600);
        ask.octets.extend([client.as_bytes()[client.len() - 1]; 12]);
        ask.octets.extend([protocol, 0, 0, 0]);
        ask.octets.extend(port.to_be_bytes());
        ask.octets.extend([0; 2]);
        ask.octets.extend(mapped("0.0.0.0"));
        ask
    }

    /// PEER of an hour.
    fn peer(client: &'static str, protocol: u8, port: u16, (remote, remote_port): (&str, u16)) -> Self {
        let mut ask = Self::map(client, protocol, port);
        ask.octets[1] = 2;
        ask.octets.extend(remote_port.to_be_bytes());
        ask.octets.extend([0; 2]);
        ask.octets.extend(mapped(remote));
        ask
    }

    fn lifetime(mut self, seconds: u32) -> Self {
        self.octets[4..8].copy_from_slice(&seconds.to_be_bytes());
        self
    }

    fn nonce(mut self, nonce: u8) -> Self {
        self.octets[24..36].fill(nonce);
        self
    }

    fn suggest(mut self, address: &str, port: u16) -> Self {
        self.octets[42..44].copy_from_slice(&port.to_be_bytes());
        self.octets[44..60].copy_from_slice(&mapped(address));
        self
    }

    fn option(mut self, code: u8, data: &[u8]) -> Self {
        self.octets.extend([code, 0]);
        self.octets.extend((data.len() as u16).to_be_bytes());
        self.octets.extend(data);
        self.octets.resize(self.octets.len().next_multiple_of(4), 0);
        self
    }

    fn third_party(self, host: &str) -> Self {
        self.option(1, &mapped(host))
    }

    fn prefer_failure(self) -> Self {
        self.option(2, &[])
    }

    fn filter(self, remote: &str, length: u8, port: u16) -> Self {
        let [high, low] = port.to_be_bytes();
        let mut data = vec![0, length, high, low];
        data.extend(mapped(remote));
        self.option(3, &data)
    }

    fn port_set(self, size: u16) -> Self {
        let [high, low] = size.to_be_bytes();
        let (a, b) = (self.octets[40], self.octets[41]);
        self.option(130, &[high, low, a, b, 0])
    }
}

impl Reply {
    fn result(&self) -> ResultCode {
        ResultCode::ALL[usize::from(self.0[3])]
    }

    fn lifetime(&self) -> u32 {
        u32::from_be_bytes(self.0[4..8].try_into().unwrap())
    }

    fn epoch(&self) -> u32 {
        u32::from_be_bytes(self.0[8..12].try_into().unwrap())
    }

    fn internal_port(&self) -> u16 {
        u16::from_be_bytes([self.0[40], self.0[41]])
    }

    fn external(&self) -> (IpAddr, u16) {
        let address = <[u8; 16]>::try_from(&self.0[44..60]).unwrap();
        let address = core::net::Ipv6Addr::from(address).to_canonical();
        (address, u16::from_be_bytes([self.0[42], self.0[43]]))
    }

    fn port(&self) -> u16 {
        assert_eq!(self.result(), ResultCode::Success);
        assert_eq!(self.external().0, SimpleNat::ADDRESS);
        self.external().1
    }

    /// The options: codes and contents.
    fn options(&self, from: usize) -> Vec<(u8, Vec<u8>)> {
        let (mut rest, mut all) = (&self.0[from..], Vec::new());
        while !rest.is_empty() {
            let length = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
            all.push((rest[0], rest[4..4 + length].to_vec()));
            rest = &rest[4 + length.next_multiple_of(4)..];
        }
        all
    }

    fn map_options(&self) -> Vec<(u8, Vec<u8>)> {
        self.options(60)
    }
}

fn mapped(address: &str) -> [u8; 16] {
    match address.parse().unwrap() {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}
