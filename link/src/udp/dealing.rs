//! Which of several sockets of one address gets a client's datagrams: all of a client's come to one, whatever its ports.
//!
//! A classic BPF program (SO_ATTACH_REUSEPORT_CBPF) in the kernel computes the same number as [`place_of`]: from the first 64 bits of the source address,
//! or those of them that are the client's prefix, or from the IPv4 address.

use crate::syscall::{set_number, set_option};
use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;

/// Three multipliers that spread neighbours (murmur3's finaliser, and the golden ratio).
const SPREAD: [u32; 3] = [0x9e37_79b1, 0x85eb_ca6b, 0xc2b2_ae35];
/// Where the network header begins, for a load (linux/filter.h).
const NETWORK_HEADER: u32 = -0x10_0000_i32 as u32;
/// Octets before the source address.
const SOURCE4: u32 = 12;
const SOURCE6: u32 = 8;

/// Of `count` sockets or threads, that of a client. IPv6 clients with the first `prefix_length` bits in common, 64 at most, have the same.
#[must_use]
pub fn place_of(address: IpAddr, prefix_length: u8, count: usize) -> usize {
    let (first, second) = match address.to_canonical() {
        IpAddr::V4(address) => (address.to_bits(), 0),
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            ((bits >> 96) as u32 & mask(prefix_length, 0), (bits >> 64) as u32 & mask(prefix_length, 32))
        }
    };
    let mut number = second.wrapping_mul(SPREAD[0]) ^ first;
    number = number.wrapping_mul(SPREAD[1]);
    number = (number ^ number >> 16).wrapping_mul(SPREAD[2]);
    number ^= number >> 16;
    number as usize % count.max(1)
}

/// The bits of a word that belong to the prefix; `before`: bits before the word.
fn mask(prefix_length: u8, before: u8) -> u32 {
    let bits = u32::from(prefix_length.saturating_sub(before)).min(32);
    u32::MAX.checked_shl(32 - bits).unwrap_or(0)
}

/// The program for sockets of one family.
fn program(is_ipv4: bool, prefix_length: u8, count: u32) -> Vec<libc::sock_filter> {
    let mut steps: Vec<(u32, u32)> = Vec::new();
    let (load, tax) = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, libc::BPF_MISC | libc::BPF_TAX);
    let (of, with_x) = (libc::BPF_ALU | libc::BPF_K, libc::BPF_ALU | libc::BPF_X);
    if is_ipv4 {
        steps.push((load, NETWORK_HEADER.wrapping_add(SOURCE4)));
    } else {
        steps.push((load, NETWORK_HEADER.wrapping_add(SOURCE6 + 4)));
        steps.push((of | libc::BPF_AND, mask(prefix_length, 32)));
        steps.push((of | libc::BPF_MUL, SPREAD[0]));
        steps.push((tax, 0));
        steps.push((load, NETWORK_HEADER.wrapping_add(SOURCE6)));
        steps.push((of | libc::BPF_AND, mask(prefix_length, 0)));
        steps.push((with_x | libc::BPF_XOR, 0));
    }
    steps.push((of | libc::BPF_MUL, SPREAD[1]));
    for last in [SPREAD[2], 1] {
        steps.push((tax, 0));
        steps.push((of | libc::BPF_RSH, 16));
        steps.push((with_x | libc::BPF_XOR, 0));
        steps.push((of | libc::BPF_MUL, last));
    }
    steps.push((of | libc::BPF_MOD, count.max(1)));
    steps.push((libc::BPF_RET | BPF_RET_A, 0));
    let filter = |(code, k): (u32, u32)| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    steps.into_iter().map(filter).collect()
}

/// The accumulator is returned (linux/bpf_common.h).
const BPF_RET_A: u32 = 0x10;

/// Attaches the program to the group of a socket.
pub(super) fn attach(fd: BorrowedFd<'_>, is_ipv4: bool, prefix_length: u8, count: usize) -> io::Result<()> {
    let mut steps = program(is_ipv4, prefix_length, u32::try_from(count).unwrap_or(u32::MAX));
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: this option's value is a sock_fprog, whose steps outlive the call; the kernel copies and checks them.
    unsafe {
        let option = libc::SO_ATTACH_REUSEPORT_CBPF;
        set_option(fd, libc::SOL_SOCKET, option, &program, "SO_ATTACH_REUSEPORT_CBPF")
    }
}

