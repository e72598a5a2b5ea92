//! IPv6 (RFC 8200 §3) and the extension headers that a translator walks (§4):
//!
//! ```text
//!  0               1               2               3
//! |Version| Traffic Class |           Flow Label                  |
//! |         Payload Length        |  Next Header  |   Hop Limit   |
//! |                  Source Address (16 octets)                   |
//! |                Destination Address (16 octets)                |
//! ```

use super::{Addresses, Fragment, Packet, transport};
use crate::drop_reason::DropReason;
use core::net::Ipv6Addr;
use sixway_wire::protocol::{
    AUTHENTICATION, DESTINATION_OPTIONS, FRAGMENT, HIP, HOP_BY_HOP, ICMPV6, IPV4, MOBILITY, ROUTING, SHIM6,
    TCP, UDP,
};
use sixway_wire::{FRAGMENT_HEADER, IPV6_HEADER as HEADER};

/// More extension headers than this are refused; no sender needs them, and each costs a step.
const MAX_EXTENSION_HEADERS: usize = 16;

/// The result of a walk along the extension headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Chain {
    /// The first next header that is not walked past.
    pub protocol: u8,
    /// Where it starts.
    pub at: usize,
    /// Where the first Fragment header starts; 0: there is none.
    pub fragment_header: usize,
    /// Its content, atomic or not.
    pub fragment: Option<Fragment>,
    /// The offset of a routing header's Segments Left that is not zero; 0: there is none.
    pub segments_left_at: usize,
    /// An extension header follows the Fragment header.
    pub extension_after_fragment: bool,
}

/// Walks the extension headers of `bytes`, a packet from its IPv6 header on (RFC 7915 §5.1: hop-by-hop, destination
/// options and routing headers are skipped, a Fragment header is used).
pub(super) fn walk(bytes: &[u8]) -> Result<Chain, DropReason> {
    let mut chain = Chain { protocol: bytes[6], at: HEADER, ..Chain::default() };
    for _ in 0..MAX_EXTENSION_HEADERS {
        let skipped = matches!(chain.protocol, HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS);
        if !skipped && (chain.protocol != FRAGMENT || chain.fragment.is_some()) {
            return Ok(chain);
        }
        let Some(head) = bytes.get(chain.at..).and_then(<[u8]>::first_chunk::<8>) else {
            return Err(DropReason::BadExtensionHeader);
        };
        let next = head[0];
        if !skipped {
            let flags = u16::from_be_bytes([head[2], head[3]]);
            chain.fragment_header = chain.at;
            chain.fragment = Some(Fragment {
                offset: flags & 0xfff8,
                more: flags & 1 != 0,
                identification: u32::from_be_bytes([head[4], head[5], head[6], head[7]]),
            });
            chain.extension_after_fragment = is_extension_header(next);
            chain.at += FRAGMENT_HEADER;
            chain.protocol = next;
            if flags & 0xfff8 != 0 {
                return Ok(chain); // the rest is data from the middle of the original packet
            }
            continue;
        }
        let length = 8 + usize::from(head[1]) * 8;
        if chain.at + length > bytes.len() {
            return Err(DropReason::BadExtensionHeader);
        }
        if chain.protocol == ROUTING && head[3] != 0 && chain.segments_left_at == 0 {
            chain.segments_left_at = chain.at + 3;
        }
        chain.protocol = next;
        chain.at += length;
    }
    Err(DropReason::BadExtensionHeader)
}

/// Extension headers, ESP excepted: what may not follow a Fragment header through a translator (RFC 7915 §5.1.1).
const fn is_extension_header(number: u8) -> bool {
    matches!(
        number,
        HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION_OPTIONS | MOBILITY | HIP | SHIM6
    )
}

/// Where the Next Header field is that names what follows the extension headers of a packet, which was parsed from these octets.
#[cold]
pub(crate) fn last_next_header(bytes: &[u8], packet: &Packet) -> u32 {
    let (mut field, mut at, transport_at) = (6, HEADER, usize::from(packet.transport_at));
    while at < transport_at
        && let Some(&[_, length]) = bytes.get(at..).and_then(<[u8]>::first_chunk)
    {
        let is_fragment = bytes.get(field) == Some(&FRAGMENT);
        field = at;
        at += if is_fragment { FRAGMENT_HEADER } else { 8 + usize::from(length) * 8 };
    }
    field as u32
}

/// Reads a packet.
#[inline(always)]
pub(crate) fn parse(bytes: &[u8], into: &mut Packet) -> Result<(), DropReason> {
    let header = bytes.first_chunk::<HEADER>().ok_or(DropReason::Truncated)?;
    let length = HEADER + usize::from(u16::from_be_bytes([header[4], header[5]]));
    let packet = bytes.get(..length).ok_or(DropReason::Truncated)?;
    let next = header[6];
    let (addresses, _) = header[8..].as_chunks::<16>();
    let [source, destination] = *addresses else { return Err(DropReason::Truncated) };
    let addresses =
        Addresses::V6 { source: Ipv6Addr::from(source), destination: Ipv6Addr::from(destination) };
    let (hops, traffic_class) = (header[7], header[0] << 4 | header[1] >> 4);
    if next == IPV4 {
        // A tunnel packet: nothing behind its header is its own.
        *into = Packet {
            addresses,
            protocol: IPV4,
            hops,
            traffic_class,
            dont_fragment: true,
            transport_at: HEADER as u16,
            length: length as u32,
            ..Packet::EMPTY
        };
        return Ok(());
    }
    let chain = if matches!(next, UDP | TCP | ICMPV6) {
        Chain { protocol: next, at: HEADER, ..Chain::default() }
    } else {
        walk(packet)?
    };
    let later = chain.fragment.is_some_and(|fragment| fragment.offset != 0);
    *into = Packet {
        addresses,
        protocol: chain.protocol,
        hops,
        traffic_class,
        dont_fragment: true,
        transport_at: chain.at as u16,
        length: length as u32,
        fragment: chain.fragment.filter(|fragment| fragment.offset != 0 || fragment.more),
        fragment_header: chain.fragment_header as u16,
        transport: transport::parse(chain.protocol, ICMPV6, &packet[chain.at..], later)?,
        segments_left_at: chain.segments_left_at as u16,
        source_route: false,
        extension_after_fragment: chain.extension_after_fragment,
    };
    Ok(())
}
