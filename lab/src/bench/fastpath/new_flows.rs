//! New flows: a fast path must not make them slower, because each of them is processed by the engine first.

use super::column::Column;
use super::content::Content;
use super::left_out::left_out;
use super::patterns::{BY_NAT64, HOSTS4, SERVER4, new_flows, to4, to6};
use super::scene::MiddleHost;
use super::settings::{Mode, nat44, nat64};
use crate::bench::{Figure, Options, Section, Target};
use crate::failure::{Failure, Result};
use std::rc::Rc;
use std::time::Duration;

/// Packets of one round: a multiple of 16 times 1,024.
const PACKETS: u32 = 65_536;
/// NAT64's rows, then NAT44's and the kernel's.
const ROWS: [(&str, Way); 7] = [
    ("no fast path", Way::Nat64(Mode::Off)),
    ("tc", Way::Nat64(Mode::Tc)),
    ("xdp", Way::Nat64(Mode::Xdp)),
    (NAT44, Way::Nat44(Mode::Off)),
    ("nat44, tc", Way::Nat44(Mode::Tc)),
    ("nat44, xdp", Way::Nat44(Mode::Xdp)),
    (KERNEL, Way::Kernel),
];
const NAT44: &str = "nat44, no fast path";
const KERNEL: &str = "kernel IPv4 + source NAT";
/// What is compared with what, and the least ratio for each kind of train.
const COMPARED: [(&str, &str, [Option<f64>; 2]); 6] = [
    ("tc", "no fast path", [Some(0.95); 2]),
    ("xdp", "no fast path", [Some(0.95); 2]),
    ("nat44, tc", NAT44, [Some(0.95); 2]),
    ("nat44, xdp", NAT44, [Some(0.95); 2]),
    // By more than a few packets for each flow, packets are compared, not flows.
    (NAT44, KERNEL, [None, Some(0.5)]),
    ("nat44, xdp", KERNEL, [None, Some(0.5)]),
];
/// Packets of each flow, as powers of two.
const TRAINS: [(u32, &str); 2] = [(4, "flows of 16 packets"), (0, "flows of 1 packet")];

/// What carries the flows.
#[derive(Clone, Copy, Debug)]
enum Way {
    Nat64(Mode),
    Nat44(Mode),
    /// The kernel's NAT44, with a pool as large.
    Kernel,
}

/// Measures, if Sixway is built.
pub fn run(options: &Options) -> Result<Section> {
    let mut ready = Vec::new();
    let mut skipped = Vec::new();
    for (name, way) in ROWS {
        match start(name, way) {
            Ok(columns) => ready.push((name, columns)),
            Err(why) => skipped.push(left_out(name, why)?),
        }
    }
    let mut rates: Vec<[Vec<Round>; 2]> = ready.iter().map(|_| Default::default()).collect();
    for number in 1..=options.repeats() {
        options.say(&format!("fast path, new flows: round {number} of {}", options.repeats()));
        for ((_, columns), rates) in ready.iter_mut().zip(&mut rates) {
            for ((column, rates), (power, _)) in columns.iter_mut().zip(rates).zip(TRAINS) {
                rates.push(round(column, PACKETS >> power)?);
            }
        }
    }
    let mut figures = Vec::new();
    for (train, (_, what)) in TRAINS.into_iter().enumerate() {
        for ((name, _), rates) in ready.iter().zip(&rates) {
            let each = |of: fn(&Round) -> f64| rates[train].iter().map(of).collect::<Vec<_>>();
            figures.push(Figure::new(
                format!("{what}, {name}"),
                "k flows/s",
                each(|round| round.per_second / 1e3),
            ));
            let arrived = Figure::new(format!("{what}, {name}: arrived"), "%", each(|round| round.arrived));
            figures.push(arrived.to_reach(Target::AtLeast(100.0)));
        }
        let find = |wanted| ready.iter().position(|(name, _)| *name == wanted).map(|at| &rates[at][train]);
        for (name, other, least) in COMPARED {
            let (Some(ours), Some(theirs)) = (find(name), find(other)) else { continue };
            let ratios = ours.iter().zip(theirs).map(|(ours, theirs)| ours.per_second / theirs.per_second);
            let figure = Figure::new(format!("{what}, {name} vs {other}"), "×", ratios.collect());
            figures.push(match least[train] {
                Some(least) => figure.to_reach(Target::AtLeast(least)),
                None => figure,
            });
        }
        for ((name, _), rates) in ready.iter().zip(&rates) {
            let spent = rates[train].iter().map(|round| round.process_us).collect();
            figures.push(Figure::new(format!("{what}, {name}: the gateway's process"), "µs CPU/flow", spent));
        }
    }
    Ok(Section {
        title: "New flows through NAT64 and NAT44",
        how: "Each flow is another client port; 1,024 flows at a time, their packets in turn, 256 packets in flight, so that none need be lost. A flow counts when its first packet arrives. One worker; a flow \
              moves to the fast path after its 8th packet, the default."
            .to_owned(),
        figures,
        skipped,
    })
}

