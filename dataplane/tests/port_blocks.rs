//! Port blocks of subscribers (RFC 6888 §5): what a subscriber has, what others lose while it does its worst, and that workers share them.

use crate::support;
use crate::support::{Gateway, v4};
use sixway_dataplane::engine::{Engine, EngineConfig};
use sixway_dataplane::mechanism::nat44::Nat44Config;
use sixway_dataplane::nat::{
    BlockPolicy, Deterministic, EventSink, NatEvent, NatProtocol, Outside, Selection, StateLimits,
    SubscriberRow,
};
use sixway_dataplane::{DropReason, Frame, Instant, Outbox, Verdict, WorkerId};
use sixway_wire::{Endpoint4, Prefix4};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SERVER: &str = "203.0.113.1";
const POLICY: BlockPolicy = BlockPolicy { size: 128, most: 2, idle_seconds: 60 };

fn nat44(ports: RangeInclusive<u16>) -> Nat44Config {
    let mut nat44 = support::nat44();
    nat44.pool.addresses = vec!["192.0.2.1/32".parse().unwrap()];
    nat44.pool.ports = vec![ports];
    nat44.limits = StateLimits { sessions: 1 << 16, bindings: 1 << 16, ..StateLimits::default() };
    nat44.subscribers.blocks = Some(POLICY);
    nat44
}

fn gateway(edit: impl FnOnce(&mut Nat44Config)) -> Gateway {
    support::gateway(|config| {
        let mut nat44 = nat44(1_024..=65_535);
        edit(&mut nat44);
        config.nat44.push(nat44);
    })
}

fn flows(gateway: &mut Gateway, host: &str, ports: std::ops::Range<u16>) -> usize {
    gateway.flows(host, SERVER, ports)
}

fn rows(gateway: &mut Gateway) -> Vec<SubscriberRow> {
    let now = gateway.now;
    let (translator, _) = gateway.engine.stateful_at(0).unwrap();
    let mut rows = Vec::new();
    assert_eq!(translator.subscribers(0, u32::MAX, None, now, &mut rows), None);
    rows.sort_by_key(|row| row.address);
    rows
}

/// What was recorded.
#[derive(Clone, Default)]
struct Notes {
    seen: Arc<Mutex<Vec<NatEvent>>>,
    bindings: bool,
}

impl EventSink for Notes {
    fn wants_sessions(&self) -> bool {
        false
    }

    fn wants_bindings_in_blocks(&self) -> bool {
        self.bindings
    }

    fn record(&mut self, _: Instant, event: NatEvent) {
        self.seen.lock().unwrap().push(event);
    }
}

impl Notes {
    fn of(gateway: &mut Gateway, bindings: bool) -> Self {
        let notes = Self { bindings, ..Self::default() };
        gateway.engine.stateful().for_each(|it| it.set_event_sink(Box::new(notes.clone())));
        notes
    }

    fn words(&self) -> Vec<&'static str> {
        let word = |event: &NatEvent| match event {
            NatEvent::BlockAllocated(_) => "block",
            NatEvent::BlockReleased(_) => "block returned",
            NatEvent::BindingCreated(_) => "binding",
            NatEvent::BindingDeleted(_) => "binding ended",
            NatEvent::SessionCreated(_) | NatEvent::SessionDeleted(_) => "session",
            NatEvent::PortlessCreated(_) | NatEvent::PortlessDeleted(_) => "portless",
        };
        self.seen.lock().unwrap().iter().map(word).collect()
    }
}

