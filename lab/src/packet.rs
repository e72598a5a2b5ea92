//! Packets that the lab makes itself: to be sent by tools of its own, or by strangers that no real program plays.

use sixway_wire::checksum::pseudo6;
use sixway_wire::protocol;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Octets of an IPv6 header.
pub const IPV6_HEADER: usize = 40;

/// The first address of a site's 6to4 prefix with this interface identifier (RFC 3056 §2).
pub fn six_to_four(site: Ipv4Addr, identifier: u16) -> Ipv6Addr {
    let [a, b, c, d] = site.octets();
    let pair = |high, low| u16::from_be_bytes([high, low]);
    Ipv6Addr::new(0x2002, pair(a, b), pair(c, d), 0, 0, 0, 0, identifier)
}

/// An IPv6 packet (RFC 8200 §3).
pub fn ipv6(source: Ipv6Addr, destination: Ipv6Addr, next_header: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([next_header, 64]);
    packet.extend(source.octets());
    packet.extend(destination.octets());
    packet.extend(payload);
    packet
}

/// An echo request of `octets` octets with its ICMPv6 header (RFC 4443 §4.1).
pub fn echo_request(
    source: Ipv6Addr,
    destination: Ipv6Addr,
    [identifier, sequence]: [u16; 2],
    octets: usize,
) -> Vec<u8> {
    let mut message = vec![0x36; octets.max(8)];
    message[..4].copy_from_slice(&[128, 0, 0, 0]);
    message[4..6].copy_from_slice(&identifier.to_be_bytes());
    message[6..8].copy_from_slice(&sequence.to_be_bytes());
    let sum = pseudo6(source, destination, protocol::ICMPV6, message.len() as u32).bytes(&message);
    message[2..4].copy_from_slice(&sum.checksum().to_be_bytes());
    ipv6(source, destination, protocol::ICMPV6, &message)
}

/// Identifier and sequence number of an echo reply.
pub fn echo_reply(packet: &[u8]) -> Option<[u16; 2]> {
    let message = packet.get(IPV6_HEADER..)?;
    let [129, 0, _, _, a, b, c, d, ..] = *message else { return None };
    (packet[6] == protocol::ICMPV6).then(|| [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])])
}

/// A UDP datagram over IPv6 (RFC 768).
pub fn udp(source: (Ipv6Addr, u16), destination: (Ipv6Addr, u16), data: &[u8]) -> Vec<u8> {
    let length = 8 + data.len() as u16;
    let mut datagram: Vec<u8> =
        [source.1, destination.1, length, 0].into_iter().flat_map(u16::to_be_bytes).collect();
    datagram.extend(data);
    let sum = pseudo6(source.0, destination.0, protocol::UDP, length.into()).bytes(&datagram);
    datagram[6..8].copy_from_slice(&sum.checksum_nonzero().to_be_bytes());
    ipv6(source.0, destination.0, protocol::UDP, &datagram)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sites_prefix_embeds_its_address() {
        let site = six_to_four(Ipv4Addr::new(192, 0, 2, 8), 2);
        assert_eq!(site, "2002:c000:208::2".parse::<Ipv6Addr>().unwrap());
    }

    #[test]
    fn packets_that_are_made_are_sound() {
        let (here, there) = (Ipv6Addr::LOCALHOST, "2001:db8::1".parse().unwrap());
        for packet in [echo_request(here, there, [7, 9], 100), udp((here, 4_000), (there, 53), b"a question")]
        {
            let length = packet.len() - IPV6_HEADER;
            let sum = pseudo6(here, there, packet[6], length as u32).bytes(&packet[IPV6_HEADER..]);
            assert_eq!(sum.checksum(), 0, "what is complete sums to all ones");
            assert_eq!(usize::from(packet[4]) << 8 | usize::from(packet[5]), length);
        }
        let mut reply = echo_request(here, there, [7, 9], 100);
        assert_eq!(echo_reply(&reply), None);
        reply[IPV6_HEADER] = 129;
        assert_eq!(echo_reply(&reply), Some([7, 9]));
        assert_eq!(echo_reply(&reply[..45]), None);
    }
}
