//! Port blocks that move between workers: a lone host has the ports of all, no worker loses what is in use, and none is left without.

use crate::support;
use crate::support::{v4, v6};
use proptest::prelude::*;
use sixway_dataplane::engine::{Engine, EngineConfig};
use sixway_dataplane::nat::{
    BindingRow, BlockMove, Inside, NatProtocol, Outside, PORTS_PER_BLOCK, Selection, StaticBinding,
};
use sixway_dataplane::stateful::Stateful as _;
use sixway_dataplane::{Frame, Instant, Outbox, Verdict, WorkerId};
use sixway_trial::budget;
use sixway_wire::{Endpoint4, Endpoint6};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv6Addr;
use std::ops::RangeInclusive;

const SERVER: &str = "203.0.113.2";
const SERVER6: &str = "64:ff9b::203.0.113.2";
const ADDRESS: &str = "192.0.2.1";

/// Workers, and the messages about blocks that are under way between them.
struct Workers {
    engines: Vec<Engine>,
    now: Instant,
    /// From one worker to another, in the order in which they were sent.
    under_way: BTreeMap<(usize, usize), VecDeque<BlockMove>>,
}

fn workers(count: u8, ports: RangeInclusive<u16>) -> Workers {
    workers_by([3, 5], count, ports)
}

/// Workers over which subscribers are spread by this key.
fn workers_by(worker_key: [u64; 2], count: u8, ports: RangeInclusive<u16>) -> Workers {
    let engine = |worker| {
        let mut nat64 = support::nat64();
        nat64.pool.addresses = vec![format!("{ADDRESS}/32").parse().unwrap()];
        nat64.pool.ports = vec![ports.clone()];
        (nat64.limits.bindings, nat64.limits.sessions) = (70_000, 70_000);
        let config = EngineConfig {
            nat64: vec![nat64],
            worker: WorkerId(worker),
            workers: count,
            seed: [0x5eed, 0x1ab],
            worker_key,
            ..EngineConfig::default()
        };
        Engine::new(&config).unwrap()
    };
    Workers {
        engines: (0..count).map(engine).collect(),
        now: Instant::from_secs(1_000),
        under_way: BTreeMap::new(),
    }
}

impl Workers {
    /// The n-th host that a worker owns, in a network of its own.
    fn host(&mut self, worker: usize, n: usize) -> Ipv6Addr {
        let ownership = self.engines[0].nat64()[0].ownership();
        let hosts = (1u128..).map(|n| Ipv6Addr::from_bits((0x2001_0db8_0001 << 80) | n << 64 | 1));
        let mut owned = hosts.filter(|host| usize::from(ownership.worker_of_inside(*host).0) == worker);
        owned.nth(n).unwrap()
    }

    /// A packet comes in at a worker's queue; its verdict, what it became, and how often it was handed over.
    fn receives(&mut self, at: usize, packet: impl Into<Vec<u8>>) -> (Verdict, Vec<u8>, usize) {
        let mut frame = Frame::holding(&packet.into());
        let mut out = Outbox::new(8);
        self.engines[at].process(std::slice::from_mut(&mut frame), self.now, &mut out);
        let mut steps = 0;
        while let Verdict::HandOver(worker) = frame.verdict {
            steps += 1;
            assert!(steps <= 3, "it goes in circles");
            let engine = &mut self.engines[usize::from(worker.0)];
            engine.take_over(std::slice::from_mut(&mut frame), self.now, &mut out);
        }
        (frame.verdict, frame.bytes().to_vec(), steps)
    }

    /// A host sends from this port; the outside port, if there was one for it.
    fn opens(&mut self, host: Ipv6Addr, port: u16) -> Option<u16> {
        let at = self.engines[0].nat64()[0].ownership().worker_of_inside(host).0;
        let packet = v6(&host.to_string(), SERVER6).udp(port, 53, b"question");
        let (verdict, sent, _) = self.receives(at.into(), packet);
        (verdict == Verdict::Forward).then(|| u16::from_be_bytes([sent[20], sent[21]]))
    }

