use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap, HashSet};

fn config(prefix: &str) -> DynamicPoolConfig {
    DynamicPoolConfig::new(prefix.parse().unwrap())
}

fn pool_of(config: &DynamicPoolConfig) -> DynamicPool {
    DynamicPool::new(config, WorkerId(0), 1, [1, 2]).unwrap()
}

fn host(number: u32) -> Ipv6Addr {
    Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(number))
}

fn at(seconds: u64) -> Instant {
    Instant::from_secs(seconds)
}

fn wall(seconds: u64) -> WallClock {
    WallClock { now: at(seconds), unix_seconds: 1_700_000_000 + seconds }
}

/// A packet from the host: its address, if it gets one.
fn send(pool: &mut DynamicPool, from: Ipv6Addr, now: Instant) -> Result<Ipv4Addr, DropReason> {
    match pool.lookup6(from, now) {
        Some(address) => Ok(address),
        None => pool.assign(from, now),
    }
}

const LIFETIME: u64 = 7_440;
const TWO_WEEKS: u64 = 14 * 86_400;

#[test]
fn a_host_that_sends_gets_an_address_and_keeps_it() {
    let mut pool = pool_of(&config("172.16.0.0/12"));
    assert_eq!(pool.lookup6(host(1), at(0)), None);
    let address = pool.assign(host(1), at(0)).unwrap();
    assert!(pool.contains4(address));
    assert_eq!(pool.lookup6(host(1), at(10)), Some(address));
    assert_eq!(pool.assign(host(1), at(10)), Ok(address));
    assert_eq!(pool.lookup4(address, at(10)), Some(host(1)));
    assert_eq!(pool.peek6(host(1), at(10)), Some(address));
    assert_ne!(pool.assign(host(2), at(10)), Ok(address));
    assert_eq!((pool.live(), pool.remembered(), pool.free()), (2, 0, (1 << 20) - 4));
}

#[test]
fn the_first_address_follows_from_the_host_alone() {
    let first = pool_of(&config("172.16.0.0/12")).assign(host(7), at(0));
    let mut other = DynamicPool::new(&config("172.16.0.0/12"), WorkerId(0), 1, [77, 78]).unwrap();
    assert_eq!(other.assign(host(7), at(99)), first);
}

#[test]
fn network_broadcast_and_excluded_addresses_are_never_given() {
    let mut config = config("192.0.2.0/28");
    config.excluded =
        ["192.0.2.4/30", "192.0.2.9/32", "198.51.100.0/24"].map(|p| p.parse().unwrap()).to_vec();
    let mut pool = pool_of(&config);
    let given: HashSet<_> = (0..9).map(|n| pool.assign(host(n), at(0)).unwrap().octets()[3]).collect();
    assert_eq!(given, HashSet::from([1, 2, 3, 8, 10, 11, 12, 13, 14]));
    assert_eq!(pool.assign(host(10), at(0)), Err(DropReason::DynamicPoolEmpty));
}

#[test]
fn both_addresses_of_a_31_and_the_one_of_a_32_are_given() {
    assert_eq!(pool_of(&config("192.0.2.0/31")).free(), 2);
    assert_eq!(pool_of(&config("192.0.2.1/32")).free(), 1);
    assert_eq!(pool_of(&config("192.0.2.0/30")).free(), 2);
}

#[test]
fn a_pool_that_cannot_be_says_why() {
    let mut nothing = config("192.0.2.0/30");
    nothing.excluded = vec!["192.0.2.0/24".parse().unwrap()];
    nothing.lifetime = Duration::ZERO;
    assert_eq!(nothing.faults(), [DynamicPoolFault::NoAddress, DynamicPoolFault::NoLifetime]);
    assert_eq!(config("0.0.0.0/7").faults(), [DynamicPoolFault::PrefixTooShort]);
    let mut short = config("192.0.2.0/24");
    short.remembered = Duration::from_secs(60);
    assert_eq!(short.faults(), [DynamicPoolFault::RememberedShorterThanLifetime]);
    assert!(DynamicPool::new(&short, WorkerId(0), 1, [0, 0]).is_err());
}