/// linux/socket.h.
const SO_DETACH_REUSEPORT_BPF: libc::c_int = 68;

/// Detaches the program of a socket's group, if it has one.
pub(super) fn detach(fd: BorrowedFd<'_>) -> io::Result<()> {
    let done = set_number(fd, libc::SOL_SOCKET, SO_DETACH_REUSEPORT_BPF, 0, "SO_DETACH_REUSEPORT_BPF");
    match done {
        // There is none: the socket is in no group (EINVAL), or its group has no program.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp::{Arrivals, UdpServer};
    use std::collections::HashSet;
    use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

    #[test]
    fn the_hosts_of_a_prefix_have_one_place_and_prefixes_are_spread() {
        let place = |text: &str, length| place_of(text.parse().unwrap(), length, 4);
        assert_eq!(place("2001:db8::1", 64), place("2001:db8::2", 64));
        assert_eq!(place("192.0.2.1", 64), place("::ffff:192.0.2.1", 64));
        let subnets = |length| -> HashSet<usize> {
            (0..64).map(|subnet| place(&format!("2001:db8:0:{subnet:x}::1"), length)).collect()
        };
        assert_eq!((subnets(64).len(), subnets(56).len()), (4, 1));
        let hosts: HashSet<usize> = (0..64).map(|host| place(&format!("192.0.2.{host}"), 64)).collect();
        assert_eq!(hosts.len(), 4);
        assert_eq!((mask(64, 32), mask(56, 32), mask(32, 32), mask(32, 0)), (u32::MAX, !0xff, 0, u32::MAX));
    }

    /// The place of the socket that a datagram comes to.
    fn heard_by(servers: &mut [UdpServer], arrivals: &mut Arrivals) -> usize {
        for _ in 0..500 {
            for (place, server) in servers.iter_mut().enumerate() {
                if server.receive(arrivals).unwrap() > 0 {
                    return place;
                }
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        panic!("nothing came")
    }

    fn servers(address: SocketAddr) -> Vec<UdpServer> {
        let servers = UdpServer::open(address, 4).unwrap();
        UdpServer::deal_by_client(&servers, 64).unwrap();
        servers
    }

    #[test]
    fn a_client_has_one_thread_whatever_its_ports() {
        let mut servers = servers("127.0.0.1:0".parse().unwrap());
        let (local, mut arrivals) = (servers[0].local(), Arrivals::new());
        let mut places = HashSet::new();
        for host in 1..=16 {
            let address = Ipv4Addr::new(127, 9, 8, host);
            for _ in 0..8 {
                UdpSocket::bind((address, 0)).unwrap().send_to(b"?", local).unwrap();
                let place = heard_by(&mut servers, &mut arrivals);
                assert_eq!(place, place_of(address.into(), 64, 4), "{address}");
                places.insert(place);
            }
        }
        assert_eq!(places.len(), 4);
    }

    #[test]
    fn sockets_that_dealt_clients_out_deal_flows_out_again() {
        let mut servers = servers("127.0.0.1:0".parse().unwrap());
        let (local, mut arrivals) = (servers[0].local(), Arrivals::new());
        UdpServer::deal_by_flow(&servers).unwrap();
        let mut places = HashSet::new();
        for _ in 0..64 {
            UdpSocket::bind("127.9.8.7:0").unwrap().send_to(b"?", local).unwrap();
            places.insert(heard_by(&mut servers, &mut arrivals));
        }
        assert!(places.len() > 1, "{places:?}");
        UdpServer::deal_by_flow(&servers).expect("there is no program any more");
        let alone = UdpServer::open("127.0.0.1:0".parse().unwrap(), 1).unwrap();
        UdpServer::deal_by_flow(&alone).expect("there is no group");
    }

    #[test]
    fn the_kernel_computes_the_same_for_ipv6() {
        let mut servers = servers("[::1]:0".parse().unwrap());
        let (local, mut arrivals) = (servers[0].local(), Arrivals::new());
        for _ in 0..8 {
            UdpSocket::bind("[::1]:0").unwrap().send_to(b"?", local).unwrap();
            let place = heard_by(&mut servers, &mut arrivals);
            assert_eq!(place, place_of("::1".parse().unwrap(), 64, 4));
        }
    }
}
