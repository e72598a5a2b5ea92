//! NAT44 next to NAT64, in turn, in slices of some thousand packets: packets of established flows, new sessions, unsolicited packets, and what a session
//! costs in memory.

use super::engine_bench::{EngineBench, RUN};
use super::established::{
    Established, PER_HOST, SLICE, Translation, fault, port, resident_octets, server, used,
};
use super::nat64::{self, SixToFour};
use super::packets::{Flow, SIZE, read4, write4};
use super::yardstick::{Round, Yardstick};
use crate::bench::{Figure, Options, Section, Target};
use crate::failure::{Failure, Result};
use crate::terminal::{median, thousands};
use rtrb::{Consumer, Producer, RingBuffer};
use sixway_dataplane::engine::{Engine, EngineConfig};
use sixway_dataplane::mechanism::nat44::Nat44Config;
use sixway_dataplane::nat::{BlockPolicy, EventSink, NatEvent, PoolConfig, StateLimits};
use sixway_dataplane::{DropReason, Instant};
use sixway_wire::Endpoint4;
use std::net::Ipv4Addr;

const HOSTS: u32 = u32::from_be_bytes([10, 0, 0, 0]);
/// Room for a little more than a million sessions.
const ROOM: u32 = 1 << 20;
const MILLION: u32 = 1_000_000;
/// Numbers of sessions, and what a packet may cost there, in packets of NAT64.
const ESTABLISHED: [(u32, f64); 3] = [(MILLION, 0.95), (100_000, 0.95), (1_000, 0.8)];
/// New sessions that are timed in turn with NAT64's, and all of a round.
const NEW_SLICE: u32 = 512;
const NEW: u32 = 5_120;
/// What a new session may cost, in new sessions of NAT64.
const NEW_SESSION: f64 = 1.0;
const NEW_SESSION_LOGGED: f64 = 1.3;
const NEW_SESSION_IN_BLOCK: f64 = 1.15;
/// The maximum cost of a packet to an unused port, in packets of established flows.
const SCANNED: f64 = 0.9;
/// Octets that a session may take.
const OCTETS: f64 = 200.0;
/// Events of a worker's ring, as in the gateway.
const RING: usize = 65_536;

/// NAT44.
pub struct FourToFour;

fn outbound(number: u32) -> Flow<Ipv4Addr> {
    Flow {
        source: Ipv4Addr::from_bits(HOSTS | (number / PER_HOST)),
        source_port: port(number),
        destination: server(number),
        destination_port: 443,
    }
}

impl Translation for FourToFour {
    const NAME: &'static str = "NAT44";

    fn engine(length: u8, room: u32) -> Result<Engine> {
        engine_of(configured(length, room)?)
    }

    fn write_out(number: u32, octets: &mut [u8; SIZE]) -> usize {
        write4(&outbound(number), octets)
    }

    fn is_answer(number: u32, octets: &[u8]) -> bool {
        read4(octets) == Some(outbound(number).answers())
    }

    fn reserved(engine: &mut Engine) -> usize {
        engine.nat44().iter().map(|nat44| nat44.memory()).sum()
    }
}

fn configured(length: u8, room: u32) -> Result<Nat44Config> {
    let inside = "10.0.0.0/8".parse().map_err(|_| fault("no prefix"))?;
    let pool = format!("198.18.0.0/{length}").parse().map_err(|_| fault("no pool"))?;
    let pool = PoolConfig { addresses: vec![pool], ports: vec![1_024..=65_535] };
    Ok(Nat44Config {
        limits: StateLimits { sessions: room, bindings: room, ..StateLimits::default() },
        ..Nat44Config::new(vec![inside], pool)
    })
}

fn engine_of(nat44: Nat44Config) -> Result<Engine> {
    let config = EngineConfig { nat44: vec![nat44], seed: [1, 2], ..EngineConfig::default() };
    Engine::new(&config).map_err(|error| fault(&format!("{error:?}")))
}

/// NAT44 whose subscribers have port blocks.
struct InBlocks;

impl Translation for InBlocks {
    const NAME: &'static str = "NAT44 with blocks";

    /// The pool has 256 addresses: a block for each host.
    fn engine(_: u8, room: u32) -> Result<Engine> {
        let mut nat44 = configured(24, room)?;
        nat44.subscribers.blocks = Some(BlockPolicy { size: 64, most: 16, idle_seconds: 1 });
        engine_of(nat44)
    }

    fn write_out(number: u32, octets: &mut [u8; SIZE]) -> usize {
        FourToFour::write_out(number, octets)
    }

    fn is_answer(number: u32, octets: &[u8]) -> bool {
        FourToFour::is_answer(number, octets)
    }

    fn reserved(engine: &mut Engine) -> usize {
        FourToFour::reserved(engine)
    }
}

/// Writes a flow's packet, as its inside host sends it.
type Write = fn(u32, &mut [u8; SIZE]) -> usize;

/// Hosts with sixteen flows each, in turn.
const OF_16: [Write; 2] = [FourToFour::write_out, SixToFour::write_out];
/// Hosts with one flow each.
const ALONE: [Write; 2] = [write_alone, nat64::write_alone];

