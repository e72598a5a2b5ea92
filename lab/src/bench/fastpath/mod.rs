//! The fast path beside the kernel's own forwarding, its masquerade, TAYGA, and Sixway without it.

mod bulk;
mod column;
mod compared;
mod content;
mod frame;
mod latency;
mod million;
mod new_flows;
mod scene;
mod settings;
mod small;

use super::{Options, Section};
use crate::failure::{Failure, Result};
use std::time::Duration;

/// The tables of this benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Table {
    /// Small packets, and one million flows
    Small,
    /// Bulk TCP
    Bulk,
    /// New flows
    NewFlows,
    /// Round trips
    Latency,
}

/// Measures all that can run here, or the table that was asked for.
pub fn run(options: &Options) -> Result<Vec<Section>> {
    let is_wanted = |table| options.table.is_none_or(|only| only == table);
    let mut sections = Vec::new();
    if is_wanted(Table::Small) {
        sections.extend(small_packets(options)?);
    }
    if is_wanted(Table::Bulk) {
        sections.push(bulk::run(options, Duration::from_secs_f64(seconds(options)))?);
    }
    if is_wanted(Table::NewFlows) {
        sections.push(new_flows::run(options)?);
    }
    if is_wanted(Table::Latency) {
        sections.push(latency::run(options)?);
    }
    Ok(sections)
}

fn seconds(options: &Options) -> f64 {
    if options.quick { 0.5 } else { options.seconds }
}

/// The second table looks further at the network that the first one leaves.
fn small_packets(options: &Options) -> Result<Vec<Section>> {
    let (small, many) = small::run(options, Duration::from_secs_f64(seconds(options) / 2.0))?;
    let mut sections = vec![small];
    if let Some(column) = &many {
        options.say("fast path: one million flows, at rest and in use");
        let rest = Duration::from_secs(if options.quick { 2 } else { 10 });
        sections.push(million::run(column, rest, options.quick)?);
    }
    Ok(sections)
}

/// What is left out, on one line; an interruption is passed on.
fn left_out(what: &str, why: Failure) -> Result<String> {
    match why {
        Failure::Interrupted => Err(Failure::Interrupted),
        why => {
            let said = why.to_string();
            let lines: Vec<_> = said.lines().map(str::trim).take(2).collect();
            Ok(format!("{what}: {}", lines.join(" ")))
        }
    }
}
