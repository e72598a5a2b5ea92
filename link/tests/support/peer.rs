//! A second network namespace, joined to the test's own by a veth pair: `near` here, `far` there.

use super::ip;
use sixway_link::interface;
use sixway_wire::{Ipv4Header, Ipv6Header, TcpHeader, UdpHeader, protocol, tcp};
use std::fs::File;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;

/// This host's address on the pair.
pub const NEAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// The other host's.
pub const FAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

/// Source of the IPv6 packets.
const HERE6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
/// Their destination.
const THERE6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 2);

/// The other host.
pub struct Peer {
    own: File,
    other: File,
}

impl Peer {
    /// Makes it, with addresses on both sides.
    pub fn joined() -> Self {
        let own = File::open("/proc/thread-self/ns/net").unwrap();
        // SAFETY: unshare touches no memory.
        assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0);
        let other = File::open("/proc/thread-self/ns/net").unwrap();
        let peer = Self { own, other };
        enter(&peer.own);
        peer.join();
        peer
    }

    /// Makes the pair, for the first time or after it was deleted.
    pub fn join(&self) {
        let (process, other) = (std::process::id(), self.other.as_raw_fd());
        ip(&format!("link add near type veth peer name far netns /proc/{process}/fd/{other}"));
        ip(&format!("addr add {NEAR}/24 dev near"));
        ip("link set near up");
        self.inside(|| {
            ip("link set lo up");
            ip(&format!("addr add {FAR}/24 dev far"));
            ip("link set far up");
        });
        carrying("near");
        self.inside(|| carrying("far"));
    }

    /// Does something there; sockets opened in it stay there.
    pub fn inside<T>(&self, body: impl FnOnce() -> T) -> T {
        enter(&self.other);
        let result = body();
        enter(&self.own);
        result
    }
}

fn enter(namespace: &File) {
    // SAFETY: setns touches no memory.
    assert_eq!(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }, 0);
}

/// Waits until a device that was taken up carries packets; until then the kernel drops them.
fn carrying(device: &str) {
    for _ in 0..1_000 {
        let link = Command::new("ip").args(["-br", "link", "show", "dev", device]).output().unwrap();
        if String::from_utf8_lossy(&link.stdout).split_whitespace().nth(1) == Some("UP") {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    panic!("{device} does not come up");
}

/// Makes the kernel put TCP segments together as they arrive here, for so long that a test can send them one by one.
/// Returns whether it can.
pub fn gather(peer: &Peer) -> bool {
    let settings = "mount -t sysfs sysfs /sys && echo 100000000 >/sys/class/net/near/gro_flush_timeout \
                    && echo 100 >/sys/class/net/near/napi_defer_hard_irqs";
    let run = |program: &str, arguments: &[&str]| {
        Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
    };
    // veth joins only what comes from a device that would have cut.
    peer.inside(|| run("ethtool", &["-K", "far", "tso", "off"]))
        && run("ethtool", &["-K", "near", "gro", "on"])
        && run("unshare", &["-m", "sh", "-c", settings])
}

/// Makes the kernel put UDP datagrams together, too, after [`gather`]. Returns whether it can.
pub fn gather_datagrams() -> bool {
    let forwarding = ["-K", "near", "rx-udp-gro-forwarding", "on"];
    Command::new("ethtool").args(forwarding).output().is_ok_and(|output| output.status.success())
}

/// A socket that sends whole IPv4 packets.
pub struct Sender(OwnedFd);

impl Sender {
    pub fn new() -> Self {
        // SAFETY: socket touches no memory of ours.
        let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_RAW) };
        assert!(fd >= 0);
        // SAFETY: fd was just opened, and nothing else owns it.
        Self(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    pub fn send(&self, packet: &[u8]) {
        let to = libc::sockaddr_in {
            sin_family: libc::AF_INET as libc::sa_family_t,
            sin_port: 0,
            sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(packet[16..20].try_into().unwrap()) },
            sin_zero: [0; 8],
        };
        let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        // SAFETY: the packet and the address outlive the call, with their lengths.
        let sent = unsafe {
            let to = std::ptr::from_ref(&to).cast();
            libc::sendto(self.0.as_raw_fd(), packet.as_ptr().cast(), packet.len(), 0, to, length)
        };
        assert_eq!(sent, packet.len() as isize, "{}", std::io::Error::last_os_error());
    }
}

/// A socket that sends Ethernet frames by a device.
pub fn packet_socket(device: &str) -> OwnedFd {
    // SAFETY: all zeroes is a sockaddr_ll; socket touches no memory of ours, and bind reads the address with its length.
    unsafe {
        let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0);
        assert!(fd >= 0);
        let mut at: libc::sockaddr_ll = std::mem::zeroed();
        at.sll_family = libc::AF_PACKET as u16;
        at.sll_ifindex = interface::index(device).unwrap() as i32;
        let length = size_of::<libc::sockaddr_ll>() as u32;
        assert_eq!(libc::bind(fd, std::ptr::from_ref(&at).cast(), length), 0);
        OwnedFd::from_raw_fd(fd)
    }
}

/// Sends an Ethernet frame: to whom, the tag of a VLAN or none, an IPv4 packet.
pub fn send_frame(socket: &OwnedFd, to: [u8; 6], tag: &[u8], packet: &[u8]) {
    let frame = [&to[..], &[2, 0, 0, 0, 0, 9], tag, &[8, 0], packet].concat();
    // SAFETY: the frame outlives the call, with its length.
    let sent = unsafe { libc::send(socket.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
    assert_eq!(sent, frame.len() as isize, "{}", std::io::Error::last_os_error());
}

/// An IPv4 packet with a true header.
pub fn ipv4(
    source: Ipv4Addr,
    destination: Ipv4Addr,
    protocol: u8,
    dont_fragment: bool,
    body: &[u8],
) -> Vec<u8> {
    let header = Ipv4Header::new(source, destination, protocol, body.len());
    [&Ipv4Header { identification: 7, dont_fragment, ..header }.octets()[..], body].concat()
}

/// An IPv6 packet from one documentation address to another.
pub fn ipv6(next_header: u8, body: &[u8]) -> Vec<u8> {
    [&Ipv6Header::new(HERE6, THERE6, next_header, body.len()).octets()[..], body].concat()
}

/// A TCP segment in IPv6, its checksum finished.
pub fn tcp(sequence: u32, payload: &[u8]) -> Vec<u8> {
    let header =
        TcpHeader { sequence, acknowledgment: 9, window: 256, ..TcpHeader::new(12_345, 80, tcp::ACK) };
    let header = header.with_checksum6(HERE6, THERE6, payload);
    ipv6(protocol::TCP, &[&header.octets()[..], payload].concat())
}

/// A UDP datagram in IPv6, its checksum finished.
pub fn udp(payload: &[u8]) -> Vec<u8> {
    let header = UdpHeader::new(12_345, 53, payload.len()).with_checksum6(HERE6, THERE6, payload);
    ipv6(protocol::UDP, &[&header.octets()[..], payload].concat())
}
