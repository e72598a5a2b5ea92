//! Packets by builder. Checksums are computed the slow way, from scratch, so that they judge the fast ones.

use std::net::{Ipv4Addr, Ipv6Addr};

/// A packet under construction.
#[derive(Clone, Debug)]
pub struct Build {
    source: Address,
    destination: Address,
    hops: u8,
    tos: u8,
    identification: Option<u32>,
    dont_fragment: bool,
    fragment: Option<(u16, bool)>,
    options: Vec<u8>,
    extensions: Vec<(u8, Vec<u8>)>,
    protocol: u8,
    /// Transport header and data; its checksum is filled in at `checksum_at` when the packet is finished.
    body: Vec<u8>,
    checksum_at: Option<usize>,
    keep_checksum: bool,
    length_error: i32,
}

#[derive(Clone, Copy, Debug)]
enum Address {
    V4(Ipv4Addr),
    V6(Ipv6Addr),
}

/// An IPv4 packet; DF is set, TTL 64.
pub fn v4(source: &str, destination: &str) -> Build {
    Build::new(Address::V4(source.parse().unwrap()), Address::V4(destination.parse().unwrap()))
}

/// An IPv6 packet; hop limit 64.
pub fn v6(source: &str, destination: &str) -> Build {
    Build::new(Address::V6(source.parse().unwrap()), Address::V6(destination.parse().unwrap()))
}

/// An ICMPv4 message: type, code, the four octets behind the checksum, and what follows.
pub fn icmp4(kind: u8, code: u8, rest: [u8; 4], data: &[u8]) -> Vec<u8> {
    icmp(kind, code, rest, data)
}

/// An ICMPv6 message.
pub fn icmp6(kind: u8, code: u8, rest: [u8; 4], data: &[u8]) -> Vec<u8> {
    icmp(kind, code, rest, data)
}

fn icmp(kind: u8, code: u8, rest: [u8; 4], data: &[u8]) -> Vec<u8> {
    [&[kind, code, 0, 0], &rest[..], data].concat()
}

impl Build {
    fn new(source: Address, destination: Address) -> Self {
        Self {
            source,
            destination,
            hops: 64,
            tos: 0,
            identification: None,
            dont_fragment: true,
            fragment: None,
            options: Vec::new(),
            extensions: Vec::new(),
            protocol: 59,
            body: Vec::new(),
            checksum_at: None,
            keep_checksum: false,
            length_error: 0,
        }
    }

    pub fn hops(mut self, hops: u8) -> Self {
        self.hops = hops;
        self
    }

    pub fn tos(mut self, tos: u8) -> Self {
        self.tos = tos;
        self
    }

    pub fn identification(mut self, identification: u32) -> Self {
        self.identification = Some(identification);
        self
    }

    /// Clears DF.
    pub fn may_fragment(mut self) -> Self {
        self.dont_fragment = false;
        self
    }

    /// Makes it a fragment (in IPv6: with a Fragment header, atomic if offset 0 and no more).
    pub fn fragment(mut self, identification: u32, offset: u16, more: bool) -> Self {
        self.fragment = Some((offset, more));
        self.identification = Some(identification);
        self.dont_fragment = false;
        self
    }

    /// IPv4 options, padded by the caller to a multiple of four.
    pub fn options(mut self, options: &[u8]) -> Self {
        self.options = options.to_vec();
        self
    }

    /// An IPv6 extension header: its number and its octets (the next header in the first one is filled in).
    pub fn extension(mut self, number: u8, octets: &[u8]) -> Self {
        self.extensions.push((number, octets.to_vec()));
        self
    }

    pub fn udp(mut self, source: u16, destination: u16, data: &[u8]) -> Self {
        self.protocol = 17;
        let length = (8 + data.len()) as u16;
        self.body =
            [&source.to_be_bytes()[..], &destination.to_be_bytes(), &length.to_be_bytes(), &[0, 0], data]
                .concat();
        self.checksum_at = Some(6);
        self
    }

    pub fn tcp(self, source: u16, destination: u16, flags: u8, data: &[u8]) -> Self {
        self.tcp_with(source, destination, flags, &[], data)
    }

    pub fn tcp_with(mut self, source: u16, destination: u16, flags: u8, options: &[u8], data: &[u8]) -> Self {
        self.protocol = 6;
        let offset = (((20 + options.len()) / 4) << 4) as u8;
        let head = [0, 0, 0, 1, 0, 0, 0, 2, offset, flags, 0x20, 0, 0, 0, 0, 0];
        self.body = [&source.to_be_bytes()[..], &destination.to_be_bytes(), &head, options, data].concat();
        self.checksum_at = Some(16);
        self
    }

    /// Echo request, in the family's own type.
    pub fn echo(self, identifier: u16, sequence: u16, data: &[u8]) -> Self {
        self.icmp_echo(8, 128, identifier, sequence, data)
    }

    /// Echo reply, in the family's own type.
    pub fn echo_reply(self, identifier: u16, sequence: u16, data: &[u8]) -> Self {
        self.icmp_echo(0, 129, identifier, sequence, data)
    }

    fn icmp_echo(self, four: u8, six: u8, identifier: u16, sequence: u16, data: &[u8]) -> Self {
        let kind = if matches!(self.source, Address::V4(_)) { four } else { six };
        let (a, b) = (identifier.to_be_bytes(), sequence.to_be_bytes());
        self.icmp(icmp(kind, 0, [a[0], a[1], b[0], b[1]], data))
    }

