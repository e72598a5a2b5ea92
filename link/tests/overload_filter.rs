//! The overload filter in the kernel against the same in Rust, and in front of real queues.

use crate::steering_program::numbers;
use crate::support::test_run::run;
use crate::support::{HERE, THERE, in_namespace, ip, open};
use sixway_dataplane::fair_share::{
    BUCKETS, Bucket, FilterRule, PACKET, SenderHash, SenderTable, sender_bits,
};
use sixway_dataplane::frame::{MAX_PACKET, Realm};
use sixway_dataplane::{Frame, nat::Spread};
use sixway_link::tun::overload_filter::{Senders, VALID, loaded};
use sixway_link::{Abilities, Link as _, OverloadFilter, Steering, Tun, TunConfig, TunQueue};
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;

const PASS: u32 = u32::MAX;

/// The program in the kernel; where that takes none, the test is ignored.
fn program(senders: Senders) -> (OwnedFd, OverloadFilter) {
    match loaded(senders, 1) {
        Ok((program, mut filters)) => (program, filters.pop().unwrap()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            sixway_trial::ignore(format!("needs root ({error})"));
        }
        Err(error) => panic!("{error}"),
    }
}

/// Packets of some senders of both families, of every length, and others.
fn packets() -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    for seed in 0..400 {
        let mut packet: Vec<u8> = numbers(seed).take(60).collect();
        packet[0] = [0x45, 0x4f, 0x60, 0x6f, 0x45, 0x60, packet[0]][seed as usize % 7];
        // Few senders, so that each has many packets.
        let end = if packet[0] >> 4 == 4 { 16 } else { 24 };
        packet[if end == 16 { 12 } else { 8 }..end].fill(0x20);
        packet[end - 1] = seed as u8 % 11;
        packet.truncate(if seed % 5 == 0 { 14 + seed as usize / 5 % 20 } else { 60 });
        packets.push(packet);
    }
    packets
}

fn source(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => Some(IpAddr::from(*packet.get(12..)?.first_chunk::<4>()?)),
        6 => Some(IpAddr::from(*packet.get(8..)?.first_chunk::<16>()?)),
        _ => None,
    }
}

#[test]
fn the_program_counts_and_drops_what_rust_counts_and_drops() {
    for (bits, realm) in [(64, 0), (56, 7), (128, 0), (33, u16::MAX), (0, 1), (112, 0)] {
        let senders = Senders { bits, realm: Realm(realm) };
        let (program, mut filter) = program(senders);
        let rule = FilterRule { hash: SenderHash::new(bits.into()), limit: 3 * PACKET };
        let own: Vec<Bucket> = (0..BUCKETS).map(|_| Bucket::default()).collect();
        let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
        filter.set(Some(&rule));
        let mut dropped = 0;
        for packet in packets() {
            let passes = source(&packet).is_none_or(|source| {
                rule.admits(&own, rule.hash.bucket(Realm(realm), sender_bits(source, mask), 0))
            });
            dropped += u64::from(!passes);
            let expected = if passes { PASS } else { 0 };
            // The rule would expire on a slow machine.
            filter.set(Some(&rule));
            assert_eq!(run(&program, &packet).unwrap(), expected, "{bits} {packet:02x?}");
        }
        let counts = |buckets: &[Bucket]| -> Vec<(u32, u32)> {
            buckets.iter().map(|bucket| (bucket.offered.load(Relaxed), bucket.level.load(Relaxed))).collect()
        };
        assert_eq!(counts(filter.buckets()), counts(&own), "{bits}");
        assert_eq!(filter.dropped(), dropped);
        assert!(dropped > 20, "{dropped}");
    }
}

#[test]
fn without_a_rule_and_after_its_time_all_packets_pass_uncounted() {
    let (program, mut filter) = program(Senders { bits: 64, realm: Realm(0) });
    let packet = &packets()[1];
    let rule = FilterRule { hash: SenderHash::new(1), limit: 0 };
    let offered =
        |filter: &OverloadFilter| filter.buckets().iter().map(|it| it.offered.load(Relaxed)).sum::<u32>();
    assert_eq!(run(&program, packet).unwrap(), PASS);
    filter.set(Some(&rule));
    assert_eq!(run(&program, packet).unwrap(), 0);
    assert_eq!((offered(&filter), filter.dropped()), (PACKET, 1));
    std::thread::sleep(VALID);
    assert_eq!(run(&program, packet).unwrap(), PASS);
    filter.set(Some(&rule));
    assert_eq!(run(&program, packet).unwrap(), 0);
    filter.set(None);
    assert_eq!(run(&program, packet).unwrap(), PASS);
    assert_eq!((offered(&filter), filter.dropped()), (2 * PACKET, 2));
    // Its worker has ended.
    filter.set(Some(&rule));
    drop(filter);
    assert_eq!(run(&program, packet).unwrap(), PASS);
}

const OTHER: &str = "10.9.0.3";

/// A device with two queues and two hosts behind it, each of them in the queue that the steering chooses.
fn device(senders: Option<u8>) -> (String, Vec<TunQueue>, Steering) {
    let steering = Steering::by_ports(64, 2, Spread::new([3, 5], 64));
    let config = TunConfig {
        queues: 2,
        abilities: Abilities::ALL,
        steering: Some(steering.clone()),
        senders,
        ..TunConfig::default()
    };
    let tun = open(&config);
    for own in [HERE[0], OTHER] {
        ip(&format!("addr add {own}/24 dev {}", tun.name));
    }
    (tun.name, tun.queues, steering)
}

