//! Any text is a dynamic pool's file, as far as its lines are records: no address is given twice, and what is written down again is
//! taken over again.

use sixway_dataplane::mechanism::siit::dynamic_pool::{
    DynamicPool, DynamicPoolConfig, Record, WallClock, parse_records, write_records,
};
use sixway_dataplane::{Instant, WorkerId};
use std::collections::BTreeSet;

const WALL: WallClock = WallClock { now: Instant::from_secs(100_000), unix_seconds: 2_000_000_000 };

pub fn run(octets: &[u8]) {
    let text = String::from_utf8_lossy(octets);
    let lines = text.lines().count();
    let mut records = Vec::new();
    for (line, record) in parse_records(&text) {
        assert!((1..=lines).contains(&line), "line {line} of {lines}");
        match record {
            Ok(record) => records.push(record),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    for workers in [1, 3] {
        for worker in 0..workers {
            one_worker(&records, WorkerId(worker), workers);
        }
    }
}

fn one_worker(records: &[Record], worker: WorkerId, workers: u8) {
    let mut first = pool(worker, workers);
    let addresses = first.free();
    let restored = first.restore(records.iter().copied(), WALL);
    assert_eq!(restored.hosts as u32, first.live() + first.remembered());
    assert_eq!(addresses, first.free() + first.live() + first.remembered(), "addresses are conserved");
    let kept: Vec<Record> = first.snapshot(WALL).collect();
    assert_eq!(kept.iter().map(|record| record.address).collect::<BTreeSet<_>>().len(), kept.len());
    assert_eq!(kept.iter().map(|record| record.host).collect::<BTreeSet<_>>().len(), kept.len());

    let mut written = String::new();
    write_records(kept.iter().copied(), &mut written).unwrap();
    let read: Vec<Record> = parse_records(&written).map(|(_, record)| record.unwrap()).collect();
    assert_eq!(read, kept);
    let mut second = pool(worker, workers);
    assert_eq!(second.restore(read, WALL).hosts, kept.len(), "what was written down is taken over");
    assert_eq!((second.live(), second.remembered()), (first.live(), first.remembered()));
}

fn pool(worker: WorkerId, workers: u8) -> DynamicPool {
    let config = DynamicPoolConfig::new("172.16.0.0/27".parse().unwrap());
    DynamicPool::new(&config, worker, workers, [1, 2]).unwrap()
}
