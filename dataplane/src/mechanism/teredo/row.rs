//! The data that `show` displays of a relay or a client, and of its peers.

use core::net::Ipv6Addr;
use core::time::Duration;
use sixway_wire::Endpoint4;

/// The state of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PeerState {
    /// It did not answer.
    Unreachable,
    /// A bubble was sent, and is not answered yet.
    Contacting,
    /// Packets came from its endpoint; none were sent there lately.
    Trusted,
    /// The same, and packets pass both ways.
    Established,
}

impl PeerState {
    /// In a word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Contacting => "contacting",
            Self::Trusted => "trusted",
            Self::Established => "established",
        }
    }
}

/// A peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerRow {
    /// Its IPv6 address.
    pub address: Ipv6Addr,
    /// Where its packets come from and go to.
    pub endpoint: Endpoint4,
    /// The known data about it.
    pub state: PeerState,
    /// Whether it is on the same link.
    pub is_local: bool,
    /// The spare port that it is reached from (RFC 6081 §5.4); `None`: the service port.
    pub port: Option<u16>,
    /// Since the last packet from it; `None`: there was none.
    pub heard: Option<Duration>,
    /// Since the last packet to it.
    pub sent: Option<Duration>,
    /// Bubbles since it answered last.
    pub bubbles: u8,
    /// Packets that wait for its answer.
    pub waiting: u8,
}

/// The spare ports of a client (RFC 6081 §5.4, §5.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpareRow {
    /// Their number.
    pub open: u32,
    /// Those that a peer has.
    pub in_use: u32,
    /// One that is to be closed and replaced: the NAT has a mapping for it.
    pub spent: Option<u16>,
}

/// A relay or a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TeredoRow {
    /// Peers, by [`PeerState`].
    pub peers: [u32; 4],
    /// Packets that wait.
    pub waiting: u32,
    /// Bubbles sent.
    pub bubbles: u64,
    /// Bubbles not sent because of a rate.
    pub bubbles_limited: u64,
    /// Spare ports.
    pub spares: SpareRow,
}
