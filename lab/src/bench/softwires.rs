//! Bulk TCP through DS-Lite, 4over6 and NAT46 over TUN devices, compared with plain forwarding by the kernel. All networks are made first, then
//! measured in turn, round by round.
//!
//! The other end of a softwire is a Sixway of the client's own: not every kernel has tunnels of IPv4 in IPv6.

use super::{Figure, Options, Section, Target};
use crate::failure::Result;
use crate::forwarder::Forwarder;
use crate::probe::cpu::{cpus, process_cpu};
use crate::probe::{BulkServer, Direction, serve_bulk};
use crate::sixway::sixway;
use crate::softwires::{Ready, answers, ds_lite, four_over_six, nat46};
use std::time::Duration;

/// What bulk TCP is to reach, in the rate of plain forwarding.
const LEAST: f64 = 0.7;
/// Octets of payload in a full TCP segment through a softwire over links of 1,500 octets, with time stamps.
const SEGMENT: f64 = 1_408.0;
const WAYS: [(Direction, &str); 2] = [(Direction::Up, "to the server"), (Direction::Down, "to the client")];

/// What one network showed in one round.
struct Round {
    gigabits: f64,
    /// CPU time of each process for a packet, in nanoseconds.
    spent: Vec<f64>,
}

/// Measures, if Sixway is built.
pub fn run(options: &Options) -> Result<Vec<Section>> {
    sixway()?;
    let seconds = Duration::from_secs_f64(if options.quick { 1.0 } else { options.seconds });
    let kernel = Forwarder::Kernel.start()?;
    let kernel =
        Ready { name: "kernel IPv6", network: kernel.network, target: kernel.target, processes: Vec::new() };
    let networks = [kernel, ds_lite()?, four_over_six()?, nat46()?];
    for one in &networks {
        answers(one)?;
    }
    let servers =
        networks.iter().map(|one| serve_bulk(&one.network, "server")).collect::<Result<Vec<_>>>()?;
    let mut rounds: [[Vec<Round>; 2]; 4] = Default::default();
    for number in 1..=options.repeats() {
        options.say(&format!("softwires, bulk TCP: round {number} of {}", options.repeats()));
        for (way, (direction, _)) in WAYS.into_iter().enumerate() {
            for ((one, server), rounds) in networks.iter().zip(&servers).zip(&mut rounds) {
                rounds[way].push(transfer(one, server, direction, seconds)?);
            }
        }
    }
    Ok(vec![section(&networks, &rounds)])
}

fn section(networks: &[Ready], rounds: &[[Vec<Round>; 2]]) -> Section {
    let mut figures = Vec::new();
    for (way, (_, arrow)) in WAYS.into_iter().enumerate() {
        let kernel = &rounds[0][way];
        for (one, rounds) in networks.iter().zip(rounds) {
            let name = format!("{arrow}, {}", one.name);
            let rounds = &rounds[way];
            figures.push(Figure::new(
                name.clone(),
                "Gbit/s",
                rounds.iter().map(|round| round.gigabits).collect(),
            ));
            if one.processes.is_empty() {
                continue;
            }
            let ratios =
                rounds.iter().zip(kernel).map(|(ours, kernel)| ours.gigabits / kernel.gigabits).collect();
            figures.push(
                Figure::new(format!("{name} vs kernel IPv6"), "×", ratios).to_reach(Target::AtLeast(LEAST)),
            );
            for (index, (process, _)) in one.processes.iter().enumerate() {
                let spent = rounds.iter().map(|round| round.spent[index]).collect();
                figures.push(Figure::new(format!("{arrow}, {process}"), "ns CPU/packet", spent));
            }
        }
    }
    Section {
        title: "TCP through softwires and NAT46",
        how: format!(
            "iperf3, one stream; {} CPUs, one worker each. The B4 and the end of 4over6 are on the client itself, by a Sixway of its own, which takes \
             its share of the CPUs and bounds the rate. A packet is {SEGMENT} octets of payload.",
            cpus()
        ),
        figures,
        skipped: Vec::new(),
    }
}

/// Waits until the client has an answer from the server.
fn transfer(one: &Ready, server: &BulkServer<'_>, direction: Direction, time: Duration) -> Result<Round> {
    let cpu = || one.processes.iter().map(|(_, id)| process_cpu(*id)).collect::<Result<Vec<_>>>();
    let before = cpu()?;
    let bulk = server.transfer("client", one.target, direction, time)?;
    let packets = (bulk.octets as f64 / SEGMENT).max(1.0);
    let spent = before.iter().zip(cpu()?);
    let spent = spent.map(|(before, after)| after.saturating_sub(*before).as_nanos() as f64 / packets);
    Ok(Round { gigabits: bulk.bits_per_second / 1e9, spent: spent.collect() })
}
