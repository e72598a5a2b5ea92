//! What address translation costs, in nanoseconds a call: `cargo bench -p sixway-dataplane --bench address`.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a benchmark reads the clock")]
#![allow(clippy::unwrap_used, reason = "a benchmark may stop at the first surprise")]
#![allow(missing_docs)]

mod median;

use median::median;
use sixway_dataplane::mechanism::siit::dynamic_pool::{DynamicPool, DynamicPoolConfig};
use sixway_dataplane::translate::address::rfc6052::PREFIX_LENGTHS;
use sixway_dataplane::translate::address::{EamTable, Rfc6052};
use sixway_dataplane::{Instant as Moment, WorkerId};
use sixway_wire::{Prefix4, Prefix6};
use std::hint::black_box;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Instant;

/// Numbers that look random (splitmix64), the same in every run.
fn scattered(n: u64) -> u64 {
    let mut z = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// The time a call takes, the median of seven rounds through the inputs.
fn measure<T: Copy, R>(name: &str, inputs: &[T], mut call: impl FnMut(T) -> R) {
    let mut rounds = [0.0; 7];
    for round in &mut rounds {
        let start = Instant::now();
        for input in inputs {
            black_box(call(black_box(*input)));
        }
        *round = start.elapsed().as_nanos() as f64 / inputs.len() as f64;
    }
    println!("{name:<58} {:>8.1} ns", median(&mut rounds));
}

fn rfc6052() {
    let fours: Vec<Ipv4Addr> = (0..4_096).map(|n| Ipv4Addr::from_bits(scattered(n) as u32)).collect();
    let prefixes = PREFIX_LENGTHS
        .map(|length| Prefix6::holding(Ipv6Addr::new(0x2001, 0xdb8, 0x122, 0x344, 0, 0, 0, 0), length));
    let well_known: Prefix6 = "64:ff9b::/96".parse().unwrap();
    for prefix in prefixes.into_iter().chain([well_known]) {
        let translator = Rfc6052::new(prefix, false).unwrap();
        let sixes: Vec<Ipv6Addr> = fours.iter().map(|four| translator.embed_any(*four)).collect();
        measure(&format!("embed {prefix}"), &fours, |four| translator.embed(four));
        measure(&format!("contains and extract {prefix}"), &sixes, |six| {
            translator.contains(six).then(|| translator.extract(six))
        });
    }
}

fn eam(rows: u32) {
    let row = |n: u32| {
        let six = Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(scattered(n.into())));
        (Prefix4::holding(Ipv4Addr::from_bits(0x0a00_0000 + n), 32), Prefix6::holding(six, 128))
    };
    let start = Instant::now();
    let table = EamTable::new((0..rows).map(row)).unwrap();
    let built = start.elapsed();
    println!("EAM {rows} rows: built in {built:.1?}, {} octets a row", table.memory() / rows as usize);
    let order: Vec<_> =
        (0..rows.max(4_096)).map(|n| row((scattered(n.into()) % u64::from(rows)) as u32)).collect();
    measure(&format!("EAM {rows} rows, to IPv6"), &order, |row| table.to6(row.0.address()));
    measure(&format!("EAM {rows} rows, to IPv4"), &order, |row| table.to4(row.1.address()));
    let internet: Vec<_> =
        (0..4_096).map(|n| Ipv4Addr::from_bits(0x5000_0000 | scattered(n) as u32 >> 4)).collect();
    measure(&format!("EAM {rows} rows, no mapping, to IPv6"), &internet, |four| table.to6(four));
    let well_known = |four: Ipv4Addr| Ipv6Addr::from_bits(0x0064_ff9b << 96 | u128::from(four.to_bits()));
    let internet: Vec<_> = internet.into_iter().map(well_known).collect();
    measure(&format!("EAM {rows} rows, no mapping, to IPv4"), &internet, |six| table.to4(six));
    for chunk in [256] {
        let mut rounds = [0.0; 7];
        for round in &mut rounds {
            let start = Instant::now();
            for batch in order.chunks(chunk) {
                black_box(batch.iter().fold(0, |sum, row| sum ^ table.warm4(row.0.address())));
                for row in batch {
                    black_box(table.to6(black_box(row.0.address())));
                }
            }
            *round = start.elapsed().as_nanos() as f64 / order.len() as f64;
        }
        let name = format!("EAM {rows} rows, to IPv6, batches of {chunk}, warmed");
        println!("{name:<58} {:>8.1} ns", median(&mut rounds));
    }
}

fn pool(hosts: u32) {
    let host = |n: u32| Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(scattered(n.into())));
    let config = DynamicPoolConfig::new("172.16.0.0/12".parse().unwrap());
    let mut pool = DynamicPool::new(&config, WorkerId(0), 1, [3, 4]).unwrap();
    let now = Moment::from_secs(5);
    let start = Instant::now();
    for n in 0..hosts {
        black_box(pool.assign(host(n), now).unwrap());
    }
    let each = start.elapsed().as_nanos() as f64 / f64::from(hosts);
    println!(
        "pool 172.16.0.0/12, {hosts} hosts: {each:.0} ns an assignment, {} octets of memory at most",
        pool.memory()
    );
    let order: Vec<u32> =
        (0..hosts.max(4_096)).map(|n| (scattered(n.into()) % u64::from(hosts)) as u32).collect();
    let sixes: Vec<_> = order.iter().map(|n| host(*n)).collect();
    let fours: Vec<_> = sixes.iter().map(|six| pool.lookup6(*six, now).unwrap()).collect();
    measure(&format!("pool of {hosts} hosts, to IPv4"), &sixes, |six| pool.lookup6(six, now));
    measure(&format!("pool of {hosts} hosts, to IPv6"), &fours, |four| pool.lookup4(four, now));
    let strangers: Vec<_> = (0..4_096).map(|n| host(0x8000_0000 | n)).collect();
    measure(&format!("pool of {hosts} hosts, unknown host"), &strangers, |six| pool.lookup6(six, now));
    if pool.free() < 100_000 {
        let last: Vec<_> = (0..pool.free()).map(|n| host(0x4000_0000 | n)).collect();
        let start = Instant::now();
        for six in &last {
            black_box(pool.assign(*six, now).unwrap());
        }
        let each = start.elapsed().as_nanos() as f64 / last.len() as f64;
        println!("{:<58} {each:>8.1} ns", "an assignment, from 95 % to the last address");
        let start = Instant::now();
        for six in &strangers {
            black_box(pool.assign(*six, now).unwrap_err());
        }
        let each = start.elapsed().as_nanos() as f64 / strangers.len() as f64;
        println!("{:<58} {each:>8.1} ns", "a refusal, all addresses taken");
    }
}

fn main() {
    rfc6052();
    for rows in [1, 1_000, 1_000_000] {
        eam(rows);
    }
    for hosts in [1, 1_000, 1_000_000] {
        pool(hosts);
    }
}
