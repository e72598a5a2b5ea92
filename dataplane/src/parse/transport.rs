//! The fields of transport headers that decisions depend on: ports, TCP's flags, ICMP's type.

use super::Transport;
use crate::drop_reason::DropReason;
use sixway_wire::protocol::{DCCP, ICMPV4, SCTP, TCP, UDP, UDP_LITE};
use sixway_wire::{ICMP_HEADER, TCP_HEADER, UDP_HEADER, icmpv4, icmpv6};

/// Reads the transport header of `protocol` at the start of `data`. `icmp` is the family's own ICMP; `later` says that
/// this is a fragment from the middle of a packet, which has none.
#[inline(always)]
pub(super) fn parse(protocol: u8, icmp: u8, data: &[u8], later: bool) -> Result<Transport, DropReason> {
    if later {
        return Ok(Transport::Opaque);
    }
    match protocol {
        UDP => ports(data.first_chunk::<UDP_HEADER>().ok_or(DropReason::TransportTruncated)?, 0),
        TCP => {
            let header = data.first_chunk::<TCP_HEADER>().ok_or(DropReason::TransportTruncated)?;
            if header[12] < 0x50 {
                return Err(DropReason::TransportTruncated);
            }
            ports(header, header[13])
        }
        _ if protocol == icmp => {
            let header = data.first_chunk::<ICMP_HEADER>().ok_or(DropReason::TransportTruncated)?;
            Ok(icmp_message(icmp == ICMPV4, header))
        }
        UDP_LITE | DCCP | SCTP => match data.first_chunk::<UDP_HEADER>() {
            Some(header) => ports(header, 0),
            None => Ok(Transport::Opaque),
        },
        _ => Ok(Transport::Opaque),
    }
}

#[inline(always)]
fn ports(header: &[u8], tcp_flags: u8) -> Result<Transport, DropReason> {
    let [a, b, c, d, ..] = *header else { return Err(DropReason::TransportTruncated) };
    Ok(Transport::Ports {
        source: u16::from_be_bytes([a, b]),
        destination: u16::from_be_bytes([c, d]),
        tcp_flags,
    })
}

/// A function of its own, out of the way of ports.
#[cold]
#[inline(never)]
fn icmp_message(v4: bool, header: &[u8; ICMP_HEADER]) -> Transport {
    let (kind, code) = (header[0], header[1]);
    let is_error = if v4 { icmpv4::is_error(kind) } else { icmpv6::is_error(kind) };
    if is_error {
        return Transport::IcmpError { kind, code };
    }
    let is_query = if v4 { icmpv4::has_identifier(kind) } else { icmpv6::is_echo(kind) };
    let identifier = if is_query { u16::from_be_bytes([header[4], header[5]]) } else { 0 };
    Transport::IcmpQuery { kind, code, identifier }
}