/// What one round showed of flows whose first packet arrived.
struct Round {
    /// Of those that were sent, in percent.
    arrived: f64,
    per_second: f64,
    /// CPU time of the gateway's process for each.
    process_us: f64,
}

/// Sends this many new flows.
fn round(column: &mut Column, flows: u32) -> Result<Round> {
    let (before, process) = (column.seen()?, column.process_cpu()?);
    let (packets, time) = column.carry(PACKETS)?;
    let spent = column.process_cpu()?.saturating_sub(process);
    column.verify()?;
    let firsts = column.seen()?.firsts - before.firsts;
    Round::of((firsts, flows), packets, time, spent).ok_or_else(|| {
        Failure::Unexpected(format!(
            "{}: {packets} of {PACKETS} packets arrived, {firsts} of {flows} flows",
            column.name
        ))
    })
}

impl Round {
    /// `None` if nothing arrived.
    fn of((firsts, flows): (u64, u32), packets: u64, time: Duration, spent: Duration) -> Option<Self> {
        let arrived = (firsts as f64 / f64::from(flows)).min(packets as f64 / f64::from(PACKETS)) * 100.0;
        (firsts > 0 && packets > 0).then(|| Self {
            arrived,
            per_second: firsts as f64 / time.as_secs_f64(),
            process_us: spent.as_nanos() as f64 / 1e3 / firsts as f64,
        })
    }
}

/// One column for each kind of train, in networks of their own.
fn start(name: &'static str, way: Way) -> Result<Vec<Column>> {
    TRAINS
        .iter()
        .map(|(power, _)| {
            let middle = match way {
                Way::Nat64(mode) => MiddleHost::Sixway(nat64(mode, None)),
                Way::Nat44(mode) => MiddleHost::Sixway(nat44(mode, None)),
                Way::Kernel => MiddleHost::SourcePool,
            };
            let is_nat64 = matches!(way, Way::Nat64(_));
            let pattern = move |door| if is_nat64 { to6(BY_NAT64)(door) } else { to4(HOSTS4, SERVER4)(door) };
            match middle.cannot_run() {
                Some(why) => Err(why),
                None => {
                    let mut column = Column::new(
                        name,
                        Rc::new(middle.start()?),
                        "client",
                        new_flows(*power, pattern),
                        Content::by_nat64(),
                    )?;
                    column.carry(PACKETS / 4).map(|_| column)
                }
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_count_when_they_arrive() {
        let second = Duration::from_secs(1);
        let round = Round::of((512, 1_024), u64::from(PACKETS), second, Duration::from_millis(1)).unwrap();
        assert_eq!((round.arrived, round.per_second), (50.0, 512.0));
        assert!((round.process_us - 1_000.0 / 512.0).abs() < 1e-9);
        let lossy = Round::of((1_024, 1_024), u64::from(PACKETS / 4 * 3), second, second).unwrap();
        assert_eq!(lossy.arrived, 75.0);
        assert!(Round::of((0, 1_024), 0, second, second).is_none());
    }
}
