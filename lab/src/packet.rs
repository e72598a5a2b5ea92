//! Packets that the lab generates itself: for its own tools, or for attackers that no real program simulates.

use sixway_wire::{ICMP_HEADER, IcmpHeader, Ipv4Header, Ipv6Header, UdpHeader, icmpv6, protocol};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The first address of a site's 6to4 prefix with this interface identifier (RFC 3056 §2).
pub fn six_to_four(site: Ipv4Addr, identifier: u16) -> Ipv6Addr {
    let [a, b, c, d] = site.octets();
    let pair = |high, low| u16::from_be_bytes([high, low]);
    Ipv6Addr::new(0x2002, pair(a, b), pair(c, d), 0, 0, 0, 0, identifier)
}

/// An IPv6 packet (RFC 8200 §3).
pub fn ipv6(source: Ipv6Addr, destination: Ipv6Addr, next_header: u8, payload: &[u8]) -> Vec<u8> {
    [&Ipv6Header::new(source, destination, next_header, payload.len()).octets()[..], payload].concat()
}

/// An echo request of `octets` octets with its ICMPv6 header (RFC 4443 §4.1).
pub fn echo_request(
    source: Ipv6Addr,
    destination: Ipv6Addr,
    [identifier, sequence]: [u16; 2],
    octets: usize,
) -> Vec<u8> {
    let data = vec![0x36; octets.saturating_sub(ICMP_HEADER)];
    let header = IcmpHeader::echo(icmpv6::ECHO_REQUEST, identifier, sequence);
    let header = header.with_checksum6(source, destination, &data);
    ipv6(source, destination, protocol::ICMPV6, &[&header.octets()[..], &data].concat())
}

/// Identifier and sequence number of an echo reply.
pub fn echo_reply(packet: &[u8]) -> Option<[u16; 2]> {
    let (header, message) = Ipv6Header::split_quoted(packet).ok()?;
    let reply = IcmpHeader::read(message).ok()?;
    let is_reply = (header.next_header, reply.kind, reply.code) == (protocol::ICMPV6, icmpv6::ECHO_REPLY, 0);
    is_reply.then(|| [reply.identifier(), reply.sequence()])
}

/// The same of one in IPv4 (RFC 4213).
pub fn tunnelled_echo_reply(packet: &[u8]) -> Option<[u16; 2]> {
    echo_reply(Ipv4Header::split_quoted(packet).ok()?.1)
}

/// A UDP datagram over IPv6 (RFC 768).
pub fn udp(source: (Ipv6Addr, u16), destination: (Ipv6Addr, u16), data: &[u8]) -> Vec<u8> {
    let header = UdpHeader::new(source.1, destination.1, data.len());
    let header = header.with_checksum6(source.0, destination.0, data);
    ipv6(source.0, destination.0, protocol::UDP, &[&header.octets()[..], data].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sixway_wire::IPV6_HEADER;
    use sixway_wire::checksum::pseudo6;

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
        let site = Ipv4Addr::new(192, 0, 2, 8);
        let outer = Ipv4Header::new(site, site, protocol::IPV6, reply.len());
        assert_eq!(tunnelled_echo_reply(&[&outer.octets()[..], &reply].concat()), Some([7, 9]));
        assert_eq!(tunnelled_echo_reply(&reply), None);
    }
}
