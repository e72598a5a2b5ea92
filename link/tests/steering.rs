//! The kernel puts packets into the queue of the worker that owns their state: what it is given and what the NAT deals out
//! agree.

use sixway_dataplane::classify::ownership::of_fragments;
use sixway_dataplane::mechanism::nat44::{Nat44, Nat44Config};
use sixway_dataplane::mechanism::nat64::worker_of;
use sixway_dataplane::nat::{InsideHost, Ownership, PORTS_PER_BLOCK, PoolConfig, Spread};
use sixway_dataplane::parse::parse;
use sixway_dataplane::verdict::{PolicyId, WorkerId};
use sixway_link::Steering;
use sixway_wire::{Ipv4Header, Ipv6Header};
use std::net::Ipv4Addr;

/// A header in front of a transport header with these first eight octets.
fn v4(host: u32, protocol: u8, transport: [u8; 8]) -> Vec<u8> {
    let header = Ipv4Header::new(host.into(), [192, 0, 2, 1].into(), protocol, transport.len());
    [&header.octets()[..], &transport].concat()
}

fn v6(host: u128, next_header: u8, transport: [u8; 8]) -> Vec<u8> {
    let server = [0x64, 0xff9b, 0, 0, 0, 0, 0xcb00, 0x7102].into();
    let header = Ipv6Header::new(host.into(), server, next_header, transport.len());
    [&header.octets()[..], &transport].concat()
}

/// The queue and the owner of a packet.
fn queue_and_owner(packet: &[u8], workers: u8) -> (u8, u8) {
    let spread = Spread::new([3, 5], 64);
    let steering = Steering::by_ports(PORTS_PER_BLOCK, workers, spread);
    let parsed = parse(packet).unwrap_or_else(|reason| panic!("{reason:?}: {packet:02x?}"));
    let owner = of_fragments(&parsed, workers)
        .unwrap_or_else(|| worker_of(&Ownership::striped(workers, spread), &parsed, None));
    (steering.worker(packet), owner.0)
}

#[test]
fn packets_from_outside_come_to_the_owner_of_their_port() {
    for workers in 1..=16 {
        for port in (0..=u16::MAX).step_by(61) {
            let [high, low] = port.to_be_bytes();
            let udp = v4(0xcb00_7102, 17, [0, 53, high, low, 0, 8, 0, 0]);
            let echo_reply = v4(0xcb00_7102, 1, [0, 0, 0, 0, high, low, 0, 1]);
            let echo = v4(0xcb00_7102, 1, [8, 0, 0, 0, high, low, 0, 1]);
            for packet in [udp, echo_reply, echo] {
                let (queue, owner) = queue_and_owner(&packet, workers);
                assert_eq!(queue, owner, "port {port}, {workers} workers");
            }
        }
    }
}

#[test]
fn packets_from_inside_come_to_the_owner_of_their_host() {
    for workers in 1..=16 {
        for n in 0..2_000u128 {
            let host =
                (0x2001_0db8u128 << 96) | n.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835) >> 32;
            for packet in
                [v6(host, 17, [15, 161, 0, 53, 0, 8, 0, 0]), v6(host, 58, [128, 0, 0, 0, 0, 7, 0, 1])]
            {
                let (queue, owner) = queue_and_owner(&packet, workers);
                assert_eq!(queue, owner, "host {host:x}, {workers} workers");
            }
        }
    }
}

#[test]
fn packets_from_inside_of_a_nat44_come_to_the_owner_of_their_host() {
    let (inside, pool) = ("10.0.0.0/8".parse().unwrap(), "192.0.2.0/24".parse().unwrap());
    let config =
        Nat44Config::new(vec![inside], PoolConfig { addresses: vec![pool], ports: vec![1_024..=65_535] });
    let key = [3, 5];
    let spread = Spread::new(key, <Ipv4Addr as InsideHost>::SUBSCRIBER_BITS);
    for workers in 1..=16 {
        let steering = Steering::by_ports(PORTS_PER_BLOCK, workers, Spread::new(key, 64)).with_addresses(
            spread,
            vec![inside],
            vec![pool],
        );
        let nat44 = Nat44::keyed(&config, PolicyId(0), (WorkerId(0), workers), [1, 2], key);
        for n in 0..2_000_u32 {
            let host = 10 << 24 | n.wrapping_mul(0x9e37_79b9) >> 8;
            let owner = nat44.ownership().worker_of_inside(host.into()).0;
            // To the pool: a hairpin.
            for packet in [v4(host, 17, [15, 161, 0, 53, 0, 8, 0, 0]), v4(host, 1, [13, 0, 0, 0, 0, 7, 0, 1])]
            {
                assert_eq!(steering.worker(&packet), owner, "host {host:x}, {workers} workers");
            }
        }
    }
}
