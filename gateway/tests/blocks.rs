//! Port blocks move between workers as they run: threads, rings and all.

use sixway::worker::{Clock, Command, Post, Wake, Worker, exchanges, mailbox, rings};
use sixway_dataplane::engine::{Engine, EngineConfig};
use sixway_dataplane::mechanism::nat64::Nat64Config;
use sixway_dataplane::nat::PoolConfig;
use sixway_dataplane::nat::StateLimits;
use sixway_dataplane::translate::address::Rfc6052;
use sixway_dataplane::{Frame, WorkerId};
use sixway_link::{Link, Memory};
use sixway_wire::Ipv6Header;
use std::collections::BTreeSet;
use std::net::Ipv6Addr;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const PORTS: std::ops::RangeInclusive<u16> = 61_000..=65_535;

fn engine(worker: u8, workers: u8) -> Engine {
    let nat64 = Nat64Config {
        limits: StateLimits { sessions: 10_000, bindings: 10_000, ..StateLimits::default() },
        ..Nat64Config::new(
            Rfc6052::new("64:ff9b::/96".parse().unwrap(), true).unwrap(),
            PoolConfig { addresses: vec!["192.0.2.1/32".parse().unwrap()], ports: vec![PORTS] },
        )
    };
    let worker = WorkerId(worker);
    Engine::new(&EngineConfig { nat64: vec![nat64], worker, workers, ..EngineConfig::default() }).unwrap()
}

fn udp(host: Ipv6Addr, port: u16) -> Vec<u8> {
    let to = "64:ff9b::203.0.113.2".parse().unwrap();
    let mut packet = Ipv6Header::new(host, to, 17, 12).octets().to_vec();
    packet.extend(port.to_be_bytes());
    packet.extend([0, 53, 0, 12, 0x12, 0x34]);
    packet.extend(*b"data");
    packet
}

struct Running {
    far: Vec<Memory>,
    posts: Vec<Post>,
    wakes: Vec<Wake>,
    threads: Vec<JoinHandle<std::io::Result<()>>>,
}

fn start(workers: u8) -> Running {
    let clock = Clock::start();
    let ends: Vec<_> = (0..workers).map(|_| mailbox().unwrap()).collect();
    let posts: Vec<Post> = ends.iter().map(|(post, _)| post.clone()).collect();
    let wakes: Vec<Wake> = ends.iter().map(|(_, mailbox)| mailbox.wake().clone()).collect();
    let handovers = rings(&wakes);
    let mut running = Running { far: Vec::new(), posts: posts.clone(), wakes, threads: Vec::new() };
    let parts = ends.into_iter().zip(handovers).zip(exchanges(&posts, 1, None));
    for (number, (((_, mailbox), handover), blocks)) in parts.enumerate() {
        let (near, far) = Memory::pair(100_000);
        let engine = engine(number as u8, workers);
        let worker = Worker::new(vec![near], engine, clock, mailbox, handover).exchanging(blocks);
        running.far.push(far);
        running.threads.push(std::thread::spawn(|| worker.run()));
    }
    running
}

impl Running {
    /// The outside ports of what was sent by any worker.
    fn sent(&mut self) -> Vec<u16> {
        let mut frames: Vec<Frame> = (0..64).map(|_| Frame::with_capacity(200)).collect();
        let mut ports = Vec::new();
        for far in &mut self.far {
            loop {
                let count = far.receive(&mut frames).unwrap();
                if count == 0 {
                    break;
                }
                let is_ours = |frame: &&Frame| frame.bytes()[0] == 0x45 && frame.bytes()[9] == 17;
                ports.extend(frames[..count].iter().filter(is_ours).map(|frame| {
                    let octets = frame.bytes();
                    u16::from_be_bytes([octets[20], octets[21]])
                }));
            }
        }
        ports
    }
}

#[test]
fn a_lone_host_gets_the_ports_of_workers_that_run() {
    for workers in [2, 4, 16] {
        let mut running = start(workers);
        let host: Ipv6Addr = "2001:db8:1::2".parse().unwrap();
        let (mut seen, begun, mut port) = (BTreeSet::new(), Instant::now(), 1_024u16);
        let wanted = PORTS.len() * 92 / 100;
        while seen.len() < wanted && begun.elapsed() < Duration::from_secs(60) {
            // By any queue.
            let far = usize::from(port) % running.far.len();
            for _ in 0..16 {
                running.far[far].send(&mut Frame::holding(&udp(host, port))).unwrap();
                port = if port == u16::MAX { 1_024 } else { port + 1 };
            }
            running.wakes[far].wake();
            std::thread::sleep(Duration::from_millis(1));
            seen.extend(running.sent());
        }
        assert!(seen.len() >= wanted, "{workers} workers: {} of {} ports", seen.len(), PORTS.len());
        for post in &running.posts {
            while post.send(Command::Stop).is_err() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        for thread in running.threads {
            thread.join().unwrap().unwrap();
        }
    }
}
