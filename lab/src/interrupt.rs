//! Ctrl-C, SIGTERM and SIGHUP set a flag, which every wait of the lab checks, so that the guards clean up in every case.

use crate::failure::{Asking as _, Failure, Result};
use crate::observer;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Watches the signals from here on; calling it again changes nothing.
pub fn watch() -> Result<()> {
    if ASKED.get().is_some() {
        return Ok(());
    }
    let flag = Arc::new(AtomicBool::new(false));
    if ASKED.set(Arc::clone(&flag)).is_err() {
        return Ok(());
    }
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&flag))
            .asking(|| "watching for signals".to_owned())?;
    }
    Ok(())
}

/// [`Failure::Interrupted`] once a signal has come.
pub fn check() -> Result<()> {
    match ASKED.get() {
        Some(flag) if flag.load(Ordering::Relaxed) => Err(Failure::Interrupted),
        _ => Ok(()),
    }
}

/// Waits until `ready` holds, for `limit` at most; checks every few milliseconds. The error names `what`.
pub fn wait_until(limit: Duration, what: &str, mut ready: impl FnMut() -> Result<bool>) -> Result<()> {
    let start = Instant::now();
    while !ready()? {
        check()?;
        if start.elapsed() > limit {
            observer::tell(|observer| observer.timed_out());
            return Err(Failure::TimedOut(format!("{what} did not happen within {limit:?}")));
        }
        std::thread::sleep(Duration::from_millis(3));
    }
    Ok(())
}

/// Lets time pass, unless a signal comes.
pub fn pause(time: Duration) -> Result<()> {
    let start = Instant::now();
    while start.elapsed() < time {
        check()?;
        std::thread::sleep((time.saturating_sub(start.elapsed())).min(Duration::from_millis(20)));
    }
    Ok(())
}
