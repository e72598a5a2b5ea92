//! A network device's properties that need no netlink: its MTU, queue length, whether it is up, its index and own addresses.

use crate::syscall::{annotate, control_socket, failed, interface_request, ioctl};
use std::ffi::CString;
use std::io;
use std::net::Ipv6Addr;
use std::os::fd::AsFd;

/// Packets that the kernel queues for a TUN device before it drops: 500 by default, which drops in bursts long before the
/// processor is busy.
pub const QUEUE_LENGTH: u32 = 10_000;

/// Sets the MTU in octets of IP packet.
///
/// # Errors
/// The kernel's error of SIOCSIFMTU.
pub fn set_mtu(interface: &str, mtu: u32) -> io::Result<()> {
    let mut request = interface_request(interface)?;
    request.ifr_ifru.ifru_mtu = i32::try_from(mtu).unwrap_or(i32::MAX);
    ask(interface, libc::SIOCSIFMTU, "SIOCSIFMTU", &mut request)
}

/// The MTU in octets of IP packet.
///
/// # Errors
/// The kernel's error of SIOCGIFMTU.
pub fn mtu(interface: &str) -> io::Result<u32> {
    let mut request = interface_request(interface)?;
    ask(interface, libc::SIOCGIFMTU, "SIOCGIFMTU", &mut request)?;
    // SAFETY: SIOCGIFMTU filled in this member of the union.
    Ok(unsafe { request.ifr_ifru.ifru_mtu }.unsigned_abs())
}

/// Sets how many packets the kernel queues for the device; see [`QUEUE_LENGTH`].
///
/// # Errors
/// The kernel's error of SIOCSIFTXQLEN. It grants that only in the initial user namespace: in others, such as a container without root, the queue
/// keeps its length.
pub fn set_queue_length(interface: &str, packets: u32) -> io::Result<()> {
    let mut request = interface_request(interface)?;
    // The kernel's ifr_qlen is the union's plain number.
    request.ifr_ifru.ifru_metric = i32::try_from(packets).unwrap_or(i32::MAX);
    match ask(interface, libc::SIOCSIFTXQLEN, "SIOCSIFTXQLEN", &mut request) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        other => other,
    }
}

/// How many packets the kernel queues for the device.
///
/// # Errors
/// The kernel's error of SIOCGIFTXQLEN.
pub fn queue_length(interface: &str) -> io::Result<u32> {
    let mut request = interface_request(interface)?;
    ask(interface, libc::SIOCGIFTXQLEN, "SIOCGIFTXQLEN", &mut request)?;
    // SAFETY: SIOCGIFTXQLEN filled in this member of the union.
    Ok(unsafe { request.ifr_ifru.ifru_metric }.unsigned_abs())
}

/// Takes the device up or down.
///
/// # Errors
/// The kernel's error of SIOCGIFFLAGS or SIOCSIFFLAGS.
pub fn set_up(interface: &str, up: bool) -> io::Result<()> {
    let mut request = interface_request(interface)?;
    ask(interface, libc::SIOCGIFFLAGS, "SIOCGIFFLAGS", &mut request)?;
    // SAFETY: SIOCGIFFLAGS filled in this member of the union.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    let bit = libc::IFF_UP as libc::c_short;
    request.ifr_ifru.ifru_flags = if up { flags | bit } else { flags & !bit };
    ask(interface, libc::SIOCSIFFLAGS, "SIOCSIFFLAGS", &mut request)
}

/// Whether the device is up.
///
/// # Errors
/// The kernel's error of SIOCGIFFLAGS.
pub fn is_up(interface: &str) -> io::Result<bool> {
    let mut request = interface_request(interface)?;
    ask(interface, libc::SIOCGIFFLAGS, "SIOCGIFFLAGS", &mut request)?;
    // SAFETY: SIOCGIFFLAGS filled in this member of the union.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    Ok(flags & libc::IFF_UP as libc::c_short != 0)
}

