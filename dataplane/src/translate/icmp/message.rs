//! Common to both directions: the received error, and the frame for its translation.

use crate::drop_reason::DropReason;
use crate::frame::{Frame, Offload};
use crate::parse::Packet;
use sixway_wire::IcmpHeader;
use sixway_wire::checksum::Sum;

/// The first eight octets of an ICMP error and the rest. `pseudo` is the sum of the pseudo-header for a length: ICMPv4 has none.
pub(super) fn read<'f>(
    frame: &'f Frame,
    packet: &Packet,
    pseudo: impl FnOnce(u32) -> Sum,
) -> Result<(IcmpHeader, &'f [u8]), DropReason> {
    if packet.fragment.is_some() {
        return Err(DropReason::IcmpFragment);
    }
    let icmp = frame.bytes().get(usize::from(packet.transport_at)..packet.length as usize);
    let icmp = icmp.ok_or(DropReason::TransportTruncated)?;
    let parts = IcmpHeader::split(icmp).map_err(|_| DropReason::TransportTruncated)?;
    match pseudo(icmp.len() as u32).bytes(icmp).checksum() {
        0 => Ok(parts),
        _ => Err(DropReason::BadIcmpChecksum),
    }
}

/// Replaces a frame's packet; its verdict stays. `transport` is the length of the IP header.
pub(super) fn replace(frame: &mut Frame, message: &[u8], transport: usize) -> Result<(), DropReason> {
    if frame.space().len() < message.len() {
        return Err(DropReason::NoHeadroom);
    }
    let verdict = frame.verdict;
    frame.fill(message, Offload { transport: transport as u16, ..Offload::default() });
    frame.verdict = verdict;
    Ok(())
}
