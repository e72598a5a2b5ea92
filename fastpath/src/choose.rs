//! Where programs are attached: in the driver if the device is hardware.

use std::ffi::CString;
use std::io;

/// The driver of a VLAN's device.
const VLAN: &str = "802.1Q VLAN Support";

/// Drivers of virtual devices, which have no hardware of their own.
const VIRTUAL: [&str; 12] = [
    "veth", "bridge", VLAN, "macvlan", "macvtap", "ipvlan", "tun", "bonding", "team", "dummy", "vxlan", "ifb",
];

/// What a device is driven by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Driver {
    /// Its name.
    pub name: String,
    /// Where the device is: a PCI address or the like; empty for those that exist in the kernel alone.
    pub bus: String,
}

impl Driver {
    /// The driver of an interface (ethtool's GDRVINFO, which sees other network namespaces' devices right).
    ///
    /// # Errors
    /// The interface does not exist, or its driver does not support the request.
    pub fn of(interface: &str) -> io::Result<Self> {
        // SAFETY: numbers, for which zero is a value.
        let mut information: DriverInformation = unsafe { std::mem::zeroed() };
        information.command = GDRVINFO;
        ask(interface, &mut information)?;
        let text = |field: &[libc::c_uchar]| {
            let octets: Vec<u8> = field.iter().copied().take_while(|octet| *octet != 0).collect();
            String::from_utf8_lossy(&octets).into_owned()
        };
        Ok(Self { name: text(&information.driver), bus: text(&information.bus_info) })
    }

    /// Whether it is a VLAN's: in the driver its frames come by the device below, with their tag.
    pub fn is_vlan(&self) -> bool {
        self.name == VLAN
    }

    /// Why the device is not hardware; `None`: it is.
    pub fn no_wire(&self) -> Option<String> {
        if VIRTUAL.contains(&self.name.as_str()) || matches!(self.bus.as_str(), "" | "N/A" | "tap") {
            return Some(format!("{} is the driver of a virtual device", self.name));
        }
        None
    }
}

/// The kernel's `struct ethtool_drvinfo`.
#[repr(C)]
struct DriverInformation {
    command: u32,
    driver: [libc::c_uchar; 32],
    version: [libc::c_uchar; 32],
    firmware: [libc::c_uchar; 32],
    bus_info: [libc::c_uchar; 32],
    rom: [libc::c_uchar; 32],
    reserved: [libc::c_uchar; 12],
    lengths: [u32; 5],
}

const SIOCETHTOOL: libc::Ioctl = 0x8946;
const GDRVINFO: u32 = 3;
const GFLAGS: u32 = 0x25;
const FLAG_RXVLAN: u32 = 1 << 8;

/// The kernel's `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// Why the program in the driver would mistake VLAN frames for untagged ones; `None`: it does not, or there are no VLANs. The problem is VLAN
/// offload (rxvlan), which strips the tags before the program sees the frame; most devices have it on.
pub(crate) fn hidden_tags(interface: &str) -> Option<String> {
    let vlans = std::fs::read_to_string("/proc/net/vlan/config").unwrap_or_default();
    let mut value = Value { command: GFLAGS, data: 0 };
    if !is_below(interface, &vlans) || ask(interface, &mut value).is_err() || value.data & FLAG_RXVLAN == 0 {
        return None;
    }
    Some(format!("VLAN offload hides the tags of its VLANs; turn it off: ethtool -K {interface} rxvlan off"))
}

/// Whether a line of the list of VLANs ends with this interface: "eth0.5  | 5  | eth0".
fn is_below(interface: &str, vlans: &str) -> bool {
    vlans.lines().any(|line| line.split('|').nth(2).is_some_and(|below| below.trim() == interface))
}

/// Calls ethtool's ioctl with a structure that begins with its command.
fn ask<T>(interface: &str, information: &mut T) -> io::Result<()> {
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    // SAFETY: no pointers.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given it to us.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: numbers and a null pointer, for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let name = CString::new(interface)?;
    let octets = name.as_bytes();
    if octets.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::NotFound.into());
    }
    request.ifr_name.iter_mut().zip(octets).for_each(|(place, octet)| *place = octet.cast_signed());
    request.ifr_ifru.ifru_data = std::ptr::from_mut(information).cast();
    // SAFETY: the request and what it points to outlive the call, and the kernel writes no more than the structure.
    match unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &mut request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wire_has_a_place_on_a_bus() {
        let no_wire = |name: &str, bus: &str| Driver { name: name.into(), bus: bus.into() }.no_wire();
        assert_eq!(no_wire("ixgbe", "0000:03:00.0"), None);
        assert_eq!(no_wire("virtio_net", "0000:00:03.0"), None);
        for (name, bus) in
            [("veth", ""), ("bridge", "N/A"), ("tun", "tap"), ("802.1Q VLAN Support", "0000:03:00.0")]
        {
            assert!(no_wire(name, bus).is_some_and(|why| why.contains(name)), "{name}");
        }
    }

    #[test]
    fn the_device_below_a_vlan_is_the_last_of_its_line() {
        let list = "VLAN Dev name\t | VLAN ID\nName-Type: VLAN_NAME_TYPE_RAW_PLUS_VID_NO_PAD\neth0.5         | 5  | eth0\n";
        assert!(is_below("eth0", list) && !is_below("eth0.5", list) && !is_below("eth", list));
        assert_eq!(hidden_tags("no-such-thing"), None);
    }

    #[test]
    fn an_interface_that_is_not_there_is_an_error() {
        assert!(Driver::of("no-such-thing").is_err());
        assert!(Driver::of("a-name-that-is-far-too-long").is_err());
    }
}
