//! Teredo's relays and clients.

use serde::{Deserialize, Serialize};

/// A relay or a client, and its peers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TeredoRow {
    /// Its name.
    pub name: String,
    /// What it serves.
    pub serves: String,
    /// The IPv4 address and the UDP port of its socket; `None`: the host does not have the address, or another program has the port.
    pub local: Option<String>,
    /// Why there is no socket, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_socket: Option<String>,
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
    /// The state of a client; `None` for a relay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<TeredoClientRow>,
}

/// The state of a client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TeredoClientRow {
    /// `qualified`, or what it does.
    pub phase: String,
    /// Why it has no address; `None`: it has one, or nothing has failed yet.
    pub why: Option<String>,
    /// Whether nothing needs attention: it has an address, begins, or is off because of native IPv6.
    pub is_as_wanted: bool,
    /// Its IPv6 address.
    pub address: Option<String>,
    /// The server that it asks or uses.
    pub server: Option<String>,
    /// The address and port that its NAT maps its port to.
    pub mapped: Option<String>,
    /// The kind of NAT.
    pub nat: String,
    /// How the NAT chooses ports.
    pub ports: String,
    /// The spare ports by which peers are found that could not be otherwise, and why; `None`: there are to be none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction: Option<String>,
    /// Teredo Refresh Interval.
    pub interval_seconds: u64,
    /// Seconds since the last answer of the server.
    pub answered_seconds: Option<u64>,
    /// Seconds until the next attempt, if it waits.
    pub next_seconds: Option<u64>,
    /// Whether the server announced that the secret must be replaced.
    pub key_expires: bool,
    /// How often the mapping changed.
    pub mapping_changes: u64,
    /// Answers that were refused.
    pub refused: u64,
    /// Why the last one was.
    pub last_refused: Option<String>,
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
