//! What a question to an upstream costs: from a socket of its own, and from one that serves several. `cargo bench -p sixway-link --bench udp`.
#![allow(clippy::unwrap_used, reason = "a benchmark")]

use sixway_link::UdpExchange;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Instant;

const EXCHANGES: u32 = 100_000;

/// Questions that wait for their answers at the same time.
const WAITING: usize = 64;

struct Epoll(i32);

impl Epoll {
    fn add(&self, fd: BorrowedFd<'_>) {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        // SAFETY: the event is valid for the call.
        assert_eq!(unsafe { libc::epoll_ctl(self.0, libc::EPOLL_CTL_ADD, fd.as_raw_fd(), &mut event) }, 0);
    }
}

/// Sends back what it receives, for ever.
fn upstream() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut room = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut room) {
            let _ = socket.send_to(&room[..length], from);
        }
    });
    address
}

fn receive(exchange: &UdpExchange) {
    while exchange.receive(&mut [0; 512]).unwrap().is_none() {
        std::hint::spin_loop();
    }
}

/// Microseconds for each exchange, when a socket serves `uses` of them.
fn measure(peer: SocketAddr, uses: u32) -> f64 {
    // SAFETY: epoll_create1 touches no memory of ours.
    let epoll = Epoll(unsafe { libc::epoll_create1(0) });
    let open = || {
        let exchange = UdpExchange::open(peer).unwrap();
        epoll.add(exchange.poll_fd());
        (exchange, 0)
    };
    let mut sockets: Vec<(UdpExchange, u32)> = (0..WAITING).map(|_| open()).collect();
    let start = Instant::now();
    for _ in 0..EXCHANGES / WAITING as u32 {
        for slot in &mut sockets {
            if slot.1 == uses {
                *slot = open();
            }
            slot.0.send(&[7; 48]).unwrap();
            slot.1 += 1;
        }
        sockets.iter().for_each(|(exchange, _)| receive(exchange));
    }
    start.elapsed().as_secs_f64() * 1e6 / f64::from(EXCHANGES)
}

/// Microseconds to open, watch and close a socket.
fn opening(peer: SocketAddr) -> f64 {
    // SAFETY: epoll_create1 touches no memory of ours.
    let epoll = Epoll(unsafe { libc::epoll_create1(0) });
    let start = Instant::now();
    for _ in 0..EXCHANGES {
        epoll.add(UdpExchange::open(peer).unwrap().poll_fd());
    }
    start.elapsed().as_secs_f64() * 1e6 / f64::from(EXCHANGES)
}

fn main() {
    let peer = upstream();
    println!("open, watch and close     {:5.2} µs", opening(peer));
    for uses in [1, 2, 8, 64, u32::MAX] {
        let name = if uses == u32::MAX { "always one".into() } else { format!("one for {uses}") };
        println!(
            "socket: {name:<16}  {:5.2} µs an exchange, the upstream's work included",
            measure(peer, uses)
        );
    }
}