#[test]
fn a_silent_host_is_released_after_its_lifetime() {
    let mut pool = pool_of(&config("192.0.2.0/28"));
    let address = pool.assign(host(1), at(0)).unwrap();
    pool.expire(at(LIFETIME - 1), 10);
    assert_eq!(pool.lookup4(address, at(LIFETIME - 1)), Some(host(1)));
    assert_eq!(pool.lookup4(address, at(LIFETIME)), None);
    pool.expire(at(LIFETIME), 10);
    assert_eq!((pool.live(), pool.remembered()), (0, 1));
    assert_eq!(pool.lookup6(host(1), at(LIFETIME)), None);
}

#[test]
fn a_host_that_sends_stays_live_and_one_that_only_receives_does_not() {
    let mut pool = pool_of(&config("192.0.2.0/28"));
    let talks = pool.assign(host(1), at(0)).unwrap();
    let listens = pool.assign(host(2), at(0)).unwrap();
    for second in (0..2 * LIFETIME).step_by(600) {
        pool.lookup6(host(1), at(second));
        pool.lookup4(listens, at(second));
        pool.peek6(host(2), at(second));
        pool.expire(at(second), 10);
    }
    assert_eq!(pool.lookup4(talks, at(2 * LIFETIME)), Some(host(1)));
    assert_eq!(pool.lookup4(listens, at(2 * LIFETIME)), None);
}

#[test]
fn a_host_that_comes_back_within_two_weeks_gets_its_address_back() {
    let mut pool = pool_of(&config("172.16.0.0/12"));
    let address = pool.assign(host(1), at(0)).unwrap();
    pool.expire(at(TWO_WEEKS - 1), 10);
    assert_eq!(pool.assign(host(1), at(TWO_WEEKS - 1)), Ok(address));
    assert_eq!((pool.live(), pool.remembered()), (1, 0));
}

#[test]
fn a_host_is_forgotten_after_two_weeks() {
    let mut pool = pool_of(&config("192.0.2.0/28"));
    pool.assign(host(1), at(0)).unwrap();
    pool.expire(at(TWO_WEEKS), 10);
    assert_eq!((pool.live(), pool.remembered(), pool.free()), (0, 0, 14));
    assert_eq!(pool.snapshot(wall(TWO_WEEKS)).count(), 0);
}

#[test]
fn when_addresses_run_out_the_longest_silent_host_loses_its_own() {
    let mut pool = pool_of(&config("192.0.2.0/29"));
    let addresses: Vec<_> = (0..6).map(|n| pool.assign(host(n), at(u64::from(n))).unwrap()).collect();
    pool.lookup6(host(0), at(100));
    pool.expire(at(LIFETIME + 50), 100);
    assert_eq!((pool.live(), pool.remembered()), (1, 5));
    assert_eq!(pool.assign(host(10), at(LIFETIME + 50)), Ok(addresses[1]));
    assert_eq!(pool.assign(host(11), at(LIFETIME + 50)), Ok(addresses[2]));
    assert_eq!(pool.assign(host(3), at(LIFETIME + 50)), Ok(addresses[3]));
}

#[test]
fn when_all_hosts_are_live_a_new_one_is_refused() {
    let mut pool = pool_of(&config("192.0.2.0/29"));
    for n in 0..6 {
        pool.assign(host(n), at(0)).unwrap();
    }
    assert_eq!(pool.assign(host(10), at(LIFETIME - 1)), Err(DropReason::DynamicPoolEmpty));
    assert!(pool.assign(host(10), at(LIFETIME)).is_ok());
}

#[test]
fn no_more_hosts_are_kept_than_allowed() {
    let mut config = config("172.16.0.0/12");
    config.max_hosts = 3;
    let mut pool = pool_of(&config);
    for n in 0..3 {
        pool.assign(host(n), at(u64::from(n))).unwrap();
    }
    assert_eq!(pool.assign(host(3), at(3)), Err(DropReason::DynamicPoolEmpty));
    pool.expire(at(LIFETIME), 10);
    pool.assign(host(3), at(LIFETIME)).unwrap();
    assert_eq!(pool.peek6(host(0), at(LIFETIME)), None);
    assert_eq!((pool.live(), pool.remembered()), (3, 0));
}

