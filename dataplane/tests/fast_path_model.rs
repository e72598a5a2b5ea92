//! Sessions move to the fast path and back while packets arrive, wait, get lost and leave in any order of events: no packet overtakes an
//! earlier one of its flow, every entry has its session, and what was counted is what came.

use crate::support;
use crate::support::fast_path::{Entry, Fate, MemoryFastPath, Word};
use crate::support::{v4, v6};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use sixway_dataplane::engine::{Engine, EngineConfig};
use sixway_dataplane::nat::{
    Inside, NatProtocol, NotAdopted, Outside, SavedSession, Selection, SessionRow, StaticBinding,
};
use sixway_dataplane::offload::FastPath;
use sixway_dataplane::stateful::Stateful as _;
use sixway_dataplane::{Frame, Instant, Outbox};
use sixway_trial::budget;
use sixway_wire::{Endpoint4, Endpoint6};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

const SERVER: &str = "203.0.113.2";
const SERVER6: &str = "64:ff9b::203.0.113.2";
/// A host that others behind the same translator call.
const CALLED: &str = "2001:db8:1::99";
const DOOR: u16 = 9_000;
/// The flow that calls it.
const HAIRPIN: u8 = 7;
/// A host that calls many others from one port.
const BUSY: &str = "2001:db8:1::98";
const BUSY_PORT: u16 = 2_000;
/// Those that it calls at a time, and in all.
const CROWD: u8 = 70;
const CROWDS: u8 = 210;
const ACK: u8 = 16;
const SYN_ACK: u8 = 18;
const PACKETS: u32 = 4;
/// Fewer than there are TCP flows.
const HALF_OPEN: usize = 2;
/// The queue before the engine never holds a packet for longer; a silence is much shorter.
const LONGEST_IN_QUEUE: Duration = Duration::from_millis(300);

/// What happens.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A number of packets of a flow comes, one way or the other.
    Comes { flow: u8, outbound: bool, count: u8 },
    /// A SYN, FIN or RST comes.
    Flags { flow: u8, outbound: bool, flags: u8 },
    /// The engine decides on this number of packets, a batch.
    Decides(u8),
    /// What was decided on is sent.
    Sends,
    /// The queue loses its oldest packet.
    Loses,
    /// Time passes, in milliseconds.
    Waits(u16),
    /// Time passes, in seconds.
    Sleeps(u16),
    /// The administrator ends a session, or its binding.
    Ends { number: u8, binding: bool },
    /// The number of sessions of another host that become ripe in one batch: more than there are places for sessions that are looked at.
    Crowd,
    /// Another process takes over, with the same entries.
    TakesOver,
}

fn step() -> impl Strategy<Value = Step> {
    let flow = prop_oneof![4 => 0u8..6, 1 => Just(HAIRPIN)];
    prop_oneof![
        8 => (flow.clone(), any::<bool>(), 1u8..6)
            .prop_map(|(flow, outbound, count)| Step::Comes { flow, outbound, count }),
        2 => (flow, any::<bool>(), prop_oneof![Just(1u8), Just(2), Just(4), Just(SYN_ACK)])
            .prop_map(|(flow, outbound, flags)| Step::Flags { flow, outbound, flags }),
        6 => (1u8..8).prop_map(Step::Decides),
        6 => Just(Step::Sends),
        3 => Just(Step::Loses),
        3 => (1u16..40).prop_map(Step::Waits),
        2 => (1u16..400).prop_map(Step::Waits),
        1 => (1u16..400).prop_map(Step::Sleeps),
        1 => (any::<u8>(), any::<bool>()).prop_map(|(number, binding)| Step::Ends { number, binding }),
        1 => Just(Step::Crowd),
        1 => Just(Step::TakesOver),
    ]
}

/// Whose packet it is: the flow's number, and whether it goes out.
type Lane = (u8, bool);

struct World {
    engine: Engine,
    path: MemoryFastPath,
    now: Instant,
    /// Before the engine: packets and when they came.
    queue: VecDeque<(Instant, Vec<u8>)>,
    /// Decided on and not sent.
    decided: Vec<Vec<u8>>,
    /// Which lane each number belongs to, plain packets only.
    lanes: BTreeMap<u64, Lane>,
    /// The highest number that left by each lane.
    left: BTreeMap<Lane, u64>,
    /// Packets decided on or forwarded of each lane, as long as no session has ended.
    seen: BTreeMap<Lane, u64>,
    number: u64,
    /// The one that the busy host calls next.
    next_called: u8,
    forwarded: u64,
    /// Those of them that were hairpins, and those that were SYN/ACKs.
    turned: u64,
    answers: u64,
}

