//! The current time, an argument of each call: a validator has no clock.

use std::time::Duration;

/// The current time, by two clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CurrentTime {
    /// Of a clock that never steps, since an epoch that the caller chose: lifetimes of stored results are measured by it.
    pub monotonic: Duration,
    /// Unix time, in seconds: the validity of signatures is checked by it.
    pub wall: u64,
}
