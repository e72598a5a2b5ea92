//! Durations in readable form.

/// Seconds, minutes or hours; negative values count as zero.
pub(super) fn duration(seconds: f64) -> String {
    // No minus before what rounds to nothing, which -0.0 has.
    let seconds = seconds.max(0.0) + 0.0;
    match seconds {
        ..90.0 => format!("{seconds:.0} s"),
        90.0..5_400.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3_600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn no_time_is_left_without_a_sign() {
        // The sum of no numbers is -0.0.
        assert_eq!([duration(-0.0), duration(-1.0), duration([0.0_f64; 0].iter().sum())], ["0 s"; 3]);
        assert_eq!([duration(89.0), duration(120.0), duration(7_200.0)], ["89 s", "2 min", "2.0 h"]);
    }
}
