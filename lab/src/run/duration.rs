//! Durations in readable form.

/// Seconds, minutes or hours; negative values count as zero.
pub(super) fn duration(seconds: f64) -> String {
    // No minus before what rounds to nothing.
    let seconds = seconds.max(0.0);
    match seconds {
        ..90.0 => format!("{seconds:.0} s"),
        90.0..5_400.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3_600.0),
    }
}
