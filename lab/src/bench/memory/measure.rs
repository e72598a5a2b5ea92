//! The tables of the engine in memory, one after the other on one thread.

use super::yardstick::Yardstick;
use super::{ds_lite, nat44, nat46, nat64, siit, ten_million, tunnel};
use crate::bench::{Options, Section};
use crate::failure::Result;
use crate::probe::cpu::pin_thread;

/// Measures it, on a thread of its own that stays on one CPU.
pub fn run(options: &Options) -> Result<Vec<Section>> {
    std::thread::scope(|scope| {
        let measuring = scope.spawn(|| {
            pin_thread(1)?;
            let mut yardstick = Yardstick::new()?;
            // The largest tables first: their memory is to be fresh from the kernel.
            let nat44 = nat44::Large::make()?;
            let nat64 = nat64::measure(options, &mut yardstick)?;
            let nat44 = nat44::measure(options, &mut yardstick, nat44)?;
            let ds_lite = ds_lite::measure(options, &mut yardstick)?;
            let siit = siit::measure(options, &mut yardstick)?;
            let nat46 = nat46::measure(options, &mut yardstick)?;
            let tunnel = tunnel::measure(options, &mut yardstick)?;
            let mut sections = vec![yardstick.section(), siit, nat64, nat44, ds_lite, nat46, tunnel];
            if options.ten_million {
                sections.push(ten_million::measure(options)?);
            }
            Ok(sections)
        });
        measuring.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
