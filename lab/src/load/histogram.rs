//! Histograms of times.

/// Times in nanoseconds, with three significant digits.
pub type Histogram = hdrhistogram::Histogram<u64>;

/// A histogram of times in nanoseconds from 1 to 100 s; longer ones are recorded as that.
pub fn histogram() -> Histogram {
    match Histogram::new_with_bounds(1, 100_000_000_000, 3) {
        Ok(histogram) => histogram,
        Err(error) => unreachable!("the bounds are constants that the library admits: {error:?}"),
    }
}