#[test]
fn whoever_has_all_blocks_that_it_may_have_is_refused_more_and_others_get_theirs() {
    let mut gateway = gateway(|_| ());
    assert_eq!(flows(&mut gateway, "10.0.0.1", 1_024..2_024), 256);
    assert_eq!(gateway.engine.counters().dropped[DropReason::SubscriberLimit as usize], 1_000 - 256);
    assert_eq!(flows(&mut gateway, "10.0.0.2", 1_024..1_124), 100);
    let rows = rows(&mut gateway);
    assert_eq!(rows.iter().map(|row| row.blocks.count).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(rows[0].blocks.address, Some("192.0.2.1".parse().unwrap()));
}

#[test]
fn every_subscriber_gets_a_first_block_as_long_as_the_pool_has_one() {
    // Eight blocks; one subscriber may have all but the last.
    let mut gateway = gateway(|nat44| {
        nat44.pool.ports = vec![1_024..=2_047];
        nat44.subscribers.blocks = Some(BlockPolicy { most: 16, ..POLICY });
    });
    assert_eq!(flows(&mut gateway, "10.0.0.1", 1_024..9_024), 7 * 128);
    assert_eq!(flows(&mut gateway, "10.0.0.2", 1_024..1_034), 10);
    assert_eq!(flows(&mut gateway, "10.0.0.3", 1_024..1_034), 0);
    assert!(gateway.engine.counters().dropped[DropReason::PortPoolEmpty as usize] >= 10);
}

#[test]
fn a_log_has_a_record_for_a_block_instead_of_one_for_each_binding() {
    for (bindings, expected) in [(false, vec!["block"]), (true, vec!["block", "binding", "binding"])] {
        let mut gateway = gateway(|_| ());
        let notes = Notes::of(&mut gateway, bindings);
        flows(&mut gateway, "10.0.0.1", 1_024..1_026);
        assert_eq!(notes.words(), expected);
    }
    let mut gateway = gateway(|_| ());
    let notes = Notes::of(&mut gateway, false);
    flows(&mut gateway, "10.0.0.1", 1_024..1_324);
    assert_eq!(notes.words(), ["block", "block"]);
    for _ in 0..60 {
        gateway.waits(Duration::from_secs(30));
    }
    assert_eq!(notes.words(), ["block", "block", "block returned", "block returned"]);
    let seen = notes.seen.lock().unwrap().clone();
    let (NatEvent::BlockAllocated(given), NatEvent::BlockReleased(_)) = (seen[0], seen[2]) else { panic!() };
    assert_eq!(given.subscriber.0, "::ffff:10.0.0.1".parse::<std::net::Ipv6Addr>().unwrap());
    assert_eq!((given.bits, given.address.0, given.size), (32, "192.0.2.1".parse().unwrap(), 128));
    assert!(given.first.is_multiple_of(128));
    assert!(rows(&mut gateway).is_empty());
}

/// Workers, between which messages about blocks arrive immediately.
struct Workers {
    engines: Vec<Engine>,
    now: Instant,
}

impl Workers {
    fn new(count: u8, worker_key: [u64; 2], ports: RangeInclusive<u16>) -> Self {
        let engine = |worker| {
            let config = EngineConfig {
                nat44: vec![nat44(ports.clone())],
                worker: WorkerId(worker),
                workers: count,
                seed: [0x5eed, 0x1ab],
                worker_key,
                ..EngineConfig::default()
            };
            Engine::new(&config).unwrap()
        };
        Self { engines: (0..count).map(engine).collect(), now: Instant::from_secs(1_000) }
    }

    /// A host sends from this port to the server; the outside endpoint, if there was one for it.
    fn opens(&mut self, host: Ipv4Addr, port: u16) -> Option<Endpoint4> {
        let packet = v4(&host.to_string(), SERVER).udp(port, 53, b"question");
        let (verdict, sent) = self.receives(0, packet);
        let source = Ipv4Addr::new(*sent.get(12)?, sent[13], sent[14], sent[15]);
        (verdict == Verdict::Forward)
            .then(|| Endpoint4::new(source, u16::from_be_bytes([sent[20], sent[21]])))
    }

    fn receives(&mut self, at: usize, packet: impl Into<Vec<u8>>) -> (Verdict, Vec<u8>) {
        let mut frame = Frame::holding(&packet.into());
        let mut out = Outbox::new(8);
        self.engines[at].process(std::slice::from_mut(&mut frame), self.now, &mut out);
        for _ in 0..3 {
            let Verdict::HandOver(worker) = frame.verdict else { break };
            let engine = &mut self.engines[usize::from(worker.0)];
            engine.take_over(std::slice::from_mut(&mut frame), self.now, &mut out);
        }
        (frame.verdict, frame.bytes().to_vec())
    }

    /// Workers that want blocks ask, as their loops do, until all moves are done.
    fn exchange(&mut self) {
        for _ in 0..100 {
            let mut moves = Vec::new();
            for worker in 0..self.engines.len() {
                let asker = self.engines[worker].stateful().next().unwrap();
                if !asker.wants_blocks() {
                    continue;
                }
                let owned = asker.blocks().owned;
                let mut best = (0, 0);
                for other in (0..self.engines.len()).filter(|other| *other != worker) {
                    let has = self.engines[other].stateful().next().unwrap().blocks().for_owner_of(owned);
                    best = best.max((has, other));
                }
                let giver = self.engines[best.1].stateful().next().unwrap();
                moves.extend(giver.give_blocks(WorkerId(worker as u8), owned));
            }
            if moves.is_empty() {
                return;
            }
            for engine in &mut self.engines {
                let translator = engine.stateful().next().unwrap();
                moves.iter().for_each(|moved| {
                    translator.block_moved(*moved);
                });
            }
        }
        panic!("blocks move in circles");
    }

    /// The same, and once more after blocks have moved.
    fn gets(&mut self, host: Ipv4Addr, port: u16) -> Option<Endpoint4> {
        let first = self.opens(host, port);
        self.exchange();
        first.or_else(|| self.opens(host, port))
    }
}

fn host(n: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0001 + n)
}

