//! System calls that the standard library does not offer, each in a safe function.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The kernel's last word on `call`, with the call's name in the message and the kind kept.
pub(crate) fn failed(call: &str) -> io::Error {
    annotate(io::Error::last_os_error(), call)
}

/// `error` with the name of the call that failed in its message, its kind kept.
pub(crate) fn annotate(error: io::Error, call: &str) -> io::Error {
    io::Error::new(error.kind(), format!("{call}: {error}"))
}

/// The network device request of `ioctl`, naming `interface`.
///
/// # Errors
/// `InvalidInput` when the name does not fit into 15 octets or holds a zero.
pub(crate) fn interface_request(interface: &str) -> io::Result<libc::ifreq> {
    if interface.len() >= libc::IFNAMSIZ || interface.bytes().any(|octet| octet == 0) {
        let message =
            format!("\"{interface}\" is not a valid interface name: at most 15 octets, none of them zero");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    // SAFETY: ifreq is plain data for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

/// Attaches a classic BPF program to a socket, in place of an earlier one.
///
/// # Errors
/// The kernel's error of SO_ATTACH_FILTER.
pub(crate) fn attach_filter(fd: BorrowedFd<'_>, filter: &mut [libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog { len: filter.len() as libc::c_ushort, filter: filter.as_mut_ptr() };
    // SAFETY: SO_ATTACH_FILTER takes a sock_fprog; the kernel copies the instructions, which outlive the call.
    unsafe { set_option(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program, "SO_ATTACH_FILTER") }
}

/// `ioctl` with a pointer to a value that the kernel may read and change.
///
/// # Safety
/// `T` must be the type that `request` asks for.
pub(crate) unsafe fn ioctl<T>(fd: BorrowedFd<'_>, request: libc::Ioctl, argument: &mut T) -> io::Result<()> {
    // SAFETY: the pointer is valid for the call; the caller guarantees that its type is the one `request` asks for.
    match unsafe { libc::ioctl(fd.as_raw_fd(), request, std::ptr::from_mut(argument)) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// `ioctl` with a number as its argument.
///
/// # Safety
/// `request` must be one that takes a number, not a pointer.
pub(crate) unsafe fn ioctl_number(
    fd: BorrowedFd<'_>,
    request: libc::Ioctl,
    number: libc::c_ulong,
) -> io::Result<()> {
    // SAFETY: the caller guarantees that `request` takes no pointer, so that the kernel touches no memory of ours.
    match unsafe { libc::ioctl(fd.as_raw_fd(), request, number) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// A datagram socket, whose only use is that `ioctl` reaches the network devices through it.
pub(crate) fn control_socket() -> io::Result<OwnedFd> {
    socket(libc::AF_INET, libc::SOCK_DGRAM, 0)
}

/// A socket to the kernel's routing tables and devices.
pub(crate) fn netlink_socket() -> io::Result<OwnedFd> {
    socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)
}

/// A raw socket that never waits.
pub(crate) fn raw_socket(family: libc::c_int, protocol: libc::c_int) -> io::Result<OwnedFd> {
    socket(family, libc::SOCK_RAW | libc::SOCK_NONBLOCK, protocol)
}

/// A datagram socket that never waits.
pub(crate) fn datagram_socket(family: libc::c_int) -> io::Result<OwnedFd> {
    bare_socket(family, libc::SOCK_DGRAM | libc::SOCK_NONBLOCK, 0)
}

fn socket(family: libc::c_int, kind: libc::c_int, protocol: libc::c_int) -> io::Result<OwnedFd> {
    bare_socket(family, kind, protocol).map_err(|error| annotate(error, "socket"))
}

fn bare_socket(family: libc::c_int, kind: libc::c_int, protocol: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: socket touches no memory of ours.
    let fd = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: fd was just opened, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// `setsockopt`; `call` names it in the error.
///
/// # Safety
/// `T` must be plain data, and the type that the option asks for.
pub(crate) unsafe fn set_option<T>(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
    call: &str,
) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the value is valid for the call, which reads it alone; the caller guarantees its type.
    match unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, std::ptr::from_ref(value).cast(), length) }
    {
        -1 => Err(failed(call)),
        _ => Ok(()),
    }
}

/// `setsockopt` of an option that is a plain number.
pub(crate) fn set_number(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    number: libc::c_int,
    call: &str,
) -> io::Result<()> {
    // SAFETY: callers name options whose value is an int; the kernel refuses those that want more octets, and for those
    // that hold a pointer an int is too short.
    unsafe { set_option(fd, level, option, &number, call) }
}

/// Room for what a socket received: as much as the host allows (`SO_RCVBUFFORCE` needs CAP_NET_ADMIN).
pub(crate) fn set_receive_room(fd: BorrowedFd<'_>, octets: libc::c_int) -> io::Result<()> {
    let forced = set_number(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, octets, "SO_RCVBUFFORCE");
    forced.or_else(|_| set_number(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, octets, "SO_RCVBUF"))
}

/// An IPv4 address for the calls on sockets.
pub(crate) fn socket_address4(address: Ipv4Addr) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: 0,
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.octets()) },
        sin_zero: [0; 8],
    }
}

/// `read`; the error is the bare one, for the caller to tell apart cheaply.
#[inline]
pub(crate) fn read(fd: BorrowedFd<'_>, space: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the slice is exclusive and outlives the call.
    let read = unsafe { libc::read(fd.as_raw_fd(), space.as_mut_ptr().cast(), space.len()) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

/// `write`; the error is the bare one.
#[inline]
pub(crate) fn write(fd: BorrowedFd<'_>, octets: &[u8]) -> io::Result<usize> {
    // SAFETY: the slice outlives the call.
    let written = unsafe { libc::write(fd.as_raw_fd(), octets.as_ptr().cast(), octets.len()) };
    usize::try_from(written).map_err(|_| io::Error::last_os_error())
}
