//! The fast path beside the kernel's own forwarding, its masquerade, TAYGA, and Sixway without it.

mod column;
mod frame;
mod scene;
mod small;

use super::{Options, Section};
use crate::failure::Result;
use std::time::Duration;

/// Measures all that can run here.
pub fn run(options: &Options) -> Result<Vec<Section>> {
    let seconds = Duration::from_secs_f64(if options.quick { 0.5 } else { options.seconds / 2.0 });
    Ok(vec![small::run(options, seconds)?])
}
