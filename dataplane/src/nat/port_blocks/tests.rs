use super::*;
use crate::instant::Instant;
use crate::nat::StateLimits;
use crate::nat::SubscriberLimits;
use crate::nat::binding::BindingTable;
use crate::nat::config::{Config, SubscriberPolicy};
use crate::nat::deterministic::Deterministic;
use crate::nat::not_adopted::NotAdopted;
use crate::nat::ownership::Ownership;
use crate::nat::permit::Filtering;
use crate::nat::pool::{Pool, PoolConfig};
use crate::nat::sides::{Inside, Outside};
use crate::nat::static_binding::StaticBinding;
use crate::nat::timeouts::{Clock, Timeouts};
use crate::nat::{Spread, SubscriberRow, whole_blocks};
use crate::verdict::WorkerId;
use crate::{counters::Counters, drop_reason::DropReason};
use alloc::sync::Arc;
use core::net::Ipv4Addr;
use proptest::prelude::*;
use sixway_wire::Endpoint4;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

const UDP: NatProtocol = NatProtocol::Udp;
const TCP: NatProtocol = NatProtocol::Tcp;

/// Blocks of 64 ports, two for a subscriber, returned after ten seconds.
const POLICY: BlockPolicy = BlockPolicy { size: 64, most: 2, idle_seconds: 10 };

fn config(policy: BlockPolicy, addresses: &str, ports: RangeInclusive<u16>) -> Config<Endpoint4> {
    Config {
        pool: PoolConfig { addresses: vec![addresses.parse().unwrap()], ports: vec![ports] },
        filtering: Filtering::AddressDependent,
        static_bindings: Vec::new(),
        timeouts: Timeouts::default(),
        limits: StateLimits {
            bindings: 10_000,
            of_subscriber: SubscriberLimits::NONE,
            ..StateLimits::default()
        },
        subscribers: SubscriberPolicy { blocks: Some(policy), ..SubscriberPolicy::new(32) },
    }
}

/// One worker's table.
struct Table {
    bindings: BindingTable<Endpoint4>,
    second: u64,
}

fn table(config: &Config<Endpoint4>) -> Table {
    let size = config.subscribers.blocks.unwrap().size;
    let ownership = Ownership::<Ipv4Addr>::in_blocks_of(size, 1, Spread::new([1, 2], 32));
    let pool = Pool::new(&config.given(), &ownership, WorkerId(0), [1, 2]);
    Table { bindings: BindingTable::new(config, pool, [1, 2]), second: 100 }
}

fn host(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}

impl Table {
    fn clock(&self) -> Clock {
        Clock::at(Instant::from_secs(self.second))
    }

    fn bind(&mut self, last: u8, protocol: NatProtocol, port: u16) -> Result<u32, DropReason> {
        let inside = Inside(Endpoint4::new(host(last), port));
        let clock = self.clock();
        self.bindings.bind(protocol, inside, clock, &mut Counters::default())
    }

    fn outside(&self, binding: u32) -> Endpoint4 {
        self.bindings.get(binding).outside.0
    }

    fn unbind(&mut self, binding: u32) {
        let second = self.second as u32;
        self.bindings.remove(binding, second, &mut Counters::default());
    }

    /// Time goes on by seconds; blocks that were returned.
    fn passes(&mut self, seconds: u64) -> usize {
        self.second += seconds;
        let second = self.second as u32;
        while self.bindings.end_quarantine(second) {}
        let mut returned = 0;
        while self.bindings.end_idle_block(second) {
            returned += 1;
        }
        returned
    }

    fn row(&self, last: u8) -> Option<SubscriberRow> {
        let rows = (0..self.bindings.subscriber_slots()).filter_map(|slot| self.bindings.subscriber(slot, 0));
        rows.into_iter().find(|row| row.address == host(last).to_ipv6_mapped())
    }

    /// The row of a subscriber, as owner of blocks.
    fn owner(&self, last: u8) -> Option<u32> {
        self.bindings.subscribers.find(host(last))
    }

    /// The blocks of a subscriber, by their first ports, newest first.
    fn blocks(&self, last: u8) -> Vec<u16> {
        self.row(last).map_or(Vec::new(), |row| row.blocks.first[..usize::from(row.blocks.count)].to_vec())
    }

    fn news(&mut self) -> Vec<(bool, u16)> {
        let news = self.bindings.block_news().iter().map(|it| (it.is_given, it.first)).collect();
        self.bindings.forget_block_news();
        news
    }
}

#[test]
fn a_subscriber_gets_a_block_with_its_first_binding_and_another_when_the_first_is_full() {
    let mut table = table(&config(POLICY, "192.0.2.0/30", 1_024..=65_535));
    let bindings: Vec<u32> = (0..64).map(|n| table.bind(1, UDP, 5_000 + n).unwrap()).collect();
    let first = table.blocks(1);
    assert_eq!(first.len(), 1);
    let ports: BTreeSet<u16> = bindings.iter().map(|it| table.outside(*it).port).collect();
    assert!(ports.iter().copied().eq(first[0]..first[0] + 64), "all of them are its block's");
    let other = table.bind(1, TCP, 5_000).unwrap();
    assert!((first[0]..first[0] + 64).contains(&table.outside(other).port), "a block is for all protocols");
    let further = table.bind(1, UDP, 6_000).unwrap();
    let both = table.blocks(1);
    assert_eq!((both.len(), both[1]), (2, first[0]));
    assert!((both[0]..both[0] + 64).contains(&table.outside(further).port));
    assert_eq!(table.outside(further).address, table.outside(bindings[0]).address, "at the same address");
    (1..64).for_each(|n| assert!(table.bind(1, UDP, 6_000 + n).is_ok()));
    assert_eq!(table.bind(1, UDP, 7_000), Err(DropReason::SubscriberLimit));
    assert_eq!(table.news(), [(true, both[1]), (true, both[0])]);
    let counts = table.bindings.block_counts().unwrap();
    assert_eq!((counts.blocks, counts.given, counts.unused), (4 * 1_008, 2, 0));
}

