//! A real TUN device in a network namespace of its own. The device's far side is a mirror that swaps the addresses, so
//! that this host's kernel talks to itself through the link and judges every checksum, length and GSO packet.

use crate::support::{
    address, addresses, assert_clean, in_namespace, open, segment_udp, snmp, turn_round, wait,
};
use sixway_dataplane::{Checksum, Frame, SegmentKind, Segments};
use sixway_link::{Abilities, Link, LinkCounters, Steering, Tun, TunConfig, TunQueue, interface};
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

fn frames(count: usize) -> Vec<Frame> {
    (0..count).map(|_| Frame::with_capacity(65_600)).collect()
}

fn config(queues: usize, abilities: Abilities) -> TunConfig {
    TunConfig { queues, abilities, ..TunConfig::default() }
}

/// A thread that turns round what comes out of `from` and puts it into `into`, or back into `from`.
struct Mirror {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(LinkCounters, LinkCounters)>,
}

impl Mirror {
    fn start(mut from: TunQueue, mut into: Option<TunQueue>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut batch = frames(64);
            while !flag.load(Ordering::Relaxed) {
                wait(&from, Duration::from_millis(20));
                let count = from.receive(&mut batch).unwrap();
                for frame in &mut batch[..count] {
                    turn_round(frame.bytes_mut());
                    into.as_mut().unwrap_or(&mut from).send(frame).unwrap();
                }
            }
            (*from.counters(), into.map_or_else(LinkCounters::default, |into| *into.counters()))
        });
        Self { stop, thread }
    }

    fn stop(self) -> (LinkCounters, LinkCounters) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Sends `length` octets through a TCP connection to the other side of the mirror and compares what arrives.
