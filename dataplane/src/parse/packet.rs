//! A parsed packet: offsets and the few fields that decide. It borrows nothing and knows nothing of the frame's buffer, so mechanisms can
//! decide without touching octets.

use core::net::{Ipv4Addr, Ipv6Addr};

/// Source and destination address of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Addresses {
    /// IPv4.
    V4 {
        /// Source.
        source: Ipv4Addr,
        /// Destination.
        destination: Ipv4Addr,
    },
    /// IPv6.
    V6 {
        /// Source.
        source: Ipv6Addr,
        /// Destination.
        destination: Ipv6Addr,
    },
}

/// The position of a fragment in its packet. An atomic fragment (offset 0, none follow) counts as a whole packet (RFC 6946 §4), though its header
/// is still there: see [`Packet::fragment_header`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Offset of its data in the original packet, in octets.
    pub offset: u16,
    /// Whether more fragments follow.
    pub more: bool,
    /// Identification; 16 bits of it in IPv4.
    pub identification: u32,
}

impl Fragment {
    /// Whether this is the fragment that holds the transport header.
    pub const fn is_first(self) -> bool {
        self.offset == 0
    }
}

/// The fields after the IP headers that decisions depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP, UDP, UDP-Lite, DCCP or SCTP: ports. For TCP also the flags octet (CWR ECE URG ACK PSH RST SYN FIN).
    Ports {
        /// Source port.
        source: u16,
        /// Destination port.
        destination: u16,
        /// TCP's flags octet; 0 for the others.
        tcp_flags: u8,
    },
    /// An ICMP message that is not an error. `identifier` is that of an echo message, else 0.
    IcmpQuery {
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
        /// Identifier of an echo request or reply.
        identifier: u16,
    },
    /// An ICMP error: what it quotes is read by [`quoted`] on request.
    IcmpError {
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
    },
    /// A later fragment, or a protocol that is not examined.
    Opaque,
}

/// A parsed packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Source and destination.
    pub addresses: Addresses,
    /// IPv4's Protocol, or the last Next Header of IPv6's chain.
    pub protocol: u8,
    /// IPv4's TTL or IPv6's Hop Limit.
    pub hops: u8,
    /// IPv4's TOS or IPv6's Traffic Class.
    pub traffic_class: u8,
    /// IPv4's DF flag; always true for IPv6.
    pub dont_fragment: bool,
    /// Octets from the start of the packet to the transport header: IPv4 header with options, or IPv6 header with the
    /// extension headers.
    pub transport_at: u16,
    /// Octets of the whole packet by its own header, padding behind it left out. At most [`crate::frame::MAX_PACKET`].
    pub length: u32,
    /// Its place in a fragmented packet, `None` for a whole packet or an atomic fragment.
    pub fragment: Option<Fragment>,
    /// Where IPv6's Fragment header starts, atomic or not; 0: there is none.
    pub fragment_header: u16,
    /// What follows the IP headers.
    pub transport: Transport,
    /// Where a routing header has a Segments Left that is not zero (RFC 7915 §5.1); 0: nowhere.
    pub segments_left_at: u16,
    /// IPv4: an unexpired source route among the options (RFC 7915 §4.1).
    pub source_route: bool,
    /// IPv6: an extension header follows the Fragment header (RFC 7915 §5.1.1).
    pub extension_after_fragment: bool,
}

impl Packet {
    /// A place for [`parse_into`].
    pub const EMPTY: Self = Self {
        addresses: Addresses::V4 { source: Ipv4Addr::UNSPECIFIED, destination: Ipv4Addr::UNSPECIFIED },
        protocol: 0,
        hops: 0,
        traffic_class: 0,
        dont_fragment: false,
        transport_at: 0,
        length: 0,
        fragment: None,
        fragment_header: 0,
        transport: Transport::Opaque,
        segments_left_at: 0,
        source_route: false,
        extension_after_fragment: false,
    };
}
