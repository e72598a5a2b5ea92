//! Stateful NAT64: packets of established flows in random order, new sessions in an empty and in an almost exhausted pool, and what a session costs in
//! memory. Each session has a binding of its own, the dearest case.

use super::engine_bench::{EngineBench, RUN, shuffled, wrong};
use super::packets::{Flow, read4, read6, write4, write6};
use super::yardstick::{Round, Unit, Yardstick, figures as figures_of};
use crate::bench::{Figure, Options, Section, Target};
use crate::failure::{Asking as _, Failure, Result};
use crate::report::thousands;
use sixway_dataplane::engine::{Engine, EngineConfig};
use sixway_dataplane::mechanism::nat64::Nat64Config;
use sixway_dataplane::nat::{PoolConfig, QUARANTINE, UDP_DEFAULT};
use sixway_dataplane::nat::{StateLimits, SubscriberPolicy};
use sixway_dataplane::stateful::Stateful as _;
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use sixway_wire::Endpoint4;
use std::net::{Ipv4Addr, Ipv6Addr};

const HOSTS: u128 = 0x2001_0db8_0001 << 80;
const PREFIX: u128 = 0x0064_ff9b << 96;
/// Flows of one inside host.
const PER_HOST: u32 = 16;
/// Ports of an outside address: 1024 to 65535.
const PORTS: u32 = 64_512;
/// New sessions that are timed together.
const NEW: u32 = 5_120;
/// The orders in which sessions are created, and in which their packets come.
const CREATION: u64 = 0;
const USE: u64 = 1;
/// Numbers of sessions, and what a packet may cost there.
const ESTABLISHED: [(u32, (f64, Unit)); 3] =
    [(1_000_000, (0.7, Unit::Load)), (100_000, (0.4, Unit::Load)), (1_000, (22.0, Unit::Straight))];
/// What a new session may cost.
const NEW_SESSION: (f64, Unit) = (2.5, Unit::Load);

fn outbound(number: u32) -> Flow<Ipv6Addr> {
    Flow {
        source: Ipv6Addr::from_bits(HOSTS | u128::from(number / PER_HOST)),
        // Sixteen different ones, odd and even alike.
        source_port: 1_024 + (number.wrapping_mul(40_503) % 64_000) as u16,
        destination: Ipv6Addr::from_bits(PREFIX | u128::from(server(number).to_bits())),
        destination_port: 443,
    }
}

fn server(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from_be_bytes([203, 0, 113, 0]) | (number % 251))
}

fn inbound(number: u32, outside: Endpoint4) -> Flow<Ipv4Addr> {
    Flow {
        source: server(number),
        source_port: 443,
        destination: outside.address,
        destination_port: outside.port,
    }
}

/// A machine with a pool of `2^(32 - length)` addresses and room for a little more than a million sessions.
fn machine(length: u8) -> Result<EngineBench> {
    let fault = |what: &str| Failure::Unexpected(format!("the benchmark's own configuration: {what}"));
    let prefix = "64:ff9b::/96".parse().map_err(|_| fault("no prefix"))?;
    let pool = format!("198.18.0.0/{length}").parse().map_err(|_| fault("no pool"))?;
    let nat64 = Nat64Config {
        limits: StateLimits { sessions: 1 << 20, bindings: 1 << 20, ..StateLimits::default() },
        subscribers: SubscriberPolicy::new(128),
        ..Nat64Config::new(
            Rfc6052::new(prefix, true).map_err(|error| fault(&format!("{error:?}")))?,
            PoolConfig { addresses: vec![pool], ports: vec![1_024..=65_535] },
        )
    };
    let engine = Engine::new(&EngineConfig { nat64: vec![nat64], seed: [1, 2], ..EngineConfig::default() });
    Ok(EngineBench::new(engine.map_err(|error| fault(&format!("{error:?}")))?))
}