#[test]
fn with_several_workers_all_blocks_of_the_pool_can_be_had_and_nobody_shares_one() {
    // 62 blocks of 128 ports.
    let mut workers = Workers::new(3, [3, 5], 1_024..=8_959);
    let mut owners = BTreeMap::new();
    let mut got = 0;
    for n in 0..100 {
        if let Some(outside) = workers.gets(host(n), 5_000) {
            assert_eq!(owners.insert(outside.port / 128, n), None);
            got += 1;
        }
    }
    assert_eq!(got, 62, "one for each of so many subscribers");
    for (block, n) in owners {
        let outside = Endpoint4::new("192.0.2.1".parse().unwrap(), block * 128);
        let owner = workers.engines[0].stateful().next().unwrap().worker_of_block(outside.port);
        let known = workers.engines[0].stateful().next().unwrap().worker_of_inside(host(n).to_ipv6_mapped());
        assert_eq!(owner, known);
        for worker in 0..3 {
            // Answers find their worker from any other.
            let mut rows = Vec::new();
            workers.engines[worker].stateful().next().unwrap().bindings(
                0,
                u32::MAX,
                &Selection { outside_port: None, ..Selection::default() },
                &mut rows,
            );
            let mine = rows.iter().find(|row| row.outside.0.port / 128 == block);
            assert_eq!(mine.is_some(), usize::from(owner.0) == worker);
            if let Some(row) = mine {
                let answer = v4(SERVER, "192.0.2.1").udp(53, row.outside.0.port, b"answer");
                assert_eq!(workers.receives((worker + 1) % 3, answer).0, Verdict::Forward);
            }
        }
    }
}

#[test]
fn one_subscriber_with_all_its_blocks_leaves_other_workers_subscribers_theirs() {
    let mut workers = Workers::new(2, [3, 5], 1_024..=2_047);
    let greedy: Vec<_> = (0..2_000u16).filter_map(|n| workers.gets(host(0), 5_000 + n)).collect();
    assert_eq!(greedy.len(), 256);
    let others = (1..20).filter(|n| workers.gets(host(*n), 5_000).is_some()).count();
    assert_eq!(others, 6);
}