    /// A worker that wants blocks asks the one that has most to spare; what it gives is under way then.
    fn asks(&mut self, worker: usize) -> bool {
        if !self.engines[worker].nat64()[0].wants_blocks() {
            return false;
        }
        let owned = self.engines[worker].nat64()[0].blocks().owned;
        let others = (0..self.engines.len()).filter(|other| *other != worker);
        let Some(giver) =
            others.max_by_key(|other| self.engines[*other].nat64()[0].blocks().for_owner_of(owned))
        else {
            return false;
        };
        let given = self.engines[giver].nat64()[0].give_blocks(WorkerId(worker as u8), owned);
        for other in (0..self.engines.len()).filter(|other| *other != giver) {
            self.under_way.entry((giver, other)).or_default().extend(&given);
        }
        !given.is_empty()
    }

    /// The next message from one worker to another arrives.
    fn arrives(&mut self, from: usize, to: usize) {
        let moved = self.under_way.get_mut(&(from, to)).and_then(VecDeque::pop_front);
        if let Some(moved) = moved {
            self.engines[to].nat64()[0].block_moved(moved);
        }
    }

    fn all_arrive(&mut self) {
        let pairs: Vec<_> = self.under_way.keys().copied().collect();
        for (from, to) in pairs {
            while !self.under_way[&(from, to)].is_empty() {
                self.arrives(from, to);
            }
        }
    }

    /// As many ports as a host gets, asking for blocks as its worker's loop does.
    fn fills(&mut self, host: Ipv6Addr) -> usize {
        let worker = self.engines[0].nat64()[0].ownership().worker_of_inside(host).0.into();
        let (mut got, mut refused) = (0, 0);
        for port in 1_024..=u16::MAX {
            let is_open = self.opens(host, port).is_some();
            got += usize::from(is_open);
            let more = self.asks(worker);
            if more {
                self.all_arrive();
            }
            refused = if is_open || more { 0 } else { refused + 1 };
            // No worker gives any more, and nothing is left.
            if refused > 10 {
                break;
            }
        }
        got
    }

    fn bindings(&mut self, worker: usize) -> Vec<BindingRow> {
        let mut rows = Vec::new();
        self.engines[worker].nat64()[0].bindings(0, u32::MAX, &Selection::default(), &mut rows);
        rows
    }
}

#[test]
fn a_lone_host_has_the_ports_of_all_workers() {
    for count in [1, 2, 4, 16, 64] {
        for ports in [61_000..=65_535, 1_024..=5_000] {
            let all = ports.len();
            let mut gateway = workers(count, ports);
            let host = gateway.host(usize::from(count) / 2, 0);
            let got = gateway.fills(host);
            assert!(got * 100 >= all * 92, "{count} workers: {got} of {all}");
        }
    }
}

#[test]
fn a_lone_host_has_the_ports_of_a_whole_address() {
    let mut gateway = workers(64, 1_024..=65_535);
    let host = gateway.host(63, 0);
    let mut got = 0;
    for (port, kind) in (1_024..=u16::MAX).map(|port| (port, 0)).chain([(1_023, 1)]) {
        got += usize::from(gateway.opens(host, port).is_some()) * usize::from(kind == 0);
        if gateway.asks(63) {
            gateway.all_arrive();
        }
    }
    assert!(got * 100 >= 64_512 * 92, "{got} of 64,512");
}