fn config() -> EngineConfig {
    let mut config = EngineConfig { seed: [0x5eed, 0x1ab], ..EngineConfig::default() };
    let mut nat64 = support::nat64();
    nat64.pool.addresses = vec!["192.0.2.1/32".parse().unwrap()];
    // Few enough that ports are soon used again.
    nat64.pool.ports = vec![4_000..=4_007];
    nat64.static_bindings.push(StaticBinding {
        softwire: None,
        protocol: NatProtocol::Udp,
        inside: Inside(Endpoint6::new(CALLED.parse().unwrap(), 53)),
        outside: Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), DOOR)),
    });
    config.nat64.push(nat64);
    config
}

impl World {
    fn new(most: usize) -> Self {
        let path = MemoryFastPath::new(most);
        path.table().most_half_open = HALF_OPEN;
        let mut engine = Engine::new(&config()).unwrap();
        engine.set_fast_path(Box::new(path.clone()), PACKETS);
        Self {
            engine,
            path,
            now: Instant::from_secs(1_000),
            queue: VecDeque::new(),
            decided: Vec::new(),
            lanes: BTreeMap::new(),
            left: BTreeMap::new(),
            seen: BTreeMap::new(),
            number: 0,
            next_called: 0,
            forwarded: 0,
            turned: 0,
            answers: 0,
        }
    }

    /// Even flows are TCP, odd ones UDP.
    fn packet(&mut self, (flow, outbound): Lane, flags: u8) -> Option<Vec<u8>> {
        let port = 1_000 + u16::from(flow);
        let host = format!("2001:db8:1::{flow:x}");
        self.number += 1;
        let data = self.number.to_be_bytes();
        let (mut packet, transport) = if flow == HAIRPIN && outbound {
            (v6(&host, "64:ff9b::192.0.2.1").udp(port, DOOR, &data).octets(), 40)
        } else if outbound {
            let packet = v6(&host, SERVER6);
            let packet =
                if flow % 2 == 0 { packet.tcp(port, 80, flags, &data) } else { packet.udp(port, 53, &data) };
            (packet.octets(), 40)
        } else {
            let Outside(outside) = self
                .rows()
                .iter()
                .find(|row| row.inside.is_some_and(|inside| inside.0.port == port))?
                .outside;
            if flow == HAIRPIN {
                let image = format!("64:ff9b::{}", outside.address);
                return Some(v6(CALLED, &image).udp(53, outside.port, &data).octets());
            }
            let packet = v4(SERVER, &outside.address.to_string());
            let packet = if flow % 2 == 0 {
                packet.tcp(80, outside.port, flags, &data)
            } else {
                packet.udp(53, outside.port, &data)
            };
            (packet.octets(), 20)
        };
        if flow.is_multiple_of(2) {
            let sequence = (self.number as u32).wrapping_mul(10);
            packet[transport + 4..transport + 8].copy_from_slice(&sequence.to_be_bytes());
        }
        Some(packet)
    }

