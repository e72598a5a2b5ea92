//! Receiving whole IPv4 packets from a raw socket, several with each call.

use crate::LinkCounters;
use crate::syscall::{set_number, set_receive_room};
use sixway_dataplane::{Frame, Offload};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::null_mut;

/// Packets received with one call: enough to spread the cost of the call, and few enough that as many GSO packets are still in the
/// processor's cache when the engine sees them.
const MESSAGES: usize = 16;

/// Receive buffer of a socket in octets. The kernel counts its own book-keeping, too: room for some 3,500 packets of 1,300 octets.
const ROOM: libc::c_int = 8 * 1024 * 1024;

/// Room for one control message: SO_RXQ_OVFL's number behind its header, aligned as both want.
type Control = [u64; 3];

/// A raw IPv4 socket to receive from.
#[derive(Debug)]
pub(crate) struct Inbox {
    fd: OwnedFd,
    /// The last value of SO_RXQ_OVFL, which only grows, and wraps.
    overflow: u32,
}

impl Inbox {
    /// Prepares a raw socket: a large receive buffer, and a count of packets dropped for lack of room.
    pub(crate) fn new(fd: OwnedFd) -> io::Result<Self> {
        set_receive_room(fd.as_fd(), ROOM)?;
        set_number(fd.as_fd(), libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1, "SO_RXQ_OVFL")?;
        Ok(Self { fd, overflow: 0 })
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Discards packets that arrived before the socket was bound and its filters were attached: they may be for any address.
    pub(crate) fn discard_early(&mut self) -> io::Result<()> {
        let mut frames = [Frame::with_capacity(0)];
        // Bounded, because a flood could continue for ever.
        for _ in 0..100_000 {
            if self.receive(&mut frames, &mut LinkCounters::default())? == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Receives packets into the frames, at most [`MESSAGES`], and counts them. None when nothing waits.
    pub(crate) fn receive(&mut self, frames: &mut [Frame], counters: &mut LinkCounters) -> io::Result<usize> {
        let count = frames.len().min(MESSAGES);
        let mut pieces = [libc::iovec { iov_base: null_mut(), iov_len: 0 }; MESSAGES];
        let mut controls = [Control::default(); MESSAGES];
        // SAFETY: mmsghdr is plain data for which all zeroes is a valid value.
        let mut headers: [libc::mmsghdr; MESSAGES] = unsafe { MaybeUninit::zeroed().assume_init() };
        for (((frame, piece), control), header) in
            frames.iter_mut().zip(&mut pieces).zip(&mut controls).zip(&mut headers)
        {
            let space = frame.space();
            *piece = libc::iovec { iov_base: space.as_mut_ptr().cast(), iov_len: space.len() };
            header.msg_hdr.msg_iov = piece;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = control.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = size_of::<Control>() as _;
        }
        // SAFETY: the first `count` headers point to pieces, controls and frames that outlive the call and are not used
        // otherwise meanwhile, with their true lengths.
        let received = unsafe {
            libc::recvmmsg(
                self.fd.as_raw_fd(),
                headers.as_mut_ptr(),
                count as libc::c_uint,
                libc::MSG_DONTWAIT,
                null_mut(),
            )
        };
        let Ok(received) = usize::try_from(received) else {
            let error = io::Error::last_os_error();
            let nothing = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
            return if nothing { Ok(0) } else { Err(error) };
        };
        for (frame, header) in frames.iter_mut().zip(&headers).take(received) {
            frame.received(header.msg_len as usize, Offload::default());
            counters.received_octets += u64::from(header.msg_len);
            counters.truncated += u64::from(header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0);
        }
        counters.received += received as u64;
        // The number grows from packet to packet: the last one's tells it all.
        if let Some(overflow) = headers[..received].last().and_then(|header| overflow(&header.msg_hdr)) {
            counters.overflowed += u64::from(overflow.wrapping_sub(self.overflow));
            self.overflow = overflow;
        }
        Ok(received)
    }
}

/// The kernel's count of packets it had no room for; `None` as long as there were none.
fn overflow(header: &libc::msghdr) -> Option<u32> {
    // SAFETY: the kernel filled in the header's control buffer and its length; a first message, if there is one, lies in it
    // whole, and one of this kind holds a 32-bit number.
    unsafe {
        let message = libc::CMSG_FIRSTHDR(header);
        let known = !message.is_null()
            && (*message).cmsg_level == libc::SOL_SOCKET
            && (*message).cmsg_type == libc::SO_RXQ_OVFL;
        known.then(|| libc::CMSG_DATA(message).cast::<u32>().read_unaligned())
    }
}
