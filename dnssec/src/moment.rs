//! A point in time, given by the caller: a validator has no clock.

use std::time::Duration;

/// A point in time, by two clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Of a clock that never steps, since an epoch that the caller chose: what was found is kept by it.
    pub monotonic: Duration,
    /// Unix time, in seconds: signatures are valid by it.
    pub wall: u64,
}