/// Measures all of it. The largest table comes first, so that its memory is fresh from the kernel and counted in full.
pub fn measure(options: &Options, yardstick: &mut Yardstick) -> Result<Section> {
    let mut figures = Vec::new();
    let mut memory = Vec::new();
    for (sessions, bound) in ESTABLISHED {
        let before = resident_octets()?;
        let mut flows = Established::make(sessions)?;
        if sessions == 1_000_000 {
            memory = memory_of(&mut flows, resident_octets()?.saturating_sub(before));
        }
        figures.splice(0..0, flows.measure(options, yardstick, bound)?);
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

struct Established {
    machine: EngineBench,
    sessions: u32,
    order: Vec<u32>,
    outside: Vec<Endpoint4>,
}

impl Established {
    /// Makes the sessions, and checks that each is translated rightly both ways.
    fn make(sessions: u32) -> Result<Self> {
        let machine = machine(24)?;
        let order = shuffled(sessions, CREATION);
        let outside = vec![Endpoint4::new(Ipv4Addr::UNSPECIFIED, 0); sessions as usize];
        let mut flows = Self { machine, sessions, order, outside };
        let Self { machine, order, outside, .. } = &mut flows;
        machine.pass(
            order,
            |number, octets| write6(&outbound(number), octets),
            |number, octets| {
                let flow = read4(octets).ok_or_else(|| wrong(number, octets))?;
                outside[number as usize] = Endpoint4::new(flow.source, flow.source_port);
                let expected = Flow {
                    source: flow.source,
                    source_port: flow.source_port,
                    destination: server(number),
                    destination_port: 443,
                };
                if flow == expected { Ok(()) } else { Err(wrong(number, octets)) }
            },
        )?;
        let write = |number: u32, octets: &mut _| write4(&inbound(number, outside[number as usize]), octets);
        machine.pass(order, write, |number, octets| {
            let flow = read6(octets).ok_or_else(|| wrong(number, octets))?;
            let asked = outbound(number);
            let is_answer = flow.destination == asked.source
                && flow.destination_port == asked.source_port
                && flow.source == asked.destination
                && flow.source_port == asked.destination_port;
            if is_answer { Ok(()) } else { Err(wrong(number, octets)) }
        })?;
        Ok(flows)
    }

    fn measure(
        &mut self,
        options: &Options,
        yardstick: &mut Yardstick,
        bound: (f64, Unit),
    ) -> Result<Vec<Figure>> {
        let Self { machine, sessions, outside, .. } = self;
        let order = shuffled(*sessions, USE).repeat((100_000 / *sessions as usize).max(1));
        let mut figures = Vec::new();
        for batch in [RUN, 1] {
            let of = format!("{} sessions, batches of {batch}", thousands(u64::from(*sessions)));
            options.say(&format!("memory: NAT64, {of}"));
            let target = (batch == RUN || *sessions <= 1_000).then_some(bound);
            let (mut out, mut home) = (Vec::new(), Vec::new());
            for _ in 0..options.repeats() {
                let write = |number: u32, octets: &mut _| write6(&outbound(number), octets);
                out.push(machine.measure(&order, batch, write, yardstick)?);
                let write =
                    |number: u32, octets: &mut _| write4(&inbound(number, outside[number as usize]), octets);
                home.push(machine.measure(&order, batch, write, yardstick)?);
            }
            figures.extend(figures_of(&format!("v6→v4, {of}"), "ns/packet", &out, target));
            figures.extend(figures_of(&format!("v4→v6, {of}"), "ns/packet", &home, target));
        }
        Ok(figures)
    }
}

/// New sessions in a pool of sixteen addresses: those after a start, whose memory the kernel has yet to give; those when 99 % of the ports
/// are taken; and, when all of these have expired, those in a pool that is empty again.
fn new_sessions(options: &Options, yardstick: &mut Yardstick) -> Result<Vec<Figure>> {
    let (mut fresh, mut full, mut empty) = (Vec::new(), Vec::new(), Vec::new());
    let write = |number: u32, octets: &mut _| write6(&outbound(number), octets);
    for number in 1..=options.repeats() {
        options.say(&format!("memory: NAT64, new sessions, round {number}"));
        let mut machine = machine(28)?;
        let numbers: Vec<u32> = (0..16 * PORTS).collect();
        let (before, rest) = numbers.split_at(NEW as usize);
        let (between, after) = rest.split_at((16 * PORTS / 100 * 99 - NEW) as usize);
        fresh.push(machine.measure(before, RUN, write, yardstick)?);
        machine.pass(between, write, |_, _| Ok(()))?;
        full.push(machine.measure(&after[..NEW as usize], RUN, write, yardstick)?);
        machine
            .rest(UDP_DEFAULT, |engine| engine.nat64().iter().all(|nat64| nat64.occupancy().bindings == 0))?;
        machine.rest(QUARANTINE, |engine| engine.nat64().iter().all(|nat64| nat64.quarantined() == 0))?;
        empty.push(machine.measure(before, RUN, write, yardstick)?);
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

fn memory_of(flows: &mut Established, resident: u64) -> Vec<Figure> {
    let each = |octets: u64| vec![octets as f64 / f64::from(flows.sessions)];
    let reserved = flows.machine.engine().nat64().iter().map(|nat64| nat64.memory() as u64).sum();
    vec![
        Figure::new("memory of a session at 1,000,000, resident", "octets", each(resident))
            .to_reach(Target::AtMost(300.0)),
        Figure::new("memory of a session at 1,000,000, reserved", "octets", each(reserved))
            .to_reach(Target::AtMost(300.0)),
    ]
}

/// Memory of this process that lies in RAM.
fn resident_octets() -> Result<u64> {
    let said =
        std::fs::read_to_string("/proc/self/status").asking(|| "reading /proc/self/status".to_owned())?;
    said.lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<u64>().ok())
        .map(|kib| kib * 1_024)
        .ok_or_else(|| Failure::Unexpected("no VmRSS in /proc/self/status".to_owned()))
}
