//! A Teredo client of another implementation, packet by packet. It shares no code with ours: what it sends is written here in octets, as RFC 4380 §5.1.1
//! and RFC 6081 §4 draw it, and as a public capture of the client of Windows has it.

use crate::datagrams::socket;
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::topology::Network;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

/// The Teredo server of these networks.
pub const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 1), 3_544);
/// Its second address.
pub const SECOND: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 2), 3_544);
/// RFC 4861 §2.3.
const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);

/// A client.
pub struct Peer {
    socket: UdpSocket,
}

/// A datagram that came.
#[derive(Clone, Debug)]
pub struct Heard {
    pub from: SocketAddrV4,
    /// The nonce of the authentication, if it had one.
    pub nonce: Option<[u8; 8]>,
    /// The endpoint of the origin indication.
    pub origin: Option<SocketAddrV4>,
    pub packet: Vec<u8>,
    pub trailers: Vec<u8>,
}

impl Heard {
    pub fn source(&self) -> Ipv6Addr {
        address_at(&self.packet, 8)
    }

    pub fn destination(&self) -> Ipv6Addr {
        address_at(&self.packet, 24)
    }

    pub fn is_bubble(&self) -> bool {
        self.packet.len() == 40 && self.packet[6] == 59
    }

    /// The first octet of an ICMPv6 message.
    pub fn icmpv6(&self) -> Option<u8> {
        (self.packet[6] == 58).then(|| self.packet.get(40).copied()).flatten()
    }

    /// The value of the first trailer of a type.
    pub fn trailer(&self, kind: u8) -> Option<&[u8]> {
        let mut rest = &self.trailers[..];
        while let [found, length, more @ ..] = rest {
            let (value, behind) = more.split_at_checked(usize::from(*length))?;
            if *found == kind {
                return Some(value);
            }
            rest = behind;
        }
        None
    }

    fn read(from: SocketAddr, octets: &[u8]) -> Option<Self> {
        let SocketAddr::V4(from) = from else { return None };
        let (mut nonce, mut origin, mut rest) = (None, None, octets);
        if let [0, 1, client, value, more @ ..] = rest {
            let behind = more.get(usize::from(*client) + usize::from(*value)..)?;
            nonce = behind.first_chunk::<8>().copied();
            rest = behind.get(9..)?;
        }
        if let [0, 0, high, low, a, b, c, d, more @ ..] = rest {
            let port = u16::from_be_bytes([!high, !low]);
            origin = Some(SocketAddrV4::new(Ipv4Addr::new(!a, !b, !c, !d), port));
            rest = more;
        }
        let [0x60, _, _, _, high, low, ..] = rest else { return None };
        let length = 40 + usize::from(u16::from_be_bytes([*high, *low]));
        let (packet, trailers) = rest.split_at_checked(length)?;
        Some(Self { from, nonce, origin, packet: packet.to_vec(), trailers: trailers.to_vec() })
    }
}

fn address_at(packet: &[u8], at: usize) -> Ipv6Addr {
    let octets = packet.get(at..at + 16).and_then(|octets| octets.first_chunk::<16>());
    octets.map_or(Ipv6Addr::UNSPECIFIED, |octets| Ipv6Addr::from(*octets))
}

impl Peer {
    /// On a host, at this local address and port.
    pub fn on(network: &Network, host: &str, local: &str) -> Result<Self> {
        let socket = socket(network.host(host)?, local)?;
        socket
            .set_read_timeout(Some(Duration::from_millis(200)))
            .asking(|| "setting a timeout".to_owned())?;
        Ok(Self { socket })
    }

    pub fn send(&self, to: SocketAddrV4, parts: &[&[u8]]) -> Result<()> {
        self.socket.send_to(&parts.concat(), to).asking(|| format!("sending to {to}")).map(drop)
    }

    /// The first datagram of this kind; `None`: none came in this time.
    pub fn hears(&self, time: Duration, is_it: impl Fn(&Heard) -> bool) -> Result<Option<Heard>> {
        let start = Instant::now();
        let mut octets = [0; 2_048];
        while start.elapsed() < time {
            sixway_lab::interrupt::check()?;
            let Ok((length, from)) = self.socket.recv_from(&mut octets) else { continue };
            if let Some(heard) = Heard::read(from, &octets[..length]).filter(&is_it) {
                return Ok(Some(heard));
            }
        }
        Ok(None)
    }

    /// The same, which has to come.
    pub fn must_hear(&self, what: &str, is_it: impl Fn(&Heard) -> bool) -> Result<Heard> {
        let heard = self.hears(Duration::from_secs(10), is_it)?;
        heard.ok_or_else(|| Failure::Unexpected(format!("did not hear {what}")))
    }