#[test]
fn a_greedy_subscriber_leaves_the_others_a_reserve() {
    for count in [2u8, 4, 16, 64] {
        let mut gateway = workers(count, 61_000..=65_535);
        let greedy = gateway.host(0, 0);
        gateway.fills(greedy);
        let spare: u32 =
            (1..usize::from(count)).map(|other| gateway.engines[other].nat64()[0].blocks().spare).sum();
        assert!(spare >= 1, "{count} workers: nothing is left");
        // The next host gets a port, at the latest when its worker has asked.
        let worker = usize::from(count) - 1;
        let late = gateway.host(worker, 0);
        let first = gateway.opens(late, 5_000);
        gateway.asks(worker);
        gateway.all_arrive();
        assert!(first.or_else(|| gateway.opens(late, 5_000)).is_some(), "{count} workers");
        // And the greedy one gets nothing of the reserve by asking again.
        let before = gateway.bindings(0).len();
        gateway.fills(greedy);
        assert!(gateway.bindings(0).len() - before <= 64, "{count} workers");
    }
}

#[test]
fn while_a_block_is_under_way_its_packets_find_their_owner() {
    let mut gateway = workers(4, 61_000..=65_535);
    let host = gateway.host(1, 0);
    // Worker 1 learns of every block immediately, the others of none.
    let mut outside = Vec::new();
    for port in 1_024..4_000 {
        outside.extend(gateway.opens(host, port).map(|outside| (port, outside)));
        gateway.asks(1);
        for from in [0, 2, 3] {
            for _ in 0..8 {
                gateway.arrives(from, 1);
            }
        }
    }
    assert!(outside.len() > 2_500, "{} ports", outside.len());
    for (inside, outside) in outside {
        for at in 0..4 {
            let packet = v4(SERVER, ADDRESS).udp(53, outside, b"answer");
            let (verdict, sent, steps) = gateway.receives(at, packet);
            assert_eq!(verdict, Verdict::Forward, "port {outside} at worker {at}");
            assert_eq!(u16::from_be_bytes([sent[42], sent[43]]), inside);
            assert!(steps <= 2, "{steps} steps");
        }
    }
}

#[test]
fn a_static_binding_at_run_time_leaves_its_host_where_its_sessions_are() {
    for worker in 0..4 {
        let mut gateway = workers(4, 61_000..=65_535);
        let host = gateway.host(worker, 0);
        let before = gateway.opens(host, 5_000).unwrap();
        let other = gateway.host((worker + 1) % 4, 0);
        let elsewhere = gateway.opens(other, 5_000).unwrap();
        // A port in a block of each worker; none of them is in use.
        for block in 0..4 {
            let port = (61_056..65_472)
                .step_by(64)
                .map(|port| port + 7)
                .find(|port| port / PORTS_PER_BLOCK % 4 == block && ![before, elsewhere].contains(port))
                .unwrap();
            let binding = StaticBinding {
                softwire: None,
                protocol: NatProtocol::Udp,
                inside: Inside(Endpoint6::new(host, 6_000 + block)),
                outside: Outside(Endpoint4::new(ADDRESS.parse().unwrap(), port)),
            };
            for engine in &mut gateway.engines {
                assert_eq!(engine.nat64()[0].add_static(&binding), Ok(()));
            }
            for at in 0..4 {
                let (verdict, sent, steps) =
                    gateway.receives(at, v4(SERVER, ADDRESS).udp(9, port, b"question"));
                assert_eq!(verdict, Verdict::Forward);
                assert_eq!(u16::from_be_bytes([sent[42], sent[43]]), 6_000 + block);
                assert_eq!(steps, usize::from(at != worker), "straight to its owner");
            }
            assert_eq!(gateway.opens(host, 5_000), Some(before), "its session is where it was");
            assert_eq!(gateway.opens(host, 6_000 + block), Some(port));
            // No other worker is given the endpoint, and when it is removed its port is free again.
            let (nat64, counters) = gateway.engines[worker].nat64_and_counters();
            assert_eq!(nat64[0].remove_static(&binding, usize::MAX, counters), Some(true));
            for other in (0..4).filter(|other| *other != worker) {
                let (nat64, counters) = gateway.engines[other].nat64_and_counters();
                assert_eq!(nat64[0].remove_static(&binding, usize::MAX, counters), Some(true));
            }
        }
        let rows: usize = (0..4).map(|worker| gateway.bindings(worker).len()).sum();
        assert_eq!(rows, 2);
    }
}

