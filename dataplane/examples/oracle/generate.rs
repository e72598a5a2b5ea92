//! Packets of every kind that a translator may meet, from a seed: all protocols, lengths, options, extension headers,
//! fragments, ICMP of every type with intact, truncated and lying quotes.

use super::configuration::{OWN4, OWN6, Setting};
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Makes packets.
pub struct Generator {
    state: u64,
    prefix: Option<Rfc6052>,
    hosts4: Vec<Ipv4Addr>,
    hosts6: Vec<Ipv6Addr>,
}

/// Addresses that mean trouble.
const STRANGE4: [&str; 9] = [
    "0.0.0.0",
    "127.0.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "10.1.2.3",
    "192.168.0.1",
    "240.0.0.1",
    "192.88.99.1",
    OWN4,
];
const STRANGE6: [&str; 8] =
    ["::", "::1", "ff02::1", "fe80::1", "2001:db8:dead::1", "fd00::1", "::ffff:1.2.3.4", OWN6];

impl Generator {
    pub fn new(seed: u64, setting: &Setting) -> Self {
        let prefix: Option<Rfc6052> =
            setting.prefix.map(|text| Rfc6052::new(text.parse().unwrap(), true).unwrap());
        let mut hosts4 =
            vec![Ipv4Addr::new(8, 8, 8, 8), Ipv4Addr::new(93, 184, 216, 34), Ipv4Addr::new(203, 0, 113, 2)];
        let mut hosts6 = Vec::new();
        for (four, six) in &setting.eam {
            let four: sixway_wire::Prefix4 = four.parse().unwrap();
            let six: sixway_wire::Prefix6 = six.parse().unwrap();
            for n in [0u32, 1, 3, 200] {
                hosts4.push(Ipv4Addr::from_bits(four.address().to_bits() | n & !four.mask()));
                let suffix = u128::from(n) << (128 - 32 + u32::from(four.length()) - u32::from(six.length()));
                hosts6.push(Ipv6Addr::from_bits(six.address().to_bits() | suffix & !six.mask()));
                hosts6.push(Ipv6Addr::from_bits(six.address().to_bits() | u128::from(n) & !six.mask()));
            }
        }
        let mut generator = Self {
            state: (seed ^ 0x6a09_e667_f3bc_c908).wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(29),
            prefix,
            hosts4,
            hosts6,
        };
        if let Some(prefix) = generator.prefix {
            let embedded: Vec<Ipv6Addr> =
                generator.hosts4.iter().map(|host| prefix.embed_any(*host)).collect();
            generator.hosts6.extend(embedded);
        }
        generator
    }

