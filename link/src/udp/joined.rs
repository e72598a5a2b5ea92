//! Datagrams as the kernel hands them over: those of one sender, of one length, joined (UDP_GRO). They are taken apart one by one.

use super::address::Address;
use crate::LinkCounters;
use std::io;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::null_mut;

/// Buffers filled with one call.
const MESSAGES: usize = 16;
/// Octets of a buffer: the longest that the kernel joins. They begin at different offsets of a page, or they would evict one another from the
/// cache.
const LONGEST: usize = 65_536 + 192;

/// Room for three control messages: the length of joined datagrams, the TOS field and SO_RXQ_OVFL's number.
type Control = [u64; 12];

/// Datagrams that were received and not yet taken.
#[derive(Debug)]
pub(super) struct Joined {
    octets: Box<[u8]>,
    buffers: [Buffer; MESSAGES],
    /// Buffers that are filled.
    count: usize,
    /// The one that the next datagram is in, and its first octet there.
    at: (usize, usize),
    /// The last value of SO_RXQ_OVFL, which only grows, and wraps.
    overflow: u32,
}

/// What is in a buffer.
#[derive(Clone, Copy, Debug)]
struct Buffer {
    from: SocketAddrV4,
    tos: u8,
    length: usize,
    /// Octets of each datagram but the last, which may be shorter.
    datagram: usize,
}

/// A datagram.
pub(super) struct Datagram<'a> {
    pub from: SocketAddrV4,
    pub tos: u8,
    pub payload: &'a [u8],
}

impl Joined {
    pub(super) fn new() -> Self {
        let empty =
            Buffer { from: SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0), tos: 0, length: 0, datagram: 0 };
        Self {
            octets: vec![0; MESSAGES * LONGEST].into(),
            buffers: [empty; MESSAGES],
            count: 0,
            at: (0, 0),
            overflow: 0,
        }
    }

    /// The next datagram; `None`: all are taken.
    pub(super) fn next(&mut self) -> Option<Datagram<'_>> {
        let (place, offset) = self.at;
        let buffer = self.buffers[..self.count].get(place)?;
        let end = buffer.length.min(offset + buffer.datagram);
        self.at = if end < buffer.length { (place, end) } else { (place + 1, 0) };
        let room = &self.octets[place * LONGEST..];
        Some(Datagram { from: buffer.from, tos: buffer.tos, payload: &room[offset..end] })
    }

    /// Receives what waits, once all are taken, and returns how many buffers it filled.
    pub(super) fn receive(&mut self, fd: BorrowedFd<'_>, counters: &mut LinkCounters) -> io::Result<usize> {
        let mut names = [Address::NONE; MESSAGES];
        let mut controls = [Control::default(); MESSAGES];
        let mut pieces = [libc::iovec { iov_base: null_mut(), iov_len: 0 }; MESSAGES];
        // SAFETY: mmsghdr is plain data for which all zeroes is a valid value.
        let mut headers: [libc::mmsghdr; MESSAGES] = unsafe { MaybeUninit::zeroed().assume_init() };
        let rooms = self.octets.chunks_exact_mut(LONGEST);
        let all = rooms.zip(&mut names).zip(&mut controls).zip(&mut pieces).zip(&mut headers);
        for ((((room, name), control), piece), header) in all {
            *piece = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
            let header = &mut header.msg_hdr;
            header.msg_name = std::ptr::from_mut(name).cast();
            header.msg_namelen = Address::SIZE;
            header.msg_iov = piece;
            header.msg_iovlen = 1;
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = size_of::<Control>() as _;
        }
        (self.count, self.at) = (0, (0, 0));
        // SAFETY: the headers point to names, pieces, controls and rooms that outlive the call and are not used otherwise meanwhile, with
        // their true lengths.
        let received = unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                headers.as_mut_ptr(),
                MESSAGES as libc::c_uint,
                libc::MSG_DONTWAIT,
                null_mut(),
            )
        };
        let Ok(received) = usize::try_from(received) else {
            let error = io::Error::last_os_error();
            let nothing = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
            return if nothing { Ok(0) } else { Err(error) };
        };
        for (place, (header, name)) in headers[..received].iter().zip(&names).enumerate() {
            let length = (header.msg_len as usize).min(LONGEST);
            let said = control(&header.msg_hdr);
            counters.truncated += u64::from(header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0);
            if let Some(overflow) = said.overflow {
                counters.overflowed += u64::from(overflow.wrapping_sub(self.overflow));
                self.overflow = overflow;
            }
            let joined = said.datagram.filter(|datagram| *datagram > 0 && *datagram < length);
            counters.received_gso += u64::from(joined.is_some());
            // The kernel gives no datagram of another family.
            let from = match name.read() {
                Some(SocketAddr::V4(from)) => from,
                Some(SocketAddr::V6(_)) | None => SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0),
            };
            let datagram = joined.unwrap_or(length);
            self.buffers[place] = Buffer { from, tos: said.tos, length, datagram };
        }
        self.count = received;
        Ok(received)
    }
}

#[derive(Clone, Copy, Default)]
struct Said {
    datagram: Option<usize>,
    tos: u8,
    overflow: Option<u32>,
}

/// Reads the control messages.
fn control(header: &libc::msghdr) -> Said {
    let mut said = Said::default();
    // SAFETY: the kernel filled in the control buffer and its length; the messages lie in it whole, and those of these kinds hold an int, an octet
    // and a 32-bit number.
    unsafe {
        let mut next = libc::CMSG_FIRSTHDR(header);
        while !next.is_null() {
            let data = libc::CMSG_DATA(next);
            match ((*next).cmsg_level, (*next).cmsg_type) {
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    said.datagram = usize::try_from(data.cast::<libc::c_int>().read_unaligned()).ok();
                }
                (libc::IPPROTO_IP, libc::IP_TOS) => said.tos = data.read(),
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                    said.overflow = Some(data.cast::<u32>().read_unaligned());
                }
                _ => {}
            }
            next = libc::CMSG_NXTHDR(header, next);
        }
    }
    said
}
