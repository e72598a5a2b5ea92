//! The measured tables and their order.

use super::{bulk, latency, million, new_flows, small};
use crate::bench::{FastPathTable, Options, Section};
use crate::failure::Result;
use std::time::Duration;

/// Measures every table that can run here, or the selected one.
pub fn run(options: &Options) -> Result<Vec<Section>> {
    let is_wanted = |table| options.table.is_none_or(|only| only == table);
    let mut sections = Vec::new();
    if is_wanted(FastPathTable::Small) {
        sections.extend(small_packets(options)?);
    }
    if is_wanted(FastPathTable::Bulk) {
        sections.push(bulk::run(options, Duration::from_secs_f64(seconds(options)))?);
    }
    if is_wanted(FastPathTable::NewFlows) {
        sections.push(new_flows::run(options)?);
    }
    if is_wanted(FastPathTable::Latency) {
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
