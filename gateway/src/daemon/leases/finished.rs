//! Completes the transport checksum of a packet that the kernel has left to the device.

use sixway_dataplane::parse::{self, Addresses};
use sixway_wire::checksum::pseudo4;
use sixway_wire::protocol::{TCP, UDP};
use std::net::Ipv4Addr;

/// Source and destination of an IPv4 packet, whose checksum is right afterwards; `None`: it is not one.
pub(super) fn finished(octets: &mut [u8]) -> Option<(Ipv4Addr, Ipv4Addr)> {
    let packet = parse::parse(octets).ok()?;
    let Addresses::V4 { source, destination } = packet.addresses else { return None };
    let place = match packet.protocol {
        TCP => 16,
        UDP => 6,
        _ => return Some((source, destination)),
    };
    if packet.fragment.is_some() {
        return Some((source, destination));
    }
    let body = octets.get_mut(usize::from(packet.transport_at)..packet.length as usize)?;
    body.get_mut(place..place + 2)?.fill(0);
    let length = u32::try_from(body.len()).ok()?;
    let sum = pseudo4(source, destination, packet.protocol, length).bytes(body).checksum_nonzero();
    body.get_mut(place..place + 2)?.copy_from_slice(&sum.to_be_bytes());
    Some((source, destination))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_a_datagram_is_completed() {
        let mut packet = vec![0x45, 0, 0, 30, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 1];
        packet.extend([0, 53, 0, 54, 0, 10, 0xab, 0xcd, 7, 9]);
        let sum = sixway_wire::checksum::Sum::ZERO.bytes(&packet[..20]).checksum();
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        let ends = finished(&mut packet).unwrap();
        assert_eq!(ends, ([192, 0, 2, 1].into(), [198, 51, 100, 1].into()));
        assert_eq!(pseudo4(ends.0, ends.1, 17, 10).bytes(&packet[20..]).fold(), 0xffff);
        assert_eq!(finished(&mut [0; 20]), None);
    }
}