#[test]
fn a_static_binding_that_a_worker_refused_is_not_there_to_be_removed() {
    let mut gateway = workers(2, 61_000..=65_535);
    let (host, other) = (gateway.host(0, 0), gateway.host(1, 0));
    let in_use = gateway.opens(other, 5_000).unwrap();
    let binding = StaticBinding {
        softwire: None,
        protocol: NatProtocol::Udp,
        inside: Inside(Endpoint6::new(host, 80)),
        outside: Outside(Endpoint4::new(ADDRESS.parse().unwrap(), in_use)),
    };
    let engine = &mut gateway.engines[1];
    engine.nat64()[0].add_static(&binding).unwrap_err();
    let (nat64, counters) = engine.nat64_and_counters();
    assert_eq!(nat64[0].remove_static(&binding, usize::MAX, counters), None);
    assert_eq!(gateway.opens(other, 5_000), Some(in_use));
}

#[test]
fn a_block_with_a_static_binding_of_another_worker_stays_where_it_is() {
    let mut gateway = workers(2, 61_056..=61_183);
    let host = gateway.host(0, 0);
    // The block of 61,120 is worker 1's, if 61,056 is worker 0's.
    let of_other = if gateway.engines[0].nat64()[0].ownership().worker_of_block(61_056).0 == 1 {
        61_056
    } else {
        61_120
    };
    let binding = StaticBinding {
        softwire: None,
        protocol: NatProtocol::Tcp,
        inside: Inside(Endpoint6::new(host, 80)),
        outside: Outside(Endpoint4::new(ADDRESS.parse().unwrap(), of_other)),
    };
    for engine in &mut gateway.engines {
        engine.nat64()[0].add_static(&binding).unwrap();
    }
    assert_eq!(gateway.fills(host), 64, "the other block is not given");
}

/// Another process continues the sessions of one; how many of them.
fn carried_on(old: &mut Workers, new: &mut Workers) -> (usize, usize) {
    let mut saved = Vec::new();
    for engine in &mut old.engines {
        assert_eq!(engine.nat64()[0].export(0, u32::MAX, old.now, &mut saved), None);
    }
    let identity = new.engines[0].nat64()[0].identity();
    let mut carried = 0;
    let ends = saved.iter().map(|session| (session.inside, session.protocol, session.outside));
    Engine::unite(&mut new.engines, identity, ends);
    for session in &saved {
        carried += new
            .engines
            .iter_mut()
            .filter_map(|engine| {
                let (nat64, counters) = engine.nat64_and_counters();
                nat64[0].restore(session, old.now, counters).ok()
            })
            .count();
    }
    (carried, saved.len())
}

#[test]
fn the_next_process_goes_on_with_the_sessions_in_blocks_that_have_moved() {
    let mut old = workers(16, 61_000..=65_535);
    let host = old.host(7, 0);
    let got = old.fills(host);
    let port = old.opens(host, 2_000);
    let mut new = workers(16, 61_000..=65_535);
    assert_eq!(carried_on(&mut old, &mut new), (got, got));
    assert_eq!(new.opens(host, 2_000), port);
    for at in 0..16 {
        let packet = v4(SERVER, ADDRESS).udp(53, port.unwrap(), b"answer");
        assert_eq!(new.receives(at, packet).0, Verdict::Forward);
    }
}

