//! The tables of the engine in memory, one after the other on one thread.

use super::yardstick::Yardstick;
use super::{nat64, siit, tunnel};
use crate::bench::{Options, Section};
use crate::failure::Result;
use crate::probe::cpu::pin_thread;

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
