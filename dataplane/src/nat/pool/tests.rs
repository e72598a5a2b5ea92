//! Ports that a pool gives, blocks that move, and what is reserved.

use super::*;
use core::net::Ipv6Addr;

fn striped(workers: u8) -> Ownership<Ipv6Addr> {
    Ownership::striped(workers, crate::nat::Spread::new([1, 2], 64))
}

fn pool(addresses: &[&str], ports: RangeInclusive<u16>) -> Pool {
    pool_of_worker(addresses, ports, 0, 1)
}

fn pool_of_worker(addresses: &[&str], ports: RangeInclusive<u16>, worker: u8, workers: u8) -> Pool {
    let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
    let config = PoolConfig { addresses, ports: vec![ports] };
    Pool::new(&config, &striped(workers), WorkerId(worker), [11, 12])
}

#[test]
fn a_pool_of_many_prefixes_contains_just_their_addresses() {
    let texts: Vec<String> = (0..=40).map(|n| format!("192.0.2.{}/{}", n * 4, 30 + n % 3)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let pool = pool(&texts, 2_000..=2_099);
    let prefixes: Vec<Prefix4> = texts.iter().map(|text| text.parse().unwrap()).collect();
    for bits in 0xc000_01f0..=0xc000_030fu32 {
        let address = Ipv4Addr::from_bits(bits);
        let expected = prefixes.iter().any(|prefix| prefix.contains(address));
        assert_eq!(pool.contains(address), expected, "{address}");
    }
}

#[test]
fn what_is_left_anywhere_is_counted_by_range() {
    let mut pool = pool(&["192.0.2.0/31"], 924..=1_123);
    let left = |pool: &Pool| PortRange::ALL.map(|range| pool.free_anywhere(NatProtocol::Udp, &[range]));
    assert_eq!(left(&pool), [200, 200]);
    let taken: Vec<_> = (0..3).map(|_| pool.allocate(None, NatProtocol::Udp, 5_000).unwrap()).collect();
    assert_eq!(left(&pool), [200, 197]);
    pool.allocate(None, NatProtocol::Udp, 80).unwrap();
    assert_eq!(left(&pool), [199, 197]);
    taken.iter().for_each(|(slot, outside)| pool.release(*slot, NatProtocol::Udp, outside.0.port));
    assert_eq!(left(&pool), [199, 200]);
}

#[test]
fn every_endpoint_of_the_pool_is_handed_out_once_and_then_none() {
    let mut pool = pool(&["192.0.2.0/30", "192.0.2.2/32", "198.51.100.7/32"], 2_000..=2_099);
    let mut seen = BTreeSet::new();
    for n in 0..500u16 {
        let (_, outside) = pool.allocate(None, NatProtocol::Tcp, 5_000 + n).unwrap();
        assert!(pool.contains(outside.0.address) && (2_000..=2_099).contains(&outside.0.port));
        assert!(seen.insert(outside));
        assert!(pool.steps() <= 32, "{} steps", pool.steps());
    }
    assert_eq!(pool.allocate(None, NatProtocol::Tcp, 5_000), None);
    assert!(pool.allocate(None, NatProtocol::Udp, 5_000).is_some(), "each protocol has ports of its own");
}

#[test]
fn what_is_released_can_be_had_again() {
    let mut pool = pool(&["192.0.2.1/32"], 3_000..=3_000);
    let (slot, outside) = pool.allocate(None, NatProtocol::Udp, 1_234).unwrap();
    assert_eq!(pool.allocate(None, NatProtocol::Udp, 1_234), None);
    pool.release(slot, NatProtocol::Udp, outside.0.port);
    assert_eq!(pool.allocate(None, NatProtocol::Udp, 1_234), Some((slot, outside)));
}

#[test]
fn a_paired_host_keeps_its_address_also_when_that_has_no_port_left() {
    let mut pool = pool(&["192.0.2.0/28"], 4_000..=4_007);
    let (slot, first) = pool.allocate(None, NatProtocol::Udp, 9_000).unwrap();
    for n in 1..8 {
        let (again, outside) = pool.allocate(Some(slot), NatProtocol::Udp, 9_000 + n).unwrap();
        assert_eq!((again, outside.0.address), (slot, first.0.address));
    }
    pool.wants();
    assert_eq!(pool.allocate(Some(slot), NatProtocol::Udp, 9_000), None);
    assert!(pool.wants(), "its worker asks for more ports");
    assert!(pool.allocate(None, NatProtocol::Udp, 9_000).is_some(), "other hosts get other addresses");
    pool.release(slot, NatProtocol::Udp, first.0.port);
    assert_eq!(pool.allocate(Some(slot), NatProtocol::Udp, 9_000), Some((slot, first)));
}

#[test]
fn a_worker_asks_for_ports_before_an_address_has_none_left() {
    let mut pool = pool(&["192.0.2.1/32"], 2_000..=2_199);
    for n in 1..=200u32 {
        assert!(pool.allocate(None, NatProtocol::Udp, 9_000).is_some());
        assert_eq!(pool.wants(), 200 - n < RUNNING_OUT, "{n}");
    }
}

#[test]
fn range_and_parity_are_kept_and_a_high_port_never_becomes_well_known() {
    let mut pool = pool(&["192.0.2.1/32"], 0..=u16::MAX);
    for inside in [1u16, 2, 53, 1_023, 1_024, 40_001, 65_535] {
        let (_, outside) = pool.allocate(None, NatProtocol::Udp, inside).unwrap();
        assert_eq!(PortRange::of(outside.0.port), PortRange::of(inside));
        assert_eq!(outside.0.port % 2, inside % 2);
        assert_ne!(outside.0.port, 0);
    }
    let mut pool = pool_of_worker(&["192.0.2.1/32"], 1_000..=1_025, 0, 1);
    let mut high = 0;
    while pool.allocate(None, NatProtocol::Tcp, 50_000).is_some() {
        high += 1;
    }
    assert_eq!(high, 2);
    for _ in 0..24 {
        assert!(pool.allocate(None, NatProtocol::Tcp, 80).is_some());
    }
    assert_eq!(pool.allocate(None, NatProtocol::Tcp, 80), None);
}

#[test]
fn a_worker_takes_ports_of_its_own_blocks_only() {
    let ownership = striped(4);
    let mut pool = pool_of_worker(&["192.0.2.1/32"], 1_024..=65_535, 2, 4);
    assert_eq!(pool.ports(), 64_512 / 4);
    for n in 0..64_512 / 4 {
        let (_, outside) = pool.allocate(None, NatProtocol::Udp, 1_024 + n).unwrap();
        assert_eq!(ownership.worker_of_block(outside.0.port), WorkerId(2));
    }
    assert_eq!(pool.allocate(None, NatProtocol::Udp, 9_999), None);
}

#[test]
fn an_address_is_in_use_as_long_as_any_worker_has_a_binding_there() {
    let mut pools =
        [0, 1].map(|worker| pool_of_worker(&["192.0.2.0/31", "198.51.100.7/32"], 1_024..=65_535, worker, 2));
    let (used, other) = ("198.51.100.7".parse().unwrap(), "192.0.2.0".parse().unwrap());
    assert!(pools[0].is_in_use(used, NatProtocol::Udp), "what others have is not known yet");
    let in_use = Arc::new(AddressesInUse::new(3));
    pools.iter_mut().for_each(|pool| pool.set_in_use(Arc::clone(&in_use)));
    assert!(!pools[0].is_in_use(used, NatProtocol::Udp));
    let at = |port| Outside(Endpoint4::new(used, port));
    let slot = pools[1].reserve(NatProtocol::Udp, at(80)).unwrap();
    assert!(pools[0].is_in_use(used, NatProtocol::Udp), "with its first one");
    pools[1].reserve(NatProtocol::Udp, at(81)).unwrap();
    pools[1].release(slot, NatProtocol::Udp, 81);
    for pool in &pools {
        assert!(pool.is_in_use(used, NatProtocol::Udp));
        assert!(!pool.is_in_use(used, NatProtocol::Tcp) && !pool.is_in_use(other, NatProtocol::Udp));
    }
    pools[1].release(slot, NatProtocol::Udp, 80);
    assert!(pools.iter().all(|pool| !pool.is_in_use(used, NatProtocol::Udp)));
}

#[test]
fn a_block_moves_with_all_its_ports_and_back_again() {
    let mut pools = [0, 1].map(|worker| pool_of_worker(&["192.0.2.0/31"], 61_000..=62_000, worker, 2));
    let all = |pool: &mut Pool| {
        let drawn = std::iter::from_fn(|| pool.allocate(None, NatProtocol::Udp, 5_000));
        drawn.map(|(_, outside)| outside).collect::<BTreeSet<_>>()
    };
    let before = pools[0].ports() + pools[1].ports();
    assert_eq!((before, pools[0].blocks()), (1_001, 16));
    while let Some(block) = pools[0].spare_block() {
        pools[0].lose(block);
        pools[1].gain(block);
    }
    assert_eq!((pools[0].owned(), pools[0].spare(), pools[0].ports()), (0, 0, 0));
    assert_eq!((pools[1].owned(), pools[1].spare(), pools[1].ports()), (16, 16, 1_001));
    assert!(all(&mut pools[0]).is_empty() && pools[0].wants());
    assert_eq!(all(&mut pools[1]).len(), 2 * 1_001);
    assert_eq!((pools[1].spare(), pools[1].spare_block()), (0, None), "no block is free of bindings");
    let given = pools[1].slots[&"192.0.2.1".parse().unwrap()];
    for port in 61_056..=61_119 {
        pools[1].release(given, NatProtocol::Udp, port);
    }
    assert_eq!(pools[1].spare_block(), None, "its ports are taken at the other address");
    let given = pools[1].slots[&"192.0.2.0".parse().unwrap()];
    for port in 61_056..=61_119 {
        pools[1].release(given, NatProtocol::Udp, port);
    }
    assert_eq!(pools[1].spare_block(), Some(954));
    pools[1].lose(954);
    let at = Outside(Endpoint4::new("192.0.2.0".parse().unwrap(), 61_056));
    let slot = pools[0].reserve(NatProtocol::Tcp, at).unwrap();
    pools[0].gain(954);
    assert_eq!((pools[0].spare(), pools[0].owned()), (0, 1), "a port of it is taken");
    pools[0].release(slot, NatProtocol::Tcp, 61_056);
    assert_eq!(pools[0].spare(), 1);
    assert_eq!(all(&mut pools[0]).len(), 2 * 64);
    assert!(all(&mut pools[1]).is_empty());
}

#[test]
fn a_large_pool_costs_little_until_it_is_used_and_then_all_of_it_can_be() {
    let mut pool = pool(&["10.0.0.0/16"], 5_000..=5_003);
    assert!(pool.memory() < 500_000, "{} octets", pool.memory());
    let mut by_address = BTreeMap::<Ipv4Addr, u32>::new();
    for _ in 0..4_000 {
        let (_, outside) = pool.allocate(None, NatProtocol::Udp, 7_000).unwrap();
        *by_address.entry(outside.0.address).or_default() += 1;
    }
    assert_eq!(by_address.len(), 1_000);
}

#[test]
fn no_address_is_opened_for_well_known_ports_that_none_has_and_of_too_many_no_block_moves() {
    let mut pool = pool(&["10.0.0.0/16"], 5_000..=5_063);
    assert!((0..9).all(|_| pool.allocate(None, NatProtocol::Udp, 80).is_some()));
    assert_eq!(pool.open.len() as u64, OPEN_AT_START);
    let mut unused = self::pool(&["10.0.0.0/16"], 5_000..=5_063);
    assert!(unused.spare_block().is_some());
    while unused.open.len() <= MOST_OPEN_TO_MOVE && unused.open_another() {}
    assert_eq!((unused.spare(), unused.spare_block()), (2, None));
}

#[test]
fn hosts_spread_over_the_addresses_of_a_pool() {
    let mut pool = pool(&["192.0.2.0/28"], 1_024..=65_535);
    let mut by_address = BTreeMap::<Ipv4Addr, u32>::new();
    for _ in 0..1_600 {
        let (_, outside) = pool.allocate(None, NatProtocol::Udp, 7_000).unwrap();
        *by_address.entry(outside.0.address).or_default() += 1;
    }
    assert_eq!(by_address.len(), 16);
    assert!(by_address.values().all(|hosts| (50..170).contains(hosts)), "{by_address:?}");
}

#[test]
fn a_reserved_endpoint_is_not_handed_out_and_one_outside_the_ports_never_becomes_free() {
    let mut pool = pool(&["192.0.2.1/32"], 3_000..=3_001);
    let at = |port| Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), port));
    let slot = pool.reserve(NatProtocol::Tcp, at(3_000)).unwrap();
    pool.reserve(NatProtocol::Tcp, at(80)).unwrap();
    assert_eq!(pool.allocate(None, NatProtocol::Tcp, 3_000).unwrap().1, at(3_001));
    assert_eq!(pool.allocate(None, NatProtocol::Tcp, 3_000), None);
    pool.release(slot, NatProtocol::Tcp, 80);
    assert_eq!(pool.allocate(None, NatProtocol::Tcp, 80), None);
    pool.release(slot, NatProtocol::Tcp, 3_000);
    assert_eq!(pool.allocate(None, NatProtocol::Tcp, 80).unwrap().1, at(3_000));
    let foreign = Outside(Endpoint4::new("198.51.100.1".parse().unwrap(), 80));
    assert_eq!(pool.reserve(NatProtocol::Tcp, foreign), None);
}