/// A flow's packet of a host that has no other flow.
fn write_alone(number: u32, octets: &mut [u8; SIZE]) -> usize {
    write4(&Flow { source: Ipv4Addr::from_bits(HOSTS | number), ..outbound(number) }, octets)
}

/// A million sessions, and what they take in memory.
pub struct Large {
    flows: Established<FourToFour>,
    memory: Vec<Figure>,
}

impl Large {
    /// Makes them, before anything else takes memory and gives it back.
    pub fn make() -> Result<Self> {
        let before = resident_octets()?;
        let mut flows = Established::make(MILLION, 24, ROOM)?;
        let memory = memory_of(&mut flows, resident_octets()?.saturating_sub(before));
        Ok(Self { flows, memory })
    }
}

/// Measures all of it.
pub fn measure(options: &Options, yardstick: &mut Yardstick, large: Large) -> Result<Section> {
    let mut figures = Vec::new();
    let mut scanned = Vec::new();
    let Large { flows, memory } = large;
    let mut large = Some(flows);
    for (sessions, bound) in ESTABLISHED {
        let made = large.take().filter(|flows| flows.sessions == sessions);
        let mut flows = match made {
            Some(flows) => flows,
            None => Established::make(sessions, 24, ROOM)?,
        };
        let mut peer = Established::<SixToFour>::make(sessions, 24, ROOM)?;
        figures.splice(0..0, established(&mut flows, &mut peer, options, yardstick, bound)?);
        scanned.splice(0..0, scanned_ports(&mut flows, options, yardstick)?);
    }
    figures.extend(scanned);
    figures.extend(new_sessions(options, yardstick)?);
    figures.extend(memory);
    Ok(Section {
        title: "NAT44 in memory",
        how: "As NAT64, with which it is measured in turn, in slices of 4,096 packets; the hosts have 16 flows each. A ratio is the median of the \
              slices' own. Scanned: packets from outside to ports that nobody has, which are dropped, compared with packets of established \
              flows from outside. Logged: each new binding is put into a ring of the event log's size. In a block: subscribers have blocks of 64 ports, \
              and each opens 16 sessions, or only the first, which gets the block."
            .to_owned(),
        figures,
        skipped: Vec::new(),
    })
}

/// The slices of a round: what both took, and the median of their ratios.
#[derive(Default)]
pub struct Compared {
    this: Vec<f64>,
    other: Vec<f64>,
    ratios: Vec<f64>,
}

impl Compared {
    /// Adds a slice.
    pub fn push(&mut self, this: &Round, other: &Round) {
        self.this.push(this.nanoseconds());
        self.other.push(other.nanoseconds());
        self.ratios.push(this.nanoseconds() / other.nanoseconds());
    }
}

/// Rounds of a comparison.
#[derive(Default)]
pub struct Rounds {
    this: Vec<f64>,
    other: Vec<f64>,
    ratios: Vec<f64>,
}

impl Rounds {
    /// Adds the slices of a round.
    pub fn push(&mut self, slices: &Compared) {
        self.this.push(median(&slices.this));
        self.other.push(median(&slices.other));
        self.ratios.push(median(&slices.ratios));
    }

    /// The time of both, and the ratio, at most `most`.
    pub fn figures(self, name: &str, other: &str, unit: &'static str, most: f64) -> Vec<Figure> {
        vec![
            Figure::new(name, unit, self.this),
            Figure::new(format!("{name}: {other}"), unit, self.other),
            Figure::new(format!("{name}: vs {other}"), "×", self.ratios).to_reach(Target::AtMost(most)),
        ]
    }
}

fn established(
    flows: &mut Established<FourToFour>,
    peer: &mut Established<SixToFour>,
    options: &Options,
    yardstick: &mut Yardstick,
    bound: f64,
) -> Result<Vec<Figure>> {
    let order = flows.order();
    let mut figures = Vec::new();
    for batch in [RUN, 1] {
        let of = format!("{} sessions, batches of {batch}", thousands(u64::from(flows.sessions)));
        options.say(&format!("memory: NAT44, {of}"));
        let (mut out, mut home) = (Rounds::default(), Rounds::default());
        for _ in 0..options.repeats() {
            let (mut outward, mut inward) = (Compared::default(), Compared::default());
            for slice in order.chunks(SLICE) {
                outward.push(&flows.out(slice, batch, yardstick)?, &peer.out(slice, batch, yardstick)?);
                inward.push(&flows.home(slice, batch, yardstick)?, &peer.home(slice, batch, yardstick)?);
            }
            out.push(&outward);
            home.push(&inward);
        }
        let name = SixToFour::NAME;
        figures.extend(out.figures(&format!("out, {of}"), name, "ns/packet", bound));
        figures.extend(home.figures(&format!("in, {of}"), name, "ns/packet", bound));
    }
    Ok(figures)
}

