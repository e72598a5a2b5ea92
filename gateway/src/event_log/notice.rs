//! Records about what is used up, or nearly: alarms, and subscribers that were refused. Both are rare by the way they are made: an alarm has a
//! gap between its thresholds, and a subscriber has a record a minute at most.

use std::io::Write as _;
use std::sync::Arc;

/// What is used up, or nearly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// An alarm.
    Alarm(AlarmNotice),
    /// Sessions or bindings of a subscriber were refused because of its limits or its share (RFC 8158 §8.4.1, "quota exceeded").
    Subscriber {
        /// The translator's name.
        translator: Arc<str>,
        /// The subscriber's prefix.
        subscriber: Arc<str>,
        /// New sessions and bindings refused since the last record of it.
        refused: u64,
    },
}

/// An alarm that is raised or cleared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlarmNotice {
    /// Whether it is raised.
    pub is_raised: bool,
    /// The translator's name.
    pub translator: Arc<str>,
    /// What it is about, such as `udp_ports`.
    pub resource: Arc<str>,
    /// How much of that is in use.
    pub used: u64,
    /// How much there is.
    pub capacity: u64,
}

impl Notice {
    /// What a line calls it.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Alarm(AlarmNotice { is_raised: true, .. }) => "alarm_raised",
            Self::Alarm(AlarmNotice { is_raised: false, .. }) => "alarm_cleared",
            Self::Subscriber { .. } => "subscriber_refused",
        }
    }

    /// Appends the fields of its line.
    pub(super) fn write_json(&self, out: &mut Vec<u8>) {
        let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
        // Writing to memory does not fail.
        let _ = match self {
            Self::Alarm(AlarmNotice { translator, resource, used, capacity, .. }) => write!(
                out,
                ",\"translator\":{},\"resource\":{},\"used\":{used},\"capacity\":{capacity}",
                quoted(translator),
                quoted(resource)
            ),
            Self::Subscriber { translator, subscriber, refused } => write!(
                out,
                ",\"translator\":{},\"subscriber\":{},\"count\":{refused}",
                quoted(translator),
                quoted(subscriber)
            ),
        };
    }

    /// Its parameters and its text in syslog; `escaped` prepares a value.
    pub(super) fn syslog(&self, escaped: fn(&str) -> String) -> (String, String) {
        match self {
            Self::Alarm(AlarmNotice { is_raised, translator, resource, used, capacity }) => (
                format!(
                    " translator=\"{}\" resource=\"{}\" used=\"{used}\" capacity=\"{capacity}\"",
                    escaped(translator),
                    escaped(resource)
                ),
                format!(
                    "alarm {}: {translator}: {used} of {capacity} {}",
                    if *is_raised { "raised" } else { "cleared" },
                    resource.replace('_', " ")
                ),
            ),
            Self::Subscriber { translator, subscriber, refused } => (
                format!(
                    " translator=\"{}\" subscriber=\"{}\" count=\"{refused}\"",
                    escaped(translator),
                    escaped(subscriber)
                ),
                format!("{translator}: {refused} new sessions or bindings of {subscriber} were refused"),
            ),
        }
    }
}
