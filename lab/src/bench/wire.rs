//! Real packets between network namespaces: each forwarder has a network of its own, all of them are ready, and they are measured in turn,
//! round by round, so that what else the machine does falls on all alike. Ratios are taken within a round.

use super::{Figure, Options, Section, Target};
use crate::failure::Result;
use crate::forwarder::{Forwarder, Running};
use crate::probe::cpu::{cpus, process_cpu};
use crate::probe::{BulkServer, Direction, PAYLOAD, SmallUdp, ping, serve_bulk, small_udp};
use std::time::Duration;

/// Flows of small packets: enough that no single one is favoured.
const FLOWS: usize = 16;
/// Octets of payload in a full TCP segment of an IPv4 link with time stamps: to count packets as the wire would carry them.
const SEGMENT: f64 = 1_448.0;

const FORWARDERS: [Forwarder; 5] =
    [Forwarder::Kernel, Forwarder::Tayga, Forwarder::SharingTayga, Forwarder::Nat64, Forwarder::Siit];
/// Peers that do the same work: stateful with stateful, stateless with stateless.
const ALIKE: [(Forwarder, Forwarder); 2] =
    [(Forwarder::Nat64, Forwarder::SharingTayga), (Forwarder::Siit, Forwarder::Tayga)];

/// What one forwarder showed in one round.
#[derive(Clone, Copy, Debug)]
struct Round {
    tcp: [Tcp; 2],
    udp: [SmallUdp; 2],
    rtt_us: f64,
}

#[derive(Clone, Copy, Debug)]
struct Tcp {
    gigabits: f64,
    forwarder_ns: Option<f64>,
}

struct Measured {
    forwarder: Forwarder,
    rounds: Vec<Round>,
}

/// Measures all forwarders that can run here.
pub fn run(options: &Options) -> Result<Vec<Section>> {
    let mut skipped = Vec::new();
    let mut ready = Vec::new();
    for forwarder in FORWARDERS {
        match forwarder.cannot_run() {
            Some(why) => skipped.push(format!("{}: {why}", forwarder.name())),
            None => ready.push(forwarder.start_on_one_core()?),
        }
    }
    let servers =
        ready.iter().map(|running| serve_bulk(&running.network, "server")).collect::<Result<Vec<_>>>()?;
    let mut rounds: Vec<Vec<Round>> = ready.iter().map(|_| Vec::new()).collect();
    let seconds = Duration::from_secs_f64(if options.quick { 1.0 } else { options.seconds });
    for number in 1..=options.repeats() {
        options.say(&format!("wire: round {number} of {}", options.repeats()));
        for ((running, server), rounds) in ready.iter().zip(&servers).zip(&mut rounds) {
            rounds.push(round(running, server, seconds)?);
        }
    }
    let measured: Vec<_> = ready
        .iter()
        .zip(rounds)
        .map(|(running, rounds)| Measured { forwarder: running.forwarder, rounds })
        .collect();
    let mut sections = vec![tcp(&measured), udp(&measured), rtt(&measured)];
    if let Some(first) = sections.first_mut() {
        first.skipped = skipped;
    }
    Ok(sections)
}

fn round(running: &Running, server: &BulkServer<'_>, time: Duration) -> Result<Round> {
    let pings = ping(running.network.host("client")?, running.target, 1_000, 56, Duration::ZERO)?;
    Ok(Round {
        rtt_us: pings.median().unwrap_or(f64::INFINITY) * 1e3,
        udp: [
            small_udp(running, FLOWS, Direction::Up, time)?,
            small_udp(running, FLOWS, Direction::Down, time)?,
        ],
        tcp: [
            transfer(running, server, Direction::Up, time)?,
            transfer(running, server, Direction::Down, time)?,
        ],
    })
}

fn transfer(running: &Running, server: &BulkServer<'_>, direction: Direction, time: Duration) -> Result<Tcp> {
    let cpu = || running.process.map(process_cpu).transpose();
    let before = cpu()?;
    let bulk = server.transfer("client", running.target, direction, time)?;
    let spent = before.zip(cpu()?).map(|(before, after)| after.saturating_sub(before).as_nanos() as f64);
    let packets = (bulk.octets as f64 / SEGMENT).max(1.0);
    Ok(Tcp { gigabits: bulk.bits_per_second / 1e9, forwarder_ns: spent.map(|spent| spent / packets) })
}

impl Measured {
    fn figure(&self, what: &str, unit: &'static str, of: impl Fn(&Round) -> f64) -> Figure {
        Figure::new(format!("{what}, {}", self.forwarder.name()), unit, self.rounds.iter().map(of).collect())
    }

    /// The same where every round has it.
    fn figure_if(
        &self,
        what: &str,
        unit: &'static str,
        of: impl Fn(&Round) -> Option<f64>,
    ) -> Option<Figure> {
        let repeats: Option<Vec<_>> = self.rounds.iter().map(of).collect();
        Some(Figure::new(format!("{what}, {}", self.forwarder.name()), unit, repeats?))
    }
}

