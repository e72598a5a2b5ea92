//! Datagrams that wait for the end of a batch, and leave with one system call. Those that follow one another to one destination, with one length,
//! are cut by the kernel, or by the network card (UDP_SEGMENT): together they cost little more than one.

use super::address::Address;
use crate::LinkCounters;
use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::null_mut;

/// Groups that one system call sends.
const GROUPS: usize = 64;
/// Datagrams of a group: UDP_MAX_SEGMENTS of kernels before 6.9.
const MEMBERS: usize = 64;
/// Octets of a group, less than IPv4's maximum.
const LONGEST: usize = 65_000;
/// Octets that wait at most; one more datagram of any length fits.
const WAITING: usize = 256 * 1024;

/// Room for two control messages: the length of the datagrams, and the TOS field.
type Control = [u64; 6];

/// Datagrams that wait, in order.
#[derive(Debug)]
pub(super) struct Departing {
    octets: Vec<u8>,
    groups: Vec<Group>,
}

/// Datagrams that follow one another.
#[derive(Clone, Copy, Debug)]
struct Group {
    to: SocketAddrV4,
    tos: u8,
    /// Octets of each but the last.
    datagram: usize,
    members: usize,
    from: usize,
    length: usize,
}

impl Group {
    /// Whether a datagram may follow: one that is shorter is the last.
    const fn is_open(&self) -> bool {
        self.length == self.datagram * self.members
    }
}

impl Departing {
    pub(super) fn new() -> Self {
        Self { octets: Vec::with_capacity(WAITING), groups: Vec::with_capacity(GROUPS) }
    }

    /// Whether one more datagram of this length may wait.
    pub(super) fn has_room(&self, length: usize) -> bool {
        self.groups.len() < GROUPS && self.octets.len() + length <= WAITING
    }

    /// Adds a datagram behind the others.
    pub(super) fn add(&mut self, to: SocketAddrV4, tos: u8, payload: &[u8]) {
        let from = self.octets.len();
        self.octets.extend_from_slice(payload);
        let length = payload.len();
        if let Some(last) = self.groups.last_mut()
            && (last.to, last.tos) == (to, tos)
            && last.is_open()
            && length > 0
            && length <= last.datagram
            && last.members < MEMBERS
            && last.length + length <= LONGEST
        {
            last.members += 1;
            last.length += length;
            return;
        }
        self.groups.push(Group { to, tos, datagram: length, members: 1, from, length });
    }

    /// Sends all. What the kernel refuses is dropped and counted.
    pub(super) fn send_all(&mut self, fd: BorrowedFd<'_>, counters: &mut LinkCounters) {
        let mut rest = &self.groups[..];
        while !rest.is_empty() {
            let error = match send(fd, rest, &self.octets) {
                Ok(sent) => {
                    rest[..sent].iter().for_each(|group| sent_whole(group, counters));
                    rest = &rest[sent..];
                    continue;
                }
                Err(error) => error,
            };
            let first = rest[0];
            match error.kind() {
                io::ErrorKind::Interrupted => continue,
                io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => {
                    counters.no_room += rest.iter().map(|group| group.members as u64).sum::<u64>();
                    break;
                }
                // The group is longer than the path carries in one piece each, or the device cannot cut it.
                _ if first.members > 1 => send_one_by_one(fd, &first, &self.octets, counters),
                // That one alone: its destination or its path is at fault.
                _ => refused(&error, counters),
            }
            rest = &rest[1..];
        }
        self.groups.clear();
        self.octets.clear();
    }
}

fn refused(error: &io::Error, counters: &mut LinkCounters) {
    match error.raw_os_error() {
        Some(libc::ENOBUFS | libc::ENOMEM | libc::EAGAIN) => counters.no_room += 1,
        Some(_) | None => counters.refused += 1,
    }
}

/// RFC 791 §3.1 and RFC 768: headers of each datagram.
const HEADERS: usize = 28;

