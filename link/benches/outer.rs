//! What sending an outer packet of 1,300 octets costs: `cargo bench -p sixway-link --bench outer` (needs root), in network
//! namespaces of its own. The TUN device's write (the kernel looks up route and neighbour), a raw socket with a header of ours
//! (IP_HDRINCL, the same lookups), and a packet socket that is given the neighbour's address and needs no lookup. CPU time of
//! the calling thread, in which all of the kernel's path to the far end of the veth pair runs; the ways are measured in turn.
#![allow(clippy::unwrap_used, reason = "a benchmark")]

#[path = "../tests/support/mod.rs"]
mod support;

use sixway_dataplane::Frame;
use sixway_link::{Link, Tun, TunConfig, interface, sysctl::Sysctl};
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use support::peer::{NEAR, Peer, ipv4, packet_socket, udp};
use support::{in_namespace, ip, open};

const ROUNDS: usize = 31;
const BATCH: usize = 64;
const BATCHES: usize = 200;
/// An unused address: the far end drops frames for another Ethernet address as soon as it sees them.
const NEXT_HOP: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 3);
const NEIGHBOUR: [u8; 6] = [2, 0, 0, 0, 0, 3];

fn main() {
    in_namespace("bench", || {
        let _peer = Peer::joined();
        let tun = open(&TunConfig::default());
        Sysctl::set("/proc/sys/net/ipv4/ip_forward", "1").unwrap().keep();
        Sysctl::set(format!("/proc/sys/net/ipv4/conf/{}/accept_local", tun.name), "1").unwrap().keep();
        ip(&format!("neigh add {NEXT_HOP} lladdr 02:00:00:00:00:03 nud permanent dev near"));
        let packet = ipv4(NEAR, NEXT_HOP, 41, true, &udp(&vec![0; 1_300 - 20 - 48]));
        let mut ways = [
            ("write to the TUN device", Sender::Tun(Box::new(tun))),
            ("raw socket, sendmmsg", Sender::Socket(raw_socket(), vec![packet.clone(); BATCH])),
            (
                "packet socket, sendmmsg",
                Sender::Socket(packet_socket("near"), vec![ethernet(&packet); BATCH]),
            ),
        ];
        let mut figures = vec![Vec::new(); ways.len()];
        for _ in 0..ROUNDS {
            for ((_, way), figures) in ways.iter_mut().zip(&mut figures) {
                let before = (thread_time(), received());
                for _ in 0..BATCHES {
                    way.send(&packet);
                }
                let spent = thread_time() - before.0;
                assert!(received() - before.1 >= (BATCH * BATCHES) as u64, "some were lost");
                figures.push(spent as f64 / (BATCH * BATCHES) as f64);
            }
        }
        println!("{:<28} {:>9} {:>9} {:>9}", "", "ns/packet", "lowest", "highest");
        for ((name, _), mut figures) in ways.into_iter().zip(figures) {
            figures.sort_by(f64::total_cmp);
            println!(
                "{name:<28} {:>9.0} {:>9.0} {:>9.0}",
                figures[ROUNDS / 2],
                figures[0],
                figures[ROUNDS - 1]
            );
        }
    });
}

enum Sender {
    Tun(Box<Tun>),
    Socket(OwnedFd, Vec<Vec<u8>>),
}

impl Sender {
    /// Sends a batch.
    fn send(&mut self, packet: &[u8]) {
        match self {
            Self::Tun(tun) => {
                let mut frame = Frame::holding(packet);
                (0..BATCH).for_each(|_| tun.queues[0].send(&mut frame).unwrap());
            }
            Self::Socket(socket, packets) => send_all(socket, packets),
        }
    }
}

fn send_all(socket: &OwnedFd, packets: &mut [Vec<u8>]) {
    let to = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: 0,
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(NEXT_HOP.octets()) },
        sin_zero: [0; 8],
    };
    let raw = packets[0][0] == 0x45;
    let mut pieces: Vec<_> = packets
        .iter_mut()
        .map(|packet| libc::iovec { iov_base: packet.as_mut_ptr().cast(), iov_len: packet.len() })
        .collect();
    // SAFETY: mmsghdr is plain data for which all zeroes is a valid value.
    let mut headers: Vec<libc::mmsghdr> = vec![unsafe { std::mem::zeroed() }; pieces.len()];
    for (header, piece) in headers.iter_mut().zip(&mut pieces) {
        header.msg_hdr.msg_iov = piece;
        header.msg_hdr.msg_iovlen = 1;
        if raw {
            header.msg_hdr.msg_name = std::ptr::from_ref(&to).cast_mut().cast();
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_in>() as u32;
        }
    }
    // SAFETY: the headers point to packets and an address that outlive the call, with their lengths.
    let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), headers.len() as u32, 0) };
    assert_eq!(sent, packets.len() as i32, "{}", std::io::Error::last_os_error());
}

fn raw_socket() -> OwnedFd {
    // SAFETY: socket touches no memory of ours.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_RAW) };
    assert!(fd >= 0);
    // SAFETY: fd was just opened, and nothing else owns it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

fn ethernet(packet: &[u8]) -> Vec<u8> {
    let own = interface::ethernet_address("near").unwrap().unwrap();
    [&NEIGHBOUR[..], &own, &[8, 0], packet].concat()
}

/// CPU time of this thread in nanoseconds.
fn thread_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the value is valid for the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Packets that left through `near`.
fn received() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let row = text.lines().find_map(|line| line.trim().strip_prefix("near:")).unwrap();
    row.split_whitespace().nth(9).unwrap().parse().unwrap()
}
