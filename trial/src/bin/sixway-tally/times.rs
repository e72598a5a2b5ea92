//! How long each test of a binary took.
//!
//! A harness of ours tells it. The standard one does not, unless the compiler is a nightly one; but it says immediately what ends, and it begins the tests in
//! the order of their names, a fixed number at a time: each that ends makes room for the next. So the time is found from when the lines came.

use std::time::Duration;

/// The tests that one binary said had ended, in that order, and when.
pub type Ended = Vec<(String, Duration)>;

/// What each took, if `at_once` of them ran at a time from `began` on.
pub fn inferred(began: Duration, ended: &Ended, at_once: usize) -> Vec<(String, Duration)> {
    let mut order: Vec<usize> = (0..ended.len()).collect();
    order.sort_by(|one, other| ended[*one].0.cmp(&ended[*other].0));
    let ends = ended.iter().map(|(_, end)| *end);
    let begins = std::iter::repeat_n(began, at_once).chain(ends);
    let mut times: Vec<_> = order
        .into_iter()
        .zip(begins)
        .map(|(test, begin)| (ended[test].0.clone(), ended[test].1.saturating_sub(begin)))
        .collect();
    times.sort_by(|one, other| one.0.cmp(&other.0));
    times
}

/// What a harness of ours told: lines of seconds and a name.
pub fn told(text: &str) -> Vec<(String, Duration)> {
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines
        .filter_map(|(seconds, name)| {
            let time = Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?;
            Some((name.to_owned(), time))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(times: &[(&str, u64)]) -> Ended {
        times.iter().map(|(name, time)| ((*name).to_owned(), Duration::from_secs(*time))).collect()
    }

    #[test]
    fn each_end_makes_room_for_the_next_by_name() {
        // a and b begin; b ends after 1 s, so c begins then; c ends after 3 s, and d begins.
        let ended = seconds(&[("b", 11), ("c", 13), ("a", 14), ("d", 18)]);
        let times = inferred(Duration::from_secs(10), &ended, 2);
        assert_eq!(times, seconds(&[("a", 4), ("b", 1), ("c", 2), ("d", 5)]));
    }

    #[test]
    fn one_at_a_time_is_from_line_to_line() {
        let ended = seconds(&[("a", 2), ("b", 3)]);
        assert_eq!(inferred(Duration::ZERO, &ended, 1), seconds(&[("a", 2), ("b", 1)]));
    }

    #[test]
    fn what_is_told_is_taken_and_what_is_no_time_is_not() {
        assert_eq!(told("2.000 a::b\nx y\n-1 c\n3 d e\n"), seconds(&[("a::b", 2), ("d e", 3)]));
    }
}
