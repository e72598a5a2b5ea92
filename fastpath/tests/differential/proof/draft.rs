//! A packet under construction, every field of it open. Checksums are computed the slow way.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Source and destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    V4(Ipv4Addr, Ipv4Addr),
    V6(Ipv6Addr, Ipv6Addr),
}

/// An IP packet with a header of any content.
#[derive(Clone, Debug)]
pub struct Draft {
    pub addresses: Addresses,
    pub tos: u8,
    pub hops: u8,
    pub label: u32,
    pub identification: u16,
    pub dont_fragment: bool,
    /// Offset in octets, and whether more follow.
    pub fragment: Option<(u16, bool)>,
    /// IPv4 options, a multiple of four octets.
    pub options: Vec<u8>,
    /// An IPv6 extension header: its number and its octets; the first octet is filled in.
    pub extension: Option<(u8, Vec<u8>)>,
    pub protocol: u8,
    pub body: Vec<u8>,
    /// The offset in `body` of a checksum that is to be made right.
    pub checksum_at: Option<usize>,
    /// What is added to the length field, which lies then.
    pub lie: i32,
    pub bad_header_checksum: bool,
}

impl Draft {
    pub fn new(addresses: Addresses) -> Self {
        Self {
            addresses,
            tos: 0,
            hops: 64,
            label: 0,
            identification: 0,
            dont_fragment: true,
            fragment: None,
            options: Vec::new(),
            extension: None,
            protocol: 59,
            body: Vec::new(),
            checksum_at: None,
            lie: 0,
            bad_header_checksum: false,
        }
    }

    pub fn is_v4(&self) -> bool {
        matches!(self.addresses, Addresses::V4(..))
    }

    pub fn udp(&mut self, source: u16, destination: u16, data: &[u8]) {
        let length = (8 + data.len()) as u16;
        let ports = [source.to_be_bytes(), destination.to_be_bytes(), length.to_be_bytes(), [0, 0]].concat();
        (self.protocol, self.body, self.checksum_at) = (17, [&ports[..], data].concat(), Some(6));
    }

    pub fn tcp(&mut self, source: u16, destination: u16, flags: u8, options: &[u8], data: &[u8]) {
        let offset = (((20 + options.len()) / 4) << 4) as u8;
        let tail = data.len() as u8;
        let head = [0x11, tail, 0x33, 0x44, 0x55, 0x66, tail, 0x88, offset, flags, 0x20, 0, 0, 0, 0, 0];
        let ports = [source.to_be_bytes(), destination.to_be_bytes()].concat();
        (self.protocol, self.checksum_at) = (6, Some(16));
        self.body = [&ports[..], &head, options, data].concat();
    }

    /// An ICMP message of the family.
    pub fn icmp(&mut self, kind: u8, code: u8, rest: u32, data: &[u8]) {
        self.protocol = if self.is_v4() { 1 } else { 58 };
        self.body = [&[kind, code, 0, 0], &rest.to_be_bytes()[..], data].concat();
        self.checksum_at = Some(2);
    }

    pub fn echo(&mut self, reply: bool, identifier: u16, data: &[u8]) {
        let kind = if self.is_v4() { [8, 0] } else { [128, 129] }[usize::from(reply)];
        self.icmp(kind, 0, u32::from(identifier) << 16 | 1, data);
    }

    /// The whole packet.
    pub fn octets(&self) -> Vec<u8> {
        let body = self.sealed();
        match self.addresses {
            Addresses::V4(source, destination) => self.ipv4(source, destination, &body),
            Addresses::V6(source, destination) => self.ipv6(source, destination, &body),
        }
    }

    fn ipv4(&self, source: Ipv4Addr, destination: Ipv4Addr, body: &[u8]) -> Vec<u8> {
        let header = 20 + self.options.len();
        let length = (header + body.len()) as i32 + self.lie;
        let (offset, more) = self.fragment.unwrap_or((0, false));
        let flags = u16::from(self.dont_fragment) << 14 | u16::from(more) << 13 | (offset / 8);
        let mut octets = vec![0x40 + (header / 4) as u8, self.tos];
        octets.extend((length as u16).to_be_bytes());
        octets.extend(self.identification.to_be_bytes());
        octets.extend(flags.to_be_bytes());
        octets.extend([self.hops, self.protocol, 0, 0]);
        octets.extend(source.octets());
        octets.extend(destination.octets());
        octets.extend(&self.options);
        let sum = !folded(sum(&octets)) ^ u16::from(self.bad_header_checksum) << 3;
        octets[10..12].copy_from_slice(&sum.to_be_bytes());
        octets.extend(body);
        octets
    }

    fn ipv6(&self, source: Ipv6Addr, destination: Ipv6Addr, body: &[u8]) -> Vec<u8> {
        let (mut next, mut behind) = (self.protocol, body.to_vec());
        if let Some((offset, more)) = self.fragment {
            let place = ((offset / 8 * 8) | u16::from(more)).to_be_bytes();
            let identification = u32::from(self.identification).to_be_bytes();
            behind = [&[next, 0][..], &place, &identification, &behind].concat();
            next = 44;
        }
        if let Some((number, octets)) = &self.extension {
            behind = [&octets[..], &behind].concat();
            behind[0] = next;
            next = *number;
        }
        let length = behind.len() as i32 + self.lie;
        let first = 0x6000_0000 | u32::from(self.tos) << 20 | self.label & 0xf_ffff;
        let mut octets = first.to_be_bytes().to_vec();
        octets.extend((length as u16).to_be_bytes());
        octets.extend([next, self.hops]);
        octets.extend(source.octets());
        octets.extend(destination.octets());
        octets.extend(&behind);
        octets
    }

    fn sealed(&self) -> Vec<u8> {
        let mut body = self.body.clone();
        let Some(at) = self.checksum_at.filter(|at| at + 2 <= body.len()) else { return body };
        body[at..at + 2].fill(0);
        let pseudo = match self.addresses {
            Addresses::V4(..) if self.protocol == 1 => 0,
            Addresses::V4(source, destination) => sum(&source.octets()) + sum(&destination.octets()),
            Addresses::V6(source, destination) => sum(&source.octets()) + sum(&destination.octets()),
        };
        let tail =
            if self.is_v4() && self.protocol == 1 { 0 } else { body.len() as u64 + u64::from(self.protocol) };
        let mut sum = !folded(pseudo + tail + sum(&body));
        if sum == 0 && self.protocol == 17 {
            sum = 0xffff;
        }
        body[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        body
    }
}

/// Sum of 16-bit words.
pub fn sum(octets: &[u8]) -> u64 {
    octets.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0))).sum()
}

pub fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
