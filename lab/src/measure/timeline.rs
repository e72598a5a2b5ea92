//! CPU time over time: its mean and how much it varies.

use crate::failure::{Failure, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A reading that is repeated while something is measured. It ends when it is dropped.
pub struct Timeline {
    every: Duration,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Vec<f64>>>>,
}

/// What was read: CPU time spent in a second, 1 is one core.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuOverTime {
    /// Its mean.
    pub mean: f64,
    /// Its standard deviation over the intervals.
    pub sd: f64,
    /// How many intervals.
    pub n: usize,
}

impl Timeline {
    /// Reads a CPU time, such as that of a process, at each end of intervals of this length.
    pub fn start(every: Duration, read: impl Fn() -> Result<Duration> + Send + 'static) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            let mut shares = Vec::new();
            let mut before = (Instant::now(), read()?);
            while !end.load(Ordering::Relaxed) {
                std::thread::sleep(every);
                let now = (Instant::now(), read()?);
                let spent = now.1.saturating_sub(before.1).as_secs_f64();
                shares.push(spent / now.0.duration_since(before.0).as_secs_f64().max(1e-9));
                before = now;
            }
            Ok(shares)
        });
        Self { every, ended, thread: Some(thread) }
    }

    /// Ends it; intervals that were not over after this time do not count.
    ///
    /// # Errors
    /// What was read is gone.
    pub fn end(mut self, active: Duration) -> Result<CpuOverTime> {
        self.ended.store(true, Ordering::Relaxed);
        let panicked = || Failure::Unexpected("a timeline panicked".to_owned());
        let thread = self.thread.take().map(JoinHandle::join);
        let shares = thread.ok_or_else(panicked)?.map_err(|_| panicked())??;
        let over = (active.as_secs_f64() / self.every.as_secs_f64().max(1e-9)) as usize;
        Ok(over_time(shares.get(..over).unwrap_or(&shares)))
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

fn over_time(shares: &[f64]) -> CpuOverTime {
    let n = shares.len();
    let mean = shares.iter().sum::<f64>() / n.max(1) as f64;
    let squares: f64 = shares.iter().map(|share| (share - mean).powi(2)).sum();
    CpuOverTime { mean, sd: (squares / n.saturating_sub(1).max(1) as f64).sqrt(), n }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn what_varies_has_a_mean_and_a_deviation() {
        let seen = over_time(&[0.2, 0.4, 0.6]);
        assert!((seen.mean - 0.4).abs() < 1e-9 && (seen.sd - 0.2).abs() < 1e-9 && seen.n == 3);
        assert_eq!(over_time(&[]), CpuOverTime::default());
    }

    #[test]
    fn intervals_follow_each_other_until_the_end() {
        let spent = AtomicU64::new(0);
        let read = move || Ok(Duration::from_millis(spent.fetch_add(1, Ordering::Relaxed)));
        let timeline = Timeline::start(Duration::from_millis(2), read);
        std::thread::sleep(Duration::from_millis(30));
        let seen = timeline.end(Duration::from_secs(1)).unwrap();
        assert!(seen.n >= 1 && seen.mean > 0.0 && seen.mean < 0.6, "{seen:?}");
        let timeline = Timeline::start(Duration::from_millis(2), || Ok(Duration::ZERO));
        std::thread::sleep(Duration::from_millis(30));
        assert!(timeline.end(Duration::from_millis(3)).unwrap().n <= 1, "a wait at the end does not count");
        let gone = Timeline::start(Duration::from_millis(1), || Err(Failure::Unexpected("gone".to_owned())));
        assert!(gone.end(Duration::from_secs(1)).is_err());
    }
}