/// Sends to each port from this address.
fn send(from: &str, ports: impl Iterator<Item = u16>) {
    let socket = UdpSocket::bind((from, 0)).unwrap();
    ports.for_each(|port| assert!(socket.send_to(b"whole and right", (THERE[0], port)).is_ok()));
}

/// What each queue has, by source.
fn received(queues: &mut [TunQueue]) -> Vec<Vec<IpAddr>> {
    let mut batch: Vec<_> = (0..512).map(|_| Frame::with_capacity(MAX_PACKET)).collect();
    let take = |queue: &mut TunQueue| {
        let count = queue.receive(&mut batch).unwrap();
        let frames = &batch[..count];
        assert!(frames.iter().all(|frame| frame.bytes().ends_with(b"whole and right")));
        frames.iter().map(|frame| source(frame.bytes()).unwrap()).collect()
    };
    queues.iter_mut().map(take).collect()
}

#[test]
fn each_queue_has_a_filter_of_its_own_and_what_passes_is_whole() {
    in_namespace("overload", || {
        let (_, mut queues, steering) = device(Some(64));
        let filters: Vec<_> = queues.iter_mut().map(sixway_link::Link::take_filter).collect();
        let Some(mut filters) = filters.into_iter().collect::<Option<Vec<_>>>() else {
            sixway_trial::ignore("the kernel takes no filter");
        };
        // Ports of blocks of either queue.
        let ports =
            |queue: u32| (2_000..12_000).filter(move |port| u32::from(port / 64) % 2 == queue).step_by(50);
        assert!(ports(0).count() == 100 && ports(1).count() > 90);
        assert_eq!(steering.first_owner(33), 1);
        let all = |queues: &mut [TunQueue]| -> [usize; 2] {
            send(HERE[0], ports(0).chain(ports(1)));
            send(OTHER, ports(1).take(5));
            let by_queue = received(queues);
            let others = by_queue[1].iter().filter(|source| source.to_string() == OTHER).count();
            assert_eq!(others, 5, "a sender below the limit loses nothing");
            [by_queue[0].len(), by_queue[1].len() - others]
        };
        let [first, second] = all(&mut queues);
        assert_eq!(first, 100);
        let rule = FilterRule { hash: SenderHash::new(5), limit: 20 * PACKET };
        filters[1].set(Some(&rule));
        assert_eq!(all(&mut queues), [first, 20]);
        assert_eq!(filters[1].dropped(), second as u64 - 20);
        assert_eq!(filters[0].dropped(), 0);
        let offered = |filter: &dyn SenderTable| -> u32 {
            filter.buckets().iter().map(|bucket| bucket.offered.load(Relaxed)).sum()
        };
        assert_eq!(offered(&*filters[1]), (second as u32 + 5) * PACKET);
        assert_eq!(offered(&*filters[0]), 0);
        filters[0].set(Some(&rule));
        filters[1].set(None);
        assert_eq!(all(&mut queues), [20, second]);
        // The worker has ended.
        filters[0].set(Some(&rule));
        drop(filters);
        assert_eq!(all(&mut queues), [first, second]);
    });
}

#[test]
fn a_device_that_stays_does_not_keep_the_filter_of_an_earlier_process() {
    in_namespace("overload2", || {
        let (name, mut queues, _) = device(Some(64));
        let Some(mut filter) = queues[0].take_filter() else {
            sixway_trial::ignore("the kernel takes no filter");
        };
        filter.set(Some(&FilterRule { hash: SenderHash::new(5), limit: 0 }));
        let ports = || (2_000..12_000).filter(|port| port / 64 % 2 == 0).step_by(50);
        send(HERE[0], ports());
        assert!(received(&mut queues)[0].is_empty());
        // It is opened without senders while the process is still there.
        let config = TunConfig { name, queues: 1, found: false, ..TunConfig::default() };
        let again = sixway_link::Tun::open(&config).unwrap();
        drop(again);
        filter.set(Some(&FilterRule { hash: SenderHash::new(5), limit: 0 }));
        send(HERE[0], ports());
        assert_eq!(received(&mut queues)[0].len(), 100);
    });
}

/// It would stay with the device.
#[test]
fn a_device_of_another_program_gets_no_filter_and_keeps_its_own() {
    in_namespace("overload3", || {
        let (name, mut queues, _) = device(Some(64));
        let Some(mut filter) = queues[0].take_filter() else {
            sixway_trial::ignore("the kernel takes no filter");
        };
        let config = TunConfig { name, found: true, senders: Some(64), ..TunConfig::default() };
        let mut again = Tun::open(&config).unwrap();
        assert!(again.queues[0].take_filter().is_none());
        drop(again);
        filter.set(Some(&FilterRule { hash: SenderHash::new(5), limit: 0 }));
        send(HERE[0], (2_000..12_000).filter(|port| port / 64 % 2 == 0).step_by(50));
        assert!(received(&mut queues)[0].is_empty());
    });
}

/// The other worker only sends.
#[test]
fn a_device_with_a_single_queue_has_a_single_filter() {
    in_namespace("overload4", || {
        ip("tuntap add dev single mode tun");
        let config =
            TunConfig { name: "single".into(), queues: 2, senders: Some(64), ..TunConfig::default() };
        let mut queues = Tun::open(&config).unwrap().queues;
        if queues[0].take_filter().is_none() {
            sixway_trial::ignore("the kernel takes no filter");
        }
        assert!(queues[1].take_filter().is_none());
    });
}
