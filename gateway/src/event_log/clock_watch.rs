//! Whether the wall clock was set: it is compared with the clock that runs evenly.

use sixway_dataplane::Instant;

/// A clock that moves by more than this was set, in microseconds; what adjusts it slowly moves it by less between two looks.
const STEP: u64 = 1_000_000;

/// What the wall clock is ahead of the even one, in microseconds.
#[derive(Debug, Default)]
pub(super) struct ClockWatch {
    ahead: Option<i128>,
}

impl ClockWatch {
    /// A look at both: `wall` is microseconds since 1970. By how many microseconds the clock was set since the last look, if it was.
    pub(super) fn look(&mut self, now: Instant, wall: u64) -> Option<i64> {
        let ahead = i128::from(wall) - i128::from(now.0 / 1_000);
        let before = self.ahead.replace(ahead)?;
        let by = ahead - before;
        (by.unsigned_abs() > u128::from(STEP)).then(|| {
            let most = if by < 0 { i64::MIN } else { i64::MAX };
            i64::try_from(by).unwrap_or(most)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_is_noticed_and_one_that_is_adjusted_slowly_is_not() {
        let mut watch = ClockWatch::default();
        let mut look = |seconds: u64, wall: u64| watch.look(Instant::from_secs(seconds), wall * 1_000_000);
        assert_eq!(look(1, 5_000), None, "the first look has nothing to compare");
        assert_eq!(look(101, 5_100), None);
        assert_eq!(look(102, 5_102), None, "a second is not too much");
        assert_eq!(look(103, 5_102), None);
        assert_eq!(look(104, 8_703), Some(3_600_000_000));
        assert_eq!(look(105, 8_704), None, "it is noticed once");
        assert_eq!(look(106, 8_703), Some(-2_000_000));
    }
}