#[test]
fn a_reserved_port_is_given_to_nobody_when_its_block_comes_from_another_worker() {
    let mut pool = pool_of_worker(&["192.0.2.0/31"], 61_056..=61_119, 1, 2);
    let at = |last, port| Outside(Endpoint4::new(Ipv4Addr::new(192, 0, 2, last), port));
    pool.lose(954);
    assert_eq!(pool.ports(), 0);
    let slot = pool.reserve(NatProtocol::Udp, at(1, 61_060)).unwrap();
    pool.reserve(NatProtocol::Tcp, at(1, 61_061)).unwrap();
    // One that ended before the block came, and one whose port no worker gives.
    let other = pool.reserve(NatProtocol::Udp, at(0, 61_062)).unwrap();
    pool.release(other, NatProtocol::Udp, 61_062);
    pool.reserve(NatProtocol::Udp, at(1, 80)).unwrap();
    pool.gain(954);
    let given = |pool: &mut Pool| {
        let drawn = std::iter::from_fn(|| pool.allocate(None, NatProtocol::Udp, 5_000));
        drawn.map(|(_, outside)| outside).collect::<BTreeSet<_>>()
    };
    let first = given(&mut pool);
    assert!(!first.contains(&at(1, 61_060)) && first.contains(&at(0, 61_062)), "{first:?}");
    assert_eq!(first.len(), 2 * 64 - 1);
    pool.release(slot, NatProtocol::Udp, 61_060);
    assert_eq!(given(&mut pool), [at(1, 61_060)].into());
}

