//! The latency of an upstream, and the timeout that follows from it (RFC 6298).

use core::time::Duration;

/// The bounds of a way of asking.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Before the first reply.
    pub(super) initial: Duration,
    pub(super) least: Duration,
    pub(super) most: Duration,
}

/// By datagrams: asking again too early costs a datagram, too late a client's patience.
pub(super) const DATAGRAM: Bounds = Bounds {
    initial: Duration::from_millis(400),
    least: Duration::from_millis(200),
    most: Duration::from_millis(1_500),
};

/// By stream: TCP repeats what was lost by itself, and a connection may have to be made first, with TLS.
pub(super) const STREAM: Bounds = Bounds {
    initial: Duration::from_millis(1_500),
    least: Duration::from_millis(1_000),
    most: Duration::from_millis(2_000),
};

/// SRTT and RTTVAR in nanoseconds. Each try has an ID of its own, so every reply is a true sample (RFC 6298 §3).
#[derive(Clone, Copy, Debug)]
pub(super) struct Latency {
    bounds: Bounds,
    smoothed: Option<u64>,
    variation: u64,
}

impl Latency {
    pub(super) const fn new(bounds: Bounds) -> Self {
        Self { bounds, smoothed: None, variation: 0 }
    }

    /// A reply came after this time (RFC 6298 §2.2, §2.3).
    pub(super) fn sample(&mut self, took: Duration) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX / 16);
        match self.smoothed {
            None => (self.smoothed, self.variation) = (Some(took), took / 2),
            Some(smoothed) => {
                self.variation = self.variation / 4 * 3 + smoothed.abs_diff(took) / 4;
                self.smoothed = Some(smoothed / 8 * 7 + took / 8);
            }
        }
    }

    /// SRTT.
    pub(super) fn smoothed(&self) -> Option<Duration> {
        self.smoothed.map(Duration::from_nanos)
    }

    /// RTO, doubled this number of times (RFC 6298 §5.5).
    pub(super) fn timeout(&self, doubled: u32) -> Duration {
        let waited = match self.smoothed {
            None => self.bounds.initial,
            Some(smoothed) => Duration::from_nanos(smoothed.saturating_add(self.variation.saturating_mul(4))),
        };
        let waited = waited.max(self.bounds.least) * (1 << doubled.min(4));
        waited.min(self.bounds.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn the_timeout_follows_what_replies_take() {
        let mut latency = Latency::new(DATAGRAM);
        assert_eq!((latency.smoothed(), latency.timeout(0)), (None, ms(400)));
        latency.sample(ms(300));
        assert_eq!((latency.smoothed(), latency.timeout(0)), (Some(ms(300)), ms(900)));
        (0..100).for_each(|_| latency.sample(ms(300)));
        assert!((ms(300)..ms(310)).contains(&latency.timeout(0)), "{:?}", latency.timeout(0));
        (0..100).for_each(|_| latency.sample(ms(1)));
        assert_eq!(latency.timeout(0), ms(200));
    }

    #[test]
    fn the_timeout_doubles_up_to_its_bound() {
        let latency = Latency::new(DATAGRAM);
        let waits: Vec<_> = (0..40).map(|doubled| latency.timeout(doubled)).collect();
        assert_eq!(waits[..4], [ms(400), ms(800), ms(1_500), ms(1_500)]);
        assert_eq!(waits[39], ms(1_500));
    }

    #[test]
    fn a_sample_of_any_size_does_no_harm() {
        let mut latency = Latency::new(DATAGRAM);
        for took in [Duration::MAX, Duration::ZERO, Duration::MAX] {
            latency.sample(took);
            assert!(latency.timeout(40) <= ms(1_500));
        }
    }
}
