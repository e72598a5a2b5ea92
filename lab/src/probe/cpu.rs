//! CPU time by process, and by CPU.

use crate::affinity::threads;
pub use crate::affinity::{cpus, pin_process, pin_process_to, pin_thread, unpin_process};
use crate::failure::{Asking as _, Failure, Result};
use std::time::Duration;

/// CPU time that a process has spent in all its threads, the kernel's work on their behalf included.
pub fn process_cpu(id: u32) -> Result<Duration> {
    let mut nanoseconds = 0;
    for thread in threads(id)? {
        let path = format!("/proc/{id}/task/{thread}/schedstat");
        let said = std::fs::read_to_string(&path).unwrap_or_default();
        nanoseconds += said.split_whitespace().next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// A process, all that it started, and what these started; those that end meanwhile are left out.
///
/// # Errors
/// The process is gone.
pub fn family(id: u32) -> Result<Vec<u32>> {
    let mut all = vec![id];
    for thread in threads(id)? {
        let path = format!("/proc/{id}/task/{thread}/children");
        let said = std::fs::read_to_string(path).unwrap_or_default();
        for child in said.split_whitespace().filter_map(|word| word.parse().ok()) {
            all.extend(family(child).unwrap_or_default());
        }
    }
    Ok(all)
}

/// CPU time that a process and all that it started have spent.
///
/// # Errors
/// The process is gone.
pub fn family_cpu(id: u32) -> Result<Duration> {
    let children = family(id)?.into_iter().skip(1).filter_map(|child| process_cpu(child).ok());
    Ok(process_cpu(id)? + children.sum::<Duration>())
}

/// CPU time that the thread of a QEMU guest's only CPU has spent, if the process is one. A CPU that waits spends nothing.
///
/// # Errors
/// The process is gone.
pub fn virtual_cpu(id: u32) -> Result<Option<Duration>> {
    let read = |thread: i32, file: &str| std::fs::read_to_string(format!("/proc/{id}/task/{thread}/{file}"));
    let is_cpu = |thread: &i32| read(*thread, "comm").is_ok_and(|name| name.starts_with("CPU 0/"));
    let Some(thread) = threads(id)?.into_iter().find(is_cpu) else { return Ok(None) };
    let said = read(thread, "schedstat").unwrap_or_default();
    Ok(said.split_whitespace().next().and_then(|word| word.parse().ok()).map(Duration::from_nanos))
}

/// CPU time that the kernel's own threads for received packets have spent (ksoftirqd): what does not fit into the time of the running thread.
pub fn receiving_cpu() -> Result<Duration> {
    let entries = std::fs::read_dir("/proc").asking(|| "reading /proc".to_owned())?;
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_receiving = |id: &u32| {
        std::fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|name| name.starts_with("ksoftirqd/"))
    };
    numbers.filter(is_receiving).map(process_cpu).sum()
}

/// CPU time that the whole machine has spent on anything but waiting; a tick of 10 ms is the finest step.
pub fn machine_cpu() -> Result<Duration> {
    let said = std::fs::read_to_string("/proc/stat").asking(|| "reading /proc/stat".to_owned())?;
    busy_ticks(&said)
        .map(|ticks| Duration::from_millis(ticks * 10))
        .ok_or_else(|| Failure::Unexpected("no line for all CPUs in /proc/stat".to_owned()))
}

/// user, nice, system, irq and softirq of the first line.
fn busy_ticks(stat: &str) -> Option<u64> {
    let figures: Vec<u64> =
        stat.lines().next()?.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
    Some([0, 1, 2, 5, 6].iter().filter_map(|at| figures.get(*at)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_waiting_are_left_out() {
        assert_eq!(busy_ticks("cpu  1 2 4 1000 2000 8 16 4000 0 0\ncpu0 9 9 9\n"), Some(31));
    }

    #[test]
    fn this_process_spends_cpu_time() {
        // Another test's thread that ends takes its time with it.
        let spends = || {
            let before = process_cpu(std::process::id()).unwrap();
            let start = std::time::Instant::now();
            while start.elapsed() < Duration::from_millis(20) {}
            process_cpu(std::process::id()).unwrap() > before
        };
        assert!((0..50).any(|_| spends()));
        assert!(machine_cpu().unwrap() > Duration::ZERO);
    }
}