#[test]
fn sessions_go_on_that_a_process_with_another_key_had_at_other_workers() {
    let mut old = workers_by([8, 9], 4, 1_024..=65_535);
    let hosts: Vec<Ipv6Addr> = (0..40).map(|n| old.host(n % 4, n / 4)).collect();
    let ports: Vec<_> = (0..5u16)
        .flat_map(|n| hosts.iter().map(move |host| (*host, 5_000 + n)))
        .map(|(host, port)| (host, port, old.opens(host, port).unwrap()))
        .collect();
    let mut new = workers_by([3, 5], 4, 1_024..=65_535);
    let (carried, all) = carried_on(&mut old, &mut new);
    assert_eq!(all, 200);
    let kept = ports.iter().filter(|(host, port, outside)| new.opens(*host, *port) == Some(*outside)).count();
    assert_eq!(kept, carried);
    assert_eq!(carried, all);
    // And they are not all one worker's.
    let most = (0..4).map(|worker| new.bindings(worker).len()).max();
    assert!(most < Some(100), "{most:?} of 200 at one worker");
}

/// What a step of the model does.
#[derive(Clone, Copy, Debug)]
enum Step {
    Opens(usize, u16),
    Ends(usize, usize),
    Asks(usize),
    Arrives(usize, usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..6usize, 2_000..2_200u16).prop_map(|(host, port)| Step::Opens(host, port)),
        2 => (0..4usize, any::<prop::sample::Index>()).prop_map(|(worker, at)| Step::Ends(worker, at.index(64))),
        3 => (0..4usize).prop_map(Step::Asks),
        5 => (0..4usize, 0..4usize).prop_map(|(from, to)| Step::Arrives(from, to)),
    ]
}

/// No port is two workers', whatever each of them knows.
fn check(gateway: &mut Workers) -> Result<(), TestCaseError> {
    let mut owners = BTreeMap::new();
    let mut given = BTreeMap::new();
    for worker in 0..gateway.engines.len() {
        let id = WorkerId(worker as u8);
        let ownership = gateway.engines[worker].nat64()[0].ownership().clone();
        for port in (61_056..=61_695u16).step_by(PORTS_PER_BLOCK.into()) {
            if ownership.worker_of_block(port) == id {
                let before = owners.insert(port, worker);
                prop_assert!(before.is_none(), "block of {port}: workers {before:?} and {worker}");
            }
        }
        for row in gateway.bindings(worker) {
            prop_assert_eq!(ownership.worker_of_block(row.outside.0.port), id, "{:?}", row);
            let before = given.insert((row.protocol, row.outside), worker);
            prop_assert!(before.is_none(), "{:?} is given by {before:?} and {worker}", row.outside);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(budget(48)))]

    /// Hosts open and end flows, workers ask for blocks, and messages arrive in any order between senders: no port is ever owned by two
    /// workers, and when all messages have arrived everyone knows the same.
    #[test]
    fn no_port_is_ever_two_workers(steps in prop::collection::vec(step(), 1..400)) {
        let mut gateway = workers(4, 61_056..=61_695);
        let hosts: Vec<Ipv6Addr> =
            (0..6).map(|n| gateway.host(n % 4, n / 4)).collect();
        for step in steps {
            match step {
                Step::Opens(host, port) => {
                    gateway.opens(hosts[host], port);
                },
                Step::Ends(worker, at) => {
                    let rows = gateway.bindings(worker);
                    if let Some(row) = rows.get(at) {
                        let (nat64, counters) = gateway.engines[worker].nat64_and_counters();
                        nat64[0].end_binding(row.protocol, row.outside, usize::MAX, counters);
                    }
                }
                Step::Asks(worker) => {
                    gateway.asks(worker);
                },
                Step::Arrives(from, to) => gateway.arrives(from, to),
            }
            check(&mut gateway)?;
        }
        gateway.all_arrive();
        check(&mut gateway)?;
        let tables: Vec<Vec<WorkerId>> = (0..4)
            .map(|worker| {
                let ownership = gateway.engines[worker].nat64()[0].ownership();
                (61_056..=61_695).map(|port| ownership.worker_of_block(port)).collect()
            })
            .collect();
        prop_assert!(tables.windows(2).all(|pair| pair[0] == pair[1]));
        let owned: u32 = (0..4).map(|worker| gateway.engines[worker].nat64()[0].blocks().owned).sum();
        prop_assert_eq!(owned, 10, "no block is lost");
    }
}
