//! A configured tunnel of IPv6 in IPv4, and a B4's softwire of IPv4 in IPv6: into each and out of it, in turn.

use super::concentrator::Concentrator;
use super::engine_bench::{EngineBench, RUN, shuffled, wrong};
use super::established::SLICE;
use super::nat44::{Compared, Rounds};
use super::packets::{Flow, read6, read6_in4, write6, write6_in4};
use super::softwire::Softwire;
use super::teredo::Relay;
use super::yardstick::{Unit, Yardstick, figures as figures_of};
use crate::bench::{Figure, Options, Section, Target};
use crate::failure::{Failure, Result};
use sixway_dataplane::engine::{Engine, EngineConfig, TunnelConfig};
use sixway_dataplane::mechanism::configured::ConfiguredConfig;
use sixway_dataplane::tunnel::TunnelPolicy;
use std::net::{Ipv4Addr, Ipv6Addr};

const FLOWS: u32 = 1_024;
const PASSES: usize = 64;
/// What a packet may cost, in checksums and copies of as many octets.
const MOST: f64 = 15.0;
/// What a packet may cost a B4, and a concentrator of 4over6, in packets of 6in4.
const B4: f64 = 1.1;
const LEASED: f64 = 1.2;
/// The same of Teredo's relay, and the octets of 100,000 clients.
const TO_CLIENTS: f64 = 1.5;
const FROM_CLIENTS: f64 = 1.3;
const CLIENTS: u32 = 100_000;
const OCTETS: f64 = 25e6;
const LOCAL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);
const REMOTE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
const HERE: u128 = 0x2001_0db8_0001 << 80;
const THERE: u128 = 0x2001_0db8_0007 << 80;

fn flow(number: u32, inward: bool) -> Flow<Ipv6Addr> {
    let (source, destination) = if inward { (THERE, HERE) } else { (HERE, THERE) };
    Flow {
        source: Ipv6Addr::from_bits(source | u128::from(number)),
        source_port: 1_024 + (number % 60_000) as u16,
        destination: Ipv6Addr::from_bits(destination | u128::from(number % 251)),
        destination_port: 53,
    }
}

fn machine() -> Result<EngineBench> {
    let fault = |what: &str| Failure::Unexpected(format!("the benchmark's own configuration: {what}"));
    let prefix = format!("{}/48", Ipv6Addr::from_bits(THERE)).parse().map_err(|_| fault("no prefix"))?;
    let tunnel = ConfiguredConfig {
        local: LOCAL,
        remote: Some(REMOTE),
        prefixes: vec![prefix],
        strict_sources: true,
        policy: TunnelPolicy::default(),
    };
    let tunnels = vec![TunnelConfig::Configured(tunnel)];
    let engine = Engine::new(&EngineConfig { tunnels, ..EngineConfig::default() });
    Ok(EngineBench::new(engine.map_err(|error| fault(&format!("{error:?}")))?))
}

/// Measures both ways.
pub fn measure(options: &Options, yardstick: &mut Yardstick) -> Result<Section> {
    let mut figures = Vec::new();
    let mut machine = machine()?;
    // Each run of 256 packets has 256 flows, so nothing can be joined.
    let order = shuffled(FLOWS, 0).repeat(PASSES);
    verify(&mut machine, &order[..FLOWS as usize])?;
    let mut softwire = Softwire::make(&order[..FLOWS as usize])?;
    let mut concentrator = Concentrator::make(&order[..FLOWS as usize])?;
    let mut relay = Relay::make(FLOWS)?;
    relay.verify(&order[..FLOWS as usize])?;
    for batch in [RUN, 1] {
        options.say(&format!("memory: tunnels, batches of {batch}"));
        let (mut encap, mut decap) = (Vec::new(), Vec::new());
        let mut rounds: [Rounds; 6] = Default::default();
        for _ in 0..options.repeats() {
            let write = |number, octets: &mut _| write6(&flow(number, false), octets);
            encap.push(machine.measure(&order, batch, write, yardstick)?);
            let back = |number, octets: &mut _| write6_in4(&flow(number, true), REMOTE, LOCAL, octets);
            decap.push(machine.measure(&order, batch, back, yardstick)?);
            let mut slices: [Compared; 6] = Default::default();
            for slice in order.chunks(SLICE) {
                let into = machine.measure(slice, batch, write, yardstick)?;
                slices[0].push(&softwire.encap(slice, batch, yardstick)?, &into);
                slices[1].push(&concentrator.encap(slice, batch, yardstick)?, &into);
                slices[4].push(&relay.encap(slice, batch, yardstick)?, &into);
                let out = machine.measure(slice, batch, back, yardstick)?;
                slices[2].push(&softwire.decap(slice, batch, yardstick)?, &out);
                slices[3].push(&concentrator.decap(slice, batch, yardstick)?, &out);
                slices[5].push(&relay.decap(slice, batch, yardstick)?, &out);
            }
            rounds.iter_mut().zip(&slices).for_each(|(rounds, slices)| rounds.push(slices));
        }
        for (way, rounds) in [("into the tunnel", encap), ("out of the tunnel", decap)] {
            let name = format!("{way}, batches of {batch}");
            figures.extend(figures_of(&name, "ns/packet", &rounds, Some((MOST, Unit::Copy))));
        }
        let ways = [
            ("into a B4's softwire", B4),
            ("into 4over6's tunnels", LEASED),
            ("out of a B4's softwire", B4),
            ("out of 4over6's tunnels", LEASED),
            ("to Teredo's clients", TO_CLIENTS),
            ("from Teredo's clients", FROM_CLIENTS),
        ];
        for ((way, most), rounds) in ways.into_iter().zip(rounds) {
            let name = format!("{way}, batches of {batch}");
            figures.extend(rounds.figures(&name, "6in4", "ns/packet", most));
        }
    }
    let (clients, octets) = Relay::make(CLIENTS)?.memory();
    figures.push(Figure::new("Teredo's clients", "", vec![f64::from(clients)]));
    let octets = Figure::new("memory of these clients", "octets", vec![octets as f64]);
    figures.push(octets.to_reach(Target::AtMost(OCTETS)));
    Ok(Section {
        title: "6in4, DS-Lite's B4, 4over6 and Teredo's relay in memory",
        how: format!(
            "A configured tunnel (64 octets inside, 84 outside), a B4 and a concentrator of 4over6 with a host for each flow (44 and 84), and a relay of Teredo with a client for each flow (64 and 92), in turn, in slices \
             of 4,096 packets; UDP with 16 octets of payload, {FLOWS} flows in random order; parse to finished packet, the search for segments to join and \
             expiry included. A ratio is the median of the slices' own."
        ),
        figures,
        skipped: Vec::new(),
    })
}

fn verify(machine: &mut EngineBench, order: &[u32]) -> Result<()> {
    let write = |number: u32, octets: &mut _| write6(&flow(number, false), octets);
    machine.pass(order, write, |number, octets| match read6_in4(octets, LOCAL, REMOTE) {
        Some(read) if read == flow(number, false) => Ok(()),
        Some(_) | None => Err(wrong(number, octets)),
    })?;
    let write = |number: u32, octets: &mut _| write6_in4(&flow(number, true), REMOTE, LOCAL, octets);
    machine.pass(order, write, |number, octets| match read6(octets) {
        Some(read) if read == flow(number, true) => Ok(()),
        Some(_) | None => Err(wrong(number, octets)),
    })?;
    Ok(())
}