#[test]
fn blocks_are_counted_by_address_and_those_of_draining_addresses_are_not_free() {
    let mut table = table(&config(POLICY, "192.0.2.0/31", 1_024..=2_047));
    let bindings: Vec<u32> = (0..4).map(|last| table.bind(last, UDP, 5_000).unwrap()).collect();
    let at = |address| bindings.iter().filter(|it| table.outside(**it).address == address).count() as u32;
    let (rows, next) = table.bindings.address_blocks(0, 1);
    assert_eq!((rows.len(), next), (1, Some(1)));
    let mut rows = [rows, table.bindings.address_blocks(1, 9).0].concat();
    rows.retain(|row| row.given > 0);
    for AddressBlocks { address, given, free } in &rows {
        assert_eq!((*given, *free), (at(*address), 16 - at(*address)));
    }
    assert_eq!(rows.iter().map(|row| row.given).sum::<u32>(), 4);
    assert_eq!(table.bindings.block_counts().unwrap().free, 28);
    let AddressBlocks { address, given, free } = rows[0];
    table.bindings.drain(sixway_wire::Prefix4::holding(address, 32), true);
    let counts = table.bindings.block_counts().unwrap();
    assert_eq!((counts.free, counts.given), (28 - u64::from(free), 4));
    let drained = table.bindings.address_blocks(0, 9).0.into_iter().find(|row| row.address == address);
    assert_eq!(drained, Some(AddressBlocks { address, given, free: 0 }));
}

#[test]
fn blocks_of_two_subscribers_have_no_port_in_common_and_no_well_known_one() {
    let mut table = table(&config(POLICY, "192.0.2.1/32", 0..=65_535));
    let mut seen = BTreeMap::new();
    for last in 0..200 {
        let binding = table.bind(last, UDP, 80).unwrap();
        let block = table.blocks(last)[0];
        assert!(block >= 1_024 && block.is_multiple_of(64));
        assert_eq!(seen.insert(block, last), None);
        assert!((block..block + 64).contains(&table.outside(binding).port));
    }
    let numbers: Vec<u16> = seen.keys().copied().collect();
    assert!(numbers.windows(2).any(|pair| pair[1] - pair[0] > 64), "they are spread over the address");
}

#[test]
fn parity_is_kept_and_ports_cannot_be_foretold_within_a_block() {
    let mut table = table(&config(BlockPolicy { size: 1_024, ..POLICY }, "192.0.2.1/32", 1_024..=65_535));
    let ports: Vec<i32> = (0..400)
        .map(|n| {
            let binding = table.bind(1, UDP, 5_000 + n).unwrap();
            let port = table.outside(binding).port;
            assert_eq!(port % 2, n % 2);
            i32::from(port)
        })
        .collect();
    let rises = ports.windows(2).filter(|pair| pair[1] > pair[0]).count();
    assert!((160..240).contains(&rises), "{rises} of 399 rise");
    let near = ports.windows(2).filter(|pair| (pair[1] - pair[0]).abs() < 8).count();
    assert!(near < 25, "{near} of 399 are near the one before");
}

#[test]
fn a_port_is_drawn_from_the_second_block_before_the_last_ports_of_the_first() {
    let mut table = table(&config(POLICY, "192.0.2.1/32", 1_024..=65_535));
    let bindings: Vec<u32> = (0..65).map(|n| table.bind(1, UDP, 5_000 + n).unwrap()).collect();
    let [second, first] = table.blocks(1)[..] else { panic!("two blocks") };
    // Nine ports of the first block are free: too few to draw from while the second one has more.
    bindings[..9].iter().for_each(|it| table.unbind(*it));
    for n in 0..48 {
        let binding = table.bind(1, UDP, 6_000 + n).unwrap();
        let port = table.outside(binding).port;
        assert!((second..second + 64).contains(&port), "{port} is of block {first}");
    }
    // With a quarter of it free, it is preferred: the second block may become unused.
    bindings[9..16].iter().for_each(|it| table.unbind(*it));
    for n in 0..12 {
        let binding = table.bind(1, UDP, 7_000 + n).unwrap();
        assert!((first..first + 64).contains(&table.outside(binding).port));
        table.unbind(binding);
    }
}

