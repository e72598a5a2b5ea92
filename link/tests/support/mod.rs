//! A network namespace for one test: it belongs to a thread, has no name, and goes when the thread and its sockets go.

#![allow(dead_code, reason = "each test and benchmark uses its part")]

pub mod peer;
pub mod test_run;

use sixway_link::{Link, LinkCounters, Tun, TunConfig, interface, sysctl::Sysctl};
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::Duration;

/// Runs `body` in a network namespace of its own; where that is not possible, the test is ignored.
pub fn in_namespace(test: &str, body: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().name(test.into()).spawn(move || {
        // SAFETY: unshare touches no memory; a network namespace may differ from thread to thread.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            sixway_trial::ignore(format!("needs root (unshare: {})", std::io::Error::last_os_error()));
        }
        if !std::path::Path::new("/dev/net/tun").exists() {
            sixway_trial::ignore("needs /dev/net/tun");
        }
        if Command::new("ip").arg("-V").output().is_err() {
            sixway_trial::ignore("needs the ip command (iproute2)");
        }
        ip("link set lo up");
        body();
    });
    thread.unwrap().join().unwrap_or_else(|end| std::panic::resume_unwind(end));
}

/// Runs `ip` with these arguments in the calling thread's namespace.
pub fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Addresses of this host and, beyond the TUN device, unused ones.
pub const HERE: [&str; 2] = ["10.9.0.1", "fd00:9::1"];
/// See [`HERE`].
pub const THERE: [&str; 2] = ["10.9.0.2", "fd00:9::2"];

/// The pair of addresses of one family.
pub fn addresses(six: bool) -> (IpAddr, IpAddr) {
    (HERE[usize::from(six)].parse().unwrap(), THERE[usize::from(six)].parse().unwrap())
}

/// Opens a device, gives it addresses and takes it up.
pub fn open(config: &TunConfig) -> Tun {
    let tun = Tun::open(config).unwrap();
    let name = &tun.name;
    Sysctl::set(format!("/proc/sys/net/ipv6/conf/{name}/addr_gen_mode"), "1").unwrap().keep();
    for path in ["all", name] {
        Sysctl::set(format!("/proc/sys/net/ipv4/conf/{path}/rp_filter"), "0").unwrap().keep();
    }
    interface::set_mtu(name, 1_500).unwrap();
    interface::set_up(name, true).unwrap();
    tun
}

/// Gives the device the addresses of [`HERE`].
pub fn address(name: &str) {
    ip(&format!("addr add {}/24 dev {name}", HERE[0]));
    ip(&format!("addr add {}/64 dev {name} nodad", HERE[1]));
    // The kernel installs an IPv6 address's local route a little later.
    for _ in 0..1_000 {
        let routes = Command::new("ip").args(["-6", "route", "show", "table", "local"]).output().unwrap();
        if String::from_utf8_lossy(&routes.stdout).contains(HERE[1]) {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    panic!("{} did not become local", HERE[1]);
}

/// Swaps a packet's addresses: what this host sent to the other side comes back from there. The checksum stays true.
pub fn turn_round(packet: &mut [u8]) {
    let (at, length) = if packet[0] >> 4 == 4 { (12, 4) } else { (8, 16) };
    let (source, destination) = packet[at..at + 2 * length].split_at_mut(length);
    source.swap_with_slice(destination);
}

/// Waits until a packet can be read, a second at the most.
pub fn wait(link: &impl Link, patience: Duration) -> bool {
    let fd = link.poll_fd().unwrap().as_raw_fd();
    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one pollfd, valid for the call.
    unsafe { libc::poll(&mut poll, 1, patience.as_millis() as i32) > 0 }
}

/// Makes the kernel cut what is sent through `socket` into datagrams of `size` octets, as late as it can.
pub fn segment_udp(socket: &UdpSocket, size: i32) {
    // SAFETY: an int is what UDP_SEGMENT takes; it outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_SEGMENT,
            std::ptr::from_ref(&size).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    assert_eq!(result, 0, "UDP_SEGMENT");
}

/// A counter of `/proc/net/snmp` or `snmp6` in the calling thread's namespace.
pub fn snmp(protocol: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
    let mut rows = text.lines().filter(|line| line.starts_with(&format!("{protocol}:")));
    let (names, values) = (rows.next().unwrap().split(' '), rows.next().unwrap().split(' '));
    names.zip(values).find(|(n, _)| *n == name).unwrap().1.parse().unwrap()
}

/// Asserts that nothing was refused.
pub fn assert_clean(counters: &LinkCounters) {
    let bad = (counters.refused, counters.inconsistent_header, counters.truncated, counters.no_room);
    assert_eq!(bad, (0, 0, 0, 0), "{counters:?}");
}
