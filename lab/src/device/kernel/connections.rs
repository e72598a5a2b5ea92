//! The kernel's table of connections: how much memory its entries have, and how they are deleted.

use crate::device::place::Place;
use crate::device::reading::MemoryReading;
use crate::failure::{Asking as _, Failure, Result};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, sendto, socket,
};
use std::os::fd::AsRawFd as _;

/// A request of ctnetlink to delete all: length 20, type 0x0102 (delete, of ctnetlink), a request that is acknowledged (5), number 1; then family,
/// version and resource of nfnetlink, all zero.
fn request() -> Vec<u8> {
    let (length, kind, flags, number, port) = (20_u32, 0x0102_u16, 5_u16, 1_u32, 0_u32);
    [
        &length.to_ne_bytes()[..],
        &kind.to_ne_bytes(),
        &flags.to_ne_bytes(),
        &number.to_ne_bytes(),
        &port.to_ne_bytes(),
        &[0; 4],
    ]
    .concat()
}

/// Memory of the entries of a device's host. The kernel counts entries by namespace, and the octets of one for all of them. The buckets are not
/// in it: all namespaces share them.
///
/// # Errors
/// The kernel does not say.
pub fn memory_of_connections(place: &Place) -> Result<MemoryReading> {
    let Some(each) = std::fs::read_to_string("/proc/slabinfo").ok().and_then(|text| octets_of_one(&text))
    else {
        return Ok(MemoryReading::NotMeasurable(
            "the kernel tells root alone how large an entry of its table is",
        ));
    };
    let count: u64 =
        place.network.host(place.host)?.read_sysctl("netfilter/nf_conntrack_count")?.parse().unwrap_or(0);
    Ok(MemoryReading::Uncertain(
        count * each,
        "entries in the connection table of its namespace × octets of one",
    ))
}

/// A line of slabinfo has the name, active objects, all objects, and octets of one.
fn octets_of_one(slabinfo: &str) -> Option<u64> {
    let line = slabinfo.lines().find_map(|line| line.strip_prefix("nf_conntrack "))?;
    line.split_whitespace().nth(2)?.parse().ok()
}

/// Deletes the connections of a device's host as `conntrack -F` does.
///
/// # Errors
/// The kernel refuses.
pub fn delete_connections(place: &Place) -> Result<()> {
    place.network.host(place.host)?.enter(|| {
        let what = || "deleting connections (ctnetlink)".to_owned();
        let (family, protocol) = (AddressFamily::Netlink, SockProtocol::NetlinkNetFilter);
        let netlink = socket(family, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol).asking(what)?;
        let descriptor = netlink.as_raw_fd();
        bind(descriptor, &NetlinkAddr::new(0, 0)).asking(what)?;
        sendto(descriptor, &request(), &NetlinkAddr::new(0, 0), MsgFlags::empty()).asking(what)?;
        let mut answer = [0; 256];
        let count = recv(descriptor, &mut answer, MsgFlags::empty()).asking(what)?;
        // An acknowledgement is an error (type 2) with the number 0 behind the header.
        match answer.get(16..20) {
            Some([0, 0, 0, 0]) if count >= 20 => Ok(()),
            _ => Err(Failure::Unexpected("the kernel deletes no connections".to_owned())),
        }
    })?
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_octets_of_an_entry_are_the_third_number() {
        let text = "nf_conntrack_expect 0 0 208 19 1 : tunables 0 0 0\nnf_conntrack 144 208 256 16 1 : tunables 0 0 0\n";
        assert_eq!(super::octets_of_one(text), Some(256));
        assert_eq!(super::octets_of_one("TCPv6 104 156 2496 13 8\n"), None);
    }

    #[test]
    fn a_request_is_as_long_as_it_says() {
        let request = super::request();
        assert_eq!(request.len(), 20);
        assert_eq!(request[..4], 20_u32.to_ne_bytes());
    }
}
