//! The programs' clock: ticks of 2^20 ns of CLOCK_MONOTONIC, in 32 bits.

use crate::layout::TICK_SHIFT;
use sixway_dataplane::Instant;
use std::time::Duration;

/// The time since the machine started, as `bpf_ktime_get_coarse_ns` says it; sleep is not counted.
pub(crate) fn monotonic() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a timespec, valid for the call. It cannot fail: every kernel since 2.6.32 has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The time in ticks.
pub(crate) fn now() -> u32 {
    ticks(monotonic()) as u32
}

/// A duration in ticks, rounded down.
pub(crate) const fn ticks(time: Duration) -> u64 {
    (time.as_nanos() >> TICK_SHIFT) as u64
}

/// Ticks as a duration.
pub(crate) const fn duration(ticks: u32) -> Duration {
    Duration::from_nanos((ticks as u64) << TICK_SHIFT)
}

/// Ticks that passed since `earlier`; zero if that lies in the future. They wrap after 52 days.
pub(crate) fn since(now: u32, earlier: u32) -> u32 {
    let passed = now.wrapping_sub(earlier);
    if passed > u32::MAX / 2 { 0 } else { passed }
}

/// What an engine's instants are in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch {
    /// The engine's epoch on CLOCK_MONOTONIC; the sum wraps if it began before the machine did.
    start: u64,
}

impl Epoch {
    /// The epoch of a clock that says `now`.
    pub fn of(now: Instant) -> Self {
        Self { start: nanoseconds().wrapping_sub(now.0) }
    }

    /// The tick of an instant.
    pub fn tick(self, instant: Instant) -> u32 {
        (self.start.wrapping_add(instant.0) >> TICK_SHIFT) as u32
    }

    /// The instant of a tick of the last 24 days.
    pub fn instant(self, tick: u32) -> Instant {
        let now = nanoseconds();
        let passed = u64::from(since((now >> TICK_SHIFT) as u32, tick));
        let then = ((now >> TICK_SHIFT).saturating_sub(passed)) << TICK_SHIFT;
        Instant(u64::try_from(then.wrapping_sub(self.start).cast_signed()).unwrap_or(0))
    }
}

fn nanoseconds() -> u64 {
    monotonic().as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_becomes_the_instant_that_the_engine_knows() {
        let epoch = Epoch::of(Instant::from_secs(1_000));
        let then = epoch.instant(now().wrapping_sub(ticks(Duration::from_secs(10)) as u32));
        assert!((989..=991).contains(&then.as_secs()), "{then:?}");
        assert!(since(epoch.tick(Instant::from_secs(1_000)), epoch.tick(then)).abs_diff(9_537) < 3);
        assert!(epoch.instant(now().wrapping_add(5)) <= Instant::from_secs(1_001), "the future is now");
        let young = Epoch::of(Instant(5));
        assert_eq!(young.instant(now().wrapping_sub(1_000)), Instant(0), "before the epoch");
    }

    #[test]
    fn ticks_wrap() {
        assert_eq!(since(5, u32::MAX), 6);
        assert_eq!(since(5, 6), 0);
    }
}
