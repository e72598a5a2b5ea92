//! Means of repetitions, with confidence intervals.

use crate::terminal::median;

/// Student's t for a two-sided interval of 95 %, by degrees of freedom from 1 to 30; beyond, the normal distribution's is used.
const T95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
const NORMAL95: f64 = 1.960;

/// A mean of repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the width of the mean's 95 % confidence interval; `None` for fewer than two repetitions.
    pub half_width: Option<f64>,
    /// Repetitions.
    pub n: usize,
}

/// The mean of repetitions and its confidence interval; `None` without any.
pub fn estimate(repetitions: &[f64]) -> Option<Estimate> {
    let n = repetitions.len();
    if n == 0 {
        return None;
    }
    let mean = repetitions.iter().sum::<f64>() / n as f64;
    if n == 1 {
        return Some(Estimate { mean, half_width: None, n });
    }
    let freedom = n - 1;
    let variance = repetitions.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / freedom as f64;
    let t = T95.get(freedom - 1).copied().unwrap_or(NORMAL95);
    Some(Estimate { mean, half_width: Some(t * (variance / n as f64).sqrt()), n })
}

/// The median of repetitions, with what lies around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Middle {
    /// The median; of an even number the mean of the two in the middle.
    pub median: f64,
    /// The 1st percentile.
    pub low: f64,
    /// The 99th percentile.
    pub high: f64,
    /// Repetitions.
    pub n: usize,
}

/// The median of repetitions and their 1st and 99th percentiles (RFC 8219 §12), each the least value that at least as many percent are not above
/// (RFC 2330 §11.3); `None` without any.
pub fn middle(repetitions: &[f64]) -> Option<Middle> {
    let mut sorted = repetitions.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let percentile = |percent: usize| sorted.get((percent * n).div_ceil(100).max(1) - 1).copied();
    Some(Middle { median: median(repetitions), low: percentile(1)?, high: percentile(99)?, n })
}

/// The mean of one group of repetitions less that of another one, with its 95 % confidence interval (Welch's t); `n` is the size of the smaller
/// group. `None` if a group has fewer than two.
pub fn difference(more: &[f64], less: &[f64]) -> Option<Estimate> {
    let squared_error = |repetitions: &[f64]| {
        let n = repetitions.len();
        let mean = repetitions.iter().sum::<f64>() / n as f64;
        let variance = repetitions.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n as f64 - 1.0);
        (n >= 2).then_some((mean, variance / n as f64, n))
    };
    let ((a, error_a, n_a), (b, error_b, n_b)) = (squared_error(more)?, squared_error(less)?);
    let error = error_a + error_b;
    // Welch and Satterthwaite; without any variance the smaller group's.
    let parts = error_a.powi(2) / (n_a as f64 - 1.0) + error_b.powi(2) / (n_b as f64 - 1.0);
    let smallest = n_a.min(n_b) - 1;
    let freedom = if parts > 0.0 { (error.powi(2) / parts).floor() as usize } else { smallest };
    let t = T95.get(freedom.max(1) - 1).copied().unwrap_or(NORMAL95);
    Some(Estimate { mean: a - b, half_width: Some(t * error.sqrt()), n: n_a.min(n_b) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_least_value_that_as_many_are_not_above() {
        let counted = |n: u32| middle(&(1..=n).rev().map(f64::from).collect::<Vec<_>>());
        let of = |median, low, high, n| Some(Middle { median, low, high, n });
        assert_eq!(counted(0), None);
        assert_eq!(counted(1), of(1.0, 1.0, 1.0, 1));
        assert_eq!(counted(20), of(10.5, 1.0, 20.0, 20));
        assert_eq!(counted(100), of(50.5, 1.0, 99.0, 100));
        assert_eq!(counted(101), of(51.0, 2.0, 100.0, 101));
        assert_eq!(counted(1_000), of(500.5, 10.0, 990.0, 1_000));
    }

    #[test]
    fn one_repetition_has_no_interval_and_three_have() {
        assert_eq!(estimate(&[]), None);
        assert_eq!(estimate(&[2.0]), Some(Estimate { mean: 2.0, half_width: None, n: 1 }));
        let three = estimate(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((three.mean, three.n), (2.0, 3));
        let expected = 4.303 / 3_f64.sqrt();
        assert!((three.half_width.unwrap() - expected).abs() < 1e-9, "{three:?}");
    }

    #[test]
    fn intervals_cover_the_mean_in_95_of_100() {
        // A fixed generator (xorshift), sums of twelve uniform numbers as normal ones.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut uniform = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        let covers = (0..4_000).filter(|_| {
            let repetitions: Vec<_> = (0..5).map(|_| normal()).collect();
            estimate(&repetitions).is_some_and(|it| it.mean.abs() <= it.half_width.unwrap_or(0.0))
        });
        let share = covers.count() as f64 / 4_000.0;
        assert!((0.94..0.96).contains(&share), "{share}");
    }
}