#[test]
fn an_unused_block_is_returned_after_the_idle_time_and_its_owner_is_forgotten() {
    let mut table = table(&config(POLICY, "192.0.2.1/32", 1_024..=65_535));
    let binding = table.bind(1, UDP, 5_000).unwrap();
    let block = table.blocks(1)[0];
    assert_eq!(table.passes(100), 0, "it is used");
    table.unbind(binding);
    assert_eq!(table.passes(9), 0);
    assert_eq!(table.blocks(1), [block]);
    let again = table.bind(1, TCP, 5_000).unwrap();
    assert_eq!(table.blocks(1), [block], "it has its block again");
    assert_eq!(table.passes(9), 0);
    table.unbind(again);
    assert_eq!((table.passes(9), table.passes(1)), (0, 1));
    assert_eq!((table.row(1), table.blocks(1)), (None, vec![]));
    assert_eq!(table.news(), [(true, block), (false, block)]);
    assert_eq!(table.bindings.block_counts().unwrap().given, 0);
}

#[test]
fn a_block_is_not_returned_before_the_quarantine_of_its_ports_has_ended() {
    let mut config = config(POLICY, "192.0.2.1/32", 1_024..=65_535);
    config.filtering = Filtering::EndpointIndependent;
    let mut table = table(&config);
    let binding = table.bind(1, UDP, 5_000).unwrap();
    table.unbind(binding);
    assert_eq!((table.passes(119), table.passes(1)), (0, 0));
    assert_eq!(table.blocks(1).len(), 1);
    assert_eq!((table.passes(9), table.passes(1)), (0, 1));
}

#[test]
fn quarantined_ports_of_its_own_are_given_early_and_those_of_others_never() {
    let mut config = config(BlockPolicy { most: 1, ..POLICY }, "192.0.2.1/32", 1_024..=1_151);
    config.filtering = Filtering::EndpointIndependent;
    let mut table = table(&config);
    let mine: Vec<u32> = (0..64).map(|n| table.bind(1, UDP, 5_000 + n).unwrap()).collect();
    let theirs: Vec<u32> = (0..64).map(|n| table.bind(2, UDP, 5_000 + n).unwrap()).collect();
    theirs.iter().for_each(|it| table.unbind(*it));
    assert_eq!(table.bind(1, UDP, 6_000), Err(DropReason::SubscriberLimit));
    assert_eq!(table.bind(3, UDP, 6_000), Err(DropReason::PortPoolEmpty), "no block is free");
    let port = table.outside(mine[7]).port;
    table.unbind(mine[7]);
    let again = table.bind(1, UDP, 6_000).unwrap();
    assert_eq!(table.outside(again).port, port);
    assert_eq!((table.passes(120), table.passes(10)), (0, 1), "what the other had");
    assert!(table.bind(3, UDP, 6_000).is_ok());
}

#[test]
fn the_last_blocks_are_for_subscribers_without_any() {
    let mut table = table(&config(BlockPolicy { most: 16, ..POLICY }, "192.0.2.1/32", 1_024..=1_279));
    let got = (0..300).filter(|n| table.bind(1, UDP, 5_000 + n).is_ok()).count();
    assert_eq!((got, table.blocks(1).len()), (3 * 64, 3), "of four blocks");
    assert!(table.bind(2, UDP, 5_000).is_ok());
    assert_eq!(table.bind(3, UDP, 5_000), Err(DropReason::PortPoolEmpty));
}

#[test]
fn an_unused_block_is_returned_early_when_another_subscriber_has_none() {
    let mut table = table(&config(POLICY, "192.0.2.1/32", 1_024..=1_151));
    let first = table.bind(1, UDP, 5_000).unwrap();
    table.bind(2, UDP, 5_000).unwrap();
    let block = table.blocks(1)[0];
    table.unbind(first);
    table.bind(3, UDP, 5_000).unwrap();
    assert_eq!((table.row(1), table.blocks(3)), (None, vec![block]));
    assert_eq!(table.bind(1, UDP, 5_000), Err(DropReason::PortPoolEmpty));
}

#[test]
fn ports_of_static_bindings_are_no_part_of_a_block() {
    let mut table = table(&config(BlockPolicy { most: 1, ..POLICY }, "192.0.2.1/32", 1_024..=1_151));
    for port in [1_030, 1_100] {
        let outside = Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), port));
        let inside = Inside(Endpoint4::new(host(9), port));
        table
            .bindings
            .bind_static(&StaticBinding { protocol: UDP, softwire: None, inside, outside })
            .unwrap();
    }
    let got = (0..100).filter(|n| table.bind(1, UDP, 5_000 + n).is_ok()).count();
    assert_eq!(got, 63);
    assert_eq!((0..100).filter(|n| table.bind(1, TCP, 5_000 + n).is_ok()).count(), 64);
    assert_eq!(table.blocks(9), [], "a static binding needs no block");
}

#[test]
fn a_block_all_of_whose_ports_are_static_is_given_to_nobody_for_good() {
    let mut table = table(&config(POLICY, "192.0.2.1/32", 1_024..=1_087));
    for port in 1_024..=1_087 {
        let outside = Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), port));
        let inside = Inside(Endpoint4::new(host(9), port));
        table
            .bindings
            .bind_static(&StaticBinding { protocol: UDP, softwire: None, inside, outside })
            .unwrap();
    }
    assert_eq!(table.bind(1, UDP, 5_000), Err(DropReason::PortPoolEmpty));
    assert_eq!((table.bindings.block_counts().unwrap().given, table.news()), (0, vec![]));
    assert!(table.bind(1, TCP, 5_000).is_ok());
}

