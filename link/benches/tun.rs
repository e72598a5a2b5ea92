//! What crossing a TUN device costs: `cargo bench -p sixway-link --bench tun` (needs root), in a network namespace of its
//! own. Reads are timed on a queue that a socket filled before; written packets end in a blackhole route.
#![allow(clippy::unwrap_used, reason = "a benchmark")]

#[path = "../tests/support/mod.rs"]
mod support;

use sixway_dataplane::{Checksum, Frame, Offload, SegmentKind, Segments};
use sixway_link::{Abilities, Link, Tun, TunConfig, TunQueue};
use sixway_wire::{Ipv4Header, UdpHeader, protocol};
use std::net::UdpSocket;
use std::time::Instant;
use support::{address, in_namespace, ip, open, segment_udp};

const ROUNDS: usize = 15;

fn main() {
    in_namespace("bench", || {
        println!("{:<46} {:>9} {:>9} {:>9}", "", "ns/frame", "lowest", "Gbit/s");
        let vnet = device(Abilities::ALL);
        let plain = device(Abilities::NONE);
        for (name, mut tun) in [("virtio header", vnet), ("plain", plain)] {
            let abilities = tun.abilities;
            let queue = &mut tun.queues[0];
            for batch in [1, 64, 256] {
                read(&format!("read 64 octets, {name}, batches of {batch}"), queue, batch, 36, None);
            }
            if abilities.uso {
                read("read GSO packet, 44 x 1,472 octets, batches of 64", queue, 64, 44 * 1_472, Some(1_472));
            }
            write(&format!("write 64 octets, {name}"), queue, 36, None);
            write(&format!("write 1,500 octets, {name}"), queue, 1_472, None);
            write(&format!("write GSO packet, 44 x 1,472 octets, {name}"), queue, 44 * 1_472, Some(1_472));
            ip(&format!("link del {}", tun.name));
        }
    });
}

fn device(abilities: Abilities) -> Tun {
    let tun = open(&TunConfig { abilities, ..TunConfig::default() });
    if abilities.vnet {
        address(&tun.name);
        ip("route add blackhole 10.99.0.0/16");
    } else {
        ip(&format!("addr add 10.8.0.1/24 dev {}", tun.name));
    }
    tun
}

/// Fills the queue from a socket, then times reading it empty.
fn read(name: &str, queue: &mut TunQueue, batch: usize, payload: usize, segment: Option<i32>) {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    let there = if queue.abilities().vnet { "10.9.0.2:9" } else { "10.8.0.2:9" };
    socket.connect(there).unwrap();
    if let Some(size) = segment {
        segment_udp(&socket, size);
    }
    let data = vec![0; payload];
    let fill = if segment.is_some() { 64 } else { 256 };
    let mut frames: Vec<_> = (0..batch).map(|_| Frame::with_capacity(65_600)).collect();
    while queue.receive(&mut frames).unwrap() > 0 {}
    let mut figures = Vec::new();
    for _ in 0..ROUNDS {
        let (mut spent, mut count) = (0, 0);
        for _ in 0..20 {
            for _ in 0..fill {
                let _ = socket.send(&data);
            }
            let start = Instant::now();
            loop {
                match queue.receive(&mut frames).unwrap() {
                    0 => break,
                    received => count += received,
                }
            }
            spent += start.elapsed().as_nanos();
        }
        figures.push(spent as f64 / count as f64);
    }
    print(name, figures, payload + 28);
}

/// Times writing packets that the kernel throws away once it looked for their route.
fn write(name: &str, queue: &mut TunQueue, payload: usize, segment: Option<u16>) {
    let (from, to) = ([192, 0, 2, 9].into(), [10, 99, 0, 2].into());
    let header = Ipv4Header { identification: 1, ..Ipv4Header::new(from, to, protocol::UDP, 8 + payload) };
    let datagram = UdpHeader::new(53, 258, payload);
    let packet = [&header.octets()[..], &datagram.octets(), &vec![0; payload]].concat();
    let offload = Offload {
        checksum: Checksum::Partial,
        segments: segment.map(|size| Segments { size, kind: SegmentKind::Udp }),
        transport: 20,
    };
    let mut frames: Vec<_> = (0..64).map(|_| Frame::with_capacity(65_600)).collect();
    frames.iter_mut().for_each(|frame| frame.fill(&packet, offload));
    let mut figures = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..20 {
            for frame in &mut frames {
                frame.offload = offload;
                queue.send(frame).unwrap();
            }
        }
        figures.push(start.elapsed().as_nanos() as f64 / (20 * frames.len()) as f64);
    }
    assert_eq!(queue.counters().refused, 0);
    print(name, figures, payload + 28);
}

fn print(name: &str, mut figures: Vec<f64>, octets: usize) {
    figures.sort_by(f64::total_cmp);
    let (lowest, median) = (figures[0], figures[figures.len() / 2]);
    println!("{name:<46} {median:>9.0} {lowest:>9.0} {:>9.1}", octets as f64 * 8.0 / median);
}
