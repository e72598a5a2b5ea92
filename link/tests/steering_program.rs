//! The steering program in the kernel against the same in Rust.

use crate::support::test_run::run;
use sixway_dataplane::nat::Spread;
use sixway_link::Steering;
use sixway_link::tun::ebpf::load;
use sixway_link::tun::steering::{BlockMap, steering_program};
use sixway_wire::Prefix4;
use std::io;
use std::os::fd::OwnedFd;

/// Numbers that look random and are the same every time.
pub fn numbers(seed: u64) -> impl Iterator<Item = u8> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    })
}

/// Packets of every kind that the program tells apart, and cut ones.
fn packets() -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    for seed in 0..40 {
        let random: Vec<u8> = numbers(seed).take(100).collect();
        for (octet, at, protocols) in
            [(0x45, 9, [6, 17, 1, 47]), (0x47, 9, [33, 132, 136, 1]), (0x60, 6, [6, 17, 58, 44])]
        {
            for protocol in protocols {
                let mut packet = random.clone();
                (packet[0], packet[at]) = (octet, protocol);
                if octet != 0x60 {
                    packet[6] &= if seed % 4 == 0 { 0xff } else { 0x40 };
                    packet[7] = if seed % 4 == 0 { packet[7] } else { 0 };
                    let transport = usize::from(octet & 0x0f) * 4;
                    packet[transport] =
                        if protocol == 1 { [0, 8, 3, 11][seed as usize % 4] } else { packet[transport] };
                }
                packets.push(packet);
            }
        }
        packets.push(random);
    }
    packets
}

/// The program in the kernel; where that takes none, the test is ignored.
fn loaded(steering: &Steering) -> (OwnedFd, BlockMap) {
    let blocks = BlockMap::new(steering);
    match blocks.and_then(|blocks| Ok((load(&steering_program(steering, &blocks), c"steering")?, blocks))) {
        Ok(loaded) => loaded,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            sixway_trial::ignore(format!("needs root ({error})"));
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_program_chooses_the_worker_that_rust_chooses() {
    for (ports_per_block, workers) in [(64, 2), (64, 3), (1, 16), (4_096, 255), (u16::MAX, 1)] {
        let steering = Steering::by_ports(ports_per_block, workers, Spread::new([3, 5], 64));
        let (program, blocks) = loaded(&steering);
        let mut chosen = [0; 256];
        for packet in packets() {
            let worker = steering.worker(&packet);
            assert!(worker < workers);
            chosen[usize::from(worker)] += 1;
            assert_eq!(run(&program, &packet).unwrap(), u32::from(worker), "{steering:?} {packet:02x?}");
        }
        // Every third block moves.
        let moved =
            |block: u32| if block.is_multiple_of(3) { workers - 1 } else { steering.first_owner(block) };
        for block in (0..steering.blocks()).step_by(3) {
            blocks.set(block, workers - 1).unwrap();
        }
        for packet in packets() {
            let worker = steering.worker_by(&packet, moved);
            assert_eq!(run(&program, &packet).unwrap(), u32::from(worker), "{steering:?} {packet:02x?}");
        }
        for block in (0..steering.blocks()).step_by(3) {
            blocks.set(block, steering.first_owner(block)).unwrap();
        }
        if workers < 16 {
            assert!(chosen[..usize::from(workers)].iter().all(|count| *count > 100), "{chosen:?}");
        }
        cut_packets_too(&steering, &program);
    }
}

fn cut_packets_too(steering: &Steering, program: &OwnedFd) {
    for packet in packets().iter().step_by(7) {
        for length in 20..60 {
            let cut = &packet[..length];
            assert_eq!(run(program, cut).unwrap(), u32::from(steering.worker(cut)), "{cut:02x?}");
        }
    }
}

/// Prefixes of every length, the first of them without bits.
fn networks(count: u32) -> Vec<Prefix4> {
    (1..=count).map(|n| Prefix4::holding((n.wrapping_mul(0x9e37_79b9)).into(), (n % 33) as u8)).collect()
}

#[test]
fn the_program_knows_inside_hosts_and_pools_as_rust_does() {
    let by_ports = Steering::by_ports(64, 4, Spread::new([3, 5], 64));
    let spread4 = Spread::new([3, 5], 32);
    let [most, all] = [networks(64), vec![Prefix4::holding(0.into(), 0)]];
    let half: Vec<Prefix4> = ["128.0.0.0/1", "64.0.0.0/4"].map(|text| text.parse().unwrap()).into();
    for (inside, pools) in [
        (vec![], vec![]),
        (half.clone(), vec![]),
        (vec![], half.clone()),
        (half.clone(), half.clone()),
        (all.clone(), half),
        (vec![], all),
        (most.clone(), most),
    ] {
        let steering = by_ports.clone().with_addresses(spread4, inside, pools);
        let (program, _blocks) = loaded(&steering);
        for packet in packets() {
            let worker = steering.worker(&packet);
            assert_eq!(run(&program, &packet).unwrap(), u32::from(worker), "{steering:?} {packet:02x?}");
        }
        cut_packets_too(&steering, &program);
    }
}

#[test]
fn more_prefixes_than_the_program_compares_are_left_out() {
    let by_ports = Steering::by_ports(64, 4, Spread::new([3, 5], 64));
    let steering = by_ports.clone().with_addresses(by_ports.spread4, networks(65), networks(65));
    assert_eq!(steering, by_ports);
}

#[test]
fn the_program_spreads_prefixes_of_any_length_as_rust_does() {
    for bits in [0, 1, 32, 56, 64, 65, 96, 127, 128] {
        let steering = Steering::by_ports(64, 200, Spread::new([7, 9], bits));
        let (program, _blocks) = loaded(&steering);
        for packet in packets().iter().filter(|packet| packet[0] >> 4 == 6) {
            assert_eq!(run(&program, packet).unwrap(), u32::from(steering.worker(packet)), "{bits} bits");
        }
    }
}

#[test]
fn ports_go_by_their_block() {
    let steering = Steering::by_ports(64, 4, Spread::new([3, 5], 64));
    let mut packet = vec![0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 192, 0, 2, 1, 198, 51, 100, 1];
    packet.resize(40, 0);
    for (port, worker) in [(0_u16, 0), (63, 0), (64, 1), (255, 3), (256, 0), (65_535, 3)] {
        packet[22..24].copy_from_slice(&port.to_be_bytes());
        assert_eq!(steering.worker(&packet), worker);
    }
    packet[9] = 1;
    packet[20] = 8;
    packet[24..26].copy_from_slice(&64_u16.to_be_bytes());
    assert_eq!(steering.worker(&packet), 1, "an echo request goes by its identifier");
    // Outside of the pools it does not, and from inside a packet goes by its source.
    let pool = |text: &str| vec![text.parse().unwrap()];
    let at = |inside, pools| steering.clone().with_addresses(steering.spread4, inside, pools).worker(&packet);
    assert_eq!(at(vec![], pool("198.51.100.0/24")), 1);
    let elsewhere = at(vec![], pool("198.51.101.0/24"));
    assert_ne!(elsewhere, 1);
    assert_eq!(at(pool("192.0.0.0/24"), pool("198.51.101.0/24")), elsewhere);
    let by_source = steering.spread4.worker(0xc000_0201 << 96, 4);
    assert_ne!(by_source, 1);
    assert_eq!(at(pool("192.0.2.0/24"), pool("198.51.100.0/24")), by_source);
}
