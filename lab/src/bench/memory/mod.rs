//! The engine alone, in memory: from the packet as a link hands it over to the finished packet, on one core.
//!
//! Packets are written into the frames before each run of 256, as a link would have just read them; only the engine's own work (`process` and
//! `tick`, for each batch) is timed. Every packet of a pass must be forwarded, and one pass of each kind is checked against a slow,
//! independent computation of every checksum. Targets are multiples of yardsticks that are measured after each pass.

mod machine;
mod nat64;
mod packets;
mod siit;
mod tunnel;
mod yardstick;

use super::{Options, Section};
use crate::failure::Result;
use crate::probe::cpu::pin_thread;
use yardstick::Yardstick;

/// Measures it, on a thread of its own that stays on one CPU.
pub fn run(options: &Options) -> Result<Vec<Section>> {
    std::thread::scope(|scope| {
        let measuring = scope.spawn(|| {
            pin_thread(1)?;
            let mut yardstick = Yardstick::new()?;
            // NAT64 first: its memory is to be fresh from the kernel.
            let nat64 = nat64::measure(options, &mut yardstick)?;
            let siit = siit::measure(options, &mut yardstick)?;
            let tunnel = tunnel::measure(options, &mut yardstick)?;
            Ok(vec![yardstick.section(), siit, nat64, tunnel])
        });
        measuring.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
