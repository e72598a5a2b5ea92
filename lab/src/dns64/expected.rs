//! The correct answer to a query for addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The answer to a query for addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// These addresses, in any order.
    Addresses(Vec<IpAddr>),
    /// NOERROR without addresses.
    Empty,
    /// NXDOMAIN.
    NameError,
    /// SERVFAIL.
    Failure,
}

/// Embeds an address in 64:ff9b::/96 (RFC 6052 §2.1).
pub fn embedded(address: Ipv4Addr) -> Ipv6Addr {
    (0x0064_ff9b_u128 << 96 | u128::from(u32::from(address))).into()
}
