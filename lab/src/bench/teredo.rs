//! Bulk TCP through a Teredo relay: ours and miredo's, in turn, round by round. Client and server are miredo's, and bound the rate.

use super::{Figure, Options, Section, Target};
use crate::failure::Result;
use crate::gateway::run_sixway;
use crate::interrupt;
use crate::probe::cpu::{cpus, process_cpu};
use crate::probe::{BulkServer, Direction, ping, serve_bulk};
use crate::programs;
use crate::sixway::sixway;
use crate::teredo::{HOST, RELAY, network, qualified, run_miredo_relay};
use crate::topology::Network;
use std::time::Duration;

/// Octets of payload in a full TCP segment through Teredo (1,280 octets), with time stamps.
const SEGMENT: f64 = 1_208.0;
const WAYS: [(Direction, &str); 2] = [(Direction::Up, "from the client"), (Direction::Down, "to the client")];

struct Round {
    megabits: f64,
    spent: f64,
}

/// Measures, if Sixway is built and miredo is installed.
///
/// # Errors
/// A network could not be made.
pub fn run(options: &Options) -> Result<Vec<Section>> {
    sixway()?;
    let mut section = Section {
        title: "TCP through a Teredo relay",
        how: format!(
            "iperf3, one stream, {} CPUs; client and server of miredo, which take their share of the CPUs and bound the rate. A packet is {SEGMENT} \
             octets of payload; CPU time is that of the relay's process.",
            cpus()
        ),
        figures: Vec::new(),
        skipped: Vec::new(),
    };
    if let Some(missing) =
        ["miredo", "miredo-server"].into_iter().find(|program| !programs::installed(program))
    {
        section.skipped.push(format!("needs {missing}"));
        return Ok(vec![section]);
    }
    let seconds = Duration::from_secs_f64(if options.quick { 1.0 } else { options.seconds });
    let (ours, theirs) = (network()?, network()?);
    let ready = [("sixway", run_sixway(&ours, RELAY)?, ours), ("miredo", run_miredo_relay(&theirs)?, theirs)];
    for (_, _, network) in &ready {
        qualified(network)?;
        interrupt::wait_until(Duration::from_secs(20), "a first answer", || {
            let answers = ping(network.host("client")?, HOST, 1, 56, Duration::from_secs(1));
            Ok(answers.is_ok_and(|answers| answers.answered == 1))
        })?;
    }
    let servers =
        ready.iter().map(|(_, _, network)| serve_bulk(network, "host")).collect::<Result<Vec<_>>>()?;
    let mut rounds: [[Vec<Round>; 2]; 2] = Default::default();
    for number in 1..=options.repeats() {
        options.say(&format!("Teredo relay, bulk TCP: round {number} of {}", options.repeats()));
        for (way, (direction, _)) in WAYS.into_iter().enumerate() {
            for (((_, process, _), server), rounds) in ready.iter().zip(&servers).zip(&mut rounds) {
                rounds[way].push(transfer(*process, server, direction, seconds)?);
            }
        }
    }
    section.figures = figures(&ready, &rounds);
    Ok(vec![section])
}

fn figures(ready: &[(&'static str, u32, Network); 2], rounds: &[[Vec<Round>; 2]; 2]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (way, (_, arrow)) in WAYS.into_iter().enumerate() {
        for ((name, _, _), rounds) in ready.iter().zip(rounds) {
            let of = |figure: fn(&Round) -> f64| rounds[way].iter().map(figure).collect::<Vec<f64>>();
            figures.push(Figure::new(format!("{arrow}, {name}"), "Mbit/s", of(|round| round.megabits)));
            figures.push(Figure::new(format!("{arrow}, {name}"), "ns CPU/packet", of(|round| round.spent)));
        }
        let both = || rounds[0][way].iter().zip(&rounds[1][way]);
        let rates = both().map(|(ours, theirs)| ours.megabits / theirs.megabits).collect();
        figures.push(
            Figure::new(format!("{arrow}, rate, sixway vs miredo"), "×", rates)
                .to_reach(Target::AtLeast(1.0)),
        );
        let spent = both().map(|(ours, theirs)| theirs.spent / ours.spent).collect();
        figures.push(
            Figure::new(format!("{arrow}, packets for each second of CPU, sixway vs miredo"), "×", spent)
                .to_reach(Target::AtLeast(1.0)),
        );
    }
    figures
}

fn transfer(process: u32, server: &BulkServer<'_>, direction: Direction, time: Duration) -> Result<Round> {
    let before = process_cpu(process)?;
    let bulk = server.transfer("client", HOST, direction, time)?;
    let packets = (bulk.octets as f64 / SEGMENT).max(1.0);
    let spent = process_cpu(process)?.saturating_sub(before).as_nanos() as f64 / packets;
    Ok(Round { megabits: bulk.bits_per_second / 1e6, spent })
}