#[test]
fn a_block_moves_only_where_few_ports_are_to_be_looked_at() {
    let of = |addresses: &str, size| {
        let spread = crate::nat::Spread::new([1, 2], 64);
        let ownership = Ownership::<Ipv6Addr>::in_blocks_of(size, 1, spread);
        let config = PoolConfig { addresses: vec![addresses.parse().unwrap()], ports: vec![1_024..=65_535] };
        let mut pool = Pool::new(&config, &ownership, WorkerId(0), [11, 12]);
        while pool.open_another() {}
        pool.spare_block().is_some()
    };
    assert!(of("192.0.2.0/26", 16_384), "64 addresses");
    assert!(!of("192.0.2.0/25", 16_384), "128 addresses");
    assert!(of("198.18.0.0/22", 1_024), "1,024 addresses");
}

#[test]
fn an_allocation_stays_bounded_when_one_port_in_a_thousand_is_left() {
    let mut pool = pool(&["192.0.2.0/31"], 1_024..=65_535);
    let mut held: Vec<_> =
        (0..128_895).map(|n| pool.allocate(None, NatProtocol::Udp, 1_024 + n as u16 / 2).unwrap()).collect();
    let mut random = Unpredictable::new([1, 1], Purpose::Ports, 9);
    for _ in 0..20_000 {
        let at = random.draw() as usize % held.len();
        let (slot, outside) = held[at];
        pool.release(slot, NatProtocol::Udp, outside.0.port);
        held[at] = pool.allocate(None, NatProtocol::Udp, 40_000).unwrap();
        assert!(pool.steps() <= 40, "{} steps", pool.steps());
    }
}