#[test]
fn a_host_with_a_static_binding_at_an_address_of_a_large_pool_gets_blocks_there() {
    let mut table = table(&config(POLICY, "192.0.2.0/24", 1_024..=65_535));
    for last in 1..200 {
        let outside = Outside(Endpoint4::new(Ipv4Addr::new(192, 0, 2, last), 80));
        let inside = Inside(Endpoint4::new(host(last), 80));
        table
            .bindings
            .bind_static(&StaticBinding { protocol: TCP, softwire: None, inside, outside })
            .unwrap();
    }
    for last in 1..200 {
        let bound = table.bind(last, UDP, 5_000).unwrap();
        assert_eq!(table.outside(bound).address, Ipv4Addr::new(192, 0, 2, last));
    }
}

#[test]
fn all_addresses_of_a_large_pool_are_used() {
    let mut table = table(&config(BlockPolicy { most: 1, ..POLICY }, "192.0.2.0/24", 1_024..=1_087));
    for last in 0..=255 {
        assert!(table.bind(last, UDP, 5_000).is_ok(), "{last}");
    }
}

#[test]
fn a_restored_binding_brings_its_block_and_no_other_subscribers_is_taken() {
    let mut table = table(&config(POLICY, "192.0.2.0/31", 1_024..=65_535));
    let at = |address: u8, port| Outside(Endpoint4::new(Ipv4Addr::new(192, 0, 2, address), port));
    let again = |table: &mut Table, last, port, outside| {
        table.bindings.rebind(UDP, Inside(Endpoint4::new(host(last), port)), outside).map(|_| ())
    };
    assert_eq!(again(&mut table, 1, 1, at(0, 2_050)), Ok(()));
    assert_eq!(again(&mut table, 1, 2, at(0, 2_051)), Ok(()));
    assert_eq!((table.blocks(1), table.news()), (vec![2_048], vec![(true, 2_048)]));
    assert_eq!(again(&mut table, 2, 1, at(0, 2_052)), Err(NotAdopted::PortNotGiven), "another's block");
    assert_eq!(again(&mut table, 1, 3, at(1, 2_052)), Err(NotAdopted::PortNotGiven), "another address");
    assert_eq!(again(&mut table, 1, 3, at(0, 80)), Err(NotAdopted::PortNotGiven), "no block");
    assert_eq!(again(&mut table, 1, 3, at(0, 5_000)), Ok(()));
    assert_eq!(again(&mut table, 1, 4, at(0, 9_000)), Err(NotAdopted::SubscriberLimit));
    assert_eq!(table.blocks(1), [4_992, 2_048]);
    assert!(table.bind(1, UDP, 77).is_ok());
}

#[test]
fn a_quarantined_port_of_an_earlier_process_is_part_of_no_block() {
    let mut table = table(&config(POLICY, "192.0.2.1/32", 1_024..=1_087));
    let outside = Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), 1_030));
    assert!(table.bindings.quarantine(UDP, outside, 120));
    let got: Vec<u32> = (0..64).filter_map(|n| table.bind(1, UDP, 5_000 + n).ok()).collect();
    assert_eq!(got.len(), 63);
    assert_eq!(table.passes(20), 0);
    got[..62].iter().for_each(|it| table.unbind(*it));
    assert_eq!(table.passes(20), 0, "a port of it is still bound");
    table.unbind(got[62]);
    assert_eq!(table.passes(10), 1);
}

#[test]
fn only_whole_blocks_are_given() {
    let blocks = |ports: &[RangeInclusive<u16>], size| whole_blocks(ports, size).collect::<Vec<_>>();
    assert_eq!(blocks(&[1_000..=1_200], 64), [1_024..=1_087, 1_088..=1_151]);
    assert_eq!(blocks(&[1_024..=1_040, 1_041..=1_087], 64), [1_024..=1_087]);
    assert_eq!(blocks(&[0..=65_535], 16_384), [16_384..=32_767, 32_768..=49_151, 49_152..=65_535]);
    assert_eq!(blocks(&[1_025..=2_047], 1_024), []);
    assert_eq!(blocks(&[0..=65_535], 1_024).len(), 63);
}

#[test]
fn an_address_that_is_being_drained_gets_no_further_subscriber_and_keeps_those_it_has() {
    let mut table = table(&config(POLICY, "192.0.2.0/31", 1_024..=1_279));
    let first = table.bind(1, UDP, 5_000).unwrap();
    let address = table.outside(first).address;
    let prefix = sixway_wire::Prefix4::holding(address, 32);
    table.bindings.drain(prefix, true);
    for last in 2..10 {
        let bound = table.bind(last, UDP, 5_000);
        assert_eq!(bound.is_ok(), last < 6, "{last}: four blocks of the other address");
        assert!(bound.is_err() || table.outside(bound.unwrap()).address != address);
    }
    (0..64).for_each(|n| assert!(table.bind(1, UDP, 6_000 + n).is_ok(), "its own, and a second block"));
    assert_eq!(table.blocks(1).len(), 2);
    table.bindings.drain(prefix, false);
    assert!(table.bind(20, UDP, 5_000).is_ok_and(|it| table.outside(it).address == address));
}

#[test]
fn who_has_no_binding_left_at_an_address_that_is_being_drained_leaves_it() {
    let mut table = table(&config(POLICY, "192.0.2.0/31", 1_024..=1_279));
    let first = table.bind(1, UDP, 5_000).unwrap();
    let address = table.outside(first).address;
    let other = table.bind(1, UDP, 5_001).unwrap();
    table.bindings.drain(sixway_wire::Prefix4::holding(address, 32), true);
    table.unbind(first);
    assert_eq!(table.passes(1), 0, "it has another one");
    table.unbind(other);
    assert_eq!(table.passes(1), 1, "its block is not kept for the idle time");
    let later = table.bind(1, UDP, 5_000).unwrap();
    assert_ne!(table.outside(later).address, address);
}

