//! The expected packets: counted packets are also checked, because a rate of wrong packets means nothing.

use super::frame::{CLIENTS, PORT};
use sixway_wire::checksum::{Sum, pseudo4, pseudo6};
use sixway_wire::protocol::UDP;
use sixway_wire::{Prefix4, Prefix6};
use std::net::{Ipv4Addr, Ipv6Addr};

const ETHERNET: usize = 14;
/// Protocol of IPv6 in IPv4.
const IPV6: u8 = 41;

/// The UDP packets that arrive: between which addresses, and in which tunnel.
#[derive(Clone, Copy, Debug)]
pub struct Content {
    ends: Ends,
    /// The ends of the outer header.
    tunnel: Option<(Ipv4Addr, Ipv4Addr)>,
}

/// Addresses of source and destination.
#[derive(Clone, Copy, Debug)]
enum Ends {
    V4(Prefix4, Ipv4Addr),
    V6(Prefix6, Prefix6),
}

impl Content {
    /// IPv4 packets from this number of bits of a source.
    pub fn v4(source: Ipv4Addr, bits: u8, destination: Ipv4Addr) -> Self {
        Self { ends: Ends::V4(Prefix4::holding(source, bits), destination), tunnel: None }
    }

    /// IPv6 packets; the last 16 bits of both addresses may be any.
    pub fn v6(source: Ipv6Addr, destination: Ipv6Addr) -> Self {
        let near = |address| Prefix6::holding(address, 112);
        Self { ends: Ends::V6(near(source), near(destination)), tunnel: None }
    }

    /// What the senders of IPv6 send, unchanged.
    pub fn from_clients(destination: Ipv6Addr) -> Self {
        Self::v6(CLIENTS, destination)
    }

    /// What NAT64 makes of it for the server, from an address of its pool.
    pub fn by_nat64() -> Self {
        Self::v4(Ipv4Addr::new(198, 18, 0, 0), 26, Ipv4Addr::new(203, 0, 113, 2))
    }

    /// The same in IPv4.
    pub fn in_tunnel(self, source: Ipv4Addr, destination: Ipv4Addr) -> Self {
        Self { tunnel: Some((source, destination)), ..self }
    }

    /// Whether a frame is one of these, with right lengths and checksums; what is wrong if it is not.
    pub fn check(&self, frame: &[u8]) -> Result<(), &'static str> {
        let packet = frame.get(ETHERNET..).ok_or("no packet")?;
        let packet = match self.tunnel {
            None => packet,
            Some(ends) => {
                let (source, destination, payload) = ipv4(packet, IPV6)?;
                ((source, destination) == ends).then_some(payload).ok_or("another tunnel's ends")?
            }
        };
        match self.ends {
            Ends::V4(from, to) => {
                let (source, destination, datagram) = ipv4(packet, UDP)?;
                let belongs = from.contains(source) && destination == to;
                belongs.then_some(()).ok_or("other addresses")?;
                udp(datagram, pseudo4(source, destination, UDP, datagram.len() as u32))
            }
            Ends::V6(from, to) => {
                let (source, destination, datagram) = ipv6(packet)?;
                let belongs = from.contains(source) && to.contains(destination);
                belongs.then_some(()).ok_or("other addresses")?;
                udp(datagram, pseudo6(source, destination, UDP, datagram.len() as u32))
            }
        }
    }
}

/// Source, destination and payload of an IPv4 packet without options.
fn ipv4(packet: &[u8], protocol: u8) -> Result<(Ipv4Addr, Ipv4Addr, &[u8]), &'static str> {
    let (header, rest) = packet.split_first_chunk::<20>().ok_or("too short for IPv4")?;
    if header[0] != 0x45 || header[9] != protocol {
        return Err("not the protocol that it should be");
    }
    if Sum::ZERO.bytes(header).checksum() != 0 {
        return Err("a wrong IPv4 header checksum");
    }
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let payload = length.checked_sub(20).and_then(|length| rest.get(..length)).ok_or("a wrong length")?;
    let [a, b, c, d, e, f, g, h] = [12, 13, 14, 15, 16, 17, 18, 19].map(|at: usize| header[at]);
    Ok((Ipv4Addr::new(a, b, c, d), Ipv4Addr::new(e, f, g, h), payload))
}

