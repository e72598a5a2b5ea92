//! The limits of a translator in the configuration: records of IPFIX contain the limit that was reached.

use std::sync::Arc;

/// The limits of a translator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Its name.
    pub translator: Arc<str>,
    /// Sessions.
    pub sessions: u32,
    /// Bindings.
    pub bindings: u32,
    /// Sessions of a subscriber, or its bindings if only these are limited; 0: it has a share.
    pub of_subscriber: u32,
    /// The percentages of its pool at which an alarm is raised and cleared.
    pub alarm: (u8, u8),
}
