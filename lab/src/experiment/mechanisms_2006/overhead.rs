//! What headers cost in a frame of 1,514 octets, from packets that our own encoders write.

use sixway_wire::{IPV4_HEADER, Ipv4Header, Ipv6Header, TCP_HEADER, UDP_HEADER, UdpHeader, protocol};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Octets of an IP packet in the paper's frame, which has 14 of Ethernet.
const PACKET: usize = 1_500;

/// The headers of IP in front of TCP or UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// IPv6 in IPv4: configured tunnels, 6to4, ISATAP.
    SixInFour,
    /// IPv4 in IPv6: DSTM.
    FourInSix,
    /// IPv6 in UDP in IPv4: Teredo.
    SixInUdp,
}

impl Form {
    /// All of them, in the order of the paper's table.
    pub const ALL: [Self; 5] = [Self::Ipv4, Self::Ipv6, Self::SixInFour, Self::FourInSix, Self::SixInUdp];

    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
            Self::SixInFour => "IPv6 in IPv4",
            Self::FourInSix => "IPv4 in IPv6",
            Self::SixInUdp => "IPv6 in UDP in IPv4",
        }
    }

    /// The octets of its headers as our encoders write them around this payload, which has the header of TCP or UDP.
    fn headers(self, payload: usize) -> Vec<u8> {
        let four = |next, length| {
            Ipv4Header::new(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST, next, length).octets().to_vec()
        };
        let six = |next, length| {
            Ipv6Header::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, next, length).octets().to_vec()
        };
        let inner_six = six(protocol::TCP, payload);
        match self {
            Self::Ipv4 => four(protocol::TCP, payload),
            Self::Ipv6 => inner_six,
            Self::SixInFour => [four(protocol::IPV6, payload + inner_six.len()), inner_six].concat(),
            Self::FourInSix => {
                let inner = four(protocol::TCP, payload);
                [six(protocol::IPV4, payload + inner.len()), inner].concat()
            }
            Self::SixInUdp => {
                let datagram = UdpHeader::new(3_544, 3_544, payload + inner_six.len()).octets().to_vec();
                let length = payload + inner_six.len() + datagram.len();
                [four(protocol::UDP, length), datagram, inner_six].concat()
            }
        }
    }

    /// Octets of data in a packet of 1,500 octets with TCP or UDP.
    pub fn data(self, transport: Transport) -> usize {
        PACKET - self.headers(IPV4_HEADER).len() - transport.header()
    }

    /// The headers of IP, and those of a tunnel, as a share of the data: the paper's overhead.
    pub fn overhead(self, transport: Transport) -> f64 {
        self.headers(IPV4_HEADER).len() as f64 / self.data(transport) as f64
    }
}

/// What is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP without options.
    Tcp,
    /// UDP.
    Udp,
}

impl Transport {
    const fn header(self) -> usize {
        match self {
            Self::Tcp => TCP_HEADER,
            Self::Udp => UDP_HEADER,
        }
    }
}

/// Hundredths of a percent without what follows: the paper does not round.
pub fn truncated(share: f64) -> u32 {
    (share * 10_000.0) as u32
}