#[test]
fn when_the_table_is_full_another_subscribers_unused_block_is_returned_and_none_of_who_asks() {
    let mut config = config(POLICY, "192.0.2.1/32", 1_024..=65_535);
    config.limits.bindings = 66;
    let mut table = table(&config);
    for last in 1..=66 {
        let binding = table.bind(last, UDP, 5_000).unwrap();
        table.unbind(binding);
    }
    let first = table.blocks(1)[0];
    // Its block has no free port of UDP, and has been unused for longest.
    for port in first..first + 64 {
        let outside = Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), port));
        let inside = Inside(Endpoint4::new(host(200), port));
        table
            .bindings
            .bind_static(&StaticBinding { protocol: UDP, softwire: None, inside, outside })
            .unwrap();
    }
    let binding = table.bind(1, UDP, 6_000).unwrap();
    let [second, old] = table.blocks(1)[..] else { panic!("{:?}", table.blocks(1)) };
    assert_eq!(old, first);
    assert!((second..second + 64).contains(&table.outside(binding).port));
    assert_eq!((table.row(2), table.row(1).unwrap().hosts), (None, 1));
    assert_eq!(table.bindings.block_counts().unwrap().given, 66);
    table.unbind(binding);
    assert_eq!(table.passes(10), 66);
    assert_eq!((table.row(1), table.bindings.block_counts().unwrap().given), (None, 0));
}

#[test]
fn of_ones_own_unused_blocks_none_is_returned_for_another() {
    let mut table = table(&config(POLICY, "192.0.2.1/32", 1_024..=65_535));
    let bindings: Vec<u32> = (0..65).map(|n| table.bind(1, UDP, 5_000 + n).unwrap()).collect();
    bindings.iter().for_each(|it| table.unbind(*it));
    assert_eq!(table.blocks(1).len(), 2);
    let blocks = table.bindings.blocks.as_ref().unwrap();
    assert_eq!(blocks.first_unused_of_others(table.owner(1)), None);
    assert!(blocks.first_unused_of_others(table.owner(2)).is_some());
}

/// Four subscribers, each with a block of 64 ports.
fn deterministic() -> Table {
    let mut config = config(BlockPolicy { most: 1, ..POLICY }, "192.0.2.1/32", 1_024..=1_279);
    let inside = ["::ffff:10.0.0.0/126".parse().unwrap()];
    let (pool, ports) = (&config.pool.addresses, &config.pool.ports);
    let mapping = Deterministic::new(&inside, 128, (pool, ports), 64).unwrap();
    config.subscribers.deterministic = Some(Arc::new(mapping));
    table(&config)
}

#[test]
fn a_deterministic_subscriber_has_its_own_ports_of_an_earlier_process_early() {
    let mut table = deterministic();
    let at = |port| Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), port));
    for protocol in NatProtocol::ALL {
        assert!((1_088..1_152).all(|port| table.bindings.quarantine(protocol, at(port), 400)));
    }
    // Of host 2's block, all ports but one.
    assert!((1_153..1_216).all(|port| table.bindings.quarantine(UDP, at(port), 400)));
    let mut bound = Vec::new();
    for protocol in NatProtocol::ALL {
        let ports: BTreeSet<u16> = (0..64)
            .map(|n| {
                bound.push(table.bind(1, protocol, 5_000 + n).unwrap());
                table.outside(bound[bound.len() - 1]).port
            })
            .collect();
        assert!(ports.into_iter().eq(1_088..1_152), "{protocol:?}: all of its ports, each once");
        assert_eq!(table.bind(1, protocol, 6_000), Err(DropReason::SubscriberLimit));
    }
    let free = table.bind(2, UDP, 5_000).unwrap();
    assert_eq!(table.outside(free).port, 1_152, "free ports come first");
    assert_eq!(table.bindings.quarantined(), 63);
    let early = table.bind(2, UDP, 5_001).unwrap();
    assert!((1_153..1_216).contains(&table.outside(early).port));
    bound.extend([free, early]);
    assert_eq!(table.bindings.block_counts().unwrap().unused, 0);
    bound.into_iter().for_each(|it| table.unbind(it));
    assert_eq!((table.passes(9), table.passes(1)), (0, 2), "nothing of them is left");
    assert_eq!((table.passes(400), table.bindings.quarantined(), table.bindings.pool().spare()), (0, 0, 4));
}

#[test]
fn a_deterministic_block_all_of_whose_ports_are_static_is_not_given() {
    let mut table = deterministic();
    for port in 1_088..1_152 {
        let outside = Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), port));
        let inside = Inside(Endpoint4::new(host(3), port));
        table
            .bindings
            .bind_static(&StaticBinding { protocol: UDP, softwire: None, inside, outside })
            .unwrap();
    }
    assert_eq!(table.bind(1, UDP, 5_000), Err(DropReason::PortPoolEmpty));
    assert_eq!(table.bindings.block_counts().unwrap().given, 0);
}

