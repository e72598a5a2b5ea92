//! Stateful NAT64: packets of established flows in random order, new sessions in an empty and in an almost exhausted pool, and what a session costs in
//! memory. Each session has a binding of its own, the dearest case.

use super::engine_bench::{EngineBench, RUN};
use super::established::{
    Established, PER_HOST, PORTS, Translation, emptied, fault, port, resident_octets, server,
};
use super::packets::{Flow, SIZE, read6, write6};
use super::yardstick::{Round, Unit, Yardstick, figures as figures_of};
use crate::bench::{Figure, Options, Section, Target};
use crate::failure::Result;
use crate::terminal::thousands;
use sixway_dataplane::engine::{Engine, EngineConfig};
use sixway_dataplane::mechanism::nat64::Nat64Config;
use sixway_dataplane::nat::{PoolConfig, StateLimits, SubscriberPolicy};
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use std::net::Ipv6Addr;

const HOSTS: u128 = 0x2001_0db8_0001 << 80;
const PREFIX: u128 = 0x0064_ff9b << 96;
/// New sessions that are timed together.
const NEW: u32 = 5_120;
/// Room for a little more than a million sessions.
const ROOM: u32 = 1 << 20;
/// Numbers of sessions, and what a packet may cost there.
const ESTABLISHED: [(u32, (f64, Unit)); 3] = [
    (1_000_000, (0.7, Unit::MemoryRead)),
    (100_000, (0.4, Unit::MemoryRead)),
    (1_000, (22.0, Unit::Straight)),
];
/// What a new session may cost.
const NEW_SESSION: (f64, Unit) = (2.5, Unit::MemoryRead);

/// NAT64.
pub struct SixToFour;

fn outbound(number: u32) -> Flow<Ipv6Addr> {
    Flow {
        source: Ipv6Addr::from_bits(HOSTS | u128::from(number / PER_HOST)),
        source_port: port(number),
        destination: Ipv6Addr::from_bits(PREFIX | u128::from(server(number).to_bits())),
        destination_port: 443,
    }
}

/// A flow's packet of a host that has no other flow.
pub fn write_alone(number: u32, octets: &mut [u8; SIZE]) -> usize {
    write6(&Flow { source: Ipv6Addr::from_bits(HOSTS | u128::from(number)), ..outbound(number) }, octets)
}

impl Translation for SixToFour {
    const NAME: &'static str = "NAT64";

    fn engine(length: u8, room: u32) -> Result<Engine> {
        let prefix = "64:ff9b::/96".parse().map_err(|_| fault("no prefix"))?;
        let pool = format!("198.18.0.0/{length}").parse().map_err(|_| fault("no pool"))?;
        let nat64 = Nat64Config {
            limits: StateLimits { sessions: room, bindings: room, ..StateLimits::default() },
            subscribers: SubscriberPolicy::new(128),
            ..Nat64Config::new(
                Rfc6052::new(prefix, true).map_err(|error| fault(&format!("{error:?}")))?,
                PoolConfig { addresses: vec![pool], ports: vec![1_024..=65_535] },
            )
        };
        let config = EngineConfig { nat64: vec![nat64], seed: [1, 2], ..EngineConfig::default() };
        Engine::new(&config).map_err(|error| fault(&format!("{error:?}")))
    }

    fn write_out(number: u32, octets: &mut [u8; SIZE]) -> usize {
        write6(&outbound(number), octets)
    }

    fn is_answer(number: u32, octets: &[u8]) -> bool {
        read6(octets) == Some(outbound(number).answers())
    }

    fn reserved(engine: &mut Engine) -> usize {
        engine.nat64().iter().map(|nat64| nat64.memory()).sum()
    }
}

