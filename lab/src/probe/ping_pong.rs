//! Round trips of small UDP packets, one at a time.

use crate::failure::{Asking as _, Failure, Result};
use crate::interrupt;
use crate::namespace::Namespace;
use crate::probe::cpu::pin_thread;
use crate::probe::small_udp::open;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Octets of payload.
const PAYLOAD: usize = 16;

/// Sends `count` packets from one host to an address of another that answers each, the next when the last one came back. Both are on CPU 0, so that no
/// other one must be woken. The times, shortest first, in microseconds; after `warm_up` more that are not counted.
pub fn ping_pong(
    (client, server): (&Namespace, &Namespace),
    target: SocketAddr,
    listens: SocketAddr,
    (warm_up, count): (usize, usize),
) -> Result<Vec<f64>> {
    let answering = open(server, listens)?;
    let asking = open(client, SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0))?;
    asking.connect(target).asking(|| format!("connecting to {target}"))?;
    for socket in [&answering, &asking] {
        socket
            .set_read_timeout(Some(Duration::from_millis(200)))
            .asking(|| "setting a time limit".to_owned())?;
    }
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut octets = [0; 64];
            pin_thread(0).ok();
            while !ended.load(Ordering::Relaxed) {
                if let Ok((length, from)) = answering.recv_from(&mut octets) {
                    answering.send_to(&octets[..length], from).ok();
                }
            }
        });
        let times = scope.spawn(|| pin_thread(0).and_then(|()| ask(&asking, warm_up, count))).join();
        ended.store(true, Ordering::Relaxed);
        times.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn ask(socket: &std::net::UdpSocket, warm_up: usize, count: usize) -> Result<Vec<f64>> {
    let mut octets = [0; PAYLOAD];
    let mut times = Vec::with_capacity(count);
    let mut lost = 0;
    for number in 0..warm_up + count {
        interrupt::check()?;
        let start = Instant::now();
        socket.send(&octets).asking(|| "sending".to_owned())?;
        match socket.recv(&mut octets) {
            Ok(_) if number >= warm_up => times.push(start.elapsed().as_nanos() as f64 / 1e3),
            Ok(_) => {}
            Err(_) if lost < 20 => lost += 1,
            Err(error) => return Err(Failure::Io("waiting for an answer".to_owned(), error)),
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}