    /// The sessions but those that wait with a stored SYN.
    fn rows(&mut self) -> Vec<SessionRow> {
        let mut rows = Vec::new();
        let now = self.now;
        self.engine.nat64()[0].sessions(0, u32::MAX, &Selection::default(), now, &mut rows);
        rows.retain(|row| row.state != "outside init, syn stored");
        rows
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Comes { flow, outbound, count } => {
                for _ in 0..count {
                    self.comes((flow, outbound), ACK, true);
                }
            }
            // UDP has none.
            Step::Flags { flow, outbound, flags } => self.comes((flow & 4, outbound), flags, false),
            Step::Decides(count) => self.decides(count.into()),
            Step::Sends => self.sends(),
            Step::Loses => drop(self.queue.pop_front()),
            Step::Waits(milliseconds) => self.passes(Duration::from_millis(milliseconds.into())),
            Step::Sleeps(seconds) => self.passes(Duration::from_secs(seconds.into())),
            Step::Ends { number, binding } => self.ends(number, binding),
            Step::Crowd => self.crowd(),
            Step::TakesOver => self.takes_over(),
        }
        self.check();
    }

    fn comes(&mut self, lane: Lane, flags: u8, plain: bool) {
        let Some(packet) = self.packet(lane, flags) else { return };
        if plain {
            self.lanes.insert(self.number, lane);
        }
        match self.path.meets(&packet, self.now) {
            Fate::Passed => self.queue.push_back((self.now, packet)),
            Fate::Forwarded => {
                self.forwarded += 1;
                self.answers += u64::from(flags == SYN_ACK);
                self.turned += u64::from(lane.0 == HAIRPIN);
                *self.seen.entry(lane).or_default() += 1;
                self.leaves(self.number);
            }
        }
    }

    fn crowd(&mut self) {
        for _ in 0..CROWD {
            let called = format!("64:ff9b::198.51.100.{}", self.next_called);
            self.next_called = (self.next_called + 1) % CROWDS;
            for _ in 0..PACKETS {
                // They belong to no lane.
                let packet = v6(BUSY, &called).udp(BUSY_PORT, 53, &u64::MAX.to_be_bytes()).octets();
                if self.path.meets(&packet, self.now) == Fate::Passed {
                    let mut out = Outbox::new(64);
                    self.engine.process(&mut [Frame::holding(&packet)], self.now, &mut out);
                }
            }
        }
    }

    /// A flow's packets come for a second, and one of them is always under way.
    fn restless(&mut self, lane: Lane) {
        for _ in 0..100 {
            self.comes(lane, ACK, true);
            self.decides(self.queue.len().saturating_sub(1));
            self.sends();
            self.now = self.now + Duration::from_millis(10);
        }
    }

    fn decides(&mut self, count: usize) {
        let taken = self.queue.drain(..count.min(self.queue.len()));
        let mut frames: Vec<Frame> = taken.map(|(_, packet)| Frame::holding(&packet)).collect();
        let mut out = Outbox::new(64);
        self.engine.process(&mut frames, self.now, &mut out);
        for frame in frames.iter().filter(|frame| frame.verdict.leaves()) {
            self.decided.push(frame.bytes().to_vec());
        }
    }

    fn sends(&mut self) {
        for packet in core::mem::take(&mut self.decided) {
            let number = u64::from_be_bytes(*packet.last_chunk().unwrap());
            if let Some(lane) = self.lanes.get(&number) {
                *self.seen.entry(*lane).or_default() += 1;
                self.leaves(number);
            }
        }
        if self.queue.is_empty() {
            self.engine.emptied(self.now);
        }
        self.engine.settle(self.now);
    }

    /// A packet leaves: none of its lane that came later has.
    fn leaves(&mut self, number: u64) {
        let Some(lane) = self.lanes.get(&number) else { return };
        let before = self.left.insert(*lane, number).unwrap_or(0);
        let is_forced = self.engine.counters().flows_moved_busy > 0;
        assert!(before < number || is_forced, "{before} has overtaken {number} of {lane:?}");
    }

    fn passes(&mut self, time: Duration) {
        let oldest = self.queue.front().map(|(came, _)| *came);
        if oldest.is_some_and(|came| (self.now + time).since(came) >= LONGEST_IN_QUEUE) {
            self.decides(usize::MAX);
        }
        let sends = time >= LONGEST_IN_QUEUE || self.decided.is_empty();
        if sends {
            self.sends();
        }
        self.now = self.now + time;
        // Each ends some sessions, and a crowd may end at the same time.
        for _ in 0..CROWDS {
            self.engine.tick(self.now, &mut Outbox::new(64));
        }
        if sends {
            self.sends();
        }
    }

    fn ends(&mut self, number: u8, binding: bool) {
        let rows = self.rows();
        if rows.is_empty() {
            return;
        }
        let row = rows[usize::from(number) % rows.len()];
        let (nat64, counters) = self.engine.nat64_and_counters();
        if binding {
            // A static one is left as it is.
            nat64[0].end_binding(row.protocol, row.outside, usize::MAX, counters);
        } else {
            assert!(nat64[0].end_session(row.protocol, row.inside.unwrap().into(), row.remote, counters));
        }
    }

    /// The old process stops between batches; what is in the queue is the new one's.
    fn takes_over(&mut self) {
        self.sends();
        self.engine.take_back_under_way();
        let mut before = self.rows();
        let mut saved: Vec<SavedSession> = Vec::new();
        self.engine.nat64()[0].export(0, u32::MAX, self.now, &mut saved);
        let unquietly = self.engine.counters().flows_moved_busy;
        let ended = self.engine.counters().sessions_ended;
        let mut engine = Engine::new(&config()).unwrap();
        engine.set_fast_path(Box::new(self.path.clone()), PACKETS);
        // Those that are not active both ways have no owner.
        self.path.forget_moving();
        let entries = self.path.table().entries.clone();
        for (handle, entry) in entries {
            let handle = sixway_dataplane::offload::FlowHandle(handle);
            match engine.adopt(&entry.flow, handle, &entry.usage, self.now) {
                Ok(()) => {}
                // Its packets went by the engine for so long that the entry does not know that it lives.
                Err(NotAdopted::Expired) => {
                    self.path.clone().remove(handle);
                    let flow = entry.flow;
                    before.retain(|row| (row.outside, row.remote) != (flow.outside, flow.remote));
                }
                Err(reason) => panic!("{reason}"),
            }
        }
        let (nat64, counters) = engine.nat64_and_counters();
        for session in &saved {
            nat64[0].restore(session, self.now, counters).unwrap();
        }
        counters.flows_moved_busy = unquietly;
        // What a session had before its entry is unknown.
        counters.sessions_ended += ended + 1;
        self.engine = engine;
        let mut after = self.rows();
        let what = |row: &SessionRow| (row.protocol, row.inside, row.outside, row.remote, row.state);
        before.sort_by_key(|row| (row.inside, row.remote));
        after.sort_by_key(|row| (row.inside, row.remote));
        assert_eq!(before.iter().map(what).collect::<Vec<_>>(), after.iter().map(what).collect::<Vec<_>>());
    }

    fn check(&mut self) {
        let rows = self.rows();
        let offloaded: BTreeSet<_> = rows.iter().filter(|row| row.offloaded).map(of_row).collect();
        let entries = self.path.table().entries.clone();
        let (half_open, whole): (Vec<_>, Vec<_>) =
            entries.values().partition(|entry| entry.words == [Word::HalfOpen; 2]);
        let of_entry = |entry: &&Entry| {
            let flow = entry.flow;
            (flow.protocol, flow.inside, flow.outside, flow.remote)
        };
        assert_eq!(offloaded, whole.iter().map(of_entry).collect(), "sessions with entries, and entries");
        assert_eq!(offloaded.len(), whole.len());
        for entry in &half_open {
            let row = rows.iter().find(|row| of_row(row) == of_entry(entry)).expect("it has a session");
            assert!(["inside init", "established"].contains(&row.state), "{}", row.state);
        }
        assert!(half_open.len() <= HALF_OPEN);
        let endpoints: BTreeSet<_> = rows.iter().map(|row| (row.protocol, row.outside)).collect();
        let insides: BTreeSet<_> = rows.iter().map(|row| (row.protocol, row.inside)).collect();
        assert_eq!(endpoints.len(), insides.len(), "a port belongs to one host");
        assert!(
            rows.iter()
                .filter(|row| row.offloaded)
                .all(|row| row.state == "open" || row.state == "established")
        );
        assert!(self.engine.counters().frames_are_conserved());
        if self.engine.counters().sessions_ended == 0 && self.decided.is_empty() {
            self.check_counts(&rows);
        }
    }

    /// Rows count every packet, on either path; SYNs and the like are not numbered here.
    fn check_counts(&self, rows: &[SessionRow]) {
        let is_counted = |row: &&SessionRow| ![53, BUSY_PORT].contains(&row.inside.unwrap().0.port);
        for row in rows.iter().filter(|row| row.state == "open").filter(is_counted) {
            let flow = (row.inside.unwrap().0.port - 1_000) as u8;
            let seen = |outbound| self.seen.get(&(flow, outbound)).copied().unwrap_or(0);
            assert_eq!((row.packets_out, row.packets_in), (seen(true), seen(false)), "flow {flow}");
            let most = row.packets_out.max(row.packets_in);
            assert!(!row.offloaded || most >= PACKETS.into(), "given away after {most} packets");
        }
    }
}

