//! A provider's 6rd domain in the lease file of a DHCPv4 client: OPTION_6RD, 212 (RFC 5969 §7.1.1).
//!
//! ```text
//!     dhclient    text, a block for each lease, the newest at the end     dhclient_lease.rs
//!     dhcpcd      the server's last DHCPv4 message                        dhcp_message.rs
//!     both        the option's octets                                     domain.rs
//!                 what a lease offers                                     offer.rs
//! ```
//!
//! Any DHCP server on the link may have written the option. A client's file may outlive its lease: an offer counts only while the leased address is at the
//! interface, which is for the caller to see.

mod dhclient_lease;
mod dhcp_message;
mod domain;
mod offer;

pub use domain::{OfferedDomain, Unusable};
pub use offer::{LEASE_FILE_SIZE, SixRdOffer};