/// The device's index.
///
/// # Errors
/// `NotFound` (or another error of the kernel) when the device does not exist.
pub fn index(interface: &str) -> io::Result<u32> {
    find(interface)?.ok_or_else(|| failed(&format!("if_nametoindex({interface})")))
}

/// The index of an interface; `None`: there is none of this name.
///
/// # Errors
/// The kernel's error of if_nametoindex, such as that no file descriptor is left.
pub fn find(interface: &str) -> io::Result<Option<u32>> {
    let name = CString::new(interface).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: the name is a C string that outlives the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => match io::Error::last_os_error().raw_os_error() {
            Some(libc::ENODEV | libc::ENXIO) => Ok(None),
            _ => Err(failed(&format!("if_nametoindex({interface})"))),
        },
        index => Ok(Some(index)),
    }
}

/// The device's Ethernet address; `None` for a device of another kind (a TUN device has none).
///
/// # Errors
/// The kernel's error of SIOCGIFHWADDR.
pub fn ethernet_address(interface: &str) -> io::Result<Option<[u8; 6]>> {
    let mut request = interface_request(interface)?;
    ask(interface, libc::SIOCGIFHWADDR, "SIOCGIFHWADDR", &mut request)?;
    // SAFETY: SIOCGIFHWADDR filled in this member of the union.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr };
    let octets: Vec<u8> = address.sa_data.iter().map(|octet| *octet as u8).collect();
    Ok(octets.first_chunk().copied().filter(|_| address.sa_family == libc::ARPHRD_ETHER))
}

/// A link-local IPv6 address of the device that may be used: not one whose uniqueness is still being tested (RFC 4862 §5.4).
///
/// # Errors
/// `AddrNotAvailable` when there is none; else the list could not be read.
pub fn link_local(interface: &str) -> io::Result<Ipv6Addr> {
    const LIST: &str = "/proc/thread-self/net/if_inet6";
    let list = std::fs::read_to_string(LIST).map_err(|error| annotate(error, LIST))?;
    list.lines().find_map(|line| usable_link_local(line, interface)).ok_or_else(|| {
        let message = format!("{interface} has no link-local IPv6 address that may be used");
        io::Error::new(io::ErrorKind::AddrNotAvailable, message)
    })
}

/// A row of the kernel's list: address, index, prefix length, scope, flags, each in hexadecimal, and the device's name.
fn usable_link_local(row: &str, interface: &str) -> Option<Ipv6Addr> {
    let words: Vec<&str> = row.split_whitespace().collect();
    let [address, _, _, scope, flags, name] = words[..] else { return None };
    let unusable = libc::IFA_F_TENTATIVE | libc::IFA_F_DADFAILED;
    let usable = u32::from_str_radix(flags, 16).ok()? & unusable == 0;
    let wanted = name == interface && scope == "20" && usable;
    wanted.then(|| u128::from_str_radix(address, 16).ok().map(Ipv6Addr::from)).flatten()
}

fn ask(interface: &str, number: libc::Ioctl, call: &str, request: &mut libc::ifreq) -> io::Result<()> {
    let socket = control_socket()?;
    // SAFETY: this file's requests all take an ifreq.
    unsafe { ioctl(socket.as_fd(), number, request) }
        .map_err(|error| annotate(error, &format!("{call} {interface}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_local_address_is_found_unless_it_is_still_tentative() {
        let row = |flags| format!("fe800000000000000000000000000001 02 40 20 {flags}     eth0");
        assert_eq!(usable_link_local(&row("80"), "eth0"), Some("fe80::1".parse().unwrap()));
        assert_eq!(usable_link_local(&row("80"), "eth1"), None);
        assert_eq!(usable_link_local(&row("c0"), "eth0"), None, "tentative");
        assert_eq!(usable_link_local(&row("88"), "eth0"), None, "a duplicate");
        let global = "20010db8000000000000000000000001 02 40 00 80     eth0";
        assert_eq!(usable_link_local(global, "eth0"), None);
        assert_eq!(usable_link_local("", "eth0"), None);
    }
}