#[test]
fn unused_blocks_of_an_address_that_is_being_drained_are_returned_immediately() {
    let mut table = table(&config(POLICY, "192.0.2.0/31", 1_024..=65_535));
    let inside = |n: u32| Inside(Endpoint4::new(Ipv4Addr::from_bits(0x0a00_0000 + n), 5_000));
    let (clock, mut counters) = (table.clock(), Counters::default());
    let bound: Vec<u32> =
        (0..1_900).map(|n| table.bindings.bind(UDP, inside(n), clock, &mut counters).unwrap()).collect();
    let address = table.outside(bound[1_899]).address;
    let (there, elsewhere): (Vec<u32>, Vec<u32>) =
        bound.iter().partition(|it| table.outside(**it).address == address);
    // The last of them stays bound. The others are unused behind many at the other address.
    elsewhere.iter().chain(&there[..there.len() - 1]).for_each(|it| table.unbind(*it));
    table.news();
    table.bindings.drain(sixway_wire::Prefix4::holding(address, 32), true);
    let returned: usize = (0..3).map(|_| table.passes(0)).sum();
    assert_eq!(returned, there.len() - 1);
    assert!(table.bindings.block_news().iter().all(|it| !it.is_given && it.address == address));
    assert_eq!(table.bindings.block_news().len(), returned, "each of them is recorded");
    let counts = table.bindings.block_counts().unwrap();
    assert_eq!((counts.given as usize, counts.unused as usize), (elsewhere.len() + 1, elsewhere.len()));
    assert_eq!(table.passes(10), elsewhere.len(), "the others keep their idle time");
}

#[test]
fn a_search_for_unused_blocks_goes_on_where_blocks_were_used_again_or_are_not_drained_any_more() {
    let mut table = table(&config(POLICY, "192.0.2.0/31", 1_024..=65_535));
    let bound: Vec<u32> = (1..=40).map(|last| table.bind(last, UDP, 5_000).unwrap()).collect();
    let addresses: Vec<Ipv4Addr> = bound.iter().map(|it| table.outside(*it).address).collect();
    bound.iter().for_each(|it| table.unbind(*it));
    let prefix = sixway_wire::Prefix4::holding(addresses[0], 32);
    table.bindings.drain(prefix, true);
    // The first one is used again before the search: this host keeps its address.
    let again = table.bind(1, UDP, 5_000).unwrap();
    assert_eq!(table.outside(again).address, addresses[0]);
    let there = addresses.iter().filter(|address| **address == addresses[0]).count();
    assert_eq!(table.passes(0), there - 1);
    table.bindings.drain(prefix, false);
    table.unbind(again);
    assert_eq!((table.passes(9), table.passes(1)), (0, 40 - there + 1));
    let last = table.bind(7, UDP, 5_000).unwrap();
    let prefix = sixway_wire::Prefix4::holding(table.outside(last).address, 32);
    table.unbind(last);
    table.bindings.drain(prefix, true);
    table.bindings.drain(prefix, false);
    assert_eq!(table.passes(0), 0, "it was not drained when it was looked at");
}

#[test]
fn a_subscriber_that_has_only_blocks_is_counted_where_addresses_are_drained() {
    let mut config = config(POLICY, "192.0.2.0/31", 1_024..=65_535);
    config.filtering = Filtering::EndpointIndependent;
    let mut table = table(&config);
    let bound: Vec<u32> = (0..65).map(|n| table.bind(1, UDP, 5_000 + n).unwrap()).collect();
    let address = table.outside(bound[0]).address;
    let prefix = sixway_wire::Prefix4::holding(address, 32);
    let left =
        |table: &Table| table.bindings.draining_rows(0, |_, _| 0).0.first().map(|it| (it.bindings, it.hosts));
    table.bindings.drain(prefix, true);
    assert_eq!(left(&table), Some((65, 1)), "a host");
    bound.iter().for_each(|it| table.unbind(*it));
    assert_eq!(table.passes(100), 0, "its ports are quarantined");
    assert_eq!(left(&table), Some((0, 1)), "one subscriber, with two blocks");
    let again = table.bind(1, TCP, 6_000).unwrap();
    assert_eq!(table.outside(again).address, address, "as it would get this address again");
    assert_eq!(left(&table), Some((1, 1)));
    table.unbind(again);
    assert_eq!((table.passes(20), left(&table)), (2, Some((0, 0))));
}

#[test]
fn a_host_draws_from_its_blocks_at_random_when_none_has_a_quarter_free() {
    let mut table = table(&config(BlockPolicy { most: 3, ..POLICY }, "192.0.2.1/32", 1_024..=65_535));
    let bindings: Vec<u32> = (0..192).map(|n| table.bind(1, UDP, 5_000 + n).unwrap()).collect();
    let blocks = table.blocks(1);
    assert_eq!(blocks.len(), 3);
    // Ten ports of each are free.
    for first in &blocks {
        let mine = bindings.iter().filter(|it| table.outside(**it).port / 64 == first / 64).copied();
        let some: Vec<u32> = mine.take(10).collect();
        some.into_iter().for_each(|it| table.unbind(it));
    }
    let drawn: Vec<u16> = (0..18)
        .map(|n| {
            let binding = table.bind(1, UDP, 6_000 + n).unwrap();
            table.outside(binding).port / 64 * 64
        })
        .collect();
    let changes = drawn.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(changes > 4, "{drawn:?}");
    assert!(blocks.iter().all(|block| drawn.contains(block)), "{drawn:?}");
}

