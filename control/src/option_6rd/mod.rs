//! A provider's 6rd domain in what a DHCPv4 client keeps of its lease: OPTION_6RD, 212 (RFC 5969 §7.1.1).
//!
//! ```text
//!     dhclient    text, a block for each lease, the newest at the end     dhclient_lease.rs
//!     dhcpcd      the server's last DHCPv4 message                        dhcp_message.rs
//!     both        the option's octets                                     domain.rs
//! ```
//!
//! Whoever answers DHCP wrote the option. A client's file may outlive its lease: an offer counts only while the leased address is at the
//! interface, which is for the caller to see.

mod dhclient_lease;
mod dhcp_message;
mod domain;

use core::net::Ipv4Addr;

pub use domain::{OfferedDomain, Unusable};

/// Octets of a file that are read at most. dhclient writes the newest lease at its end.
pub const LEASE_FILE_SIZE: usize = 1 << 20;

/// A lease, and the domain that came with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SixRdOffer {
    /// The leased address.
    pub address: Ipv4Addr,
    /// For how many seconds it was leased (RFC 2132 §9.2); `None`: it was not told.
    pub lease_time: Option<u32>,
    /// The domain.
    pub domain: OfferedDomain,
}

impl SixRdOffer {
    /// The offer of the newest lease of an interface in dhclient's file; `None`: that lease has none.
    pub fn in_dhclient_leases(text: &str, interface: &str) -> Option<Self> {
        dhclient_lease::offer(text, interface)
    }

    /// The offer in a server's message, as dhcpcd keeps it; `None`: it is no such message, or has none.
    pub fn in_message(octets: &[u8]) -> Option<Self> {
        dhcp_message::offer(octets)
    }
}
