//! Time in readable form.

use std::time::{SystemTime, UNIX_EPOCH};

/// UTC, as RFC 3339 writes it: `2026-11-26T07:15:02Z`.
pub type Timestamp = String;

/// A time in UTC; times before 1970 are shown as its beginning.
pub fn timestamp(time: SystemTime) -> Timestamp {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (day, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(day);
    format!("{year}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3_600, second / 60 % 60, second % 60)
}

/// Year, month and day of the Gregorian calendar, of a day counted from 1970-01-01: years begin in March, so that a leap day is a year's last.
fn date(day: u64) -> (u64, u64, u64) {
    let day = day + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let of_month = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, of_month)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_are_written_in_utc() {
        let at = |seconds| timestamp(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_827_696), "2000-02-29T12:34:56Z");
        assert_eq!(at(1_795_676_400), "2026-11-26T07:00:00Z");
        assert_eq!(at(4_107_542_399), "2100-02-28T23:59:59Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00Z");
    }
}