/// The same of an IPv6 packet without extension headers.
fn ipv6(packet: &[u8]) -> Result<(Ipv6Addr, Ipv6Addr, &[u8]), &'static str> {
    let (header, rest) = packet.split_first_chunk::<40>().ok_or("too short for IPv6")?;
    if header[0] >> 4 != 6 || header[6] != UDP {
        return Err("not the protocol that it should be");
    }
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let payload = rest.get(..length).ok_or("a wrong length")?;
    let address = |at: usize| {
        let octets = header.get(at..).and_then(<[u8]>::first_chunk::<16>);
        octets.copied().map(Ipv6Addr::from).ok_or("too short for IPv6")
    };
    Ok((address(8)?, address(24)?, payload))
}

fn udp(datagram: &[u8], pseudo: Sum) -> Result<(), &'static str> {
    let header = datagram.first_chunk::<8>().ok_or("too short for UDP")?;
    let field = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    if usize::from(field(4)) != datagram.len() {
        Err("a wrong length of the datagram")
    } else if field(0) != PORT && field(2) != PORT {
        Err("other ports")
    } else if field(6) == 0 || pseudo.bytes(datagram).checksum() != 0 {
        Err("a wrong UDP checksum")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::{ethernet, in_ipv4, udp4, udp6};
    use super::*;

    const SERVER4: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);
    const SERVER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 2);
    const POOL: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 9);

    fn framed(packet: &[u8]) -> Vec<u8> {
        // Samples are longer than their frames.
        [ethernet([0; 6], packet), vec![0xee; 40]].concat()
    }

    #[test]
    fn what_should_arrive_is_right_and_any_flipped_octet_is_seen() {
        let (site, relay) = (Ipv4Addr::new(192, 0, 2, 8), Ipv4Addr::new(192, 0, 2, 1));
        let six = udp6(CLIENTS, SERVER6);
        for (content, packet) in [
            (Content::by_nat64(), udp4(POOL, 9, SERVER4, PORT)),
            (Content::from_clients(SERVER6), six.clone()),
            (Content::from_clients(SERVER6).in_tunnel(relay, site), in_ipv4(relay, site, &six)),
        ] {
            assert_eq!(content.check(&framed(&packet)), Ok(()));
            // Traffic class, flow label and hop limit of IPv6 are in no checksum.
            let six_at = packet.len() - six.len().min(packet.len());
            let unprotected =
                |at: usize| packet[six_at] >> 4 == 6 && [0, 1, 2, 3, 7].contains(&(at - six_at));
            for at in (0..packet.len()).filter(|at| *at < six_at || !unprotected(*at)) {
                let mut wrong = packet.clone();
                wrong[at] ^= 0x10;
                assert!(content.check(&framed(&wrong)).is_err(), "octet {at} of {content:?}");
            }
        }
    }

    #[test]
    fn another_packet_and_half_a_packet_are_wrong() {
        let content = Content::by_nat64();
        let elsewhere = udp4(Ipv4Addr::new(198, 18, 1, 9), 9, SERVER4, PORT);
        assert_eq!(content.check(&framed(&elsewhere)), Err("other addresses"));
        assert_eq!(
            content.check(&framed(&udp6(CLIENTS, SERVER6))),
            Err("not the protocol that it should be")
        );
        assert_eq!(content.check(&framed(&udp4(POOL, 9, SERVER4, 5_000))), Err("other ports"));
        let whole = ethernet([0; 6], &udp4(POOL, 9, SERVER4, PORT));
        assert!((0..whole.len()).all(|length| content.check(&whole[..length]).is_err()));
    }
}