fn transfer(six: bool, length: usize) {
    let (here, there) = addresses(six);
    let listener = TcpListener::bind((here, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let sent: Vec<u8> = (0..length).map(|n| (n % 253) as u8).collect();
    let expected = sent.clone();
    let sender = std::thread::spawn(move || {
        let mut stream = TcpStream::connect((there, port)).unwrap();
        stream.write_all(&sent).unwrap();
    });
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    sender.join().unwrap();
    assert!(received == expected, "{} of {length} octets, or others", received.len());
}

fn udp_pair(six: bool) -> (UdpSocket, UdpSocket, IpAddr) {
    let (here, there) = addresses(six);
    let sockets = [UdpSocket::bind((here, 0)).unwrap(), UdpSocket::bind((here, 0)).unwrap()];
    let [one, other] = sockets;
    other.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    (one, other, there)
}

#[test]
fn a_small_datagram_goes_out_and_comes_back() {
    in_namespace("small", || {
        let mut tun = open(&config(1, Abilities::ALL));
        address(&tun.name);
        let mut queue = tun.queues.remove(0);
        for six in [false, true] {
            let (one, other, there) = udp_pair(six);
            one.send_to(b"hello", (there, other.local_addr().unwrap().port())).unwrap();
            assert!(wait(&queue, Duration::from_secs(1)));
            let mut batch = frames(4);
            assert_eq!(queue.receive(&mut batch).unwrap(), 1);
            let frame = &mut batch[0];
            assert_eq!(frame.offload.segments, None);
            assert_eq!(frame.offload.checksum, Checksum::Partial, "the kernel leaves it to us");
            turn_round(frame.bytes_mut());
            queue.send(frame).unwrap();
            let mut buffer = [0; 100];
            let (length, from) = other.recv_from(&mut buffer).unwrap();
            assert_eq!((&buffer[..length], from.ip()), (&b"hello"[..], there));
            assert_eq!(queue.receive(&mut batch).unwrap(), 0);
        }
        assert_clean(queue.counters());
    });
}

#[test]
fn a_udp_gso_packet_comes_whole_and_is_cut_by_the_kernel_at_the_socket() {
    in_namespace("uso", || {
        let mut tun = open(&config(1, Abilities::ALL));
        if !tun.abilities.uso {
            sixway_trial::ignore("needs Linux 6.2 (UDP GSO packets on TUN devices)");
        }
        address(&tun.name);
        let mut queue = tun.queues.remove(0);
        for six in [false, true] {
            let (one, other, there) = udp_pair(six);
            segment_udp(&one, 1_000);
            one.send_to(&[7; 4_500], (there, other.local_addr().unwrap().port())).unwrap();
            assert!(wait(&queue, Duration::from_secs(1)));
            let mut batch = frames(4);
            assert_eq!(queue.receive(&mut batch).unwrap(), 1);
            let frame = &mut batch[0];
            assert_eq!(frame.offload.segments, Some(Segments { size: 1_000, kind: SegmentKind::Udp }));
            assert_eq!(frame.offload.checksum, Checksum::Partial);
            turn_round(frame.bytes_mut());
            queue.send(frame).unwrap();
            let mut buffer = [0; 9_000];
            let lengths: Vec<_> = (0..5).map(|_| other.recv(&mut buffer).unwrap()).collect();
            assert_eq!(lengths, [1_000, 1_000, 1_000, 1_000, 500]);
        }
        assert_clean(queue.counters());
        assert_eq!(snmp("Udp", "InCsumErrors"), 0);
    });
}

#[test]
fn tcp_gso_packets_pass_both_ways_with_true_checksums() {
    in_namespace("tso", || {
        let mut tun = open(&config(1, Abilities::ALL));
        address(&tun.name);
        let mirror = Mirror::start(tun.queues.remove(0), None);
        transfer(false, 4_000_000);
        transfer(true, 4_000_000);
        let (counters, _) = mirror.stop();
        assert_eq!(snmp("Tcp", "InErrs"), 0);
        assert_clean(&counters);
        assert!(counters.received_gso > 100, "{counters:?}");
        assert_eq!(counters.received_gso, counters.sent_gso);
        assert!(counters.sent < 4_000, "8 MB in 1,448-octet segments would be 5,500 packets: {counters:?}");
    });
}

#[test]
fn every_step_down_carries_the_same_octets() {
    for abilities in Abilities::ALL.steps().chain([Abilities::NONE]) {
        in_namespace("fallback", move || {
            let mut tun = open(&config(1, abilities));
            assert_eq!(tun.abilities, abilities);
            address(&tun.name);
            let mirror = Mirror::start(tun.queues.remove(0), None);
            transfer(false, 300_000);
            transfer(true, 300_000);
            let (counters, _) = mirror.stop();
            assert_clean(&counters);
            assert_eq!(counters.received_gso > 0, abilities.tso);
            assert_eq!(snmp("Tcp", "InErrs"), 0);
        });
    }
}

#[test]
fn gso_packets_are_cut_for_a_device_that_takes_none() {
    in_namespace("cut", || {
        let mut able = open(&config(1, Abilities::ALL));
        let mut plain = open(&config(1, Abilities::NONE));
        address(&able.name);
        let mirror = Mirror::start(able.queues.remove(0), Some(plain.queues.remove(0)));
        transfer(false, 1_000_000);
        transfer(true, 1_000_000);
        let uso = able.abilities.uso;
        for six in [false, true] {
            let (one, other, there) = udp_pair(six);
            segment_udp(&one, 700);
            one.send_to(&[7; 1_500], (there, other.local_addr().unwrap().port())).unwrap();
            let mut buffer = [0; 9_000];
            let lengths: Vec<_> = (0..3).map(|_| other.recv(&mut buffer).unwrap()).collect();
            assert_eq!(lengths, [700, 700, 100]);
        }
        let (received, sent) = mirror.stop();
        assert_clean(&received);
        assert_clean(&sent);
        assert_eq!(sent.gso_segmented, received.received_gso);
        assert!(sent.gso_segmented > if uso { 2 } else { 0 }, "{sent:?}");
        assert!(sent.sent > received.received + sent.gso_segmented);
        assert_eq!((snmp("Tcp", "InErrs"), snmp("Udp", "InCsumErrors")), (0, 0));
    });
}

#[test]
fn two_queues_carry_connections_side_by_side() {
    in_namespace("queues", || {
        let mut tun = open(&config(2, Abilities::ALL));
        address(&tun.name);
        let mirrors: Vec<_> = tun.queues.drain(..).map(|queue| Mirror::start(queue, None)).collect();
        for n in 0..16 {
            transfer(n % 2 == 0, 50_000);
        }
        for mirror in mirrors {
            let (counters, _) = mirror.stop();
            assert_clean(&counters);
            assert!(counters.received > 0, "a queue without packets: {counters:?}");
        }
    });
}

#[test]
fn packets_are_steered_to_the_queue_of_their_ports_block_or_their_source() {
    in_namespace("steering", || {
        let spread = sixway_dataplane::nat::Spread::new([3, 5], 64);
        let steering = Steering::by_ports(64, 2, spread);
        let mut tun = open(&TunConfig { steering: Some(steering.clone()), ..config(2, Abilities::ALL) });
        if tun.blocks.is_none() {
            sixway_trial::ignore("the kernel takes no steering program");
        }
        address(&tun.name);
        let mut batch = frames(256);
        for six in [false, true] {
            let (one, _, there) = udp_pair(six);
            for port in (1_000..9_000).step_by(40) {
                one.send_to(b"where to?", (there, port)).unwrap();
            }
            let mut counts = [0; 2];
            for (number, queue) in tun.queues.iter_mut().enumerate() {
                counts[number] = queue.receive(&mut batch).unwrap();
                for frame in &batch[..counts[number]] {
                    assert_eq!(usize::from(steering.worker(frame.bytes())), number);
                }
            }
            assert_eq!(counts[0] + counts[1], 200);
            assert!(six || counts.iter().all(|count| *count > 80), "{counts:?}");
        }
    });
}

/// Whether the device vanishes: a process that another test is about to start holds its file a moment longer.
fn gone(name: &str) -> bool {
    (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        interface::index(name).is_err()
    })
}

#[test]
fn the_device_is_set_up_as_asked_and_goes_with_its_queues() {
    in_namespace("device", || {
        let tun = open(&config(1, Abilities::ALL));
        let name = tun.name.clone();
        assert!(name.starts_with("sixway"));
        assert!(interface::index(&name).unwrap() > 0);
        assert_eq!(interface::mtu(&name).unwrap(), 1_500);
        let link = std::process::Command::new("ip").args(["link", "show", &name]).output().unwrap();
        let link = String::from_utf8_lossy(&link.stdout).into_owned();
        assert!(link.contains("qlen 10000") && link.contains(",UP"), "{link}");
        assert!(link.contains("qdisc noqueue"), "{link}");
        drop(tun);
        assert!(gone(&name));
    });
}

#[test]
fn a_persistent_device_is_adopted_and_can_be_given_up() {
    in_namespace("persist", || {
        let persistent = TunConfig { name: "sixway-p".into(), persist: true, ..TunConfig::default() };
        let tun = Tun::open(&persistent).unwrap();
        let index = interface::index("sixway-p").unwrap();
        drop(tun);
        assert_eq!(interface::index("sixway-p").unwrap(), index);
        let again = Tun::open(&TunConfig { persist: false, ..persistent }).unwrap();
        assert_eq!(interface::index("sixway-p").unwrap(), index);
        drop(again);
        assert!(gone("sixway-p"));
    });
}

#[test]
fn a_packet_for_a_device_that_is_down_is_counted_as_refused() {
    in_namespace("down", || {
        let mut tun = Tun::open(&config(1, Abilities::ALL)).unwrap();
        let mut frame = Frame::holding(&[0x45; 40]);
        tun.queues[0].send(&mut frame).unwrap();
        assert_eq!((tun.queues[0].counters().refused, tun.queues[0].counters().sent), (1, 0));
    });
}

#[test]
fn a_name_that_is_too_long_is_refused_before_the_kernel_sees_it() {
    let long = TunConfig { name: "a-name-of-16-octs".into(), ..TunConfig::default() };
    match Tun::open(&long) {
        Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {}
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => sixway_trial::ignore(error),
        Err(error) => panic!("{error}"),
        Ok(tun) => panic!("opened as {}", tun.name),
    }
}
