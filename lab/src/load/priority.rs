//! Scheduling policies.

use crate::failure::{Asking as _, Result};

/// Lets this thread run only when its CPU has nothing else to do (SCHED_IDLE).
///
/// # Errors
/// The kernel refuses.
pub fn only_when_idle() -> Result<()> {
    schedule(0, libc::SCHED_IDLE, 0).asking(|| "SCHED_IDLE".to_owned())
}

/// Lets a thread, such as one of the kernel's, run before all ordinary ones (SCHED_FIFO).
///
/// # Errors
/// It is gone, or the kernel refuses.
pub fn before_all_others(thread: i32) -> Result<()> {
    schedule(thread, libc::SCHED_FIFO, 1).asking(|| format!("SCHED_FIFO for {thread}"))
}

fn schedule(thread: i32, policy: i32, priority: i32) -> std::io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the kernel reads one sched_param from where one lies.
    let done = unsafe { libc::sched_setscheduler(thread, policy, &raw const parameters) };
    if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
