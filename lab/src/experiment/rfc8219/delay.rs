//! Latency and delay variation from the times of single frames (RFC 8219 §7.2, §7.3).

use crate::load::Histogram;

/// Latencies in nanoseconds, summarised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delay {
    /// Typical latency: the median.
    pub typical: f64,
    /// Worst-case latency: the 99.9th percentile.
    pub worst: f64,
    /// Packet delay variation (§7.3.1): the 99.9th percentile less the least.
    pub variation: f64,
}

/// Of a stream's latencies, in milliseconds.
pub fn delay(latency: &Histogram) -> Delay {
    let at = |quantile| latency.value_at_quantile(quantile) as f64 / 1e6;
    Delay { typical: at(0.5), worst: at(0.999), variation: at(0.999) - at(0.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::histogram;

    #[test]
    fn latency_and_its_variation_are_those_of_rfc8219() {
        let mut latency = histogram();
        (0..10_000_u64).for_each(|number| {
            let microseconds = match number {
                0..10 => 5_000,
                10..5_500 => 30,
                _ => 20,
            };
            latency.saturating_record(microseconds * 1_000);
        });
        let delay = delay(&latency);
        assert!((delay.typical - 0.03).abs() < 0.001 && (delay.worst - 0.03).abs() < 0.001, "{delay:?}");
        assert!((delay.variation - 0.01).abs() < 0.001, "{delay:?}");
        latency.saturating_record(5_000_000);
        (0..2).for_each(|_| latency.saturating_record(5_000_000));
        assert!(super::delay(&latency).worst > 4.9);
    }
}
