//! The direct IPv6 connectivity test (RFC 4380 §5.2.9): an echo request through the server, whose answer comes by the peer's relay. Its data prove that
//! the peer got it.

use super::datagram::Datagram;
use super::peers::Stamp;
use crate::nat::siphash_word;
use alloc::boxed::Box;
use alloc::vec;
use core::net::Ipv6Addr;
use sixway_wire::icmpv6::{ECHO_REPLY, ECHO_REQUEST, ROUTER_SOLICITATION};
use sixway_wire::protocol::ICMPV6;
use sixway_wire::teredo::Authentication;
use sixway_wire::{ICMP_HEADER, IPV6_HEADER, IcmpHeader, Ipv6Header};

/// Hop limit of the request.
const HOPS: u8 = 64;
/// "6way".
const IDENTIFIER: u16 = 0x6317;
/// RFC 4861 §6.1.1: of a router solicitation.
const NEIGHBOUR_HOPS: u8 = 255;
/// RFC 4291 §2.7.1.
const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);

/// The data of the request, which the reply repeats; computed, not stored.
pub(super) type Nonce = [u8; 16];

/// The nonce of a peer's test that began at this time.
pub(super) fn nonce(key: [u64; 2], peer: Ipv6Addr, began: Stamp) -> Nonce {
    let bits = peer.to_bits();
    let high = siphash_word(key, (bits >> 64) as u64);
    let whole = siphash_word([key[0] ^ high, key[1]], bits as u64);
    let [first, second] = [0, 1].map(|word| siphash_word([key[0] ^ whole, key[1] ^ word], began.get()));
    (u128::from(first) << 64 | u128::from(second)).to_be_bytes()
}

/// The nonce of a solicitation that determines a mapped port (RFC 6081 §5.5.4.1.1).
pub(super) type PortNonce = [u8; 8];

/// The nonces of the solicitations to both addresses of the server, in a test that began at this time.
pub(super) fn port_nonces([first, second]: [u64; 2], peer: Ipv6Addr, began: Stamp) -> [PortNonce; 2] {
    let [a, b, c, d, e, f, g, h, last @ ..] = nonce([second, first], peer, began);
    [[a, b, c, d, e, f, g, h], last]
}

/// A router solicitation behind its authentication (RFC 4380 §5.2.1, §5.2.2).
pub(super) fn solicitation(source: Ipv6Addr, nonce: PortNonce) -> Box<[u8]> {
    let authentication = Authentication { client: &[], value: &[], nonce, confirmation: 0 };
    let mut octets = vec![0; authentication.len()];
    let length = authentication.write(&mut octets).unwrap_or_default();
    octets.truncate(length);
    let header = Ipv6Header::new(source, ALL_ROUTERS, ICMPV6, ICMP_HEADER);
    octets.extend(Ipv6Header { hop_limit: NEIGHBOUR_HOPS, ..header }.octets());
    let message = IcmpHeader::new(ROUTER_SOLICITATION, 0, 0).with_checksum6(source, ALL_ROUTERS, &[]);
    octets.extend(message.octets());
    octets.into_boxed_slice()
}

/// An echo request from one address to the other.
pub(super) fn request((source, destination): (Ipv6Addr, Ipv6Addr), nonce: Nonce) -> Box<[u8]> {
    let mut octets = [0; IPV6_HEADER + ICMP_HEADER + size_of::<Nonce>()];
    let length = ICMP_HEADER + nonce.len();
    let header = Ipv6Header { hop_limit: HOPS, ..Ipv6Header::new(source, destination, ICMPV6, length) };
    let echo = IcmpHeader::echo(ECHO_REQUEST, IDENTIFIER, 1);
    octets[..IPV6_HEADER].copy_from_slice(&header.octets());
    octets[IPV6_HEADER..IPV6_HEADER + ICMP_HEADER]
        .copy_from_slice(&echo.with_checksum6(source, destination, &nonce).octets());
    octets[IPV6_HEADER + ICMP_HEADER..].copy_from_slice(&nonce);
    Box::new(octets)
}

/// Whether a packet is the reply.
pub(super) fn answers(datagram: &Datagram<'_>, nonce: Nonce) -> bool {
    let message = datagram.message();
    datagram.packet.protocol == ICMPV6
        && message.first() == Some(&ECHO_REPLY)
        && message.get(ICMP_HEADER..) == Some(&nonce[..])
}
