//! The choices that RFC 7915 leaves to the operator, one set for each configured mechanism.

/// The handling of the TOS octet or Traffic Class (RFC 7915 §4.1, §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderByte {
    /// It is copied: the default.
    Copy,
    /// It is set to this value.
    Set(u8),
}

impl HeaderByte {
    /// The octet to be written where `received` was.
    #[inline]
    pub const fn of(self, received: u8) -> u8 {
        match self {
            Self::Copy => received,
            Self::Set(value) => value,
        }
    }
}

/// The handling of an IPv4 UDP packet without checksum (RFC 7915 §4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpZeroChecksum {
    /// The checksum is computed; fragments are dropped by a stateless translator.
    Compute,
    /// The packet is dropped.
    Drop,
}

/// Options of a translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Traffic Class of IPv6 packets made from IPv4 ones.
    pub traffic_class: HeaderByte,
    /// TOS of IPv4 packets made from IPv6 ones.
    pub tos: HeaderByte,
    /// IPv4 UDP packets without checksum.
    pub udp_zero_checksum: UdpZeroChecksum,
    /// IPv4 packets with DF clear are fragmented so that the IPv6 packets are not larger than this (RFC 7915 §4.1).
    pub lowest_ipv6_mtu: u16,
    /// Whether the MSS option of TCP SYNs is lowered to what fits the path's MTU.
    pub clamp_mss: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            traffic_class: HeaderByte::Copy,
            tos: HeaderByte::Copy,
            udp_zero_checksum: UdpZeroChecksum::Compute,
            lowest_ipv6_mtu: 1_280,
            clamp_mss: true,
        }
    }
}
