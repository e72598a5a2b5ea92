//! Inter-packet delay variation (RFC 5481 §4.1, RFC 8219 §7.3.2): the difference of the delays of two successive packets of a stream.

use super::histogram::{Histogram, histogram};

/// The differences of one stream.
#[derive(Clone)]
pub(super) struct Differences {
    last: Option<u64>,
    /// Delays that grew or stayed, and those that shrank.
    more: Histogram,
    less: Histogram,
}

/// What is reported of them, in nanoseconds: negative if a delay was shorter than that before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variation {
    /// The least.
    pub least: f64,
    /// The median.
    pub median: f64,
    /// The greatest.
    pub greatest: f64,
}

impl Differences {
    pub(super) fn new() -> Self {
        Self { last: None, more: histogram(), less: histogram() }
    }

    /// Notes a packet that has come with this delay, in the order in which packets were sent.
    pub(super) fn note(&mut self, delay: u64) {
        if let Some(last) = self.last {
            match delay >= last {
                true => self.more.saturating_record(delay - last),
                false => self.less.saturating_record(last - delay),
            }
        }
        self.last = Some(delay);
    }

    /// `None` before the second packet.
    pub(super) fn variation(&self) -> Option<Variation> {
        let (less, more) = (self.less.len(), self.more.len());
        if less + more == 0 {
            return None;
        }
        let least = if less > 0 { -(self.less.max() as f64) } else { self.more.min() as f64 };
        let greatest = if more > 0 { self.more.max() as f64 } else { -(self.less.min() as f64) };
        let middle = (less + more).div_ceil(2);
        let median = match middle <= less {
            // The shrunken ones come first, the most shrunken of all at the front.
            true => -(self.less.value_at_quantile((less + 1 - middle) as f64 / less as f64) as f64),
            false => self.more.value_at_quantile((middle - less) as f64 / more as f64) as f64,
        };
        Some(Variation { least, median, greatest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipdv_is_the_difference_of_successive_delays() {
        let of = |delays: &[u64]| {
            let mut differences = Differences::new();
            delays.iter().for_each(|delay| differences.note(*delay));
            differences.variation()
        };
        assert_eq!(of(&[5]), None);
        // -30, 10, 40, 0, -10: sorted -30, -10, 0, 10, 40.
        let seen = of(&[100, 70, 80, 120, 120, 110]).unwrap();
        assert_eq!((seen.least, seen.median, seen.greatest), (-30.0, 0.0, 40.0));
        let falling = of(&[400, 300, 250, 240]).unwrap();
        assert_eq!((falling.least, falling.median, falling.greatest), (-100.0, -50.0, -10.0));
        let rising = of(&[10, 20, 50]).unwrap();
        assert_eq!((rising.least, rising.median, rising.greatest), (10.0, 10.0, 30.0));
    }
}
