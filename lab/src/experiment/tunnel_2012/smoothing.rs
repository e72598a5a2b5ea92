//! The paper's smoothed round-trip time.

/// The paper's values of a, with the end of the value's name.
pub const SMOOTHED: [(&str, f64); 2] = [("smoothed-half", 0.5), ("smoothed-seven-eighths", 0.875)];

/// RTT' = a · RTT_old + (1 − a) · RTT_new over times in their order, from the first one on; the last value.
pub fn smoothed(times: &[f64], a: f64) -> Option<f64> {
    times.iter().copied().reduce(|old, new| a * old + (1.0 - a) * new)
}

/// The times of `ping`, in milliseconds and in their order.
pub fn times(said: &str) -> Vec<f64> {
    let time = |line: &str| line.split_once("time=")?.1.split_whitespace().next()?.parse().ok();
    said.lines().filter_map(time).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smoothing_is_the_papers() {
        assert_eq!(smoothed(&[], 0.5), None);
        assert_eq!(smoothed(&[4.0], 0.875), Some(4.0));
        assert_eq!(smoothed(&[4.0, 2.0, 1.0], 0.5), Some(2.0));
        assert_eq!(smoothed(&[8.0, 0.0], 0.875), Some(7.0));
    }

    #[test]
    fn times_stay_in_their_order() {
        let said = "64 bytes from ::1: icmp_seq=1 ttl=64 time=0.090 ms\n64 bytes from ::1: icmp_seq=2 time=0.030 ms\n";
        assert_eq!(times(said), [0.09, 0.03]);
    }
}
