//! Addresses, prefixes and octets in the form that the programs find in a header.

use crate::layout::{Network4, Prefix6 as Place6};
use core::net::Ipv4Addr;
use sixway_dataplane::translate::HeaderByte;
use sixway_wire::{Prefix4, Prefix6};

/// An address in network byte order.
pub(super) const fn word(address: Ipv4Addr) -> u32 {
    u32::from_ne_bytes(address.octets())
}

/// A prefix and its mask in network byte order, in two words each.
pub(super) fn words(prefix: Prefix6) -> ([u64; 2], [u64; 2]) {
    let halves = |bits: u128| [((bits >> 64) as u64).to_be(), (bits as u64).to_be()];
    (halves(prefix.address().to_bits()), halves(prefix.mask()))
}

/// An IPv4 prefix in the programs' form.
pub(super) const fn network(prefix: Prefix4) -> Network4 {
    Network4 { bits: word(prefix.address()), mask: prefix.mask().to_be() }
}

/// An IPv6 prefix in the programs' form.
pub(super) fn place(prefix: Prefix6) -> Place6 {
    let (bits, mask) = words(prefix);
    Place6 { bits, mask }
}

/// Whether an octet is set, and to what.
pub(super) const fn header_byte(byte: HeaderByte) -> (u8, u8) {
    match byte {
        HeaderByte::Copy => (0, 0),
        HeaderByte::Set(value) => (1, value),
    }
}
