//! The fast path beside the kernel's own forwarding, its masquerade, TAYGA, and Sixway without it.

mod bulk;
mod column;
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

/// Measures all that can run here.
pub fn run(options: &Options) -> Result<Vec<Section>> {
    let seconds = if options.quick { 0.5 } else { options.seconds };
    let (small, many) = small::run(options, Duration::from_secs_f64(seconds / 2.0))?;
    let mut sections = vec![small];
    if let Some(column) = &many {
        options.say("fast path: one million flows, resting");
        let time = Duration::from_secs(if options.quick { 2 } else { 10 });
        sections.push(million::run(column, time)?);
    }
    drop(many);
    sections.push(bulk::run(options, Duration::from_secs_f64(seconds))?);
    sections.push(new_flows::run(options)?);
    sections.push(latency::run(options)?);
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
