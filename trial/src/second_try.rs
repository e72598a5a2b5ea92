//! A second try, alone, for a test that failed next to others.
//!
//! Interop tests judge real programs by packets that come back in time, and a machine with six of them on two CPUs may be late. So a test that
//! failed runs again with nothing next to it. If it fails again, it has failed. If it passes, it has passed, and is reported as unsteady, with
//! what the first try said. Only [`MOST`] of a run may be unsteady: a fault that shows itself now and then fails sooner or later, and one that
//! shows itself always fails twice.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Tests of a run that may have a second try.
const MOST: usize = 3;

/// The second tries of a run.
#[derive(Debug, Default)]
pub struct SecondTries(AtomicUsize);

impl SecondTries {
    /// The outcome of a test whose first try ended like this.
    pub fn after(
        &self,
        name: &str,
        first: Result<(), String>,
        again: impl FnOnce() -> Result<(), String>,
    ) -> Result<(), String> {
        let Err(why) = first else { return Ok(()) };
        if self.0.fetch_add(1, Ordering::Relaxed) >= MOST {
            return Err(format!("{why}\n(no second try: {MOST} other tests had one)"));
        }
        again().map_err(|second| format!("{why}\nthe second time, alone: {second}"))?;
        // The tally reads this line.
        println!("unsteady: {name}: {}", why.lines().next().unwrap_or_default());
        Ok(())
    }
}

/// Runs a test; a panic is a failure with its message.
pub fn attempt(test: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(test)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        Err(text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing(why: &str) -> Result<(), String> {
        Err(why.to_owned())
    }

    #[test]
    fn a_test_that_passes_has_one_try() {
        assert_eq!(SecondTries::default().after("a", Ok(()), || unreachable!()), Ok(()));
    }

    #[test]
    fn a_test_that_fails_twice_has_failed_and_says_both_reasons() {
        let said = SecondTries::default().after("a", failing("one"), || failing("two"));
        assert_eq!(said, failing("one\nthe second time, alone: two"));
    }

    #[test]
    fn after_some_second_tries_a_failure_is_one() {
        let tries = SecondTries::default();
        for _ in 0..MOST {
            assert_eq!(tries.after("a", failing("one"), || Ok(())), Ok(()));
        }
        let said = tries.after("a", failing("one"), || unreachable!());
        assert!(said.unwrap_err().starts_with("one\n(no second try"));
    }

    #[test]
    fn a_panic_is_a_failure_with_its_message() {
        assert_eq!(attempt(|| panic!("lost {}", 1)), failing("lost 1"));
        assert_eq!(attempt(|| panic!("lost")), failing("lost"));
        assert_eq!(attempt(|| Ok(())), Ok(()));
    }
}
