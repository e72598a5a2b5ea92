//! Faults of the PCP server: it restarts after a panic, while the workers translate and the NAT keeps the mappings.
//!
//! ```text
//!     run ──panic──▶ pause (1 s, doubled up to 64 s) ──▶ restart ──────▶ run
//!      │  ──error──▶ pause                            ───────────────▶ run
//!      └──the end──▶
//! ```

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// The pause after the first fault: each is twice the previous one, …
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// … up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(64);
/// After this time without a fault, the next one is a first one.
const CALM: Duration = Duration::from_secs(600);

/// The end of the last run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Why it failed.
    pub(super) why: String,
    /// Whether it panicked, so that its state may be damaged.
    pub(super) panicked: bool,
}

/// The faults so far.
#[derive(Debug, Default)]
pub(super) struct Faults {
    count: u64,
    pause: Option<Duration>,
}

impl Faults {
    /// How many there were.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// Runs once: `Ok`, it is the end.
    ///
    /// # Errors
    /// The fault, and how long to wait before the next run.
    pub(super) fn watch(&mut self, run: impl FnOnce() -> io::Result<()>) -> Result<(), (Fault, Duration)> {
        let began = Instant::now();
        let fault = match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => Fault { why: error.to_string(), panicked: false },
            Err(_) => Fault {
                why: "it panicked; this is a defect of sixway, please report it".into(),
                panicked: true,
            },
        };
        Err((fault, self.note(began.elapsed())))
    }

    /// Records a fault after a run of this duration. Returns the pause.
    fn note(&mut self, ran: Duration) -> Duration {
        self.count += 1;
        let before = self.pause.filter(|_| ran < CALM);
        let pause = before.map_or(FIRST_PAUSE, |before| (before * 2).min(LONGEST_PAUSE));
        self.pause = Some(pause);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pauses_double_up_to_a_bound_and_begin_again_after_a_calm_time() {
        let mut faults = Faults::default();
        let pauses: Vec<_> = (0..8).map(|_| faults.note(Duration::from_millis(5)).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 64]);
        assert_eq!((faults.note(CALM), faults.count()), (FIRST_PAUSE, 9));
    }

    #[test]
    fn a_panic_is_caught_and_an_error_is_none() {
        let mut faults = Faults::default();
        assert_eq!(faults.watch(|| Ok(())), Ok(()));
        let (error, _) = faults.watch(|| Err(io::ErrorKind::OutOfMemory.into())).unwrap_err();
        assert!(!error.panicked && error.why.contains("memory"), "{error:?}");
        let (panic, pause) = faults.watch(|| panic!("of a test")).unwrap_err();
        assert!(panic.panicked && panic.why.contains("panicked"), "{panic:?}");
        assert_eq!((faults.count(), pause), (2, Duration::from_secs(2)));
    }
}
