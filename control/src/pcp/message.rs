//! What all PCP messages have in common (RFC 6887 §7).
//!
//! ```text
//!     |  Version = 2  |R|   Opcode    |   Reserved    |  Result Code  |      Reserved and result code are zero in requests
//!     |                      Lifetime (32 bits)                       |
//!     |    client's IP address (128 bits), or in responses Epoch Time (32 bits) and Reserved (96 bits)
//! ```

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The server's port (§19.1).
pub const SERVER_PORT: u16 = 5351;
/// The port at which clients listen to announcements (§14.1.1).
pub const CLIENT_PORT: u16 = 5350;
/// Octets of the longest message (§7).
pub const MAX_PAYLOAD: usize = 1_100;

/// §7.1.
pub(super) const VERSION: u8 = 2;
/// Octets of the header of requests and of responses.
pub(super) const HEADER: usize = 24;
/// The R bit, next to the opcode.
pub(super) const RESPONSE: u8 = 0x80;
/// Where the result code of a response is.
pub(super) const RESULT: usize = 3;

/// §14.1.
pub(super) const ANNOUNCE: u8 = 0;
/// §11.
pub(super) const MAP: u8 = 1;
/// §12.
pub(super) const PEER: u8 = 2;

/// Takes a field from the front of octets.
pub(super) fn take<const N: usize>(octets: &mut &[u8]) -> Option<[u8; N]> {
    let (field, rest) = octets.split_first_chunk::<N>()?;
    *octets = rest;
    Some(*field)
}

/// An address as PCP writes it: IPv4 as an IPv4-mapped IPv6 address (§5).
pub(super) fn octets_of(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// The address that PCP writes like this.
pub(super) fn address_of(octets: [u8; 16]) -> IpAddr {
    Ipv6Addr::from(octets).to_canonical()
}

/// The external address that a client suggests. `Ok(None)`: it has no preference (§5). `Err`: it is not an IPv4 address.
pub(super) fn suggested_address(octets: [u8; 16]) -> Result<Option<Ipv4Addr>, IpAddr> {
    match address_of(octets) {
        IpAddr::V4(address) => Ok(Some(address).filter(|address| !address.is_unspecified())),
        IpAddr::V6(address) if address.is_unspecified() => Ok(None),
        IpAddr::V6(address) => Err(IpAddr::V6(address)),
    }
}
