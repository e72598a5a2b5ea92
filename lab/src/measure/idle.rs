//! How busy a core is, whatever keeps it busy: a loop on it runs only when nothing else does, and reads the clock all the time. The missing
//! time was used by others: programs, interrupts and the kernel's work on received packets, which ticks see only by chance, and the
//! hypervisor.
//!
//! It needs no calibration: most steps of the loop are not interrupted, and so the median step is the length of one. The core does not sleep meanwhile,
//! which makes response times shorter; so it is not used where they are measured.

use crate::affinity::pin_thread;
use crate::failure::{Failure, Result};
use crate::load::{clock, only_when_idle, thread_cpu};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Steps of up to this many nanoseconds are counted by their length.
const SHORT: usize = 2_048;
/// A step of this many times the median, and more, was interrupted.
const INTERRUPTED: usize = 6;

/// A loop at work on a core. It ends when it is dropped.
pub struct Soak {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Soaked>>>,
}

/// What a loop has seen.
#[derive(Clone, Copy, Debug)]
pub struct Soaked {
    /// Share of the time in which the core did something else, 0 to 1.
    pub busy: f64,
    /// CPU time that the kernel ascribes to the loop: it has interrupts in it.
    pub cpu: Duration,
    /// How long it ran.
    pub took: Duration,
    /// Nanoseconds of a step of the loop.
    pub step: u64,
}

impl Soak {
    /// Starts it.
    ///
    /// # Errors
    /// The core does not exist.
    pub fn start(core: usize) -> Result<Self> {
        let ended = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            pin_thread(core)?;
            only_when_idle()?;
            Ok(soak(&end))
        });
        Ok(Self { ended, thread: Some(thread) })
    }

    /// Ends it.
    ///
    /// # Errors
    /// It could not run.
    pub fn end(mut self) -> Result<Soaked> {
        self.ended.store(true, Ordering::Relaxed);
        let thread = self.thread.take().map(JoinHandle::join);
        let panicked = || Failure::Unexpected("the loop on the device's core panicked".to_owned());
        thread.ok_or_else(panicked)?.map_err(|_| panicked())?
    }
}

impl Drop for Soak {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

fn soak(ended: &AtomicBool) -> Soaked {
    let mut steps = Steps::default();
    let (start, cpu) = (clock::now(), thread_cpu());
    let mut last = start;
    while !ended.load(Ordering::Relaxed) {
        let now = clock::now();
        steps.note(now - last);
        last = now;
    }
    let (busy, step) = steps.busy();
    let took = Duration::from_nanos(last - start);
    Soaked { busy, cpu: thread_cpu().saturating_sub(cpu), took, step }
}

/// The steps of a loop by their length.
struct Steps {
    short: Box<[u64; SHORT]>,
    /// Longer ones: how many, and their time.
    long: (u64, u64),
}

impl Default for Steps {
    fn default() -> Self {
        Self { short: Box::new([0; SHORT]), long: (0, 0) }
    }
}

impl Steps {
    fn note(&mut self, nanoseconds: u64) {
        match usize::try_from(nanoseconds).ok().and_then(|at| self.short.get_mut(at)) {
            Some(count) => *count += 1,
            None => self.long = (self.long.0 + 1, self.long.1 + nanoseconds),
        }
    }

    /// Share of the time that was lost, and the length of a step that was not interrupted: of each one that was, that length was the loop's.
    fn busy(&self) -> (f64, u64) {
        let count = self.short.iter().sum::<u64>() + self.long.0;
        let mut half = count / 2;
        let median = self.short.iter().position(|steps| {
            let is_here = half < *steps;
            half = half.saturating_sub(*steps);
            is_here
        });
        let median = median.unwrap_or(SHORT);
        let limit = (median * INTERRUPTED).min(SHORT);
        let time = |lengths: std::ops::Range<usize>| -> u64 {
            lengths.filter_map(|at| Some(at as u64 * self.short.get(at)?)).sum()
        };
        let interrupted = self.short.iter().skip(limit).sum::<u64>() + self.long.0;
        let all = time(0..SHORT) + self.long.1;
        let lost = (all - time(0..limit)).saturating_sub(interrupted * median as u64);
        (lost as f64 / all.max(1) as f64, median as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn what_was_lost_is_what_steps_have_more_than_others() {
        let mut steps = Steps::default();
        (0..10_000).for_each(|_| steps.note(30));
        assert_eq!(steps.busy(), (0.0, 30));
        // Ten interrupts of 1 µs each, and 0.3 ms of another program.
        (0..10).for_each(|_| steps.note(1_030));
        steps.note(300_030);
        let busy = steps.busy().0;
        assert!((busy - 310_000.0 / 610_330.0).abs() < 1e-9, "{busy}");
    }

    /// Others of this machine may take the core, too: what is compared with is what the kernel did not ascribe to the loop.
    #[test]
    fn a_busy_core_is_seen_by_its_lost_cycles() {
        let core = crate::affinity::cpus() - 1;
        let sees = |share: f64| {
            let ended = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    pin_thread(core).unwrap();
                    while !ended.load(Ordering::Relaxed) {
                        let start = Instant::now();
                        while start.elapsed() < Duration::from_micros((share * 1e4) as u64) {}
                        std::thread::sleep(Duration::from_micros(((1.0 - share) * 1e4) as u64));
                    }
                });
                let soak = Soak::start(core).unwrap();
                std::thread::sleep(Duration::from_millis(400));
                let soaked = soak.end().unwrap();
                ended.store(true, Ordering::Relaxed);
                let ascribed = 1.0 - soaked.cpu.as_secs_f64() / soaked.took.as_secs_f64();
                (soaked.busy - ascribed).abs() < 0.02 && soaked.busy > share - 0.1
            })
        };
        for share in [0.3, 0.6, 0.9] {
            assert!((0..20).any(|_| sees(share)), "{share}");
        }
    }
}