fn sent_whole(group: &Group, counters: &mut LinkCounters) {
    counters.sent += group.members as u64;
    counters.sent_octets += (group.length + group.members * HEADERS) as u64;
    counters.sent_gso += u64::from(group.members > 1);
}

fn send_one_by_one(fd: BorrowedFd<'_>, group: &Group, octets: &[u8], counters: &mut LinkCounters) {
    let end = group.from + group.length;
    for from in (group.from..end).step_by(group.datagram) {
        let length = group.datagram.min(end - from);
        let one = Group { datagram: length, members: 1, from, length, ..*group };
        match send(fd, &[one], octets) {
            Ok(_) => sent_whole(&one, counters),
            Err(error) => refused(&error, counters),
        }
    }
}

/// Sends groups, at most as many as fit, and returns how many: one at least.
fn send(fd: BorrowedFd<'_>, groups: &[Group], octets: &[u8]) -> io::Result<usize> {
    let mut names = [(Address::NONE, 0); GROUPS];
    let mut controls = [Control::default(); GROUPS];
    let mut pieces = [libc::iovec { iov_base: null_mut(), iov_len: 0 }; GROUPS];
    // SAFETY: mmsghdr is plain data for which all zeroes is a valid value.
    let mut headers: [libc::mmsghdr; GROUPS] = unsafe { MaybeUninit::zeroed().assume_init() };
    let count = groups.len().min(GROUPS);
    for (place, group) in groups[..count].iter().enumerate() {
        names[place] = Address::of(group.to.into());
        let payload = &octets[group.from..group.from + group.length];
        pieces[place] = libc::iovec { iov_base: payload.as_ptr().cast_mut().cast(), iov_len: payload.len() };
        let header = &mut headers[place].msg_hdr;
        header.msg_name = std::ptr::from_mut(&mut names[place].0).cast();
        header.msg_namelen = names[place].1;
        header.msg_iov = &mut pieces[place];
        header.msg_iovlen = 1;
        write_control(header, &mut controls[place], group);
    }
    // SAFETY: the headers point to names, pieces, controls and octets that outlive the call, with their true lengths; the kernel only reads the
    // octets.
    let sent = unsafe {
        libc::sendmmsg(
            fd.as_raw_fd(),
            headers.as_mut_ptr(),
            count as libc::c_uint,
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
        )
    };
    usize::try_from(sent).map(|sent| sent.max(1)).map_err(|_| io::Error::last_os_error())
}

/// Writes the TOS field, and how the group is cut.
fn write_control(header: &mut libc::msghdr, control: &mut Control, group: &Group) {
    if group.members == 1 && group.tos == 0 {
        return;
    }
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of::<Control>() as _;
    let mut used = 0;
    // SAFETY: the buffer has room for both messages (each CMSG_SPACE(4), 24 octets), CMSG_FIRSTHDR gives its beginning, and CMSG_NXTHDR what follows
    // the first, whose length is written by then; IP_TOS takes an int, UDP_SEGMENT a 16-bit number.
    unsafe {
        let mut next = libc::CMSG_FIRSTHDR(header);
        if group.tos != 0 {
            (*next).cmsg_level = libc::IPPROTO_IP;
            (*next).cmsg_type = libc::IP_TOS;
            (*next).cmsg_len = libc::CMSG_LEN(4) as _;
            libc::CMSG_DATA(next).cast::<libc::c_int>().write_unaligned(group.tos.into());
            used += libc::CMSG_SPACE(4);
            next = libc::CMSG_NXTHDR(header, next);
        }
        if group.members > 1 && !next.is_null() {
            (*next).cmsg_level = libc::SOL_UDP;
            (*next).cmsg_type = libc::UDP_SEGMENT;
            (*next).cmsg_len = libc::CMSG_LEN(2) as _;
            libc::CMSG_DATA(next).cast::<u16>().write_unaligned(group.datagram as u16);
            used += libc::CMSG_SPACE(2);
        }
    }
    header.msg_controllen = used as _;
}
