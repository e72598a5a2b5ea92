//! Jitter as RTP receivers estimate it (RFC 3550 §6.4.1 and §A.8).

/// The estimate for one flow, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Jitter {
    /// Time of arrival less time of sending, of the last packet.
    transit: Option<i64>,
    estimate: f64,
    /// The sum of all estimates, one for each packet but the first.
    sum: f64,
    count: u64,
}

impl Jitter {
    /// Notes a packet: J(i) = J(i-1) + (|D(i-1,i)| - J(i-1)) / 16.
    pub fn note(&mut self, sent: u64, arrived: u64) {
        let transit = arrived.cast_signed().wrapping_sub(sent.cast_signed());
        if let Some(last) = self.transit {
            let difference = transit.wrapping_sub(last).unsigned_abs() as f64;
            self.estimate += (difference - self.estimate) / 16.0;
            self.sum += self.estimate;
            self.count += 1;
        }
        self.transit = Some(transit);
    }

    /// The mean of the estimates after each packet, as programs that show the jitter of a call print it; `None` before the second packet.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// The estimate; `None` before the first packet.
    pub fn nanoseconds(&self) -> Option<f64> {
        self.transit.map(|_| self.estimate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// §A.8 as the RFC has it, in integers: `s->jitter += d - ((s->jitter + 8) >> 4)`, which is sixteen times the estimate.
    fn of_the_rfc(trace: &[(u64, u64)]) -> f64 {
        let (mut jitter, mut last) = (0_i64, None);
        for (timestamp, arrival) in trace {
            let transit = *arrival as i64 - *timestamp as i64;
            if let Some(last) = last {
                let d: i64 = transit - last;
                jitter += d.abs() - ((jitter + 8) >> 4);
            }
            last = Some(transit);
        }
        jitter as f64 / 16.0
    }

    #[test]
    fn jitter_is_that_of_rfc3550_a8() {
        // Times of a call's first packets (20 ms apart) in nanoseconds, one lost, two that changed places.
        let transits = [
            310_500, 312_250, 309_000, 2_411_000, 315_000, 308_000, 402_000, 511_000, 350_000, 5_020_000,
            310_000, 311_000, 19_000_000, 310_000,
        ];
        let sent = [0, 1, 2, 4, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13].map(|number: u64| number * 20_000_000);
        let trace: Vec<_> =
            sent.iter().zip(transits).map(|(sent, transit)| (*sent, sent + transit)).collect();
        let mut jitter = Jitter::default();
        assert_eq!(jitter.nanoseconds(), None);
        trace.iter().for_each(|(sent, arrived)| jitter.note(*sent, *arrived));
        let (ours, expected) = (jitter.nanoseconds().unwrap(), of_the_rfc(&trace));
        assert!((ours - expected).abs() < 1.0, "{ours} and {expected} ns");
        assert!(expected > 1e6);
    }

    /// One late packet: the estimate rises by a sixteenth of 16 ms with it and with the next one, and falls afterwards.
    #[test]
    fn the_mean_is_that_of_all_estimates() {
        let mut jitter = Jitter::default();
        for (number, late) in [0, 0, 16, 0, 0].into_iter().enumerate() {
            let sent = number as u64 * 20_000_000;
            jitter.note(sent, sent + late * 1_000_000);
            assert_eq!(jitter.mean().is_some(), number > 0);
        }
        let (first, second) = (1e6, 1e6 + 15.0 * 1e6 / 16.0);
        let third = second * 15.0 / 16.0;
        assert!((jitter.nanoseconds().unwrap() - third).abs() < 1.0);
        assert!((jitter.mean().unwrap() - (first + second + third) / 4.0).abs() < 1.0, "{jitter:?}");
    }

    #[test]
    fn a_constant_transit_time_has_no_jitter() {
        let mut jitter = Jitter::default();
        (0..100).for_each(|number| jitter.note(number * 1_000, number * 1_000 + 77));
        assert_eq!(jitter.nanoseconds(), Some(0.0));
    }
}
