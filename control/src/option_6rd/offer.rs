//! What a lease offers.

use super::domain::OfferedDomain;
use core::net::Ipv4Addr;

/// Octets of a file that are read at most. dhclient writes the newest lease at its end.
pub const LEASE_FILE_SIZE: usize = 1 << 20;

/// A lease, and the domain that came with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SixRdOffer {
    /// The leased address.
    pub address: Ipv4Addr,
    /// Lease time in seconds (RFC 2132 §9.2); `None`: the option is missing.
    pub lease_time: Option<u32>,
    /// The domain.
    pub domain: OfferedDomain,
}
