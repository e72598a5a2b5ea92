//! Stateless translation: hosts with explicit mappings, talking to the IPv4 world under a prefix.

use super::engine_bench::{EngineBench, RUN, shuffled, wrong};
use super::packets::{Flow, read4, read6, write4, write6};
use super::yardstick::{Unit, Yardstick, figures as figures_of};
use crate::bench::{Options, Section};
use crate::failure::{Failure, Result};
use sixway_dataplane::engine::{Engine, EngineConfig};
use sixway_dataplane::mechanism::siit::SiitConfig;
use sixway_dataplane::translate::address::eam::EamTable;
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

const FLOWS: u32 = 1_024;
const PASSES: usize = 64;
/// What a packet may cost, in straight NAT64.
const MOST: f64 = 14.5;
const HOSTS4: u32 = u32::from_be_bytes([10, 0, 0, 0]);
const HOSTS6: u128 = 0x2001_0db8_0001 << 80;
const PREFIX: u128 = 0x2001_0db8_0064 << 80;

fn flow6(number: u32) -> Flow<Ipv6Addr> {
    Flow {
        source: Ipv6Addr::from_bits(HOSTS6 | u128::from(number)),
        source_port: 1_024 + (number % 60_000) as u16,
        destination: Ipv6Addr::from_bits(PREFIX | u128::from(server(number).to_bits())),
        destination_port: 53,
    }
}

fn flow4(number: u32) -> Flow<Ipv4Addr> {
    Flow {
        source: Ipv4Addr::from_bits(HOSTS4 | number),
        source_port: 1_024 + (number % 60_000) as u16,
        destination: server(number),
        destination_port: 53,
    }
}

fn server(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from_be_bytes([203, 0, 113, 0]) | (number % 251))
}

fn back<A>(flow: Flow<A>) -> Flow<A> {
    Flow {
        source: flow.destination,
        source_port: flow.destination_port,
        destination: flow.source,
        destination_port: flow.source_port,
    }
}

/// One prefix that maps all hosts, or a mapping for each of a million.
fn machine(mappings: u32) -> Result<EngineBench> {
    let fault = |what: &str| Failure::Unexpected(format!("the benchmark's own configuration: {what}"));
    let text = |number: u32, bits: u32| {
        let ipv4 = format!("{}/{}", Ipv4Addr::from_bits(HOSTS4 | number), 32 - bits).parse();
        let ipv6 = format!("{}/{}", Ipv6Addr::from_bits(HOSTS6 | u128::from(number)), 128 - bits).parse();
        ipv4.ok().zip(ipv6.ok())
    };
    let rows: Option<Vec<_>> = if mappings == 1 {
        [text(0, 20)].into_iter().collect()
    } else {
        (0..mappings).map(|number| text(number, 0)).collect()
    };
    let rows = rows.ok_or_else(|| fault("no prefix"))?;
    let eam = EamTable::new(rows).map_err(|errors| fault(&format!("{errors:?}")))?;
    let prefix = format!("{}/96", Ipv6Addr::from_bits(PREFIX)).parse().map_err(|_| fault("no prefix"))?;
    let prefix = Rfc6052::new(prefix, false).map_err(|error| fault(&format!("{error:?}")))?;
    let siit = SiitConfig { prefix: Some(prefix), eam: Arc::new(eam), ..SiitConfig::default() };
    let engine = Engine::new(&EngineConfig { siit: vec![siit], ..EngineConfig::default() });
    Ok(EngineBench::new(engine.map_err(|error| fault(&format!("{error:?}")))?))
}

/// Measures both ways.
pub fn measure(options: &Options, yardstick: &mut Yardstick) -> Result<Section> {
    let mut figures = Vec::new();
    for (mappings, flows, of) in [(1, FLOWS, ""), (1_000_000, 1_000_000, " of 1,000,000 mappings")] {
        let mut machine = machine(mappings)?;
        let order = shuffled(flows, 0);
        let order = if flows == FLOWS { order.repeat(PASSES) } else { order };
        verify(&mut machine, &order[..flows as usize])?;
        for batch in [RUN, 1] {
            options.say(&format!("memory: SIIT{of}, batches of {batch}"));
            let target = (mappings == 1).then_some((MOST, Unit::Straight));
            let (mut out, mut home) = (Vec::new(), Vec::new());
            for _ in 0..options.repeats() {
                let write = |number, octets: &mut _| write6(&flow6(number), octets);
                out.push(machine.measure(&order, batch, write, yardstick)?);
                let write = |number, octets: &mut _| write4(&back(flow4(number)), octets);
                home.push(machine.measure(&order, batch, write, yardstick)?);
            }
            let name = |arrow: &str| format!("{arrow}{of}, batches of {batch}");
            figures.extend(figures_of(&name("v6→v4"), "ns/packet", &out, target));
            figures.extend(figures_of(&name("v4→v6"), "ns/packet", &home, target));
        }
    }
    Ok(Section {
        title: "SIIT in memory",
        how: format!(
            "UDP with 16 octets of payload (IPv6 packets of 64 octets, IPv4 packets of 44), {FLOWS} flows in random order; the host by an \
             explicit mapping, the server under a prefix; parse to finished packet, expiry included."
        ),
        figures,
        skipped: Vec::new(),
    })
}

fn verify(machine: &mut EngineBench, order: &[u32]) -> Result<()> {
    let write = |number: u32, octets: &mut _| write6(&flow6(number), octets);
    machine.pass(order, write, |number, octets| match read4(octets) {
        Some(flow) if flow == flow4(number) => Ok(()),
        Some(_) | None => Err(wrong(number, octets)),
    })?;
    let write = |number: u32, octets: &mut _| write4(&back(flow4(number)), octets);
    machine.pass(order, write, |number, octets| match read6(octets) {
        Some(flow) if flow == back(flow6(number)) => Ok(()),
        Some(_) | None => Err(wrong(number, octets)),
    })?;
    Ok(())
}