#[test]
fn workers_give_their_own_addresses_to_their_own_hosts() {
    let mut config = config("192.0.2.0/24");
    config.excluded = vec!["192.0.2.16/28".parse().unwrap()];
    let mut pools: Vec<_> =
        (0..3).map(|w| DynamicPool::new(&config, WorkerId(w), 3, [9, 9]).unwrap()).collect();
    assert_eq!(pools.iter().map(DynamicPool::free).sum::<u32>(), 256 - 2 - 16);
    let mut given = HashSet::from([]);
    for n in 0..200 {
        let worker = pools[0].worker_of6(host(n));
        assert_eq!(worker, pools[2].worker_of6(host(n)));
        let address = pools[usize::from(worker.0)].assign(host(n), at(0)).unwrap();
        assert_eq!(pools[0].worker_of4(address), Some(worker));
        assert!(given.insert(address));
        for pool in &pools {
            let expected = (pool.worker == u32::from(worker.0)).then_some(host(n));
            assert_eq!(pool.lookup4(address, at(0)), expected);
        }
    }
    assert_eq!(pools[0].worker_of4("198.51.100.1".parse().unwrap()), None);
}

#[test]
fn changes_are_assignments_releases_and_returns() {
    let mut pool = pool_of(&config("192.0.2.0/28"));
    let address = pool.assign(host(1), at(0)).unwrap();
    pool.lookup6(host(1), at(60));
    let record = |seconds: u64| Record { address, host: host(1), last_seen: 1_700_000_000 + seconds };
    assert_eq!(pool.take_changes(wall(60)).records, [record(60 - 60)]);
    assert_eq!(pool.take_changes(wall(61)), Changes::default());
    pool.expire(at(20_000), 10);
    assert_eq!(pool.take_changes(wall(20_000)).records, [record(60)]);
    pool.assign(host(1), at(30_000)).unwrap();
    assert_eq!(pool.take_changes(wall(30_000)).records, [record(30_000)]);
}

#[test]
fn changes_that_nobody_takes_are_given_up_and_this_is_said() {
    let mut pool = pool_of(&config("10.0.0.0/12"));
    for n in 0..=MAX_CHANGES as u32 {
        pool.assign(host(n), at(0)).unwrap();
    }
    assert_eq!(pool.take_changes(wall(0)), Changes { records: Vec::new(), incomplete: true });
    assert_eq!(pool.take_changes(wall(0)), Changes::default());
}

#[test]
fn a_restart_takes_over_who_was_live_and_who_was_remembered() {
    let mut before = pool_of(&config("192.0.2.0/28"));
    let addresses: Vec<_> =
        (0..14).map(|n| before.assign(host(n), at(u64::from(n) * 1_000)).unwrap()).collect();
    let now = 13_000;
    before.expire(at(now), 100);
    let text = {
        let mut text = String::new();
        write_records(before.snapshot(wall(now)), &mut text).unwrap();
        text
    };
    let mut after = pool_of(&config("192.0.2.0/28"));
    let fresh_clock = WallClock { now: at(0), unix_seconds: 1_700_000_000 + now };
    let restored = after.restore(parse_records(&text).map(|(_, record)| record.unwrap()), fresh_clock);
    assert_eq!(restored, Restored { hosts: 14, refused: Vec::new() });
    assert_eq!((after.live(), after.remembered()), (before.live(), before.remembered()));
    let sorted = |pool: &DynamicPool, wall| {
        let mut records: Vec<_> = pool.snapshot(wall).collect();
        records.sort_by_key(|record| record.address);
        records
    };
    assert_eq!(sorted(&after, fresh_clock), sorted(&before, wall(now)));
    assert_eq!(after.assign(host(50), at(0)), Ok(addresses[0]), "the longest silent one");
    after.expire(at(LIFETIME - 1), 100);
    assert_eq!(after.live(), 2, "the one that was heard just before, and the new one");
}

