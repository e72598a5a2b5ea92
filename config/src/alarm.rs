//! When alarms are raised, and when they are cleared: the gap between the two keeps one from coming and going with every change.

use crate::fault::Report;
use crate::section::Reader;

/// Percentages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlarmThresholds {
    /// From this one on an alarm is raised.
    pub at: u8,
    /// Up to this one it is cleared.
    pub clear: u8,
}

impl Default for AlarmThresholds {
    fn default() -> Self {
        Self { at: 80, clear: 70 }
    }
}

impl AlarmThresholds {
    pub(crate) fn read(section: &mut Reader, report: &mut Report) -> Option<Self> {
        let at = section.value("alarm_at", report);
        let clear = section.value("alarm_clear", report);
        let (at, clear) = (at?, clear?);
        let thresholds = Self { at: at.integer(report)?, clear: clear.integer(report)? };
        if thresholds.clear < thresholds.at {
            return Some(thresholds);
        }
        let place = if clear.is_written() { &clear.place } else { &at.place };
        let what = format!("must be less than alarm_at, which is {}", thresholds.at);
        let of_default = format!("must be more than alarm_clear, which is {}", thresholds.clear);
        report.fault(place, if clear.is_written() { what } else { of_default });
        None
    }
}
