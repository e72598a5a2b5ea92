//! New flows: what a fast path must not make slower, for each of them is carried by the engine first.

use super::column::Column;
use super::left_out;
use super::scene::Middle;
use super::settings::{Mode, nat64};
use super::small::new_flows;
use crate::bench::{Figure, Options, Section, Target};
use crate::failure::{Failure, Result};
use std::rc::Rc;

/// Packets of one round: a multiple of 16 times 1,024.
const PACKETS: u32 = 65_536;
const WAYS: [(&str, Mode); 3] = [("no fast path", Mode::Off), ("tc", Mode::Tc), ("xdp", Mode::Xdp)];
/// Packets of each flow, as powers of two.
const TRAINS: [(u32, &str); 2] = [(4, "flows of 16 packets"), (0, "flows of 1 packet")];

/// Measures, if Sixway is built.
pub fn run(options: &Options) -> Result<Section> {
    let mut ready = Vec::new();
    let mut skipped = Vec::new();
    for (name, mode) in WAYS {
        match start(name, mode) {
            Ok(columns) => ready.push((name, columns)),
            Err(why) => skipped.push(left_out(name, why)?),
        }
    }
    let mut rates: Vec<[Vec<(f64, f64)>; 2]> = ready.iter().map(|_| Default::default()).collect();
    for number in 1..=options.repeats() {
        options.say(&format!("fast path, new flows: round {number} of {}", options.repeats()));
        for ((_, columns), rates) in ready.iter_mut().zip(&mut rates) {
            for ((column, rates), (power, _)) in columns.iter_mut().zip(rates).zip(TRAINS) {
                let before = column.process_cpu()?;
                let (arrived, time) = column.carry(PACKETS)?;
                let spent = column.process_cpu()?.saturating_sub(before);
                if arrived < u64::from(PACKETS) * 95 / 100 {
                    return Err(Failure::Unexpected(format!(
                        "{}: {arrived} of {PACKETS} arrived",
                        column.name
                    )));
                }
                let flows = f64::from(PACKETS >> power);
                rates.push((flows / time.as_secs_f64() / 1e3, spent.as_nanos() as f64 / 1e3 / flows));
            }
        }
    }
    let mut figures = Vec::new();
    for (train, (_, what)) in TRAINS.into_iter().enumerate() {
        for ((name, _), rates) in ready.iter().zip(&rates) {
            figures.push(Figure::new(format!("{what}, {name}"), "k flows/s", first(&rates[train])));
        }
        for ((name, _), ours) in ready.iter().zip(&rates).skip(1) {
            let beside = ours[train].iter().zip(&rates[0][train]).map(|(ours, without)| ours.0 / without.0);
            let figure = Figure::new(format!("{what}, {name} beside no fast path"), "×", beside.collect());
            figures.push(figure.to_reach(Target::AtLeast(0.95)));
        }
        for ((name, _), rates) in ready.iter().zip(&rates) {
            let spent = rates[train].iter().map(|rate| rate.1).collect();
            figures.push(Figure::new(format!("{what}, {name}: the gateway's process"), "µs CPU/flow", spent));
        }
    }
    Ok(Section {
        title: "New flows through NAT64",
        how: "Each flow is another client's port; 1,024 flows at a time, their packets in turn, 256 packets under way, so that none is lost. One worker; a flow is \
              carried on after its 8th packet, the default."
            .to_owned(),
        figures,
        skipped,
    })
}

fn first(pairs: &[(f64, f64)]) -> Vec<f64> {
    pairs.iter().map(|pair| pair.0).collect()
}

/// One column for each kind of train, in networks of their own.
fn start(name: &'static str, mode: Mode) -> Result<Vec<Column>> {
    TRAINS
        .iter()
        .map(|(power, _)| {
            let middle = Middle::Sixway(nat64(mode, None));
            match middle.cannot_run() {
                Some(why) => Err(why),
                None => {
                    let mut column =
                        Column::new(name, Rc::new(middle.start()?), "client", new_flows(*power))?;
                    column.carry(PACKETS / 4).map(|_| column)
                }
            }
        })
        .collect()
}
