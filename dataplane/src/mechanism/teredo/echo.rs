//! The direct IPv6 connectivity test (RFC 4380 §5.2.9): an echo request through the server, whose answer comes by the peer's relay. Its data prove that
//! the peer got it.

use super::datagram::Datagram;
use super::peers::Stamp;
use crate::nat::siphash_word;
use alloc::boxed::Box;
use core::net::Ipv6Addr;
use sixway_wire::icmpv6::{ECHO_REPLY, ECHO_REQUEST};
use sixway_wire::protocol::ICMPV6;
use sixway_wire::{ICMP_HEADER, IPV6_HEADER, IcmpHeader, Ipv6Header};

/// Hop limit of the request.
const HOPS: u8 = 64;
/// "6way".
const IDENTIFIER: u16 = 0x6317;

/// What the request contains and the reply repeats; it is not stored.
pub(super) type Nonce = [u8; 16];

/// The nonce of a peer's test that began at this time.
pub(super) fn nonce(key: [u64; 2], peer: Ipv6Addr, began: Stamp) -> Nonce {
    let bits = peer.to_bits();
    let high = siphash_word(key, (bits >> 64) as u64);
    let whole = siphash_word([key[0] ^ high, key[1]], bits as u64);
    let [first, second] = [0, 1].map(|word| siphash_word([key[0] ^ whole, key[1] ^ word], began.get()));
    (u128::from(first) << 64 | u128::from(second)).to_be_bytes()
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
