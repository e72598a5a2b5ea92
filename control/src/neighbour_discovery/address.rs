//! Addresses of a link.

use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_dataplane::tunnel::address::isatap;

/// RFC 4291 §2.7.1: the all-nodes address of a link.
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// RFC 4291 §2.7.1: the all-routers address of a link.
pub const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
/// Whether the address lies in fe80::/10 (RFC 4291 §2.5.6).
pub const fn is_link_local(address: Ipv6Addr) -> bool {
    address.segments()[0] & 0xffc0 == 0xfe80
}

/// The IPv4 address in a link-local ISATAP address (RFC 5214 §6.1); `None` for every other address.
pub(crate) const fn link_local_locator_of(address: Ipv6Addr) -> Option<Ipv4Addr> {
    if isatap::LINK_LOCAL.contains(address) { isatap::locator_of(address) } else { None }
}
