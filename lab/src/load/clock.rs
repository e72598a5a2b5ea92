//! The clock of loads: CLOCK_MONOTONIC in nanoseconds, which is `bpf_ktime_get_ns` in the kernel. It is the same in all namespaces of a machine.

use std::time::Duration;

/// Nanoseconds since the machine started.
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec to a place that holds one.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Sleeps until this time, or until a signal comes; not at all if it has passed.
pub fn sleep_until(due: u64) {
    let time = libc::timespec {
        tv_sec: (due / 1_000_000_000).cast_signed(),
        tv_nsec: (due % 1_000_000_000).cast_signed(),
    };
    // SAFETY: the kernel reads one timespec from where one lies, and writes nothing, for the remaining time of an absolute sleep is not given.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const time,
            std::ptr::null_mut(),
        )
    };
}

/// Lets this thread's sleeps end when they should: the kernel adds up to 50 µs otherwise.
pub fn sleep_exactly() {
    // SAFETY: PR_SET_TIMERSLACK takes a number, and no memory.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// A time in nanoseconds.
pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_does_not_end_before_its_time() {
        sleep_exactly();
        let due = now() + 2_000_000;
        sleep_until(due);
        assert!(now() >= due);
        sleep_until(due);
    }
}
