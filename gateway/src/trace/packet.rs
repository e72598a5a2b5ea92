//! The packet to trace.

use sixway_wire::{IcmpHeader, Ipv4Header, Ipv6Header, TcpHeader, UdpHeader, icmpv4, icmpv6, protocol};
use std::net::IpAddr;

/// A packet's transport, with its source and destination port or identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// TCP with these flags.
    Tcp(u16, u16, u8),
    /// UDP.
    Udp(u16, u16),
    /// An echo request with this identifier.
    Echo(u16),
}

/// A packet that is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its source.
    pub from: IpAddr,
    /// Its destination, of the same family.
    pub to: IpAddr,
    /// Its transport.
    pub kind: Kind,
    /// Its size in octets, IP header included; at least what its headers take.
    pub size: usize,
}

/// The TTL and hop limit of packets that are asked about.
const HOPS: u8 = 64;

impl Asked {
    /// The packet, from the IP header on. `None`: the addresses are of different families.
    pub fn octets(&self) -> Option<Vec<u8>> {
        let header = match (self.from, self.kind) {
            (IpAddr::V4(_), Kind::Tcp(..)) => 40,
            (IpAddr::V6(_), Kind::Tcp(..)) => 60,
            (IpAddr::V4(_), _) => 28,
            (IpAddr::V6(_), _) => 48,
        };
        let data = vec![0x36; self.size.clamp(header, 65_535) - header];
        match (self.from, self.to) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let (number, head) = match self.kind {
                    Kind::Tcp(source, destination, flags) => (
                        protocol::TCP,
                        tcp(source, destination, flags).with_checksum4(from, to, &data).octets().to_vec(),
                    ),
                    Kind::Udp(source, destination) => {
                        let header =
                            UdpHeader::new(source, destination, data.len()).with_checksum4(from, to, &data);
                        (protocol::UDP, header.octets().to_vec())
                    }
                    Kind::Echo(identifier) => {
                        let header =
                            IcmpHeader::echo(icmpv4::ECHO_REQUEST, identifier, 1).with_checksum4(&data);
                        (protocol::ICMPV4, header.octets().to_vec())
                    }
                };
                let ip = Ipv4Header::new(from, to, number, head.len() + data.len());
                Some(
                    [&Ipv4Header { ttl: HOPS, dont_fragment: true, ..ip }.octets()[..], &head, &data]
                        .concat(),
                )
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let (number, head) = match self.kind {
                    Kind::Tcp(source, destination, flags) => (
                        protocol::TCP,
                        tcp(source, destination, flags).with_checksum6(from, to, &data).octets().to_vec(),
                    ),
                    Kind::Udp(source, destination) => {
                        let header =
                            UdpHeader::new(source, destination, data.len()).with_checksum6(from, to, &data);
                        (protocol::UDP, header.octets().to_vec())
                    }
                    Kind::Echo(identifier) => {
                        let header = IcmpHeader::echo(icmpv6::ECHO_REQUEST, identifier, 1)
                            .with_checksum6(from, to, &data);
                        (protocol::ICMPV6, header.octets().to_vec())
                    }
                };
                let ip = Ipv6Header::new(from, to, number, head.len() + data.len());
                Some([&Ipv6Header { hop_limit: HOPS, ..ip }.octets()[..], &head, &data].concat())
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => None,
        }
    }
}

fn tcp(source: u16, destination: u16, flags: u8) -> TcpHeader {
    TcpHeader { window: 64_000, ..TcpHeader::new(source, destination, flags) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::words::described;
    use sixway_dataplane::parse::SYN;

    fn words(from: &str, to: &str, kind: Kind, size: usize) -> String {
        let asked = Asked { from: from.parse().unwrap(), to: to.parse().unwrap(), kind, size };
        described(&asked.octets().unwrap())
    }

    #[test]
    fn a_packet_that_is_made_is_what_its_words_say() {
        assert_eq!(
            words("2001:db8::1", "64:ff9b::203.0.113.2", Kind::Tcp(50_122, 443, SYN), 0),
            "IPv6, TCP, SYN, 60 octets, hop limit 64, [2001:db8::1]:50122 > [64:ff9b::cb00:7102]:443"
        );
        assert_eq!(
            words("203.0.113.2", "192.0.2.1", Kind::Udp(53, 4_000), 1_000),
            "IPv4, UDP, 1000 octets, TTL 64, 203.0.113.2:53 > 192.0.2.1:4000"
        );
        assert_eq!(
            words("203.0.113.2", "192.0.2.1", Kind::Echo(7), 84),
            "IPv4, ICMP type 8, identifier 7, 84 octets, TTL 64, 203.0.113.2 > 192.0.2.1"
        );
        assert_eq!(described(b"no packet"), "9 octets that are not an IP packet");
        let mixed = Asked {
            from: "::1".parse().unwrap(),
            to: "192.0.2.1".parse().unwrap(),
            kind: Kind::Echo(1),
            size: 0,
        };
        assert_eq!(mixed.octets(), None);
    }
}