    /// Where the NATs map this client to, by an answer of the server; its Teredo address with these flags.
    pub fn qualifies(&self, flags: u16) -> Result<Ipv6Addr> {
        let nonce = *b"a nonce.";
        self.send(SERVER, &[&authentication(nonce), &solicitation(0)])?;
        let heard = self.must_hear("an advertisement", |heard| heard.nonce == Some(nonce))?;
        let mapped = heard.origin.ok_or_else(|| Failure::Unexpected(format!("no origin in {heard:?}")))?;
        Ok(address(flags, mapped))
    }
}

/// A client's address: that of the server, flags, and the mapped port and address inverted (RFC 4380 §4).
pub fn address(flags: u16, mapped: SocketAddrV4) -> Ipv6Addr {
    let [a, b, c, d] = mapped.ip().octets().map(|octet| !octet);
    let pair = |high, low| u16::from_be_bytes([high, low]);
    Ipv6Addr::new(0x2001, 0, 0xc633, 0x6401, flags, !mapped.port(), pair(a, b), pair(c, d))
}

/// An authentication with a nonce alone, as Windows sends it.
pub fn authentication(nonce: [u8; 8]) -> Vec<u8> {
    [&[0, 1, 0, 0][..], &nonce, &[0]].concat()
}

/// A packet.
pub fn packet(next: u8, hops: u8, (source, destination): (Ipv6Addr, Ipv6Addr), payload: &[u8]) -> Vec<u8> {
    let [high, low] = (payload.len() as u16).to_be_bytes();
    let head = [0x60, 0, 0, 0, high, low, next, hops];
    [&head[..], &source.octets(), &destination.octets(), payload].concat()
}

/// A bubble with the hop limit that Windows gives it.
pub fn bubble(source: Ipv6Addr, destination: Ipv6Addr) -> Vec<u8> {
    packet(59, 21, (source, destination), &[])
}

/// A nonce behind a bubble (RFC 6081 §4.2).
pub fn nonce_trailer(nonce: [u8; 4]) -> Vec<u8> {
    [&[1, 4][..], &nonce].concat()
}

/// An ICMPv6 message with its checksum.
fn message(hops: u8, ends: (Ipv6Addr, Ipv6Addr), mut octets: Vec<u8>) -> Vec<u8> {
    let pseudo =
        [&ends.0.octets()[..], &ends.1.octets(), &(octets.len() as u32).to_be_bytes(), &[0, 0, 0, 58]];
    let all = [pseudo.concat(), octets.clone()].concat();
    let words =
        all.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    octets[2..4].copy_from_slice(&checksum.to_be_bytes());
    packet(58, hops, ends, &octets)
}

/// A solicitation as the client of Windows sends it: from fe80::flags:ffff:ffff:fffd, with an option of 16 octets for a link-layer address.
pub fn solicitation(flags: u16) -> Vec<u8> {
    let source = Ipv6Addr::new(0xfe80, 0, 0, 0, flags, 0xffff, 0xffff, 0xfffd);
    let option = [&[1, 2][..], &[0; 14]].concat();
    message(255, (source, ALL_ROUTERS), [&[133, 0, 0, 0, 0, 0, 0, 0][..], &option].concat())
}

/// An echo request with four octets of data, as Windows tests a native host.
pub fn echo(source: Ipv6Addr, destination: Ipv6Addr, number: u8) -> Vec<u8> {
    let octets = vec![128, 0, 0, 0, 0x11, 0x22, 0, number, 0xde, 0xad, 0xbe, number];
    message(21, (source, destination), octets)
}

/// Whether a datagram has the reply.
pub fn is_reply(heard: &Heard, number: u8) -> bool {
    heard.icmpv6() == Some(129) && heard.packet[44..] == [0x11, 0x22, 0, number, 0xde, 0xad, 0xbe, number]
}

/// An advertisement with the prefix of the server.
pub fn advertisement(to: Ipv6Addr) -> Vec<u8> {
    let source = Ipv6Addr::new(0xfe80, 0, 0, 0, 0x8000, 0xf227, 0x39cc, 0x9bfe);
    let prefix = Ipv6Addr::new(0x2001, 0, 0xc633, 0x6401, 0, 0, 0, 0).octets();
    let head = [134, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let option = [&[3, 4, 64, 0x40][..], &[0xff; 8], &[0; 4], &prefix].concat();
    message(255, (source, to), [&head[..], &option].concat())
}
