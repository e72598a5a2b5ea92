//! Numbers as people read them.

/// A count with its thousands apart: `212,004`.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count that may be unknown.
pub(super) fn count_or_dash(value: Option<u64>) -> String {
    value.map_or_else(|| "–".into(), count)
}

/// A value with a decimal prefix: `1.2 G`, `398 k`, `12`.
pub(super) fn scaled(value: f64) -> String {
    for (factor, prefix) in [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if value >= factor {
            let scaled = value / factor;
            let digits = usize::from(scaled < 100.0);
            return format!("{scaled:.digits$} {prefix}");
        }
    }
    format!("{value:.0} ")
}

/// A size as configurations have it: `2.6 MiB`, `16.0 GiB`.
pub(super) fn memory(octets: u64) -> String {
    let mebibytes = octets as f64 / f64::from(1 << 20);
    if mebibytes < 1_024.0 {
        format!("{mebibytes:.1} MiB")
    } else {
        format!("{:.1} GiB", mebibytes / 1_024.0)
    }
}

/// A length of time by its two greatest units: `2 s`, `4 m 59 s`, `2 h 4 m`, `3 d 4 h`.
pub(crate) fn duration(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} m {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {} m", minutes % 60),
        (_, _, _) => format!("{days} d {} h", hours % 24),
    }
}

/// How long ago something was last seen: a tenth of a second matters below ten seconds.
pub(super) fn ago(seconds: Option<f64>) -> String {
    match seconds {
        None => "–".into(),
        Some(seconds) if seconds < 10.0 => format!("{seconds:.1} s"),
        Some(seconds) => duration(seconds as u64),
    }
}

/// A part of a whole in per cent, with as many digits as it takes to see it.
pub(super) fn percent(part: f64, whole: f64) -> String {
    if whole <= 0.0 || part <= 0.0 {
        return "0 %".into();
    }
    let value = 100.0 * part / whole;
    if value >= 0.1 { format!("{value:.1} %") } else { format!("{value:.3} %") }
}

/// `1 worker`, `2 workers`.
pub(crate) fn plural(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_their_thousands_apart() {
        let counts = [0, 999, 1_000, 212_004, 1_234_567];
        assert_eq!(counts.map(count), ["0", "999", "1,000", "212,004", "1,234,567"]);
    }

    #[test]
    fn rates_are_scaled() {
        assert_eq!(
            [0.0, 12.4, 1_204.0, 398_112.0, 1.2e9].map(scaled),
            ["0 ", "12 ", "1.2 k", "398 k", "1.2 G"]
        );
    }

    #[test]
    fn durations_show_two_units() {
        assert_eq!([2, 299, 7_440, 273_600].map(duration), ["2 s", "4 m 59 s", "2 h 4 m", "3 d 4 h"]);
        assert_eq!([None, Some(0.2), Some(41.0)].map(ago), ["–", "0.2 s", "41 s"]);
    }

    #[test]
    fn small_parts_are_still_seen() {
        assert_eq!(percent(2.0, 100_000.0), "0.002 %");
        assert_eq!(percent(973.0, 1_000.0), "97.3 %");
        assert_eq!(percent(1.0, 0.0), "0 %");
    }
}
