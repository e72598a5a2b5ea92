//! The rows of the PCP server in the admin API.

use super::dns64_rows::CountedRow;
use serde::{Deserialize, Serialize};

/// The PCP server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PcpRow {
    /// Where it listens.
    pub interfaces: Vec<String>,
    /// Where it does not, and why.
    pub waits: Vec<String>,
    /// Its Epoch Time in seconds.
    pub epoch: u32,
    /// Mappings.
    pub mappings: u64,
    /// Ports in mappings, and outbound mappings by PEER.
    pub ports: u64,
    /// How many of these it has at most.
    pub max_mappings: u64,
    /// Outbound mappings by PEER.
    pub peers: u64,
    /// Requests by result.
    pub results: Vec<CountedRow>,
    /// Requests that were not answered, by reason.
    pub ignored: Vec<CountedRow>,
    /// Further counters.
    pub counters: Vec<CountedRow>,
    /// The first of the mappings.
    pub table: Vec<PcpMappingRow>,
}

/// A mapping by PCP or NAT-PMP.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PcpMappingRow {
    /// `tcp` or `udp`.
    pub protocol: String,
    /// The first inside endpoint.
    pub inside: String,
    /// The first outside endpoint.
    pub outside: String,
    /// Number of ports.
    pub ports: u16,
    /// Seconds until it ends.
    pub ends_in: u32,
    /// `pcp` or `nat-pmp`.
    pub by: String,
    /// Number of filters; 0: all remote hosts may send.
    pub filters: usize,
}
