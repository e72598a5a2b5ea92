//! Records that the workers do not write. Alarms, and subscribers that were refused: both are rare. An alarm has a gap between its
//! thresholds, and a subscriber has a record a minute at most. Leases: few in a second, but all of them at the start, so what finds no room
//! is given again.

use super::phase::Phase;
use sixway_wire::Prefix4;
use std::io::Write as _;
use std::net::Ipv6Addr;
use std::sync::Arc;

/// A resource that is exhausted, or nearly.
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
    /// A lease of 4over6.
    Lease(LeaseNotice),
}

/// A lease that begins, ends, or exists when this process starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseNotice {
    /// Which.
    pub(super) phase: Phase,
    /// The concentrator's name.
    pub(super) concentrator: Arc<str>,
    /// What is leased.
    pub(super) ipv4: Prefix4,
    /// To whom.
    pub(super) host: Ipv6Addr,
}

impl LeaseNotice {
    /// A host has this from now on.
    pub const fn begun(concentrator: Arc<str>, ipv4: Prefix4, host: Ipv6Addr) -> Self {
        Self { phase: Phase::Created, concentrator, ipv4, host }
    }

    /// It has it no longer.
    pub const fn ended(concentrator: Arc<str>, ipv4: Prefix4, host: Ipv6Addr) -> Self {
        Self { phase: Phase::Deleted, concentrator, ipv4, host }
    }

    /// It has it when this process starts, by a lease of before or by configuration.
    pub const fn continues(concentrator: Arc<str>, ipv4: Prefix4, host: Ipv6Addr) -> Self {
        Self { phase: Phase::Continues, concentrator, ipv4, host }
    }

    /// What is leased: an address, or a prefix.
    fn outside(&self) -> String {
        if self.ipv4.length() == 32 { self.ipv4.address().to_string() } else { self.ipv4.to_string() }
    }
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
            Self::Lease(lease) => match lease.phase {
                Phase::Created => "lease_created",
                Phase::Deleted => "lease_deleted",
                Phase::Continues => "lease_continues",
            },
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
            Self::Lease(lease) => write!(
                out,
                ",\"translator\":{},\"subscriber\":\"{}\",\"outside\":\"{}\"",
                quoted(&lease.concentrator),
                lease.host,
                lease.outside()
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
            Self::Lease(lease) => {
                let LeaseNotice { phase, concentrator, host, .. } = lease;
                let outside = lease.outside();
                let what = match phase {
                    Phase::Created => "is leased to",
                    Phase::Deleted => "is no longer leased to",
                    Phase::Continues => "is leased to, from the start of the log,",
                };
                let named = escaped(concentrator);
                (
                    format!(" translator=\"{named}\" subscriber=\"{host}\" outside=\"{outside}\""),
                    format!("{concentrator}: {outside} {what} {host}"),
                )
            }
        }
    }
}