#[test]
fn a_subscriber_whose_newest_block_was_returned_goes_on_with_the_others() {
    let mut table = table(&config(BlockPolicy { most: 3, ..POLICY }, "192.0.2.1/32", 1_024..=65_535));
    let bindings: Vec<u32> = (0..65).map(|n| table.bind(1, UDP, 5_000 + n).unwrap()).collect();
    let [newest, oldest] = table.blocks(1)[..] else { panic!() };
    table.unbind(bindings[64]);
    assert_eq!((table.passes(10), table.blocks(1)), (1, vec![oldest]));
    table.unbind(bindings[0]);
    let again = table.bind(1, UDP, 7_000).unwrap();
    assert_eq!(table.outside(again).port / 64, oldest / 64);
    table.bind(1, UDP, 7_001).unwrap();
    assert_eq!((table.blocks(1).len(), table.blocks(1)[1]), (2, oldest));
    assert!(newest >= 1_024);
}

#[test]
fn one_subscriber_does_not_take_all_bindings_with_its_blocks() {
    let mut config = config(BlockPolicy { size: 1_024, ..POLICY }, "192.0.2.1/32", 1_024..=65_535);
    config.limits.bindings = 180;
    let mut table = table(&config);
    let got = (0..180).filter(|n| table.bind(1, UDP, 5_000 + n).is_ok()).count();
    assert!((159..=161).contains(&got), "eight ninths: {got}");
    assert_eq!(table.bind(1, UDP, 9_000), Err(DropReason::SubscriberShare));
    assert!(table.bind(2, UDP, 5_000).is_ok());
}

#[test]
fn more_addresses_of_a_large_pool_are_opened_when_half_of_the_blocks_are_given() {
    let mut table = table(&config(BlockPolicy { size: 16_384, ..POLICY }, "10.9.0.0/16", 1_024..=65_535));
    let bound: Vec<u32> = (0..120).map(|last| table.bind(last, UDP, 5_000).unwrap()).collect();
    // 64 addresses are open, with three blocks each.
    let addresses: BTreeSet<Ipv4Addr> = bound.iter().map(|it| table.outside(*it).address).collect();
    assert!(addresses.len() > 50);
    let open = table.bindings.pool().open_addresses();
    assert!((70..120).contains(&open), "{open}");
}

#[test]
fn an_address_that_is_opened_while_it_is_drained_gets_no_further_subscriber() {
    let mut table = table(&config(POLICY, "192.0.2.0/24", 1_024..=65_535));
    table.bindings.drain("192.0.2.0/25".parse().unwrap(), true);
    for last in 0..128 {
        let outside = Outside(Endpoint4::new(Ipv4Addr::new(192, 0, 2, last), 80));
        let inside = Inside(Endpoint4::new(Ipv4Addr::new(10, 1, 0, last), 80));
        table
            .bindings
            .bind_static(&StaticBinding { protocol: TCP, softwire: None, inside, outside })
            .unwrap();
    }
    for last in 0..=255 {
        let bound = table.bind(last, UDP, 5_000).unwrap();
        assert!(table.outside(bound).address.octets()[3] >= 128);
    }
}

#[test]
fn an_unused_block_of_a_draining_address_is_given_to_nobody() {
    let mut table = table(&config(POLICY, "192.0.2.0/31", 1_024..=1_087));
    let first = table.bind(1, UDP, 5_000).unwrap();
    let address = table.outside(first).address;
    table.bind(2, UDP, 5_000).unwrap();
    table.unbind(first);
    table.bindings.drain(sixway_wire::Prefix4::holding(address, 32), true);
    assert_eq!(table.bind(3, UDP, 5_000), Err(DropReason::PortPoolEmpty));
    assert_eq!(table.passes(0), 1);
    assert_eq!(table.bind(3, UDP, 5_000), Err(DropReason::PortPoolEmpty), "nor when it was returned");
}

#[test]
fn a_block_that_becomes_unused_at_a_draining_address_does_not_wait_for_older_ones() {
    let mut table = table(&config(POLICY, "192.0.2.0/31", 1_024..=65_535));
    let bound: Vec<u32> = (1..=20).map(|last| table.bind(last, UDP, 5_000).unwrap()).collect();
    let address = table.outside(bound[0]).address;
    table.bindings.drain(sixway_wire::Prefix4::holding(address, 32), true);
    let (there, elsewhere): (Vec<u32>, Vec<u32>) =
        bound.iter().partition(|it| table.outside(**it).address == address);
    elsewhere.iter().chain(&there).for_each(|it| table.unbind(*it));
    assert_eq!(table.passes(0), there.len());
}

/// A block that became unused while its address was drained is as old as that, when the address is not drained any more: it does not stand
/// before older ones, and is not returned before its time.
#[test]
fn after_undraining_unused_blocks_are_returned_in_their_order() {
    let mut table = table(&config(POLICY, "192.0.2.0/31", 1_024..=65_535));
    let bound: Vec<u32> = (1..=20).map(|last| table.bind(last, UDP, 5_000).unwrap()).collect();
    let address = table.outside(bound[0]).address;
    let prefix = sixway_wire::Prefix4::holding(address, 32);
    let (there, elsewhere): (Vec<u32>, Vec<u32>) =
        bound.iter().partition(|it| table.outside(**it).address == address);
    elsewhere.iter().for_each(|it| table.unbind(*it));
    assert_eq!(table.passes(4), 0);
    table.bindings.drain(prefix, true);
    there.iter().for_each(|it| table.unbind(*it));
    table.bindings.drain(prefix, false);
    assert_eq!(table.passes(5), 0, "none has been unused for ten seconds");
    assert_eq!(table.passes(1), elsewhere.len(), "those that were unused first are returned");
    assert_eq!(table.passes(3), 0, "the others not before their time");
    assert_eq!(table.passes(1), there.len());
}

