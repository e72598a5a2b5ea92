//! How records become messages.

use super::record::Record;

/// Octets that are gathered before they are sent over a stream.
const GATHERED: usize = 16 << 10;

/// Writes messages.
pub(super) trait Encode: Send {
    /// Messages that come first on a connection; `now`: seconds since 1970.
    fn connected(&mut self, now: u64) -> Vec<Vec<u8>>;

    /// Adds a record to a message.
    fn encode(&mut self, record: &Record, out: &mut Vec<u8>);

    /// Whether several records may be in one message.
    fn is_joined(&self) -> bool;

    /// Whether a message has no room for more.
    fn is_full(&self, out: &[u8]) -> bool {
        out.len() >= GATHERED
    }

    /// Whether it writes such a record at all.
    fn carries(&self, _record: &Record) -> bool {
        true
    }

    /// The messages to send for these records.
    fn finish(&mut self, records: usize, now: u64, out: Vec<u8>) -> Vec<Vec<u8>>;

    /// The records of the last messages were not sent.
    fn not_sent(&mut self, _records: usize) {}
}
