//! The CPU time of this thread for a piece of work.

use crate::failure::{Asking as _, Result};
use nix::sys::resource::{UsageWho, getrusage};
use std::time::Duration;

/// How long some work takes, and whether it had the CPU all the time.
pub fn undisturbed(work: impl FnOnce()) -> Result<(Duration, bool)> {
    let switches = involuntary_switches()?;
    let start = std::time::Instant::now();
    work();
    let elapsed = start.elapsed();
    Ok((elapsed, involuntary_switches()? == switches))
}

/// How often the kernel took the CPU from this thread.
fn involuntary_switches() -> Result<i64> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).asking(|| "getrusage".to_owned())?;
    Ok(usage.involuntary_context_switches())
}
