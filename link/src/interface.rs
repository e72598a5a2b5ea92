//! Settings of a network device that need no netlink: its MTU, queue length, whether it is up, its index.

use crate::syscall::{annotate, control_socket, failed, interface_request, ioctl};
use std::ffi::CString;
use std::io;
use std::os::fd::AsFd;

/// Packets that the kernel queues for a TUN device before it drops: 500 by default, which drops in bursts long before the
/// processor is busy.
pub const QUEUE_LENGTH: u32 = 10_000;

/// Sets the MTU in octets of IP packet.
///
/// # Errors
/// What the kernel said to SIOCSIFMTU.
pub fn set_mtu(interface: &str, mtu: u32) -> io::Result<()> {
    let mut request = interface_request(interface)?;
    request.ifr_ifru.ifru_mtu = i32::try_from(mtu).unwrap_or(i32::MAX);
    ask(interface, libc::SIOCSIFMTU, "SIOCSIFMTU", &mut request)
}

/// The MTU in octets of IP packet.
///
/// # Errors
/// What the kernel said to SIOCGIFMTU.
pub fn mtu(interface: &str) -> io::Result<u32> {
    let mut request = interface_request(interface)?;
    ask(interface, libc::SIOCGIFMTU, "SIOCGIFMTU", &mut request)?;
    // SAFETY: SIOCGIFMTU filled in this member of the union.
    Ok(unsafe { request.ifr_ifru.ifru_mtu }.unsigned_abs())
}

/// Sets how many packets the kernel queues for the device; see [`QUEUE_LENGTH`].
///
/// # Errors
/// What the kernel said to SIOCSIFTXQLEN.
pub fn set_queue_length(interface: &str, packets: u32) -> io::Result<()> {
    let mut request = interface_request(interface)?;
    // The kernel's ifr_qlen is the union's plain number.
    request.ifr_ifru.ifru_metric = i32::try_from(packets).unwrap_or(i32::MAX);
    ask(interface, libc::SIOCSIFTXQLEN, "SIOCSIFTXQLEN", &mut request)
}

/// Takes the device up or down.
///
/// # Errors
/// What the kernel said to SIOCGIFFLAGS or SIOCSIFFLAGS.
pub fn set_up(interface: &str, up: bool) -> io::Result<()> {
    let mut request = interface_request(interface)?;
    ask(interface, libc::SIOCGIFFLAGS, "SIOCGIFFLAGS", &mut request)?;
    // SAFETY: SIOCGIFFLAGS filled in this member of the union.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    let bit = libc::IFF_UP as libc::c_short;
    request.ifr_ifru.ifru_flags = if up { flags | bit } else { flags & !bit };
    ask(interface, libc::SIOCSIFFLAGS, "SIOCSIFFLAGS", &mut request)
}

/// The device's index.
///
/// # Errors
/// `NotFound` (or what the kernel said) when there is no such device.
pub fn index(interface: &str) -> io::Result<u32> {
    let name = CString::new(interface).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: the name is a C string that outlives the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(failed(&format!("if_nametoindex({interface})"))),
        index => Ok(index),
    }
}

fn ask(interface: &str, number: libc::Ioctl, call: &str, request: &mut libc::ifreq) -> io::Result<()> {
    let socket = control_socket()?;
    // SAFETY: this file's requests all take an ifreq.
    unsafe { ioctl(socket.as_fd(), number, request) }
        .map_err(|error| annotate(error, &format!("{call} {interface}")))
}