#[test]
fn of_contradicting_records_the_newest_counts_and_others_are_reported() {
    let mut pool = pool_of(&config("192.0.2.0/28"));
    let record = |address: &str, number, last_seen| Record {
        address: address.parse().unwrap(),
        host: host(number),
        last_seen,
    };
    let now = 1_700_000_000;
    let restored = pool.restore(
        [
            record("192.0.2.1", 1, now - 50),
            record("192.0.2.1", 2, now - 10),
            record("192.0.2.2", 2, now - 20),
            record("192.0.2.3", 3, now),
            record("192.0.2.4", 3, now),
            record("192.0.2.0", 4, now),
            record("198.51.100.1", 5, now),
            record("192.0.2.6", 6, now - TWO_WEEKS),
            record("192.0.2.7", 7, now + 1_000),
        ],
        WallClock { now: at(5), unix_seconds: now },
    );
    assert_eq!(restored.hosts, 3);
    assert_eq!(pool.lookup4("192.0.2.1".parse().unwrap(), at(5)), Some(host(2)));
    assert_eq!(
        pool.lookup4("192.0.2.4".parse().unwrap(), at(5)),
        Some(host(3)),
        "the last of two equally new ones"
    );
    assert_eq!(pool.lookup4("192.0.2.7".parse().unwrap(), at(5)), Some(host(7)));
    let faults: HashMap<_, _> =
        restored.refused.into_iter().map(|(record, fault)| (record.address.to_string(), fault)).collect();
    let expected = [
        ("192.0.2.1", RestoreFault::Superseded),
        ("192.0.2.2", RestoreFault::Superseded),
        ("192.0.2.3", RestoreFault::Superseded),
        ("192.0.2.0", RestoreFault::NotInPool),
        ("198.51.100.1", RestoreFault::NotInPool),
        ("192.0.2.6", RestoreFault::TooOld),
    ];
    assert_eq!(faults, expected.map(|(address, fault)| (address.to_owned(), fault)).into());
}

#[test]
fn rows_are_shown_some_at_a_time() {
    let mut pool = pool_of(&config("192.0.2.0/24"));
    for n in 0..100 {
        pool.assign(host(n), at(0)).unwrap();
    }
    let (mut rows, mut cursor) = (Vec::new(), Some(0));
    while let Some(from) = cursor {
        let (some, next) = pool.hosts_from(from, 7, wall(0));
        assert!(some.len() <= 7);
        rows.extend(some);
        cursor = next;
    }
    assert_eq!(rows.len(), 100);
    assert!(rows.iter().all(|row| row.live));
}

#[test]
fn a_long_lifetime_is_kept_to_within_a_bucket() {
    let mut config = config("192.0.2.0/28");
    config.lifetime = Duration::from_secs(1_000_000);
    let mut pool = pool_of(&config);
    pool.assign(host(1), at(5)).unwrap();
    for second in (0..1_000_005).step_by(1_000) {
        pool.expire(at(second), 10);
        assert_eq!(pool.live(), 1);
    }
    pool.expire(at(1_000_005 + 64), 10);
    assert_eq!(pool.live(), 0);
}

/// The pool as a plain map, without bounds on its time.
#[derive(Default)]
struct Model {
    hosts: BTreeMap<Ipv6Addr, (Ipv4Addr, u64, bool)>,
}

impl Model {
    fn expire(&mut self, now: u64, lifetime: u64, remembered: u64) {
        self.hosts.retain(|_, (_, seen, _)| now - *seen < remembered);
        self.hosts.values_mut().for_each(|(_, seen, live)| *live = now - *seen < lifetime);
    }