#[test]
fn the_blocks_of_restored_sessions_are_not_recorded_as_given_now() {
    let mut before = gateway(|_| ());
    flows(&mut before, "10.0.0.1", 1_024..1_026);
    let (mut saved, now) = (Vec::new(), before.now);
    assert_eq!(before.engine.stateful().next().unwrap().export(0, u32::MAX, now, &mut saved), None);
    let mut after = gateway(|_| ());
    after.now = now;
    for session in &saved {
        let mut counters = sixway_dataplane::Counters::default();
        let restored = after.engine.stateful().next().unwrap().restore(session, now, &mut counters);
        assert!(restored.is_ok(), "{restored:?}");
    }
    let notes = Notes::of(&mut after, false);
    after.waits(Duration::from_secs(1));
    flows(&mut after, "10.0.0.1", 1_024..1_030);
    assert_eq!(notes.words(), [] as [&str; 0], "its block was there before");
}

#[test]
fn blocks_of_restored_sessions_go_to_one_worker_and_to_their_subscriber() {
    let mut before = Workers::new(2, [3, 5], 1_024..=65_535);
    let mut owned = BTreeMap::new();
    for n in 0..10 {
        let outside = before.gets(host(n), 5_000).unwrap();
        owned.insert(n, outside);
    }
    let (mut saved, now) = (Vec::new(), before.now);
    for engine in &mut before.engines {
        let translator = engine.stateful().next().unwrap();
        assert_eq!(translator.export(0, u32::MAX, now, &mut saved), None);
    }
    assert_eq!(saved.len(), 10);
    // Another number of workers, and another key.
    let mut after = Workers::new(3, [77, 78], 1_024..=65_535);
    let identity = after.engines[0].stateful().next().unwrap().identity();
    let ends = saved.iter().map(|it| (it.inside, it.protocol, it.outside));
    Engine::unite(&mut after.engines, identity, ends);
    for session in &saved {
        let mut counters = sixway_dataplane::Counters::default();
        let restored = after
            .engines
            .iter_mut()
            .any(|engine| engine.stateful().next().unwrap().restore(session, now, &mut counters).is_ok());
        assert!(restored, "{session:?}");
    }
    for (n, outside) in owned {
        let again = after.gets(host(n), 6_000).unwrap();
        assert_eq!((again.address, again.port / 128), (outside.address, outside.port / 128), "its block");
    }
}

#[test]
fn a_worker_gives_no_block_that_a_subscriber_has_without_using_it() {
    let mut gateway = gateway(|nat44| nat44.pool.ports = vec![1_024..=1_151]);
    flows(&mut gateway, "10.0.0.1", 1_024..1_025);
    gateway.waits(Duration::from_secs(305));
    gateway.waits(Duration::from_secs(10));
    let rows = rows(&mut gateway);
    assert_eq!((rows.len(), rows[0].bindings, rows[0].blocks.count), (1, [0; 3], 1));
    let translator = gateway.engine.stateful().next().unwrap();
    assert!(!translator.is_spare(1_024));
    assert_eq!(translator.blocks().spare, 0);
    assert!(!translator.quarantine(
        NatProtocol::Tcp,
        Outside(Endpoint4::new("198.51.100.1".parse().unwrap(), 1_024)),
        Instant::from_secs(9_999)
    ));
}

#[test]
fn a_log_has_the_return_of_unused_blocks_when_their_address_is_drained() {
    let mut gateway = gateway(|nat44| nat44.pool.addresses = vec!["192.0.2.0/31".parse().unwrap()]);
    flows(&mut gateway, "10.0.0.1", 1_024..1_025);
    let address = rows(&mut gateway)[0].blocks.address.unwrap();
    // Its session ends, and the quarantine of its port.
    [305, 125].into_iter().for_each(|seconds| gateway.waits(Duration::from_secs(seconds)));
    let notes = Notes::of(&mut gateway, false);
    gateway.engine.stateful_at(0).unwrap().0.drain(Prefix4::holding(address, 32), true);
    gateway.waits(Duration::from_millis(1));
    assert_eq!(notes.words(), ["block returned"]);
    flows(&mut gateway, "10.0.0.1", 1_024..1_025);
    assert_ne!(rows(&mut gateway)[0].blocks.address, Some(address));
}

