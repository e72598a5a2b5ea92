//! The control between two measurements: a fixed piece of work, whose time shows what else the machine does.

use crate::failure::{Failure, Result};
use crate::probe::cpu::pin_thread;
use std::hint::black_box;
use std::time::Instant;

/// Steps of arithmetic, each of which needs the one before: about 3 ms in an optimised build.
const STEPS: u32 = 2_000_000;

/// Milliseconds that a fixed piece of work takes on this CPU, or on any.
///
/// # Errors
/// The CPU does not exist.
pub fn fixed_work(cpu: Option<usize>) -> Result<f64> {
    let work = move || {
        cpu.map_or(Ok(()), pin_thread)?;
        let start = Instant::now();
        let mut value = 1_u64;
        for _ in 0..STEPS {
            value = black_box(value.wrapping_mul(0x5851_f42d_4c95_7f2d).rotate_left(17));
        }
        black_box(value);
        Ok(start.elapsed().as_secs_f64() * 1e3)
    };
    let done = std::thread::spawn(work).join();
    done.unwrap_or_else(|_| Err(Failure::Unexpected("the control measurement panicked".to_owned())))
}