    /// What a packet from the host may lead to.
    fn check_send(&mut self, host: Ipv6Addr, now: u64, room: usize, answer: Result<Ipv4Addr, DropReason>) {
        if let Some((address, ..)) = self.hosts.get(&host) {
            assert_eq!(answer, Ok(*address), "a known host keeps its address");
        } else {
            let longest = self.hosts.values().filter(|(.., live)| !live).map(|(_, seen, _)| *seen).min();
            if self.hosts.len() == room {
                let Some(longest) = longest else {
                    assert_eq!(answer, Err(DropReason::DynamicPoolEmpty));
                    return;
                };
                let address = answer.expect("a remembered host gives way");
                let loser = self.hosts.iter().find(|(_, (theirs, ..))| *theirs == address);
                let (loser, (_, seen, live)) = loser.expect("there was no free address");
                assert!(!live && *seen == longest, "the longest silent one gives way");
                let loser = *loser;
                self.hosts.remove(&loser);
            }
        }
        let address = answer.expect("there is a free address");
        let others = self.hosts.iter().filter(|(other, _)| **other != host);
        assert!(others.into_iter().all(|(_, (theirs, ..))| *theirs != address), "an address has one host");
        self.hosts.insert(host, (address, now, true));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Send(u32),
    Inbound(u8),
    Pass(u64),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0u32..40).prop_map(Step::Send),
        2 => any::<u8>().prop_map(Step::Inbound),
        3 => prop_oneof![0u64..100, 0u64..9_000, 0u64..TWO_WEEKS].prop_map(Step::Pass),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn it_does_what_a_plain_map_does(steps in prop::collection::vec(step(), 1..200), seed: [u64; 2]) {
        let config = config("192.0.2.0/28");
        let mut pool = DynamicPool::new(&config, WorkerId(0), 1, seed).unwrap();
        let (mut model, mut now) = (Model::default(), 0u64);
        for step in steps {
            pool.expire(at(now), usize::MAX);
            model.expire(now, LIFETIME, TWO_WEEKS);
            match step {
                Step::Send(number) => {
                    let answer = send(&mut pool, host(number), at(now));
                    model.check_send(host(number), now, 14, answer);
                }
                Step::Inbound(last) => {
                    let address = Ipv4Addr::new(192, 0, 2, last & 15);
                    let expected = model.hosts.iter().find(|(_, (theirs, _, live))| *theirs == address && *live);
                    prop_assert_eq!(pool.lookup4(address, at(now)), expected.map(|(host, _)| *host));
                }
                Step::Pass(seconds) => now += seconds,
                Step::Restart => {
                    let records: Vec<_> = pool.snapshot(wall(now)).collect();
                    pool = DynamicPool::new(&config, WorkerId(0), 1, seed).unwrap();
                    prop_assert_eq!(pool.restore(records, wall(now)).refused, []);
                }
            }
            let live = model.hosts.values().filter(|(.., live)| *live).count();
            prop_assert_eq!((pool.live() as usize, (pool.live() + pool.remembered()) as usize), (live, model.hosts.len()));
            let shown: BTreeMap<_, _> = pool.snapshot(wall(now)).map(|r| (r.host, (r.address, r.last_seen - 1_700_000_000))).collect();
            let expected: BTreeMap<_, _> = model.hosts.iter().map(|(host, (address, seen, _))| (*host, (*address, *seen))).collect();
            prop_assert_eq!(shown, expected);
        }
    }

    #[test]
    fn whatever_the_budget_no_address_has_two_hosts(
        steps in prop::collection::vec((0u32..60, 0u64..4_000, 0usize..4), 1..300), max_hosts in 1u32..20
    ) {
        let mut config = config("192.0.2.0/28");
        config.max_hosts = max_hosts;
        let mut pool = pool_of(&config);
        let mut now = 0;
        for (number, seconds, budget) in steps {
            now += seconds;
            pool.expire(at(now), budget);
            if let Ok(address) = send(&mut pool, host(number), at(now)) {
                prop_assert_eq!(pool.lookup4(address, at(now)), Some(host(number)));
            }
            let rows: Vec<_> = pool.snapshot(wall(now)).collect();
            prop_assert_eq!(rows.iter().map(|row| row.address).collect::<HashSet<_>>().len(), rows.len());
            prop_assert_eq!(rows.iter().map(|row| row.host).collect::<HashSet<_>>().len(), rows.len());
            prop_assert!(rows.len() <= 14.min(max_hosts as usize));
            prop_assert_eq!(rows.len() as u32, pool.live() + pool.remembered());
            prop_assert_eq!(pool.free() as usize, 14 - rows.len());
        }
    }
}
