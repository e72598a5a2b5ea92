//! Protocol numbers (IANA "Assigned Internet Protocol Numbers"), as found in IPv4's Protocol and IPv6's Next Header.

/// IPv6 Hop-by-Hop Options (RFC 8200 §4.3).
pub const HOP_BY_HOP: u8 = 0;
/// ICMP for IPv4 (RFC 792).
pub const ICMPV4: u8 = 1;
/// IGMP (RFC 3376), which a translator drops (RFC 7915 §4.2).
pub const IGMP: u8 = 2;
/// IPv4 in IP.
pub const IPV4: u8 = 4;
/// TCP (RFC 9293).
pub const TCP: u8 = 6;
/// UDP (RFC 768).
pub const UDP: u8 = 17;
/// DCCP (RFC 4340).
pub const DCCP: u8 = 33;
/// IPv6 in IP (RFC 4213).
pub const IPV6: u8 = 41;
/// IPv6 Routing header (RFC 8200 §4.4).
pub const ROUTING: u8 = 43;
/// IPv6 Fragment header (RFC 8200 §4.5).
pub const FRAGMENT: u8 = 44;
/// GRE (RFC 2784).
pub const GRE: u8 = 47;
/// ESP (RFC 4303).
pub const ESP: u8 = 50;
/// Authentication Header (RFC 4302).
pub const AUTHENTICATION: u8 = 51;
/// ICMP for IPv6 (RFC 4443).
pub const ICMPV6: u8 = 58;
/// RFC 8200 §4.7: nothing follows.
pub const NO_NEXT_HEADER: u8 = 59;
/// IPv6 Destination Options (RFC 8200 §4.6).
pub const DESTINATION_OPTIONS: u8 = 60;
/// SCTP (RFC 9260), whose CRC32c has no pseudo-header.
pub const SCTP: u8 = 132;
/// Mobility header (RFC 6275).
pub const MOBILITY: u8 = 135;
/// UDP-Lite (RFC 3828).
pub const UDP_LITE: u8 = 136;
/// Host Identity Protocol (RFC 7401).
pub const HIP: u8 = 139;
/// Shim6 (RFC 5533).
pub const SHIM6: u8 = 140;

/// The offset of the checksum in a transport header whose checksum covers a pseudo-header with addresses.
/// `None` for every other protocol. ICMPv6 is not listed: it has no counterpart with a pseudo-header in IPv4.
#[inline]
pub const fn checksum_offset(protocol: u8) -> Option<usize> {
    match protocol {
        TCP => Some(16),
        UDP | DCCP | UDP_LITE => Some(6),
        _ => None,
    }
}