fn find(measured: &[Measured], forwarder: Forwarder) -> Option<&Measured> {
    measured.iter().find(|one| one.forwarder == forwarder)
}

/// One compared with another, round by round.
fn beside(
    measured: &[Measured],
    (one, other): (Forwarder, Forwarder),
    what: &str,
    unit: &'static str,
    compare: impl Fn(&Round, &Round) -> Option<f64>,
) -> Option<Figure> {
    let (ours, theirs) = (find(measured, one)?, find(measured, other)?);
    let repeats: Option<Vec<_>> =
        ours.rounds.iter().zip(&theirs.rounds).map(|(ours, theirs)| compare(ours, theirs)).collect();
    Some(Figure::new(format!("{what}, {} vs {}", one.name(), other.name()), unit, repeats?))
}

const WAYS: [(usize, &str); 2] = [(0, "v6→v4"), (1, "v4→v6")];

fn tcp(measured: &[Measured]) -> Section {
    let mut figures = Vec::new();
    for (way, arrow) in WAYS {
        figures
            .extend(measured.iter().map(|one| one.figure(arrow, "Gbit/s", |round| round.tcp[way].gigabits)));
        let kernel = (Forwarder::Nat64, Forwarder::Kernel);
        for (pair, bound) in ALIKE.map(|pair| (pair, 8.0)).into_iter().chain([(kernel, 0.55)]) {
            let ratio =
                |ours: &Round, theirs: &Round| Some(ours.tcp[way].gigabits / theirs.tcp[way].gigabits);
            figures.extend(
                beside(measured, pair, arrow, "×", ratio)
                    .map(|figure| figure.to_reach(Target::AtLeast(bound))),
            );
        }
    }
    for (way, arrow) in WAYS {
        let cpu = |one: &Measured| one.figure_if(arrow, "ns CPU/packet", |round| round.tcp[way].forwarder_ns);
        figures.extend(measured.iter().filter_map(cpu));
    }
    Section {
        title: "TCP on the wire",
        how: format!(
            "iperf3, one stream, between namespaces joined by veth pairs; {} CPUs, one worker. CPU time is that of the forwarding \
             process, a packet being {SEGMENT} octets of payload, as a wire would carry it.",
            cpus()
        ),
        figures,
        skipped: Vec::new(),
    }
}

fn udp(measured: &[Measured]) -> Section {
    let mut figures = Vec::new();
    for (way, arrow) in WAYS {
        figures.extend(
            measured.iter().map(|one| one.figure(arrow, "kpps", |round| round.udp[way].per_second / 1e3)),
        );
        let per_core =
            |ours: &Round, theirs: &Round| Some(theirs.udp[way].forwarder_ns? / ours.udp[way].forwarder_ns?);
        for pair in ALIKE {
            let ratio = beside(measured, pair, &format!("{arrow} per core"), "×", per_core);
            figures.extend(ratio.map(|figure| figure.to_reach(Target::AtLeast(1.0))));
        }
        let rate = |ours: &Round, theirs: &Round| Some(ours.udp[way].per_second / theirs.udp[way].per_second);
        let arrived = |pair| beside(measured, pair, &format!("{arrow} arrived"), "×", rate);
        figures.extend(ALIKE.into_iter().filter_map(arrived));
    }
    for (way, arrow) in WAYS {
        let own = |one: &Measured| one.figure_if(arrow, "ns CPU/packet", |round| round.udp[way].forwarder_ns);
        figures.extend(measured.iter().filter_map(own));
        let machine = |one: &Measured| {
            one.figure(&format!("{arrow}, whole machine"), "ns CPU/packet", |round| round.udp[way].machine_ns)
        };
        figures.extend(measured.iter().map(machine));
    }
    Section {
        title: "Small UDP packets on the wire",
        how: format!(
            "{PAYLOAD} octets of payload (IPv6 packets of 64 octets, IPv4 packets of 44), {FLOWS} flows, sendmmsg without segmentation \
             offload. The sender has CPU 0, the forwarder CPU 1; counted at the receiver's device. Per core: packets for each second of the \
             forwarding process's CPU time, which holds the delivery to the receiver. The kernel forwards in the sender's time."
        ),
        figures,
        skipped: Vec::new(),
    }
}

fn rtt(measured: &[Measured]) -> Section {
    let mut figures: Vec<_> =
        measured.iter().map(|one| one.figure("round trip", "µs", |round| round.rtt_us)).collect();
    let more = |ours: &Round, theirs: &Round| Some(ours.rtt_us - theirs.rtt_us);
    let longer = |pair| beside(measured, pair, "longer round trip", "µs", more);
    figures.extend(ALIKE.into_iter().filter_map(longer).map(|figure| figure.to_reach(Target::AtMost(3.0))));
    Section {
        title: "Round trips on the wire",
        how: "ping -i 0, medians of 1,000 in each round; 56 octets of payload.".to_owned(),
        figures,
        skipped: Vec::new(),
    }
}
