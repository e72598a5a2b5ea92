//! Teredo's relays and clients.

use serde::{Deserialize, Serialize};

/// A relay or a client, and its peers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TeredoRow {
    /// What it is called.
    pub name: String,
    /// What it serves.
    pub serves: String,
    /// The IPv4 address and the UDP port of its socket; `None`: the host does not have the address, or another program has the port.
    pub local: Option<String>,
    /// Peers through which packets pass both ways.
    pub established: u32,
    /// Peers that answered, and to which nothing was sent lately.
    pub trusted: u32,
    /// Peers that were asked for an answer.
    pub contacting: u32,
    /// Peers that did not answer.
    pub unreachable: u32,
    /// Packets that wait for the answer of a peer.
    pub waiting: u32,
    /// Bubbles sent.
    pub bubbles: u64,
    /// Bubbles not sent because of a rate.
    pub bubbles_limited: u64,
    /// Peers, as many as a page has.
    pub peers: Vec<TeredoPeerRow>,
    /// Whether there are more.
    pub has_more: bool,
}

/// A peer of a relay or a client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TeredoPeerRow {
    /// Its IPv6 address.
    pub address: String,
    /// The IPv4 address and port that its packets come from.
    pub endpoint: String,
    /// `established`, `trusted`, `contacting` or `unreachable`.
    pub state: String,
    /// What that means at the moment.
    pub why: String,
    /// Seconds since its last packet; `None`: there was none.
    pub heard_seconds: Option<u64>,
    /// Seconds since the last packet to it.
    pub sent_seconds: Option<u64>,
    /// Bubbles sent since it answered last.
    pub bubbles: u8,
    /// Packets that wait for its answer.
    pub waiting: u8,
}