    fn random(&mut self) -> u64 {
        // splitmix64
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.random() % bound.max(1) as u64) as usize
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn octets(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.random() as u8).collect()
    }

    fn address4(&mut self) -> Ipv4Addr {
        if self.chance(40) {
            return self.pick(&STRANGE4).parse().unwrap();
        }
        let hosts = std::mem::take(&mut self.hosts4);
        let host = self.pick(&hosts);
        self.hosts4 = hosts;
        host
    }

    fn address6(&mut self) -> Ipv6Addr {
        if self.chance(40) {
            return self.pick(&STRANGE6).parse().unwrap();
        }
        if let (Some(prefix), true) = (self.prefix, self.chance(30)) {
            let four = self.address4();
            let dirt = u128::from(self.random()) & self.random() as u128;
            let bits = prefix.embed_any(four).to_bits() | dirt & !prefix.prefix().mask();
            return Ipv6Addr::from_bits(bits);
        }
        let hosts = std::mem::take(&mut self.hosts6);
        let host = self.pick(&hosts);
        self.hosts6 = hosts;
        host
    }

    /// One packet.
    pub fn next_packet(&mut self) -> Vec<u8> {
        let mut packet = if self.chance(2) { self.packet4(0) } else { self.packet6(0) };
        match self.below(60) {
            0 => packet.truncate(packet.len() - self.below(packet.len().min(60))),
            1 => {
                let more = 1 + self.below(9);
                packet.extend(self.octets(more));
            }
            2 => {
                let at = self.below(packet.len());
                packet[at] ^= 1 << self.below(8);
            }
            _ => {}
        }
        if packet.is_empty() { vec![0x45] } else { packet }
    }

    fn size(&mut self) -> usize {
        match self.below(10) {
            0..=4 => self.below(64),
            5 | 6 => self.below(600),
            7 => 1_150 + self.below(200),
            8 => 1_400 + self.below(120),
            _ => self.below(3_000),
        }
    }

    fn packet4(&mut self, depth: usize) -> Vec<u8> {
        let (source, destination) = (self.address4(), self.address4());
        let protocol = self.protocol(true);
        let pseudo = |length: usize| {
            let mut pseudo = [source.octets(), destination.octets()].concat();
            pseudo.extend([0, protocol]);
            pseudo.extend((length as u16).to_be_bytes());
            pseudo
        };
        let mut body = self.body(protocol, true, depth, &pseudo);
        let (mut flags, mut identification) =
            (if self.chance(3) { 0u16 } else { 0x4000 }, self.random() as u16);
        if self.chance(8) {
            let offset = if self.chance(2) { 0 } else { self.below(1_000) as u16 };
            flags = offset | if self.chance(2) || offset == 0 { 0x2000 } else { 0 };
            if self.chance(6) {
                flags |= 0x4000;
            }
            if flags & 0x2000 != 0 {
                body.truncate(body.len() & !7);
            }
            identification |= 1;
        }
        let options = self.options();
        let length = 20 + options.len() + body.len();
        let mut header = vec![0x45 + (options.len() / 4) as u8, self.random() as u8];
        header.extend((length as u16).to_be_bytes());
        header.extend(identification.to_be_bytes());
        header.extend(flags.to_be_bytes());
        let ttl = self.hops();
        header.extend([ttl, protocol, 0, 0]);
        header.extend(source.octets());
        header.extend(destination.octets());
        header.extend(&options);
        let sum = checksum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        [header, body].concat()
    }

    fn packet6(&mut self, depth: usize) -> Vec<u8> {
        let (source, destination) = (self.address6(), self.address6());
        let protocol = self.protocol(false);
        let pseudo = |length: usize| {
            let mut pseudo = [source.octets(), destination.octets()].concat();
            pseudo.extend((length as u32).to_be_bytes());
            pseudo.extend([0, 0, 0, protocol]);
            pseudo
        };
        let mut body = self.body(protocol, false, depth, &pseudo);
        let mut next = protocol;
        if self.chance(5) {
            if self.chance(2) {
                let offset = if self.chance(2) { 0 } else { (self.below(1_000) * 8) as u16 };
                let more = self.chance(2) || (offset == 0 && !self.chance(3));
                if more {
                    body.truncate(body.len() & !7);
                }
                let reserved = if self.chance(10) { 6 } else { 0 };
                let mut header = vec![next, 0];
                header.extend((offset | u16::from(more) | reserved).to_be_bytes());
                header.extend(self.octets(4));
                body = [header, body].concat();
                next = 44;
            }
            for _ in 0..self.below(3) {
                let kind = self.pick(&[0u8, 60, 60, 43, 51, 135]);
                let units = self.below(3);
                let mut header = vec![next, units as u8];
                header.extend(vec![0; 6 + units * 8]);
                header[2] = 1;
                header[3] = (4 + units * 8) as u8;
                if kind == 43 {
                    header[3] = u8::from(self.chance(2));
                }
                if self.chance(30) {
                    header[1] = 200;
                }
                body = [header, body].concat();
                next = kind;
            }
        }
        let class = self.random() as u8;
        let mut header = vec![0x60 | class >> 4, class << 4 | (self.random() as u8 & 15)];
        header.extend(self.octets(2));
        header.extend((body.len() as u16).to_be_bytes());
        let hops = self.hops();
        header.extend([next, hops]);
        header.extend(source.octets());
        header.extend(destination.octets());
        [header, body].concat()
    }

    fn hops(&mut self) -> u8 {
        if self.chance(25) { self.below(3) as u8 } else { 2 + self.below(253) as u8 }
    }

    fn options(&mut self) -> Vec<u8> {
        match self.below(24) {
            0 => vec![1, 1, 1, 0],
            1 => vec![131, 7, 4, 1, 2, 3, 4, 0],
            2 => vec![137, 7, 8, 1, 2, 3, 4, 0],
            3 => vec![7, 7, 4, 0, 0, 0, 0, 0],
            4 => vec![68, 0, 1, 1],
            5 => vec![148, 4, 0, 0],
            6 => {
                let random = self.below(10) * 4;
                self.octets(random)
            }
            _ => vec![],
        }
    }

    fn protocol(&mut self, v4: bool) -> u8 {
        match self.below(20) {
            0..=4 => 17,
            5..=8 => 6,
            9..=14 => {
                if v4 {
                    1
                } else {
                    58
                }
            }
            15 => 132,
            16 => self.pick(&[33, 136]),
            17 => self.pick(&[50, 47, 51, 4, 41, 89]),
            18 => self.pick(&[0, 2, 43, 44, 58, 60, 1, 59]),
            _ => self.random() as u8,
        }
    }

    fn body(&mut self, protocol: u8, v4: bool, depth: usize, pseudo: &dyn Fn(usize) -> Vec<u8>) -> Vec<u8> {
        let size = self.size();
        let mut body = match protocol {
            17 => {
                let mut body = self.octets(8 + size);
                let length = (body.len() as u16).to_be_bytes();
                body[4..6].copy_from_slice(&length);
                if self.chance(40) {
                    body[4] ^= 1 << self.below(8);
                }
                body
            }
            6 => {
                let mut body = self.octets(20 + size);
                body[12] = 0x50;
                body
            }
            1 | 58 if (protocol == 1) == v4 => self.icmp(v4, depth, size),
            132 => self.octets(12 + size),
            33 => self.octets(16 + size),
            136 => self.octets(8 + size),
            _ => self.octets(size),
        };
        let at = match protocol {
            6 => 16,
            17 | 33 | 136 => 6,
            1 | 58 => 2,
            _ => return body,
        };
        if body.len() >= at + 2 && !self.chance(30) {
            body[at..at + 2].copy_from_slice(&[0, 0]);
            let covered =
                if protocol == 1 { body.clone() } else { [pseudo(body.len()), body.clone()].concat() };
            let mut sum = checksum(&covered);
            if sum == 0 && matches!(protocol, 17 | 136) {
                sum = 0xffff;
            }
            body[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        }
        if protocol == 17 && self.chance(12) {
            body[6..8].copy_from_slice(&[0, 0]);
        }
        if self.chance(60) {
            body.truncate(self.below(24));
        }
        body
    }

    fn icmp(&mut self, v4: bool, depth: usize, size: usize) -> Vec<u8> {
        let queries: &[u8] = if v4 { &[8, 0] } else { &[128, 129] };
        if depth > 1 || self.chance(3) {
            let mut message = self.octets(8 + size);
            message[0] = self.pick(queries);
            message[1] = 0;
            return message;
        }
        let kind = match (v4, self.below(10)) {
            (_, 0) => self.random() as u8,
            (true, 1) => self.pick(&[4, 5, 9, 10, 13, 14, 15, 16, 17, 18]),
            (false, 1) => self.pick(&[130, 131, 132, 133, 134, 135, 136, 137, 143]),
            (true, 2..=5) => 3,
            (true, 6 | 7) => 11,
            (true, _) => 12,
            (false, 2 | 3) => 1,
            (false, 4 | 5) => 2,
            (false, 6 | 7) => 3,
            (false, _) => 4,
        };
        let code = match self.below(8) {
            0 => self.random() as u8,
            1 if v4 && kind == 3 => 4,
            2 if v4 && kind == 3 => 4,
            _ => self.below(if v4 && kind == 3 { 17 } else { 4 }) as u8,
        };
        let mut message = vec![kind, code, 0, 0];
        message.extend(self.rest(v4, kind));
        let mut quote = if v4 { self.packet4(depth + 1) } else { self.packet6(depth + 1) };
        if self.chance(2) && depth == 0 {
            self.answer_quote(&mut quote, v4);
        }
        match self.below(6) {
            0 => quote.truncate(self.below(80)),
            1 => quote.truncate(28),
            2 => quote.truncate(128),
            3 => quote.truncate(548),
            _ => quote.truncate(1_232),
        }
        message.extend(&quote);
        if self.chance(6) {
            self.extend(&mut message, v4, quote.len());
        }
        message
    }

    /// The four octets behind the checksum: pointer, MTU or nothing.
    fn rest(&mut self, v4: bool, kind: u8) -> Vec<u8> {
        if self.chance(10) {
            return self.octets(4);
        }
        match (v4, kind) {
            (true, 3) => {
                let mtu = self.pick(&[0u16, 1, 20, 68, 576, 1_260, 1_280, 1_400, 1_480, 1_500, 9_000]);
                [&[0, 0][..], &mtu.to_be_bytes()].concat()
            }
            (true, 12) => vec![self.below(24) as u8, 0, 0, 0],
            (false, 2) => self
                .pick(&[0u32, 19, 28, 87, 88, 96, 1_280, 1_300, 1_500, 9_000, 70_000])
                .to_be_bytes()
                .to_vec(),
            (false, 4) => (self.below(48) as u32).to_be_bytes().to_vec(),
            _ => vec![0; 4],
        }
    }

    /// Makes the quoted packet one that an address of the table sent, so that both of its addresses have mappings.
    fn answer_quote(&mut self, quote: &mut [u8], v4: bool) {
        if v4 && quote.len() >= 20 {
            let (a, b) = (self.address4(), self.address4());
            quote[12..16].copy_from_slice(&a.octets());
            quote[16..20].copy_from_slice(&b.octets());
            quote[10..12].copy_from_slice(&[0, 0]);
            let end = usize::from(quote[0] & 15) * 4;
            let sum = checksum(&quote[..end.min(quote.len())]);
            quote[10..12].copy_from_slice(&sum.to_be_bytes());
        }
    }

    /// An extension of RFC 4884 behind the quote, with a right or a lying length attribute.
    fn extend(&mut self, message: &mut Vec<u8>, v4: bool, quoted: usize) {
        let unit = if v4 { 4 } else { 8 };
        let padded = quoted.next_multiple_of(unit).max(128).min(255 * unit);
        message.resize(8 + padded, 0);
        let mut extension = vec![0x20, 0, 0, 0, 0, 12, 1, 1];
        extension.extend(self.octets(8));
        let sum = checksum(&extension);
        extension[2..4].copy_from_slice(&sum.to_be_bytes());
        message.extend(extension);
        let units = if self.chance(6) { self.random() as u8 } else { (padded / unit) as u8 };
        message[if v4 { 5 } else { 4 }] = units;
    }
}

fn checksum(octets: &[u8]) -> u16 {
    let mut sum: u32 =
        octets.chunks(2).map(|p| u32::from(p[0]) << 8 | u32::from(*p.get(1).unwrap_or(&0))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
