//! A rule by source that routes packets into the device.

use sixway_wire::Prefix6;

/// Packets with these sources are routed into the device, or by the main table if they go to `except`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceRule {
    /// The sources.
    pub from: Prefix6,
    /// Destinations that are not routed into the device; `None`: all others are.
    pub except: Option<Prefix6>,
}
