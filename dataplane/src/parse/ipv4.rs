//! IPv4 (RFC 791 §3.1):
//!
//! ```text
//!  0               1               2               3
//! |Version|  IHL  |Type of Service|         Total Length          |
//! |        Identification         |0|D|M|   Fragment Offset       |
//! | Time to Live  |   Protocol    |        Header Checksum        |
//! |                        Source Address                         |
//! |                     Destination Address                       |
//! |                    Options (0 to 40 octets)                   |
//! ```

use super::{Addresses, Fragment, Packet, transport};
use crate::drop_reason::DropReason;
use core::net::Ipv4Addr;
use sixway_wire::IPV4_HEADER as HEADER;
use sixway_wire::checksum::Sum;
use sixway_wire::protocol;

/// Loose source route (RFC 791 §3.1).
const LSRR: u8 = 131;
/// Strict source route (RFC 791 §3.1).
const SSRR: u8 = 137;

/// Reads a packet and validates its header as RFC 1812 §5.2.2 asks.
#[inline(always)]
pub(crate) fn parse(bytes: &[u8], packet: &mut Packet) -> Result<(), DropReason> {
    let header = bytes.first_chunk::<HEADER>().ok_or(DropReason::Truncated)?;
    let header_length = usize::from(header[0] & 15) * 4;
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if header_length < HEADER || length < header_length {
        return Err(DropReason::BadIpv4Length);
    }
    if length > bytes.len() {
        return Err(DropReason::Truncated);
    }
    let mut sum = Sum::ZERO.bytes(header);
    let mut source_route = false;
    if header_length > HEADER {
        let options = &bytes[HEADER..header_length];
        sum = sum.bytes(options);
        source_route = unexpired_source_route(options);
    }
    if sum.fold() != 0xffff {
        return Err(DropReason::BadIpv4Checksum);
    }

    let flags = u16::from_be_bytes([header[6], header[7]]);
    let fragment = (flags & 0x3fff != 0).then(|| Fragment {
        offset: (flags & 0x1fff) * 8,
        more: flags & 0x2000 != 0,
        identification: u32::from(u16::from_be_bytes([header[4], header[5]])),
    });
    let number = header[9];
    let later = flags & 0x1fff != 0;
    *packet = Packet {
        addresses: Addresses::V4 {
            source: Ipv4Addr::new(header[12], header[13], header[14], header[15]),
            destination: Ipv4Addr::new(header[16], header[17], header[18], header[19]),
        },
        protocol: number,
        hops: header[8],
        traffic_class: header[1],
        dont_fragment: flags & 0x4000 != 0,
        transport_at: header_length as u16,
        length: length as u32,
        fragment,
        fragment_header: 0,
        transport: transport::parse(number, protocol::ICMPV4, &bytes[header_length..length], later)?,
        segments_left_at: 0,
        source_route,
        extension_after_fragment: false,
    };
    Ok(())
}

/// Whether the options hold a source route whose pointer is not past its end (RFC 791 §3.1).
fn unexpired_source_route(mut options: &[u8]) -> bool {
    while let [kind, rest @ ..] = options {
        match (kind, rest) {
            (0, _) => return false,
            (1, _) => options = rest,
            (&(LSRR | SSRR), [length, pointer, ..]) if *length > 0 => {
                if pointer <= length {
                    return true;
                }
                options = options.get(usize::from(*length)..).unwrap_or_default();
            }
            (_, [length, ..]) if *length > 0 => {
                options = options.get(usize::from(*length)..).unwrap_or_default();
            }
            _ => return false,
        }
    }
    false
}
