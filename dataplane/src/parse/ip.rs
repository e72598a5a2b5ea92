//! An IP packet of either version.

use super::packet::Packet;
use super::{ipv4, ipv6};
use crate::drop_reason::DropReason;

/// Reads the packet at the start of `bytes`; octets behind its own length are padding.
#[inline]
pub fn parse(bytes: &[u8]) -> Result<Packet, DropReason> {
    let mut packet = Packet::EMPTY;
    parse_into(bytes, &mut packet)?;
    Ok(packet)
}

/// As [`parse`], into a place of the caller's: a packet is too large to be handed from register to register.
#[inline(always)]
pub fn parse_into(bytes: &[u8], packet: &mut Packet) -> Result<(), DropReason> {
    match bytes.first().map(|octet| octet >> 4) {
        Some(4) => ipv4::parse(bytes, packet),
        Some(6) => ipv6::parse(bytes, packet),
        Some(_) => Err(DropReason::NotIp),
        None => Err(DropReason::Truncated),
    }
}