/// What a session and its entry have in common.
fn of_row(row: &SessionRow) -> (NatProtocol, Inside<Endpoint6>, Outside<Endpoint4>, Endpoint4) {
    (row.protocol, row.inside.unwrap(), row.outside, row.remote)
}

fn run(most: usize, steps: &[Step]) -> World {
    let mut world = World::new(most);
    // The TCP connections are opened.
    for flow in [0, 2, 4] {
        world.comes((flow, true), 2, false);
        world.decides(1);
        world.sends();
        world.comes((flow, false), 18, false);
        world.decides(1);
        world.sends();
    }
    for step in steps {
        world.step(*step);
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(budget(600)))]

    #[test]
    fn no_packet_overtakes_another_and_every_entry_has_its_session(
        most in prop_oneof![2 => Just(1_000usize), 1 => Just(64), 1 => Just(2)],
        steps in prop::collection::vec(step(), 1..200),
    ) {
        run(most, &steps);
    }
}

/// The property above is about something: flows do get there, packets are forwarded, and some are forced.
#[test]
fn the_steps_reach_what_they_should() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut forwarded, mut turned, mut answers) = (0, 0, 0);
    let (mut unquietly, mut taken_back, mut refused, mut adopted) = (0, 0, 0, 0);
    for _ in 0..200 {
        let steps = prop::collection::vec(step(), 200).new_tree(&mut runner).unwrap().current();
        let mut world = run(2, &steps);
        world.restless((1, true));
        let counters = world.engine.counters();
        forwarded += world.forwarded;
        turned += world.turned;
        answers += world.answers;
        unquietly += counters.flows_moved_busy;
        taken_back += counters.flows_withdrawn;
        refused += counters.flows_offload_refused;
        adopted += counters.flows_adopted;
    }
    let reached = [forwarded, turned, answers, unquietly, taken_back, refused, adopted];
    let least = [2_000, 50, 200, 1, 20, 20, 20];
    assert!(reached.iter().zip(least).all(|(reached, least)| *reached >= least), "{reached:?}");
}