#[test]
fn an_early_port_of_a_large_block_may_be_anywhere_in_it() {
    let mut config = config(BlockPolicy { size: 256, most: 1, ..POLICY }, "192.0.2.1/32", 1_024..=65_535);
    config.filtering = Filtering::EndpointIndependent;
    let mut table = table(&config);
    let bound: Vec<u32> = (0..256).map(|n| table.bind(1, UDP, 5_000 + n).unwrap()).collect();
    let last = bound.iter().find(|it| table.outside(**it).port % 256 == 255).unwrap();
    table.unbind(*last);
    // A quarter of the block is examined each time, from a random place on.
    assert!((0..200).any(|n| table.bind(1, UDP, 6_000 + n).is_ok()));
}

#[test]
fn a_restored_block_is_not_returned_while_its_port_is_bound() {
    let mut table = table(&config(POLICY, "192.0.2.1/32", 1_024..=65_535));
    let outside = Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), 2_050));
    table.bindings.rebind(UDP, Inside(Endpoint4::new(host(1), 1)), outside).unwrap();
    assert_eq!((table.passes(20), table.blocks(1)), (0, vec![2_048]));
}

#[test]
fn a_restored_binding_of_a_deterministic_subscriber_has_no_port_of_another_ones_block() {
    let mut table = deterministic();
    let again = |table: &mut Table, port, outside| {
        let outside = Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), outside));
        table.bindings.rebind(UDP, Inside(Endpoint4::new(host(1), port)), outside).map(|_| ())
    };
    assert_eq!(again(&mut table, 1, 1_152), Err(NotAdopted::PortNotGiven), "host 2's");
    assert_eq!((table.row(1), table.bindings.pool().spare()), (None, 4));
    assert_eq!(again(&mut table, 1, 1_151), Ok(()));
    assert_eq!(table.blocks(1), [1_088]);
}

#[test]
fn a_worker_asks_for_blocks_before_its_last_one_is_given_and_not_while_all_are_drained() {
    let mut table = table(&config(POLICY, "192.0.2.1/32", 1_024..=1_279));
    for (last, wants) in [(1, false), (2, false), (3, false), (4, true)] {
        table.bind(last, UDP, 5_000).unwrap();
        assert_eq!(table.bindings.pool_mut().wants(), wants, "{last}");
    }
    assert!(table.bindings.is_out_of_blocks());
    table.bindings.drain("192.0.2.1/32".parse().unwrap(), true);
    assert!(!table.bindings.is_out_of_blocks(), "more blocks would be of no use");
}

proptest! {
    /// Whatever happens: nobody has a port of another's block, or more than the limit, and counts are right.
    #[test]
    fn blocks_are_whose_they_are(
        steps in prop::collection::vec((0u8..4, 0u8..6, 0u16..40, any::<prop::sample::Index>()), 1..400),
        quarantined: bool,
    ) {
        let mut config = config(BlockPolicy { size: 64, most: 2, idle_seconds: 3 }, "192.0.2.0/31", 1_024..=1_279);
        if quarantined {
            config.filtering = Filtering::EndpointIndependent;
        }
        let mut table = table(&config);
        let mut bound: Vec<(u8, NatProtocol, u16, u32)> = Vec::new();
        for (what, last, port, index) in steps {
            match what {
                0 | 1 => for port in port * 10..port * 10 + 10 {
                    let protocol = NatProtocol::ALL[usize::from(port % 3)];
                    let is_bound = bound.iter().any(|it| (it.0, it.1, it.2) == (last, protocol, port));
                    if let Some(binding) = (!is_bound).then(|| table.bind(last, protocol, port).ok()).flatten() {
                        bound.push((last, protocol, port, binding));
                    }
                },
                2 => for _ in 0..bound.len().min(20) {
                    let (.., binding) = bound.swap_remove(index.index(bound.len()));
                    table.unbind(binding);
                },
                _ => {
                    table.passes(u64::from(port));
                }
            }
            let mut owners = BTreeMap::new();
            for last in 0..6 {
                let row = table.row(last);
                let blocks = table.blocks(last);
                prop_assert!(blocks.len() <= 2);
                for first in blocks {
                    prop_assert_eq!(owners.insert((row.unwrap().blocks.address, first), last), None);
                }
            }
            prop_assert_eq!(table.bindings.block_counts().unwrap().given as usize, owners.len());
            for (last, _, _, binding) in &bound {
                let outside = table.outside(*binding);
                let block = (Some(outside.address), outside.port / 64 * 64);
                prop_assert_eq!(owners.get(&block), Some(last), "{}", outside);
            }
        }
        for (.., binding) in bound {
            table.unbind(binding);
        }
        table.passes(1_000);
        table.passes(1_000);
        prop_assert_eq!(table.bindings.block_counts().unwrap().given, 0);
        prop_assert_eq!(table.bindings.pool().spare(), 4);
        prop_assert!((0..6).all(|last| table.row(last).is_none()));
    }
}