/// Packets from the servers to unused ports, in turn with packets of established flows.
fn scanned_ports(
    flows: &mut Established<FourToFour>,
    options: &Options,
    yardstick: &mut Yardstick,
) -> Result<Vec<Figure>> {
    let order = flows.order();
    let mut rounds = Rounds::default();
    let write = |number: u32, octets: &mut _| {
        // The last address of the pool: hosts have the others.
        let destination = Ipv4Addr::new(198, 18, 0, 255);
        let scan = Flow {
            source: server(number),
            source_port: 443,
            destination,
            destination_port: (number % 1_000) as u16 + 1,
        };
        write4(&scan, octets)
    };
    for _ in 0..options.repeats() {
        let mut slices = Compared::default();
        for slice in order.chunks(SLICE) {
            let dropped = flows.machine.measure_dropped(slice, DropReason::NoBinding, write, yardstick)?;
            slices.push(&dropped, &flows.home(slice, RUN, yardstick)?);
        }
        rounds.push(&slices);
    }
    let name = format!("unsolicited, {} sessions", thousands(u64::from(flows.sessions)));
    Ok(rounds.figures(&name, "forwarded", "ns/packet", SCANNED))
}

/// New sessions in pools that are empty again, in turn with NAT64's: without a log, and with one.
fn new_sessions(options: &Options, yardstick: &mut Yardstick) -> Result<Vec<Figure>> {
    let (mut plain, mut logged) = (Rounds::default(), Rounds::default());
    let mut new_host = Rounds::default();
    let (mut in_block, mut with_block) = (Rounds::default(), Rounds::default());
    for number in 1..=options.repeats() {
        options.say(&format!("memory: NAT44, new sessions, round {number}"));
        let mut peer = used::<SixToFour>()?;
        let mut flows = used::<FourToFour>()?;
        plain.push(&opened((&mut flows, &mut peer), OF_16, (0, None), yardstick)?);
        let (producer, mut consumer) = RingBuffer::new(RING);
        if let Some(nat44) = flows.engine().stateful().next() {
            nat44.set_event_sink(Box::new(Sink(producer)));
        }
        logged.push(&opened((&mut flows, &mut peer), OF_16, (NEW, Some(&mut consumer)), yardstick)?);
        new_host.push(&opened((&mut flows, &mut peer), ALONE, (2 * NEW, None), yardstick)?);
        let mut flows = used::<InBlocks>()?;
        in_block.push(&opened((&mut flows, &mut peer), OF_16, (3 * NEW, None), yardstick)?);
        with_block.push(&opened((&mut flows, &mut peer), ALONE, (4 * NEW, None), yardstick)?);
    }
    let name = SixToFour::NAME;
    let mut figures = plain.figures("new session, empty pool", name, "ns", NEW_SESSION);
    figures.extend(logged.figures("new session, logged", name, "ns", NEW_SESSION_LOGGED));
    figures.extend(new_host.figures("new session of a new host", name, "ns", NEW_SESSION));
    figures.extend(in_block.figures("new session in a block", name, "ns", NEW_SESSION_IN_BLOCK));
    figures.extend(with_block.figures(
        "new session of a new host, with a new block",
        name,
        "ns",
        NEW_SESSION_IN_BLOCK,
    ));
    Ok(figures)
}

/// The events of new bindings, for the event log.
struct Sink(Producer<(Instant, NatEvent)>);

impl EventSink for Sink {
    fn wants_sessions(&self) -> bool {
        false
    }

    fn record(&mut self, at: Instant, event: NatEvent) {
        // A full ring loses the event, as in the gateway.
        let _ = self.0.push((at, event));
    }
}

/// Opens sessions from this number on, with both in turn. If there is a log it must have an event of each.
fn opened(
    (flows, peer): (&mut EngineBench, &mut EngineBench),
    [write, write_peers]: [Write; 2],
    (first, mut log): (u32, Option<&mut Consumer<(Instant, NatEvent)>>),
    yardstick: &mut Yardstick,
) -> Result<Compared> {
    let mut slices = Compared::default();
    for from in (first..first + NEW).step_by(NEW_SLICE as usize) {
        let numbers: Vec<u32> = (from..from + NEW_SLICE).collect();
        let this = flows.measure(&numbers, RUN, write, yardstick)?;
        let other = peer.measure(&numbers, RUN, write_peers, yardstick)?;
        slices.push(&this, &other);
        if let Some(log) = &mut log {
            let events = std::iter::from_fn(|| log.pop().ok()).count();
            if events != numbers.len() {
                return Err(Failure::Unexpected(format!("{events} events of {} bindings", numbers.len())));
            }
        }
    }
    Ok(slices)
}

fn memory_of(flows: &mut Established<FourToFour>, resident: u64) -> Vec<Figure> {
    let sessions = f64::from(flows.sessions);
    let reserved = FourToFour::reserved(flows.machine.engine());
    // The benchmark's own list of outside endpoints is not the engine's.
    let resident = resident as f64 - sessions * size_of::<Endpoint4>() as f64;
    let of = |name: &str, octets: f64| {
        Figure::new(format!("memory of a session at 1,000,000, {name}"), "octets", vec![octets / sessions])
            .to_reach(Target::AtMost(OCTETS))
    };
    vec![of("resident", resident), of("reserved", reserved as f64)]
}
