//! What taking TCP segments out of a tunnel costs until they are read: `cargo bench -p sixway-fastpath --bench inbound` (needs
//! root), in network namespaces of its own. Steered into the TUN device, or through the raw socket; with the receiver
//! joining segments (GRO) and without. CPU time of the calling thread, which sends, too: the sending is the same in all.
#![allow(clippy::unwrap_used, reason = "a benchmark")]

#[path = "../../link/tests/support/mod.rs"]
mod support;

use sixway_dataplane::Frame;
use sixway_fastpath::{InsideHosts, OwnAddress, Steering};
use sixway_link::{Link, RawTunnel, TunConfig};
use std::process::Command;
use support::peer::{FAR, NEAR, Peer, Sender, gather, ipv4, tcp};
use support::{in_namespace, open};

const ROUNDS: usize = 11;
const SEGMENTS: usize = 46 * 64;

fn main() {
    println!("{:<34} {:>10} {:>9} {:>9} {:>14}", "", "ns/segment", "lowest", "highest", "octets a frame");
    in_namespace("bench", || {
        let peer = Peer::joined();
        assert!(gather(&peer), "needs ethtool");
        let mut tun = open(&TunConfig::default());
        let mut socket = RawTunnel::open(NEAR).unwrap();
        let sender = peer.inside(Sender::new);
        let segments: Vec<_> = (0..SEGMENTS as u32)
            .map(|number| ipv4(FAR, NEAR, 41, true, &tcp(number * 1_400, &[number as u8; 1_400])))
            .collect();
        let mut frames: Vec<_> = (0..64).map(|_| Frame::with_capacity(65_600)).collect();
        let mut figures = [const { (Vec::new(), 0, 0) }; 4];
        for _ in 0..ROUNDS {
            for (way, (times, packets, octets)) in figures.iter_mut().enumerate() {
                let (steered, joined) = (way % 2 == 0, way < 2);
                let state = if joined { "on" } else { "off" };
                assert!(
                    Command::new("ethtool").args(["-K", "near", "gro", state]).status().unwrap().success()
                );
                let _steering = steered.then(|| {
                    Steering::attach(
                        "gw1",
                        &["near"],
                        &tun.name,
                        &[OwnAddress::of_tunnels(NEAR)],
                        &InsideHosts::default(),
                    )
                    .unwrap()
                });
                let link: &mut dyn Link = if steered { &mut tun.queues[0] } else { &mut socket };
                let start = thread_time();
                for (at, segment) in segments.iter().enumerate() {
                    sender.send(segment);
                    if at % 46 == 45 {
                        drain(link, &mut frames, packets, octets);
                    }
                }
                times.push((thread_time() - start) as f64 / SEGMENTS as f64);
                std::thread::sleep(std::time::Duration::from_millis(150));
                drain(link, &mut frames, packets, octets);
            }
        }
        let names = ["joined, steered", "joined, raw socket", "single, steered", "single, raw socket"];
        for (name, (mut times, packets, octets)) in names.iter().zip(figures) {
            times.sort_by(f64::total_cmp);
            let (median, lowest, highest) = (times[ROUNDS / 2], times[0], times[ROUNDS - 1]);
            println!(
                "{name:<34} {median:>10.0} {lowest:>9.0} {highest:>9.0} {:>14}",
                octets / packets.max(1)
            );
        }
    });
}

fn drain(link: &mut dyn Link, frames: &mut [Frame], packets: &mut usize, octets: &mut usize) {
    loop {
        let count = link.receive(frames).unwrap();
        if count == 0 {
            return;
        }
        *packets += count;
        *octets += frames[..count].iter().map(Frame::len).sum::<usize>();
    }
}

/// CPU time of this thread in nanoseconds.
fn thread_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the value is valid for the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