    /// Any ICMP message of the family.
    pub fn icmp(mut self, message: Vec<u8>) -> Self {
        self.protocol = if matches!(self.source, Address::V4(_)) { 1 } else { 58 };
        self.body = message;
        self.checksum_at = Some(2);
        self
    }

    /// Any protocol; `checksum_at` says the offset of a checksum with pseudo-header in `body`.
    pub fn protocol(mut self, number: u8, body: &[u8], checksum_at: Option<usize>) -> Self {
        self.protocol = number;
        self.body = body.to_vec();
        self.checksum_at = checksum_at;
        self
    }

    /// Leaves the transport checksum as it is in the body (zero, for a builder's own).
    pub fn without_checksum(mut self) -> Self {
        self.keep_checksum = true;
        self
    }

    /// Only octets `from..to` of the transport header and data, after the checksum over all of them was computed:
    /// the data of a fragment.
    pub fn part(mut self, from: usize, to: usize) -> Self {
        self.body = self.finished_body()[from..to].to_vec();
        self.keep_checksum = true;
        self
    }

    /// Adds to the length field, which then lies.
    pub fn lies_about_length(mut self, by: i32) -> Self {
        self.length_error = by;
        self
    }

    fn finished_body(&self) -> Vec<u8> {
        let mut body = self.body.clone();
        let (Some(at), false) = (self.checksum_at, self.keep_checksum) else { return body };
        if body.len() < at + 2 {
            return body;
        }
        body[at..at + 2].copy_from_slice(&[0, 0]);
        let mut covered = Vec::new();
        match (self.source, self.destination) {
            (Address::V4(_), Address::V4(_)) if self.protocol == 1 => {}
            (Address::V4(source), Address::V4(destination)) => {
                covered.extend(source.octets());
                covered.extend(destination.octets());
                covered.extend([0, self.protocol]);
                covered.extend((body.len() as u16).to_be_bytes());
            }
            (Address::V6(source), Address::V6(destination)) => {
                covered.extend(source.octets());
                covered.extend(destination.octets());
                covered.extend((body.len() as u32).to_be_bytes());
                covered.extend([0, 0, 0, self.protocol]);
            }
            _ => panic!("addresses of two families"),
        }
        covered.extend(&body);
        let mut sum = slow_checksum(&covered);
        if sum == 0 && self.protocol == 17 {
            sum = 0xffff;
        }
        body[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        body
    }

    /// The packet's octets.
    pub fn octets(&self) -> Vec<u8> {
        let body = self.finished_body();
        match (self.source, self.destination) {
            (Address::V4(source), Address::V4(destination)) => {
                let length = (20 + self.options.len() + body.len()) as i32 + self.length_error;
                let (offset, more) = self.fragment.unwrap_or((0, false));
                let flags = u16::from(self.dont_fragment) << 14 | u16::from(more) << 13 | (offset / 8);
                let mut header = vec![0x45 + (self.options.len() / 4) as u8, self.tos];
                header.extend((length as u16).to_be_bytes());
                header.extend((self.identification.unwrap_or(0) as u16).to_be_bytes());
                header.extend(flags.to_be_bytes());
                header.extend([self.hops, self.protocol, 0, 0]);
                header.extend(source.octets());
                header.extend(destination.octets());
                header.extend(&self.options);
                let sum = slow_checksum(&header);
                header[10..12].copy_from_slice(&sum.to_be_bytes());
                [header, body].concat()
            }
            (Address::V6(source), Address::V6(destination)) => {
                let mut chain: Vec<(u8, Vec<u8>)> = self.extensions.clone();
                if let Some((offset, more)) = self.fragment {
                    let mut header = vec![0, 0];
                    header.extend((offset | u16::from(more)).to_be_bytes());
                    header.extend(self.identification.unwrap_or(0).to_be_bytes());
                    chain.push((44, header));
                }
                let mut next = self.protocol;
                let mut behind = body;
                for (number, mut octets) in chain.into_iter().rev() {
                    octets[0] = next;
                    next = number;
                    behind = [octets, behind].concat();
                }
                let length = behind.len() as i32 + self.length_error;
                let mut header = vec![0x60 | self.tos >> 4, self.tos << 4, 0, 0];
                header.extend((length as u16).to_be_bytes());
                header.extend([next, self.hops]);
                header.extend(source.octets());
                header.extend(destination.octets());
                [header, behind].concat()
            }
            _ => panic!("addresses of two families"),
        }
    }
}

impl From<Build> for Vec<u8> {
    fn from(build: Build) -> Self {
        build.octets()
    }
}

fn slow_checksum(octets: &[u8]) -> u16 {
    let mut sum: u64 = 0;
    for pair in octets.chunks(2) {
        sum += u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Whether the transport checksum of a whole, unfragmented packet without options or extension headers is right.
pub fn checksum_is_right(packet: &[u8]) -> bool {
    let (pseudo, protocol, body) = if packet[0] >> 4 == 4 {
        let body = &packet[20..];
        let pseudo = [&packet[12..20], &[0, packet[9]], &(body.len() as u16).to_be_bytes()].concat();
        (if packet[9] == 1 { Vec::new() } else { pseudo }, packet[9], body)
    } else {
        let body = &packet[40..];
        let pseudo = [&packet[8..40], &(body.len() as u32).to_be_bytes(), &[0, 0, 0, packet[6]]].concat();
        (pseudo, packet[6], body)
    };
    match protocol {
        17 if body[6..8] == [0, 0] => packet[0] >> 4 == 4,
        1 | 6 | 17 | 58 => slow_checksum(&[&pseudo[..], body].concat()) == 0,
        _ => true,
    }
}
