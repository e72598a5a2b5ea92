//! Packets for examples, made the slow way.

use std::net::{Ipv4Addr, Ipv6Addr};

/// The fields of an IP header that examples differ in.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    pub hops: u8,
    pub class: u8,
    pub dont_fragment: bool,
}

impl Default for Head {
    fn default() -> Self {
        Self { hops: 64, class: 0, dont_fragment: true }
    }
}

/// The one's complement sum of octets, not inverted.
fn sum(octets: &[u8]) -> u32 {
    let words =
        octets.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}

fn checksum(octets: &[u8]) -> [u8; 2] {
    (!(sum(octets) as u16)).to_be_bytes()
}

/// What follows the IP header, its checksum still to be made.
#[derive(Clone, Debug)]
pub enum Body {
    Udp(Vec<u8>),
    /// A UDP datagram without checksum.
    Unchecked(Vec<u8>),
    /// Flags and data.
    Tcp(u8, Vec<u8>),
    /// A SYN with these options, whole words.
    Syn(Vec<u8>),
    /// Echo request or reply.
    Echo(bool, Vec<u8>),
    /// An ICMP message of another kind, by its numbers in IPv4 and IPv6.
    Icmp(u8, u8),
    /// Another protocol.
    Other(u8, Vec<u8>),
}

impl Body {
    /// A SYN with an MSS option, and others behind it.
    pub fn syn(mss: u16) -> Self {
        let [high, low] = mss.to_be_bytes();
        Self::Syn([&[2, 4, high, low][..], &[4, 2, 1, 1]].concat())
    }

    fn protocol(&self, six: bool) -> u8 {
        match self {
            Self::Udp(_) | Self::Unchecked(_) => 17,
            Self::Tcp(..) | Self::Syn(..) => 6,
            Self::Echo(..) | Self::Icmp(..) => {
                if six {
                    58
                } else {
                    1
                }
            }
            Self::Other(protocol, _) => *protocol,
        }
    }

    fn octets(&self, six: bool, pseudo: &[u8]) -> Vec<u8> {
        let (mut octets, at) = match self {
            Self::Udp(data) | Self::Unchecked(data) => {
                let length = (8 + data.len()) as u16;
                ([&[0x27, 0x10, 0x27, 0x11][..], &length.to_be_bytes(), &[0, 0], data].concat(), 6)
            }
            Self::Tcp(flags, data) => {
                let head = [0x27, 0x10, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8, 0x50, *flags, 9, 9, 0, 0, 0, 0];
                ([&head[..], data].concat(), 16)
            }
            Self::Syn(options) => {
                let words = 0x50 + ((options.len() as u8 / 4) << 4);
                let head = [0x27, 0x10, 0, 80, 1, 2, 3, 4, 0, 0, 0, 0, words, 2, 9, 9, 0, 0, 0, 0];
                ([&head[..], options].concat(), 16)
            }
            Self::Echo(request, data) => {
                let kind = match (six, request) {
                    (true, true) => 128,
                    (true, false) => 129,
                    (false, true) => 8,
                    (false, false) => 0,
                };
                ([&[kind, 0, 0, 0, 0x12, 0x34, 0, 1][..], data].concat(), 2)
            }
            Self::Icmp(four, kind) => ([if six { *kind } else { *four }, 0, 0, 0, 0, 0, 0, 0].to_vec(), 2),
            Self::Other(_, data) => return data.clone(),
        };
        if let Self::Unchecked(_) = self {
            return octets;
        }
        let is_plain_icmp = !six && matches!(self, Self::Echo(..) | Self::Icmp(..));
        let tail = [0, self.protocol(six), (octets.len() >> 8) as u8, octets.len() as u8];
        let covered = if is_plain_icmp { octets.clone() } else { [pseudo, &tail, &octets].concat() };
        let found = checksum(&covered);
        let found = if found == [0, 0] && at == 6 { [0xff, 0xff] } else { found };
        octets[at..at + 2].copy_from_slice(&found);
        octets
    }
}

/// An IPv4 packet.
pub fn ipv4(source: &str, destination: &str, head: Head, body: &Body) -> Vec<u8> {
    let (source, destination): (Ipv4Addr, Ipv4Addr) = (source.parse().unwrap(), destination.parse().unwrap());
    let addresses = [source.octets(), destination.octets()].concat();
    let body_octets = body.octets(false, &addresses);
    let length = ((20 + body_octets.len()) as u16).to_be_bytes();
    let flags = if head.dont_fragment { 0x40 } else { 0 };
    let front =
        [0x45, head.class, length[0], length[1], 0, 0, flags, 0, head.hops, body.protocol(false), 0, 0];
    let mut packet = [&front[..], &addresses].concat();
    let found = checksum(&packet);
    packet[10..12].copy_from_slice(&found);
    [packet, body_octets].concat()
}

/// An IPv6 packet.
pub fn ipv6(source: &str, destination: &str, head: Head, body: &Body) -> Vec<u8> {
    let (source, destination): (Ipv6Addr, Ipv6Addr) = (source.parse().unwrap(), destination.parse().unwrap());
    let addresses = [source.octets(), destination.octets()].concat();
    let body_octets = body.octets(true, &addresses);
    let length = (body_octets.len() as u16).to_be_bytes();
    let front =
        [0x60 | head.class >> 4, head.class << 4, 0, 0, length[0], length[1], body.protocol(true), head.hops];
    [&front[..], &addresses, &body_octets].concat()
}

/// An IPv6 packet in an IPv4 packet.
pub fn in_tunnel(source: &str, destination: &str, head: Head, inner: Vec<u8>) -> Vec<u8> {
    ipv4(source, destination, head, &Body::Other(41, inner))
}

/// The packet without what no example can foresee: the identification of an IPv4 packet that may be fragmented. Its header checksum
/// must be right.
pub fn settled(mut packet: Vec<u8>) -> Vec<u8> {
    if packet[0] == 0x45 {
        assert_eq!(sum(&packet[..20]), 0xffff, "IPv4 header checksum of {packet:02x?}");
        packet[4..6].fill(0);
        packet[10..12].fill(0);
    }
    packet
}