/// Sixteen subscribers, and as many blocks of 4,096 ports at two addresses.
fn deterministic(nat44: &mut Nat44Config) {
    nat44.pool.addresses = vec!["192.0.2.0/31".parse().unwrap()];
    nat44.pool.ports = vec![32_768..=65_535];
    let (pool, ports) = (&nat44.pool.addresses, &nat44.pool.ports);
    let inside = ["::ffff:10.0.0.0/124".parse().unwrap()];
    let mapping = Deterministic::new(&inside, 128, (pool, ports), 0).unwrap();
    nat44.subscribers.blocks = Some(BlockPolicy { size: mapping.size(), most: 1, idle_seconds: 60 });
    nat44.subscribers.deterministic = Some(Arc::new(mapping));
}

#[test]
fn deterministic_nat_gives_each_subscriber_its_own_block_whoever_comes_first() {
    let mut gateway = gateway(deterministic);
    let notes = Notes::of(&mut gateway, false);
    for n in [9, 0, 15, 8] {
        let host = format!("10.0.0.{n}");
        assert_eq!(flows(&mut gateway, &host, 1_024..1_034), 10);
    }
    assert_eq!(flows(&mut gateway, "10.0.0.16", 1_024..1_034), 0, "no subscriber");
    let rows = rows(&mut gateway);
    let blocks: Vec<_> = rows.iter().map(|row| (row.blocks.address.unwrap(), row.blocks.first[0])).collect();
    let at = |last, first| (Ipv4Addr::new(192, 0, 2, last), first);
    assert_eq!(blocks, [at(0, 32_768), at(1, 32_768), at(1, 36_864), at(1, 61_440)]);
    assert!(notes.words().is_empty(), "nothing to log: the configuration says it");
    assert_eq!(flows(&mut gateway, "10.0.0.1", 1_024..6_000), 4_096, "and no port of another's");
}

#[test]
fn deterministic_blocks_belong_to_the_workers_of_their_subscribers() {
    let mut workers = Workers::new(3, [3, 5], 1_024..=65_535);
    for (id, engine) in workers.engines.iter_mut().enumerate() {
        let mut nat44 = nat44(1_024..=65_535);
        deterministic(&mut nat44);
        let config = EngineConfig {
            nat44: vec![nat44],
            worker: WorkerId(id as u8),
            workers: 3,
            worker_key: [3, 5],
            ..EngineConfig::default()
        };
        *engine = Engine::new(&config).unwrap();
    }
    let mut used = std::collections::BTreeSet::new();
    for n in 0..16 {
        let host = Ipv4Addr::from_bits(0x0a00_0000 + n);
        let outside = workers.opens(host, 5_000).unwrap();
        assert_eq!(outside.address.octets()[3], (n / 8) as u8);
        assert_eq!(outside.port / 4_096, 8 + (n % 8) as u16);
        used.insert(workers.engines[0].stateful().next().unwrap().worker_of_inside(host.to_ipv6_mapped()).0);
        for at in 0..3 {
            let answer = v4(SERVER, &outside.address.to_string()).udp(53, outside.port, b"answer");
            let (verdict, sent) = workers.receives(at, answer);
            assert_eq!((verdict, &sent[16..20]), (Verdict::Forward, &host.octets()[..]));
        }
    }
    assert_eq!(used.len(), 3);
    for engine in &mut workers.engines {
        let translator = engine.stateful().next().unwrap();
        assert!(!translator.wants_blocks() && !translator.blocks_move());
        assert_eq!(translator.give_blocks(WorkerId(1), 0), []);
    }
}
