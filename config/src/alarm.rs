//! When alarms are raised, and when they are cleared: the gap between the two prevents an alarm from being raised and cleared with every
//! change.

use crate::fault::Report;
use crate::section::Reader;
use crate::value::Value;

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
        let usual = Self::default();
        let written = |value: &Option<Value>, report: &mut Report| match value {
            Some(value) => value.integer(report).map(Some),
            None => Some(None),
        };
        let (raised, cleared): (Option<u8>, Option<u8>) = (written(&at, report)?, written(&clear, report)?);
        let at = raised.unwrap_or_else(|| usual.at.max(cleared.unwrap_or(0) + 1));
        let thresholds =
            Self { at, clear: cleared.unwrap_or_else(|| at.saturating_sub(usual.at - usual.clear)) };
        if thresholds.clear < thresholds.at {
            return Some(thresholds);
        }
        let what = format!("must be less than alarm_at, which is {at}; write {} or less", at - 1);
        clear.iter().for_each(|clear| report.fault(&clear.place, what.clone()));
        None
    }
}
