//! The messages of Neighbor Discovery (RFC 4861 §4): octets to values and back, and the checks that a message must pass (§6.1, §7.1).
//!
//! A message that fails a check is refused whole. An option that is unknown, or whose own length or contents are wrong, is skipped as
//! if it were not there, as RFC 4861 §6.1 and the options' own RFCs ask.

mod domain_name;
mod malformed;
mod message;
mod option;
mod packet;
mod pref64;

pub use domain_name::{DomainName, DomainNameError};
pub use malformed::Malformed;
pub use message::{
    Message, NeighbourAdvertisement, NeighbourSolicitation, Preference, RouterAdvertisement,
    RouterSolicitation,
};
pub use option::{NdOption, PrefixInformation, RouteInformation};
pub use packet::{Received, Transmission};
pub use pref64::{Pref64, Pref64Error, ScaledLifetime};

use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_dataplane::tunnel::address::isatap;

/// RFC 4291 §2.7.1: the all-nodes address of a link.
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// RFC 4291 §2.7.1: the all-routers address of a link.
pub const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
/// RFC 4861 §3.1: the hop limit that no router between could have left.
pub const HOP_LIMIT: u8 = 255;
/// A lifetime of all one bits stands for infinity (RFC 4861 §4.6.2, RFC 4191 §2.3, RFC 8106 §5.1).
pub const INFINITY: u32 = u32::MAX;

/// Whether the address lies in fe80::/10 (RFC 4291 §2.5.6).
pub const fn is_link_local(address: Ipv6Addr) -> bool {
    address.segments()[0] & 0xffc0 == 0xfe80
}

/// The IPv4 address in a link-local ISATAP address (RFC 5214 §6.1); `None` for every other address.
pub(crate) const fn link_local_locator_of(address: Ipv6Addr) -> Option<Ipv4Addr> {
    if isatap::LINK_LOCAL.contains(address) { isatap::locator_of(address) } else { None }
}
