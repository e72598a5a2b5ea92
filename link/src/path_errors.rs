//! ICMPv4 errors about our tunnel packets: whole, as they arrived.
//!
//! Tunnel packets leave with the host's own address, so errors about them come to the host and would end in its kernel. A raw ICMP socket
//! receives a copy of those that matter; a filter in the kernel drops all others.
//!
//! ```text
//!   +-------------+------+-------------+-----------------------+
//!   | IPv4 header | ICMP | quoted IPv4 | quoted IPv6 packet ...|
//!   | to us       | 8    | from us, 41 |                       |
//!   +-------------+------+-------------+-----------------------+
//! ```
//! (RFC 792; RFC 1812 §4.3.2.3: as much of the packet as fits into 576 octets; many routers quote 8 octets behind the header.)

use crate::raw::Inbox;
use crate::syscall::{annotate, attach_filter, raw_socket, set_option};
use crate::{Link, LinkCounters};
use sixway_dataplane::Frame;
use sixway_wire::checksum::Sum;
use sixway_wire::{Ipv4Header, icmpv4, protocol};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::BorrowedFd;

/// The socket option of raw(7): a set bit keeps away the ICMP type of that number.
const ICMP_FILTER: libc::c_int = 1;

/// RFC 792: Destination Unreachable, Time Exceeded, Parameter Problem. Source Quench is not heard (RFC 6633 §3).
const ERRORS: [u8; 3] = [icmpv4::DESTINATION_UNREACHABLE, icmpv4::TIME_EXCEEDED, icmpv4::PARAMETER_PROBLEM];

/// The most addresses that the filter has room for (4,096 instructions).
pub const ADDRESSES: usize = 2_000;

/// ICMPv4 errors that quote protocol 41 packets sent from our addresses. It receives only; what is given to [`Link::send`]
/// is counted as refused.
#[derive(Debug)]
pub struct PathErrors {
    inbox: Inbox,
    counters: LinkCounters,
}

impl PathErrors {
    /// Opens the socket, for packets sent from these addresses.
    ///
    /// # Errors
    /// The kernel's error, with the call that failed. `PermissionDenied`: CAP_NET_RAW is missing. `InvalidInput`: more than
    /// [`ADDRESSES`].
    pub fn open(addresses: &[Ipv4Addr]) -> io::Result<Self> {
        let fd = raw_socket(libc::AF_INET, libc::IPPROTO_ICMP)?;
        let others: u32 = !ERRORS.iter().fold(0, |bits, kind| bits | 1 << kind);
        let mut link = Self { inbox: Inbox::new(fd)?, counters: LinkCounters::default() };
        // SAFETY: ICMP_FILTER takes struct icmp_filter, a 32-bit number.
        unsafe { set_option(link.inbox.descriptor(), libc::SOL_RAW, ICMP_FILTER, &others, "ICMP_FILTER") }?;
        link.set_addresses(addresses)?;
        link.inbox.discard_early()?;
        Ok(link)
    }

    /// Replaces the addresses immediately.
    ///
    /// # Errors
    /// As for [`PathErrors::open`]; the former addresses stay.
    pub fn set_addresses(&mut self, addresses: &[Ipv4Addr]) -> io::Result<()> {
        if addresses.len() > ADDRESSES {
            let message = format!("{} local addresses; at most {ADDRESSES}", addresses.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        attach_filter(self.inbox.descriptor(), &mut filter(addresses))
    }
}

/// The classic BPF program: the packet whole where it quotes protocol 41 from one of the addresses, else nothing. It reads
/// from the IPv4 header on; what is too short to be read is nothing, too.
fn filter(addresses: &[Ipv4Addr]) -> Vec<libc::sock_filter> {
    const LOAD_BYTE: u32 = libc::BPF_LD | libc::BPF_B | libc::BPF_IND;
    const LOAD_WORD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_IND;
    const HEADER_LENGTH: u32 = libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH;
    const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    /// ICMP's header, then so far into the quoted IPv4 header.
    const QUOTED_PROTOCOL: u32 = 8 + 9;
    const QUOTED_SOURCE: u32 = 8 + 12;
    let instruction = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut program = vec![
        instruction(HEADER_LENGTH, 0, 0, 0),
        instruction(LOAD_BYTE, 0, 0, QUOTED_PROTOCOL),
        instruction(IF_EQUAL, 1, 0, u32::from(protocol::IPV6)),
        instruction(RETURN, 0, 0, 0),
        instruction(LOAD_WORD, 0, 0, QUOTED_SOURCE),
    ];
    for address in addresses {
        program.push(instruction(IF_EQUAL, 0, 1, u32::from(*address)));
        program.push(instruction(RETURN, 0, 0, u32::MAX));
    }
    program.push(instruction(RETURN, 0, 0, 0));
    program
}

/// Whether the ICMP checksum is true: a raw socket gets its copy before the kernel looks at it.
fn sound(packet: &[u8]) -> bool {
    Ipv4Header::split_quoted(packet).is_ok_and(|(_, message)| Sum::ZERO.bytes(message).fold() == 0xffff)
}

impl Link for PathErrors {
    fn receive(&mut self, frames: &mut [Frame]) -> io::Result<usize> {
        let Self { inbox, counters } = self;
        let received = inbox.receive(frames, counters);
        let received = received.map_err(|error| annotate(error, "receive ICMP errors"))?;
        let mut kept = 0;
        for at in 0..received {
            if sound(frames[at].bytes()) {
                frames.swap(kept, at);
                kept += 1;
            } else {
                counters.damaged += 1;
            }
        }
        Ok(kept)
    }

    fn send(&mut self, _: &mut Frame) -> io::Result<()> {
        self.counters.refused += 1;
        Ok(())
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.inbox.descriptor())
    }

    fn counters(&self) -> &LinkCounters {
        &self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_has_room_for_its_addresses_and_two_instructions_for_each() {
        let addresses: Vec<_> = (0..ADDRESSES as u32).map(Ipv4Addr::from).collect();
        assert_eq!(filter(&[]).len(), 6);
        assert_eq!(filter(&addresses[..3]).len(), 12);
        assert!(filter(&addresses).len() <= 4_096);
    }

    #[test]
    fn a_message_with_a_wrong_checksum_is_invalid_and_so_is_one_without_a_message() {
        let mut message = vec![0x45; 20];
        message.extend([3, 4, 0, 0, 0, 0, 5, 0]);
        assert!(!sound(&message));
        let checksum = Sum::ZERO.bytes(&message[20..]).checksum();
        message[22..24].copy_from_slice(&checksum.to_be_bytes());
        assert!(sound(&message));
        assert!(!sound(&message[..10]) && !sound(&[]));
    }
}
