//! The row of the Teredo server in the admin API.

use super::dns64_rows::CountedRow;
use serde::{Deserialize, Serialize};

/// The Teredo server: what it exposes, and datagrams by outcome.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TeredoServerRow {
    /// Its addresses, to whom it answers and what it forwards.
    pub exposes: String,
    /// Its addresses that this host does not have.
    pub waits: Vec<String>,
    /// Sockets that cannot be opened, and what the kernel says.
    #[serde(default)]
    pub troubles: Vec<String>,
    /// Datagrams received within the last minute.
    pub received_last_minute: u64,
    /// Those among them that were discarded.
    pub refused_last_minute: u64,
    /// Those among them that exceeded the rate of all together.
    pub over_total_rate_last_minute: u64,
    /// Datagrams that were answered or forwarded.
    pub handled: Vec<CountedRow>,
    /// Datagrams that were discarded, by reason.
    pub refused: Vec<CountedRow>,
    /// Further counters.
    pub counters: Vec<CountedRow>,
}