/// Measures all of it. The largest table comes first, so that its memory is fresh from the kernel and counted in full.
pub fn measure(options: &Options, yardstick: &mut Yardstick) -> Result<Section> {
    let mut figures = Vec::new();
    let mut memory = Vec::new();
    for (sessions, bound) in ESTABLISHED {
        let before = resident_octets()?;
        let mut flows = Established::make(sessions, 24, ROOM)?;
        if sessions == 1_000_000 {
            memory = memory_of(&mut flows, resident_octets()?.saturating_sub(before));
        }
        figures.splice(0..0, established(&mut flows, options, yardstick, bound)?);
    }
    figures.extend(new_sessions(options, yardstick)?);
    figures.extend(memory);
    Ok(Section {
        title: "NAT64 in memory",
        how: "UDP with 16 octets of payload (IPv6 packets of 64 octets, IPv4 packets of 44), sessions in a random order that is not that of their \
              creation, each with a binding of its own; parse to finished packet, expiry included. Checksums of every session verified both ways."
            .to_owned(),
        figures,
        skipped: Vec::new(),
    })
}

fn established(
    flows: &mut Established<SixToFour>,
    options: &Options,
    yardstick: &mut Yardstick,
    bound: (f64, Unit),
) -> Result<Vec<Figure>> {
    let order = flows.order();
    let mut figures = Vec::new();
    for batch in [RUN, 1] {
        let of = format!("{} sessions, batches of {batch}", thousands(u64::from(flows.sessions)));
        options.say(&format!("memory: NAT64, {of}"));
        let target = (batch == RUN || flows.sessions <= 1_000).then_some(bound);
        let (mut out, mut home) = (Vec::new(), Vec::new());
        for _ in 0..options.repeats() {
            out.push(flows.out(&order, batch, yardstick)?);
            home.push(flows.home(&order, batch, yardstick)?);
        }
        figures.extend(figures_of(&format!("v6→v4, {of}"), "ns/packet", &out, target));
        figures.extend(figures_of(&format!("v4→v6, {of}"), "ns/packet", &home, target));
    }
    Ok(figures)
}

/// New sessions in a pool of sixteen addresses: those after a start, whose memory the kernel has yet to give; those when 99 % of the ports
/// are taken; and, when all of these have expired, those in a pool that is empty again.
fn new_sessions(options: &Options, yardstick: &mut Yardstick) -> Result<Vec<Figure>> {
    let (mut fresh, mut full, mut empty) = (Vec::new(), Vec::new(), Vec::new());
    for number in 1..=options.repeats() {
        options.say(&format!("memory: NAT64, new sessions, round {number}"));
        let mut machine = EngineBench::new(SixToFour::engine(28, ROOM)?);
        let numbers: Vec<u32> = (0..16 * PORTS).collect();
        let (before, rest) = numbers.split_at(NEW as usize);
        let (between, after) = rest.split_at((16 * PORTS / 100 * 99 - NEW) as usize);
        fresh.push(machine.measure(before, RUN, SixToFour::write_out, yardstick)?);
        machine.pass(between, SixToFour::write_out, |_, _| Ok(()))?;
        full.push(machine.measure(&after[..NEW as usize], RUN, SixToFour::write_out, yardstick)?);
        emptied(&mut machine)?;
        empty.push(machine.measure(before, RUN, SixToFour::write_out, yardstick)?);
    }
    let dearer = |(full, empty): (&Round, &Round)| full.nanoseconds() / empty.nanoseconds();
    let dearer = full.iter().zip(&empty).map(dearer).collect();
    let mut figures = figures_of("new session, empty pool", "ns", &empty, Some(NEW_SESSION));
    figures.extend(figures_of("new session, pool 99 % full", "ns", &full, Some(NEW_SESSION)));
    let dearer = Figure::new("new session, 99 % full vs empty", "×", dearer);
    figures.push(dearer.to_reach(Target::AtMost(1.0)));
    figures.extend(figures_of("new session, the first after a start", "ns", &fresh, None));
    Ok(figures)
}

fn memory_of(flows: &mut Established<SixToFour>, resident: u64) -> Vec<Figure> {
    let sessions = f64::from(flows.sessions);
    let each = |octets: u64| vec![octets as f64 / sessions];
    let resident = each(resident);
    let reserved = each(SixToFour::reserved(flows.machine.engine()) as u64);
    vec![
        Figure::new("memory of a session at 1,000,000, resident", "octets", resident)
            .to_reach(Target::AtMost(300.0)),
        Figure::new("memory of a session at 1,000,000, reserved", "octets", reserved)
            .to_reach(Target::AtMost(300.0)),
    ]
}
