//! DS-Lite's AFTR next to NAT44, in turn, in slices of some thousand packets: packets of established flows behind many softwires, and what a
//! softwire costs in memory.

use super::engine_bench::{EngineBench, RUN, shuffled, wrong};
use super::established::{Established, SLICE, fault, inbound, port, server};
use super::nat44::{Compared, FourToFour, Rounds};
use super::packets::{Flow, IN_IPV6, SIZE, read4, read4_in6, write4, write4_in6};
use super::yardstick::Yardstick;
use crate::bench::{Figure, Options, Section, Target};
use crate::failure::Result;
use crate::terminal::thousands;
use sixway_dataplane::engine::{Engine, EngineConfig};
use sixway_dataplane::mechanism::ds_lite::DsLiteConfig;
use sixway_dataplane::nat::{PoolConfig, StateLimits};
use sixway_wire::Endpoint4;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The host behind each softwire.
const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 5);
const AFTR: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 1);
const CLIENTS: u128 = 0x2001_0db8 << 96;
/// Sessions of a softwire.
const PER_SOFTWIRE: u32 = 10;
const ROOM: u32 = 1 << 20;
/// Numbers of sessions: the first has 100,000 softwires.
const ESTABLISHED: [u32; 3] = [1_000_000, 100_000, 1_000];
/// What a packet may cost, in packets of NAT44.
const PACKET: f64 = 1.25;
/// Octets that a softwire may take in addition to its sessions.
const OCTETS: f64 = 64.0;
const CREATION: u64 = 0;
const USE: u64 = 1;

/// The B4 of a flow: each has a /56 of its own.
fn b4(number: u32) -> Ipv6Addr {
    Ipv6Addr::from_bits(CLIENTS | u128::from(number / PER_SOFTWIRE) << 72 | 1)
}

fn outbound(number: u32) -> Flow<Ipv4Addr> {
    Flow { source: HOST, source_port: port(number), destination: server(number), destination_port: 443 }
}

fn write_out(number: u32, octets: &mut [u8; IN_IPV6]) -> usize {
    write4_in6(&outbound(number), b4(number), AFTR, octets)
}

/// Flows of hosts behind softwires.
struct Softwires {
    machine: EngineBench,
    outside: Vec<Endpoint4>,
}

impl Softwires {
    /// Makes the sessions, and checks that each is translated rightly both ways.
    fn make(sessions: u32) -> Result<Self> {
        let mut machine = EngineBench::new(engine()?);
        let order = shuffled(sessions, CREATION);
        let mut outside = vec![Endpoint4::new(Ipv4Addr::UNSPECIFIED, 0); sessions as usize];
        machine.pass(&order, write_out, |number, octets| {
            let flow = read4(octets).ok_or_else(|| wrong(number, octets))?;
            outside[number as usize] = Endpoint4::new(flow.source, flow.source_port);
            let is_right = flow.destination == server(number) && flow.destination_port == 443;
            if is_right { Ok(()) } else { Err(wrong(number, octets)) }
        })?;
        let write =
            |number: u32, octets: &mut [u8; SIZE]| write4(&inbound(number, outside[number as usize]), octets);
        machine.pass(&order, write, |number, octets| {
            let is_answer = read4_in6(octets, AFTR, b4(number)) == Some(outbound(number).answers());
            if is_answer { Ok(()) } else { Err(wrong(number, octets)) }
        })?;
        Ok(Self { machine, outside })
    }
}

fn engine() -> Result<Engine> {
    let pool = "198.18.0.0/24".parse().map_err(|_| fault("no pool"))?;
    let clients = "2001:db8::/32".parse().map_err(|_| fault("no clients"))?;
    let pool = PoolConfig { addresses: vec![pool], ports: vec![1_024..=65_535] };
    let aftr = DsLiteConfig {
        limits: StateLimits { sessions: ROOM, bindings: ROOM, ..StateLimits::default() },
        ..DsLiteConfig::new(vec![AFTR], vec![clients], pool)
    };
    let config = EngineConfig { others: vec![aftr.into()], seed: [1, 2], ..EngineConfig::default() };
    Engine::new(&config).map_err(|error| fault(&format!("{error:?}")))
}

/// Measures all of it.
pub fn measure(options: &Options, yardstick: &mut Yardstick) -> Result<Section> {
    let mut figures = Vec::new();
    for sessions in ESTABLISHED {
        let mut flows = Softwires::make(sessions)?;
        if sessions == ESTABLISHED[0] {
            figures.extend(memory_of(&mut flows));
        }
        let mut peer = Established::<FourToFour>::make(sessions, 24, ROOM)?;
        figures.extend(established(&mut flows, &mut peer, options, yardstick)?);
    }
    Ok(Section {
        title: "DS-Lite's AFTR in memory",
        how: "Packets of 44 octets, in tunnel packets of 84, in turn with NAT44's in slices of 4,096 packets. Each softwire has 10 flows of one host, \
              which has the same address behind all of them. A ratio is the median of the slices' own."
            .to_owned(),
        figures,
        skipped: Vec::new(),
    })
}

fn memory_of(flows: &mut Softwires) -> Vec<Figure> {
    let softwires = flows.machine.engine().ds_lite().first().map(|aftr| aftr.softwires());
    let (count, octets) = softwires.map_or((0, 0), |all| (all.len(), all.memory_used()));
    let each = octets as f64 / f64::from(count.max(1));
    vec![
        Figure::new("softwires", "", vec![f64::from(count)]),
        Figure::new("a softwire in addition to its sessions", "octets", vec![each])
            .to_reach(Target::AtMost(OCTETS)),
    ]
}

fn established(
    flows: &mut Softwires,
    peer: &mut Established<FourToFour>,
    options: &Options,
    yardstick: &mut Yardstick,
) -> Result<Vec<Figure>> {
    let sessions = peer.sessions;
    let order = shuffled(sessions, USE).repeat((100_000 / sessions as usize).max(1));
    let mut figures = Vec::new();
    for batch in [RUN, 1] {
        let of = format!("{} sessions, batches of {batch}", thousands(u64::from(sessions)));
        options.say(&format!("memory: AFTR, {of}"));
        let (mut out, mut home) = (Rounds::default(), Rounds::default());
        for _ in 0..options.repeats() {
            let (mut outward, mut inward) = (Compared::default(), Compared::default());
            for slice in order.chunks(SLICE) {
                let Softwires { machine, outside } = flows;
                let round = machine.measure(slice, batch, write_out, yardstick)?;
                outward.push(&round, &peer.out(slice, batch, yardstick)?);
                let write = |number: u32, octets: &mut [u8; SIZE]| {
                    write4(&inbound(number, outside[number as usize]), octets)
                };
                let round = machine.measure(slice, batch, write, yardstick)?;
                inward.push(&round, &peer.home(slice, batch, yardstick)?);
            }
            out.push(&outward);
            home.push(&inward);
        }
        figures.extend(out.figures(&format!("out, {of}"), "NAT44", "ns/packet", PACKET));
        figures.extend(home.figures(&format!("in, {of}"), "NAT44", "ns/packet", PACKET));
    }
    Ok(figures)
}
